package signed_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/signed"
	"github.com/countersign-dev/countersign/pipeline/sshsig"
)

// A signer signs as one program or device does.
type signer struct {
	name, public string // as in a .pub file
	sign         func(namespace string, message []byte) string
}

var decidedAt = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// keygen makes a key with the real ssh-keygen, which then signs with it.
func keygen(t *testing.T, name string, options ...string) signer {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	key := filepath.Join(t.TempDir(), name)
	run := func(stdin []byte, args ...string) string {
		cmd := exec.Command("ssh-keygen", args...)
		cmd.Stdin = bytes.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("ssh-keygen %v: %v", args, err)
		}
		return string(out)
	}
	run(nil, append([]string{"-q", "-N", "", "-C", "", "-f", key}, options...)...)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return signer{name, strings.TrimSpace(string(public)), func(namespace string, message []byte) string {
		return run(message, "-q", "-Y", "sign", "-n", namespace, "-f", key)
	}}
}

// envelope is PROTOCOL.sshsig's, around a signature.
func envelope(public []byte, namespace string, sign func(signed []byte) []byte, message []byte) string {
	sum := sha512.Sum512(message)
	toSign := ssh.Marshal(struct {
		Magic                     [6]byte
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{[6]byte([]byte("SSHSIG")), namespace, "", "sha512", sum[:]})
	blob := ssh.Marshal(struct {
		Magic                     [6]byte
		Version                   uint32
		PublicKey                 []byte
		Namespace, Reserved, Hash string
		Signature                 []byte
	}{[6]byte([]byte("SSHSIG")), 1, public, namespace, "", "sha512", sign(toSign)})
	text := base64.StdEncoding.EncodeToString(blob)
	var b strings.Builder
	b.WriteString("-----BEGIN SSH SIGNATURE-----\n")
	for line := range slices.Chunk([]byte(text), 70) {
		b.Write(append(line, '\n'))
	}
	return b.String() + "-----END SSH SIGNATURE-----\n"
}

// securityKey signs as a FIDO key does (OpenSSH's PROTOCOL.u2f), with these flags.
func securityKey(name string, flags byte) signer {
	app := sha256.Sum256([]byte("ssh:"))
	over := func(toSign []byte) []byte {
		text := sha256.Sum256(toSign)
		return slices.Concat(app[:], []byte{flags, 0, 0, 0, 9}, text[:])
	}
	var public []byte
	var sign func([]byte) []byte
	kind := ssh.KeyAlgoSKED25519
	if strings.HasPrefix(name, "sk-ecdsa") {
		kind = ssh.KeyAlgoSKECDSA256
		private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{7}, 32))
		if err != nil {
			panic(err)
		}
		point, err := private.PublicKey.Bytes()
		if err != nil {
			panic(err)
		}
		public = ssh.Marshal(struct{ Type, Curve, Point, Application string }{kind, "nistp256", string(point), "ssh:"})
		sign = func(b []byte) []byte {
			sum := sha256.Sum256(b)
			r, s, err := ecdsa.Sign(random{rand.NewChaCha8([32]byte{1})}, private, sum[:])
			if err != nil {
				panic(err)
			}
			return ssh.Marshal(struct{ R, S *big.Int }{r, s})
		}
	} else {
		private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
		public = ssh.Marshal(struct{ Type, Key, Application string }{kind, string(private.Public().(ed25519.PublicKey)), "ssh:"})
		sign = func(b []byte) []byte { return ed25519.Sign(private, b) }
	}
	return signer{name, kind + " " + base64.StdEncoding.EncodeToString(public), func(namespace string, message []byte) string {
		return envelope(public, namespace, func(toSign []byte) []byte {
			return ssh.Marshal(ssh.Signature{Format: kind, Blob: sign(over(toSign)), Rest: []byte{flags, 0, 0, 0, 9}})
		}, message)
	}}
}

type random struct{ *rand.ChaCha8 }

