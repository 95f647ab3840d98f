package lineage

import (
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// A RollbackError is a ledger whose tip does not descend from the last one that
// was seen here, or that the caller knows of: somebody rewrote or deleted it
// (T51). Tip is "" where the ref is gone. Why is set where descent could merely
// not be shown. Source says who named Seen, "" for the memory of this clone.
type RollbackError struct {
	Ledger, Tip, Seen string
	Why               error
	Source            string
}

func (e *RollbackError) Error() string {
	known := "last seen here"
	if e.Source != "" {
		known = "named by " + e.Source
	}
	switch {
	case e.Tip == "":
		return fmt.Sprintf("%s is gone: it was at %s, %s", e.Ledger, e.Seen, known)
	case e.Why != nil:
		return fmt.Sprintf("%s is at %s, which cannot be shown to descend from %s, %s: %v", e.Ledger, e.Tip, e.Seen, known, e.Why)
	}
	return fmt.Sprintf("%s was rewritten: its tip %s does not descend from %s, %s", e.Ledger, e.Tip, e.Seen, known)
}

func (e *RollbackError) Hint() string {
	if e.Tip == "" {
		return "find out who removed it, and push " + e.Seen + " there again; docs/ledger.md says more"
	}
	return "find out who moved it; docs/ledger.md says how an owner accepts another ledger"
}

func (e *RollbackError) Unwrap() error { return e.Why }

// Held refuses a tip that is neither a commit that is known nor descends from it
// (*RollbackError). Zero for the known one is none, for the tip a ledger that is gone.
func Held(ledger string, tip, known packfile.ID, descends func(ancestor packfile.ID) (bool, error)) error {
	if known.IsZero() || known == tip {
		return nil
	}
	if tip.IsZero() {
		return &RollbackError{Ledger: ledger, Seen: known.String()}
	}
	ok, err := descends(known)
	if ok && err == nil || err != nil && !errors.Is(err, ErrCutOff) {
		return err
	}
	return &RollbackError{Ledger: ledger, Tip: tip.String(), Seen: known.String(), Why: err}
}

// ErrCutOff is a history that is not there as far back as it takes.
var ErrCutOff = errors.New("the history does not go back that far here")

// Descends reports whether ancestor is tip or one of its ancestors, as far as a
// source has them. A history that is cut off is an error, unless ancestor was
// found before.
func Descends(s Objects, tip, ancestor packfile.ID) (bool, error) {
	seen := map[packfile.ID]bool{}
	for queue := []packfile.ID{tip}; len(queue) > 0; queue = queue[1:] {
		id := queue[0]
		if id == ancestor {
			return true, nil
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		raw, err := read(s, plumbing.CommitObject, id)
		if errors.Is(err, packfile.ErrMissing) {
			err = fmt.Errorf("%w: %v", ErrCutOff, err)
		}
		if err != nil {
			return false, err
		}
		c, err := packfile.ParseCommit(raw)
		if err != nil {
			return false, fmt.Errorf("commit %s: %w", id, err)
		}
		queue = append(queue, c.Parents...)
	}
	return false, nil
}
