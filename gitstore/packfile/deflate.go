package packfile

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/adler32"
	"sync"
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

// tiny is the size up to which content is stored as it is: compressing would
// take thirty times as long as all else, for a few bytes.
const tiny = 128

// deflate appends a whole zlib stream (RFC 1950).
func (w *writer) deflate(data []byte) error {
	if len(data) > tiny {
		w.begin()
		_, err := w.Write(data)
		if err == nil {
			err = w.end()
		}
		return err
	}
	n := uint16(len(data))
	b := append(w.buf.AvailableBuffer(), 0x78, 0x01, 1, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
	b = append(b, data...)
	w.buf.Write(binary.BigEndian.AppendUint32(b, adler32.Checksum(data)))
	return nil
}
