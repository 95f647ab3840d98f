package ledger

import (
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/rule"
)

// CheckLoosely and CheckOwnLoosely are Check and CheckOwn with the lenient
// walk, whatever ReadLog says. proven tells what it says.

func CheckLoosely(dir fs.FS) (found []rule.Violation, proven bool) {
	c, proven := looseChecker(dir)
	return c.check(), proven
}

func CheckOwnLoosely(dir fs.FS, id string) []rule.Violation {
	c, _ := looseChecker(dir)
	return c.checkOwn(id)
}

func looseChecker(dir fs.FS) (*checker, bool) {
	c := newChecker(dir)
	proven := c.proven
	if proven {
		c.proven = false
		c.readEvents()
	}
	return c, proven
}

// Admits is what the index and what admit say of an event.
func (l *Log) Admits(p Payload) (index, admit bool) {
	return l.seen.admits(p), l.admit(p) == nil
}

// Scrubbed is an event's payload as a Stage stores it.
var Scrubbed = scrubbed
