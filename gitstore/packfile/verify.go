package packfile

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
)

// PackNames lists the packs of the repository itself, not of those that it
// borrows from: "pack-<hex>".
func (s *Store) PackNames() ([]string, error) { return packNames(s.dirs[0].path) }

func packNames(objectsDir string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(objectsDir, "pack"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the packs: %w", err)
	}
	have := map[string]bool{}
	for _, e := range entries {
		have[e.Name()] = true
	}
	for _, e := range entries {
		if base, ok := strings.CutSuffix(e.Name(), ".idx"); ok && have[base+".pack"] {
			names = append(names, base)
		}
	}
	return names, nil
}

// Verify checks every pack and index that the store may read, on all cores: to
// the last bit they are what was written. It does not look at the objects,
// which Read checks. After each piece, progress (which may be nil) is told how
// many bytes are done, of how many; on several goroutines.
func (s *Store) Verify(progress func(done, total int64)) error {
	var paths []string
	var total, done atomic.Int64
	for _, d := range s.dirs {
		names, err := packNames(d.path)
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

// VerifyPack checks one pack of PackNames and its index.
func (s *Store) VerifyPack(name string) error {
	path := filepath.Join(s.dirs[0].path, "pack", name)
	return verifyFiles(path+".pack", path+".idx", func(int) {})
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

// verify checks the whole index and returns its entries in the pack's order.
func (x *index) verify() ([]packed, error) {
	if err := x.parse(int64(len(x.data))); err != nil {
		return nil, err
	}
	end := len(x.data) - idSize
	if sum := sha1.Sum(x.data[:end]); !bytes.Equal(sum[:], x.data[end:]) {
		return nil, damaged("its content is not what its checksum says")
	}
	names := x.data[idxHeaderSize : idxHeaderSize+x.count*int64(idSize)]
	crcs := x.data[idxHeaderSize+x.count*int64(idSize):]
	out := make([]packed, x.count)
	for i := range out {
		e := &out[i]
		copy(e.id[:], names[i*idSize:])
		if i > 0 && bytes.Compare(out[i-1].id[:], e.id[:]) > 0 {
			return nil, damaged("its names are not sorted")
		}
		if first := int(e.id[0]); int64(i) >= int64(x.fanout[first]) || first > 0 && int64(i) < int64(x.fanout[first-1]) {
			return nil, damaged("the fan-out table does not fit the names")
		}
		e.crc = binary.BigEndian.Uint32(crcs[i*4:])
		var err error
		if e.offset, err = x.offset(int64(i)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b packed) int { return int(a.offset - b.offset) })
	return out, nil
}

// verifyPack reads a pack once. Its entries fill it, so that where one ends is
// where the next one begins.
func verifyPack(f *os.File, x *index, entries []packed, read func(int)) error {
	end, err := (&pack{index: x}).checkFile(f)
	if err != nil {
		return err
	}
	for i, e := range entries {
		if i == 0 && e.offset != packHeaderSize || i > 0 && e.offset == entries[i-1].offset || e.offset >= end {
			return damaged("the index has an object where none begins")
		}
	}
	if len(entries) == 0 && end != packHeaderSize {
		return damaged("it has more than its objects")
	}
	all, buf := sha1.New(), make([]byte, 256<<10)
	crc, at, next := crc32.NewIEEE(), int64(0), 0 // the entry that begins at or after at
	check := func() error {
		if next > 0 && crc.Sum32() != entries[next-1].crc {
			return damaged("object %s is not what its checksum says", entries[next-1].id)
		}
		crc.Reset()
		next++
		return nil
	}
	for at < end {
		n, err := io.ReadFull(f, buf[:min(int64(len(buf)), end-at)])
		if err != nil {
			return readError(err)
		}
		read(n)
		_, _ = all.Write(buf[:n])
		for rest := buf[:n]; len(rest) > 0; {
			if next < len(entries) && at == entries[next].offset {
				if err := check(); err != nil {
					return err
				}
			}
			some := int64(len(rest))
			if next < len(entries) {
				some = min(some, entries[next].offset-at)
			}
			_, _ = crc.Write(rest[:some])
			rest, at = rest[some:], at+some
		}
	}
	if len(entries) > 0 {
		if err := check(); err != nil {
			return err
		}
	}
	read(idSize)
	if plumbing.Hash(all.Sum(nil)) != x.packSum {
		return damaged("its content is not what its checksum says")
	}
	return nil
}
