package ledger

import (
	"context"
	"errors"
	"io/fs"
)

// A Snapshot is the ledger at one moment. Tree stays readable and unchanged
// however the ledger moves on. Before the first entry Tip is "" and Tree empty.
type Snapshot struct {
	Tip  string
	Tree fs.FS
}

// ErrMoved is what a Store's Append returns when the ledger's tip is not the
// one given. Nothing was written.
var ErrMoved = errors.New("the ledger has moved")

// A Store keeps the  Snapshot may be told which paths will be read, so
// that a ledger which is elsewhere can be asked for them at once; any other can
// be read as well. Append adds one commit an entry on exactly the given tip and
// returns the last one; when it returns an error that is not ErrMoved, the
// entries may or may not be there, and a new Snapshot tells.
//
// At returns the ledger as it was at a tip that Snapshot or Append returned.
type Store interface {
	Snapshot(ctx context.Context, paths ...string) (Snapshot, error)
	At(ctx context.Context, tip string) (Snapshot, error)
	Append(ctx context.Context, tip string, entries ...Entry) (string, error)
}
