package gitstore

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// objects is the object database: the repository's own, then those that it
// borrows from. go-git reads no borrowed object outside the repository, and it
// lists the packs once; while a human thinks about a change, `git gc` may move
// every loose object into a new one. So what is not found is looked for once
// more in a new list.
type objects struct {
	*filesystem.Storage
	borrowed []*filesystem.Storage
}

// EncodedObject returns an object.
func (o objects) EncodedObject(t plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	return find(o, func(s *filesystem.Storage) (plumbing.EncodedObject, error) { return s.EncodedObject(t, h) })
}

// EncodedObjectSize returns the number of bytes of an object.
func (o objects) EncodedObjectSize(h plumbing.Hash) (int64, error) {
	return find(o, func(s *filesystem.Storage) (int64, error) { return s.EncodedObjectSize(h) })
}

func find[T any](o objects, get func(*filesystem.Storage) (T, error)) (T, error) {
	var none T
	for _, s := range append([]*filesystem.Storage{o.Storage}, o.borrowed...) {
		found, err := get(s)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			s.Reindex()
			found, err = get(s)
		}
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return found, err
		}
	}
	return none, plumbing.ErrObjectNotFound
}

// maxBorrow is how long a chain of repositories that borrow from each other
// may be, as in git itself.
const maxBorrow = 5

// borrow opens what objects/info/alternates of a Git directory names, and what
// those name (gitrepository-layout(5)).
func borrow(gitDir string, depth int) ([]*filesystem.Storage, error) {
	dirs, err := alternates(filepath.Join(gitDir, "objects"))
	if err != nil || len(dirs) == 0 {
		return nil, err
	}
	if depth > maxBorrow {
		return nil, fmt.Errorf("%s: objects are borrowed over too many repositories", gitDir)
	}
	var out []*filesystem.Storage
	for _, dir := range dirs {
		g, err := git.PlainOpen(filepath.Dir(dir))
		if err != nil {
			return nil, fmt.Errorf("opening %s, which objects are borrowed from: %w", dir, err)
		}
		store, ok := g.Storer.(*filesystem.Storage)
		if !ok {
			return nil, fmt.Errorf("opening %s: unexpected storage %T", dir, g.Storer)
		}
		below, err := borrow(filepath.Dir(dir), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(append(out, store), below...)
	}
	return out, nil
}

func alternates(objectsDir string) ([]string, error) {
	f, err := os.Open(filepath.Join(objectsDir, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		dir := lines.Text()
		if dir == "" || strings.HasPrefix(dir, "#") {
			continue
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(objectsDir, dir)
		}
		out = append(out, filepath.Clean(dir))
	}
	return out, lines.Err()
}
