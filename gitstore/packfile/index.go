package packfile

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	idSize        = len(plumbing.Hash{})
	idxMagic      = "\xfftOc\x00\x00\x00\x02"
	idxHeaderSize = int64(len(idxMagic) + 256*4)

	// bucket is how many names a search in a file ends with: one read.
	bucket = 64
)

// smallIndex is the size up to which an index is held in memory: about 2,300
// objects. Of a larger one only the fan-out table is, so that the cost of
// finding an object hardly grows with the repository, until it has been asked
// for one object in so many bytes. Tests set these.
var (
	smallIndex int64 = 64 << 10
	rareSearch int64 = 16 << 10
)

// largeIndex is never held in memory.
const largeIndex = 32 << 20

// packed is one entry of a pack, as its index tells it.
type packed struct {
	id     plumbing.Hash
	crc    uint32
	offset int64
}

// index is a pack index, version 2.
type index struct {
	file     *os.File // nil if data has all of it
	data     []byte
	searches atomic.Int64
	loaded   atomic.Pointer[[]byte] // all of the file, after many searches
	length   int64

	fanout  [256]uint32
	count   int64
	wide    int64 // offsets of 8 bytes
	packSum plumbing.Hash
}

func openIndex(path string) (_ *index, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	x := &index{file: f}
	if info.Size() <= smallIndex {
		if x.data, err = io.ReadAll(io.LimitReader(f, smallIndex+1)); err != nil {
			return nil, err
		}
		x.file = nil
		if err := f.Close(); err != nil {
			return nil, err
		}
		return x, x.parse(int64(len(x.data)))
	}
	return x, x.parse(info.Size())
}

var errVersion1 = errors.New("an index of version 1, which is not supported: git repack -a -d writes another")

// parse reads the fan-out table and checks that the tables fill the file.
func (x *index) parse(size int64) error {
	x.length = size
	if size < idxHeaderSize+2*int64(idSize) {
		return damaged("too short for an index")
	}
	head, err := x.bytes(0, idxHeaderSize)
	if err != nil {
		return err
	}
	if string(head[:len(idxMagic)]) != idxMagic {
		if slices.IsSortedFunc(slices.Collect(slices.Chunk(head[:4*256], 4)), bytes.Compare) { // it begins with its fan-out table
			return errVersion1
		}
		return damaged("not an index of version 2")
	}
	for i := range x.fanout {
		x.fanout[i] = binary.BigEndian.Uint32(head[len(idxMagic)+4*i:])
		if i > 0 && x.fanout[i] < x.fanout[i-1] {
			return damaged("the fan-out table is not sorted")
		}
	}
	x.count = int64(x.fanout[255])
	rest := size - idxHeaderSize - 2*int64(idSize) - x.count*int64(idSize+4+4)
	if rest < 0 || rest%8 != 0 || rest/8 > x.count {
		return damaged("%d objects do not make %d bytes", x.count, size)
	}
	x.wide = rest / 8
	sum, err := x.bytes(size-2*int64(idSize), int64(idSize))
	copy(x.packSum[:], sum)
	return err
}

// bytes returns n bytes at an offset within the file.
func (x *index) bytes(offset, n int64) ([]byte, error) {
	data := x.data
	if all := x.loaded.Load(); all != nil {
		data = *all
	}
	if x.file == nil || data != nil {
		if offset < 0 || n < 0 || offset > int64(len(data)) || n > int64(len(data))-offset {
			return nil, damaged("the index is cut short")
		}
		return data[offset : offset+n], nil
	}
	b := make([]byte, n)
	if _, err := x.file.ReadAt(b, offset); errors.Is(err, io.EOF) {
		return nil, damaged("the index is cut short")
	} else if err != nil {
		return nil, err
	}
	return b, nil
}

// find returns where in the pack an object is; 0, where none can be, means
// that it is not there.
func (x *index) find(id plumbing.Hash) (int64, error) {
	// All of it is held in memory once that is cheaper than to go on searching in
	// the file.
	if x.file != nil && x.length <= largeIndex && x.searches.Add(1) == x.length/rareSearch {
		all, err := x.bytes(0, x.length)
		if err != nil {
			return 0, err
		}
		x.loaded.Store(&all)
	}
	lo, hi := int64(0), int64(x.fanout[id[0]])
	if id[0] > 0 {
		lo = int64(x.fanout[id[0]-1])
	}
	for hi-lo > bucket {
		mid := lo + (hi-lo)/2
		name, err := x.bytes(idxHeaderSize+mid*int64(idSize), int64(idSize))
		if err != nil {
			return 0, err
		}
		if bytes.Compare(name, id[:]) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	if lo == hi {
		return 0, nil
	}
	names, err := x.bytes(idxHeaderSize+lo*int64(idSize), (hi-lo)*int64(idSize))
	if err != nil {
		return 0, err
	}
	i, found := sort.Find(int(hi-lo), func(i int) int { return bytes.Compare(id[:], names[i*idSize:(i+1)*idSize]) })
	if !found {
		return 0, nil
	}
	return x.offset(lo + int64(i))
}

// offset is where the i-th object is.
func (x *index) offset(i int64) (int64, error) {
	offsets := idxHeaderSize + x.count*int64(idSize+4)
	b, err := x.bytes(offsets+i*4, 4)
	if err != nil {
		return 0, err
	}
	at := uint64(binary.BigEndian.Uint32(b))
	if at&(1<<31) != 0 {
		at &^= 1 << 31
		if at >= uint64(x.wide) {
			return 0, damaged("no such 8-byte offset")
		}
		if b, err = x.bytes(offsets+x.count*4+int64(at)*8, 8); err != nil {
			return 0, err
		}
		at = binary.BigEndian.Uint64(b)
	}
	if at < packHeaderSize || at >= 1<<62 {
		return 0, damaged("an offset outside the pack")
	}
	return int64(at), nil
}

func (x *index) close() error {
	if x.file == nil {
		return nil
	}
	return x.file.Close()
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
	slices.SortFunc(out, func(a, b packed) int { return cmp.Compare(a.offset, b.offset) })
	return out, nil
}

// encodeIndex makes an index of version 2.
func encodeIndex(entries []packed, packSum plumbing.Hash) []byte {
	slices.SortFunc(entries, func(a, b packed) int {
		if c := cmp.Compare(binary.BigEndian.Uint64(a.id[:]), binary.BigEndian.Uint64(b.id[:])); c != 0 {
			return c
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	out := make([]byte, 0, int(idxHeaderSize)+len(entries)*(idSize+16)+2*idSize)
	out = append(out, idxMagic...)
	n := 0
	for first := range 256 {
		for n < len(entries) && int(entries[n].id[0]) == first {
			n++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	for _, e := range entries {
		out = append(out, e.id[:]...)
	}
	for _, e := range entries {
		out = binary.BigEndian.AppendUint32(out, e.crc)
	}
	var wide []byte
	for _, e := range entries {
		offset := uint32(e.offset)
		if e.offset >= 1<<31 {
			offset = 1<<31 | uint32(len(wide)/8)
			wide = binary.BigEndian.AppendUint64(wide, uint64(e.offset))
		}
		out = binary.BigEndian.AppendUint32(out, offset)
	}
	out = append(append(out, wide...), packSum[:]...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}
