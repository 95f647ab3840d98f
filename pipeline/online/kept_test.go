package online

import (
	"bytes"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// emptied is what a run kept, with answers that have no findings.
func emptied(t *testing.T, raw []byte) []byte {
	t.Helper()
	var doc kept
	fatal(t, canon.Unmarshal(raw, &doc))
	for i := range doc.Answers {
		doc.Answers[i].Findings = []Finding{}
	}
	line, err := canon.Line(doc)
	fatal(t, err)
	return line
}

// FuzzKept: whatever the file holds, an answer that is taken from it is one that a run
// could have written, and writing all of them again gives a file that says the same.
func FuzzKept(f *testing.F) {
	_, good, err := aRecord().run(f.Context(), options(honest()))
	fatal(f, err)
	f.Add(good)
	f.Add(bytes.Replace(good, []byte("same"), []byte("gone"), 1))
	f.Add([]byte(`{"address":"","answers":[],"repository":"7","schema":"countersign/online/1"}` + "\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o := options(honest())
		at, err := o.Forge.DefaultBranch(t.Context())
		fatal(t, err)
		o.Kept = raw
		taken := readKept(o, at)
		line, err := writeKept(at, taken)
		fatal(t, err)
		o.Kept = line
		if again := readKept(o, at); len(again) != len(taken) {
			t.Errorf("%d answers, and %d again", len(taken), len(again))
		}
		for _, a := range taken {
			if !a.whole() || a.AskedAt == "" {
				t.Errorf("%+v", a)
			}
		}
	})
}
