// Package patch turns a proposed change into a Patchset: the before and after
// bytes of every path it touches, and from these the one canonical form whose
// SHA-256 a human approves.
//
// The canonical bytes are derived from the before and after bytes alone, so the
// same change has the same patch_id however it was written:
//
//	diff --git a/greet.txt b/greet.txt
//	index ce013625030ba8dba906f756967f9e9ca394464a..b88012fa0eb63e2e1fd9b5e6a9e0a85a3fb4ee55 100644
//	--- a/greet.txt
//	+++ b/greet.txt
//	@@ -1 +1 @@
//	-hello
//	+hello, world
//
// Parse reads them again, and nothing that Bytes would not write. Diffs that
// others write are read by package gitpatch; what it makes of one is a Patchset,
// and people approve that.
//
// Everything here is pure: no clock, no environment, no I/O but the fs.FS given.
package patch

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Mode is a file's Git mode. Only the two of regular files exist here;
// symbolic links and submodules are refused.
type Mode uint32

// The modes a Patchset can hold.
const (
	Regular    Mode = 0o100644
	Executable Mode = 0o100755
)

// String is the mode as Git writes it: six octal digits.
func (m Mode) String() string { return fmt.Sprintf("%06o", uint32(m)) }

// A File is the content of one path at one moment.
type File struct {
	Mode Mode
	Data []byte
}

// Equal reports whether both are absent, or have the same mode and bytes.
func (f *File) Equal(g *File) bool {
	if f == nil || g == nil {
		return f == g
	}
	return f.Mode == g.Mode && bytes.Equal(f.Data, g.Data)
}

// BlobID is the file's Git object id: the SHA-1 of "blob <size>\0<bytes>" as
// 40 hex digits. It identifies, it does not protect; Sum does.
func (f *File) BlobID() string { return BlobID(f.Data, 2*sha1.Size) }

// BlobID is Git's object id of a file's content, with as many hex digits as a
// repository of SHA-1 (40) or SHA-256 objects (64) has.
func BlobID(data []byte, digits int) string {
	h := sha1.New()
	if digits == 2*sha256.Size {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// Sum is the file's "sha256:…" over its raw bytes, or nil for an absent file.
func (f *File) Sum() *string {
	if f == nil {
		return nil
	}
	s := "sha256:" + hash(f.Data)
	return &s
}

// A Kind says what happens to a path (seed: checkpoint 10, section 1).
type Kind string

// The kinds of change. A rename is one of identical content.
const (
	Add    Kind = "add"
	Delete Kind = "delete"
	Update Kind = "update"
	Rename Kind = "rename"
)

// A Change is what happens to one path. Before is nil for an Add, After for a
// Delete. From is the old path of a Rename, empty otherwise.
type Change struct {
	Kind          Kind
	Path, From    string
	Before, After *File
}

// A Patchset is a whole change in canonical form: sorted by path in byte
// order, one entry a path. Tree.Between makes it; its changes must not be
// modified.
type Patchset struct {
	Changes []Change
	Offsets []Offset // no part of the change
	bytes   func() []byte
}

// An Offset says that a hunk of the diff that a Patchset was made of was found at another line than it
// names: so many lines lower, or, where By is negative, higher. Line is the one that it names, in the
// file before the patch.
type Offset struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	By   int    `json:"by"`
}

// Files returns every touched path with its content before and after; a
// renamed file counts twice, as the removal of one path and the making of
// another. Sorted by path.
func (p Patchset) Files() []Change {
	var out []Change
	for _, c := range p.Changes {
		if c.Kind != Rename {
			out = append(out, c)
			continue
		}
		out = append(out,
			Change{Kind: Delete, Path: c.From, Before: c.Before},
			Change{Kind: Add, Path: c.Path, After: c.After})
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// Paths are those of Files.
func (p Patchset) Paths() []string {
	var paths []string
	for _, f := range p.Files() {
		paths = append(paths, f.Path)
	}
	return paths
}

// Hashes returns the "sha256:…" of every touched path before and after; nil
// stands for a file that is not there.
func (p Patchset) Hashes() (before, after map[string]*string) {
	before, after = map[string]*string{}, map[string]*string{}
	for _, c := range p.Files() {
		before[c.Path], after[c.Path] = c.Before.Sum(), c.After.Sum()
	}
	return before, after
}

// An Error says what is wrong with a proposed change. Line counts from 1 in
// the input, 0 where the fault has no line; Path is empty where it is not about
// one file. Base says that it is about the base commit, and that the change may fit
// another one; Cause is what it comes from, nil if the message says all.
// Try says what helps, "" where that is not known: a command to type, or a short sentence.
type Error struct {
	Line    int
	Path    string
	Message string
	Try     string
	Base    bool
	Cause   error
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Path != "" {
		fmt.Fprintf(&b, "%s: ", Quote(e.Path))
	}
	return b.String() + e.Message
}

func (e *Error) Unwrap() error { return e.Cause }

// Hint is what to do about it.
func (e *Error) Hint() string {
	if e.Try == "" && e.Base {
		return OnHead
	}
	return e.Try
}

// At puts a line and a path into an *Error that has none.
func At(err error, line int, path string) error {
	var e *Error
	if errors.As(err, &e) {
		e.Line, e.Path = cmp.Or(e.Line, line), cmp.Or(e.Path, path)
	}
	return err
}

// With is the error with what helps.
func (e *Error) With(try string) *Error {
	e.Try = try
	return e
}

// What helps in several places.
const (
	OnHead   = "make the diff against the commit that HEAD is on: git diff --no-textconv --no-ext-diff HEAD"
	ReadHead = "the proposer has to read the file as it is in HEAD, and make the change anew"
	SayPlace = "the proposer has to say which place is meant"
)

// Quote makes a path safe to print: as it is where it is plain, else as a Go
// string literal with everything but printable ASCII escaped.
func Quote(path string) string {
	if q := fmt.Sprintf("%+q", path); q != `"`+path+`"` {
		return q
	}
	return path
}
