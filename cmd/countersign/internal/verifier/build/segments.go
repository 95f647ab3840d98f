package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Numbers of the WebAssembly core specification: sections (5.5.2), the header of a data segment that goes into the
// only memory at an offset (5.5.14), and the end of the instructions that give this offset (5.4.9).
const (
	dataSection  = 11
	activeData   = 0
	constOffset  = 0x41
	offsetIsDone = 0x0b
)

// fewZeros is how many zeros between two pieces of the memory's content are told rather than left out: Go's linker
// leaves out eight, and what says a hundred thousand times where the next piece belongs does not compress. Zeros do.
const fewZeros = 64

var preamble = []byte("\x00asm\x01\x00\x00\x00")

// A segment is what the memory has from an offset on, in bytes.
type segment struct {
	offset int64
	bytes  []byte
}

func (s segment) end() int64 { return s.offset + int64(len(s.bytes)) }

// mergeSegments returns a module that starts with the same memory, which it tells in fewer segments. A module that
// is not as Go's linker writes one is an error.
func mergeSegments(module []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(module, preamble)
	if !ok {
		return nil, errors.New("it is no WebAssembly")
	}
	out := slices.Clone(preamble)
	r := reader{rest: rest}
	for len(r.rest) > 0 && r.err == nil {
		id := r.take(1)
		content := r.take(r.unsigned())
		if r.err != nil {
			break
		}
		if id[0] == dataSection {
			segments, err := segmentsOf(content)
			if err != nil {
				return nil, fmt.Errorf("its data: %w", err)
			}
			content = encode(merge(segments))
		}
		out = append(binary.AppendUvarint(append(out, id...), uint64(len(content))), content...)
	}
	return out, r.err
}

// merge joins segments, which are in order, and the few zeros between them.
func merge(segments []segment) (merged []segment) {
	for _, s := range segments {
		if n := len(merged); n > 0 && s.offset-merged[n-1].end() <= fewZeros {
			last := &merged[n-1]
			last.bytes = append(append(last.bytes, make([]byte, s.offset-last.end())...), s.bytes...)
			continue
		}
		merged = append(merged, segment{s.offset, slices.Clone(s.bytes)})
	}
	return merged
}

// segmentsOf returns the segments of a data section, by their offset.
func segmentsOf(content []byte) ([]segment, error) {
	r := reader{rest: content}
	segments := make([]segment, 0, min(r.unsigned(), len(content)))
	for range cap(segments) {
		if kind, op := r.take(1), r.take(1); r.err == nil && (kind[0] != activeData || op[0] != constOffset) {
			return nil, errors.New("a segment has another header than Go's linker writes")
		}
		s := segment{offset: r.signed()}
		if done := r.take(1); r.err == nil && done[0] != offsetIsDone {
			return nil, errors.New("an offset is not a number alone")
		}
		s.bytes = r.take(r.unsigned())
		segments = append(segments, s)
	}
	if r.err != nil || len(r.rest) > 0 {
		return nil, errors.Join(r.err, errors.New("it does not end where it says"))
	}
	slices.SortFunc(segments, func(a, b segment) int { return int(a.offset - b.offset) })
	for i, s := range segments {
		if s.offset < 0 || i > 0 && s.offset < segments[i-1].end() {
			return nil, errors.New("segments lie on one another")
		}
	}
	return segments, nil
}

func encode(segments []segment) []byte {
	b := binary.AppendUvarint(nil, uint64(len(segments)))
	for _, s := range segments {
		b = append(appendSigned(append(b, activeData, constOffset), s.offset), offsetIsDone)
		b = append(binary.AppendUvarint(b, uint64(len(s.bytes))), s.bytes...)
	}
	return b
}

// appendSigned appends a number in signed LEB128 (5.2.2), which is not [binary.AppendVarint]'s.
func appendSigned(b []byte, n int64) []byte {
	for n < -64 || n >= 64 {
		b = append(b, byte(n)&0x7f|0x80)
		n >>= 7
	}
	return append(b, byte(n)&0x7f)
}

// A reader takes from the front of a module until that fails.
type reader struct {
	rest []byte
	err  error
}

var errShort = errors.New("it is cut off, or a number in it is none")

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.rest) {
		r.err = errShort
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) unsigned() int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > 1<<32-1 {
		r.err = errShort
		return 0
	}
	r.take(size)
	return int(n)
}

func (r *reader) signed() (n int64) {
	for shift := 0; shift < 35; shift += 7 {
		b := r.take(1)
		if r.err != nil {
			return 0
		}
		n |= int64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			return n << (57 - shift) >> (57 - shift) // its highest bit is the sign
		}
	}
	r.err = errShort
	return 0
}
