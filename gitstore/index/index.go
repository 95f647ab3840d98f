// Package index reads Git's index file (gitformat-index(5)), versions 2, 3 and 4,
// in place: one read of the file, twelve bytes an entry beside it, and no
// allocation for any of them.
//
// The checksum at the end is not computed, as "git status" does not compute it:
// everything is checked to be within the file, and a name to be a path below the
// working tree, before it is used.
//
// Of the extensions the cached trees are read ("TREE"). What only makes git
// faster is passed over, "FSMN" among it: what a file system monitor said last
// is of use only to who asks it again, which git does by running a hook.
package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sort"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrSplit is an index of which a part is in another file (core.splitIndex).
var ErrSplit = errors.New("it is split (core.splitIndex)")

// An Index is an index file as it was when it was read. It does not change, and
// several goroutines may use it.
type Index struct {
	// Written is when the file was written. A file of the working tree that was
	// changed in that second or later may have changed after the entry was made.
	Written time.Time
	// Sparse says that entries may stand for whole directories.
	Sparse bool

	data    []byte
	names   []byte // what entries' names are in: data, but in version 4
	entries []slot
	trees   []byte // an extension
	sum     plumbing.Hash
}

// A slot says where an entry is.
type slot struct{ at, name, nameLen uint32 }

// A Stat is what an entry holds of lstat(2), each cut to 32 bits.
type Stat struct {
	CtimeSec, CtimeNsec, MtimeSec, MtimeNsec uint32
	Dev, Ino                                 uint32
	UID, GID, Size                           uint32
}

// An Entry is one entry. Name is a part of the index; it must not be changed.
type Entry struct {
	Name         []byte
	Mode         uint32
	ID           plumbing.Hash
	Stat         Stat
	Stage        int  // 0, or which side of a merge that is not resolved
	AssumeValid  bool // git-update-index --assume-unchanged
	SkipWorktree bool // it need not be checked out
	IntentToAdd  bool // git-add --intent-to-add
}

// The modes of entries that are no files.
const (
	ModeDir     = 0o040000 // of a sparse index
	ModeLink    = 0o120000
	ModeGitlink = 0o160000
)

const (
	headerSize = 12
	statSize   = 40 // with the mode, before the id
	idSize     = 20
	fixedSize  = statSize + idSize + 2 // and the flags

	flagAssumeValid  = 0x8000
	flagExtended     = 0x4000
	flagStage        = 0x3000
	flagNameLen      = 0x0fff
	flagSkipWorktree = 0x4000 // of the extended ones
	flagIntentToAdd  = 0x2000
)

// Read reads an index file. Where there is none, the index is empty.
func Read(name string) (*Index, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &Index{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > math.MaxUint32 {
		return nil, errors.New("it is larger than 4 GiB")
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, err
	}
	x, err := Parse(data)
	if err != nil {
		return nil, err
	}
	x.Written = info.ModTime()
	return x, nil
}

// Parse reads the content of an index file, which the Index keeps.
func Parse(data []byte) (*Index, error) {
	x := &Index{data: data, names: data}
	if len(data) < headerSize+idSize || string(data[:4]) != "DIRC" {
		return nil, errors.New("it is no index file")
	}
	copy(x.sum[:], data[len(data)-idSize:])
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return nil, fmt.Errorf("it has version %d", version)
	}
	end := len(data) - idSize
	if uint64(count)*(fixedSize+1) > uint64(end) {
		return nil, errCut
	}
	x.entries = make([]slot, 0, count)
	at, err := x.readEntries(count, end, version)
	if err != nil {
		return nil, err
	}
	return x, x.readExtensions(at, end)
}

var errCut = errors.New("it is cut off")

