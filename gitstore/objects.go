package gitstore

import (
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// objects is the object database. go-git lists the packs once; while a human
// thinks about a change, `git gc` may move every loose object into a new one,
// so what is not found is looked for once more in a new list.
type objects struct{ *filesystem.Storage }

// EncodedObject returns an object.
func (o objects) EncodedObject(t plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	found, err := o.Storage.EncodedObject(t, h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		o.Reindex()
		return o.Storage.EncodedObject(t, h)
	}
	return found, err
}

// EncodedObjectSize returns the number of bytes of an object.
func (o objects) EncodedObjectSize(h plumbing.Hash) (int64, error) {
	n, err := o.Storage.EncodedObjectSize(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		o.Reindex()
		return o.Storage.EncodedObjectSize(h)
	}
	return n, err
}
