package packfile

import (
	"bufio"
	"compress/flate"
	"compress/zlib"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

const (
	// window is how much is read at once.
	window = 16 << 10

	// trust is how many bytes are set aside for an object because its header
	// says so; what is larger grows as its content appears.
	trust = 1 << 20

	// maxObject is the largest object that is read.
	maxObject = 1 << 31
)

// reader reads the entries of a pack, one after another.
type reader struct {
	*bufio.Reader
	rest *io.LimitedReader // that it reads from
	zlib io.ReadCloser
}

// newReader reads up to end.
func newReader(from io.Reader, end int64) *reader {
	rest := &io.LimitedReader{R: from, N: end}
	return &reader{Reader: bufio.NewReaderSize(rest, window), rest: rest}
}

// left is how many bytes are not read yet.
func (r *reader) left() int64 { return r.rest.N + int64(r.Buffered()) }

// typeAndSize reads the first bytes of a pack entry: one bit that says whether
// more follow, three of the type, four of the size, then seven a byte.
func (r *reader) typeAndSize() (plumbing.ObjectType, int64, error) {
	b, err := r.ReadByte()
	if err != nil {
		return 0, 0, readError(err)
	}
	kind, size := plumbing.ObjectType(b>>4&7), int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if shift > 32 {
			return 0, 0, damaged("an object's size is too large")
		}
		if b, err = r.ReadByte(); err != nil {
			return 0, 0, readError(err)
		}
		size |= int64(b&0x7f) << shift
	}
	return kind, size, nil
}

// distance reads how far back the base of an OFS_DELTA is.
func (r *reader) distance() (int64, error) {
	b, err := r.ReadByte()
	back := int64(b & 0x7f)
	for err == nil && b&0x80 != 0 {
		if back > 1<<54 {
			return 0, damaged("a delta's base is outside the pack")
		}
		b, err = r.ReadByte()
		back = (back+1)<<7 | int64(b&0x7f)
	}
	return back, readError(err)
}

func (r *reader) id(f Format) (ID, error) {
	var raw [32]byte
	_, err := io.ReadFull(r, raw[:f.Size()])
	return history.NewID(raw[:f.Size()]), readError(err)
}

// inflate reads a zlib stream of exactly size bytes, over room if that is large enough, and lets zlib check its sum.
func (r *reader) inflate(room []byte, size int64) (_ []byte, err error) {
	if r.zlib == nil {
		r.zlib, err = zlib.NewReader(r)
	} else {
		err = r.zlib.(zlib.Resetter).Reset(r, nil)
	}
	if err != nil {
		return nil, readError(err)
	}
	if size > maxObject {
		return nil, damaged("an object of %d bytes is too large", size)
	}
	var data []byte
	if most := min(size, trust); int64(cap(room)) >= most {
		data = room[:most]
	} else {
		data = make([]byte, most)
	}
	for n := 0; int64(n) < size; {
		got, err := io.ReadFull(r.zlib, data[n:])
		if err != nil {
			return nil, readError(err)
		}
		if n += got; int64(n) < size {
			data = append(data, make([]byte, min(size-int64(n), int64(n)))...)
		}
	}
	if n, err := r.zlib.Read(make([]byte, 1)); n > 0 || err == nil {
		return nil, damaged("an object is longer than its size")
	} else if err != io.EOF {
		return nil, readError(err)
	}
	return data, nil
}

// readError tells what is wrong with the bytes from what is wrong with reading
// them.
func readError(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damaged("an object is cut short")
	case errors.As(err, &corrupt), errors.Is(err, zlib.ErrHeader), errors.Is(err, zlib.ErrChecksum), errors.Is(err, zlib.ErrDictionary):
		return damaged("%v", err)
	}
	return err
}
