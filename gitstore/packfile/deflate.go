package packfile

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/adler32"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// writer makes zlib streams of level 1 in memory: level 6 takes three times as
// long and saves little, and `git gc` compresses anew what it repacks.
type writer struct {
	buf  bytes.Buffer
	zlib *zlib.Writer
}

var writers = sync.Pool{New: func() any { return &writer{} }}

func getWriter() *writer {
	w := writers.Get().(*writer)
	w.buf.Reset()
	return w
}

func (w *writer) put() {
	if w.buf.Cap() > trust {
		w.buf = bytes.Buffer{}
	}
	writers.Put(w)
}

func (w *writer) begin() {
	if w.zlib == nil {
		w.zlib, _ = zlib.NewWriterLevel(&w.buf, zlib.BestSpeed) // the level is a valid one
	} else {
		w.zlib.Reset(&w.buf)
	}
}

func (w *writer) Write(p []byte) (int, error) { return w.zlib.Write(p) }
func (w *writer) end() error                  { return w.zlib.Close() }

// Content up to these sizes is stored as it is: to compress it would take far
// longer than all else, for a few bytes. Most of a tree is ids, which no
// compression makes smaller.
const (
	tiny     = 128
	tinyTree = 32 << 10
)

// deflate appends an object's content as a whole zlib stream (RFC 1950). A
// stored block (RFC 1951, 3.2.4) says its length twice.
func (w *writer) deflate(o Object) error {
	if size := len(o.Data); size > tiny && (o.Type != plumbing.TreeObject || size > tinyTree) {
		w.begin()
		_, err := w.Write(o.Data)
		if err == nil {
			err = w.end()
		}
		return err
	}
	n := uint16(len(o.Data))
	b := append(w.buf.AvailableBuffer(), 0x78, 0x01, 1, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
	b = append(b, o.Data...)
	w.buf.Write(binary.BigEndian.AppendUint32(b, adler32.Checksum(o.Data)))
	return nil
}
