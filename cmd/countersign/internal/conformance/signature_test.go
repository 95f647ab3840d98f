package conformance

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func init() { generators["signature"] = signatureVectors }

func signatureVectors(g *generator) {
	sshsigs(g)
	signerLines(g)
	keyDetails(g)
	statements(g)
	decisions(g)
	passkeyDecisions(g)
}

// An envelope is a signature's outer form, each field of which can be wrong.
type envelope struct {
	magic                     string
	version                   uint32
	public                    []byte
	namespace, reserved, hash string
	signature, rest           []byte
}

func text(fields ...any) []byte {
	var out []byte
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			out = append(binary.BigEndian.AppendUint32(out, uint32(len(f))), f...)
		case []byte:
			out = append(binary.BigEndian.AppendUint32(out, uint32(len(f))), f...)
		case uint32:
			out = binary.BigEndian.AppendUint32(out, f)
		case byte:
			out = append(out, f)
		}
	}
	return out
}

func (e envelope) blob() []byte {
	out := append([]byte(e.magic), text(e.version, e.public, e.namespace, e.reserved, e.hash, e.signature)...)
	return append(out, e.rest...)
}

// toSign is what is signed of a message.
func (e envelope) toSign(message string) []byte {
	sum512, sum256 := sha512.Sum512([]byte(message)), sha256.Sum256([]byte(message))
	sum := sum512[:]
	if e.hash == "sha256" {
		sum = sum256[:]
	}
	return append([]byte("SSHSIG"), text(e.namespace, e.reserved, e.hash, sum)...)
}

func armored(blob []byte, width int) string {
	text := base64.StdEncoding.EncodeToString(blob)
	var b strings.Builder
	b.WriteString("-----BEGIN SSH SIGNATURE-----\n")
	for len(text) > 0 {
		n := min(width, len(text))
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return b.String() + "-----END SSH SIGNATURE-----\n"
}

// A madeUp key is made for the vectors, from a seed that is in this file.
var madeUp = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{42}, ed25519.SeedSize))

func publicOf(key ed25519.PrivateKey) []byte {
	return text("ssh-ed25519", []byte(key.Public().(ed25519.PublicKey)))
}

// sign makes an ed25519 signature in which something may be changed before it is signed, or after.
func sign(message string, before, after func(*envelope)) string {
	e := envelope{magic: "SSHSIG", version: 1, public: publicOf(madeUp), namespace: "git", hash: "sha512"}
	if before != nil {
		before(&e)
	}
	e.signature = text("ssh-ed25519", ed25519.Sign(madeUp, e.toSign(message)))
	if after != nil {
		after(&e)
	}
	return armored(e.blob(), 70)
}

