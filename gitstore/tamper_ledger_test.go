package gitstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// file is what a step does to a path.
type file struct {
	data []byte
	mode filemode.FileMode // zero: a regular file
	gone bool
	id   packfile.ID // an object to name instead of the data
}

// step is one commit of the history, as a tamperer sees it.
type step struct {
	files   map[string]file
	message string
	when    time.Time

	parents func(made []packfile.ID) []packfile.ID // of the steps before; nil: the last
	header  func(raw string) string
	tree    func(f *forge, root packfile.ID) packfile.ID // the commit's, not that of the later ones
}

// memoryObjects is the sound ledger's objects.
type memoryObjects map[packfile.ID]packfile.Object

func (m memoryObjects) View(id packfile.ID) (packfile.Object, error) { return m.Read(id) }

func (m memoryObjects) Read(id packfile.ID) (packfile.Object, error) {
	o, ok := m[id]
	if !ok {
		return o, packfile.ErrMissing
	}
	return o, nil
}

func (m memoryObjects) Size(id packfile.ID) (plumbing.ObjectType, int64, error) {
	o, err := m.Read(id)
	return o.Type, int64(len(o.Data)), err
}

// soundLedger is what all tamperers begin with.
type soundLedger struct {
	objects     memoryObjects
	steps       []step
	commits     []packfile.ID
	trees       []packfile.ID
	audited     map[packfile.ID]history.Commit
	unsigned    map[string]packfile.ID // the commits by their content without the signature
	signers     sshsig.Allowed
	signersText string
	sign        func([]byte) (string, error)
	of          map[string][]int // the steps of each transaction
	ids         []string
}

func signingKey(t testing.TB) (sign func([]byte) (string, error), allowed sshsig.Allowed, text string) {
	t.Helper()
	key := teststand.Ed25519(1)
	text = "ci@example.org " + key.Public + "\n"
	allowed, err := sshsig.ParseAllowedSigners([]byte(text))
	fatal(t, err)
	return func(raw []byte) (string, error) { return key.Sign("git", raw), nil }, allowed, text
}

// newSoundLedgerOf has so many lives, of which one in nine is two transactions.
func newSoundLedgerOf(t testing.TB, lives int) *soundLedger {
	t.Helper()
	s := &soundLedger{objects: memoryObjects{}, unsigned: map[string]packfile.ID{}, of: map[string][]int{}}
	s.sign, s.signers, s.signersText = signingKey(t)
	entries, err := storetest.Lives(storetest.Mixed(lives)...)
	fatal(t, err)
	tree := fstest.MapFS{}
	for i, e := range entries {
		st := step{files: map[string]file{}, message: e.Message, when: e.When}
		pages := page.Versions(nil).Of(tree, e)
		files := maps.Clone(e.Files)
		maps.Copy(files, pages)
		for name, data := range files {
			st.files[name] = file{data: data}
			tree[name] = &fstest.MapFile{Data: data}
			if id, _, ok := ledger.Within(name); ok && (len(s.of[id]) == 0 || s.of[id][len(s.of[id])-1] != i) {
				s.of[id] = append(s.of[id], i)
			}
		}
		s.steps = append(s.steps, st)
	}
	s.ids = slices.Sorted(maps.Keys(s.of))
	f, err := s.forge(s.steps, 0, s.sign)
	fatal(t, err)
	for _, id := range f.batch.IDs() {
		s.objects[id], _ = f.batch.Get(id)
	}
	s.commits, s.trees = f.commits, f.trees
	s.audited = map[packfile.ID]history.Commit{}
	var mu sync.Mutex
	h := lineage.New(f, f.options())
	err = h.Commits(func(c history.Commit) {
		mu.Lock()
		defer mu.Unlock()
		s.audited[packfile.ID(c.ID)] = c
	})
	fatal(t, err)
	return s
}

// forge is a history that somebody made.
type forge struct {
	*soundLedger
	batch   *packfile.Batch
	commits []packfile.ID
	trees   []packfile.ID
	tip     packfile.ID
	distort func(*lineage.Distortions)
	hidden  packfile.ID // an object that is not there
}

