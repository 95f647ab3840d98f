package gitstore

import (
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
)

// An UnverifiedError is a ledger whose commits since the last tip that was
// remembered do not verify. Nothing is remembered of it, so that the ledger as
// it was is not refused once it is back.
type UnverifiedError struct {
	Ledger, Tip, Since string
	First              history.Finding
	Count              int
}

func (e *UnverifiedError) Error() string {
	since := "its commits"
	if e.Since != "" {
		since = fmt.Sprintf("its commits since %.12s", e.Since)
	}
	more := ""
	if e.Count > 1 {
		more = fmt.Sprintf(", and %d more", e.Count-1)
	}
	return fmt.Sprintf("%s is at %s, and %s do not verify: %s %.12s %s: %s%s", e.Ledger, e.Tip, since, e.First.RuleID, e.First.Commit, e.First.Path, e.First.Message, more)
}

// verifyNew audits what is after from, all of it for zero, if the ledger is to
// be verified at all. A history that is not here to its root, of which nothing
// was known, is taken as it is: there is nothing to hold it to.
func (l *Ledger) verifyNew(name string, objects viewer, from, tip plumbing.Hash) error {
	if l.verify == nil || tip.IsZero() || from == tip {
		return nil
	}
	h := &History{objects: objects, tip: tip, from: from}
	if err := h.distortions(l.repo); err != nil {
		return err
	}
	found, complete, err := l.verify(h, tip.String())
	if err != nil || len(found) == 0 || from.IsZero() && !complete {
		return err
	}
	return &UnverifiedError{Ledger: name, Tip: tip.String(), Since: hexOf(from), First: found[0], Count: len(found)}
}
