package conformance

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
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
		teststand.Fatal(g.t, err)
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
		teststand.Fatal(g.t, err)
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
		teststand.Fatal(g.t, ssh.Unmarshal(blob, &e))
		teststand.Fatal(g.t, ssh.Unmarshal(e.Signature, &sig))
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
		teststand.Fatal(g.t, ssh.Unmarshal(sig.Blob, &rs))
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

// statement is one that vectors change.
func statement() approval.SignedDecision {
	id := strings.Repeat("ab", 32)
	return approval.SignedDecision{
		Schema: approval.DecisionSchema, PullRequest: 0, TransactionID: "tx_01KE5PJ800AAAAAAAAAAAAAAAA", BaseCommit: strings.Repeat("1", 40), Decision: ledger.Approve,
		Fingerprints: []string{"patchset:" + id}, Reason: "", DecidedAt: "2026-01-05T12:00:00Z", Shown: "sha256:" + strings.Repeat("cd", 32),
		Proposers: []ledger.Actor{{Kind: "bot", ID: "7", Login: "agent[bot]"}}, RequestedBy: []ledger.Requester{}, Policy: ledger.PolicyRef{Commit: strings.Repeat("1", 40), SHA256: "sha256:" + strings.Repeat("ef", 32)},
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
