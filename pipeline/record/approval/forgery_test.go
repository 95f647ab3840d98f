package approval_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

var decidedAt = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// keygen makes a key with the real ssh-keygen, which then signs with it.
func keygen(t *testing.T, name string, options ...string) teststand.Signer {
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
	fatal(t, err)
	return teststand.Signer{Name: name, Public: strings.TrimSpace(string(public)), Sign: func(namespace string, message []byte) string {
		return run(message, "-q", "-Y", "sign", "-n", namespace, "-f", key)
	}}
}

type random struct{ *rand.ChaCha8 }

func subject() approval.Subject {
	s := statement()
	return approval.Subject{Repository: s.Repository, PullRequest: s.PullRequest, TransactionID: s.TransactionID, BaseCommit: s.BaseCommit, PatchID: hex64, Shown: s.Shown, Proposers: s.Proposers, RequestedBy: s.RequestedBy, Policies: []ledger.PolicyRef{s.Policy}, Began: decidedAt.Add(-time.Hour)}
}

// commentOf is one that somebody made when it was decided.
func commentOf(login string) ledger.Source {
	return ledger.Source{Kind: "issue_comment", Author: ledger.Actor{Login: login}, CreatedAt: decidedAt.Format(time.RFC3339)}
}

func keys(t *testing.T, lines string) approval.Keys {
	t.Helper()
	allowed, err := sshsig.ParseAllowedSigners([]byte(lines))
	if err != nil {
		t.Fatalf("%v\n%s", err, lines)
	}
	return approval.Keys{Allowed: allowed}
}

