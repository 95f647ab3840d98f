package gitstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// source is where objects are read from. Several goroutines may use it.
type source interface {
	Read(id plumbing.Hash) (packfile.Object, error)
	Size(id plumbing.Hash) (plumbing.ObjectType, int64, error)
}

// overlay serves what is not written yet before what is there.
type overlay struct {
	new *packfile.Batch
	source
}

func (o overlay) Read(id plumbing.Hash) (packfile.Object, error) {
	if object, ok := o.new.Get(id); ok {
		return object, nil
	}
	return o.source.Read(id)
}

// View is Read.
func (o overlay) View(id plumbing.Hash) (packfile.Object, error) { return o.Read(id) }

// readObject returns the content of an object, which must have this type.
func readObject(s source, kind plumbing.ObjectType, id plumbing.Hash) ([]byte, error) {
	o, err := s.Read(id)
	if err == nil && o.Type != kind {
		err = fmt.Errorf("object %s is a %s, not a %s", id, o.Type, kind)
	}
	return o.Data, err
}

// commit is what matters here of a commit.
type commit struct {
	tree    plumbing.Hash
	parents []plumbing.Hash
}

func readCommit(s source, id plumbing.Hash) (commit, error) {
	raw, err := readObject(s, plumbing.CommitObject, id)
	if err == nil {
		var c commit
		if c, err = parseCommit(raw); err == nil {
			return c, nil
		}
	}
	return commit{}, fmt.Errorf("reading commit %s: %w", id, err)
}

// parseCommit reads the first lines of a commit: "tree <id>", then any number
// of "parent <id>" (git-hash-object(1) checks the same).
func parseCommit(raw []byte) (c commit, err error) {
	text, ok := string(raw), false
	if c.tree, text, ok = headerLine(text, "tree "); !ok {
		return commit{}, fmt.Errorf("it has no tree")
	}
	for {
		parent, rest, ok := headerLine(text, "parent ")
		if !ok {
			break
		}
		c.parents, text = append(c.parents, parent), rest
	}
	if !strings.HasPrefix(text, "author ") {
		return commit{}, fmt.Errorf("it has no author")
	}
	return c, nil
}

func headerLine(text, key string) (id plumbing.Hash, rest string, ok bool) {
	line, rest, found := strings.Cut(text, "\n")
	hex, ok := strings.CutPrefix(line, key)
	if !found || !ok || !plumbing.IsHash(hex) {
		return id, text, false
	}
	return plumbing.NewHash(hex), rest, true
}

// identity is a name in a commit.
type identity struct{ name, email string }

// us is who commits what this program makes.
var us = identity{"countersign", "countersign@localhost"}

// encodeCommit writes a commit. All of its times are UTC.
func encodeCommit(c commit, author, committer identity, when time.Time, message string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", c.tree)
	for _, p := range c.parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	seconds := max(when.Unix(), 0)
	fmt.Fprintf(&b, "author %s %d +0000\n", author, seconds)
	fmt.Fprintf(&b, "committer %s %d +0000\n\n%s", committer, seconds, message)
	return []byte(b.String())
}

// String leaves out what would end a name or an address early, as git does.
func (i identity) String() string {
	clean := strings.NewReplacer("<", "", ">", "", "\n", "", "\x00", "")
	return clean.Replace(i.name) + " <" + clean.Replace(i.email) + ">"
}
