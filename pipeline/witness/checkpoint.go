// Package witness has what a ledger shows to witnesses, and what they sign: checkpoints
// of its history, cosignatures of these, the file that says who the witnesses are, and
// the messages between the two. docs/witnesses.md says what each is for. The formats
// are those of transparency logs (c2sp.org: signed-note, tlog-checkpoint, tlog-cosignature
// with Ed25519, tlog-witness, tlog-policy).
//
// The tree is that of RFC 6962. Its leaves are the commits of the ledger, from the first
// to the tip, each as the content of its object ("git cat-file commit"): the hash of a
// leaf is the SHA-256 of a zero byte and that content, so that nothing rests on the SHA-1
// that names the commit (T57).
//
// A checkpoint is a note of three lines, the origin, the number of leaves and the root's
// hash in base 64, signed with the ledger's key and by witnesses:
//
//	github.com/acme/app
//	3
//	xEW53f8yT83gDzxMrjSUqGNXoKIP6BWuISEZqmUQ9ls=
//
//	— github.com/acme/app XTocCf…
//	— witness.acme.example LAqgG8…
//
// The package is pure: it is given commits, bytes and times.
package witness

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A Hash is the SHA-256 of a leaf, or of a tree.
type Hash = tlog.Hash

// Leaf is the hash of a commit, which is given as the content of its object.
func Leaf(commit []byte) Hash { return tlog.RecordHash(commit) }

// A Tree is the tree over the commits of a ledger.
type Tree struct {
	size   int64
	hashes []Hash // by tlog's stored index
}

// NewTree is the tree with these leaves, the oldest commit's first.
func NewTree(leaves []Hash) (*Tree, error) {
	t := &Tree{}
	for _, leaf := range leaves {
		more, err := tlog.StoredHashesForRecordHash(t.size, leaf, t)
		if err != nil {
			return nil, err
		}
		t.hashes = append(t.hashes, more...)
		t.size++
	}
	return t, nil
}

// ReadHashes is for package tlog.
func (t *Tree) ReadHashes(indexes []int64) ([]Hash, error) {
	out := make([]Hash, len(indexes))
	for i, at := range indexes {
		if at < 0 || at >= int64(len(t.hashes)) {
			return nil, fmt.Errorf("the tree has no hash %d", at)
		}
		out[i] = t.hashes[at]
	}
	return out, nil
}

// Size is the number of leaves.
func (t *Tree) Size() int64 { return t.size }

// Root is the hash of the tree over the first n leaves.
func (t *Tree) Root(n int64) (Hash, error) {
	if n < 0 || n > t.size {
		return Hash{}, fmt.Errorf("the tree has %d leaves, not %d", t.size, n)
	}
	return tlog.TreeHash(n, t)
}

// Consistency is the proof that the tree over the first n leaves only adds to that over
// the first old ones (RFC 6962, section 2.1.2). From nothing, and from n itself, there is nothing to prove.
func (t *Tree) Consistency(old, n int64) ([]Hash, error) {
	if old < 0 || old > n || n > t.size {
		return nil, fmt.Errorf("the tree has %d leaves, and there is no proof from %d to %d", t.size, old, n)
	}
	if old == 0 {
		return nil, nil
	}
	return tlog.ProveTree(n, old, t)
}

// A Checkpoint is what a log says of itself: that its tree of Size leaves has this Root.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   Hash
}

// Text is the note's text, with its last newline.
func (c Checkpoint) Text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

var errCheckpoint = errors.New("it is no checkpoint of three lines: origin, size, root")

// ParseCheckpoint reads what Text writes, and nothing else. Lines beyond the three, which
// the specification allows and advises against, are refused: no witness vouches for them. A fourth
// "needs_version MAJOR.MINOR" says that it is of a later version (package canon).
func ParseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) == 5 && lines[4] == "" {
		if needs, is := strings.CutPrefix(lines[3], "needs_version "); is && needs != "" {
			if err := canon.CheckGrowth("the checkpoint", nil, needs); err != nil {
				return Checkpoint{}, err
			}
		}
	}
	if len(lines) != 4 || lines[3] != "" || !IsName(lines[0]) {
		return Checkpoint{}, errCheckpoint
	}
	c := Checkpoint{Origin: lines[0]}
	var err error
	if c.Size, err = parseSize(lines[1]); err != nil {
		return Checkpoint{}, errCheckpoint
	}
	if c.Root, err = parseHash(lines[2]); err != nil {
		return Checkpoint{}, errCheckpoint
	}
	return c, nil
}

// mostName bounds an origin or the name of a key, in bytes.
const mostName = 200

// IsName reports whether a text can be an origin or the name of a key: at most 200 bytes of
// UTF-8 that all show, without a space or a plus.
func IsName(s string) bool {
	hides := func(r rune) bool { return r == '+' || r == ' ' || !unicode.IsPrint(r) }
	return s != "" && len(s) <= mostName && utf8.ValidString(s) && !strings.ContainsFunc(s, hides)
}

// parseSize reads a number as the formats write it.
func parseSize(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != s {
		return 0, errors.New("it is no size")
	}
	return n, nil
}

// parseHash reads base 64 strictly: one hash has one text.
func parseHash(s string) (h Hash, err error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != len(h) || base64.StdEncoding.EncodeToString(raw) != s {
		return h, errors.New("it is no hash")
	}
	return Hash(raw), nil
}
