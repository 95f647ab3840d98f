package input_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// after returns what a change makes of files.
func after(files map[string]string, in input.Change) (map[string]string, error) {
	return resolved(files, in.Resolve)
}

func resolved(files map[string]string, resolve func(fs.FS) (patch.Patchset, error)) (map[string]string, error) {
	tree := fstest.MapFS{}
	for name, data := range files {
		tree[name] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
	}
	set, err := resolve(tree)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	maps.Copy(out, files)
	for _, c := range set.Changes {
		delete(out, c.From)
		if c.After == nil {
			delete(out, c.Path)
			continue
		}
		out[c.Path] = string(c.After.Data)
	}
	return out, nil
}

// TestUnified: what "diff -u" makes of two directories is read as what it is.
func TestUnified(t *testing.T) {
	base := map[string]string{"a b.txt": "one\ntwo\nthree\n", "gone.txt": "x\n", "d/keep.txt": "k\n", "end.txt": "no end", `q".txt`: "q\n"}
	want := map[string]string{"a b.txt": "one\n2\nthree\n", "new/n.txt": "n\n", "d/keep.txt": "k\n", "end.txt": "an end\n", `q".txt`: "--- q\n+++ q\n"}
	for _, text := range []string{
		"--- a/a b.txt\n+++ b/a b.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n" +
			"--- /dev/null\n+++ b/new/n.txt\n@@ -0,0 +1 @@\n+n\n--- a/end.txt\n+++ b/end.txt\n@@ -1 +1 @@\n-no end\n\\ No newline at end of file\n+an end\n" +
			"--- a/q\".txt\n+++ b/q\".txt\n@@ -1 +1,2 @@\n-q\n+--- q\n++++ q\n",
		"diff -ru a/a b.txt b/a b.txt\n--- a b.txt\t2026-01-02 03:04:05.0 +0000\n+++ a b.txt\t2026-01-02 03:04:06.0 +0000\n@@ -2 +2 @@ some function\n-two\n+2\n" +
			"--- gone.txt\t2026-01-02 03:04:05.0 +0000\n+++ gone.txt\t1970-01-01 00:00:00.0 +0000\n@@ -1 +0,0 @@\n-x\n" +
			"Index: new/n.txt\n===================================================================\n--- new/n.txt\t1970-01-01 00:00:00.0 +0000\n+++ new/n.txt\t2026-01-02\n@@ -0,0 +1 @@\n+n\n" +
			"--- end.txt\n+++ end.txt\n@@ -1 +1 @@\n-no end\n\\ No newline at end of file\n+an end\n--- q\".txt\n+++ q\".txt\n@@ -1 +1,2 @@\n-q\n+--- q\n++++ q\n",
	} {
		in, err := input.From("unified", []byte(text), "", false, "")
		fatal(t, err)
		if got, err := after(base, in); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q, %v\n%s", got, err, text)
		}
	}
	for text, why := range map[string]string{
		"--- a/end.txt\n+++ b/other.txt\n@@ -1 +1 @@\n-x\n+y\n": "line 1: end.txt: does not apply", "--- a/x\n": "no \"diff --git\"", "--- a/x\n@@ -1 +1 @@\n": "no \"diff --git\"", "hello\n": "unexpected",
		"--- a/end.txt\n+++ b/end.txt\n@@ -1,2 +1 @@\n-no end\n": "line 3: end.txt: hunk says 2 old and 1 new lines, but has 1 and 0", "--- a/end.txt\n+++ b/end.txt\n@@ what @@\n": "head of a hunk",
		"--- a/z\n+++ b/z\n@@ -1 +1 @@\n-x\n+y\n": "does not exist", "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-x\n+y\n": "neither",
		"--- a/../z\n+++ b/../z\n@@ -1 +1 @@\n-x\n+y\n": "path", "--- a/end.txt\n+++ b/end.txt\n@@ -1 +1 @@\n-other\n+y\n": "does not apply",
		"--- a/d/keep.txt\n+++ b/d/keep.txt\n@@ -5 +5 @@\n-j\n+y\n": "does not apply", "": "is empty",
		"x.txt\n": "unexpected", "--- a/d/keep.txt\n+++ b/d/keep.txt\n@@ -1 +1,99999999999999999999 @@\n-k\n+y\n": "line 3: \"@@ -1 +1,99999999999999999999 @@\" is not the head of a hunk",
		"--- a/d/keep.txt\n+++ b/d/keep.txt\n@@ -1 +1 @@\n-k\n+y\n\n--- a/gone.txt\n+++ b/gone.txt\n@@ -1 +99999999999999999999 @@\n-x\n+y\n": "line 9: \"@@ -1 +99999999999999999999 @@\" is not the head of a hunk",
	} {
		in, err := input.From("unified", []byte(text), "", false, "")
		if err == nil {
			_, err = after(base, in)
		}
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q\n%s", err, why, text)
		}
	}
}

