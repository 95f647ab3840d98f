package status

import (
	"crypto/sha1"
	"io"
	"strconv"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/attributes"
	"github.com/countersign-dev/countersign/gitstore/index"
)

// The types of a file, as lstat and the index tell them.
const (
	typeMask    = 0o170000
	typeDir     = 0o040000
	typeRegular = 0o100000
	typeLink    = 0o120000
)

// A look is what lstat tells of a file.
type look struct {
	mode uint32
	size int64
	index.Stat
}

// size32 is a size as git notes it: 0 would mean that the file is to be read.
func size32(size int64) uint32 {
	if size > 0 && uint32(size) == 0 {
		return 0x80000000
	}
	return uint32(size)
}

// differs reports whether a file is not what its entry says. Its content is read
// where the rest leaves that open: where it was written over or only touched, or
// in the second in which the index was written or later, so that it may have
// changed after git looked.
func (w *walker) differs(dir *dir, e index.Entry, s look, name string) (bool, error) {
	if e.IntentToAdd {
		return true, nil
	}
	kind := s.mode & typeMask
	switch e.Mode & typeMask {
	case index.ModeGitlink:
		if kind != typeDir || w.Submodule == nil {
			return kind != typeDir, nil
		}
		id, found := w.Submodule(string(e.Name))
		return found && id != e.ID, nil
	case typeLink:
		if kind != typeLink && !(w.NoLinks && kind == typeRegular) {
			return true, nil
		}
	default:
		if kind != typeRegular || !w.IgnoreMode && (s.mode^e.Mode)&0o100 != 0 {
			return true, nil
		}
	}
	same := w.looksSame(e.Stat, s)
	racy := w.x.Written.Unix() <= int64(e.Stat.MtimeSec) // as git is mostly built, whole seconds count
	switch {
	case same && (e.Stat.Size != 0 || e.ID == emptyBlob) && !racy:
		return false, nil
	case e.Stat.Size != 0 && e.Stat.Size != s.Size: // 0 is also git's note that it is to read the file
		return true, nil // as git says, whose add may find that it is the same after all
	}
	id, err := dir.blobID(name, kind, s.size)
	if err != nil || id == e.ID {
		return false, err
	}
	return w.isOther(dir, e, kind, name)
}

// isOther reports whether a file whose bytes are not the blob's is none that Git
// takes for it.
func (w *walker) isOther(dir *dir, e index.Entry, kind uint32, name string) (bool, error) {
	if w.Form == nil || kind != typeRegular || e.Mode&typeMask != typeRegular {
		return true, nil
	}
	form, err := w.Form(string(e.Name))
	if err != nil || form == (attributes.Form{}) {
		return true, err
	}
	data, err := dir.read(name)
	if err != nil {
		return false, err
	}
	blob, err := w.Blob(e.ID)
	return !form.Same(data, blob), err
}

// emptyBlob is the id of a file without content.
var emptyBlob = plumbing.ComputeHash(plumbing.BlobObject, nil)

// looksSame compares what git noted with what lstat tells. Nanoseconds count
// where git noted some.
func (w *walker) looksSame(a index.Stat, s look) bool {
	b := s.Stat
	if a.MtimeSec != b.MtimeSec || a.Size != b.Size {
		return false
	}
	if w.CheckLess {
		return true
	}
	if a.MtimeNsec != b.MtimeNsec && a.MtimeNsec != 0 {
		return false
	}
	if !fullStat {
		return true
	}
	if !w.IgnoreCtime && (a.CtimeSec != b.CtimeSec || a.CtimeNsec != b.CtimeNsec && a.CtimeNsec != 0) {
		return false
	}
	return a.Ino == b.Ino && a.UID == b.UID && a.GID == b.GID
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// hashBlob is the id of a blob of this size. Where the content has another size
// the id is of no file that there is.
func hashBlob(r io.Reader, size int64) (id plumbing.Hash, err error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	h := sha1.New()
	h.Write(strconv.AppendInt(append((*buf)[:0], "blob "...), size, 10))
	h.Write([]byte{0})
	for {
		n, err := r.Read(*buf)
		h.Write((*buf)[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return id, err
		}
	}
	h.Sum(id[:0])
	return id, nil
}
