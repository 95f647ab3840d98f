package packfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A Held is a pack that `git gc` leaves alone until it is released: the path of its files
// without their extensions. Beside it is a .keep, as git-receive-pack(1) makes one: it is
// there before the pack is, and goes after a ref leads to the objects. A pack that is there
// without one when `git repack -d` begins may be removed when that ends.
type Held string

// keepText is in the .keep of a Held, and of nobody else's.
const keepText = "countersign\n"

// Write adds the objects of a batch to an objects directory as one pack, however few they are.
// The files are on the disk then. Objects that are there already are written again, under a
// new name: an old pack that no ref needs may be about to be deleted.
func Write(objectsDir string, b *Batch) (Held, error) {
	return place(objectsDir, func(h Held) error {
		pack, err := h.create(".pack")
		if err != nil {
			return err
		}
		entries, sum, err := b.writeTo(pack)
		synced := make(chan error, 1)
		go func() { synced <- errors.Join(pack.Sync(), pack.Close()) }() // as long as the index's
		errIdx := h.createSynced(".new", encodeIndex(b.Format, entries, sum))
		if err = errors.Join(err, <-synced, errIdx); err == nil { // a pack without its index does not count
			err = os.Rename(string(h)+".new", string(h)+".idx")
		}
		return err
	})
}

// createSynced makes a file of the pack that is on the disk then.
func (h Held) createSynced(ext string, data []byte) error {
	file, err := h.create(ext)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

// Hold writes the objects of a batch, if there are any, and holds them while do has a ref lead to them.
func Hold(objectsDir string, b *Batch, do func() error) error {
	var held Held
	var err error
	if b.Len() > 0 {
		held, err = Write(objectsDir, b)
	}
	if err == nil {
		err = do()
	}
	held.Release()
	return err
}

// writeTo writes the batch as a pack.
func (b *Batch) writeTo(to io.Writer) ([]packed, []byte, error) {
	if b.pack == nil {
		return encodePack(to, b)
	}
	_, err := to.Write(b.pack.data)
	return b.pack.entries, b.pack.sum, err
}

// Take moves a pack and its index, whose paths are from and an extension, to an objects
// directory on the same disk.
func Take(objectsDir, from string) (Held, error) {
	return place(objectsDir, func(h Held) error {
		for _, ext := range []string{".pack", ".idx"} {
			if err := errors.Join(syncPath(from+ext), os.Rename(from+ext, string(h)+ext)); err != nil {
				return err
			}
		}
		return nil
	})
}

// place has write make the files of a pack with a name of its own.
func place(objectsDir string, write func(Held) error) (h Held, err error) {
	dir := filepath.Join(objectsDir, "pack")
	h = Held(filepath.Join(dir, fmt.Sprintf("pack-%016x%016x%08x", rand.Uint64(), rand.Uint64(), rand.Uint32())))
	keep, err := h.create(".keep")
	if errors.Is(err, fs.ErrNotExist) && os.MkdirAll(dir, 0o777) == nil {
		keep, err = h.create(".keep")
	}
	if err == nil {
		_, err = keep.WriteString(keepText)
		err = errors.Join(err, keep.Close())
		if err == nil {
			err = write(h)
		}
		if err != nil {
			Remove([]string{string(h)})
		} else if err = syncPath(dir); err != nil {
			h.Release() // git may have left to it what is in it
		}
	}
	if err != nil {
		return "", fmt.Errorf("writing Git objects: %w", err)
	}
	return h, nil
}

// create makes a file of the pack, which nobody may write to later.
func (h Held) create(ext string) (*os.File, error) {
	return os.OpenFile(string(h)+ext, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
}

// Release lets the pack go: a ref leads to its objects now, or nobody wants them.
func (h Held) Release() {
	if h != "" {
		_ = os.Remove(string(h) + ".keep") // one that stays is Sweep's
	}
}

// Small are the packs that are worth being made one of where there are more than most, without their extensions: each
// that is left is more than twice as large as all smaller ones together. A pack that says more than what is in it (git-repack(1): it is
// kept, promised, cruft, or has a bitmap) is never among them, and none is where packs have a common index.
func Small(objectsDir string, most int) ([]string, error) {
	dir := filepath.Join(objectsDir, "pack")
	files, err := Files(dir, "", "")
	sizes := map[string]int64{}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && filepath.Ext(file) == ".pack" {
			sizes[strings.TrimSuffix(file, ".pack")] = info.Size()
		}
	}
	for _, file := range files {
		if ext := filepath.Ext(file); ext == "" && strings.HasPrefix(filepath.Base(file), "multi-pack-index") {
			return nil, nil
		} else if !slices.Contains([]string{".pack", ".idx", ".rev"}, ext) {
			delete(sizes, strings.TrimSuffix(file, ext))
		}
	}
	if len(sizes) <= most {
		return nil, err
	}
	paths := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) })
	var smaller int64
	many := 0
	for i, path := range paths {
		if sizes[path] <= 2*smaller {
			many = i + 1
		}
		smaller += sizes[path]
	}
	return paths[:many], err
}

// Remove removes packs, of each the index first: without its pack it is an error to git.
func Remove(paths []string) {
	for _, path := range paths {
		for _, ext := range []string{".idx", ".new", ".rev", ".pack", ".keep"} {
			_ = os.Remove(path + ext)
		}
	}
}

// TempPrefix begins the names of directories beside git's own in which packs are prepared: git
// removes what is called tmp_ something at any time (git-prune(1)), and nothing else.
const TempPrefix = "countersign-"

// Files are those of a directory whose names begin and end so; none where there is no directory. The directory is
// no pattern, as it is for filepath.Glob.
func Files(dir, prefix, suffix string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, err
}

// Sweep releases the packs that processes held which were killed more than a day ago, and
// removes what they had not finished. A .keep of anybody else's is left alone.
func Sweep(objectsDir string, now time.Time) {
	old := func(dir, prefix, suffix string) []string {
		found, _ := Files(dir, prefix, suffix)
		return slices.DeleteFunc(found, func(file string) bool {
			info, err := os.Stat(file)
			return err != nil || now.Sub(info.ModTime()) < 24*time.Hour
		})
	}
	for _, dir := range old(objectsDir, TempPrefix, "") {
		_ = os.RemoveAll(dir)
	}
	for _, keep := range old(filepath.Join(objectsDir, "pack"), "", ".keep") {
		h := Held(strings.TrimSuffix(keep, ".keep"))
		if text, err := os.ReadFile(keep); err != nil || string(text) != keepText {
			continue
		}
		if _, err := os.Stat(string(h) + ".idx"); errors.Is(err, fs.ErrNotExist) {
			Remove([]string{string(h)})
		}
		h.Release()
	}
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