func (x *Index) readEntries(count uint32, end int, version uint32) (at int, err error) {
	if version == 4 {
		x.names = make([]byte, 0, end/2)
	}
	at = headerSize
	var last []byte
	lastStage := -1
	for range count {
		start := at
		if at += fixedSize; at > end {
			return 0, errCut
		}
		flags := binary.BigEndian.Uint16(x.data[at-2:])
		if flags&flagExtended != 0 {
			if at += 2; at > end || version < 3 {
				return 0, errCut
			}
		}
		strip := uint64(0)
		if version == 4 {
			var n int
			if strip, n = offset(x.data[at:end]); n == 0 || strip > uint64(len(last)) {
				return 0, errCut
			}
			at += n
		}
		size := int(flags & flagNameLen)
		if size == flagNameLen { // or longer
			size = max(0, bytes.IndexByte(x.data[at:end], 0))
		} else if version == 4 {
			size -= len(last) - int(strip)
		}
		if size < 0 || at+size >= end || x.data[at+size] != 0 {
			return 0, errCut
		}
		s := slot{at: uint32(start), name: uint32(at), nameLen: uint32(size)}
		if version == 4 { // the last name's beginning, and this
			s.name, s.nameLen = uint32(len(x.names)), uint32(len(last)-int(strip)+size)
			x.names = append(append(x.names, last[:len(last)-int(strip)]...), x.data[at:at+size]...)
			at += size + 1
		} else {
			at = start + (at+size-start+8)&^7 // at least one NUL, to a multiple of eight
		}
		if s.nameLen == 0 { // it is in the other part
			return 0, ErrSplit
		}
		name, stage := x.names[s.name:s.name+s.nameLen], int(flags&flagStage>>12)
		same := shared(last, name)
		if same == len(name) && (same < len(last) || stage <= lastStage) || same < len(last) && same < len(name) && name[same] < last[same] {
			return 0, fmt.Errorf("its entry %+q is not in order", name)
		}
		dir := binary.BigEndian.Uint32(x.data[start+24:]) == ModeDir
		if from := bytes.LastIndexByte(name[:same], '/') + 1; !isPath(name[from:], dir) {
			return 0, fmt.Errorf("its entry %+q is no path", name)
		}
		x.entries = append(x.entries, s)
		last, lastStage = name, stage
	}
	return at, nil
}

// shared returns how many bytes two names begin with that are the same.
func shared(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+8 <= n && binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]) {
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// isPath reports whether a name is a path below the working tree: no component
// is empty, "." or "..", and none has a NUL. A directory's ends in a slash.
func isPath(name []byte, dir bool) bool {
	if dir {
		var ok bool
		if name, ok = bytes.CutSuffix(name, []byte("/")); !ok {
			return false
		}
	}
	start := 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			if name[i] == 0 {
				return false
			}
			continue
		}
		if n := i - start; n == 0 || name[start] == '.' && (n == 1 || n == 2 && name[start+1] == '.') {
			return false
		}
		start = i + 1
	}
	return true
}

