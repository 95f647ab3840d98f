package commits_test

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/audit/commits"
	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/coverage"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/sshsig"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// files are a tree: the text of each path.
type files map[string]string

func (f files) with(path, text string) files {
	out := maps.Clone(f)
	if out[path] = text; text == "" {
		delete(out, path)
	}
	return out
}

// A repo is code and a ledger about it, in memory. It is what commits.Code asks for.
type repo struct {
	t       testing.TB
	ledger  fstest.MapFS
	trees   map[string]files
	parents map[string][]string
	raw     map[string][]byte
	names   map[string]string // by commit or transaction: what the test calls it
	log     []history.BranchCommit
}

// lives are the transactions, the n-th of which greets the world in line 2 of
// dir/file<n>.txt: 0, 1 and 2 were applied, 3 is approved alone, 4 is only proposed, and 5
// is the diff of a pull request, approved.
var lives = []storetest.Life{storetest.Whole, storetest.Whole, storetest.Whole, storetest.Given, storetest.Reviewed, storetest.Guarded}

// written is the ledger of all tests, which change it in copies alone.
var written = sync.OnceValues(func() (fstest.MapFS, error) {
	tree := fstest.MapFS{}
	entries, err := storetest.Lives(lives...)
	for _, e := range entries {
		pages, err := ledger.Pages(tree, e)
		if err != nil {
			return nil, err
		}
		for _, files := range []map[string][]byte{pages, e.Files} {
			for name, data := range files {
				tree[name] = &fstest.MapFile{Data: data, Mode: 0o644}
			}
		}
	}
	return tree, err
})

func newRepo(t testing.TB) *repo {
	t.Helper()
	tree, err := written()
	r := &repo{t: t, ledger: maps.Clone(tree), trees: map[string]files{}, parents: map[string][]string{}, raw: map[string][]byte{}, names: map[string]string{}}
	r.check(err)
	ids, err := ledger.IDs(r.ledger)
	r.check(err)
	for _, id := range ids {
		log, err := ledger.Read(r.ledger, id)
		r.check(err)
		p := log.Transaction().Pointers.Proposal
		path, n := p.TargetFiles[0], 0
		if _, err := fmt.Sscanf(path, "dir/file%d.txt", &n); err != nil {
			t.Fatal(err)
		}
		r.names[id] = fmt.Sprintf("tx%d", n)
		r.trees[p.BaseCommit] = files{path: before(n)}
	}
	return r
}

func before(n int) string { return fmt.Sprintf("one\nhello %d\nthree\n", n) }
func after(n int) string  { return fmt.Sprintf("one\nhello, world %d\nthree\n", n) }

func (r *repo) check(err error) {
	if err != nil {
		r.t.Helper()
		r.t.Fatal(err)
	}
}

// commit makes a commit whose first line is what the test calls it.
func (r *repo) commit(message string, tree files, parents ...string) string {
	id := fmt.Sprintf("%x", sha1.Sum(fmt.Append(nil, len(r.log), message)))
	r.put(id, message, tree, parents...)
	return id
}

func (r *repo) put(id, message string, tree files, parents ...string) {
	r.trees[id], r.parents[id] = tree, parents
	name, _, _ := strings.Cut(message, "\n")
	r.names[id] = name
	r.raw[id] = fmt.Appendf(nil, "tree %040d\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\n%s\n", len(r.log), message)
	r.log = append(r.log, history.BranchCommit{ID: id, Message: message, Parents: parents})
}

// signed has a key sign a commit.
func (r *repo) signed(id string, sign func(namespace string, message []byte) string) string {
	r.raw[id] = sshsig.Insert(r.raw[id], sign("git", r.raw[id]))
	return id
}

// applied is the commit that a transaction's apply made.
func (r *repo) applied(n int) string {
	for id, name := range r.names {
		if name != fmt.Sprintf("tx%d", n) {
			continue
		}
		log, err := ledger.Read(r.ledger, id)
		r.check(err)
		for _, done := range ledger.Of[*ledger.ApplyComplete](log) {
			if done.Success {
				return done.CommitAfter
			}
		}
	}
	r.t.Fatalf("transaction %d was not applied", n)
	return ""
}

func (r *repo) Diff(_ context.Context, from, to string) (patch.Patchset, error) {
	a, is := r.trees[from]
	b, are := r.trees[to]
	if !is || !are {
		return patch.Patchset{}, errors.New("no such commit")
	}
	after := map[string]*patch.File{}
	for path := range a {
		after[path] = nil
	}
	for path, text := range b {
		after[path] = &patch.File{Mode: patch.Regular, Data: []byte(text)}
	}
	return patch.Between(a.fs(), after)
}

