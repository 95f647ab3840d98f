package pipeline_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/workspace"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

var (
	bot = ledger.Actor{Kind: "bot", ID: "bot@example.org", Login: "bot"}
	ada = ledger.Actor{Kind: "user", ID: "ada@example.org", Login: "Ada"}
	bob = ledger.Actor{Kind: "user", ID: "bob@example.org", Login: "Bob"}
)

// fix changes a file, makes one and deletes one.
const fix = `diff --git a/greet.txt b/greet.txt
--- a/greet.txt
+++ b/greet.txt
@@ -1,3 +1,3 @@
 one
-hello
+hello, world
 three
diff --git a/new/file.txt b/new/file.txt
new file mode 100644
--- /dev/null
+++ b/new/file.txt
@@ -0,0 +1 @@
+new
diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-old
`

var (
	base  = map[string]string{"greet.txt": "one\nhello\nthree\n", "old.txt": "old\n", "other.txt": "other\n"}
	fixed = map[string]string{"greet.txt": "one\nhello, world\nthree\n", "new/file.txt": "new\n", "other.txt": "other\n"}
)

// commits is a repository: trees by commit id, the last one HEAD. What it has
// staged is what HEAD has.
type commits struct {
	code.Repository
	code.Refs
	trees []fstest.MapFS
	// parents are those of commits beside the line that the others are.
	parents map[string]string
	onLine  bool
	lost    string // a commit that cannot be compared with
	unread  string // one whose files cannot be read
	changed []string
}

func (c *commits) Changed(context.Context) ([]string, error) { return c.changed, nil }

func (c *commits) commit(files map[string]string) {
	tree := fstest.MapFS{}
	for name, data := range files {
		tree[name] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
	}
	c.trees = append(c.trees, tree)
}

func id(n int) string { return fmt.Sprintf("%040x", n) }

// Head is the last commit, or with onLine the last of the line: those that were
// built for a ref are beside it.
func (c *commits) Head(context.Context) (string, error) {
	n := len(c.trees)
	for c.onLine && c.parents[id(n)] != "" {
		n--
	}
	return id(n), nil
}

func (c *commits) Tree(_ context.Context, commit string) (fs.FS, error) {
	for i, tree := range c.trees {
		if commit == id(i+1) && commit != c.unread {
			return tree, nil
		}
	}
	return nil, fmt.Errorf("no commit %s", commit)
}

// TreeID: no two commits have the same tree.
func (c *commits) TreeID(_ context.Context, commit string) (string, error) { return commit, nil }

func (c *commits) Index(context.Context, []patch.Change) (code.IndexState, error) {
	return code.IndexState{}, nil
}

// Descends: the commits are one line, on which their ids count, and those beside
// it.
func (c *commits) Descends(_ context.Context, commit, ancestor string) (bool, error) {
	for commit != ancestor && c.parents[commit] != "" {
		commit = c.parents[commit]
	}
	return commit == ancestor || c.parents[ancestor] == "" && commit > ancestor, nil
}

// Past has the contents of the files in place of their ids.
func (c *commits) Past(_ context.Context, _ string, paths []string) (runs []code.Run, err error) {
	for n := len(c.trees); n > 0; n-- {
		blobs := make([]string, len(paths))
		for i, path := range paths {
			if f := c.trees[n-1][path]; f != nil {
				blobs[i] = string(f.Data)
			}
		}
		if last := len(runs) - 1; last < 0 || !slices.Equal(runs[last].Blobs, blobs) {
			runs = append(runs, code.Run{Newest: id(n), Back: len(c.trees) - n, Blobs: blobs})
		}
		runs[len(runs)-1].Oldest = id(n)
	}
	return runs, nil
}

