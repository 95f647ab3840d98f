package ledger

import (
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// CheckOwn is what ReadOwn finds, or without an id ReadExported.
func CheckOwn(dir fs.FS, id string) []canon.Violation {
	_, found := ReadOwn(dir, id)
	if id == "" {
		_, found = ReadExported(dir)
	}
	return found
}

// Follows is what the schema says of an item.
func (i Item) Follows() bool { return i.follows() }
