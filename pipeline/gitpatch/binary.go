package gitpatch

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"strconv"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// maxMade bounds what copies and binary sections of one patch may expand to
// beyond the patch's own size: a few bytes can stand for gigabytes.
const maxMade = 256 << 20

var errMade = errors.New("the patch expands to more than 256 MiB beyond its own size")

// binary consumes the forward literal or delta and the reverse one if there is
// one; go-gitdiff decodes them.
func (s *scanner) binary() error {
	s.next()
	if !s.atFragment() {
		s.next()
		return s.fail("binary patch without data")
	}
	for range 2 {
		if s.atFragment() {
			if err := s.fragment(); err != nil {
				return err
			}
		}
	}
	if s.atFragment() {
		s.next()
		return s.fail("binary patch with more than two halves")
	}
	return nil
}

func (s *scanner) atFragment() bool { return s.at("literal ") || s.at("delta ") }

// fragment is "literal SIZE" or "delta SIZE", lines of a length letter and
// groups of five characters, and an empty line.
func (s *scanner) fragment() error {
	_, size, _ := bytes.Cut(s.next(), []byte(" "))
	n, err := strconv.ParseUint(clip(size), 10, 63)
	if err != nil || strconv.FormatUint(n, 10) != string(size) {
		return s.fail("malformed binary size")
	}
	for len(s.rest) > 0 && !s.at("\n") {
		if s.next(); s.cut {
			break
		}
	}
	if len(s.rest) == 0 {
		return s.fail("binary patch is cut off")
	}
	s.next()
	return nil
}

// readBinary takes the forward half of a binary section. As for git, the index
// line must say in full what it is made for and what it makes.
func (s *section) readBinary(text []byte) error {
	f, err := s.secondOpinion(text)
	if err != nil || f.BinaryFragment == nil {
		return &patch.Error{Line: s.line, Message: "malformed binary patch"}
	}
	if n := len(s.oldID); n != len(s.newID) || n != 40 && n != 64 {
		return &patch.Error{Line: s.line, Message: "binary patch without full object ids in its index line"}
	}
	s.binary = f.BinaryFragment
	return nil
}

// applyBinary returns the content that the binary section makes of before.
func (s section) applyBinary(before []byte) ([]byte, error) {
	if s.does != makes && patch.BlobID(before, len(s.oldID)) != s.oldID {
		return nil, errors.New("the binary patch was made for another content")
	}
	data, err := inflate(s.binary) // go-gitdiff does it again, and does not see what follows the stream
	if err == nil && s.binary.Method == gitdiff.BinaryPatchDelta {
		var out bytes.Buffer
		if gitdiff.NewBinaryApplier(&out, bytes.NewReader(before), gitdiff.WithMaxBinaryFragmentBytes(-1)).ApplyFragment(s.binary) != nil {
			err = errDelta // it reads outside of before, or makes not as many bytes as it says
		}
		data = out.Bytes()
	}
	if err != nil {
		return nil, err
	}
	if s.does != deletes && patch.BlobID(data, len(s.newID)) != s.newID {
		return nil, errors.New("the binary patch does not give the content that its index line names")
	}
	return data, nil
}

var (
	errStream = errors.New("malformed binary data")
	errSize   = errors.New("binary data is not as long as it says")
)

// inflate returns the zlib stream's content, exactly as long as the fragment
// says and without anything after it. The caller bounds the size.
func inflate(f *gitdiff.BinaryFragment) ([]byte, error) {
	in := bytes.NewReader(f.RawData)
	z, err := zlib.NewReader(in)
	if err != nil {
		return nil, errStream
	}
	var out bytes.Buffer
	out.Grow(int(min(f.Size, 1032*int64(len(f.RawData)))) + bytes.MinRead) // deflate's greatest ratio
	n, err := out.ReadFrom(io.LimitReader(z, f.Size+1))
	switch {
	case err != nil:
		return nil, errStream
	case n != f.Size:
		return nil, errSize
	case in.Len() > 0:
		return nil, errors.New("binary data goes on after its end")
	}
	return out.Bytes(), nil
}

// Literal returns the content of a literal binary section of a diff, of so many
// bytes; payload is its lines. What is not as Git writes it is an error.
func Literal(payload []byte, size int) ([]byte, error) {
	f, err := literal(payload, size)
	if err != nil {
		return nil, err
	}
	return inflate(f)
}

func literal(payload []byte, size int) (*gitdiff.BinaryFragment, error) {
	text := fmt.Appendf(nil, "diff --git a/x b/x\n%sliteral %d\n%s\n\n", binaryMark, size, payload)
	files, _, err := gitdiff.Parse(bytes.NewReader(text))
	if err != nil || len(files) != 1 || files[0].BinaryFragment == nil {
		return nil, errStream
	}
	return files[0].BinaryFragment, nil
}

