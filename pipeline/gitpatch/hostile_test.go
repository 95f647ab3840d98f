package gitpatch_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// threats are those that a patch can bring; each has refused cases.
var threats = map[string]string{
	"T28": "paths out of the tree", "T29": "spellings of .git", "T30": "a link made and written through",
	"T31": "a link in the base", "T33": "submodules", "T34": "attributes and hooks", "T35": "workflow and instruction files",
	"T36": "modes, binary sections, renames, repeated and colliding paths", "T37": "places that name a path disagree",
	"T38": "hunks that land elsewhere", "T39": "line ends, byte order marks", "T40": "a base that changed",
	"T42": "too much of anything", "T43": "names that are options", "T44": "a link at the output path", "T45": "nothing to apply",
}

// TestHostile reads testdata/hostile: one case a file, named after the threat
// that it shows, with the base, the diff, and what becomes of it:
// the message, or the changes of an accepted one. A name with "near" is that of
// a harmless case that looks like another.
//
// Each is also given to the real git: git.txt lists where its answer differs.
func TestHostile(t *testing.T) {
	files, err := filepath.Glob("testdata/hostile/*.txtar")
	if err != nil || len(files) < 150 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	work := newRepo(t)
	var table strings.Builder
	refused := map[string]int{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		threat, _, _ := strings.Cut(strings.ToUpper(name), "-")
		if threats[threat] == "" {
			t.Errorf("%s: no such threat", name)
		}
		t.Run(threat+"/"+name, func(t *testing.T) {
			a := readArchive(t, file)
			diff := a.kind(t, "diff")[""]
			ours := judge(diff, a.base(t))
			a.want(t, "want", ours)
			near, ok := strings.Contains(name, "-near-"), strings.HasPrefix(ours, "accepted")
			if near != ok {
				t.Errorf("name and outcome disagree: %s", ours)
			}
			if !ok {
				refused[threat]++
			}
			if os.Getenv("COUNTERSIGN_LONG") == "" {
				return
			}
			theirs := work.judge(a.base(t), diff)
			if strings.HasPrefix(ours, "accepted") != theirs {
				verb := map[bool]string{true: "accepts", false: "refuses"}[theirs]
				fmt.Fprintf(&table, "%-34s git %s  %s\n", name, verb, a.about())
			}
		})
	}
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		checkTable(t, table.String())
	}
	for threat, what := range threats {
		if refused[threat] == 0 {
			t.Errorf("%s (%s): no case is refused", threat, what)
		}
	}
}

// about is the case's description in one line.
func (a archive) about() string { return strings.Join(strings.Fields(string(a.Comment)), " ") }

// judge is the message, or the changes.
func judge(diff []byte, base fs.FS) string {
	d, err := gitpatch.Parse(diff)
	if err != nil {
		return err.Error() + "\n"
	}
	p, err := d.Resolve(base)
	if err != nil {
		return err.Error() + "\n"
	}
	out := "accepted\n"
	for _, c := range p.Changes {
		out += strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Kind, patch.Quote(c.Path), c.From)) + "\n"
	}
	return out
}

// judge reports whether git apply --check takes the diff on the base.
func (r repo) judge(base fs.FS, diff []byte) bool {
	entries, err := os.ReadDir(r.dir)
	fatal(r.t, err)
	for _, e := range entries {
		if e.Name() != ".git" {
			_ = os.RemoveAll(filepath.Join(r.dir, e.Name()))
		}
	}
	if err := fs.WalkDir(base, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return r.place(base, name, e)
	}); err != nil {
		r.t.Fatal(err)
	}
	_, err = teststand.TryGit(r.dir, string(diff), "apply", "--check", "-")
	return err == nil
}

func (r repo) place(base fs.FS, name string, e fs.DirEntry) error {
	full := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		return err
	}
	info, err := e.Info()
	switch {
	case err != nil:
		return err
	case e.Type() == fs.ModeSymlink:
		target, err := fs.ReadLink(base, name)
		if err != nil {
			return err
		}
		return os.Symlink(target, full)
	case e.Type() == fs.ModeIrregular:
		return os.Mkdir(full, 0o777)
	}
	data, err := fs.ReadFile(base, name)
	if err != nil {
		return err
	}
	return os.WriteFile(full, data, info.Mode().Perm())
}

// checkTable compares with git.txt. Its first line is git's version; with
// another version differences are only shown.
func checkTable(t *testing.T, rows string) {
	version, err := exec.Command("git", "version").Output()
	fatal(t, err)
	const file = "testdata/hostile/git.txt"
	got := string(version) + rows
	if *update {
		fatal(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	fatal(t, err)
	wantVersion, wantRows, _ := strings.Cut(string(want), "\n")
	if rows == wantRows {
		return
	}
	if wantVersion+"\n" != string(version) {
		t.Logf("the table is of %s, this is %s", wantVersion, version)
		return
	}
	t.Errorf("git.txt is another:\n%s", got)
}
