// Package explain judges a branch: given its commits, a ledger, and the history of the Policy,
// it says of each commit what accounts for it, by which transactions, how strong their
// decisions are, or why nothing does. docs/explain.md has the definitions that it goes by. All
// that asks what accounts for a commit asks here: audits, evidence, attestations, the watch. It
// is pure, and needs no commit to be on any branch.
//
// It decides again on transactions of the past from their records: as it was, on other terms,
// and by another Policy. Nothing is approved by it.
package explain

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Code is the repository of the branch. What is not there is an error that says so.
type Code interface {
	// Paths are those in which the files of two commits differ, in byte order, with the modes
	// of Git's tree entries, 0 for none. No content is read.
	Paths(ctx context.Context, from, to string) ([]PathChange, error)
	// Diff is what turns the files of one commit into those of another; a change that
	// no patch can be is a *patch.Error.
	Diff(ctx context.Context, from, to string) (patch.Patchset, error)
	Tree(ctx context.Context, commit string) (fs.FS, error)
	// Blob is the content of a file.
	Blob(ctx context.Context, id string) ([]byte, error)
	// MergeBases are all best common ancestors.
	MergeBases(ctx context.Context, a, b string) ([]string, error)
	// Descends reports whether a commit is another, or descends from it; one that is not here is not.
	Descends(ctx context.Context, commit, ancestor string) (bool, error)
	// RawCommit is a commit as Git stores it.
	RawCommit(ctx context.Context, commit string) ([]byte, error)
}

// A PathChange is a path whose entry differs between two trees. Old and New are the modes
// of Git's entries, 0 for none.
type PathChange = code.PathChange

// By is what accounts for a commit.
type By string

// What accounts for a commit. ByMerge and ByBot are rules of the Policy.
const (
	ByTransaction By = "transaction"
	ByPullRequest By = "pull_request"
	ByMerge       By = "merge"
	ByBot         By = "bot"
	ByEmpty       By = "empty"
)

// An Explained commit, and what accounts for it. Transaction is "" for the rules; With are
// the others whose patches make the change together with its own. PartOf is a merge, or a
// range A..B, where the commit is accounted for only as a part of that. Signer is who signed
// the commit of a bot, by the file of keys. Late says that it was there before it was approved,
// "" where that is not so. Exact is true where the change is one patch, byte for byte.
type Explained struct {
	Commit      string   `json:"commit"`
	Subject     string   `json:"subject"`
	By          By       `json:"by"`
	Transaction string   `json:"transaction"`
	With        []string `json:"with"`
	PartOf      string   `json:"part_of"`
	Signer      string   `json:"signer"`
	Strength    Strength `json:"strength"`
	Late        string   `json:"late"`
	Exact       bool     `json:"exact"`
}

// Transactions are all that account for a commit.
func (e Explained) Transactions() []string {
	if e.Transaction == "" {
		return nil
	}
	return append([]string{e.Transaction}, e.With...)
}

// A Code of an Unexplained commit says why nothing accounts for it.
type Reason string

// The reasons, the gravest first.
const (
	Denied         Reason = "denied"
	RecordInvalid  Reason = "record_invalid"
	UnknownPolicy  Reason = "unknown_policy"
	WeakDecision   Reason = "weak_decision"
	NotApproved    Reason = "not_approved"
	NotApplied     Reason = "not_applied"
	UsedUp         Reason = "used_up"
	PartlyApproved Reason = "partly_approved"
	CannotTell     Reason = "cannot_tell"
	BadMerge       Reason = "merge"
	BeyondBot      Reason = "bot"
	NothingKnown   Reason = "nothing_known"
)

// Reasons are all of them, the gravest first.
var Reasons = []Reason{Denied, RecordInvalid, UnknownPolicy, WeakDecision, NotApproved, NotApplied, UsedUp, PartlyApproved, CannotTell, BadMerge, BeyondBot, NothingKnown}

// An Unexplained commit, and why that is so: by a code, in words, and the transactions
// that it is about. Paths are the first that it changes. Lines
// are those of a merge that neither side has, or those that no approved patch has where
// some are in the change.
type Unexplained struct {
	Commit       string   `json:"commit"`
	Subject      string   `json:"subject"`
	Code         Reason   `json:"code"`
	Reason       string   `json:"reason"`
	Transactions []string `json:"transactions"`
	Paths        []string `json:"paths"`
	MorePaths    int      `json:"more_paths"`
	Lines        []Lines  `json:"lines"`
}

// maxPaths is how many paths, and how many Lines, an Unexplained commit names.
const maxPaths = 20

// A Branch is all commits of a branch since one: Since, and what it descends from, is not
// listed. The newest are first.
type Branch struct {
	Name        string        `json:"name"`
	Since       string        `json:"since"`
	Commits     int           `json:"commits"`
	Unexplained []Unexplained `json:"unexplained"`
	Explained   []Explained   `json:"explained"`
	// Exceptions are those that the Policy has people review, as package evidence finds them: the overdue ones first.
	Exceptions []Exception `json:"exceptions,omitempty"`
}

// An Exception is a change that somebody independent has to review, or has reviewed (docs/evidence.md). Text has why, and what
// people found. DueBy is "" where the Policy sets no time.
type Exception struct {
	Commit  string         `json:"commit"`
	Commits []string       `json:"-"`
	Subject string         `json:"subject"`
	Codes   []string       `json:"codes"`
	Text    string         `json:"text"`
	DueBy   string         `json:"due_by"`
	State   ExceptionState `json:"state"`
}

