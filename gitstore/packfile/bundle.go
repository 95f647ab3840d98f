package packfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// What a header may hold. A ledger needs one ref.
const (
	maxLine  = 4096
	maxLines = 10_000
)

// A Ref is a name and the object that it stands for.
type Ref struct {
	Name string
	ID   ID
}

// A BundleError says why bytes are not a bundle that can be read.
type BundleError struct{ Message string }

func (e *BundleError) Error() string { return e.Message }

func refused(format string, args ...any) error { return &BundleError{fmt.Sprintf(format, args...)} }

// A Bundle is refs and all objects that came with them, as they were in the bytes of a Git bundle
// (gitformat-bundle(5)), which anybody can make with "git bundle create":
//
//	# v2 git bundle                                        or: # v3 git bundle
//	                                                       v3: @object-format=sha1, or sha256
//	-0123456789012345678901234567890123456789 a comment    a commit that is needed and not in it
//	0123456789012345678901234567890123456789 refs/agent/ledger
//
//	PACK…                                                  gitformat-pack(5)
//
// A bundle that is read is untrusted: each object gets the name that its content has,
// whatever is wrong is an error, and what a pack may make of itself is bounded. What
// the objects say is for the audit to judge.
// Needs are the commits that it is made on, which are not in it.
type Bundle struct {
	Refs    []Ref
	Needs   []ID
	objects *Batch
}

// ReadBundle reads a bundle of a whole history, size bytes, from its beginning. One that needs
// commits which are not in it, or leaves out files, is refused.
func ReadBundle(from io.Reader, size int64, limits Limits) (*Bundle, error) {
	return ReadBundleOn(from, size, limits, nil)
}

// ReadBundleOn reads a bundle of new commits, as "git bundle create" writes it of a range. What
// it is made on is not in it, but in its Needs; the bases of its deltas are asked of base,
// whose error for one that is not there matches ErrMissing.
func ReadBundleOn(from io.Reader, size int64, limits Limits, base func(ID) (Object, error)) (*Bundle, error) {
	b, h := &Bundle{}, &header{Reader: bufio.NewReaderSize(from, maxLine)}
	if err := b.header(h, base != nil); err != nil {
		return nil, err
	}
	var err error
	if b.objects, err = Decode(h, size-h.size, h.format, limits, base); err != nil {
		return nil, fmt.Errorf("the bundle: %w", err)
	}
	return b, nil
}

// Objects are those that are in the bundle.
func (b *Bundle) Objects() *Batch { return b.objects }

// Commits is how many commits are in the bundle.
func (b *Bundle) Commits() int { return b.objects.Count(plumbing.CommitObject) }

// header reads what is before the pack. on says that commits which are not in the bundle
// may be needed.
func (b *Bundle) header(h *header, on bool) error {
	first, err := h.line()
	if err != nil || first != "# v2 git bundle" && first != "# v3 git bundle" {
		return refused(`not a Git bundle of version 2 or 3: "git bundle create" makes one`)
	}
	v3 := strings.Contains(first, "v3")
	for range maxLines {
		line, err := h.line()
		ok := false
		switch {
		case err != nil:
			return err
		case line == "" && len(b.Refs) == 0:
			return refused("the bundle has no ref")
		case line == "":
			return nil
		case line[0] == '@' && v3:
			name, _ := strings.CutPrefix(line, formatKey)
			if h.format, ok = ParseFormat(name); !ok || len(b.Refs)+len(b.Needs) > 0 {
				return refused("the bundle has the capability %+q: only whole bundles can be read", line)
			}
			continue
		case line[0] == '-' && on:
			id, _, _ := strings.Cut(line[1:], " ")
			if !h.isID(id) {
				return refused("the bundle needs %+q, which is no commit", id)
			}
			b.Needs = append(b.Needs, ParseID(id))
			continue
		case line[0] == '-':
			return refused("the history is not all in the bundle: it needs the commit %+q and what is before it; make one with the ref alone", strings.TrimPrefix(line, "-"))
		}
		id, name, ok := strings.Cut(line, " ")
		if !ok || name == "" || !h.isID(id) {
			return refused("the bundle has a header line that is no ref: %+q", line)
		}
		b.Refs = append(b.Refs, Ref{name, ParseID(id)})
	}
	return refused("the bundle has more than %d header lines", maxLines)
}

// header is a bundle that is read up to its pack.
type header struct {
	*bufio.Reader
	size   int64 // bytes of the lines that were read
	format Format
}

// isID reports whether a text is an ID of the bundle's format.
func (h *header) isID(text string) bool { return len(text) == 2*h.format.Size() && IsID(text) }

func (h *header) line() (string, error) {
	raw, err := h.ReadSlice('\n')
	if err == nil {
		h.size += int64(len(raw))
		return string(raw[:len(raw)-1]), nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
		err = refused("the bundle's header is cut short, or has a line of more than %d bytes", maxLine)
	}
	return "", err
}

// Ref returns the ref of this name; with "", the only one there is, or of several the
// one that looks like a ledger's.
func (b *Bundle) Ref(name string) (Ref, error) {
	var fit []Ref
	for _, r := range b.Refs {
		if r.Name == name || name == "" && (len(b.Refs) == 1 || strings.HasPrefix(r.Name, "refs/agent/")) {
			fit = append(fit, r)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case name != "":
		return Ref{}, refused("the bundle has no ref %+q, or more than one", name)
	}
	return Ref{}, refused("the bundle has %d refs, and which one is the ledger cannot be told: make one with the ledger's ref alone", len(b.Refs))
}

// View returns an object, as lineage.Objects does.
func (b *Bundle) View(id ID) (Object, error) {
	o, ok := b.objects.Get(id)
	if !ok {
		return o, fmt.Errorf("object %s: %w", id, ErrMissing)
	}
	return o, nil
}

// WriteBundle writes a bundle of version 2, or of version 3 where the objects are not SHA-1: refs, and what pack writes, which
// is a pack of all that they lead to.
func WriteBundle(w io.Writer, pack func(io.Writer) error, refs ...Ref) error {
	head, err := headOf(refs...)
	if err != nil {
		return err
	}
	if _, err = w.Write(head); err == nil {
		err = pack(w)
	}
	if err != nil {
		return fmt.Errorf("writing a bundle: %w", err)
	}
	return nil
}

// headOf is a bundle before its pack.
func headOf(refs ...Ref) ([]byte, error) {
	if len(refs) == 0 {
		return nil, errors.New("writing a bundle: it has no ref")
	}
	head := []byte(signature)
	if f := FormatOf(refs[0].ID); f == SHA256 { // version 2 has no word for it
		head = []byte("# v3 git bundle\n" + formatKey + f.String() + "\n")
	}
	for _, r := range refs {
		if r.Name == "" || strings.ContainsAny(r.Name, " \n\x00") {
			return nil, fmt.Errorf("writing a bundle: %+q is not the name of a ref", r.Name)
		}
		head = append(head, r.ID.String()+" "+r.Name+"\n"...)
	}
	return append(head, '\n'), nil
}

const (
	signature = "# v2 git bundle\n"
	formatKey = "@object-format="
)
