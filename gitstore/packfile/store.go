package packfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// What reading an object may return.
var (
	ErrMissing = errors.New("the object is not in this repository")
	ErrDamaged = errors.New("damaged")
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// An Object is a commit, tree, blob or tag.
type Object struct {
	Type plumbing.ObjectType
	Data []byte
}

// A Store is the object database of a repository: its own objects directory,
// then those that it borrows from. Its methods may be called from several
// goroutines.
type Store struct {
	dirs  []*dir
	cache *cache
	hold  hold // in the first directory
}

// Open opens an objects directory and what its info/alternates names, then
// more, which need not be there yet. Files stay open between reads, until
// Close.
func Open(objectsDir string, more ...string) (*Store, error) {
	paths, err := borrow(objectsDir, 0)
	if err != nil {
		return nil, err
	}
	s := &Store{cache: newCache(), hold: hold{objects: objectsDir}}
	for _, path := range append(paths, more...) {
		s.dirs = append(s.dirs, &dir{path: path})
	}
	return s, nil
}

// Close closes the files that are open, and releases the packs that are held.
// Reading opens them again.
func (s *Store) Close() error {
	s.Release(slices.Collect(maps.Keys(s.hold.held))...)
	var errs []error
	for _, d := range s.dirs {
		errs = append(errs, d.close())
	}
	return errors.Join(errs...)
}

// Read returns an object, whose content is the caller's own. The error is
// ErrMissing if it is nowhere, and ErrDamaged if it or the pack that may hold
// it is not sound.
func (s *Store) Read(id plumbing.Hash) (Object, error) {
	o, err := s.View(id)
	o.Data = append(make([]byte, 0, len(o.Data)), o.Data...)
	return o, err
}

// View is Read for those who do not modify the content: it is shared, which
// saves a copy.
func (s *Store) View(id plumbing.Hash) (Object, error) {
	o, err := find(s, func(d *dir) (Object, error) { return d.read(id, s.cache) })
	if err == nil {
		err = check(o, id)
	}
	if err != nil {
		return Object{}, fmt.Errorf("object %s: %w", id, err)
	}
	return o, nil
}

// Size returns an object's type and number of bytes, as the repository records
// them: only Read checks the content.
func (s *Store) Size(id plumbing.Hash) (plumbing.ObjectType, int64, error) {
	h, err := find(s, func(d *dir) (header, error) { return d.size(id, s.cache) })
	if err != nil {
		return 0, 0, fmt.Errorf("object %s: %w", id, err)
	}
	return h.kind, h.size, nil
}

// maxLooks is how often an object is looked for while others move it about.
const maxLooks = 10

// find asks the directories in turn. While a human thinks about a change, `git
// gc` may move every loose object into a new pack and delete the old ones, so
// what is not found is looked for again in a new list, until that is the same
// as before. What is in none may be in a pack whose index cannot be read: it is
// not missing then.
func find[T any](s *Store, get func(*dir) (T, error)) (T, error) {
	var none T
	before := -1
	for look := range maxLooks {
		changes := 0
		for _, d := range s.dirs {
			n, err := d.list(look > 0)
			if err != nil {
				return none, err
			}
			changes += n
			found, err := get(d)
			if !errors.Is(err, ErrMissing) {
				return found, err
			}
		}
		if changes == before {
			break
		}
		before = changes
	}
	for _, d := range s.dirs {
		if err := d.unreadable(); err != nil {
			return none, err
		}
	}
	return none, ErrMissing
}

// check holds an object to its name. Content made to collide with another's
// name is refused, as git does.
func check(o Object, id plumbing.Hash) error {
	got, err := o.ID()
	if err == nil && got != id {
		err = damaged("its content hashes to %s", got)
	}
	return err
}
