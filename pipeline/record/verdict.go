package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A Verdict is what decisions added up to when the change was applied or merged, by the
// Policy that the record has. Reason is for people. Decisions are all that were made.
type Verdict struct {
	Approved  bool
	Reason    string
	Decisions []Decision
}

// A Decision is what one person said. Decision is "approve", "deny" or "break-glass",
// About the kind and hash that it was about, At a time of RFC 3339. Counted tells
// whether it counted, Why the reason. Key is the fingerprint of the key that signed it,
// "" where none did.
type Decision struct {
	Login, Decision, About, At, Key string
	Counted                         bool
	Why                             string
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
	v, err := new(approval.Policies).Record(r.dir, r.log).Approved(event, ref)
	if err != nil {
		return Verdict{}, err
	}
	out := Verdict{Approved: v.State == approval.Approved, Reason: v.Reason}
	for _, d := range v.Decisions {
		out.Decisions = append(out.Decisions, Decision{
			Login: d.Author.Login, Decision: string(d.Decision), About: d.Fingerprint, At: d.CreatedAt, Key: d.SignedBy, Counted: d.Counted, Why: d.Reason,
		})
	}
	return out, nil
}

// Exactly returns nil if a commit is exactly what was approved: after differs from before
// by the approved patch, and by nothing else. The trees are those of the commit and of
// its parent; ".git" at their root is no part of them. It is an error where the record has no
// approval, where anything differs, and where something cannot be read or compared.
func (r *Record) Exactly(before, after fs.FS) error {
	v, err := r.Verdict()
	if err != nil {
		return err
	}
	if !v.Approved {
		return errors.New("nobody approved it: " + v.Reason)
	}
	raw, err := r.Patch()
	if err != nil {
		return err
	}
	diff, err := patch.Parse(raw)
	if err != nil {
		return err
	}
	set, err := diff.Resolve(before)
	if err != nil {
		return fmt.Errorf("the tree before is not the one that the patch is for: %w", err)
	}
	if set.ID() != r.PatchID() {
		return errors.New("the tree before makes another patch of it")
	}
	want := map[string]*patch.File{}
	for _, c := range set.Files() {
		if c.From != "" && c.From != c.Path {
			want[c.From] = nil
		}
	}
	for _, c := range set.Files() {
		want[c.Path] = c.After
	}
	return same(before, after, want)
}

// same holds that after is before, but for the files that are given.
func same(before, after fs.FS, but map[string]*patch.File) error {
	was, err := entries(before)
	if err != nil {
		return err
	}
	is, err := entries(after)
	if err != nil {
		return err
	}
	names := maps.Clone(was)
	maps.Copy(names, is)
	for name := range but {
		names[name] = 0
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		want, touched := but[name]
		switch {
		case touched:
			has, err := patch.Lookup(after, name)
			if err != nil {
				return err
			}
			if !has.Equal(want) {
				return fmt.Errorf("%s is not as it was approved", patch.Quote(name))
			}
		case was[name] != is[name]:
			return fmt.Errorf("%s changed, and nobody approved that", patch.Quote(name))
		default:
			if err := alike(before, after, name, is[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

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
		case e.IsDir():
			return nil
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
		return fmt.Errorf("%s is neither a file nor a link, and cannot be compared", patch.Quote(name))
	}
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		return fmt.Errorf("%s changed, and nobody approved that", patch.Quote(name))
	}
	return nil
}