// T73 No signature counts that is not this person's, for this decision on this
// change. Every signer's own statement is taken, and none of its forgeries.
func TestT73Forgeries(t *testing.T) {
	signers := []teststand.Signer{
		keygen(t, "ed25519", "-t", "ed25519"), keygen(t, "ecdsa256", "-t", "ecdsa", "-b", "256"), keygen(t, "ecdsa521", "-t", "ecdsa", "-b", "521"),
		keygen(t, "rsa", "-t", "rsa", "-b", "2048"), teststand.SecurityKey("sk-ed25519", 1), teststand.SecurityKey("sk-ecdsa", 5),
	}
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		signers = []teststand.Signer{signers[0], signers[5]}
	}
	other := keygen(t, "another", "-t", "ed25519")
	tried := 0
	refuse := func(what string, s approval.Signature, about approval.Subject, k approval.Keys, at time.Time, by ...string) {
		t.Helper()
		tried++
		if proof, err := approval.Verify(s, about, k, commentOf(append(by, "ada")[0]), at); err == nil {
			t.Errorf("%s: taken: %+v", what, proof)
		} else if (proof != sshsig.Proof{}) {
			t.Errorf("%s: refused, and yet %+v", what, proof)
		}
	}
	hex2 := strings.Repeat("cd", 32)
	changes := map[string]func(*approval.SignedDecision){
		"repository": func(s *approval.SignedDecision) { s.Repository = &ledger.Repository{ID: "7", Name: s.Repository.Name} },
		"its old name": func(s *approval.SignedDecision) {
			s.Repository = &ledger.Repository{ID: s.Repository.ID, Name: "mallory/toy"}
		},
		"long before":   func(s *approval.SignedDecision) { s.DecidedAt = "2025-12-30T12:00:00Z" },
		"no repository": func(s *approval.SignedDecision) { s.Repository, s.PullRequest = nil, 0 },
		"pull request":  func(s *approval.SignedDecision) { s.PullRequest = 13 },
		"transaction":   func(s *approval.SignedDecision) { s.TransactionID = "tx_01M8222YH05GYQ3VTTQ7FD5C6Y" },
		"base":          func(s *approval.SignedDecision) { s.BaseCommit = strings.Repeat("d", 40) },
		"patch":         func(s *approval.SignedDecision) { s.Fingerprints = []string{"patchset:" + hex2} },
		"one of another": func(s *approval.SignedDecision) {
			s.Fingerprints = []string{"patchset:" + hex64, "secret:patchset:" + hex2}
		},
		"unknown kind": func(s *approval.SignedDecision) { s.Fingerprints = []string{"other:patchset:" + hex64} },
		"shown":        func(s *approval.SignedDecision) { s.Shown = "sha256:" + hex2 },
		"later":        func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05T12:06:00Z" },
		"schema":       func(s *approval.SignedDecision) { s.Schema = "countersign/decision/1" },

		"proposer":        func(s *approval.SignedDecision) { s.Proposers[0].ID = "666" },
		"proposer's name": func(s *approval.SignedDecision) { s.Proposers[0].Login = "dependabot[bot]" },
		"proposer's kind": func(s *approval.SignedDecision) { s.Proposers[1].Kind = "bot" },
		"proposer less":   func(s *approval.SignedDecision) { s.Proposers = s.Proposers[1:] },
		"proposer more": func(s *approval.SignedDecision) {
			s.Proposers = append(s.Proposers, ledger.Actor{Kind: "user", ID: "666", Login: "eve"})
		},
		"no proposer":        func(s *approval.SignedDecision) { s.Proposers = nil },
		"requester":          func(s *approval.SignedDecision) { s.RequestedBy[0].Actor.ID = "666" },
		"requester's name":   func(s *approval.SignedDecision) { s.RequestedBy[0].Actor.Login = "eve" },
		"requester's source": func(s *approval.SignedDecision) { s.RequestedBy[0].Source = ledger.AskedByFlag },
		"requester less":     func(s *approval.SignedDecision) { s.RequestedBy = []ledger.Requester{} },
		"requester more": func(s *approval.SignedDecision) {
			s.RequestedBy = append(s.RequestedBy, input.Named("eve", ledger.AskedByFlag))
		},
		"no requesters":      func(s *approval.SignedDecision) { s.RequestedBy = nil },
		"Policy":             func(s *approval.SignedDecision) { s.Policy.SHA256 = "sha256:" + hex2 },
		"Policy's commit":    func(s *approval.SignedDecision) { s.Policy.Commit = strings.Repeat("d", 40) },
		"no Policy's commit": func(s *approval.SignedDecision) { s.Policy.Commit = "" },
		"no Policy's hash":   func(s *approval.SignedDecision) { s.Policy.SHA256 = "" },
	}
	after := map[string]func(*approval.SignedDecision){ // and none of these is the same without a new signature
		"decision":   func(s *approval.SignedDecision) { s.Decision = ledger.Deny },
		"reason":     func(s *approval.SignedDecision) { s.Reason = "" },
		"less":       func(s *approval.SignedDecision) { s.Fingerprints = s.Fingerprints[:1] },
		"other kind": func(s *approval.SignedDecision) { s.Fingerprints = []string{"protected:patchset:" + hex64} },
		"time":       func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05T11:59:59Z" },
		"new name": func(s *approval.SignedDecision) {
			s.Repository = &ledger.Repository{ID: s.Repository.ID, Name: "acme/other"}
		},
	}
	for _, by := range signers {
		list := keys(t, `ada,ada@example.org namespaces="countersign-decision@v2" `+by.Public)
		good := approval.Signature{Statement: statement(), Armored: by.Sign(approval.Namespace, statement().Bytes())}
		proof, err := approval.Verify(good, subject(), list, commentOf("ada"), decidedAt)
		if err != nil || proof.Hardware != strings.HasPrefix(by.Name, "sk-") || proof.Verified != (by.Name == "sk-ecdsa") {
			t.Errorf("%s: %+v, %v", by.Name, proof, err)
		}
		if back, err := approval.ParseSignature(good.String()); err != nil || back.Armored != good.Armored {
			t.Errorf("%s: on one line: %v", by.Name, err)
		}
		verifyWithKeygen(t, by, good)

		for what, change := range changes {
			s := statement()
			change(&s)
			refuse(by.Name+", signed for another "+what, approval.Signature{Statement: s, Armored: by.Sign(approval.Namespace, s.Bytes())}, subject(), list, decidedAt)
		}
		for _, table := range []map[string]func(*approval.SignedDecision){changes, after} {
			for what, change := range table {
				s := statement()
				change(&s)
				refuse(by.Name+", changed after it was signed: "+what, approval.Signature{Statement: s, Armored: good.Armored}, subject(), list, decidedAt)
			}
		}
		for _, namespace := range []string{"git", "file", "countersign-decision@v1", "countersign-decision", "*"} {
			refuse(by.Name+", namespace "+namespace, approval.Signature{Statement: statement(), Armored: by.Sign(namespace, statement().Bytes())}, subject(), list, decidedAt)
		}
		for _, line := range []string{
			"ada " + other.Public, "eve " + by.Public, "!ada,* " + by.Public, `ada namespaces="git" ` + by.Public, `ada namespaces="!countersign-decision@v2,*" ` + by.Public,
			`ada valid-before="20260105115959Z" ` + by.Public, `ada valid-after="20260105120001Z" ` + by.Public, "# ada " + by.Public, "",
		} {
			refuse(by.Name+", listed as "+line, good, subject(), keys(t, line), decidedAt)
		}
		revoked := keys(t, `ada valid-before="20260106Z" `+by.Public)
		refuse(by.Name+", recorded after the key was revoked", good, subject(), revoked, decidedAt.AddDate(0, 0, 2))
		if _, err := approval.Verify(good, subject(), revoked, commentOf("ada"), decidedAt); err != nil {
			t.Errorf("%s, recorded before its key was revoked: %v", by.Name, err)
		}
		for _, name := range []string{"eve", "", "ADA", "ada ", "ada,eve", "*"} {
			refuse(by.Name+", by "+name, good, subject(), list, decidedAt, name)
		}
		refuse(by.Name+", before it was made", good, subject(), list, decidedAt.Add(-time.Hour))
		for _, posted := range []string{"2026-01-07T12:00:00Z", "", "now"} {
			from := commentOf("ada")
			from.CreatedAt = posted
			if _, err := approval.Verify(good, subject(), revoked, from, decidedAt); err == nil {
				t.Errorf("%s: taken although it was posted at %q", by.Name, posted)
			}
		}
		refuse(by.Name+", by ada whom the list leaves out in another case", good, subject(), keys(t, "!ADA,* "+by.Public), decidedAt)
		for what, change := range map[string]func(*approval.Subject){
			"transaction": func(s *approval.Subject) { s.TransactionID = "" }, "base": func(s *approval.Subject) { s.BaseCommit = "" },
			"patch": func(s *approval.Subject) { s.PatchID = "" }, "shown": func(s *approval.Subject) { s.Shown = "" },
			"repository": func(s *approval.Subject) { s.Repository = nil }, "pull request": func(s *approval.Subject) { s.PullRequest = 0 },
			"beginning": func(s *approval.Subject) { s.Began = time.Time{} }, "proposers": func(s *approval.Subject) { s.Proposers = nil },
			"requesters": func(s *approval.Subject) { s.RequestedBy = nil }, "Policy": func(s *approval.Subject) { s.Policies = nil },
			"named Policy": func(s *approval.Subject) { s.Policies = []ledger.PolicyRef{{}} },
		} {
			about := subject()
			change(&about)
			refuse(by.Name+", with no "+what+" to compare", good, about, list, decidedAt)
		}
		for n := range 6 { // of any part
			blob, err := base64.StdEncoding.DecodeString(strings.NewReplacer("-----BEGIN SSH SIGNATURE-----", "", "-----END SSH SIGNATURE-----", "", "\n", "").Replace(good.Armored))
			fatal(t, err)
			blob[len(blob)*n/6] ^= 1 << n
			doc := good
			doc.Armored = "-----BEGIN SSH SIGNATURE-----\n" + wrap70(base64.StdEncoding.EncodeToString(blob)) + "-----END SSH SIGNATURE-----\n"
			refuse(fmt.Sprint(by.Name, ", bit ", n), doc, subject(), list, decidedAt)
		}
		for what, text := range map[string]string{
			"nothing": "", "no end": strings.TrimSuffix(good.Armored, "-----END SSH SIGNATURE-----\n"), "a blank line": good.Armored + "\n", "CRLF": strings.ReplaceAll(good.Armored, "\n", "\r\n"),
		} {
			doc := good
			doc.Armored = text
			refuse(by.Name+", "+what, doc, subject(), list, decidedAt)
		}
		if !proof.Hardware {
			demanding := list
			demanding.Hardware = true
			refuse(by.Name+", where hardware is asked for", good, subject(), demanding, decidedAt)
		}
		if !proof.Verified {
			demanding := list
			demanding.PIN = true
			refuse(by.Name+", where a PIN is asked for", good, subject(), demanding, decidedAt)
		}
		stolen := approval.Signature{Statement: statement(), Armored: other.Sign(approval.Namespace, statement().Bytes())}
		refuse(by.Name+", by another key", stolen, subject(), list, decidedAt)
	}
	// Ways in which a key may not sign.
	for _, flags := range []byte{0, 4} {
		untouched := teststand.SecurityKey("sk-ed25519", flags)
		refuse("a key that was not touched", approval.Signature{Statement: statement(), Armored: untouched.Sign(approval.Namespace, statement().Bytes())}, subject(), keys(t, "ada "+untouched.Public), decidedAt)
	}
	sha1 := rsaWithSHA1(t)
	refuse("RSA with SHA-1", approval.Signature{Statement: statement(), Armored: sha1.Sign(approval.Namespace, statement().Bytes())}, subject(), keys(t, "ada "+sha1.Public), decidedAt)
	cert := certificate(t)
	refuse("a certificate", approval.Signature{Statement: statement(), Armored: cert.Sign(approval.Namespace, statement().Bytes())}, subject(), keys(t, "ada "+cert.Public), decidedAt)

	if least := 70 * len(signers); tried < least {
		t.Errorf("%d forgeries, want %d", tried, least)
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
func verifyWithKeygen(t *testing.T, by teststand.Signer, s approval.Signature) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"allowed": "ada " + by.Public + "\n", "sig": s.Armored} {
		fatal(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cmd := exec.Command("ssh-keygen", "-Y", "verify", "-n", approval.Namespace, "-f", filepath.Join(dir, "allowed"), "-I", "ada", "-s", filepath.Join(dir, "sig"))
	cmd.Stdin = bytes.NewReader(s.Statement.Bytes())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: ssh-keygen: %v: %s", by.Name, err, out)
	}
}

