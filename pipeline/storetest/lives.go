package storetest

import (
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Life is how far a transaction gets, and which way.
type Life int

// The lives that a transaction can have.
const (
	Whole    Life = iota // reviewed, approved, applied, validated: 5 commits
	Reviewed             // and left
	Asked                // gate: waiting for an approval; then proposed by another one, too
	Refused              // denied by a person; with it another one of the same patch
	Given                // approved, and left
	CutOff               // an apply that was begun and not ended
	Retried              // an apply that failed, then one that did not; not validated
	Stopped              // interrupted
	Gone                 // superseded: the base changed
	lives
)

// Signed is Whole, with an approval that is signed, as the Policy asks. It is none of
// Mixed.
const Signed Life = -1

// Guarded is a pull request's own diff, approved. It is none of Mixed.
const Guarded Life = -2

// Late is an apply that was begun and ended before it wrote; then the patch is denied, and somebody
// writes the same bytes, which are found. It is none of Mixed.
const Late Life = -3

// Mixed is n lives of every kind.
func Mixed(n int) []Life {
	out := make([]Life, n)
	for i := range out {
		out[i] = Life(i % int(lives))
	}
	return out
}

// Lives makes the entries of transactions with these lives, as the pipeline
// itself records them; a few transactions go on at the same time.
func Lives(all ...Life) ([]writing.Entry, error) { return LivesOf(5, all...) }

// LivesOf is Lives of another ledger for each seed.
func LivesOf(seed byte, all ...Life) ([]writing.Entry, error) {
	return livesOf(seed, func(_ int, tree fs.FS, e writing.Entry) map[string][]byte { return page.Versions(nil).Of(tree, e) }, all)
}

// LivesWith is Lives with what somebody makes of the pages of each entry, by its number, given the tree before it. A path
// without bytes is removed, with all below it.
func LivesWith(pages func(n int, tree fs.FS, e writing.Entry) map[string][]byte, all ...Life) ([]writing.Entry, error) {
	return livesOf(5, pages, all)
}

func livesOf(seed byte, pages func(n int, tree fs.FS, e writing.Entry) map[string][]byte, all []Life) ([]writing.Entry, error) {
	w := &world{
		pages:  pages,
		tree:   newFiles(),
		trees:  map[string]fstest.MapFS{},
		refs:   map[string]string{},
		now:    time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC),
		random: rand.NewChaCha8([32]byte{seed}),
	}
	const atOnce = 3
	var going [][]step
	for i, l := range all {
		going = append(going, w.stages(i, l))
		for len(going) == atOnce || i == len(all)-1 && len(going) > 0 {
			n := int(w.random.Uint64() % uint64(len(going)))
			if err := going[n][0](); err != nil {
				return nil, fmt.Errorf("transaction %d: %w", i, err)
			}
			if going[n] = going[n][1:]; len(going[n]) == 0 {
				going = slices.Delete(going, n, n+1)
			}
		}
	}
	return w.entries, nil
}

// world is a repository and a ledger, in memory.
type world struct {
	tree    *files
	tip     int
	entries []writing.Entry
	trees   map[string]fstest.MapFS // by commit
	head    string
	refs    map[string]string
	now     time.Time
	random  *rand.ChaCha8
	broken  error // what MoveRef does
	pages   func(n int, tree fs.FS, e writing.Entry) map[string][]byte
}

// A life is one transaction on its way.
type life struct {
	*world
	n      int
	policy policy.Policy
	keys   approval.Keys
	name   string
	before *fstest.MapFile
	base   string // the commit that it is reviewed on
	id     string
}

type step = func() error

