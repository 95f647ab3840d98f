// Package packfile reads and writes the objects of a Git repository: loose
// objects, packs with their indexes, and the object directories that a
// repository borrows from. It exists because go-git reads a whole index to
// find one object and writes every object to a file of its own.
//
// A [Store] promises that what it returns hashes to the name that was asked
// for, that a damaged file is an error that is [ErrDamaged] and never a panic
// or an allocation that the file merely claims to need, and that an object
// which is nowhere is [ErrMissing], never fs.ErrNotExist. What it writes is
// complete on the disk before it gets its name, and `git gc` leaves it alone
// until [Store.Release]. [Store.Verify] finds any bit of a pack or index that
// changed; [Store.Merge] makes one pack of many and loses nothing, wherever it
// stops. A directory that is a cache is removed whole ([Remove]), never while
// a Store uses it ([OpenRemovable]).
//
// A [Batch] is what is to be written or sent: objects that a program made, each
// maybe as a delta on an earlier version, or those of a pack that was received
// ([Decode]).
//
// # Loose objects (gitrepository-layout(5))
//
//	objects/<2 hex>/<38 hex>    zlib("<type> <size>\0<content>")
//
// # Packs (gitformat-pack(5))
//
//	objects/pack/pack-<40 hex>.pack
//	    "PACK", version 2, number of objects       4 bytes each, big-endian
//	    entries: type and size, base, zlib(content or delta)
//	    SHA-1 of all of the above
//	    (the name is a random one: no two packs are ever the same file)
//	objects/pack/pack-<40 hex>.keep
//	    "countersign-<16 hex>\n": held until a ref leads to what is in it
//	objects/countersign-<16 hex>/
//	    lock, and files that are not done; it is there while a pack is written or held
//	objects/lock
//	    in a removable directory; locked, as one of many, while a Store uses it
//	objects/pack/pack-<40 hex>.idx, version 2
//	    "\377tOc", 2
//	    256 x 4 bytes: how many names begin with this byte or a lower one
//	    sorted names (20 bytes), CRC-32 of entries (4), offsets (4)
//	    offsets of 8 bytes, for those whose 4 bytes have the first bit set
//	    SHA-1 of the pack, SHA-1 of all of the above
//
// An entry's delta is put on a base in the same pack, named by how far back it
// lies (OFS_DELTA) or by its hash (REF_DELTA). A delta says the sizes of its
// base and of what it makes, and then what to copy of the base and what to
// insert. This package writes only OFS_DELTA, at most 50 on each other, each of
// which copies the beginning, inserts once and copies the end: an append changes
// a tree in one place, so a search would find nothing better. Small content
// stands in zlib streams that do not compress, since to do so takes longer than
// all else that happens to it. Indexes of version 1, which git
// last wrote in 2007, are not read; multi-pack indexes are not needed.
package packfile

import (
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"

	"github.com/countersign-dev/countersign/gitstore/object"
)

// What reading an object may return.
var (
	ErrMissing = object.ErrMissing
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
// removable ones, which need not be there yet: [Remove] leaves them alone from
// when an object is first looked for in them. Files stay open between reads,
// until Close.
func Open(objectsDir string, removable ...string) (*Store, error) {
	paths, err := borrow(objectsDir, 0)
	if err != nil {
		return nil, err
	}
	s := &Store{cache: newCache(), hold: hold{objects: objectsDir, held: map[string]bool{}}}
	for _, path := range paths {
		s.dirs = append(s.dirs, &dir{path: path})
	}
	for _, path := range removable {
		s.dirs = append(s.dirs, &dir{path: path, removable: true})
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

// An object is looked for at most maxLooks times while others move it about, and is
// in none of the packs after as many lists that are the same as sameLists: one that
// was read while packs came and went may have neither the old pack nor the new.
const (
	maxLooks  = 30
	sameLists = 2
)

// find asks the directories in turn. While a human thinks about a change, `git
// gc` may move every loose object into a new pack and delete the old ones, so
// what is not found is looked for again in a new list, until that stays the same. What is in none may be in a pack whose index cannot be read: it is
// not missing then.
func find[T any](s *Store, get func(*dir) (T, error)) (T, error) {
	var none T
	before, same := -1, 0
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
		if same++; changes != before {
			before, same = changes, 0
		}
		if same == sameLists {
			break
		}
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

// maxBorrow is how long a chain of repositories that borrow from each other
// may be, as in git itself.
const maxBorrow = 5

// borrow returns an objects directory and those that info/alternates names,
// and that those name (gitrepository-layout(5)).
func borrow(objectsDir string, depth int) ([]string, error) {
	if depth > maxBorrow {
		return nil, fmt.Errorf("%s: its alternates lead through too many repositories", objectsDir)
	}
	if info, err := os.Stat(objectsDir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("opening the objects in %s: not a directory (%v)", objectsDir, err)
	}
	named, err := os.ReadFile(filepath.Join(objectsDir, "info", "alternates"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the alternates: %w", err)
	}
	out := []string{objectsDir}
	for dir := range strings.SplitSeq(string(named), "\n") {
		dir = strings.TrimSuffix(dir, "\r")
		if dir == "" || strings.HasPrefix(dir, "#") {
			continue
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(objectsDir, dir)
		}
		below, err := borrow(filepath.Clean(dir), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// ID is the object's name, the SHA-1 of "<type> <size>\0<content>". Content
// that was made to share its name with another's is an error (ErrDamaged), as
// in git itself (sha1dc).
func (o Object) ID() (plumbing.Hash, error) {
	h := hashers.Get().(hash.Hash)
	defer hashers.Put(h)
	h.Reset()
	var head [32]byte
	text := append(append(head[:0], o.Type.Bytes()...), ' ')
	_, _ = h.Write(append(strconv.AppendInt(text, int64(len(o.Data)), 10), 0))
	_, _ = h.Write(o.Data)
	var id plumbing.Hash
	if safe, ok := h.(interface {
		CollisionResistantSum([]byte) ([]byte, bool)
	}); ok {
		if _, attack := safe.CollisionResistantSum(id[:0]); attack {
			return id, damaged("its content is one half of a SHA-1 collision")
		}
		return id, nil
	}
	h.Sum(id[:0])
	return id, nil
}

var hashers = sync.Pool{New: func() any { return hash.New(crypto.SHA1) }}
