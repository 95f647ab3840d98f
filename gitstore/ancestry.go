package gitstore

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/object"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

// A NoMergeBaseError is two commits that have no ancestor in common.
type NoMergeBaseError struct{ A, B string }

func (e *NoMergeBaseError) Error() string {
	return fmt.Sprintf("commits %s and %s have no ancestor in common", e.A, e.B)
}

// A CutOffError is a history that is not here as far back as it takes, as in a
// shallow clone: Missing is a commit that was needed.
type CutOffError struct{ Missing string }

func (e *CutOffError) Error() string {
	return fmt.Sprintf("the history here does not go back to commit %s (a shallow clone?)", e.Missing)
}

func (*CutOffError) Hint() string { return "git fetch --unshallow" }

// maxAncestors bounds how many commits a merge base is looked for in, and so the
// memory for that. Linux has 1.4 million.
const maxAncestors = 2 << 20

// MergeBase returns the best common ancestor of two commits, of several the one
// that "git merge-base a b" prints. There is none: *NoMergeBaseError. The
// history here does not tell: *CutOffError. Commits count as they are: neither
// grafts nor the list of a shallow clone change their parents.
func (r *Repo) MergeBase(_ context.Context, a, b string) (string, error) {
	found, err := mergeBases(r.objects, plumbing.NewHash(a), plumbing.NewHash(b))
	if err != nil {
		return "", fmt.Errorf("looking for the merge base of %s and %s: %w", a, b, err)
	}
	if len(found) == 0 {
		return "", &NoMergeBaseError{a, b}
	}
	return found[0].String(), nil
}