// Drift counts the ids between, and those beside the line.
func (c *commits) Drift(ctx context.Context, a, b string) (n int, files []string, err error) {
	var trees [2]fstest.MapFS
	at := [2]int{}
	for i, commit := range []string{a, b} {
		tree, err := c.Tree(ctx, commit)
		if err != nil || commit == c.lost {
			return 0, nil, fmt.Errorf("no commit %s", commit)
		}
		for c.parents[commit] != "" {
			commit, n = c.parents[commit], n+1
		}
		trees[i] = tree.(fstest.MapFS)
		if _, err := fmt.Sscanf(commit, "%x", &at[i]); err != nil {
			return 0, nil, err
		}
	}
	for _, pair := range [][2]fstest.MapFS{trees, {trees[1], trees[0]}} {
		for name, file := range pair[0] {
			other := pair[1][name]
			if (other == nil || string(other.Data) != string(file.Data)) && !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	slices.Sort(files)
	return n + max(at[0]-at[1], at[1]-at[0]), files, nil
}

// A world is a repository with its checked-out files and its ledger.
type world struct {
	*testing.T
	store  *storetest.Memory
	repo   *commits
	dir    string
	policy policy.Policy
	keys   string // the file "keys" beside the Policy
	clock  int
	still  bool // the clock moves on only when somebody begins something
	random io.Reader
}

func newWorld(t *testing.T) *world {
	w := &world{
		T: t, store: &storetest.Memory{}, repo: &commits{parents: map[string]string{}}, dir: t.TempDir(),
		policy: policy.Default(), random: rand.NewChaCha8([32]byte{1}),
	}
	w.repo.commit(base)
	w.write(base)
	return w
}

func (w *world) write(files map[string]string) {
	w.Helper()
	for name, data := range files {
		file := filepath.Join(w.dir, filepath.FromSlash(name))
		fatal(w, os.MkdirAll(filepath.Dir(file), 0o777))
		fatal(w, os.WriteFile(file, []byte(data), 0o644))
	}
}

// now is a clock that moves on by a second whenever it is read, unless it stands
// still.
func (w *world) now() time.Time {
	if !w.still {
		w.clock++
	}
	return w.time()
}

// time is what the clock shows.
func (w *world) time() time.Time { return time.Date(2026, 1, 5, 0, 0, w.clock, 0, time.UTC) }

// as is the program, run by somebody.
func (w *world) as(who ledger.Actor) *pipeline.Runner {
	w.Helper()
	if w.still {
		w.clock += 60
	}
	tree, err := workspace.Open(w.dir, w.dir+"-state", false)
	fatal(w, err)
	return &pipeline.Runner{
		Store: w.store, Repo: w.repo, Refs: w.repo, Worktree: tree, Secrets: secret.Default(), Diffs: gitpatch.Reader{}, Rules: w.rules, Actor: who, Decider: who, Tool: "test",
		Now: w.now, Entropy: w.random,
	}
}

// rules are the world's Policy, as if HEAD had it.
func (w *world) rules(ctx context.Context, _ string) (pipeline.Rules, error) {
	head, err := w.repo.Head(ctx)
	beside := fstest.MapFS{"keys": &fstest.MapFile{Data: []byte(w.keys), Mode: 0o644}}
	return pipeline.Rules{Policy: w.policy, Commit: head, Found: true, Keys: approval.ReadKeys(beside, w.policy)}, err
}

// reviews is a proposal of somebody, recorded.
func (w *world) reviews(who ledger.Actor, in input.Change) review.Reviewed {
	w.Helper()
	out, err := review.Run(w.Context(), w.as(who), in, false)
	fatal(w, err)
	return out
}

func (w *world) review() review.Reviewed {
	w.Helper()
	return w.reviews(bot, w.input(fix))
}

func (w *world) input(diff string) input.Change {
	w.Helper()
	in, err := input.Diff([]byte(diff), "greet the world")
	fatal(w, err)
	return in
}

func (w *world) says(who ledger.Actor, d ledger.Decision, tx string) pipeline.Judgement {
	w.Helper()
	g, err := w.as(who).Decide(w.Context(), tx, pipeline.Ruling{Decision: d, Reason: "because", Kind: "local"})
	fatal(w, err)
	return g
}

// approved is a transaction that waits to be applied.
func (w *world) approved() pipeline.Judgement {
	w.Helper()
	tx := w.review().ID
	w.gate(tx)
	w.says(ada, ledger.Approve, tx)
	return w.gate(tx)
}

func (w *world) gate(tx string) pipeline.Judgement {
	w.Helper()
	g, err := w.as(bot).Gate(w.Context(), tx)
	fatal(w, err)
	return g
}

func (w *world) apply(g pipeline.Judgement) pipeline.ApplyOutcome {
	w.Helper()
	out, err := w.as(bot).Apply(w.Context(), g, pipeline.ApplyOptions{})
	fatal(w, err)
	return out
}

// holds fails the test unless the working tree holds exactly these files.
func (w *world) holds(want map[string]string) {
	w.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(w.dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		name, _ := filepath.Rel(w.dir, file)
		got[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil || !reflect.DeepEqual(got, want) {
		w.Errorf("the working tree holds %v (%v), want %v", got, err, want)
	}
}

// sound fails the test unless a transaction is in a status and its record
// breaks no rule.
func (w *world) sound(tx string, want ledger.Status) {
	w.Helper()
	if got := w.log(tx).Transaction().Status; got != want {
		w.Errorf("the status is %s, want %s", got, want)
	}
	_, found := ledger.ReadOwn(w.directory(tx), tx)
	for _, v := range found {
		w.Errorf("the record: %+v", v)
	}
}

func (w *world) tip() string { return w.ledger().Tip }

// ledger is the ledger as it is now.
func (w *world) ledger() writing.Snapshot {
	w.Helper()
	snap, err := w.store.Snapshot(w.Context())
	fatal(w, err)
	return snap
}

func (w *world) log(tx string) *ledger.Log {
	w.Helper()
	log, err := lookup.Read(w.ledger().Tree, tx)
	fatal(w, err)
	return log
}

func (w *world) directory(tx string) fs.FS {
	w.Helper()
	dir, err := fs.Sub(w.ledger().Tree, ledger.Dir(tx))
	fatal(w, err)
	return dir
}

func (w *world) history(tx string) pipeline.Judgement {
	w.Helper()
	g, err := w.as(bot).History(w.Context(), w.ledger(), tx)
	fatal(w, err)
	return g
}
