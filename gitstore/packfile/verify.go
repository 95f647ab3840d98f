package packfile

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
)

// PackNames lists the packs of the repository itself, not of those that it
// borrows from: "pack-<hex>".
func (s *Store) PackNames() ([]string, error) {
	names, _, err := packNames(s.dirs[0].path)
	return names, err
}

// Verify checks every pack and index that the store may read, on all cores: to
// the last bit they are what was written. It does not look at the objects,
// which Read checks. After each piece, progress (which may be nil) is told how
// many bytes are done, of how many; on several goroutines.
func (s *Store) Verify(progress func(done, total int64)) error {
	var paths []string
	var total, done atomic.Int64
	for _, d := range s.dirs {
		names, _, err := packNames(d.path)
		if err != nil {
			return err
		}
		for _, name := range names {
			path := filepath.Join(d.path, "pack", name)
			paths = append(paths, path)
			for _, ext := range []string{".pack", ".idx"} {
				if info, err := os.Stat(path + ext); err == nil { // else verifyFiles tells
					total.Add(info.Size())
				}
			}
		}
	}
	errs := make([]error, len(paths))
	Parallel(len(paths), 1, func(i int) {
		errs[i] = verifyFiles(paths[i]+".pack", paths[i]+".idx", func(n int) {
			if now := done.Add(int64(n)); progress != nil {
				progress(now, total.Load())
			}
		})
	})
	return errors.Join(errs...)
}

// verifyFiles holds a pack to its index, and both to their checksums.
func verifyFiles(pack, idx string, read func(int)) error {
	data, err := os.ReadFile(idx)
	if err != nil {
		return fmt.Errorf("checking an index: %w", err)
	}
	read(len(data))
	x := &index{data: data}
	entries, err := x.verify()
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(idx), err)
	}
	f, err := os.Open(pack)
	if err != nil {
		return fmt.Errorf("checking a pack: %w", err)
	}
	if err := errors.Join(verifyPack(f, x, entries, read), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(pack), err)
	}
	return nil
}

// verifyPack reads a pack once.
func verifyPack(f *os.File, x *index, entries []packed, read func(int)) error {
	end, err := (&pack{index: x}).checkFile(f)
	if err != nil {
		return err
	}
	all, each := sha1.New(), &entrySums{entries: entries}
	n, err := io.CopyBuffer(io.MultiWriter(all, each, progressWriter(read)), io.LimitReader(f, end), make([]byte, 256<<10))
	switch {
	case err != nil:
		return err
	case n < end:
		return damaged("it is cut short")
	case plumbing.Hash(all.Sum(nil)) != x.packSum:
		return damaged("its content is not what its checksum says")
	}
	read(idSize)
	return each.end()
}

// entrySums checks what is written to it, a pack without its checksum, against
// the index. The entries, in their order, fill the pack: where one ends the
// next one begins.
type entrySums struct {
	entries []packed
	next    int // the first entry that has not begun
	at      int64
	crc     uint32
}

func (s *entrySums) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := int64(len(rest))
		if s.next < len(s.entries) {
			until := s.entries[s.next].offset
			if until == s.at {
				if err := s.begin(); err != nil {
					return 0, err
				}
				continue
			}
			n = min(n, until-s.at)
		}
		s.crc = crc32.Update(s.crc, crc32.IEEETable, rest[:n])
		s.at, rest = s.at+n, rest[n:]
	}
	return len(p), nil
}

// begin ends the entry before the next one. Before the first is the header.
func (s *entrySums) begin() error {
	if s.next > 0 {
		if e := s.entries[s.next-1]; e.crc != s.crc {
			return damaged("object %s is not what its checksum says", e.id)
		}
	} else if s.at != packHeaderSize {
		return damaged("the first object is not at the beginning")
	}
	s.crc = 0
	s.next++
	return nil
}

func (s *entrySums) end() error {
	if s.next < len(s.entries) {
		return damaged("the index has an object outside the pack")
	}
	return s.begin()
}

type progressWriter func(int)

func (w progressWriter) Write(p []byte) (int, error) {
	w(len(p))
	return len(p), nil
}
