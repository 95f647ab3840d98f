package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Offered is what somebody's bundle of new commits comes to.
type Offered struct {
	Base    string         // the commit that they are made on, which is here
	Set     patch.Patchset // from its files to those of the last of them
	Commits [][]byte       // as they stand, the first first
}

// What a bundle of some megabytes may make of itself.
var offeredLimits = packfile.Limits{Held: 256 << 20, Made: 512 << 20}

// maxOffered is how many commits a bundle may bring.
const maxOffered = 1000

// A BundleError says why a bundle is no change to what is here.
type BundleError struct {
	Message string
	Missing string // the commit that it is made on and that is not here, "" if that is not why
}

func (e *BundleError) Error() string { return e.Message }

func (e *BundleError) Hint() string {
	if e.Missing == "" {
		return ""
	}
	return "git fetch --unshallow"
}

// ReadOffered reads a bundle of commits made on one that is here, as "git bundle create
// FILE BASE..BRANCH" writes it. Nothing of it is kept. Its one ref must lead to that
// commit in a line: a merge has a part that nobody would look at. What cannot be taken is
// a *BundleError, or a *patch.Error as Diff has it.
func (r *Repo) ReadOffered(ctx context.Context, raw []byte) (Offered, error) {
	out, err := r.readOffered(ctx, raw)
	if err != nil && !is[*BundleError](err) && !is[*patch.Error](err) && !is[*fs.PathError](err) {
		err = &BundleError{Message: err.Error()} // what is wrong is in the bundle, unless a file could not be read
	}
	return out, err
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

func (r *Repo) readOffered(_ context.Context, raw []byte) (Offered, error) {
	b, err := packfile.ReadBundleOn(bytes.NewReader(raw), int64(len(raw)), offeredLimits, r.objects.View)
	switch {
	case err != nil:
		return Offered{}, err
	case len(b.Refs) != 1:
		return Offered{}, &BundleError{Message: fmt.Sprintf("the bundle has %d refs, and which one is meant is not told", len(b.Refs))}
	case len(b.Needs) != 1:
		return Offered{}, &BundleError{Message: fmt.Sprintf("the bundle is made on %d commits, not on one", len(b.Needs))}
	}
	base, tip := b.Needs[0], b.Refs[0].ID
	if _, err := readCommit(r.objects, base); errors.Is(err, packfile.ErrMissing) {
		return Offered{}, &BundleError{Message: "the commit " + base.String() + ", which the bundle is made on, is not here", Missing: base.String()}
	} else if err != nil {
		return Offered{}, err
	}
	all := overlay{b.Objects(), r.objects}
	out := Offered{Base: base.String()}
	for at := tip; at != base; {
		o, there := b.Objects().Get(at)
		if !there || o.Type != plumbing.CommitObject {
			return Offered{}, &BundleError{Message: fmt.Sprintf("the bundle lacks the commit %s: its commits do not lead to %s in a line", at, base)}
		}
		c, err := readCommit(all, at)
		switch {
		case err != nil:
			return Offered{}, err
		case len(c.Parents) != 1:
			return Offered{}, &BundleError{Message: fmt.Sprintf("the commit %s has %d parents: a merge is refused, and so is a history of its own", at, len(c.Parents))}
		case len(out.Commits) == maxOffered:
			return Offered{}, &BundleError{Message: fmt.Sprintf("the bundle has more than %d commits", maxOffered)}
		}
		out.Commits, at = append(out.Commits, o.Data), c.Parents[0]
	}
	slices.Reverse(out.Commits)
	out.Set, err = diff(&lister{source: all}, base, tip)
	return out, err
}
