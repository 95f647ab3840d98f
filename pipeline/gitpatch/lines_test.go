package gitpatch_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// TestLines: what each line of a diff is, whatever the text is, and the numbers of its files.
func TestLines(t *testing.T) {
	const diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -4,3 +4,3 @@\n-- a\n+++ b\n\n c\n-d\n\\ No newline at end of file\n@@ x\n+e\nodd\ndiff --git a/y b/y\n--- y"
	var got []string
	var all []byte
	for l := range gitpatch.Lines([]byte(diff)) {
		got = append(got, fmt.Sprintf("%d %q %d %d %s", l.File, l.Mark, l.Before, l.After, l.Text))
		all = append(all, l.Raw...)
	}
	want := []string{`0 '\x00' 0 0 diff --git a/x b/x`, `0 '\x00' 0 0 --- a/x`, `0 '\x00' 0 0 +++ b/x`, `0 '@' 0 0 @@ -4,3 +4,3 @@`, `0 '-' 4 0 - a`, `0 '+' 0 4 ++ b`, `0 ' ' 5 5 `, `0 ' ' 6 6 c`, `0 '-' 7 0 d`,
		`0 '\\' 0 0  No newline at end of file`, `0 '@' 0 0 @@ x`, `0 '+' 0 0 e`, `0 '\x00' 0 0 odd`, `1 '\x00' 0 0 diff --git a/y b/y`, `1 '\x00' 0 0 --- y`}
	if !slices.Equal(got, want) || string(all) != diff {
		t.Errorf("got %q", got)
	}
	stats := gitpatch.Stats([]byte("above\n" + diff))
	if len(stats) != 3 || string(stats[0].Diff)+string(stats[1].Diff)+string(stats[2].Diff) != "above\n"+diff || stats[1].Added != 2 || stats[1].Deleted != 2 || stats[1].Lines != 13 || stats[1].Binary {
		t.Errorf("%+v", stats)
	}
}

// TestStatsBinary: of a binary file the size and the first bytes are known, and neither of one that is deleted.
func TestStatsBinary(t *testing.T) {
	png := append([]byte("\x89PNG\r\n\x1a\n\x00"), make([]byte, 90000)...)
	tree := fstest.MapFS{"a": {Data: []byte("\x00"), Mode: 0o644}, "b": {Data: []byte("\x00b"), Mode: 0o644}}
	p, err := patch.NewTree(tree).Between(map[string]*patch.File{"a": {Mode: patch.Regular, Data: png}, "b": nil, "c": {Mode: patch.Regular, Data: []byte("GIT binary patch\nliteral 5\n")}})
	fatal(t, err)
	s := gitpatch.Stats(p.Bytes())
	if !s[0].Binary || s[0].Size != len(png) || !bytes.HasPrefix(png, s[0].Begins) || len(s[0].Begins) < 10 || !s[1].Binary || s[1].Size != 0 || s[2].Binary || s[2].Size != -1 {
		t.Errorf("%+v", []any{s[0].Size, s[0].Begins, s[1].Size, s[2].Size})
	}
	for what, content := range map[string]string{
		"a delta": "delta 5\nx\n", "no number": "literal x\nx\n", "another alphabet": "literal 5\n\x00\n", "nothing": "", "no payload": "literal 5\n",
	} {
		if s := gitpatch.Stats([]byte("diff --git a/x b/x\nGIT binary patch\n" + content)); !s[0].Binary || len(s[0].Begins) > 0 {
			t.Errorf("%s: %+v", what, s)
		}
	}
}
