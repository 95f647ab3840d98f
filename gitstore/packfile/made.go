package packfile

import (
	"bytes"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// A Pack is a batch as the bytes that are written to the disk and sent to
// others. It is not modified.
type Pack struct {
	blocks  blocks
	entries []packed
	sum     plumbing.Hash
}

// Encode makes a pack of the batch, in memory. The batch keeps it until more is
// added, so that to write what was sent, or to send what was written, does not
// compress it again.
func (b *Batch) Encode() (*Pack, error) {
	if b.pack != nil {
		return b.pack, nil
	}
	p := &Pack{}
	var err error
	if p.entries, p.sum, err = encodePack(&p.blocks, b); err != nil {
		return nil, err
	}
	b.pack = p
	return p, nil
}

// Size is how many bytes the pack has.
func (p *Pack) Size() int64 { return p.blocks.size() }

// WriteTo writes the pack.
func (p *Pack) WriteTo(w io.Writer) (n int64, err error) {
	return io.Copy(w, p.Reader())
}

// Reader reads the pack from its beginning.
func (p *Pack) Reader() io.Reader {
	readers := make([]io.Reader, len(p.blocks))
	for i, block := range p.blocks {
		readers[i] = bytes.NewReader(block)
	}
	return io.MultiReader(readers...)
}

// blocks is what was written, in pieces: one slice that grows would need twice
// the memory.
type blocks [][]byte

func (b *blocks) Write(p []byte) (int, error) {
	*b = append(*b, bytes.Clone(p))
	return len(p), nil
}

func (b blocks) size() (n int64) {
	for _, block := range b {
		n += int64(len(block))
	}
	return n
}
