// Package patch turns a proposed change into a Patchset: the before and after
// bytes of every path it touches, and from these the one canonical form whose
// SHA-256 a human approves.
//
// A Diff is what somebody sent, read strictly but not yet believed. Resolve
// puts it on a base, an fs.FS of the commit that is patched, without fuzz. The
// canonical bytes are derived from the before and after
// bytes alone, so the same change has the same patch_id however it was written:
//
//	diff --git a/greet.txt b/greet.txt
//	index ce013625030ba8dba906f756967f9e9ca394464a..b88012fa0eb63e2e1fd9b5e6a9e0a85a3fb4ee55 100644
//	--- a/greet.txt
//	+++ b/greet.txt
//	@@ -1 +1 @@
//	-hello
//	+hello, world
//
// Everything here is pure: no clock, no environment, no I/O but the fs.FS given.
package patch

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
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
func (f *File) BlobID() string {
	return blobID(f.Data, 2*sha1.Size)
}

// Sum is the file's "sha256:…" over its raw bytes, or nil for an absent file.
func (f *File) Sum() *string {
	if f == nil {
		return nil
	}
	s := canon.Sum(f.Data)
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
// order, one entry a path. Between and Diff.Resolve make it; its changes must
// not be modified.
type Patchset struct {
	Changes []Change
	Offsets []Offset // which hunks of the Diff were found at another line; no part of the change
	memo    *memo
}

// Fingerprint is what an approval names: "patchset:" and the patch_id.
func Fingerprint(patchID string) string { return "patchset:" + patchID }

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
// another one; Mismatch is the line of a file that a hunk does not expect, if it is that.
// Try says what helps, "" where that is not known: a command to type, or a short sentence.
type Error struct {
	Line     int
	Path     string
	Message  string
	Try      string
	Base     bool
	Mismatch *Mismatch
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

// Hint is what to do about it.
func (e *Error) Hint() string {
	if e.Try == "" && e.Base {
		return OnHead
	}
	return e.Try
}

// With is the error with what helps.
func (e *Error) With(try string) *Error {
	e.Try = try
	return e
}

// What helps in several places.
const (
	OnHead    = "make the diff against the commit that HEAD is on: git diff --no-textconv --no-ext-diff HEAD"
	ReadHead  = "the proposer has to read the file as it is in HEAD, and make the change anew"
	SayPlace  = "the proposer has to say which place is meant"
	tryCommit = "make them commits if one builds on the other, and propose those with --as one"
	tryDelete = "delete in the same patch what is in the way"
)

// A TooLargeError is a file that has more bytes than may be read.
type TooLargeError struct{ Path string }

func (e *TooLargeError) Error() string { return Quote(e.Path) + " is too large" }

// Growth returns how many bytes the files of the patchset have more than before, without
// those that became shorter.
func (p Patchset) Growth() (n int64) {
	for _, c := range p.Changes {
		n += int64(max(0, len(c.After.data())-len(c.Before.data())))
	}
	return n
}

// Quote makes a path safe to print: as it is where it is plain, else as a Go
// string literal with everything but printable ASCII escaped.
func Quote(path string) string {
	if q := fmt.Sprintf("%+q", path); q != `"`+path+`"` {
		return q
	}
	return path
}

// QuoteList makes the first few paths of a list safe to print.
func QuoteList(paths []string) string {
	const most = 10
	var out []string
	for _, p := range paths[:min(most, len(paths))] {
		out = append(out, Quote(p))
	}
	if len(paths) > most {
		out = append(out, fmt.Sprintf("and %d more", len(paths)-most))
	}
	return strings.Join(out, ", ")
}

// blobID is Git's object id of a file's content with as many hex digits as a
// SHA-1 or SHA-256 repository has.
func blobID(data []byte, digits int) string {
	h := sha1.New()
	if digits == 2*sha256.Size {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// memo keeps what is derived from the changes, once it was asked for. A
// Patchset that was made by hand has none.
type memo struct {
	bytes func() []byte
	id    func() string
}
