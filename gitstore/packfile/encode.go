package packfile

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"
	"io"
	"runtime"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/pipeline/parallel"
)

// encodePack writes the pack. Entries are compressed on all cores; the bytes
// depend on the objects and their order alone.
func encodePack(to io.Writer, b *Batch) (entries []packed, sum []byte, err error) {
	all := b.Format.New()
	both := io.MultiWriter(all, to)
	if _, err := both.Write(binary.BigEndian.AppendUint32([]byte(packMagic), uint32(len(b.ids)))); err != nil {
		return nil, nil, err
	}
	entries, offset := make([]packed, 0, len(b.ids)), int64(packHeaderSize)
	var out []byte
	for _, chunks := range rounds(b.entries) {
		streams := make([][][]byte, len(chunks))
		err := parallel.Try(runtime.GOMAXPROCS(0), len(chunks), func(i int) (err error) {
			streams[i], err = b.deflate(chunks[i])
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		for _, chunk := range streams {
			out = out[:0]
			for _, stream := range chunk {
				start, n := len(out), len(entries)
				at := offset + int64(start)
				out = append(entryHeader(out, b.entries[n], at, entries), stream...)
				entries = append(entries, packed{b.ids[n], crc32.ChecksumIEEE(out[start:]), at})
			}
			if _, err := both.Write(out); err != nil {
				return nil, nil, err
			}
			offset += int64(len(out))
		}
	}
	sum = all.Sum(nil)
	_, err = to.Write(sum)
	return entries, sum, err
}

// Objects are compressed in chunks of one core each, the chunks of a round all
// at once. Both are bounded, so that memory is.
const (
	chunkObjects = 256
	chunkBytes   = 256 << 10
	roundBytes   = 8 << 20
)

// rounds cuts entries into chunks and those into rounds.
func rounds(entries []entry) (out [][][]entry) {
	var chunks [][]entry
	total, size, start := 0, 0, 0
	for i, e := range entries {
		size += int(e.size)
		last := i == len(entries)-1
		if !last && i+1-start < chunkObjects && size < chunkBytes {
			continue
		}
		chunks, total = append(chunks, entries[start:i+1]), total+size
		start, size = i+1, 0
		if last || total >= roundBytes {
			out, chunks, total = append(out, chunks), nil, 0
		}
	}
	return out
}

// deflate makes the zlib streams of some entries.
func (b *Batch) deflate(entries []entry) ([][]byte, error) {
	w := getWriter()
	defer w.put()
	ends := make([]int, len(entries))
	for i, e := range entries {
		if err := w.deflate(Object{e.kind, b.of(e.extent)}); err != nil {
			return nil, err
		}
		ends[i] = w.buf.Len()
	}
	data, start := bytes.Clone(w.buf.Bytes()), 0
	streams := make([][]byte, len(entries))
	for i, end := range ends {
		streams[i], start = data[start:end], end
	}
	return streams, nil
}

// entryHeader is what pack.entry reads. The entry's own place tells how far
// back its base is.
func entryHeader(b []byte, e entry, at int64, before []packed) []byte {
	kind := e.kind
	if e.depth > 0 {
		kind = plumbing.OFSDeltaObject
	}
	size := uint64(e.size)
	first := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		b = append(b, first|0x80)
		first = byte(size & 0x7f)
	}
	b = append(b, first)
	if e.depth == 0 {
		return b
	}
	back := at - before[e.base].offset
	var digits [10]byte // the highest first; each but the last counts from one
	i := len(digits) - 1
	digits[i] = byte(back & 0x7f)
	for back >>= 7; back > 0; back >>= 7 {
		back--
		i--
		digits[i] = 0x80 | byte(back&0x7f)
	}
	return append(b, digits[i:]...)
}

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
		if w.zlib == nil {
			w.zlib, _ = zlib.NewWriterLevel(&w.buf, zlib.BestSpeed) // the level is a valid one
		} else {
			w.zlib.Reset(&w.buf)
		}
		if _, err := w.zlib.Write(o.Data); err != nil {
			return err
		}
		return w.zlib.Close()
	}
	n := uint16(len(o.Data))
	b := append(w.buf.AvailableBuffer(), 0x78, 0x01, 1, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
	b = append(b, o.Data...)
	w.buf.Write(binary.BigEndian.AppendUint32(b, adler32.Checksum(o.Data)))
	return nil
}
