package pipeline_test

import (
	"errors"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// TestHashes: a file counts as the record has it by its hash alone, or by not
// being there where the record says so; what cannot be read counts as another.
func TestHashes(t *testing.T) {
	sum := canon.Sum([]byte("x"))
	hashes := map[string]*string{"a": &sum, "b": nil}
	p := ledger.Proposal{TargetFiles: []string{"a", "b"}, BaseSHA256: hashes, AfterSHA256: hashes}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"as recorded", map[string]string{"a": "x", "c": "beside"}, nil},
		{"another content", map[string]string{"a": "y"}, []string{"a"}},
		{"gone", nil, []string{"a"}},
		{"there", map[string]string{"a": "x", "b": ""}, []string{"b"}},
	} {
		tree := fstest.MapFS{}
		for name, text := range c.files {
			tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		}
		changed, err := pipeline.ChangedFiles(tree, p)
		if err != nil || !slices.Equal(changed, c.want) {
			t.Errorf("%s: changed %q, %v, want %q", c.name, changed, err, c.want)
		}
		found, err := pipeline.ReadBackHashes(p, func(path string, _ *patch.File) (*patch.File, error) { return patch.Lookup(tree, path) })
		if err != nil || len(found) != len(c.want) || len(found) > 0 && found[0].Path != c.want[0] {
			t.Errorf("%s: read back %v, %v, want %q", c.name, found, err, c.want)
		}
	}
	unfit := func(string, *patch.File) (*patch.File, error) { return nil, &patch.Error{Message: "a socket"} }
	if found, err := pipeline.ReadBackHashes(p, unfit); err != nil || len(found) != 2 {
		t.Errorf("what is no file: %v, %v", found, err)
	}
	broken := errors.New("no disk")
	if _, err := pipeline.ReadBackHashes(p, func(string, *patch.File) (*patch.File, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("what cannot be read: %v", err)
	}
}