// stages are the steps of one life, of about a second each.
func (w *world) stages(i int, kind Life) []step {
	l := &life{world: w, n: i, policy: policy.Default(), name: fmt.Sprintf("dir/file%d.txt", i), before: file(fmt.Sprintf("one\nhello %d\nthree\n", i))}
	if i%2 == 1 && kind != Whole {
		l.policy.Approvals.Required = 2
	}
	l.base = w.commit(fstest.MapFS{l.name: l.before})
	approved := []step{l.review, l.says(ledger.Approve, "")}
	if l.policy.Approvals.Required == 2 {
		approved = []step{l.review, l.gate, l.says(ledger.Approve, ""), l.says(ledger.Approve, "2")}
	}
	switch kind {
	case Signed:
		l.policy.Approvals.Required, l.policy.Approvals.Keys, l.policy.Approvals.Signed = 1, "keys", policy.SignedOnly
		l.keys = approval.ReadKeys(fstest.MapFS{"keys": file(KeyLine() + "\n")}, l.policy)
		return []step{l.review, l.signs, l.apply(nil, true), l.validate}
	case Guarded:
		l.policy.Approvals.Required = 1
		return []step{l.guarded, l.commented}
	case Whole:
		return append(approved, l.apply(nil, true), l.validate)
	case Asked:
		return []step{l.review, l.gate, l.again}
	case Refused:
		return l.refused()
	case Given:
		return approved
	case CutOff:
		return append(approved, l.apply(errKilled, false))
	case Late:
		return append(approved, l.apply(errKilled, false), l.says(ledger.Deny, "3"), l.written, l.apply(nil, false))
	case Retried:
		return append(approved, l.apply(errors.New("no space"), false), l.apply(nil, true))
	case Stopped:
		return append(approved, l.stop)
	case Gone:
		return append(approved, func() error {
			w.trees[l.base][l.name] = file("somebody else's\n")
			return l.apply(nil, false)()
		})
	}
	return []step{l.review}
}

// as is a Runner for one person, a second later.
func (l *life) as(kind, id, login string) *pipeline.Runner {
	l.now = l.now.Add(1001 * time.Millisecond)
	who := ledger.Actor{Kind: kind, ID: "local:" + id, Login: login}
	return &pipeline.Runner{
		Store: l, Repo: l, Refs: l, Secrets: secret.Default(), Diffs: gitpatch.Reader{}, Actor: who, Decider: who,
		Rules: func(context.Context, string) (pipeline.Rules, error) {
			return pipeline.Rules{Policy: l.policy, Commit: l.base, Keys: l.keys}, nil
		},
		Tool: "countersign test", Now: func() time.Time { return l.now }, Entropy: l.random,
	}
}

func (l *life) bot() *pipeline.Runner { return l.as("bot", "bot@example.org", "bot") }

func (l *life) change() (input.Change, error) {
	l.head = l.base
	return input.Diff(fmt.Appendf(nil, "diff --git a/%s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1,3 +1,3 @@\n one\n-hello %d\n+hello, world %[2]d\n three\n", l.name, l.n), "greet the world")
}

func (l *life) review() error {
	in, err := l.change()
	if err != nil {
		return err
	}
	in.Messages = []string{"greet the world\n\nIt was for nobody.\n\nAssisted-by: some model"}
	out, err := review.Run(context.Background(), l.bot(), in, false)
	l.id = out.ID
	return err
}

// again is the same change of another agent, which says what it did.
func (l *life) again() error {
	in, err := l.change()
	if err != nil {
		return err
	}
	in.Format, in.Trace = input.FormatCodex, []any{map[string]any{"tool": "shell", "input": "ls"}}
	out, err := review.Run(context.Background(), l.as("bot", "agent@example.org", "agent"), in, false)
	if err == nil && (out.ID != l.id || out.Again != review.AgainRecorded) {
		err = fmt.Errorf("proposed again: %+v", out)
	}
	return err
}

func (l *life) gate() error {
	_, err := l.bot().Gate(context.Background(), l.id)
	return err
}

// says is a decision of Ada, or of one of her namesakes.
func (l *life) says(d ledger.Decision, namesake string) step {
	return func() error {
		_, err := l.as("user", "ada@example.org"+namesake, "Ada").Decide(context.Background(), l.id, pipeline.Ruling{Decision: d, Reason: "because", Kind: "local"})
		return err
	}
}

var key = sync.OnceValue(func() teststand.Signer { return teststand.Ed25519(1) })

// KeyLine is the line of the file "keys", which lists who signs in the lives that are Signed.
func KeyLine() string { return "ada@example.org " + key().Public }

// signs is an approval of Ada's, signed with her key.
func (l *life) signs() error {
	r := l.as("user", "ada@example.org", "Ada")
	g, err := r.Judge(context.Background(), l.id)
	if err != nil {
		return err
	}
	s, err := g.Statement(ledger.Approve, []string{"patchset:" + g.Transaction().PatchID()}, "because", l.now)
	if err != nil {
		return err
	}
	signature := key().Signs(s)
	_, err = r.Decide(context.Background(), l.id, pipeline.Ruling{Kind: "local", Signature: &signature})
	return err
}