// rsaWithSHA1 signs as ssh-rsa of old does.
func rsaWithSHA1(t *testing.T) teststand.Signer {
	t.Helper()
	private, err := rsa.GenerateKey(random{rand.NewChaCha8([32]byte{2})}, 2048)
	fatal(t, err)
	key, err := ssh.NewSignerFromKey(private)
	fatal(t, err)
	public := key.PublicKey()
	return teststand.Signer{Name: "ssh-rsa", Public: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public))), Sign: func(namespace string, message []byte) string {
		return teststand.Envelope(public.Marshal(), namespace, func(toSign []byte) []byte {
			made, err := key.(ssh.AlgorithmSigner).SignWithAlgorithm(random{rand.NewChaCha8([32]byte{3})}, toSign, ssh.KeyAlgoRSA)
			fatal(t, err)
			return ssh.Marshal(made)
		}, message)
	}}
}

// certificate signs with a key, and names a certificate of it in its place.
func certificate(t *testing.T) teststand.Signer {
	t.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
	key, err := ssh.NewSignerFromKey(private)
	fatal(t, err)
	cert := &ssh.Certificate{Key: key.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"ada"}, ValidBefore: ssh.CertTimeInfinity}
	fatal(t, cert.SignCert(random{rand.NewChaCha8([32]byte{4})}, key))
	return teststand.Signer{Name: "certificate", Public: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))), Sign: func(namespace string, message []byte) string {
		return teststand.Envelope(cert.Marshal(), namespace, func(toSign []byte) []byte {
			made, err := key.Sign(random{rand.NewChaCha8([32]byte{5})}, toSign)
			fatal(t, err)
			return ssh.Marshal(made)
		}, message)
	}}
}
