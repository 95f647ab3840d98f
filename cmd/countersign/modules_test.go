package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// realModules are pairs of releases whose difference is driven through the
// program.
var realModules = []struct{ name, before, after string }{
	{"github.com/spf13/cobra", "v1.8.0", "v1.8.1"},
	{"github.com/google/go-cmp", "v0.5.9", "v0.6.0"},
	{"golang.org/x/sync", "v0.1.0", "v0.3.0"},
	{"golang.org/x/mod", "v0.17.0", "v0.20.0"},            // with deletions
	{"github.com/go-git/go-git/v5", "v5.12.0", "v5.13.0"}, // with made-up keys in its tests
}

// The difference of two releases, made by the real git, goes through review,
// approve, apply and validate, and the working tree is the second release.
// COUNTERSIGN_LONG=1 is for all of them.
func TestRealModules(t *testing.T) {
	long(t)
	if testing.Short() {
		t.Skip("whole releases")
	}
	modules := realModules
	if !everything() {
		modules = modules[3:4]
	}
	for _, m := range modules {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			before, after := download(t, m.name, m.before), download(t, m.name, m.after)
			s := newSandbox(t, before)
			s.git("init", "-q", "-b", "main")
			s.git("config", "core.autocrlf", "false")
			s.commit()
			s.replace(before, after)
			s.git("add", "-A")
			patch := filepath.Join(s.dir, "release.patch")
			diff := s.git("diff", "--cached", "--binary", "-M")
			check(t, os.WriteFile(patch, []byte(diff), 0o644))
			s.git("reset", "-q", "--hard")

			s.run(0, "review", "--patch", patch, "--summary", m.name+" "+m.after)
			found, _ := s.run(0, "policy", "explain", "--patch", patch, "--json")
			s.run(0, "approve", s.newest(), "--all")
			s.git("config", "user.email", "grace@localhost") // nobody excuses the secrets of their own patch
			s.run(0, "approve", s.newest(), "--all")
			s.run(0, "apply", "--patch", patch)
			s.run(0, "validate")
			s.compare(after)
			s.validLedger()
			t.Logf("%d files changed, %d deleted, %d renamed in the diff of %d bytes; taken for secrets: %d", strings.Count(diff, "\ndiff --git ")+1,
				strings.Count(diff, "\ndeleted file mode "), strings.Count(diff, "\nrename from "), len(diff), secretsIn(t, found))
		})
	}
}

// secretsIn counts what "policy explain" takes for secrets.
func secretsIn(t *testing.T, explanation string) int {
	t.Helper()
	var doc struct {
		Secrets []json.RawMessage `json:"secrets"`
	}
	check(t, json.Unmarshal([]byte(explanation), &doc))
	return len(doc.Secrets)
}

// download returns a module's files from the module proxy, path → content.
func download(t *testing.T, name, version string) map[string]string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", name+"@"+version)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	var mod struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &mod); err != nil || jsonErr != nil || mod.Dir == "" {
		if os.Getenv("CI") != "" {
			t.Fatalf("module proxy: %v %s", err, mod.Error)
		}
		t.Skipf("module proxy out of reach: %v %s", err, mod.Error)
	}
	files := map[string]string{}
	err = fs.WalkDir(os.DirFS(mod.Dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(mod.Dir, filepath.FromSlash(p)))
		files[p] = string(data)
		return err
	})
	check(t, err)
	// A .gitattributes or .gitignore of the module must not change what git does here.
	for p := range files {
		if base := filepath.Base(p); base == ".gitattributes" || base == ".gitignore" {
			delete(files, p)
		}
	}
	return files
}

func (s playground) replace(before, after map[string]string) {
	s.t.Helper()
	for name := range before {
		if _, stays := after[name]; !stays {
			check(s.t, os.Remove(filepath.Join(s.repo, filepath.FromSlash(name))))
		}
	}
	for name, content := range after {
		s.write(name, content)
	}
}

// compare: the working tree is these files byte for byte and nothing else.
func (s playground) compare(want map[string]string) {
	s.t.Helper()
	seen := 0
	err := fs.WalkDir(os.DirFS(s.repo), ".", func(p string, d fs.DirEntry, err error) error {
		if d.IsDir() && p == ".git" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		seen++
		if content, ok := want[p]; !ok || s.read(p) != content {
			s.t.Errorf("%s is not as in the second release", p)
		}
		return nil
	})
	check(s.t, err)
	if seen != len(want) {
		s.t.Errorf("%d files, want %d", seen, len(want))
	}
}