// MergeBases returns all best common ancestors of two commits, as "git merge-base --all"
// does; none is no error. A history that does not tell is a *CutOffError.
func (r *Repo) MergeBases(_ context.Context, a, b string) ([]string, error) {
	found, err := mergeBases(r.objects, plumbing.NewHash(a), plumbing.NewHash(b))
	if err != nil {
		return nil, fmt.Errorf("looking for the merge bases of %s and %s: %w", a, b, err)
	}
	out := make([]string, len(found))
	for i, id := range found {
		out[i] = id.String()
	}
	return out, nil
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

// mergeBases returns the common ancestors that are no ancestors of another one,
// the latest first.
func mergeBases(s source, a, b plumbing.Hash) ([]plumbing.Hash, error) {
	p, err := paint(s, a, b)
	if err != nil {
		return nil, err
	}
	found := p.common()
	for _, id := range p.missing {
		if p.nodes[id].paint&stale == 0 { // else it has nothing before it but older ones
			return nil, &CutOffError{id.String()}
		}
	}
	if len(found) < 2 {
		return found, nil
	}
	return independent(s, p, found)
}

// independent leaves out those that are ancestors of others. A clock that was
// wrong can make painting find them.
func independent(s source, dates *painter, all []plumbing.Hash) ([]plumbing.Hash, error) {
	left := slices.Clone(all)
	for _, one := range all {
		if !slices.Contains(left, one) || len(left) == 1 {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(left), func(id plumbing.Hash) bool { return id == one })
		p, err := paint(s, one, others...)
		if err != nil {
			return nil, err
		}
		if len(p.missing) > 0 {
			return nil, &CutOffError{p.missing[0].String()}
		}
		left = slices.DeleteFunc(left, func(id plumbing.Hash) bool {
			if id == one {
				return p.nodes[id].paint&ofOthers != 0
			}
			return p.nodes[id].paint&ofOne != 0
		})
	}
	slices.SortStableFunc(left, dates.later)
	return left, nil
}

// What is known of a commit while it is painted. A stale one is an ancestor of
// a common ancestor.
type colours uint8

const (
	ofOne colours = 1 << iota
	ofOthers
	stale
	listed
)

type ancestor struct {
	paint   colours
	when    int64
	parents []plumbing.Hash
	queued  int  // how often it is in the queue
	gone    bool // it is not here
}

// painter walks two histories at once, from the latest commit back, and paints
// each commit with where it was reached from. What both reach is common. It
// ends when nothing is left but ancestors of common ones.
type painter struct {
	objects source
	nodes   map[plumbing.Hash]*ancestor
	missing []plumbing.Hash // nodes that are not here
	queue   queue
	added   int // to the queue, ever
	fresh   int // of the queue, those that are not stale
	found   []plumbing.Hash
}

func paint(s source, one plumbing.Hash, others ...plumbing.Hash) (*painter, error) {
	p := &painter{objects: s, nodes: map[plumbing.Hash]*ancestor{}}
	err := p.reach(one, ofOne)
	for _, id := range others {
		if err == nil {
			err = p.reach(id, ofOthers)
		}
	}
	for err == nil && p.fresh > 0 {
		err = p.step()
	}
	return p, err
}

// step takes the latest commit and reaches its parents.
func (p *painter) step() error {
	id := heap.Pop(&p.queue).(queued).id
	n := p.nodes[id]
	n.queued--
	if n.paint&stale == 0 {
		p.fresh--
	}
	reach := n.paint &^ listed
	if reach == ofOne|ofOthers {
		if n.paint&listed == 0 {
			n.paint |= listed
			p.found = append(p.found, id)
		}
		reach |= stale
	}
	for _, parent := range n.parents {
		if err := p.reach(parent, reach); err != nil {
			return err
		}
	}
	return nil
}

// reach paints a commit; one that gains by it is looked at again.
func (p *painter) reach(id plumbing.Hash, paint colours) error {
	n, known := p.nodes[id]
	if !known {
		var err error
		if n, err = p.load(id); err != nil {
			return err
		}
	}
	if n.paint&paint == paint {
		return nil
	}
	if n.paint&stale == 0 && paint&stale != 0 {
		p.fresh -= n.queued
	}
	n.paint |= paint
	if n.gone {
		return nil
	}
	n.queued++
	if n.paint&stale == 0 {
		p.fresh++
	}
	p.added++
	heap.Push(&p.queue, queued{id, n.when, p.added})
	return nil
}

func (p *painter) load(id plumbing.Hash) (*ancestor, error) {
	if len(p.nodes) == maxAncestors {
		return nil, fmt.Errorf("more than %d commits were looked at", maxAncestors)
	}
	n := &ancestor{}
	p.nodes[id] = n
	raw, err := readObject(p.objects, plumbing.CommitObject, id)
	if errors.Is(err, packfile.ErrMissing) {
		n.gone, p.missing = true, append(p.missing, id)
		return n, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := object.ParseCommit(raw)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", id, err)
	}
	n.parents, n.when = c.Parents, committedAt(raw)
	return n, nil
}

// common are the common ancestors that were found, the latest first.
func (p *painter) common() (out []plumbing.Hash) {
	for _, id := range p.found {
		if p.nodes[id].paint&stale == 0 {
			out = append(out, id)
		}
	}
	slices.SortStableFunc(out, p.later)
	return out
}

func (p *painter) later(a, b plumbing.Hash) int { return cmp.Compare(p.nodes[b].when, p.nodes[a].when) }

type queued struct {
	id    plumbing.Hash
	when  int64
	added int
}

// queue is a heap: the latest commit first, of two the one that was added
// first.
type queue []queued

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	return q[i].when > q[j].when || q[i].when == q[j].when && q[i].added < q[j].added
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is heap.Interface's.
func (q *queue) Push(x any) { *q = append(*q, x.(queued)) }

// Pop is heap.Interface's.
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// committedAt is a commit's time in seconds, 0 if it says none: "committer NAME
// <ADDRESS> SECONDS ZONE".
func committedAt(raw []byte) int64 {
	head, _, _ := strings.Cut(string(raw), "\n\n")
	_, rest, _ := strings.Cut(head, "\ncommitter ")
	line, _, _ := strings.Cut(rest, "\n")
	seconds, _, _ := strings.Cut(strings.TrimSpace(line[strings.LastIndexByte(line, '>')+1:]), " ")
	when, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return 0
	}
	return max(when, 0)
}