func subject() signed.Subject {
	s := statement()
	return signed.Subject{Repository: s.Repository, PullRequest: s.PullRequest, TransactionID: s.TransactionID, BaseCommit: s.BaseCommit, PatchID: hex64, Shown: s.Shown}
}

func keys(t *testing.T, lines string) signed.Keys {
	t.Helper()
	allowed, err := sshsig.ParseAllowedSigners([]byte(lines))
	if err != nil {
		t.Fatalf("%v\n%s", err, lines)
	}
	return signed.Keys{Allowed: allowed}
}

// T73 No signature counts that is not this person's, for this decision on this
// change. Every signer's own statement is taken, and none of its forgeries.
func TestT73Forgeries(t *testing.T) {
	signers := []signer{
		keygen(t, "ed25519", "-t", "ed25519"), keygen(t, "ecdsa256", "-t", "ecdsa", "-b", "256"), keygen(t, "ecdsa521", "-t", "ecdsa", "-b", "521"),
		keygen(t, "rsa", "-t", "rsa", "-b", "2048"), securityKey("sk-ed25519", 1), securityKey("sk-ecdsa", 5),
	}
	other := keygen(t, "another", "-t", "ed25519")
	tried := 0
	refuse := func(what string, s signed.Signature, about signed.Subject, k signed.Keys, at time.Time, names ...string) {
		t.Helper()
		tried++
		if len(names) == 0 {
			names = []string{"ada"}
		}
		if proof, err := signed.Verify(s, about, k, names, at); err == nil {
			t.Errorf("%s: taken: %+v", what, proof)
		} else if (proof != sshsig.Proof{}) {
			t.Errorf("%s: refused, and yet %+v", what, proof)
		}
	}
	hex2 := strings.Repeat("cd", 32)
	changes := map[string]func(*signed.Statement){
		"repository":     func(s *signed.Statement) { s.Repository = &ledger.Repository{ID: "7", Name: s.Repository.Name} },
		"no repository":  func(s *signed.Statement) { s.Repository, s.PullRequest = nil, 0 },
		"pull request":   func(s *signed.Statement) { s.PullRequest = 13 },
		"transaction":    func(s *signed.Statement) { s.TransactionID = "tx_01M8222YH05GYQ3VTTQ7FD5C6Y" },
		"base":           func(s *signed.Statement) { s.BaseCommit = strings.Repeat("d", 40) },
		"patch":          func(s *signed.Statement) { s.Fingerprints = []string{"patchset:" + hex2} },
		"one of another": func(s *signed.Statement) { s.Fingerprints = []string{"patchset:" + hex64, "secret:patchset:" + hex2} },
		"unknown kind":   func(s *signed.Statement) { s.Fingerprints = []string{"other:patchset:" + hex64} },
		"shown":          func(s *signed.Statement) { s.Shown = "sha256:" + hex2 },
		"later":          func(s *signed.Statement) { s.DecidedAt = "2026-01-05T12:06:00Z" },
		"schema":         func(s *signed.Statement) { s.Schema = "countersign/decision/0" },
	}
	after := map[string]func(*signed.Statement){ // and none of these is the same without a new signature
		"decision":   func(s *signed.Statement) { s.Decision = ledger.Deny },
		"reason":     func(s *signed.Statement) { s.Reason = "" },
		"less":       func(s *signed.Statement) { s.Fingerprints = s.Fingerprints[:1] },
		"other kind": func(s *signed.Statement) { s.Fingerprints = []string{"protected:patchset:" + hex64} },
		"time":       func(s *signed.Statement) { s.DecidedAt = "2026-01-05T11:59:59Z" },
		"new name":   func(s *signed.Statement) { s.Repository = &ledger.Repository{ID: s.Repository.ID, Name: "acme/other"} },
	}
	for _, by := range signers {
		list := keys(t, `ada,ada@example.org namespaces="countersign-decision@v1" `+by.public)
		good := signed.Signature{Statement: statement(), Armored: by.sign(signed.Namespace, statement().Bytes())}
		proof, err := signed.Verify(good, subject(), list, []string{"ada"}, decidedAt)
		if err != nil || proof.Hardware != strings.HasPrefix(by.name, "sk-") || proof.Verified != (by.name == "sk-ecdsa") {
			t.Errorf("%s: %+v, %v", by.name, proof, err)
		}
		if back, err := signed.ParseSignature(good.String()); err != nil || back.Armored != good.Armored {
			t.Errorf("%s: on one line: %v", by.name, err)
		}
		verifyWithKeygen(t, by, good)

		for what, change := range changes {
			s := statement()
			change(&s)
			refuse(by.name+", signed for another "+what, signed.Signature{Statement: s, Armored: by.sign(signed.Namespace, s.Bytes())}, subject(), list, decidedAt)
		}
		for _, table := range []map[string]func(*signed.Statement){changes, after} {
			for what, change := range table {
				s := statement()
				change(&s)
				refuse(by.name+", changed after it was signed: "+what, signed.Signature{Statement: s, Armored: good.Armored}, subject(), list, decidedAt)
			}
		}
		for _, namespace := range []string{"git", "file", "countersign-decision@v2", "countersign-decision", "*"} {
			refuse(by.name+", namespace "+namespace, signed.Signature{Statement: statement(), Armored: by.sign(namespace, statement().Bytes())}, subject(), list, decidedAt)
		}
		for _, line := range []string{
			"ada " + other.public, "eve " + by.public, "!ada,* " + by.public, `ada namespaces="git" ` + by.public, `ada namespaces="!countersign-decision@v1,*" ` + by.public,
			`ada valid-before="20260105115959Z" ` + by.public, `ada valid-after="20260105120001Z" ` + by.public, "# ada " + by.public, "",
		} {
			refuse(by.name+", listed as "+line, good, subject(), keys(t, line), decidedAt)
		}
		revoked := keys(t, `ada valid-before="20260106Z" `+by.public)
		refuse(by.name+", recorded after the key was revoked", good, subject(), revoked, decidedAt.AddDate(0, 0, 2))
		if _, err := signed.Verify(good, subject(), revoked, []string{"ada"}, decidedAt); err != nil {
			t.Errorf("%s, recorded before its key was revoked: %v", by.name, err)
		}
		for _, name := range []string{"eve", "", "ADA", "ada ", "ada,eve", "*"} {
			refuse(by.name+", by "+name, good, subject(), list, decidedAt, name)
		}
		refuse(by.name+", before it was made", good, subject(), list, decidedAt.Add(-time.Hour))
		for what, change := range map[string]func(*signed.Subject){
			"transaction": func(s *signed.Subject) { s.TransactionID = "" }, "base": func(s *signed.Subject) { s.BaseCommit = "" },
			"patch": func(s *signed.Subject) { s.PatchID = "" }, "shown": func(s *signed.Subject) { s.Shown = "" },
			"repository": func(s *signed.Subject) { s.Repository = nil }, "pull request": func(s *signed.Subject) { s.PullRequest = 0 },
		} {
			about := subject()
			change(&about)
			refuse(by.name+", with no "+what+" to compare", good, about, list, decidedAt)
		}
		for n := range 6 { // of any part
			blob, err := base64.StdEncoding.DecodeString(strings.NewReplacer("-----BEGIN SSH SIGNATURE-----", "", "-----END SSH SIGNATURE-----", "", "\n", "").Replace(good.Armored))
			if err != nil {
				t.Fatal(err)
			}
			blob[len(blob)*n/6] ^= 1 << n
			doc := good
			doc.Armored = "-----BEGIN SSH SIGNATURE-----\n" + wrap70(base64.StdEncoding.EncodeToString(blob)) + "-----END SSH SIGNATURE-----\n"
			refuse(fmt.Sprint(by.name, ", bit ", n), doc, subject(), list, decidedAt)
		}
		for what, text := range map[string]string{
			"nothing": "", "no end": strings.TrimSuffix(good.Armored, "-----END SSH SIGNATURE-----\n"), "a blank line": good.Armored + "\n", "CRLF": strings.ReplaceAll(good.Armored, "\n", "\r\n"),
		} {
			doc := good
			doc.Armored = text
			refuse(by.name+", "+what, doc, subject(), list, decidedAt)
		}
		if !proof.Hardware {
			demanding := list
			demanding.Hardware = true
			refuse(by.name+", where hardware is asked for", good, subject(), demanding, decidedAt)
		}
		if !proof.Verified {
			demanding := list
			demanding.PIN = true
			refuse(by.name+", where a PIN is asked for", good, subject(), demanding, decidedAt)
		}
		stolen := signed.Signature{Statement: statement(), Armored: other.sign(signed.Namespace, statement().Bytes())}
		refuse(by.name+", by another key", stolen, subject(), list, decidedAt)
	}
	// Ways in which a key may not sign.
	for _, flags := range []byte{0, 4} {
		untouched := securityKey("sk-ed25519", flags)
		refuse("a key that was not touched", signed.Signature{Statement: statement(), Armored: untouched.sign(signed.Namespace, statement().Bytes())}, subject(), keys(t, "ada "+untouched.public), decidedAt)
	}
	sha1 := rsaWithSHA1(t)
	refuse("RSA with SHA-1", signed.Signature{Statement: statement(), Armored: sha1.sign(signed.Namespace, statement().Bytes())}, subject(), keys(t, "ada "+sha1.public), decidedAt)
	cert := certificate(t)
	refuse("a certificate", signed.Signature{Statement: statement(), Armored: cert.sign(signed.Namespace, statement().Bytes())}, subject(), keys(t, "ada "+cert.public), decidedAt)

	if tried < 200 {
		t.Errorf("%d forgeries, want 200", tried)
	}
	t.Logf("%d forgeries, none taken", tried)
}

