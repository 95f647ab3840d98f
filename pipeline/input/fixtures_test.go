package input_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

// A fixture is a change as a producer writes it, on base files: what becomes of them, or
// what the refusal says; Tool is what the producer's own tool makes where we refuse.
type fixture struct {
	Name  string            `json:"name"`
	Base  map[string]string `json:"base"`
	Input string            `json:"input"`
	Out   map[string]string `json:"out"`
	Error string            `json:"error"`
	Tool  map[string]string `json:"tool"`
}

// fixtures are those of a format: testdata/FORMAT.json. Those of "git" are the output of
// Git 2.39; those of "codex" are the cases that Codex publishes (codex-rs/apply-patch,
// tests/fixtures/scenarios) in our words, those of "blocks" what aider documents
// (aider.chat/docs/more/edit-formats.html).
func fixtures(t *testing.T, format string) (all []fixture) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", format+".json"))
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	fatal(t, err)
	return all
}

// TestFixtures: each fixture of a producer gives the bytes that it says or its refusal, by
// its format and, where it has one, found out; and the producer's own tool, where it is
// here, gives the same.
func TestFixtures(t *testing.T) {
	tools := map[string]func(t *testing.T, dir string, f fixture) bool{"git": byGit, "unified": byGit}
	if at := os.Getenv("COUNTERSIGN_CODEX"); at != "" {
		link := filepath.Join(t.TempDir(), "apply_patch") // it acts by its name
		fatal(t, os.Symlink(at, link))
		tools["codex"] = func(_ *testing.T, dir string, f fixture) bool {
			cmd := exec.Command(link)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(f.Input)
			return cmd.Run() == nil
		}
	}
	total, compared := 0, 0
	for _, format := range []string{"git", "unified", "codex", "blocks", "edits", "auto"} {
		t.Run(format, func(t *testing.T) {
			for _, f := range fixtures(t, format) {
				total++
				for _, as := range []string{format, input.FormatAuto} {
					got, err := read(as, f)
					switch {
					case f.Error != "" && as == input.FormatAuto && format != as && strings.Contains(f.Error, "no line is"): // and no other format either
						if err == nil {
							t.Errorf("%s: %q", f.Name, got)
						}
					case f.Error != "" && (err == nil || !saysOne(err, f.Error)):
						t.Errorf("%s, as %s: %q, %v, want %q", f.Name, as, got, err, f.Error)
					case f.Error == "" && (err != nil || !maps.Equal(got, f.Out)):
						t.Errorf("%s, as %s: %q, %v, want %q", f.Name, as, got, err, f.Out)
					}
				}
				tool := tools[format]
				if tool == nil {
					continue
				}
				compared++
				dir := t.TempDir()
				spread(t, dir, f.Base)
				ok := tool(t, dir, f)
				want := f.Out
				if f.Tool != nil {
					want = f.Tool
				}
				if got := gathered(t, dir); ok != (want != nil) || ok && !maps.Equal(got, want) {
					t.Errorf("%s: the tool gives %q, %v, want %q", f.Name, got, ok, want)
				}
			}
		})
	}
	if total < 100 {
		t.Errorf("there are %d fixtures", total)
	}
	t.Logf("numbers: %d fixtures, %d of them compared with their producer's tool", total, compared)
}

// saysOne reports whether an error has one of some texts, in a line.
func saysOne(err error, texts string) bool {
	for text := range strings.SplitSeq(texts, "|") {
		if strings.Contains(err.Error(), text) {
			return !strings.Contains(err.Error(), "\n")
		}
	}
	return false
}

func read(format string, f fixture) (map[string]string, error) {
	in, err := input.From(format, []byte(f.Input), "", true, "")
	if err != nil {
		return nil, err
	}
	got, err := after(f.Base, in)
	if errors.Is(err, patch.ErrUnchanged) {
		return f.Base, nil
	}
	return got, err
}

// byGit puts a change on files with the real git, and reports whether it does.
func byGit(t *testing.T, dir string, f fixture) bool {
	ran := func(args ...string) bool {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(f.Input)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
			"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("%s: git %s: %s", f.Name, args[0], out)
		}
		return err == nil
	}
	if strings.Count(f.Input, "\nSubject: [PATCH") > 1 {
		return ran("init", "-q") && ran("add", "--all") && ran("commit", "-q", "-m", "base") && ran("am", "-q")
	}
	return ran("apply", "-p1", "--unidiff-zero", "-") || ran("apply", "-p0", "--unidiff-zero", "-")
}

func spread(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		fatal(t, errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(data), 0o600)))
	}
}

// gathered are the files of a directory, without Git's own.
func gathered(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		out[name] = string(raw)
		return err
	})
	fatal(t, err)
	return out
}
