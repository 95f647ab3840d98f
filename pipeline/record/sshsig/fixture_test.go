package sshsig

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/crypto/ssh"
)

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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

func load(t testing.TB, name string) fixture {
	t.Helper()
	file := filepath.Join("testdata", name+".txtar")
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

func (f fixture) signer(t testing.TB) ssh.AlgorithmSigner {
	t.Helper()
	key, err := ssh.ParsePrivateKey([]byte(f.section(t, "key")))
	if err != nil {
		t.Fatalf("%s: %v", f.name, err)
	}
	return key.(ssh.AlgorithmSigner)
}

// allowed is a list of the fixture's key alone.
func (f fixture) allowed(t testing.TB) Allowed {
	t.Helper()
	return allow(t, "a@example.org "+f.section(t, "key.pub"))
}

func allow(t testing.TB, list string) Allowed {
	t.Helper()
	a, err := ParseAllowedSigners([]byte(list))
	fatal(t, err)
	return a
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if (want == nil) != (err == nil) || want != nil && !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}
