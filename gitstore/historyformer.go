package gitstore

import (
	"errors"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
)

// Former lists the files at or below a path as they were before the first
// commit that is visited.
func (h *History) Former(name string) (map[string]history.Entry, error) {
	if h.base.IsZero() {
		return nil, nil
	}
	e := rawEntry{mode: []byte("40000"), id: h.base[:]}
	for part := range strings.SplitSeq(name, "/") {
		if !e.isDir() {
			return nil, nil
		}
		raw, err := h.view(plumbing.TreeObject, e.hash())
		if err != nil {
			return nil, err
		}
		found := false
		for len(raw) > 0 && !found {
			ok := false
			if e, raw, ok = cutEntry(raw); !ok {
				return nil, errTree
			}
			found = string(e.name) == part
		}
		if !found {
			return nil, nil
		}
	}
	if !e.isDir() {
		return map[string]history.Entry{name: e.entry()}, nil
	}
	d := newDiffer(h)
	d.out = &history.Commit{}
	d.dirs(name, plumbing.ZeroHash, e.hash(), 0)
	if len(d.out.Problems) > 0 {
		return nil, errors.New(d.out.Problems[0].Message)
	}
	out := make(map[string]history.Entry, len(d.out.Changes))
	for _, c := range d.out.Changes {
		out[c.Path] = c.New
	}
	return out, nil
}
