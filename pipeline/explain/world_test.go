package explain_test

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

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

// files are a tree: the text of each path; "x:" before one makes the file executable, "l:" a link, "s:" a submodule.
type files map[string]string

func (f files) with(path, text string) files {
	out := maps.Clone(f)
	if out[path] = text; text == "" {
		delete(out, path)
	}
	return out
}

// A repo is code and a ledger about it, in memory. It is what explain.Code asks for.
type repo struct {
	t       testing.TB
	ledger  fstest.MapFS
	trees   map[string]files
	parents map[string][]string
	raw     map[string][]byte
	blobs   map[string]string // that were asked for
	names   map[string]string // by commit or transaction: what the test calls it
	log     []code.BranchCommit
}

// lives are the transactions, the n-th of which greets the world in line 2 of
// dir/file<n>.txt: 0, 1 and 2 were applied, 3 is approved alone, 4 is only proposed, and 5
// is the diff of a pull request, approved.
var lives = []storetest.Life{storetest.Whole, storetest.Whole, storetest.Whole, storetest.Given, storetest.Reviewed, storetest.Guarded}

// written is the ledger of all tests, which change it in copies alone.
var written struct {
	sync.Once
	tree fstest.MapFS
	ids  []string
}

func newRepo(t testing.TB) *repo {
	t.Helper()
	written.Do(func() { written.tree, written.ids = storetest.Recorded(t, lives...) })
	r := emptyRepo(t)
	r.ledger = maps.Clone(written.tree)
	for _, id := range written.ids {
		log, err := lookup.Read(r.ledger, id)
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

func emptyRepo(t testing.TB) *repo {
	return &repo{t: t, ledger: fstest.MapFS{}, trees: map[string]files{}, parents: map[string][]string{}, raw: map[string][]byte{}, blobs: map[string]string{}, names: map[string]string{}}
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
	r.raw[id] = fmt.Appendf(nil, "tree %040d\n", len(r.log))
	for _, parent := range parents {
		r.raw[id] = fmt.Appendf(r.raw[id], "parent %s\n", parent)
	}
	r.raw[id] = fmt.Appendf(r.raw[id], "author a <a> 1 +0000\ncommitter a <a> 1 +0000\n\n%s\n", message)
	r.log = append(r.log, code.BranchCommit{ID: id, Message: message, Parents: parents})
}

// signed has a key sign a commit.
func (r *repo) signed(id string, sign func(namespace string, message []byte) string) string {
	r.raw[id] = signing.Insert(r.raw[id], sign("git", r.raw[id]))
	return id
}

// applied is the commit that a transaction's apply made.
func (r *repo) applied(n int) string {
	for id, name := range r.names {
		if name != fmt.Sprintf("tx%d", n) {
			continue
		}
		log, err := lookup.Read(r.ledger, id)
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
	return a.diff(b)
}

// diff is what turns some files into others.
func (f files) diff(to files) (patch.Patchset, error) {
	after := map[string]*patch.File{}
	for path := range f {
		after[path] = nil
	}
	for path, text := range to {
		if was, has := f[path]; has && was == text {
			delete(after, path)
		} else {
			after[path] = file(text)
		}
	}
	return patch.NewTree(f.fs()).Between(after)
}

func (r *repo) Paths(_ context.Context, from, to string) (out []explain.PathChange, err error) {
	a, is := r.trees[from]
	b, are := r.trees[to]
	if !is || !are {
		return nil, errors.New("no such commit")
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		c := explain.PathChange{Path: path}
		if text, has := a[path]; has {
			c.Old, c.OldID = modeOf(text), file(text).BlobID()
		}
		if text, has := b[path]; has {
			c.New, c.NewID = modeOf(text), file(text).BlobID()
		}
		if c.OldID != c.NewID || c.Old != c.New {
			out = append(out, c)
		}
	}
	return out, nil
}

func (r *repo) Blob(_ context.Context, id string) ([]byte, error) {
	if _, known := r.blobs[id]; !known {
		for _, tree := range r.trees {
			for _, text := range tree {
				r.blobs[file(text).BlobID()] = text
			}
		}
	}
	if text, known := r.blobs[id]; known {
		return file(text).Data, nil
	}
	return nil, errors.New("no such blob")
}

func (r *repo) Descends(_ context.Context, commit, ancestor string) (bool, error) {
	return r.ancestors(commit)[ancestor], nil
}

func (f files) fs() fstest.MapFS {
	out := fstest.MapFS{}
	for path, text := range f {
		mode := fs.FileMode(0o644)
		switch {
		case file(text).Mode == patch.Executable:
			mode = 0o755
		case strings.HasPrefix(text, "l:"):
			mode |= fs.ModeSymlink
		case strings.HasPrefix(text, "s:"):
			mode |= fs.ModeIrregular
		}
		out[path] = &fstest.MapFile{Data: file(text).Data, Mode: mode}
	}
	return out
}

// modeOf is that of Git's entry.
func modeOf(text string) uint32 {
	switch {
	case strings.HasPrefix(text, "l:"):
		return 0o120000
	case strings.HasPrefix(text, "s:"):
		return 0o160000
	}
	return uint32(file(text).Mode)
}

func file(text string) *patch.File {
	if rest, ok := strings.CutPrefix(text, "x:"); ok {
		return &patch.File{Mode: patch.Executable, Data: []byte(rest)}
	}
	return &patch.File{Mode: patch.Regular, Data: []byte(text)}
}

func (r *repo) Tree(_ context.Context, commit string) (fs.FS, error) {
	if tree, is := r.trees[commit]; is {
		return tree.fs(), nil
	}
	return nil, errors.New("no such commit")
}

func (r *repo) RawCommit(_ context.Context, commit string) ([]byte, error) {
	if raw, is := r.raw[commit]; is {
		return raw, nil
	}
	raw := []byte("tree x\n")
	for _, parent := range r.parents[commit] {
		raw = fmt.Appendf(raw, "parent %s\n", parent)
	}
	return raw, nil
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
func indexOf(tree fs.FS) (*explain.Index, error) {
	clock := explain.NewClock(storetest.InOrder{Tree: tree})
	if err := clock.Commits(func(history.Commit) {}); err != nil {
		return nil, err
	}
	return explain.NewIndex(tree, clock)
}

// options judge by the Policy of the files, where the default branch is the one that is judged.
func (r *repo) options() explain.Options {
	index, err := indexOf(r.ledger)
	r.check(err)
	return explain.Options{Ledger: r.ledger, Index: index, Code: r, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
}

// judge says of each commit that a tip has and since has not what accounts for it, the
// oldest first, with names for ids.
func (r *repo) judge(o explain.Options, since, tip string) (told []string) {
	r.t.Helper()
	old, all := r.ancestors(since), r.ancestors(tip)
	var list []code.BranchCommit
	for _, c := range slices.Backward(r.log) {
		if all[c.ID] && !old[c.ID] {
			list = append(list, c)
		}
	}
	if o.Default == nil {
		o.Default = r.line(since, tip)
	}
	got, err := explain.Run(context.Background(), o, list)
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

// line are the commits by first parents from one to another.
func (r *repo) line(from, tip string) (out []string) {
	for id := tip; id != ""; id = append(r.parents[id], "")[0] {
		if out = append(out, id); id == from {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// compare holds what is said of one commit to what the list says.
func (r *repo) compare(got explain.Result, c code.BranchCommit) {
	if len(c.Parents) == 0 {
		return
	}
	one, err := got.Commit(context.Background(), c.ID)
	r.check(err)
	e, is := got.Explained[c.ID]
	var ids []string
	for _, claim := range one.Transactions {
		if claim.Explains {
			ids = append(ids, claim.TransactionID)
		}
	}
	if one.Explained != is || one.By != e.By || !slices.Equal(ids, e.Transactions()) || !is && one.Code != got.Unexplained[c.ID].Code {
		r.t.Errorf("%s: of the commit %+v, of the branch %+v", r.names[c.ID], one, e)
	}
}