// forge makes the commits of steps, of which those before from are the sound
// ledger's own.
func (s *soundLedger) forge(steps []step, from int, sign func([]byte) (string, error)) (*forge, error) {
	f := &forge{soundLedger: s, batch: &packfile.Batch{}}
	var tree packfile.ID
	f.commits, f.trees = slices.Clone(s.commits[:from]), slices.Clone(s.trees[:from])
	if from > 0 {
		tree = s.trees[from-1]
	}
	b := builder{overlay{f.batch, s.objects}, f.batch}
	for _, st := range steps[from:] {
		var err error
		if tree, err = f.grow(&b, tree, st.files); err != nil {
			return nil, err
		}
		c := commit{Tree: tree}
		if len(f.commits) > 0 {
			c.Parents = f.commits[len(f.commits)-1:]
		}
		if st.parents != nil {
			c.Parents = st.parents(f.commits)
		}
		if st.tree != nil {
			c.Tree = st.tree(f, tree)
		}
		raw := packfile.EncodeCommit(c, packfile.Us, packfile.Us, st.when, st.message)
		if st.header != nil {
			raw = []byte(st.header(string(raw)))
		}
		if sign != nil {
			payload := string(raw)
			if raw, err = signed(raw, sign); err != nil {
				return nil, err
			}
			if s.unsigned[payload], err = (packfile.Object{Type: plumbing.CommitObject, Data: raw}).ID(packfile.SHA1); err != nil {
				return nil, err
			}
		} else if same, ok := s.unsigned[string(raw)]; ok { // nothing was changed: the signature still fits
			f.commits, f.trees = append(f.commits, same), append(f.trees, tree)
			continue
		}
		f.commits, f.trees = append(f.commits, f.put(plumbing.CommitObject, raw)), append(f.trees, tree)
	}
	f.tip = f.commits[len(f.commits)-1]
	return f, nil
}

// grow makes the next tree.
func (f *forge) grow(b *builder, tree packfile.ID, files map[string]file) (packfile.ID, error) {
	var edits []edit
	for name, one := range files {
		e := edit{path: name, gone: one.gone}
		if !one.gone {
			e.entry.mode, e.entry.id = one.mode, one.id
			if one.mode == 0 {
				e.entry.mode = filemode.Regular
			}
			if one.id.IsZero() {
				e.entry.id = f.put(plumbing.BlobObject, one.data)
			}
		}
		edits = append(edits, e)
	}
	slices.SortFunc(edits, func(a, b edit) int { return strings.Compare(a.path, b.path) })
	next, err := b.tree(tree, edits)
	if err == nil && next.IsZero() {
		next = f.put(plumbing.TreeObject, nil)
	}
	return next, err
}

func (f *forge) put(kind plumbing.ObjectType, data []byte) packfile.ID {
	ids, err := f.batch.Add(packfile.Object{Type: kind, Data: data})
	if err != nil {
		panic(err)
	}
	return ids[0]
}

// View serves the forger's objects before the sound ones.
func (f *forge) View(id packfile.ID) (packfile.Object, error) {
	if id == f.hidden {
		return packfile.Object{}, fmt.Errorf("object %s: %w", id, packfile.ErrMissing)
	}
	if o, ok := f.batch.Get(id); ok {
		return o, nil
	}
	return f.objects.View(id)
}

func (f *forge) Read(id packfile.ID) (packfile.Object, error) { return f.View(id) }

func (f *forge) Size(id packfile.ID) (plumbing.ObjectType, int64, error) {
	o, err := f.View(id)
	return o.Type, int64(len(o.Data)), err
}

func (f *forge) options() lineage.Options {
	o := lineage.Options{Tip: f.tip, Signers: &f.signers}
	if f.distort != nil {
		f.distort(&o.Distortions)
	}
	return o
}

// remembering is a history that has read the sound ledger's commits before:
// what a commit changed is the same, whatever comes after it.
type remembering struct {
	*lineage.History
	f *forge
}

func (r remembering) Commits(visit func(history.Commit)) error {
	if r.f.distort != nil || !r.f.hidden.IsZero() {
		return r.History.Commits(visit)
	}
	age := 0
	for at := r.f.tip; !at.IsZero(); age++ {
		c, ok := r.f.audited[at]
		if !ok {
			var err error
			if c, err = r.Commit(at); err != nil {
				return r.History.Commits(visit)
			}
		}
		c.Age = age
		visit(c)
		at = packfile.None
		if len(c.Parents) > 0 {
			at = packfile.ID(c.Parents[0])
		}
	}
	return nil
}

// caught tells which layers see a forgery.
type caught struct {
	witnesses                bool // as Tampering fills it in
	rules, memory, signature bool
	pages                    bool // a page differs from the record
	found                    audit.Result
}

func (f *forge) audit() (caught, error) {
	r, err := page.Audit(remembering{lineage.New(f, f.options()), f}, audit.Options{Signatures: true}, nil)
	if err != nil {
		return caught{}, err
	}
	c := caught{found: r, pages: !r.Pages.OK}
	for _, one := range r.Findings {
		c.signature = c.signature || one.RuleID == "L13"
		c.rules = c.rules || one.RuleID != "L13"
	}
	if !c.rules && slices.ContainsFunc(r.Findings, func(f history.Finding) bool { return f.Message != "is not signed" }) {
		o := f.options() // is it a finding for those without a list of keys, too?
		o.Signers = nil
		plain, err := page.Audit(lineage.New(f, o), audit.Options{}, nil)
		if err != nil {
			return c, err
		}
		c.rules = !plain.OK
	}
	ok, err := descends(f, f.tip, f.soundLedger.commits[len(f.soundLedger.commits)-1])
	c.memory = !ok || err != nil
	return c, nil
}
