// Package cheat alters a ledger as somebody would who can write to it, so that a reader
// can see that the audit tells. It only makes objects in memory: what it alters stays as
// it is.
//
// A cheat makes good what its way says, and always the ids of the commits after it: the
// history that it leaves is one that git accepts.
package cheat

import (
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/object"
)

// A Way is one way to cheat.
type Way struct {
	How   string `json:"how"`   // its name
	Title string `json:"title"` // what it does, as a request
	// OnlyKnown says that the rules alone may not tell: it takes a tip that is known, or
	// signatures, as the ledger that is left agrees with itself.
	OnlyKnown bool `json:"only_known"`

	do func(*cheat) error
}

// Ways are all ways to cheat.
func Ways() []Way { return slices.Clone(ways) }

var ways = []Way{
	{"patch", "Change one byte of a patch", false, (*cheat).patch},
	{"rewind", "Leave out the last commit", true, (*cheat).rewind},
}

// A CannotError says why a ledger has nothing that a way could change.
type CannotError struct{ Message string }

func (e *CannotError) Error() string { return e.Message }

// An Altered ledger is what a cheat leaves.
type Altered struct {
	Tip     object.ID
	Changed string // in words
	lineage.Objects
}

// Alter returns the ledger that ends with a tip as a way to cheat leaves it, the latest
// transaction that has what it takes being the one that is changed. Where none has,
// the error is a *CannotError. The ledger is one that an audit found sound.
func Alter(objects lineage.Objects, tip object.ID, how string) (Altered, error) {
	i := slices.IndexFunc(ways, func(w Way) bool { return w.How == how })
	if i < 0 {
		return Altered{}, &CannotError{fmt.Sprintf("there is no way to cheat named %+q", how)}
	}
	c := &cheat{base: objects, tip: tip, made: map[object.ID]made{}}
	if err := ways[i].do(c); err != nil {
		return Altered{}, err
	}
	return Altered{Tip: c.tip, Changed: c.changed, Objects: c}, nil
}