// Root returns the commit that a commit's history began with, by first parents.
// A history that is cut off before is a *CutOffError.
func (r *Repo) Root(_ context.Context, commit string) (string, error) {
	id := plumbing.NewHash(commit)
	for {
		c, err := readCommit(r.objects, id)
		if errors.Is(err, packfile.ErrMissing) {
			return "", &CutOffError{id.String()}
		}
		if err != nil {
			return "", err
		}
		if len(c.Parents) == 0 {
			return id.String(), nil
		}
		id = c.Parents[0]
	}
}

// Descends reports whether ancestor is commit or one of its ancestors; one that
// the repository does not have is not.
func (r *Repo) Descends(_ context.Context, commit, ancestor string) (bool, error) {
	if commit == ancestor {
		return true, nil
	}
	from, to := plumbing.NewHash(commit), plumbing.NewHash(ancestor)
	if _, err := readCommit(r.objects, from); err != nil {
		return false, err
	}
	_, err := readCommit(r.objects, to)
	if errors.Is(err, packfile.ErrMissing) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ok, err := descends(r.objects, from, to)
	if err != nil {
		err = fmt.Errorf("walking from %s: %w", commit, err)
	}
	return ok, err
}

// ErrNoBranch is a branch that is not there.
var ErrNoBranch error = &git.Known{Message: "there is no such branch", Try: "git branch --all"}

// CommitsBetween returns the commits that one commit has and since, another, has not, as "git
// rev-list since..commit" does: none that is since or an ancestor of it. The first is the
// commit itself, if it is one of them. A since that is not here leaves out nothing. A history that is cut off before it is a
// *CutOffError.
func (r *Repo) CommitsBetween(_ context.Context, since, commit string) ([]history.BranchCommit, error) {
	tip := plumbing.NewHash(commit)
	seen := map[plumbing.Hash]bool{}
	_, err := lineage.Walk(objectsOf{r.objects}, []plumbing.Hash{plumbing.NewHash(since)}, plumbing.ZeroHash, seen, nil)
	lost := errors.Is(err, packfile.ErrMissing)
	if err != nil && !lost {
		return nil, err
	}
	var out []history.BranchCommit
	_, err = lineage.Walk(objectsOf{r.objects}, []plumbing.Hash{tip}, plumbing.ZeroHash, seen, func(id plumbing.Hash, raw []byte) bool {
		_, message, _ := strings.Cut(string(raw), "\n\n")
		one := history.BranchCommit{ID: id.String(), Message: message, When: committedAt(raw)}
		if c, err := object.ParseCommit(raw); err == nil { // as Walk has read it
			for _, parent := range c.Parents {
				one.Parents = append(one.Parents, parent.String())
			}
		}
		out = append(out, one)
		return true
	})
	if lost || errors.Is(err, packfile.ErrMissing) {
		for _, c := range out {
			for _, parent := range c.Parents {
				if _, err := readCommit(r.objects, plumbing.NewHash(parent)); errors.Is(err, packfile.ErrMissing) {
					return nil, &CutOffError{parent}
				}
			}
		}
	}
	return out, err
}

// BranchTip is where a branch is, a remote branch ("origin/main"), or a ref's full name.
func (r *Repo) BranchTip(_ context.Context, name string) (string, error) {
	tip, err := r.branchTip(name)
	return tip.String(), err
}

// RawCommit returns a commit as Git stores it.
func (r *Repo) RawCommit(_ context.Context, commit string) ([]byte, error) {
	return readObject(r.objects, plumbing.CommitObject, plumbing.NewHash(commit))
}

func (r *Repo) branchTip(name string) (plumbing.Hash, error) {
	_, tip, err := r.firstRef(name, "refs/heads/", "refs/remotes/", "")
	if err == nil && tip.IsZero() {
		err = fmt.Errorf("%w: %+q", ErrNoBranch, name)
	}
	return tip, err
}

// firstRef returns the first ref that is there of those that one of the prefixes
// makes of a name, and what it is at; zero for none.
func (r *Repo) firstRef(name string, prefixes ...string) (full string, tip plumbing.Hash, err error) {
	for _, prefix := range prefixes {
		if ref, err := refName(prefix + name); err == nil {
			if tip, err := r.tip(ref); err != nil || !tip.IsZero() {
				return ref.String(), tip, err
			}
		}
	}
	return "", plumbing.ZeroHash, nil
}
