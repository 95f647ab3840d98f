package explain

import "github.com/countersign-dev/countersign/pipeline/record/patch"

// A Report is what approved patches are to a change, those that are in it, in their order, and the lines that are in none.
type Report struct {
	Result       Making
	Transactions []string
	Lines        []Lines
}

// Of says how patches account for a change.
func Of(change patch.Patchset, patches []Patch) Report {
	for _, p := range patches {
		if p.Set.ID() == change.ID() {
			return Report{Exact, []string{p.ID}, nil}
		}
	}
	if found, _ := newState(change).together(patches); len(found) > 0 {
		return Report{Replay, found[0], nil}
	}
	used, left := newState(change).cover(patches)
	if len(left) > 0 {
		return Report{NotCovered, used, left}
	}
	return Report{Replay, used, nil}
}