func wrap70(text string) string {
	var b strings.Builder
	for line := range slices.Chunk([]byte(text), 70) {
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// verifyWithKeygen: what we take, `ssh-keygen -Y verify` takes as well.
func verifyWithKeygen(t *testing.T, by signer, s signed.Signature) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"allowed": "ada " + by.public + "\n", "sig": s.Armored} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("ssh-keygen", "-Y", "verify", "-n", signed.Namespace, "-f", filepath.Join(dir, "allowed"), "-I", "ada", "-s", filepath.Join(dir, "sig"))
	cmd.Stdin = bytes.NewReader(s.Statement.Bytes())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: ssh-keygen: %v: %s", by.name, err, out)
	}
}

// rsaWithSHA1 signs as ssh-rsa of old does.
func rsaWithSHA1(t *testing.T) signer {
	t.Helper()
	private, err := rsa.GenerateKey(random{rand.NewChaCha8([32]byte{2})}, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	public := key.PublicKey()
	return signer{"ssh-rsa", strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public))), func(namespace string, message []byte) string {
		return envelope(public.Marshal(), namespace, func(toSign []byte) []byte {
			made, err := key.(ssh.AlgorithmSigner).SignWithAlgorithm(random{rand.NewChaCha8([32]byte{3})}, toSign, ssh.KeyAlgoRSA)
			if err != nil {
				t.Fatal(err)
			}
			return ssh.Marshal(made)
		}, message)
	}}
}

// certificate signs with a key, and names a certificate of it in its place.
func certificate(t *testing.T) signer {
	t.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert := &ssh.Certificate{Key: key.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"ada"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(random{rand.NewChaCha8([32]byte{4})}, key); err != nil {
		t.Fatal(err)
	}
	return signer{"certificate", strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))), func(namespace string, message []byte) string {
		return envelope(cert.Marshal(), namespace, func(toSign []byte) []byte {
			made, err := key.Sign(random{rand.NewChaCha8([32]byte{5})}, toSign)
			if err != nil {
				t.Fatal(err)
			}
			return ssh.Marshal(made)
		}, message)
	}}
}