func sshsigs(g *generator) {
	g.in("sshsig")
	const message, twin = "a message\n", "ssh-ed25519"
	ask := func(message, signature, namespace string) m {
		return m{"message": Bytes(message), "signature": Bytes(signature), "namespace": namespace}
	}
	print := func(public []byte) string {
		sum := sha256.Sum256(public)
		return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
	}
	whole := sign(message, nil, nil)
	g.good("sshsig", "S-20 S-21 S-22 S-24", twin, ask(message, whole, "git"), m{"key_fingerprint": print(publicOf(madeUp)), "key_type": "ssh-ed25519"})
	g.good("sshsig", "S-21", "ssh-ed25519 with sha256", ask(message, sign(message, func(e *envelope) { e.hash = "sha256" }, nil), "git"), nil)
	g.good("sshsig", "S-21", "an empty message", ask("", sign("", nil, nil), "git"), nil)
	g.good("sshsig", "S-3", "the namespace of decisions", ask(message, sign(message, func(e *envelope) { e.namespace = "countersign-decision@v2" }, nil), "countersign-decision@v2"), nil)
	recorded(g, ask)
	for _, name := range []string{"sk-ed25519", "sk-ecdsa"} {
		key := teststand.SecurityKey(name, teststand.Touched|teststand.Verified)
		g.good("sshsig", "S-22 S-23", name+", touched, of a verified person", ask(message, key.Sign("git", []byte(message)), "git"), m{"key_fingerprint": key.Fingerprint()})
		key = teststand.SecurityKey(name, teststand.Touched)
		g.good("sshsig", "S-23", name+", touched", ask(message, key.Sign("git", []byte(message)), "git"), nil)
		key = teststand.SecurityKey(name, teststand.Verified)
		g.bad("sshsig", "S-23", name+", not touched", name+", touched", ask(message, key.Sign("git", []byte(message)), "git"))
	}
	bad := func(requires, note, message, signature, namespace string) {
		g.t.Helper()
		g.bad("sshsig", requires, "sshsig: "+note, twin, ask(message, signature, namespace))
	}
	bad("S-21", "another message", "another message\n", whole, "git")
	bad("S-21", "another namespace", message, whole, "file")
	bad("S-21", "an empty namespace", message, sign(message, func(e *envelope) { e.namespace = "" }, nil), "git")
	body := strings.TrimSuffix(strings.TrimPrefix(whole, "-----BEGIN SSH SIGNATURE-----\n"), "-----END SSH SIGNATURE-----\n")
	e := envelope{magic: "SSHSIG", version: 1, public: publicOf(madeUp), namespace: "git", hash: "sha512"}
	e.signature = text("ssh-ed25519", ed25519.Sign(madeUp, e.toSign(message)))
	for _, c := range [][2]string{
		{"lines of 64 characters", armored(e.blob(), 64)}, {"one long line", armored(e.blob(), 1<<20)}, {"CR LF", strings.ReplaceAll(whole, "\n", "\r\n")}, {"without its last LF", strings.TrimSuffix(whole, "\n")}, {"a blank line at the end", whole + "\n"}, {"a blank line inside", strings.Replace(whole, "\n", "\n\n", 2)},
		{"a blank line before", "\n" + whole}, {"a space at the end of a line", strings.Replace(whole, "\n", " \n", 2)}, {"without its first line", body + "-----END SSH SIGNATURE-----\n"}, {"another first line", strings.Replace(whole, "SSH SIGNATURE", "SSH  SIGNATURE", 1)}, {"text before", "x\n" + whole}, {"twice", whole + whole}, {"nothing", ""}, {"no base64 at all", "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n"},
		{"base64 that is cut short", strings.Replace(whole, body, body[:len(body)-3]+"\n", 1)}, {"base64url", strings.Replace(strings.Replace(whole, "+", "-", 1), "/", "_", 1) + ""},
	} {
		bad("S-20", c[0], message, c[1], "git")
	}
	padded, namespace := "", ""
	for !strings.Contains(padded, "=") {
		namespace += "n"
		padded = sign("b", func(e *envelope) { e.namespace = namespace }, nil)
	}
	g.good("sshsig", "S-20", "a signature with padding", ask("b", padded, namespace), nil)
	at := strings.Index(padded, "=") - 1
	letters := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	loose := padded[:at] + string(letters[strings.IndexByte(letters, padded[at])|1]) + padded[at+1:]
	g.bad("sshsig", "S-20", "sshsig: unused bits of base64 that are not zero", "a signature with padding", ask("b", loose, namespace))
	g.bad("sshsig", "S-20", "sshsig: without its padding", "a signature with padding", ask("b", strings.ReplaceAll(padded, "=", ""), namespace))
	for _, c := range []struct {
		requires, note string
		before, after  func(*envelope)
	}{
		{"S-21", "another magic", nil, func(e *envelope) { e.magic = "SSHSIH" }}, {"S-21", "version 2", nil, func(e *envelope) { e.version = 2 }}, {"S-21", "a reserved field that is signed", func(e *envelope) { e.reserved = "x" }, nil}, {"S-21", "a reserved field", nil, func(e *envelope) { e.reserved = "x" }},
		{"S-21", "sha1", func(e *envelope) { e.hash = "sha1" }, nil}, {"S-21", "another hash than was signed", nil, func(e *envelope) { e.hash = "sha256" }}, {"S-21", "a byte behind it", nil, func(e *envelope) { e.rest = []byte{0} }},
		{"S-24", "a byte behind the public key", func(e *envelope) { e.public = append(e.public, 0) }, nil}, {"S-24", "a byte behind the signature", nil, func(e *envelope) { e.signature = append(e.signature, 0) }}, {"S-22", "a signature that is cut short", nil, func(e *envelope) { e.signature = e.signature[:len(e.signature)-1] }},
		{"S-22", "a key of another length", nil, func(e *envelope) { e.public = text("ssh-ed25519", e.public[19:50]) }}, {"S-22", "a key of an unknown type", nil, func(e *envelope) { e.public = text("ssh-ed448", e.public[19:]) }}, {"S-22", "a signature of another type", nil, func(e *envelope) { e.signature = text("rsa-sha2-512", e.signature[19:]) }},
		{"S-22", "another key", nil, func(e *envelope) { e.public = publicOf(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{43}, 32))) }}, {"S-22", "a certificate", nil, func(e *envelope) { e.public = append(text("ssh-ed25519-cert-v01@openssh.com"), e.public[15:]...) }},
		{"S-24", "an S that is not reduced", nil, func(e *envelope) { e.signature = text("ssh-ed25519", unreduced(e.signature[19:])) }},
		{"S-22", "one bit of it", nil, func(e *envelope) { e.signature[40] ^= 1 }}, {"S-21", "nothing in it", nil, func(e *envelope) { e.public, e.signature = nil, nil }},
	} {
		bad(c.requires, c.note, message, sign(message, c.before, c.after), "git")
	}
}

