package lineage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

// objects are some that a test makes.
type objects map[packfile.ID]packfile.Object

func (o objects) put(kind plumbing.ObjectType, data []byte) packfile.ID {
	id := packfile.ParseID(plumbing.ComputeHash(kind, data).String())
	o[id] = packfile.Object{Type: kind, Data: data}
	return id
}

// tree has n entries for the same thing.
func (o objects) tree(n int, mode string, of packfile.ID) packfile.ID {
	var out []byte
	for i := range n {
		out = packfile.Entry{Mode: []byte(mode), Name: fmt.Appendf(nil, "%05d", i), Raw: of.Append(nil)}.Append(out)
	}
	return o.put(plumbing.TreeObject, out)
}

func (o objects) View(id packfile.ID) (packfile.Object, error) {
	if one, ok := o[id]; ok {
		return one, nil
	}
	return packfile.Object{}, packfile.ErrMissing
}

// TestT78TreeBombs: a commit of a few objects that unfold to more files, or more that is wrong, than there
// is room for is not read to its end, and says so once.
func TestT78TreeBombs(t *testing.T) {
	all := objects{}
	nested := func(levels, each int, mode string, of packfile.ID) packfile.ID {
		tree := all.tree(each, mode, of)
		for range levels {
			tree = all.tree(each, "40000", tree)
		}
		return tree
	}
	file, missing := all.put(plumbing.BlobObject, []byte("x")), packfile.ParseID(strings.Repeat("1", 40))
	for name, tree := range map[string]packfile.ID{
		"deeper than a ledger": nested(18, 2, "100644", file),
		"what is missing":      nested(13, 3, "40000", missing),
		"files":                nested(13, 3, "100644", file),
		"empty directories":    nested(13, 3, "40000", all.put(plumbing.TreeObject, nil)),
		"one directory":        all.tree(50_000, "100644", file),
	} {
		tip := all.put(plumbing.CommitObject, packfile.EncodeCommit(packfile.Commit{Tree: tree}, packfile.Us, packfile.Us, time.Unix(0, 0), "x\n"))
		h, told := lineage.New(all, lineage.Options{Tip: tip}), 0
		err := h.Commits(func(c history.Commit) {
			if n := len(c.Changes) + len(c.Problems); n > 11_000 || n < 10_000 {
				t.Errorf("%s: %d changes and %d problems", name, len(c.Changes), len(c.Problems))
			}
			for _, p := range c.Problems {
				if p.RuleID == "L10" && p == c.Problems[len(c.Problems)-1] && strings.Contains(p.Message, "more than a ledger can") {
					told++
				}
			}
		})
		if err != nil || told != 1 {
			t.Errorf("%s: told %d times, %v", name, told, err)
		}
	}
}
