// Package commits says of each commit of a branch what accounts for it: a transaction, a
// pull request whose own diff was approved, a rule of the Policy, or nothing. It goes by
// files, signatures and the ledger alone. What a commit's author can write freely (its
// message, trailers, names and times) accounts for nothing. It is pure.
//
// The commits that the branch itself was at, one after another by first parents, are judged
// as a whole: by what each changes in its first parent. What a merge brought is judged
// with it. A transaction accounts for its change once: whoever makes it again, after it was
// taken back, needs another approval.
package commits

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/sshsig"
)

// Code is the repository of the branch.
type Code interface {
	// Diff is what turns the files of one commit into those of another; a change that
	// no patch can be is a *patch.Error.
	Diff(ctx context.Context, from, to string) (patch.Patchset, error)
	Tree(ctx context.Context, commit string) (fs.FS, error)
	// MergeBases are all best common ancestors.
	MergeBases(ctx context.Context, a, b string) ([]string, error)
	// RawCommit is a commit as Git stores it.
	RawCommit(ctx context.Context, commit string) ([]byte, error)
}

// By is what accounts for a commit.
type By string

// The four. ByMerge and ByBot are rules of the Policy.
const (
	ByTransaction By = "transaction"
	ByPullRequest By = "pull_request"
	ByMerge       By = "merge"
	ByBot         By = "bot"
)

// An Explained commit, and what accounts for it. Transaction is "" for the rules; With are
// the others whose patches make the change together with its own. PartOf is a merge, or a range A..B, where the commit is accounted for only as a part of that.
// Signer is who signed the commit of a bot, by the file of keys.
type Explained struct {
	Commit      string   `json:"commit"`
	Subject     string   `json:"subject"`
	By          By       `json:"by"`
	Transaction string   `json:"transaction"`
	With        []string `json:"with"`
	PartOf      string   `json:"part_of"`
	Signer      string   `json:"signer"`
}

// An Unexplained commit, and why that is so. Paths are the first that it changes. Lines
// are those of a merge that neither side has, or those that no approved patch has where
// some are in the change.
type Unexplained struct {
	Commit    string   `json:"commit"`
	Subject   string   `json:"subject"`
	Reason    string   `json:"reason"`
	Paths     []string `json:"paths"`
	MorePaths int      `json:"more_paths"`
	Lines     []Lines  `json:"lines"`
}

// Lines are some of a file: From to To, counted from 1. Where lines are missing there, To
// is From-1. Where From is 0 it is the file as a whole.
type Lines struct {
	Path string `json:"path"`
	From int    `json:"from"`
	To   int    `json:"to"`
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

// BotKeys are the keys of one of the Policy's rules for bots, or why they cannot be read.
type BotKeys struct {
	Allowed sshsig.Allowed
	Err     error
}

// Options are what a branch is judged by. Ledger is the tree of its tip, the Policy the one
// in force with a BotKeys for each of its bots. Now is when it is judged: a key that is not
// valid then accounts for nothing.
type Options struct {
	Ledger  fs.FS
	Index   *Index
	Code    Code
	Policy  policy.Policy
	BotKeys []BotKeys
	Now     time.Time
}

// A Result is what accounts for each commit of a branch. Chain are those that the branch
// itself was at, oldest first.
type Result struct {
	Chain       []history.BranchCommit
	Explained   map[string]Explained
	Unexplained map[string]Unexplained
	brought     map[string]string // by commit: the one of the chain that brought it
	order       []string          // as they were given
}

// Run judges commits: those of a branch that one commit does not have, the tip first.
func Run(ctx context.Context, o Options, commits []history.BranchCommit) (Result, error) {
	j := &judge{
		Options: o, commits: map[string]history.BranchCommit{}, used: map[string]string{}, claims: map[string][]audit.Claim{}, taken: map[string]bool{}, own: map[string][]string{},
		Result: Result{Explained: map[string]Explained{}, Unexplained: map[string]Unexplained{}, brought: map[string]string{}},
	}
	for _, c := range commits {
		j.commits[c.ID] = c
		j.order = append(j.order, c.ID)
	}
	if len(commits) == 0 {
		return j.Result, nil
	}
	for _, c := range commits { // what a transaction made is its own, whoever made the same before
		if err := j.keepsOwn(ctx, c); err != nil {
			return j.Result, fmt.Errorf("commit %s: %w", c.ID, err)
		}
	}
	j.Chain = j.chain(commits[0].ID)
	for _, c := range j.Chain {
		for _, s := range j.side(c) {
			j.brought[s.ID], j.taken[s.ID] = c.ID, true
		}
	}
	clear(j.taken)
	return j.Result, j.line(ctx, commits[0].ID)
}

// Has reports whether a commit was judged.
func (r Result) Has(commit string) bool {
	_, explained := r.Explained[commit]
	_, not := r.Unexplained[commit]
	return explained || not
}

// BroughtBy is the commit of the chain that brought a commit as a merge, "" for one of the chain.
func (r Result) BroughtBy(commit string) string { return r.brought[commit] }

// Order are all commits, in the order in which they were given: the newest first.
func (r Result) Order() []string { return r.order }

// keepsOwn notes the transactions that made a commit. That a record names a commit proves
// nothing of what is in it: it has to be exactly the change that was proposed.
func (j *judge) keepsOwn(ctx context.Context, c history.BranchCommit) error {
	if len(j.Index.made[c.ID]) == 0 || len(c.Parents) == 0 {
		return nil
	}
	set, err := j.Code.Diff(ctx, c.Parents[0], c.ID)
	if errors.As(err, new(*patch.Error)) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, id := range j.Index.made[c.ID] {
		if j.Index.patches[id] == set.ID() {
			j.own[c.ID], j.used[id] = append(j.own[c.ID], id), c.ID
		}
	}
	return nil
}

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

type judge struct {
	Options
	Result
	commits map[string]history.BranchCommit
	used    map[string]string        // by transaction: the commit that it accounts for
	claims  map[string][]audit.Claim // by patch_id
	taken   map[string]bool          // commits that belong to a line already
	own     map[string][]string      // by commit: the transactions that made it, and whose change it is
	tried   int                      // ranges
	work    int                      // of replays, up to maxWork
}

// chain are the commits by first parents up to a tip, oldest first, that no line has yet.
func (j *judge) chain(tip string) (out []history.BranchCommit) {
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
func (j *judge) side(c history.BranchCommit) (out []history.BranchCommit) {
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
