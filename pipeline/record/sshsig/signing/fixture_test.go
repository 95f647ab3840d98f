package signing

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

var update = flag.Bool("update", false, "record anew what ssh-keygen and git sign with the keys of testdata")

// message is what ssh-keygen signed in the fixtures.
const message = "A message.\nOf two lines, and without a newline after them."

// at is when git's commits in the fixtures and tests were made.
var at = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// A fixture is a key, with what the real tools signed with it.
type fixture struct {
	name, file string
	archive    *txtar.Archive
}

var fixtureNames = []string{"ed25519", "ecdsa-256", "ecdsa-384", "ecdsa-521", "rsa-2048", "rsa-3072"}

func fixtures(t testing.TB) []fixture {
	t.Helper()
	var all []fixture
	for _, name := range fixtureNames {
		all = append(all, load(t, name))
	}
	return all
}

// some are one of each kind of key, and all with COUNTERSIGN_LONG: ssh-keygen and git are asked about each.
func some(t testing.TB) []fixture {
	all := fixtures(t)
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		all = []fixture{all[0], all[1], all[4]}
	}
	return all
}

func load(t testing.TB, name string) fixture {
	t.Helper()
	file := filepath.Join("..", "testdata", name+".txtar")
	archive, err := txtar.ParseFile(file)
	fatal(t, err)
	return fixture{name, file, archive}
}

func (f fixture) section(t testing.TB, name string) string {
	t.Helper()
	for _, section := range f.archive.Files {
		if section.Name == name {
			return string(section.Data)
		}
	}
	t.Fatalf("%s has no %q", f.file, name)
	return ""
}

func (f fixture) record(t testing.TB, name, data string) {
	t.Helper()
	for i, section := range f.archive.Files {
		if section.Name == name {
			f.archive.Files = append(f.archive.Files[:i], f.archive.Files[i+1:]...)
			break
		}
	}
	f.archive.Files = append(f.archive.Files, txtar.File{Name: name, Data: []byte(data)})
	fatal(t, os.WriteFile(f.file, txtar.Format(f.archive), 0o666))
}

func (f fixture) signer(t testing.TB) Signer {
	t.Helper()
	s, err := ParseKey([]byte(f.section(t, "key")))
	if err != nil {
		t.Fatalf("%s: %v", f.name, err)
	}
	return s
}

// allowed is a list of the fixture's key alone.
func (f fixture) allowed(t testing.TB) sshsig.Allowed {
	t.Helper()
	return allow(t, "a@example.org "+f.section(t, "key.pub"))
}

func allow(t testing.TB, list string) sshsig.Allowed {
	t.Helper()
	a, err := sshsig.ParseAllowedSigners([]byte(list))
	fatal(t, err)
	return a
}

func sign(t testing.TB, s Signer, text string) string {
	t.Helper()
	armored, err := s.Sign([]byte(text))
	fatal(t, err)
	return armored
}

// TestRecorded needs no tools: what they signed is verified, and signed again.
func TestRecorded(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			if *update {
				k := newKeygen(t, f)
				f.record(t, "signature", k.sign(message, "git"))
				f.record(t, "commit", newRepo(t, f).commit("recorded"))
			}
			s, allowed := f.signer(t), f.allowed(t)
			check := func(text, signature string) {
				t.Helper()
				principal, fingerprint, err := allowed.Verify(sshsig.ForGit, []byte(text), signature, at)
				if err != nil || principal != "a@example.org" || fingerprint != s.Fingerprint() {
					t.Errorf("Verify = %q, %q, %v", principal, fingerprint, err)
				}
			}
			check(message, f.section(t, "signature"))
			commit := f.section(t, "commit")
			payload, signature, err := Split([]byte(commit))
			fatal(t, err)
			check(string(payload), signature)

			if s.PublicKey()+"\n" != f.section(t, "key.pub") {
				t.Errorf("PublicKey = %q", s.PublicKey())
			}
			ours := sign(t, s, message)
			check(message, ours)
			if again := sign(t, s, message); again != ours {
				t.Error("the same message was signed in two ways")
			}
			// ssh-keygen's ECDSA is different each time.
			if !strings.HasPrefix(f.name, "ecdsa") {
				if ours != f.section(t, "signature") {
					t.Errorf("ours:\n%s", ours)
				}
				if made := Insert(payload, sign(t, s, string(payload))); string(made) != commit {
					t.Errorf("our commit:\n%s", made)
				}
			}
		})
	}
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if (want == nil) != (err == nil) || want != nil && !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}
