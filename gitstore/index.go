package gitstore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// indexCache holds the entries of the index, by path, as they were when its file had
// this sum.
type indexCache struct {
	sum     plumbing.Hash
	entries map[string]*index.Entry
}

// indexEntries reads the index, which may be large, unless it is the one that was
// read last: its file ends with the SHA-1 of what is before (gitformat-index(5)),
// or with zeros where Git was told not to compute it.
func (r *Repo) indexEntries() (map[string]*index.Entry, error) {
	sum, err := r.indexSum()
	if err != nil {
		return nil, err
	}
	if !sum.IsZero() && sum == r.index.sum {
		return r.index.entries, nil
	}
	idx, err := r.git.Storer.Index()
	if err != nil {
		return nil, err
	}
	entries := make(map[string]*index.Entry, len(idx.Entries))
	for _, e := range idx.Entries {
		entries[e.Name] = e
	}
	// Somebody may have written it in between: then what was read has no name.
	if again, err := r.indexSum(); err == nil && again == sum {
		r.index = indexCache{sum, entries}
	}
	return entries, nil
}

// indexSum is the end of the index file; zero where there is none.
func (r *Repo) indexSum() (sum plumbing.Hash, err error) {
	f, err := os.Open(filepath.Join(r.ownDir, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return sum, nil
	}
	if err != nil {
		return sum, err
	}
	defer f.Close()
	if _, err = f.Seek(-int64(len(sum)), io.SeekEnd); err == nil {
		_, err = io.ReadFull(f, sum[:])
	}
	return sum, err
}