// unreduced adds the group's order to the S of an ed25519 signature, which some verifiers take.
func unreduced(signature []byte) []byte {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	s := slices.Clone(signature[32:])
	slices.Reverse(s)
	sum := new(big.Int).Add(new(big.Int).SetBytes(s), order).FillBytes(make([]byte, 32))
	slices.Reverse(sum)
	return slices.Concat(signature[:32], sum)
}

// recorded are signatures of the test keys of package sshsig, which ssh-keygen made.
func recorded(g *generator, ask func(message, signature, namespace string) m) {
	for _, name := range []string{"ecdsa-256", "ecdsa-384", "ecdsa-521", "rsa-2048", "rsa-3072"} {
		raw, err := os.ReadFile("../../../../pipeline/record/sshsig/testdata/" + name + ".txtar")
		if err != nil {
			g.t.Fatal(err)
		}
		_, rest, ok1 := strings.Cut(string(raw), "-- commit --\n")
		head, inside, ok2 := strings.Cut(rest, "\ngpgsig ")
		signature, message, ok3 := strings.Cut(inside, "-----END SSH SIGNATURE-----\n")
		if !ok1 || !ok2 || !ok3 {
			g.t.Fatal(name)
		}
		signature = strings.ReplaceAll(signature, "\n ", "\n") + "-----END SSH SIGNATURE-----\n"
		payload := head + "\n" + message
		g.good("sshsig", "S-22 S-50", name+", of a commit that ssh-keygen signed for git", ask(payload, signature, "git"), nil)
		g.bad("sshsig", "S-22", name+": another message", name+", of a commit that ssh-keygen signed for git", ask(payload+"x", signature, "git"))
		blob, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(strings.Join(strings.Split(signature, "\n")[1:len(strings.Split(signature, "\n"))-2], ""), "\n", ""))
		if err != nil {
			g.t.Fatal(err)
		}
		var e struct {
			Magic                     [6]byte
			Version                   uint32
			PublicKey                 []byte
			Namespace, Reserved, Hash string
			Signature                 []byte
		}
		var sig struct {
			Format string
			Blob   []byte
		}
		if err := ssh.Unmarshal(blob, &e); err != nil {
			g.t.Fatal(err)
		}
		if err := ssh.Unmarshal(e.Signature, &sig); err != nil {
			g.t.Fatal(err)
		}
		remade := func(format string, inner []byte) string {
			return armored(envelope{"SSHSIG", 1, e.PublicKey, e.Namespace, "", e.Hash, text(format, inner), nil}.blob(), 70)
		}
		twin := name + ", of a commit that ssh-keygen signed for git"
		if strings.HasPrefix(name, "rsa") {
			g.bad("sshsig", "S-22", name+": called rsa-sha2-256", twin, ask(payload, remade("rsa-sha2-256", sig.Blob), "git"))
			g.bad("sshsig", "S-22", name+": called ssh-rsa (SHA-1)", twin, ask(payload, remade("ssh-rsa", sig.Blob), "git"))
			g.bad("sshsig", "S-22 S-24", name+": a zero before it", twin, ask(payload, remade(sig.Format, append([]byte{0}, sig.Blob...)), "git"))
			continue
		}
		var rs struct{ R, S *big.Int }
		if err := ssh.Unmarshal(sig.Blob, &rs); err != nil {
			g.t.Fatal(err)
		}
		r := rs.R.Bytes()
		if r[0] >= 0x80 {
			r = append([]byte{0}, r...)
		}
		g.bad("sshsig", "S-24", name+": r with a zero more before it", twin, ask(payload, remade(sig.Format, text(append([]byte{0}, r...), mpint(rs.S))), "git"))
		g.bad("sshsig", "S-24", name+": s that is negative", twin, ask(payload, remade(sig.Format, text(r, append([]byte{0xff}, mpint(rs.S)...))), "git"))
		g.bad("sshsig", "S-24", name+": a byte behind s", twin, ask(payload, remade(sig.Format, append(text(r, mpint(rs.S)), 0)), "git"))
		g.bad("sshsig", "S-22", name+": r and s of zero", twin, ask(payload, remade(sig.Format, text("", "")), "git"))
	}
}

