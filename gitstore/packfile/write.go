package packfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"

	"github.com/go-git/go-git/v5/plumbing"
)

// WritePack adds the objects as one pack, however few, and returns the pack's
// name: "pack-<hex>". The files are on the disk then, and `git gc` leaves the
// pack alone until Release. Objects that the repository has already are written
// again, under a new name: an old pack that no ref needs may be about to be
// deleted.
func (s *Store) WritePack(b *Batch) (name string, err error) {
	encode := func(to io.Writer) ([]packed, plumbing.Hash, error) { return encodePack(to, b) }
	if p := b.pack; p != nil {
		encode = func(to io.Writer) ([]packed, plumbing.Hash, error) {
			_, err := p.WriteTo(to)
			return p.entries, p.sum, err
		}
	}
	name, err = s.writePack(encode, nil)
	return name, wrapWrite(err)
}

// TakePacks lets fill write packs to the folder objects/pack of a directory that
// is empty and goes afterwards, and adds them as WritePack does.
func (s *Store) TakePacks(fill func(dir string) error) (names []string, err error) {
	dir, err := s.hold.begin()
	if err != nil {
		return nil, wrapWrite(err)
	}
	defer s.hold.end()
	if dir, err = os.MkdirTemp(dir, "take"); err != nil {
		return nil, wrapWrite(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := fill(dir); err != nil {
		return nil, err
	}
	found, _, err := packNames(filepath.Join(dir, "objects"))
	if err != nil {
		return nil, err
	}
	for _, pack := range found {
		path := filepath.Join(dir, "objects", "pack", pack)
		if err = errors.Join(syncPath(path+".pack"), syncPath(path+".idx")); err != nil {
			break
		}
		name, err := s.place(path+".pack", path+".idx")
		if err != nil {
			return names, wrapWrite(err)
		}
		names = append(names, name)
	}
	return names, wrapWrite(err)
}

func wrapWrite(err error) error {
	if err != nil {
		err = fmt.Errorf("writing Git objects: %w", err)
	}
	return err
}

// writePack writes a pack and its index, which check, if any, may refuse before they get
// their names.
func (s *Store) writePack(encode func(io.Writer) ([]packed, plumbing.Hash, error), check func(pack, idx string) error) (_ string, err error) {
	dir, err := s.hold.begin()
	if err != nil {
		return "", err
	}
	defer s.hold.end()
	pack, err := createTemp(dir, "pack")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, pack.remove()) }()
	entries, sum, err := encode(pack)
	if err != nil {
		return "", err
	}
	idx, err := createTemp(dir, "idx")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, idx.remove()) }()
	var errPack, errIdx error
	atOnce(2, func(i int) {
		if i == 0 {
			errPack = pack.finish()
		} else if _, errIdx = idx.Write(encodeIndex(entries, sum)); errIdx == nil {
			errIdx = idx.finish()
		}
	})
	if err := errors.Join(errPack, errIdx); err != nil {
		return "", err
	}
	if check != nil {
		if err := check(pack.Name(), idx.Name()); err != nil {
			return "", err
		}
	}
	return s.place(pack.Name(), idx.Name())
}

// place gives a pack a name of its own, held: first its .keep, then the pack,
// and the index last, as a pack without one does not count.
func (s *Store) place(pack, idx string) (name string, err error) {
	holder, err := s.hold.begin()
	if err != nil {
		return "", err
	}
	name = fmt.Sprintf("pack-%016x%016x%08x", rand.Uint64(), rand.Uint64(), rand.Uint32())
	s.hold.mu.Lock()
	s.hold.held[name] = true
	s.hold.mu.Unlock()
	to := filepath.Join(s.dirs[0].path, "pack", name)
	defer func() {
		if err != nil {
			_ = removePack(to)
			s.Release(name)
		}
	}()
	keep, err := createTemp(holder, "keep")
	if err != nil {
		return "", err
	}
	_, err = keep.WriteString(filepath.Base(holder) + "\n")
	if err = errors.Join(err, keep.Close(), os.MkdirAll(filepath.Dir(to), 0o777)); err != nil {
		return "", err
	}
	for _, file := range []struct{ from, to string }{{keep.Name(), to + ".keep"}, {pack, to + ".pack"}, {idx, to + ".idx"}} {
		if err := os.Rename(file.from, file.to); err != nil {
			return "", err
		}
	}
	s.dirs[0].forget(nil)
	return name, syncPath(filepath.Dir(to))
}

// tempFile is a file that has no name of its own yet.
type tempFile struct{ *os.File }

// createTemp makes a file in a hold's directory. Like all files of objects,
// nobody may write to it later.
func createTemp(dir, prefix string) (tempFile, error) {
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%s%016x", prefix, rand.Uint64())), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	return tempFile{f}, err
}

// finish puts the file on the disk and closes it.
func (t tempFile) finish() error { return errors.Join(t.Sync(), t.Close()) }

// remove removes the file unless it has another name by now.
func (t tempFile) remove() error {
	_ = t.Close() // often it is closed already
	if err := os.Remove(t.Name()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncPath puts a file, or the names in a directory, on the disk. Windows has no
// such call for what is only open to be read.
func syncPath(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
