package gitpatch_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// TestRestore: whatever a diff's context and deleted lines were replaced with,
// the base has them.
func TestRestore(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		before, after := randomText(rng), randomText(rng)
		base := fstest.MapFS{"a b": {Data: []byte(before), Mode: 0o644}}
		set, err := patch.NewTree(base).Between(map[string]*patch.File{
			"a b": {Mode: patch.Regular, Data: []byte(after)}, "new": {Mode: patch.Regular, Data: []byte("new\n")},
		})
		if err != nil || before == after {
			continue
		}
		var masked []string
		for _, line := range strings.SplitAfter(string(set.Bytes()), "\n") {
			header := strings.HasPrefix(line, "--- ")
			if line != "" && (line[0] == ' ' || line[0] == '-' && !header) && rng.IntN(2) == 0 {
				line = line[:1] + "<REDACTED:x>\n"
			}
			masked = append(masked, line)
		}
		d, err := gitpatch.Parse([]byte(strings.Join(masked, "")))
		if err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(masked, ""))
		}
		if d, err = d.Restore(base); err != nil {
			t.Fatal(err)
		}
		again, err := d.Resolve(base)
		if err != nil || again.ID() != set.ID() {
			t.Fatalf("%v from\n%s\nof\n%s", err, strings.Join(masked, ""), set.Bytes())
		}
	}
}

func randomText(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(30) {
		b.WriteString([]string{"a", "b", "", "--- c", "long line", "@@ -1 +1 @@"}[rng.IntN(6)] + "\n")
	}
	return b.String() + []string{"", "end"}[rng.IntN(2)]
}

// TestRestoreElsewhere: a base that does not have the lines is an error.
func TestRestoreElsewhere(t *testing.T) {
	d, err := gitpatch.Parse([]byte("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -2 +2 @@\n-x\n+y\n"))
	fatal(t, err)
	for _, base := range []fstest.MapFS{{}, {"a": {Data: []byte("one\n"), Mode: 0o644}}} {
		var e *patch.Error
		if _, err := d.Restore(base); !errors.As(err, &e) || e.Path != "a" {
			t.Errorf("%v", err)
		}
	}
}
