package cheat

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/object"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
)

// A cheat is a ledger while it is altered: what was made stands before what was there.
type cheat struct {
	base    lineage.Objects
	tip     object.ID
	made    map[object.ID]made
	changed string
}

type made struct {
	kind plumbing.ObjectType
	data []byte
}

// Object returns an object as the cheat leaves it.
func (c *cheat) Object(id object.ID) (plumbing.ObjectType, []byte, error) {
	if o, ok := c.made[id]; ok {
		return o.kind, o.data, nil
	}
	return c.base.Object(id)
}

func (c *cheat) put(kind plumbing.ObjectType, data []byte) (object.ID, error) {
	id, err := packfile.Object{Type: kind, Data: data}.ID(object.FormatOf(c.tip))
	c.made[id] = made{kind, data}
	return id, err
}

func (c *cheat) get(kind plumbing.ObjectType, id object.ID) ([]byte, error) {
	got, data, err := c.Object(id)
	if err == nil && got != kind {
		err = fmt.Errorf("object %s is a %s, not a %s", id, got, kind)
	}
	return data, err
}

// A commit is one as it was read.
type commit struct {
	id object.ID
	object.Commit
	raw []byte
}

// message is what a commit says, without a signature.
func (c commit) message() string {
	_, message, _ := strings.Cut(string(c.raw), "\n\n")
	return message
}

func (c *cheat) commit(id object.ID) (commit, error) {
	raw, err := c.get(plumbing.CommitObject, id)
	if err != nil {
		return commit{}, err
	}
	parsed, err := object.ParseCommit(raw)
	return commit{id, parsed, raw}, err
}

// latest returns the latest commit that fits, and those after it, the oldest first.
func (c *cheat) latest(fits func(commit) (bool, error)) (found commit, after []commit, err error) {
	for at := c.tip; !at.IsZero(); {
		now, err := c.commit(at)
		if err != nil {
			return commit{}, nil, err
		}
		ok, err := fits(now)
		if err != nil {
			return commit{}, nil, err
		}
		if ok {
			slices.Reverse(after)
			return now, after, nil
		}
		after = append(after, now)
		if at = object.None; len(now.Parents) > 0 {
			at = now.Parents[0]
		}
	}
	return commit{}, nil, nil
}

// An edit is what becomes of a file.
type edit struct {
	path string
	to   change
}

// A change makes other content of some.
type change func(data []byte) []byte

// rewrite makes commits again, the oldest first, each with the edits in its tree, and moves the
// tip to the last. A signature is left out: the cheat
// has no key.
func (c *cheat) rewrite(commits []commit, edits ...edit) error {
	done := map[string]object.ID{}
	parents := commits[0].Parents
	for _, old := range commits {
		tree := old.Tree
		for _, e := range edits {
			var err error
			if tree, err = c.inTree(tree, e.path, e.to, done); err != nil {
				return err
			}
		}
		raw := old.raw
		if bytes.Contains(raw, []byte("\ngpgsig")) {
			if payload, _, err := signing.Split(raw); err == nil {
				raw = payload
			}
		}
		head, message, _ := strings.Cut(string(raw), "\n\n")
		_, people, _ := strings.Cut(head, "\nauthor ")
		next := "tree " + tree.String()
		for _, p := range parents {
			next += "\nparent " + p.String()
		}
		var err error
		if c.tip, err = c.put(plumbing.CommitObject, []byte(next+"\nauthor "+people+"\n\n"+message)); err != nil {
			return err
		}
		parents = []object.ID{c.tip}
	}
	if len(commits) == 1 {
		c.changed += " The last commit is made again."
	} else {
		c.changed += fmt.Sprintf(" The last %d commits are made again.", len(commits))
	}
	return nil
}

// inTree returns a tree in which one file is changed, if it is there. done has what
// became of trees and files before.
func (c *cheat) inTree(id object.ID, path string, to change, done map[string]object.ID) (object.ID, error) {
	key := id.String() + path
	if next, ok := done[key]; ok {
		return next, nil
	}
	raw, err := c.get(plumbing.TreeObject, id)
	if err != nil {
		return id, err
	}
	name, below, nested := strings.Cut(path, "/")
	var out []byte
	for e, rest, ok := object.FormatOf(id).CutEntry(raw); ok; e, rest, ok = object.FormatOf(id).CutEntry(rest) {
		if string(e.Name) != name || e.IsDir() != nested {
			out = e.Append(out)
			continue
		}
		next := e.ID()
		if nested {
			if next, err = c.inTree(next, below, to, done); err != nil {
				return id, err
			}
		} else {
			data, err := c.get(plumbing.BlobObject, next)
			if err != nil {
				return id, err
			}
			if next, err = c.put(plumbing.BlobObject, to(data)); err != nil {
				return id, err
			}
		}
		out = object.Entry{Mode: e.Mode, Name: e.Name, Raw: next.Append(nil)}.Append(out)
	}
	next, err := c.put(plumbing.TreeObject, out)
	done[key] = next
	return next, err
}

// added are the paths that a commit changes, in order.
func (c *cheat) added(at commit) ([]string, error) {
	h := lineage.New(c, lineage.Options{Tip: at.id})
	changes, err := h.Commit(at.id)
	var paths []string
	for _, one := range changes.Changes {
		paths = append(paths, one.Path)
	}
	return paths, err
}