// offset reads a number as packs and version 4 write it; n is 0 where it is cut
// off or too large.
func offset(b []byte) (value uint64, n int) {
	for i, c := range b[:min(len(b), 5)] {
		if i > 0 {
			value++
		}
		value = value<<7 | uint64(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}

func (x *Index) readExtensions(at, end int) error {
	for at < end {
		if end-at < 8 {
			return errCut
		}
		kind, size := string(x.data[at:at+4]), binary.BigEndian.Uint32(x.data[at+4:])
		if at += 8; uint64(size) > uint64(end-at) {
			return errCut
		}
		body := x.data[at : at+int(size)]
		at += int(size)
		switch {
		case kind == "TREE":
			x.trees = body
		case kind == "sdir":
			x.Sparse = true
		case kind == "link":
			return ErrSplit
		case kind[0] < 'A' || kind[0] > 'Z':
			return fmt.Errorf("it has an extension %+q", kind)
		}
	}
	return nil
}

// Sum names the content of the index: the file ends with it. It is zero where
// there is none, or git was told not to compute it (index.skipHash).
func (x *Index) Sum() plumbing.Hash { return x.sum }

// Len returns how many entries there are.
func (x *Index) Len() int { return len(x.entries) }

// Name returns the name of an entry. It must not be changed.
func (x *Index) Name(i int) []byte {
	s := x.entries[i]
	return x.names[s.name : s.name+s.nameLen]
}

// Entry returns an entry. They are in the order of their names, then of their
// stages.
func (x *Index) Entry(i int) Entry {
	b := x.data[x.entries[i].at:]
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	e := Entry{
		Name: x.Name(i), Mode: word(6),
		Stat: Stat{word(0), word(1), word(2), word(3), word(4), word(5), word(7), word(8), word(9)},
	}
	copy(e.ID[:], b[statSize:])
	flags := binary.BigEndian.Uint16(b[statSize+idSize:])
	e.Stage, e.AssumeValid = int(flags&flagStage>>12), flags&flagAssumeValid != 0
	if flags&flagExtended != 0 {
		more := binary.BigEndian.Uint16(b[fixedSize:])
		e.SkipWorktree, e.IntentToAdd = more&flagSkipWorktree != 0, more&flagIntentToAdd != 0
	}
	return e
}

// Search returns the first of the entries from lo up to hi whose name is not
// less than name, hi if there is none.
func (x *Index) Search(name []byte, lo, hi int) int {
	return lo + sort.Search(hi-lo, func(i int) bool { return bytes.Compare(x.Name(lo+i), name) >= 0 })
}

// Below returns where the entries end, at the latest at hi, that begin with the
// first size bytes of the name of entry i.
func (x *Index) Below(i, hi, size int) int {
	prefix := x.Name(i)[:size]
	differs := func(i int) bool { return !bytes.HasPrefix(x.Name(i), prefix) }
	// Most directories are small: look near first.
	step := 1
	for i+step < hi && !differs(i+step) {
		step *= 2
	}
	lo := i + step/2
	return lo + sort.Search(min(i+step, hi)-lo, func(k int) bool { return differs(lo + k) })
}

// Find returns the first entry of a name.
func (x *Index) Find(name string) (Entry, bool) {
	i := x.Search([]byte(name), 0, x.Len())
	if i == x.Len() || string(x.Name(i)) != name {
		return Entry{}, false
	}
	return x.Entry(i), true
}

// A File is a file of a tree.
type File struct {
	Name string
	Mode uint32
	ID   plumbing.Hash
}

// Expand returns the index with the files of each directory that one entry
// stands for (git-sparse-checkout(1), "sparse index"), which need not be checked
// out either. files returns those of a tree, in the order of an index.
func (x *Index) Expand(files func(tree plumbing.Hash) ([]File, error)) (*Index, error) {
	out := &Index{Written: x.Written, sum: x.sum}
	add := func(fixed, name []byte) {
		s := slot{uint32(len(out.data)), uint32(len(out.names)), uint32(len(name))}
		out.data, out.names = append(out.data, fixed...), append(out.names, name...)
		out.entries = append(out.entries, s)
	}
	for i, s := range x.entries {
		e := x.Entry(i)
		if e.Mode != ModeDir {
			add(x.data[s.at:s.at+fixedSize+2], e.Name)
			continue
		}
		below, err := files(e.ID)
		if err != nil {
			return nil, err
		}
		for _, f := range below {
			var fixed [fixedSize + 2]byte
			binary.BigEndian.PutUint32(fixed[24:], f.Mode)
			copy(fixed[statSize:], f.ID[:])
			binary.BigEndian.PutUint16(fixed[fixedSize-2:], flagExtended)
			binary.BigEndian.PutUint16(fixed[fixedSize:], flagSkipWorktree)
			add(fixed[:], append(bytes.Clone(e.Name), f.Name...))
		}
	}
	if len(out.data) > math.MaxUint32 {
		return nil, errors.New("it is larger than 4 GiB")
	}
	return out, nil
}
