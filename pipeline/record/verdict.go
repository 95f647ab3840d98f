package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A Verdict is what decisions added up to when the change was applied or merged, by the
// Policy that the record has. Reason is for people. BreakGlass says that ordinary approvals
// did not suffice, and somebody whom the Policy names broke the glass. Decisions are all
// that were made before.
type Verdict struct {
	Approved   bool
	Reason     string
	BreakGlass bool
	Decisions  []Decision
}

// A Decision is what one person said. ID and Login are their account's; a login may change
// hands. Decision is "approve" or "deny", About the fingerprint that it was about, such as
// "patchset:" and the PatchID, At a time of RFC 3339. Counted tells whether it counted, Why
// the reason. Key is the fingerprint of the key that signed it, "" where none did.
type Decision struct {
	ID, Login, Decision, About, At, Key string
	Counted                             bool
	Why                                 string
}

// ErrOpen is a record of what was neither applied nor merged: what counts is decided
// when that is done, by the Policy of then.
var ErrOpen = errors.New("the change was neither applied nor merged")

// Verdict decides again, from the record alone, what the change was applied or merged
// on. It is ErrOpen before that.
func (r *Record) Verdict() (Verdict, error) {
	event, ref, done := r.log.DecidedAt()
	if !done {
		return Verdict{}, ErrOpen
	}
	if tx := r.log.Transaction(); tx.GateOnly() { // the Policy that was asked when it was merged
		stood, err := approval.LastStanding(r.dir, r.log.Payloads()[:event])
		if err != nil {
			return Verdict{}, err
		}
		ref = stood.Policy
	}
	c, err := new(approval.Policies).Record(r.dir, r.log).Before(event, ref)
	if err != nil {
		return Verdict{}, err
	}
	v := c.Decide()
	out := Verdict{Approved: v.State == approval.Approved, Reason: v.Reason, BreakGlass: v.BreakGlass}
	for _, d := range v.Decisions {
		out.Decisions = append(out.Decisions, Decision{
			ID: d.Author.ID, Login: d.Author.Login, Decision: string(d.Decision), About: d.Fingerprint, At: d.CreatedAt, Key: d.SignedBy, Counted: d.Counted, Why: d.Reason,
		})
	}
	return out, nil
}

// Exactly returns nil if a commit is exactly what was approved: after differs from before
// by the approved patch, and by nothing else, also where the ledger has the patch only
// without its secrets. The trees are those of the commit and of its parent, and do not change
// meanwhile; ".git" at their root is no part of them. It is an error where the record has no
// approval, where anything differs, and where something cannot be read or compared: a
// submodule, also where it is an empty directory, and whatever is neither file nor link.
func (r *Record) Exactly(before, after fs.FS) error {
	v, err := r.Verdict()
	if err != nil {
		return err
	}
	if !v.Approved {
		return errors.New("nobody approved it: " + v.Reason)
	}
	approved := map[string]*patch.File{}
	for _, name := range r.proposal().TargetFiles {
		was, err := patch.Lookup(before, name)
		if err == nil {
			approved[name], err = patch.Lookup(after, name)
		}
		switch {
		case err != nil:
			return err
		case !reflect.DeepEqual(was.Sum(), r.proposal().BaseSHA256[name]):
			return fmt.Errorf("%s was not before what the patch is for", patch.Quote(name))
		case !reflect.DeepEqual(approved[name].Sum(), r.proposal().AfterSHA256[name]):
			return fmt.Errorf("%s is not as it was approved", patch.Quote(name))
		}
	}
	set, err := patch.NewTree(before).Between(approved)
	if err != nil {
		return err
	}
	if set.ID() != r.PatchID() {
		return errors.New("the patched files, or their modes, did not change as it was approved")
	}
	return same(before, after, approved)
}

// same holds that after is before, but for the files that are given.
func same(before, after fs.FS, but map[string]*patch.File) error {
	was, err := entries(before)
	if err != nil {
		return fmt.Errorf("the tree before: %w", err)
	}
	is, err := entries(after)
	if err != nil {
		return fmt.Errorf("the tree after: %w", err)
	}
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		_, patched := but[name]
		a, here := was[name]
		b, there := is[name]
		if patched && a != submodule && b != submodule {
			continue // it was looked at
		}
		if here != there || a != b {
			return fmt.Errorf("%s changed, and nobody approved that", patch.Quote(name))
		}
		if err := alike(before, after, name, b); err != nil {
			return err
		}
	}
	return nil
}

// submodule is the mode of what may be one: an empty directory, and one with a repository of its own.
const submodule = fs.ModeDir

// entries are the modes of what is in a tree, by path, directories left out.
func entries(tree fs.FS) (map[string]fs.FileMode, error) {
	out := map[string]fs.FileMode{}
	return out, fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git":
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case path.Base(name) == ".git":
			out[path.Dir(name)] = submodule
			return fs.SkipDir
		case e.IsDir():
			within, err := fs.ReadDir(tree, name)
			if len(within) == 0 && name != "." {
				out[name] = submodule
			}
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if out[name] = info.Mode().Type(); info.Mode().IsRegular() && info.Mode()&0o100 != 0 {
			out[name] = 0o100 // Git keeps no more of a file's mode
		}
		return nil
	})
}

// alike compares what is at a path of two trees.
func alike(before, after fs.FS, name string, mode fs.FileMode) error {
	var was, is []byte
	var err1, err2 error
	switch mode {
	case 0, 0o100:
		was, err1 = fs.ReadFile(before, name)
		is, err2 = fs.ReadFile(after, name)
	case fs.ModeSymlink:
		var a, b string
		a, err1 = fs.ReadLink(before, name)
		b, err2 = fs.ReadLink(after, name)
		was, is = []byte(a), []byte(b)
	default:
		return fmt.Errorf("%s is a submodule, or neither a file nor a link, and cannot be compared", patch.Quote(name))
	}
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		return fmt.Errorf("%s changed, and nobody approved that", patch.Quote(name))
	}
	return nil
}