func mpint(n *big.Int) []byte {
	b := n.Bytes()
	if len(b) > 0 && b[0] >= 0x80 {
		b = append([]byte{0}, b...)
	}
	return b
}

func signerLines(g *generator) {
	g.in("line")
	key := teststand.Ed25519(1)
	line := func(text string) m { return m{"line": text} }
	good := func(requires, note, text string, values m) {
		g.t.Helper()
		g.good("line", requires, note, line(text), merge(m{"key_fingerprint": key.Fingerprint()}, values).(m))
	}
	const plain = "a line with a name and a key"
	bad := func(requires, note, text string) {
		g.t.Helper()
		g.bad("line", requires, "line: "+note, plain, line(text))
	}
	p := key.Public
	fields := strings.Fields(p)
	good("S-40 S-41 S-47", plain, "ada@example.org "+p, m{"principals": []any{"ada@example.org"}})
	good("S-41", "a comment", "ada@example.org "+p+" Ada's laptop", m{"principals": []any{"ada@example.org"}})
	good("S-40", "blanks before", " \tada "+p, m{"principals": []any{"ada"}})
	good("S-41", "tabs between", "ada\t"+fields[0]+"\t "+fields[1], m{"principals": []any{"ada"}})
	good("S-42", "several names", "ada,github:ada,*@example.org,!eve@example.org "+p, m{"principals": []any{"ada", "github:ada", "*@example.org", "!eve@example.org"}})
	good("S-42", "names in quotes", `"ada,bea" `+p, m{"principals": []any{"ada", "bea"}})
	good("S-42", "a name in quotes with a space inside", `"ada lovelace" `+p, m{"principals": []any{"ada lovelace"}})
	good("S-43 S-44", "all options", `ada namespaces="git,countersign-*",valid-after="20260105Z",valid-before="20270105120000Z" `+p, m{"principals": []any{"ada"}, "valid_after": "2026-01-05T00:00:00Z", "valid_before": "2027-01-05T12:00:00Z"})
	good("S-43", "an option in another case", `ada NameSpaces="git" `+p, m{"principals": []any{"ada"}})
	good("S-44", "times without a zone", `ada valid-after="20260105",valid-before="202701051200" `+p, m{"valid_after": "2026-01-05T12:00:00Z", "valid_before": "2027-01-04T22:00:00Z"})
	good("S-44", "a leap day", `ada valid-after="20280229Z" `+p, m{"valid_after": "2028-02-29T00:00:00Z"})
	for _, c := range []struct{ requires, note, text string }{
		{"S-40", "an empty one", ""}, {"S-40", "a comment", "# ada " + p}, {"S-40", "an authority", `ada cert-authority ` + p}, {"S-41", "without a key", "ada"}, {"S-41", "without the key's bytes", "ada ssh-ed25519"}, {"S-41", "without names", p}, {"S-41 S-22", "a key of another type", "ada ssh-dss " + fields[1]}, {"S-41", "a key that is no base64", "ada ssh-ed25519 x" + fields[1]},
		{"S-41", "a key that is called another type", "ada ecdsa-sha2-nistp256 " + fields[1]}, {"S-41 S-24", "a key with a byte more", "ada ssh-ed25519 " + base64.StdEncoding.EncodeToString(append(publicOf(madeUp), 0))}, {"S-41 U-3", "a character that is not printable", "ada\u200b " + p}, {"S-41 U-2", "a Hangul filler", "ada\u3164 " + p}, {"S-41", "a control character in the comment", "ada " + p + " \x1b[2J"}, {"S-40", "two lines", "ada " + p + "\nbea " + p},
		{"S-42", "an empty name", "ada,,bea " + p}, {"S-42", "a comma at the end", "ada, " + p}, {"S-42", "a quote inside", `ada"b" ` + p}, {"S-42", "a quote that is not closed", `"ada ` + p}, {"S-42", "no blank behind the quote", `"ada"` + p}, {"S-42", "a blank around a name", `"ada, bea" ` + p}, {"S-42", "a negated name alone", "!ada " + p}, {"S-42", "nobody is left", "ada,!* " + p},
		{"S-43", "an unknown option", `ada verify-required ` + p}, {"S-43", "an option twice", `ada namespaces="git",namespaces="x" ` + p}, {"S-43", "a value without quotes", "ada namespaces=git " + p}, {"S-43", "an option without a value", "ada namespaces " + p}, {"S-43", "a comma behind the options", `ada namespaces="git", ` + p}, {"S-43", "a backslash in a value", `ada namespaces="g\it" ` + p}, {"S-43", "an empty namespace", `ada namespaces="" ` + p},
		{"S-43", "valid-before that is not after valid-after", `ada valid-after="20260105Z",valid-before="20260105Z" ` + p}, {"S-44", "a time that does not exist", `ada valid-after="20260230Z" ` + p}, {"S-44", "a time with an hour alone", `ada valid-after="2026010512Z" ` + p}, {"S-44", "a time of RFC 3339", `ada valid-after="2026-01-05T00:00:00Z" ` + p}, {"S-44", "a time with a small z", `ada valid-after="20260105z" ` + p}, {"S-43", "an empty time", `ada valid-after="" ` + p}, {"S-44", "a time before 1970", `ada valid-before="00010101Z" ` + p},
	} {
		bad(c.requires, c.note, c.text)
	}
}