func (f files) fs() fs.FS {
	out := fstest.MapFS{}
	for path, text := range f {
		out[path] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return out
}

func (r *repo) Tree(_ context.Context, commit string) (fs.FS, error) {
	if tree, is := r.trees[commit]; is {
		return tree.fs(), nil
	}
	return nil, errors.New("no such commit")
}

func (r *repo) RawCommit(_ context.Context, commit string) ([]byte, error) {
	return r.raw[commit], nil
}

// ancestors are a commit and all that it descends from.
func (r *repo) ancestors(commit string) map[string]bool {
	all := map[string]bool{}
	for queue := []string{commit}; len(queue) > 0; queue = queue[1:] {
		if !all[queue[0]] {
			all[queue[0]] = true
			queue = append(queue, r.parents[queue[0]]...)
		}
	}
	return all
}

func (r *repo) MergeBases(_ context.Context, a, b string) (best []string, err error) {
	of, common := r.ancestors(b), []string{}
	for id := range r.ancestors(a) {
		if of[id] {
			common = append(common, id)
		}
	}
	for _, id := range common {
		if !slices.ContainsFunc(common, func(o string) bool { return o != id && r.ancestors(o)[id] }) {
			best = append(best, id)
		}
	}
	return best, nil
}

// indexOf is what the transactions of a tree say, recorded in the order of their ids.
func indexOf(tree fs.FS) (*commits.Index, error) {
	clock := commits.NewClock(storetest.InOrder{Tree: tree})
	if err := clock.Commits(func(history.Commit) {}); err != nil {
		return nil, err
	}
	return commits.NewIndex(tree, clock)
}

// options judge by no rule of a Policy.
func (r *repo) options() commits.Options {
	index, err := indexOf(r.ledger)
	r.check(err)
	return commits.Options{Ledger: r.ledger, Index: index, Code: r, Policy: policy.Default(), Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
}

// judge says of each commit that a tip has and since has not what accounts for it, the
// oldest first, with names for ids.
func (r *repo) judge(o commits.Options, since, tip string) (told []string) {
	r.t.Helper()
	old, all := r.ancestors(since), r.ancestors(tip)
	var list []history.BranchCommit
	for _, c := range slices.Backward(r.log) {
		if all[c.ID] && !old[c.ID] {
			list = append(list, c)
		}
	}
	got, err := commits.Run(context.Background(), o, list)
	r.check(err)
	b := got.List("main", since, got.After(0))
	if b.Commits != len(list) || len(b.Explained)+len(b.Unexplained) != len(list) {
		r.t.Errorf("%d commits; %d are listed, %d explained, %d not", len(list), b.Commits, len(b.Explained), len(b.Unexplained))
	}
	for _, c := range slices.Backward(list) {
		r.compare(got, c)
		if e, is := got.Explained[c.ID]; is {
			line := fmt.Sprintf("%s: %s", r.names[c.ID], e.By)
			for _, more := range append([]string{e.Transaction}, e.With...) {
				if more != "" {
					line += " " + r.names[more]
				}
			}
			if e.Signer != "" {
				line += " " + e.Signer
			}
			if from, to, isRange := strings.Cut(e.PartOf, ".."); isRange {
				line += fmt.Sprintf(", of %s..%s", r.names[from], r.names[to])
			} else if e.PartOf != "" {
				line += ", of " + r.names[e.PartOf]
			}
			told = append(told, line)
			continue
		}
		u := got.Unexplained[c.ID]
		line := fmt.Sprintf("%s: NOT, %s", r.names[c.ID], r.named(u.Reason))
		for _, l := range u.Lines {
			line += fmt.Sprintf(" %s:%d-%d", l.Path, l.From, l.To)
		}
		told = append(told, line)
	}
	return told
}

// named puts the names that the test has for ids into a text.
func (r *repo) named(text string) string {
	for id, name := range r.names {
		text = strings.ReplaceAll(text, id, name)
		if len(id) == 40 {
			text = strings.ReplaceAll(text, id[:12], name)
		}
	}
	return text
}

// compare holds what accounts for a commit against what audit --commit says of it, or of
// the range that it is a part of. That one does not ask whether the approval was for another
// commit, and knows no rule of the Policy.
func (r *repo) compare(got commits.Result, c history.BranchCommit) {
	if len(c.Parents) == 0 {
		return
	}
	e := got.Explained[c.ID]
	from, to := c.Parents[0], c.ID
	if a, b, isRange := strings.Cut(e.PartOf, ".."); isRange {
		from, to = a, b
	} else if e.PartOf != "" {
		from, to = r.parents[e.PartOf][0], e.PartOf
	}
	set, err := r.Diff(context.Background(), from, to)
	var unfit *patch.Error
	if err != nil && !errors.As(err, &unfit) {
		r.t.Fatal(err)
	}
	one := coverage.Explanation{Explanation: audit.Explanation{From: from, Commit: to}}
	r.check(one.Look(r.ledger, set, unfit, func(id string) (fs.FS, error) { return r.Tree(context.Background(), id) }))
	switch {
	case e.By == commits.ByBot || e.By == commits.ByMerge || r.names[c.ID] == "again" || r.names[c.ID] == "early":
	case one.Explained != (e.By != ""):
		r.t.Errorf("%s: audit --commit says %+v, audit --branch %+v", r.names[c.ID], one, e)
	case e.By != "" && one.Result == coverage.Replay:
		var ids []string
		for _, claim := range one.Transactions {
			if claim.Explains {
				ids = append(ids, claim.TransactionID)
			}
		}
		if !slices.Equal(ids, append([]string{e.Transaction}, e.With...)) {
			r.t.Errorf("%s: audit --commit names %q, audit --branch %+v", r.names[c.ID], ids, e)
		}
	}
}
