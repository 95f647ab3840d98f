package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// ErrNoMergeBase is the cause of the error of two commits that are not of one history.
var ErrNoMergeBase = errors.New("have no ancestor in common")

// A CutOffError is a history that is not here as far back as it takes, as in a
// shallow clone: Missing is a commit that was needed.
type CutOffError struct{ Missing string }

func (e *CutOffError) Error() string {
	return fmt.Sprintf("the history here does not go back to commit %s (a shallow clone?)", e.Missing)
}

func (*CutOffError) Hint() string { return "git fetch --unshallow" }

// missingCommit is how git names one that it needed; in a partial clone it would fetch that.
var missingCommit = canon.Regexp(`(?:Could not read|Not a valid commit name|bad object|could not fetch) ([0-9a-f]{40,64})`)

// history asks git about commits as they are: neither a graft or replacement, nor a commit-graph or the list
// of a shallow clone says what their parents are. What only Fetch has brought counts. Where a commit that it
// took is not here, cut is that, and the answer is of what is left when the clone's shallow commits end it.
func (r *Repo) history(ctx context.Context, args ...string) (out, cut string, err error) {
	c := r.command(append([]string{"-c", "core.commitGraph=false"}, args...)...)
	if _, err := os.Stat(r.ownObjects()); err == nil {
		c.Env = append(c.Env, git.Alternates(r.ownObjects()))
	}
	whole := c
	whole.Env = append(slices.Clip(c.Env), "GIT_SHALLOW_FILE=")
	out, warned, err := whole.Warned(ctx)
	missing := missingCommit().FindStringSubmatch(warned)
	if missing == nil {
		return out, "", err
	}
	out, warned, err = c.Warned(ctx)
	if again := missingCommit().FindStringSubmatch(warned); again != nil {
		return "", again[1], &CutOffError{again[1]}
	}
	return out, missing[1], err
}

