package ledger

import (
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/rule"
)

// CheckOwn is what ReadOwn finds.
func CheckOwn(dir fs.FS, id string) []rule.Violation {
	_, found := ReadOwn(dir, id)
	return found
}

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

// Follows is what the schema says of an item.
func (i Item) Follows() bool { return i.follows() }