// statement is one that vectors change.
func statement() approval.SignedDecision {
	id := strings.Repeat("ab", 32)
	return approval.SignedDecision{
		Schema: approval.DecisionSchema, PullRequest: 0, TransactionID: "tx_01KE5PJ800AAAAAAAAAAAAAAAA", BaseCommit: strings.Repeat("1", 40), Decision: ledger.Approve,
		Fingerprints: []string{"patchset:" + id}, Reason: "", DecidedAt: "2026-01-05T12:00:00Z", Shown: "sha256:" + strings.Repeat("cd", 32),
		Proposers: []ledger.Actor{{Kind: "bot", ID: "7", Login: "agent[bot]"}}, RequestedBy: []ledger.Requester{}, Policy: ledger.PolicyRef{Commit: strings.Repeat("1", 40), SHA256: "sha256:" + strings.Repeat("ef", 32)},
	}
}

func statements(g *generator) {
	g.in("statement")
	id := strings.Repeat("ab", 32)
	plain := string(statement().Bytes())
	ask := func(text string) m { return m{"statement": Bytes(text)} }
	const twin = "a statement"
	g.good("statement", "S-1 S-2 J-13 J-14 J-15", twin, ask(plain), m{"decision": "approve", "decided_at": "2026-01-05T12:00:00Z", "fingerprints": []string{"patchset:" + id}})
	changed := func(change func(*approval.SignedDecision)) string {
		s := statement()
		change(&s)
		return string(s.Bytes())
	}
	repository := &ledger.Repository{ID: "1", Name: "acme/app"}
	g.good("statement", "S-1", "a statement of a pull request", ask(changed(func(s *approval.SignedDecision) { s.PullRequest, s.Repository = 12, repository })), nil)
	g.good("statement", "S-1 U-4", "a statement with a reason of 500 characters", ask(changed(func(s *approval.SignedDecision) { s.Reason = strings.Repeat("é", 500) })), nil)
	g.good("statement", "S-2", "a statement of all fingerprints", ask(changed(func(s *approval.SignedDecision) {
		s.Fingerprints = []string{"patchset:" + id, "protected:patchset:" + id, "secret:patchset:" + id}
	})), nil)
	g.good("statement", "S-2", "a statement that breaks the glass", ask(changed(func(s *approval.SignedDecision) { s.Decision, s.Reason = approval.BreakGlass, "it burns" })), nil)
	g.good("statement", "S-1", "a denial", ask(changed(func(s *approval.SignedDecision) { s.Decision, s.Reason = ledger.Deny, "no" })), nil)
	bad := func(requires, note, text string) {
		g.t.Helper()
		g.bad("statement", requires, "statement: "+note, twin, ask(text))
	}
	swap := func(from, to string) string {
		if !strings.Contains(plain, from) {
			panic(from)
		}
		return strings.Replace(plain, from, to, 1)
	}
	bad("S-1 J-10", "without its LF", strings.TrimSuffix(plain, "\n"))
	bad("S-1 J-10", "with two LF", plain+"\n")
	bad("S-1 J-10", "with a space", swap(`{"base`, `{ "base`))
	bad("J-13", "a member more", swap(`"shown"`, `"risks":"x","shown"`))
	bad("J-13", "a member in another case", swap(`"reason"`, `"Reason"`))
	bad("J-14", "a member less", swap(`"reason":"",`, ""))
	bad("J-14", "an optional member that is empty", swap(`"reason":"",`, `"reason":"","repository":null,`))
	bad("J-15", "a number as text", swap(`"pull_request":0`, `"pull_request":"0"`))
	bad("J-15", "a number with a fraction", swap(`"pull_request":0`, `"pull_request":0.5`))
	bad("J-15", "null for a text", swap(`"reason":""`, `"reason":null`))
	bad("J-15", "a lone surrogate", swap(`"reason":""`, `"reason":"\ud800"`))
	bad("S-1", "of version 1", swap("decision/2", "decision/1"))
	bad("S-1 U-6", "of version 3", swap("decision/2", "decision/3"))
	bad("S-1", "of an unknown schema", swap("countersign/decision/2", "x"))
	whole := strings.Repeat("1", 40) // of the Policy
	for _, c := range [][3]string{
		{"without proposers", `"proposers":[{"id":"7","kind":"bot","login":"agent[bot]"}],`, ""}, {"proposers that are null", `[{"id":"7","kind":"bot","login":"agent[bot]"}]`, "null"}, {"without who asked", `"requested_by":[],`, ""}, {"who asked is null", `"requested_by":[]`, `"requested_by":null`},
		{"without its Policy", `"policy":{"commit":"` + whole + `","sha256":"sha256:` + strings.Repeat("ef", 32) + `"},`, ""}, {"a Policy without its hash", `,"sha256":"sha256:` + strings.Repeat("ef", 32) + `"}`, "}"}, {"a Policy with a member more", `{"commit":`, `{"by":"x","commit":`},
	} {
		bad("S-1 J-14", c[0], swap(c[1], c[2]))
	}
	bad("S-1", "who asked as texts", swap(`"requested_by":[]`, `"requested_by":["bob"]`))
	g.good("statement", "S-1 E-14", "a statement that names several", ask(changed(func(s *approval.SignedDecision) {
		s.Proposers = append(s.Proposers, ledger.Actor{Kind: "user", ID: "10", Login: "bob"}, ledger.Actor{Kind: "user", ID: "9", Login: "ada"})
		s.RequestedBy = []ledger.Requester{{Actor: ledger.Actor{Kind: "user", Login: "bob"}, Source: "flag"}, {Actor: ledger.Actor{Kind: "user", ID: "10", Login: "bob"}, Source: "actions.sender"}, {Actor: ledger.Actor{Kind: "user", ID: "10", Login: "bob"}, Source: "rpc"}}
	})), nil)
	g.good("statement", "S-1", "a statement with extra", ask(changed(func(s *approval.SignedDecision) { s.Extra = json.RawMessage(`{"weather":"rain"}`) })), nil)
	bad("J-13", "extra that is empty", swap(`"fingerprints"`, `"extra":{},"fingerprints"`))
	bad("U-6", "that needs a newer version", swap(`"policy"`, `"needs_version":"1.1","policy"`))
	for _, c := range []struct {
		requires, note string
		change         func(*approval.SignedDecision)
	}{
		{"S-1", "a pull request without its repository", func(s *approval.SignedDecision) { s.PullRequest = 1 }}, {"S-1", "a negative pull request", func(s *approval.SignedDecision) { s.PullRequest, s.Repository = -1, repository }}, {"S-1", "a repository without an id", func(s *approval.SignedDecision) { s.PullRequest, s.Repository = 1, &ledger.Repository{Name: "a/b"} }},
		{"S-1", "no transaction", func(s *approval.SignedDecision) { s.TransactionID = "" }}, {"S-1", "no base", func(s *approval.SignedDecision) { s.BaseCommit = "" }}, {"S-1", "another decision", func(s *approval.SignedDecision) { s.Decision = "Approve" }}, {"S-1", "an empty decision", func(s *approval.SignedDecision) { s.Decision = "" }},
		{"S-1 U-4", "a reason of two lines", func(s *approval.SignedDecision) { s.Reason = "a\nb" }}, {"S-1 U-4", "a reason with two spaces", func(s *approval.SignedDecision) { s.Reason = "a  b" }}, {"S-1 U-4", "a reason that ends in a space", func(s *approval.SignedDecision) { s.Reason = "a " }}, {"S-1 U-4", "a reason of 501 characters", func(s *approval.SignedDecision) { s.Reason = strings.Repeat("a", 501) }},
		{"S-1 U-3 U-4", "a reason with what is not visible", func(s *approval.SignedDecision) { s.Reason = "a\u200bb" }}, {"S-1 U-4", "a reason with U+FFFD", func(s *approval.SignedDecision) { s.Reason = "a\ufffdb" }}, {"S-1 U-3", "a reason with a blank of Braille", func(s *approval.SignedDecision) { s.Reason = "\u2800" }}, {"S-1 U-3", "a reason with an object character", func(s *approval.SignedDecision) { s.Reason = "\ufffc" }},
		{"S-1", "a time with an offset", func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05T12:00:00+00:00" }}, {"S-1", "a time with fractions", func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05T12:00:00.0Z" }}, {"S-1", "a time that does not exist", func(s *approval.SignedDecision) { s.DecidedAt = "2026-02-30T12:00:00Z" }}, {"S-1", "a leap second", func(s *approval.SignedDecision) { s.DecidedAt = "2016-12-31T23:59:60Z" }}, {"S-1", "no time", func(s *approval.SignedDecision) { s.DecidedAt = "" }}, {"S-1", "a time in small letters", func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05t12:00:00z" }},
		{"S-1", "nothing that was shown", func(s *approval.SignedDecision) { s.Shown = "" }}, {"S-1", "a hash in upper case", func(s *approval.SignedDecision) { s.Shown = "sha256:" + strings.Repeat("CD", 32) }},
		{"S-1", "nobody who proposed it", func(s *approval.SignedDecision) { s.Proposers = []ledger.Actor{} }}, {"S-1", "a proposer without an id", func(s *approval.SignedDecision) { s.Proposers[0].ID = "" }}, {"S-1", "a proposer without a kind", func(s *approval.SignedDecision) { s.Proposers[0].Kind = "" }}, {"S-1", "a proposer twice", func(s *approval.SignedDecision) { s.Proposers = append(s.Proposers, s.Proposers[0]) }},
		{"S-1", "proposers out of order", func(s *approval.SignedDecision) {
			s.Proposers = []ledger.Actor{{Kind: "user", ID: "9", Login: "ada"}, {Kind: "user", ID: "10", Login: "bob"}}
		}},
		{"S-1 E-14", "who asked, by an unknown source", func(s *approval.SignedDecision) {
			s.RequestedBy = []ledger.Requester{{Actor: ledger.Actor{Kind: "user", Login: "bob"}, Source: "mail"}}
		}}, {"S-1 E-14", "who asked, without a name", func(s *approval.SignedDecision) {
			s.RequestedBy = []ledger.Requester{{Actor: ledger.Actor{Kind: "user"}, Source: "flag"}}
		}}, {"S-1 E-14", "who asked, out of order", func(s *approval.SignedDecision) {
			s.RequestedBy = []ledger.Requester{{Actor: ledger.Actor{Kind: "user", Login: "bob"}, Source: "rpc"}, {Actor: ledger.Actor{Kind: "user", Login: "bob"}, Source: "flag"}}
		}},
		{"S-1", "a Policy without a commit", func(s *approval.SignedDecision) { s.Policy.Commit = "" }}, {"S-1", "a Policy whose hash is none", func(s *approval.SignedDecision) { s.Policy.SHA256 = strings.Repeat("ef", 32) }},
		{"S-2", "no fingerprint", func(s *approval.SignedDecision) { s.Fingerprints = []string{} }}, {"S-2", "a fingerprint twice", func(s *approval.SignedDecision) { s.Fingerprints = append(s.Fingerprints, s.Fingerprints[0]) }}, {"S-2", "fingerprints out of order", func(s *approval.SignedDecision) { s.Fingerprints = []string{"secret:patchset:" + id, "patchset:" + id} }},
		{"S-2 P-41", "a fingerprint that is short", func(s *approval.SignedDecision) { s.Fingerprints = []string{"patchset:" + id[1:]} }}, {"S-2 P-41", "a fingerprint of another kind", func(s *approval.SignedDecision) { s.Fingerprints = []string{"other:patchset:" + id} }}, {"S-2", "fingerprints of two patches", func(s *approval.SignedDecision) {
			s.Fingerprints = []string{"patchset:" + id, "patchset:" + strings.Repeat("cd", 32)}
		}},
		{"S-2", "glass that is broken without a reason", func(s *approval.SignedDecision) { s.Decision = approval.BreakGlass }}, {"S-2", "glass that is broken for a secret", func(s *approval.SignedDecision) {
			s.Decision, s.Reason, s.Fingerprints = approval.BreakGlass, "x", []string{"secret:patchset:" + id}
		}},
		{"S-2", "glass that is broken for two", func(s *approval.SignedDecision) {
			s.Decision, s.Reason, s.Fingerprints = approval.BreakGlass, "x", []string{"patchset:" + id, "secret:patchset:" + id}
		}},
	} {
		bad(c.requires, c.note, changed(c.change))
	}
}