// apply moves a ref, or finds it broken; must says that it has to succeed.
func (l *life) apply(broken error, must bool) step {
	return func() error {
		l.head = l.base
		r := l.bot()
		snap, err := r.Ledger(context.Background())
		if err != nil {
			return err
		}
		g, err := r.History(context.Background(), snap, l.id)
		if err != nil {
			return err
		}
		l.broken = broken
		defer func() {
			l.broken = nil
			if broken == errKilled {
				_ = recover()
			}
		}()
		_, err = l.bot().Apply(context.Background(), g, pipeline.ApplyOptions{To: policy.ToRef})
		if must {
			return err
		}
		return nil
	}
}

// written is the change on the ref that apply writes to, by somebody else.
func (l *life) written() error {
	l.refs["refs/agent/applied/"+l.id] = l.commit(fstest.MapFS{l.name: file(fmt.Sprintf("one\nhello, world %d\nthree\n", l.n))})
	return nil
}

func (l *life) validate() error {
	v, err := l.bot().Validate(context.Background(), l.id)
	if err == nil && !v.Report.OK {
		err = fmt.Errorf("%+v", v.Report)
	}
	return err
}

func (l *life) stop() error {
	_, err := l.bot().Interrupt(context.Background(), l.id, "nobody needs it")
	return err
}

// refused: the same patch is proposed on two bases, denied in the first, and so
// refused in the second.
func (l *life) refused() []step {
	var first, second string
	return []step{
		l.review,
		func() error {
			first, l.base = l.id, l.commit(fstest.MapFS{l.name: l.before, "other": l.before})
			err := l.review()
			second = l.id
			return err
		},
		func() error {
			l.id = first
			return l.says(ledger.Deny, "")()
		},
		func() error {
			l.id = second
			return l.gate()
		},
	}
}

var errKilled = errors.New("killed")

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }

func (w *world) commit(tree fstest.MapFS) string {
	h := sha1.New()
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		fmt.Fprintf(h, "%s %q\n", name, tree[name].Data)
	}
	id := fmt.Sprintf("%x", h.Sum(nil))
	w.trees[id] = tree
	return id
}

// Snapshot returns the ledger, which goes on changing.
func (w *world) Snapshot(context.Context, ...string) (writing.Snapshot, error) {
	tip := ""
	if w.tip > 0 {
		tip = fmt.Sprintf("%040x", w.tip)
	}
	return writing.Snapshot{Tip: tip, Tree: w.tree}, nil
}

// At is Snapshot: there is one writer.
func (w *world) At(ctx context.Context, _ string) (writing.Snapshot, error) { return w.Snapshot(ctx) }

// Append adds entries.
func (w *world) Append(_ context.Context, _ string, entries ...writing.Entry) (string, error) {
	for _, e := range entries {
		pages := w.pages(len(w.entries), w.tree, e)
		w.tip++
		w.entries = append(w.entries, e)
		for name, data := range pages {
			if data == nil {
				w.tree.remove(name)
			}
		}
		for name, data := range pages {
			if data != nil {
				w.tree.put(name, data)
			}
		}
		for name, data := range e.Files {
			w.tree.put(name, data)
		}
	}
	return fmt.Sprintf("%040x", w.tip), nil
}

// Head is the commit that the transaction at hand is about.
func (w *world) Head(context.Context) (string, error) { return w.head, nil }

// Tree returns a commit's files.
func (w *world) Tree(_ context.Context, commit string) (fs.FS, error) {
	tree, ok := w.trees[commit]
	if !ok {
		return nil, fmt.Errorf("no commit %s", commit)
	}
	return tree, nil
}

// TreeID: no two commits have the same tree.
func (w *world) TreeID(_ context.Context, commit string) (string, error) { return commit, nil }

// Index says that everything is as HEAD has it.
func (w *world) Index(context.Context, []patch.Change) (code.IndexState, error) {
	return code.IndexState{}, nil
}

// Changed is nothing.
func (w *world) Changed(context.Context) ([]string, error) { return nil, nil }

// Descends is true of anything.
func (w *world) Descends(context.Context, string, string) (bool, error) { return true, nil }

// Drift is none.
func (w *world) Drift(context.Context, string, string) (int, []string, error) { return 0, nil, nil }

// Past is none.
func (w *world) Past(context.Context, string, []string) ([]code.Run, error) { return nil, nil }