// TestUnifiedAsGit: random changes, told without Git's lines, come to what git apply makes
// of them.
func TestUnifiedAsGit(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) (string, error) { return teststand.TryGit(dir, "", args...) }
	if out, err := git("init", "-q", "."); err != nil {
		t.Fatal(out)
	}
	read := func() string {
		raw, err := os.ReadFile(filepath.Join(dir, "a.txt"))
		fatal(t, err)
		return string(raw)
	}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 21))
		var was, is bytes.Buffer
		for i := range 3 + r.IntN(30) {
			line := fmt.Sprintln("line", i, r.IntN(3))
			was.WriteString(line)
			switch r.IntN(6) {
			case 0:
			case 1:
				is.WriteString("--- new\n+++ new\n")
			default:
				is.WriteString(line)
			}
		}
		before := map[string]string{"a.txt": strings.TrimSuffix(was.String(), strings.Repeat("\n", r.IntN(2)))}
		for name, text := range map[string]string{"a.txt": before["a.txt"], "b.txt": is.String()} {
			fatal(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		diff, _ := git("diff", "--no-index", fmt.Sprint("-U", r.IntN(4)), "a.txt", "b.txt")
		_, hunks, changed := strings.Cut(diff, "\n@@ ")
		if !changed {
			continue
		}
		text := "--- a.txt\n+++ a.txt\n@@ " + hunks
		fatal(t, os.WriteFile(filepath.Join(dir, "p"), []byte(text), 0o600))
		if out, err := git("apply", "-p0", "--unidiff-zero", "p"); err != nil {
			t.Fatalf("%s\n%s", out, text)
		}
		in, err := input.From("auto", []byte(text), "", false, "")
		fatal(t, err)
		if got, err := after(before, in); err != nil || got["a.txt"] != read() {
			t.Errorf("%q, %v, want %q\n%s", got, err, read(), text)
		}
	}
}

// TestHostileAsGit: of the hostile diffs that gitpatch.Parse refuses, those that are read nonetheless
// come to exactly what git apply makes of them.
func TestHostileAsGit(t *testing.T) {
	cases, err := filepath.Glob("../gitpatch/testdata/hostile/*.txtar")
	if err != nil || len(cases) < 400 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	taken := 0
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		fatal(t, err)
		f := fixture{Name: filepath.Base(name), Base: map[string]string{}}
		for _, section := range archive.Files {
			kind, path, _ := strings.Cut(section.Name, "/")
			switch kind {
			case "base", "exec":
				f.Base[path] = string(section.Data)
			case "diff":
				f.Input = string(section.Data)
			case "diff.quoted":
				for line := range strings.Lines(string(section.Data)) {
					line, err = strconv.Unquote(`"` + strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `"`, `\"`) + `"`)
					f.Input += line + "\n"
				}
			}
		}
		if _, strict := gitpatch.Parse([]byte(f.Input)); strict == nil || err != nil {
			continue
		}
		got, err := read("git", f)
		if err != nil {
			continue
		}
		taken++
		dir := t.TempDir()
		spread(t, dir, f.Base)
		if !byGit(t, dir, f) || !maps.Equal(gathered(t, dir), got) {
			t.Errorf("%s: %q, and git does otherwise", f.Name, got)
		}
	}
	if taken < 20 {
		t.Errorf("%d were taken", taken)
	}
	t.Logf("numbers: %d of %d hostile diffs are taken as git takes them", taken, len(cases))
}

// TestAuto: which format a text is taken for, and where a chat holds it.
func TestAuto(t *testing.T) {
	files := map[string]string{"a.txt": "one\ntwo\n"}
	codex := "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** End Patch\n"
	unified := "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
	git := "diff --git a/a.txt b/a.txt\n" + unified
	blocks := "a.txt\n<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n"
	call := `{"file_path":"/r/a.txt","old_string":"two","new_string":"2"}`
	for text, want := range map[string]string{
		codex: "codex", unified: "unified", git: "git", blocks: "blocks", call: "edits", "\n\n" + codex: "codex",
		"Look:\n\n```\n" + codex + "```\nDone.\n": "codex", "```diff\n" + unified + "```\n": "unified", "~~~~patch\n" + git + "~~~~\n": "git",
		"First\n```sh\nls\n```\nthen\n```json\n" + call + "\n```\n": "edits", "```\n" + blocks + "```\n": "blocks",
		"`````\n" + codex + "`````\n": "codex",
	} {
		in, err := input.From("auto", []byte(text), "/r", false, "why")
		if err != nil || in.Format != want || in.Summary != "why" || string(in.Raw) != text {
			t.Errorf("%v, %+v\n%s", err, in, text)
			continue
		}
		if got, err := after(files, in); err != nil || got["a.txt"] != "one\n2\n" {
			t.Errorf("%q, %v\n%s", got, err, text)
		}
	}
	for text, why := range map[string]string{
		"```\n" + codex + "```\n\n```diff\n" + git + "```\n": "2 fenced blocks hold a change, at lines 1, 10",
		"hello": "no format that is known", "": "no format that is known", "```\n" + codex: "line 1: the fenced block does not end",
		"```\nls\n```\n": "no format that is known", "x\n```\n*** Begin Patch\n*** Up\n*** End Patch\n```\n": "line 4: ",
	} {
		if _, err := input.From("auto", []byte(text), "", false, ""); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q\n%s", err, why, text)
		}
	}
	if _, err := input.From("nothing", []byte(codex), "", false, ""); err == nil {
		t.Error("a format that there is not")
	}
}

func FuzzFrom(f *testing.F) {
	f.Add("```diff\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n```\n")
	f.Add("--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n")
	f.Fuzz(func(t *testing.T, text string) {
		in, err := input.From("auto", []byte(text), "/r", false, "")
		if err == nil {
			_, _ = after(map[string]string{"a.txt": "one\ntwo\n"}, in)
		}
	})
}
