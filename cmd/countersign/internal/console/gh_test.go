package console_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A gh in a folder, which has a token for example.org and says what it is asked and where.
func writeGH(t *testing.T, dir, token string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX system")
	}
	script := "#!/bin/sh\necho \"$GH_TOKEN$GITHUB_TOKEN$GH_ENTERPRISE_TOKEN$GH_HOST $*\" >>\"$SAID\"\n" +
		"[ \"$*\" = 'auth token --hostname=example.org' ] && echo '" + token + "' || { echo secret >&2; exit 1; }\n"
	teststand.Fatal(t, os.MkdirAll(dir, 0o755))
	teststand.Fatal(t, teststand.WriteFile(filepath.Join(dir, "gh"), []byte(script)))
}

func TestToken(t *testing.T) {
	dir := t.TempDir()
	repo, usual := filepath.Join(dir, "repo"), filepath.Join(dir, "usual")
	teststand.Fatal(t, os.MkdirAll(filepath.Join(repo, ".git"), 0o755))
	writeGH(t, usual, "gho_right")
	writeGH(t, repo, "gho_planted")
	writeGH(t, filepath.Join(repo, "bin"), "gho_planted")
	teststand.Fatal(t, os.Symlink(filepath.Join(repo, "bin"), filepath.Join(dir, "link")))
	said := filepath.Join(dir, "said")
	t.Setenv("SAID", said)
	for _, name := range []string{"GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GH_HOST"} {
		t.Setenv(name, "leaked")
	}
	below := filepath.Join(repo, "bin")
	for _, c := range []struct{ name, path, host, token string }{
		{"asked", usual, "example.org", "gho_right"},
		{"another host", usual, "evil.example", ""},
		{"no host", usual, "-R", ""},
		{"in the repository", repo + ":" + below + ":" + usual, "example.org", "gho_right"},
		{"linked into the repository", dir + "/link:" + usual, "example.org", "gho_right"},
		{"only in the repository", repo + ":.:", "example.org", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", c.path+":/usr/bin:/bin")
			t.Chdir(repo)
			if got := (&console.Keeper{Path: os.Getenv("PATH")}).Token(c.host, below); got != c.token {
				t.Errorf("token %q, want %q", got, c.token)
			}
		})
	}
	raw, err := os.ReadFile(said)
	if err != nil || strings.Contains(string(raw), "leaked") || strings.Contains(string(raw), "-R") {
		t.Errorf("gh was asked %q, %v", raw, err)
	}
	for _, token := range []string{"two words", "", "gho_\x01"} {
		writeGH(t, usual, token)
		t.Setenv("PATH", usual+":/usr/bin:/bin")
		if got := (&console.Keeper{Path: os.Getenv("PATH")}).Token("example.org", repo); got != "" {
			t.Errorf("%q was taken for a token", got)
		}
	}
}

func TestIsExtension(t *testing.T) {
	for name, want := range map[string]bool{"/x/gh-countersign": true, "gh-countersign.exe": true, "countersign": false, "/gh-countersign/countersign": false} {
		if console.IsExtension(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