// An ExceptionState is how far the review of an exception is.
type ExceptionState string

// The states, the gravest first.
const (
	Overdue  ExceptionState = "overdue"
	Due      ExceptionState = "due"
	Reviewed ExceptionState = "reviewed"
)

// Unreviewed are the exceptions that nobody independent has reviewed, and how many of them are overdue: those are first.
func Unreviewed(all []Exception) (open []Exception, overdue int) {
	for _, e := range all {
		if e.State == Overdue {
			overdue++
		}
		if e.State != Reviewed {
			open = append(open, e)
		}
	}
	return open, overdue
}

// Count is how many commits something accounts for.
func (b Branch) Count(by By) (n int) {
	for _, e := range b.Explained {
		if e.By == by {
			n++
		}
	}
	return n
}

// Options are what a branch is judged by. Ledger is the tree of its tip, Index what its
// transactions say of commits. Default are the commits of the default branch by first
// parents, the oldest first, beginning with the one that was there when the ledger began: whose Policy
// is believed. AtLeast is how strong decisions have to be, "" for any. Now is when it is
// judged. Coming is the ref that is about to get the commits, "" for none: an apply to it that
// has begun counts as done.
type Options struct {
	Ledger  fs.FS
	Index   *Index
	Code    Code
	Default []string
	AtLeast Strength
	Now     time.Time
	Coming  string
}

// A Result is what accounts for each commit of a branch. Chain are those that the branch
// itself was at, oldest first.
type Result struct {
	Chain       []code.BranchCommit
	Explained   map[string]Explained
	Unexplained map[string]Unexplained
	brought     map[string]string // by commit: the one of the chain that brought it
	order       []string          // as they were given
	judge       *judge
}

// Run judges commits: those of a branch that one commit does not have, the tip first.
func Run(ctx context.Context, o Options, commits []code.BranchCommit) (Result, error) {
	j, err := newJudge(ctx, o, commits)
	if err != nil || len(commits) == 0 {
		return j.Result, err
	}
	j.Chain = j.chain(commits[0].ID)
	for i, c := range j.Chain {
		if j.place[c.ID] = i; i == 0 && len(c.Parents) > 0 {
			j.before = c.Parents[0]
		}
		for _, s := range j.side(c) {
			j.brought[s.ID], j.taken[s.ID] = c.ID, true
		}
	}
	clear(j.taken)
	if err := j.line(ctx, commits[0].ID, true); err != nil {
		return j.Result, err
	}
	j.Result.judge = j
	return j.Result, j.tell()
}

// Has reports whether a commit was judged.
func (r Result) Has(commit string) bool {
	_, explained := r.Explained[commit]
	_, not := r.Unexplained[commit]
	return explained || not
}

// Forget lets go of what only Commit needs.
func (r *Result) Forget() { r.judge = nil }

// BroughtBy is the commit of the chain that brought a commit as a merge, "" for one of the chain.
func (r Result) BroughtBy(commit string) string { return r.brought[commit] }

// Order are all commits, in the order in which they were given: the newest first.
func (r Result) Order() []string { return r.order }

// After is what a chain's commits from the n-th on brought into the branch.
func (r Result) After(n int) (listed func(commit string) bool) {
	late := map[string]bool{}
	for _, c := range r.Chain[n:] {
		late[c.ID] = true
	}
	return func(commit string) bool { return late[commit] || late[r.brought[commit]] }
}

// List is the branch's commits that are to be listed. What since says is shown.
func (r Result) List(name, since string, listed func(commit string) bool) Branch {
	b := Branch{Name: name, Since: since, Unexplained: []Unexplained{}, Explained: []Explained{}}
	for _, id := range r.order {
		if !listed(id) {
			continue
		}
		b.Commits++
		if e, is := r.Explained[id]; is {
			b.Explained = append(b.Explained, e)
		} else {
			b.Unexplained = append(b.Unexplained, r.Unexplained[id])
		}
	}
	return b
}

// chain are the commits by first parents up to a tip, oldest first, that no line has yet.
func (j *judge) chain(tip string) (out []code.BranchCommit) {
	for id := tip; ; {
		c, here := j.commits[id]
		if !here || j.taken[id] {
			break
		}
		j.taken[id] = true
		out = append(out, c)
		if len(c.Parents) == 0 {
			break
		}
		id = c.Parents[0]
	}
	slices.Reverse(out)
	return out
}

// side are the commits that a merge brings, which no line has yet.
func (j *judge) side(c code.BranchCommit) (out []code.BranchCommit) {
	if len(c.Parents) < 2 {
		return nil
	}
	seen := map[string]bool{}
	for queue := slices.Clone(c.Parents[1:]); len(queue) > 0; queue = queue[1:] {
		one, here := j.commits[queue[0]]
		if !here || j.taken[one.ID] || seen[one.ID] {
			continue
		}
		seen[one.ID] = true
		out = append(out, one)
		queue = append(queue, one.Parents...)
	}
	return out
}

// at names a commit in an error.
func at(commit string, err error) error { return fmt.Errorf("commit %s: %w", commit, err) }