func decisions(g *generator) {
	g.in("decision")
	key, other := teststand.Ed25519(1), teststand.Ed25519(2)
	hardware := teststand.SecurityKey("sk-ed25519", teststand.Touched)
	verified := teststand.SecurityKey("sk-ed25519", teststand.Touched|teststand.Verified)
	s := statement()
	ask := func(by teststand.Signer, line, principal, at string, more m) m {
		return merge(m{"statement": Bytes(s.Bytes()), "signature": Bytes(by.Signs(s).Armored), "line": line, "principal": principal, "recorded_at": at}, more).(m)
	}
	const noon, twin = "2026-01-05T12:00:01Z", "a decision"
	g.good("decision", "S-3 S-26 S-27 S-46", twin, ask(key, "ada@example.org "+key.Public, "ada@example.org", noon, nil), m{"key_fingerprint": key.Fingerprint()})
	for _, c := range []struct{ requires, note, line, principal, at string }{
		{"S-45", "a pattern that matches", "*@example.org " + key.Public, "ada@example.org", noon}, {"S-45", "a pattern with a question mark", "github:ad? " + key.Public, "github:ada", noon}, {"S-46", "the namespace is allowed", `ada namespaces="git,countersign-decision@*" ` + key.Public, "ada", noon},
		{"S-46", "from the very second", `ada valid-after="20260105120000Z" ` + key.Public, "ada", noon}, {"S-46", "to the very second", `ada valid-before="20260105120001Z" ` + key.Public, "ada", noon}, {"S-55 S-46", "a key that was retired later", `ada valid-before="20260106Z" ` + key.Public, "ada", noon},
		{"S-46", "to the very second, in whole seconds", `ada valid-before="20260105120001Z" ` + key.Public, "ada", "2026-01-05T12:00:01.999Z"},
	} {
		g.good("decision", c.requires, "decision: "+c.note, ask(key, c.line, c.principal, c.at, nil), nil)
	}
	for _, c := range []struct{ requires, note, line, principal, at string }{
		{"S-26", "another name", "bea@example.org " + key.Public, "ada@example.org", noon}, {"S-45", "a name in another case", "Ada@example.org " + key.Public, "ada@example.org", noon}, {"S-26", "another key", "ada@example.org " + other.Public, "ada@example.org", noon}, {"S-45", "a name that is negated", "*,!ada@example.org " + key.Public, "ada@example.org", noon},
		{"S-26", "a name that is negated in another case", "*,!ADA@example.org " + key.Public, "ada@example.org", noon}, {"S-46", "a namespace that is not allowed", `ada namespaces="git" ` + key.Public, "ada", noon}, {"S-46", "a namespace that is negated", `ada namespaces="*,!countersign-*" ` + key.Public, "ada", noon},
		{"S-46 S-27", "not valid yet when it was decided", `ada valid-after="20260105120001Z" ` + key.Public, "ada", noon}, {"S-46 S-27", "not valid any more when it was recorded", `ada valid-before="20260105120000Z" ` + key.Public, "ada", noon}, {"S-40", "a line that is unreadable", `ada verify-required ` + key.Public, "ada", noon},
	} {
		g.bad("decision", c.requires, "decision: "+c.note, twin, ask(key, c.line, c.principal, c.at, nil))
	}
	g.bad("decision", "S-21", "decision: signed by somebody else", twin, merge(ask(key, "ada "+key.Public, "ada", noon, nil), m{"signature": Bytes(other.Signs(s).Armored)}).(m))
	g.bad("decision", "S-3", "decision: signed for git", twin, merge(ask(key, "ada "+key.Public, "ada", noon, nil), m{"signature": Bytes(key.Sign("git", s.Bytes()))}).(m))
	g.bad("decision", "S-3", "decision: signed in the namespace of version 1", twin, merge(ask(key, "ada "+key.Public, "ada", noon, nil), m{"signature": Bytes(key.Sign("countersign-decision@v1", s.Bytes()))}).(m))
	g.bad("decision", "S-3", "decision: signed without the LF", twin, merge(ask(key, "ada "+key.Public, "ada", noon, nil), m{"signature": Bytes(key.Sign(approval.Namespace, bytes.TrimSuffix(s.Bytes(), []byte("\n"))))}).(m))
	g.good("decision", "S-29", "decision: a security key that was touched", ask(hardware, "ada "+hardware.Public, "ada", noon, m{"hardware": true}), nil)
	g.good("decision", "S-29", "decision: a security key that verified the person", ask(verified, "ada "+verified.Public, "ada", noon, m{"pin": true}), nil)
	g.bad("decision", "S-29", "decision: software where hardware is asked", "decision: a security key that was touched", ask(key, "ada "+key.Public, "ada", noon, m{"hardware": true}))
	g.bad("decision", "S-29", "decision: software where a PIN is asked", "decision: a security key that verified the person", ask(key, "ada "+key.Public, "ada", noon, m{"pin": true}))
	g.bad("decision", "S-29", "decision: touched alone where a PIN is asked", "decision: a security key that verified the person", ask(hardware, "ada "+hardware.Public, "ada", noon, m{"pin": true}))
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