// MergeBase returns the best common ancestor of two commits, of several the one
// that "git merge-base a b" prints. There is none: ErrNoMergeBase. The
// history here does not tell: *CutOffError. Commits count as they are: neither
// grafts nor the list of a shallow clone change their parents.
func (r *Repo) MergeBase(ctx context.Context, a, b string) (string, error) {
	found, err := r.MergeBases(ctx, a, b)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("commits %s and %s %w", a, b, ErrNoMergeBase)
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// MergeBases returns all best common ancestors of two commits, as "git merge-base --all"
// does; none is no error. A history that does not tell is a *CutOffError.
func (r *Repo) MergeBases(ctx context.Context, a, b string) ([]string, error) {
	a, b = r.name(a), r.name(b)
	out, cut, err := r.history(ctx, "merge-base", "--all", a, b)
	found := strings.Fields(out)
	switch {
	case git.IsNo(err) && cut == "":
		return nil, nil
	case git.IsNo(err):
		err = &CutOffError{cut}
	case err == nil && cut != "":
		err = r.notCut(ctx, cut, append([]string{a, b, "--not"}, found...)...)
	}
	for _, base := range found {
		if err == nil {
			err = r.hold(ctx, "--ancestry-path", "^"+base, a, b)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the merge bases of %s and %s: %w", a, b, err)
	}
	return found, nil
}

// notCut is a *CutOffError where commits of a range are those at which a shallow clone ends.
func (r *Repo) notCut(ctx context.Context, cut string, commits ...string) error {
	shallow, err := idsIn(filepath.Join(r.gitDir, "shallow"))
	if err != nil {
		return err
	}
	out, _, err := r.history(ctx, append([]string{"rev-list"}, commits...)...)
	for id := range strings.FieldsSeq(out) {
		if shallow[r.id(id)] {
			err = &CutOffError{cut}
		}
	}
	return err
}

// CheckMergeBase refuses a commit that cannot be the merge base of two others: it
// has to be an ancestor of both, as far as the history here tells.
func (r *Repo) CheckMergeBase(ctx context.Context, base, a, b string) error {
	for _, tip := range []string{a, b} {
		before, err := r.Descends(ctx, tip, base)
		if errors.Is(err, lineage.ErrCutOff) || errors.Is(err, packfile.ErrMissing) {
			continue // a shallow clone
		}
		if err != nil {
			return err
		}
		if !before {
			return fmt.Errorf("commit %s is not before %s, and so not their merge base", base, tip)
		}
	}
	return nil
}

// Root returns the commit that a commit's history began with, by first parents.
// A history that is cut off before is a *CutOffError.
func (r *Repo) Root(ctx context.Context, commit string) (string, error) {
	root, cut, err := r.history(ctx, "rev-list", "--first-parent", "--max-parents=0", r.name(commit))
	if err == nil && cut != "" {
		err = &CutOffError{cut}
	}
	return strings.TrimSpace(root), err
}

// Descends reports whether ancestor is commit or one of its ancestors; one that
// the repository does not have is not. A history that is cut off before that is known is lineage.ErrCutOff.
func (r *Repo) Descends(ctx context.Context, commit, ancestor string) (bool, error) {
	if commit == ancestor {
		return true, nil
	}
	from, to := r.id(commit), r.id(ancestor)
	if _, err := readCommit(r.objects, from); err != nil {
		return false, err
	}
	if _, err := readCommit(r.objects, to); err != nil {
		return false, missingIsNil(err)
	}
	_, cut, err := r.history(ctx, "merge-base", "--is-ancestor", to.String(), from.String())
	if cut == "" && git.IsNo(err) {
		return false, nil
	}
	if cut != "" { // before the ancestor, it may be: what matters is what is before the commit
		var before string
		if before, cut, err = r.history(ctx, "rev-list", from.String()); err == nil && strings.Contains(before, to.String()) {
			return true, r.hold(ctx, "--ancestry-path", "^"+to.String(), from.String())
		}
		if cut != "" {
			err = fmt.Errorf("%w: commit %s is missing", lineage.ErrCutOff, cut)
		} else if err == nil {
			return false, nil
		}
	}
	if err == nil {
		err = r.hold(ctx, "--ancestry-path", "^"+to.String(), from.String())
	}
	if err != nil {
		err = fmt.Errorf("walking from %s: %w", commit, err)
	}
	return err == nil, err
}

// hold holds the commits of a range to their names, which git does not when it walks (T95).
func (r *Repo) hold(ctx context.Context, commits ...string) error {
	out, _, err := r.history(ctx, append([]string{"rev-list"}, commits...)...)
	for id := range strings.FieldsSeq(out) {
		if err == nil {
			_, err = readCommit(r.objects, r.id(id))
		}
	}
	return err
}

// OnRemote reports whether a branch of a remote has a commit, as far as this clone knows.
func (r *Repo) OnRemote(ctx context.Context, commit string) (bool, error) {
	out, _, err := r.history(ctx, "rev-list", "--max-count=1", r.name(commit), "--not", "--remotes")
	return err == nil && out == "", err
}

// ErrNoBranch is a branch that is not there.
var ErrNoBranch = fault.Refuse("there is no such branch", "git branch --all")

// CommitsBetween returns the commits that one commit has and since, another, has not, as "git
// rev-list since..commit" does: none that is since or an ancestor of it. The first is the
// commit itself, if it is one of them. A since that is not here leaves out nothing. A history that is cut off before it is a
// *CutOffError.
func (r *Repo) CommitsBetween(ctx context.Context, since, commit string) ([]code.BranchCommit, error) {
	commits := []string{r.name(commit)}
	if from := r.id(since); r.has(from) {
		commits = append(commits, "^"+from.String())
	}
	ids, err := r.listed(ctx, commits...)
	if err != nil {
		return nil, err
	}
	return r.Commits(ids)
}

// Commits reads what CommitsBetween returns of commits.
func (r *Repo) Commits(ids []string) ([]code.BranchCommit, error) {
	out := make([]code.BranchCommit, len(ids))
	return out, parallel.Try(askers, len(ids), func(i int) error {
		c, raw, err := readRawCommit(r.objects, r.id(ids[i]))
		if err != nil {
			return err
		}
		when, message, _ := packfile.Committed(raw) // one without a time is of 0
		out[i] = code.BranchCommit{ID: ids[i], Message: message, When: max(when, 0)}
		for _, parent := range c.Parents {
			out[i].Parents = append(out[i].Parents, parent.String())
		}
		return nil
	})
}

// askers is how many questions about objects are asked at a time: git goes from one to the next without waiting.
const askers = 16

// ReadAhead reads what the last of some commits change, as far as that is kept: who asks for one after another waits less
// then. What cannot be read is told then.
func (r *Repo) ReadAhead(ctx context.Context, commits []code.BranchCommit) {
	_ = parallel.Try(askers, min(len(commits), 2000), func(i int) error {
		if c := commits[len(commits)-1-i]; len(c.Parents) > 0 {
			_, _ = r.Paths(ctx, c.Parents[0], c.ID)
		}
		return ctx.Err()
	})
}

// listed are the commits of a range. One of which a parent is not here is a *CutOffError.
func (r *Repo) listed(ctx context.Context, commits ...string) (ids []string, err error) {
	out, cut, err := r.history(ctx, append([]string{"rev-list"}, commits...)...)
	if err == nil && cut != "" {
		err = r.notCut(ctx, cut, commits...)
	}
	return strings.Fields(out), err
}

// BranchTip is where a branch is, a remote branch ("origin/main"), or a ref's full name.
func (r *Repo) BranchTip(_ context.Context, name string) (string, error) {
	tip, err := r.branchTip(name)
	return tip.String(), err
}

// RawCommit returns a commit as Git stores it.
func (r *Repo) RawCommit(_ context.Context, commit string) ([]byte, error) {
	return readObject(r.objects, plumbing.CommitObject, r.id(commit))
}

func (r *Repo) branchTip(name string) (packfile.ID, error) {
	_, tip, err := r.firstRef(name, "refs/heads/", "refs/remotes/", "")
	if err == nil && tip.IsZero() {
		err = fmt.Errorf("%w: %+q", ErrNoBranch, name)
	}
	return tip, err
}

// firstRef returns the first ref that is there of those that one of the prefixes
// makes of a name, and what it is at; zero for none.
func (r *Repo) firstRef(name string, prefixes ...string) (full string, tip packfile.ID, err error) {
	var names []string
	for _, prefix := range prefixes {
		if ref, err := refName(prefix + name); err == nil {
			names = append(names, ref.String())
		}
	}
	refs, err := r.refs(names...)
	for _, full := range names {
		if at, there := refs[full]; there {
			return full, at.id, at.err
		}
	}
	return "", packfile.None, err
}
