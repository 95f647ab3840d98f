package verdict

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
)

// A Way is one way to alter a ledger, as somebody would who can write to it, so that a reader can see that the audit tells.
type Way struct {
	How   string `json:"how"`   // its name
	Title string `json:"title"` // what it does, as a request
	// OnlyKnown says that the rules alone may not tell: it takes a tip that is known, or
	// signatures, as the ledger that is left agrees with itself.
	OnlyKnown bool `json:"only_known"`

	do func(*cheat) (changed string, err error)
}

// Ways are all ways to cheat.
var Ways = []Way{
	{"patch", "Change one byte of a patch", false, (*cheat).patch},
	{"rewind", "Leave out the last commit", true, (*cheat).rewind},
}

// A cheat is a ledger while it is altered, in memory: what was made stands before what was there.
type cheat struct {
	lineage.Objects
	made packfile.Batch
	tip  packfile.ID
}

// View returns an object as the cheat leaves it.
func (c *cheat) View(id packfile.ID) (packfile.Object, error) {
	if o, made := c.made.Get(id); made {
		return o, nil
	}
	return c.Objects.View(id)
}

func (c *cheat) commit(id packfile.ID) (raw []byte, parsed packfile.Commit, err error) {
	o, err := c.View(id)
	if err == nil {
		parsed, err = packfile.ParseCommit(o.Data)
	}
	return o.Data, parsed, err
}

// Cheat audits, as somebody who knows its tip, the ledger in a bundle as a way to cheat leaves it, and says what that changed. The bundle
// stays as it is.
func Cheat(b *packfile.Bundle, ref packfile.Ref, how string, q Question) (found audit.Result, changed string, err error) {
	i := slices.IndexFunc(Ways, func(w Way) bool { return w.How == how })
	if i < 0 {
		return found, "", fmt.Errorf("there is no way to cheat named %+q", how)
	}
	c := &cheat{Objects: b, made: packfile.Batch{Format: packfile.FormatOf(ref.ID)}, tip: ref.ID}
	if changed, err = Ways[i].do(c); err == nil {
		q.Tip = ref.ID.String()
		found, err = OfObjects(c, packfile.Ref{Name: ref.Name, ID: c.tip}, q)
	}
	return found, changed, err
}

// patch changes the latest patch that was recorded, and makes the commits from there on again.
func (c *cheat) patch() (string, error) {
	isPatch := func(one history.Change) bool {
		_, _, of := ledger.Within(one.Path)
		return of && strings.Contains(one.Path, "/patches/") && strings.HasSuffix(one.Path, ".diff")
	}
	var commits []packfile.ID
	for at := c.tip; !at.IsZero(); {
		now, err := lineage.New(c, lineage.Options{Tip: at}).Commit(at)
		if err != nil {
			return "", err
		}
		commits = append(commits, at)
		if i := slices.IndexFunc(now.Changes, isPatch); i >= 0 {
			slices.Reverse(commits)
			path := now.Changes[i].Path
			return fmt.Sprintf("One byte of %s is another one. Commits made again: %d.", path, len(commits)), c.rewrite(commits, path)
		}
		if at = packfile.None; len(now.Parents) > 0 {
			at = now.Parents[0]
		}
	}
	return "", errors.New("this ledger has no patch that is stored as text")
}

// rewrite makes commits again, the oldest first, each with one file altered, so that git accepts what it leaves. A signature is left
// out: the cheat has no key.
func (c *cheat) rewrite(commits []packfile.ID, path string) error {
	for i, id := range commits {
		raw, now, err := c.commit(id)
		if err != nil {
			return err
		}
		if payload, _, err := signing.Split(raw); err == nil {
			raw = payload
		}
		if i > 0 {
			now.Parents = []packfile.ID{c.tip}
		}
		if now.Tree, err = c.flip(now.Tree, path); err != nil {
			return err
		}
		next := "tree " + now.Tree.String()
		for _, p := range now.Parents {
			next += "\nparent " + p.String()
		}
		_, rest, _ := bytes.Cut(raw, []byte("\nauthor "))
		if c.tip, err = c.put(plumbing.CommitObject, append([]byte(next+"\nauthor "), rest...)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cheat) put(kind plumbing.ObjectType, data []byte) (packfile.ID, error) {
	return c.made.AddOn(packfile.Object{Type: kind, Data: data}, packfile.None)
}

// flip returns a tree in which one letter of the file at a path is another one; with "", that file.
func (c *cheat) flip(id packfile.ID, path string) (packfile.ID, error) {
	o, err := c.View(id)
	if err != nil {
		return id, err
	}
	if path == "" {
		raw := bytes.Clone(o.Data)
		if i := bytes.LastIndexFunc(raw, unicode.IsLetter); i >= 0 {
			raw[i] ^= 1
		}
		return c.put(o.Type, raw)
	}
	name, below, _ := strings.Cut(path, "/")
	var out []byte
	for e, rest, ok := c.made.Format.CutEntry(o.Data); ok; e, rest, ok = c.made.Format.CutEntry(rest) {
		if string(e.Name) == name {
			next, err := c.flip(e.ID(), below)
			if err != nil {
				return id, err
			}
			e.Raw = next.Append(nil)
		}
		out = e.Append(out)
	}
	return c.put(o.Type, out)
}

func (c *cheat) rewind() (string, error) {
	raw, last, err := c.commit(c.tip)
	if err == nil && len(last.Parents) != 1 {
		err = errors.New("this ledger has one commit alone")
	}
	if err != nil {
		return "", err
	}
	_, message, _ := strings.Cut(string(raw), "\n\n")
	subject, _, _ := strings.Cut(message, "\n")
	changed := fmt.Sprintf("The ledger ends before its last commit, %s (%s).", c.tip, subject)
	c.tip = last.Parents[0]
	return changed, nil
}