// Ref returns a ref.
func (w *world) Ref(_ context.Context, name string) (string, error) { return w.refs[name], nil }

// BuildCommit makes a commit.
func (w *world) BuildCommit(_ context.Context, parent string, files []patch.Change, _ code.Commit) (string, error) {
	tree := maps.Clone(w.trees[parent])
	for _, f := range files {
		tree[f.Path] = &fstest.MapFile{Data: f.After.Data, Mode: 0o644}
	}
	return w.commit(tree), nil
}

// CheckRef takes any name.
func (w *world) CheckRef(context.Context, string) error { return nil }

// MoveRef moves a ref, unless it is to fail.
func (w *world) MoveRef(_ context.Context, name, _, next string) error {
	if w.broken == errKilled {
		panic(w.broken)
	}
	if w.broken == nil {
		w.refs[name] = next
	}
	return w.broken
}

// files is a tree that grows.
type files struct {
	data map[string][]byte
	dirs map[string]map[string]bool
}

func newFiles() *files { return &files{map[string][]byte{}, map[string]map[string]bool{".": {}}} }

func (f *files) put(name string, data []byte) {
	f.data[name] = bytes.Clone(data)
	for at := name; at != "."; at = path.Dir(at) {
		dir := path.Dir(at)
		if f.dirs[dir] == nil {
			f.dirs[dir] = map[string]bool{}
		}
		f.dirs[dir][path.Base(at)] = true
	}
}

// remove takes away a file, or a directory with all in it.
func (f *files) remove(name string) {
	for _, below := range slices.Sorted(maps.Keys(f.dirs[name])) {
		f.remove(path.Join(name, below))
	}
	delete(f.data, name)
	delete(f.dirs, name)
	delete(f.dirs[path.Dir(name)], path.Base(name))
}

func (f *files) info(op, name string) (fs.FileInfo, error) {
	if _, ok := f.dirs[name]; ok {
		return fs.Stat(fstest.MapFS{"d": {Mode: fs.ModeDir | 0o755}}, "d")
	}
	data, ok := f.data[name]
	if !ok {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	base := path.Base(name)
	return fs.Stat(fstest.MapFS{base: {Data: data, Mode: 0o644}}, base)
}

func (f *files) Stat(name string) (fs.FileInfo, error)  { return f.info("stat", name) }
func (f *files) Lstat(name string) (fs.FileInfo, error) { return f.info("lstat", name) }
func (f *files) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
}

func (f *files) ReadFile(name string) ([]byte, error) {
	data, ok := f.data[name]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return bytes.Clone(data), nil
}

func (f *files) ReadDir(name string) ([]fs.DirEntry, error) {
	dir := fstest.MapFS{}
	for base := range f.dirs[name] {
		if data, ok := f.data[path.Join(name, base)]; ok {
			dir[base] = &fstest.MapFile{Data: data, Mode: 0o644}
		} else {
			dir[base] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		}
	}
	return dir.ReadDir(".")
}

// Open opens a directory or a file.
func (f *files) Open(name string) (fs.File, error) {
	if data, ok := f.data[name]; ok {
		base := path.Base(name)
		return fstest.MapFS{base: {Data: data, Mode: 0o644}}.Open(base)
	}
	if _, ok := f.dirs[name]; !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	dir := fstest.MapFS{}
	for at := range f.data {
		if rest, below := strings.CutPrefix(at, name+"/"); below {
			dir[rest] = &fstest.MapFile{Data: f.data[at], Mode: 0o644}
		}
	}
	return dir.Open(".")
}

// Sub narrows the tree to a directory.
func (f *files) Sub(dir string) (fs.FS, error) { return below{f, dir}, nil }

type below struct {
	*files
	dir string
}

func (b below) Open(name string) (fs.File, error)      { return b.files.Open(path.Join(b.dir, name)) }
func (b below) Stat(name string) (fs.FileInfo, error)  { return b.files.Stat(path.Join(b.dir, name)) }
func (b below) Lstat(name string) (fs.FileInfo, error) { return b.files.Lstat(path.Join(b.dir, name)) }
func (b below) ReadFile(name string) ([]byte, error)   { return b.files.ReadFile(path.Join(b.dir, name)) }
func (b below) ReadDir(name string) ([]fs.DirEntry, error) {
	return b.files.ReadDir(path.Join(b.dir, name))
}