// LiteralBegins returns the first bytes of such a content, as many as the first line
// of its payload has, none if that is not as Git writes it.
func LiteralBegins(line []byte, size int) []byte {
	f, err := literal(line, size)
	if err != nil {
		return nil
	}
	z, err := zlib.NewReader(bytes.NewReader(f.RawData))
	if err != nil {
		return nil
	}
	head := make([]byte, min(size, 32))
	n, _ := io.ReadFull(z, head) // the stream goes on in the next line
	return head[:n]
}

// makesBytes is how much memory the section asks for beyond the base and its
// own size, bounded before anything is allocated.
func (s section) makesBytes(before []byte) (int64, error) {
	switch {
	case s.binary == nil && s.does == copies:
		return int64(len(before)), nil
	case s.binary == nil:
		return 0, nil
	case s.binary.Method == gitdiff.BinaryPatchLiteral:
		return s.binary.Size, nil
	}
	_, size, err := s.deltaSizes()
	if err != nil {
		return 0, err
	}
	return s.binary.Size + size, nil
}

// deltaSizes reads the sizes of the old and the new file, and no more of the delta.
func (s section) deltaSizes() (from, to int64, err error) {
	z, err := zlib.NewReader(bytes.NewReader(s.binary.RawData))
	if err != nil {
		return 0, 0, errStream
	}
	head := make([]byte, min(s.binary.Size, 2*maxVarint))
	if _, err := io.ReadFull(z, head); err != nil {
		return 0, 0, errSize
	}
	from, to, _, err = deltaSizes(head)
	return from, to, err
}

// Expands returns how many bytes diffs, each on what those before it leave, make that are
// not in them as they are: what binary sections hold, packed, or add to a file, and
// copies. Nothing is made, and of the base only sizes are read. What does not fit counts
// for nothing: Resolve refuses it.
func Expands(base fs.FS, diffs ...Diff) (total int64) {
	made := map[string]int64{} // sizes of files that diffs have changed
	for _, d := range diffs {
		makes := map[string]int64{}
		for _, s := range d.sections {
			if s.binary == nil && s.does != copies && len(diffs) == 1 {
				continue // it says all, and nothing is made of what it leaves
			}
			size, adds := s.expands(func() int64 {
				if size, is := made[s.old]; is {
					return size
				}
				info, err := fs.Lstat(base, s.old)
				if err != nil {
					return 0
				}
				return info.Size()
			})
			makes[s.new], total = size, total+min(adds, math.MaxInt64-total)
		}
		maps.Copy(made, makes)
	}
	return total
}

// expands returns the size of the file that the section leaves, and how many bytes of it
// are not in the section.
func (s section) expands(before func() int64) (size, adds int64) {
	switch {
	case s.does == deletes:
		return 0, 0
	case s.binary != nil && s.binary.Method == gitdiff.BinaryPatchLiteral:
		return s.binary.Size, s.binary.Size
	case s.binary != nil:
		from, to, err := s.deltaSizes()
		if err != nil {
			return 0, s.binary.Size
		}
		return to, max(s.binary.Size, to-from)
	case s.does != makes:
		size = before()
	}
	if s.does == copies {
		adds = size
	}
	for _, h := range s.hunks {
		size += int64(h.added - h.removed)
	}
	return size, adds
}

// maxVarint is the length of a size in a delta at most: 63 bits in sevens.
const maxVarint = 9

var errDelta = errors.New("malformed binary delta")

// deltaSizes reads the sizes of the old and the new file.
func deltaSizes(delta []byte) (from, to int64, rest []byte, err error) {
	if from, delta, err = varint(delta); err != nil {
		return 0, 0, nil, err
	}
	to, delta, err = varint(delta)
	return from, to, delta, err
}

// varint reads seven bits a byte, the lowest first.
func varint(b []byte) (n int64, rest []byte, err error) {
	for i, c := range b[:min(len(b), maxVarint)] {
		n |= int64(c&0x7F) << (7 * i)
		if c < 0x80 {
			return n, b[i+1:], nil
		}
	}
	return 0, nil, errDelta
}

// Growth returns how many bytes the files of a patchset have more than before, without
// those that became shorter.
func Growth(p patch.Patchset) (n int64) {
	for _, c := range p.Changes {
		n += int64(max(0, size(c.After)-size(c.Before)))
	}
	return n
}

func size(f *patch.File) int {
	if f == nil {
		return 0
	}
	return len(f.Data)
}

// A TooLargeError is a file that has more bytes than may be read.
type TooLargeError struct{ Path string }

func (e *TooLargeError) Error() string { return patch.Quote(e.Path) + " is too large" }
