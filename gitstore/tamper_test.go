package gitstore

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"golang.org/x/crypto/ssh"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/sshsig"
	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// The tamperers of T51, T53, T54, T55 and T59: each takes the history of a sound
// and signed ledger of 200 transactions, changes something in it, and makes
// every later commit again. The audit has to tell, by its rules where the
// tamperer did not make good what hangs together, and by the remembered tip or
// the missing signature where they did.

// file is what a step does to a path.
type file struct {
	data []byte
	mode filemode.FileMode // zero: a regular file
	gone bool
	id   plumbing.Hash // an object to name instead of the data
}

// step is one commit of the history, as a tamperer sees it.
type step struct {
	files   map[string]file
	message string
	when    time.Time

	parents func(made []plumbing.Hash) []plumbing.Hash // of the steps before; nil: the last
	header  func(raw string) string
	tree    func(f *forge, root plumbing.Hash) plumbing.Hash // the commit's, not that of the later ones
}

// memoryObjects is the sound ledger's objects.
type memoryObjects map[plumbing.Hash]packfile.Object

func (m memoryObjects) View(id plumbing.Hash) (packfile.Object, error) { return m.Read(id) }

func (m memoryObjects) Read(id plumbing.Hash) (packfile.Object, error) {
	o, ok := m[id]
	if !ok {
		return o, packfile.ErrMissing
	}
	return o, nil
}

func (m memoryObjects) Size(id plumbing.Hash) (plumbing.ObjectType, int64, error) {
	o, err := m.Read(id)
	return o.Type, int64(len(o.Data)), err
}

// soundLedger is what all tamperers begin with.
type soundLedger struct {
	objects  memoryObjects
	steps    []step
	commits  []plumbing.Hash
	trees    []plumbing.Hash
	audited  map[plumbing.Hash]audit.Commit
	unsigned map[string]plumbing.Hash // the commits by their content without the signature
	signers  sshsig.Allowed
	sign     func([]byte) (string, error)
	of       map[string][]int // the steps of each transaction
	ids      []string
}

func signingKey(t testing.TB) (sign func([]byte) (string, error), allowed sshsig.Allowed) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := sshsig.ParseKey(pem.EncodeToMemory(block), nil)
	if err != nil {
		t.Fatal(err)
	}
	sshKey, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	allowed, err = sshsig.ParseAllowedSigners([]byte("ci@example.org " + string(ssh.MarshalAuthorizedKey(sshKey))))
	if err != nil {
		t.Fatal(err)
	}
	return key.Sign, allowed
}

func newSoundLedger(t testing.TB) *soundLedger {
	t.Helper()
	s := &soundLedger{objects: memoryObjects{}, unsigned: map[string]plumbing.Hash{}, of: map[string][]int{}}
	s.sign, s.signers = signingKey(t)
	entries, err := storetest.Lives(storetest.Mixed(180)...) // 20 of which are two
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		st := step{files: map[string]file{}, message: e.Message, when: e.When}
		for name, data := range e.Files {
			st.files[name] = file{data: data}
			if id, ok := ledger.TransactionOf(name); ok && (len(s.of[id]) == 0 || s.of[id][len(s.of[id])-1] != i) {
				s.of[id] = append(s.of[id], i)
			}
		}
		s.steps = append(s.steps, st)
	}
	s.ids = slices.Sorted(maps.Keys(s.of))
	if len(s.ids) != 200 {
		t.Fatalf("%d transactions", len(s.ids))
	}
	f, err := s.forge(s.steps, 0, s.sign)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range f.batch.IDs() {
		s.objects[id], _ = f.batch.Get(id)
	}
	s.commits, s.trees = f.commits, f.trees
	s.audited = map[plumbing.Hash]audit.Commit{}
	var mu sync.Mutex
	h := f.history()
	err = h.Commits(func(c audit.Commit) {
		mu.Lock()
		defer mu.Unlock()
		s.audited[plumbing.Hash(c.ID)] = c
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// forge is a history that somebody made.
type forge struct {
	*soundLedger
	batch   *packfile.Batch
	commits []plumbing.Hash
	trees   []plumbing.Hash
	tip     plumbing.Hash
	distort func(*History)
	hidden  plumbing.Hash // an object that is not there
	swapped map[plumbing.Hash]packfile.Object
}

// forge makes the commits of steps, of which those before from are the sound
// ledger's own.
func (s *soundLedger) forge(steps []step, from int, sign func([]byte) (string, error)) (*forge, error) {
	f := &forge{soundLedger: s, batch: &packfile.Batch{}}
	var tree plumbing.Hash
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
		c := commit{tree: tree}
		if len(f.commits) > 0 {
			c.parents = f.commits[len(f.commits)-1:]
		}
		if st.parents != nil {
			c.parents = st.parents(f.commits)
		}
		if st.tree != nil {
			c.tree = st.tree(f, tree)
		}
		raw := encodeCommit(c, us, us, st.when, st.message)
		if st.header != nil {
			raw = []byte(st.header(string(raw)))
		}
		if sign != nil {
			payload := string(raw)
			if raw, err = signed(raw, sign); err != nil {
				return nil, err
			}
			s.unsigned[payload] = plumbing.ComputeHash(plumbing.CommitObject, raw)
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
func (f *forge) grow(b *builder, tree plumbing.Hash, files map[string]file) (plumbing.Hash, error) {
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

func (f *forge) put(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	ids, err := f.batch.Add(packfile.Object{Type: kind, Data: data})
	if err != nil {
		panic(err)
	}
	return ids[0]
}

// View serves the forger's objects before the sound ones.
func (f *forge) View(id plumbing.Hash) (packfile.Object, error) {
	if id == f.hidden {
		return packfile.Object{}, fmt.Errorf("object %s: %w", id, packfile.ErrMissing)
	}
	if o, ok := f.batch.Get(id); ok {
		return o, nil
	}
	return f.objects.View(id)
}

func (f *forge) Read(id plumbing.Hash) (packfile.Object, error) { return f.View(id) }

func (f *forge) Size(id plumbing.Hash) (plumbing.ObjectType, int64, error) {
	o, err := f.View(id)
	return o.Type, int64(len(o.Data)), err
}

func (f *forge) history() *History {
	h := &History{objects: f, signers: &f.signers, tip: f.tip}
	if f.distort != nil {
		f.distort(h)
	}
	return h
}

// remembering is a History that has read the sound ledger's commits before:
// what a commit changed is the same, whatever comes after it.
type remembering struct {
	*History
	f *forge
}

func (r remembering) Commits(visit func(audit.Commit)) error {
	known := r.shallow == nil && r.grafted == nil && r.replaced == nil && r.f.hidden.IsZero() && r.from.IsZero()
	if !known {
		return r.History.Commits(visit)
	}
	d := newDiffer(r.History)
	age := 0
	for at := r.tip; !at.IsZero(); age++ {
		if c, ok := r.f.audited[at]; ok {
			c.Age = age
			visit(c)
			at = plumbing.ZeroHash
			if len(c.Parents) > 0 {
				at = plumbing.Hash(c.Parents[0])
			}
			continue
		}
		c, err := r.read(at, age)
		if err != nil {
			return r.History.Commits(visit)
		}
		at = plumbing.ZeroHash
		if len(c.parents) > 0 {
			at = c.parents[0]
			before, err := readCommit(r.f, at)
			if err != nil {
				return r.History.Commits(visit)
			}
			c.former = before.tree
		}
		visit(d.commit(c))
	}
	return nil
}

// caught tells which layers see a forgery.
type caught struct {
	rules, memory, signature bool
	found                    audit.Result
}

func (f *forge) audit() (caught, error) {
	r, err := audit.Run(remembering{f.history(), f}, audit.Options{Signatures: true})
	if err != nil {
		return caught{}, err
	}
	c := caught{found: r}
	for _, one := range r.Findings {
		c.signature = c.signature || one.RuleID == "L13"
		c.rules = c.rules || one.RuleID != "L13"
	}
	ok, err := descends(f, f.tip, f.soundLedger.commits[len(f.soundLedger.commits)-1])
	c.memory = !ok || err != nil
	return c, nil
}

// tamper is one tamperer at work.
type tamper struct {
	*soundLedger
	r       *mathrand.Rand
	steps   []step
	from    int // the first step that is changed
	distort func(*History)
	hide    func(*forge) plumbing.Hash
	cutAt   int // the tip is this step; 0: the last
	what    string
}

// A kind is one way to tamper; it tells whether it could.
type kind struct {
	name   string
	times  int
	tamper func(*tamper) bool
}

// findings are what has to be among what is found, by kind: a rule and some
// words.
var findings = map[string]string{
	"an event dropped":                                            `^(L2|L8|L15|PARSE) `,
	"two events exchanged":                                        `^L2 `,
	"an event twice":                                              `^L2 `,
	"an event copied from another transaction":                    `^L2 `,
	"an approval inserted, chain and state made good":             `^(L15|I6) `,
	"a denial turned into an approval, chain and state made good": `^L11 .*no event of its commit`,
	"a denial removed from the events, chain and state made good": `^L11 .*no event of its commit`,
	"apply_result.json changed":                                   `^L[67] `,
	"transaction.json of an earlier version changed":              `^L9 .*fold to`,
	"a file removed":                                              `^L8 was removed`,
	"a byte of any file, in a later commit":                       `^L8 `,
	"a file added a commit later than its event":                  `^L1[012] .*is missing`,
	"an empty directory":                                          `^L10 is an empty directory`,
	"a mode changed":                                              `^(L10 has mode|OBJECT )`,
	"a malformed tree":                                            `^L10 the tree`,
	"an object missing":                                           `^(OBJECT|HISTORY) `,
	"an object of the wrong type":                                 `^OBJECT .*, not a`,
	"a merge":                                                     `^L8 is a merge`,
	"a second root, merged in":                                    `^L8 is a merge`,
	"the history cut off at a new root":                           `^L8 adds to \d+ transactions`,
	"a commit left out, its files not":                            `^(L8|L15) `,
	"a commit left out whose transaction went on":                 `^L8 .*more than one time|^L15 .*stage`,
	"two commits of one transaction exchanged":                    `^L8 (did not grow|is not how)`,
	"a commit twice":                                              `^L8 adds to no transaction`,
	"a commit that brings nothing":                                `^L8 adds to no transaction`,
	"a denial changed in the index":                               `^L11 `,
	"a proposal removed from the index, or another added":         `^L12 `,
	"the time of a commit":                                        `^L15 its time`,
	"a trailer":                                                   `^L15 its (trailer|message)`,
	"author, committer or another header":                         `^(L15 is not a commit|HISTORY )`,
	"README.md or ledger.json":                                    `^(L16|L8) `,
	"a transaction at another place":                              `^L10 does not belong`,
	"an acceptance of another tip, or one that is malformed":      `^(L16|L10) `,
	"a shallow clone":                                             `^HISTORY .*shallow`,
	"grafts":                                                      `^HISTORY .*grafts`,
	"a replacement of a commit, a tree or a file":                 `^HISTORY .*refs/replace`,
}

func (c caught) has(pattern string) bool {
	if pattern == "" {
		return true
	}
	re := regexp.MustCompile(pattern)
	return slices.ContainsFunc(c.found.Findings, func(f audit.Finding) bool { return re.MatchString(f.RuleID + " " + f.Message) })
}

func (s *soundLedger) tamper(k kind, i int) (*forge, string, error) {
	seed := uint64(i)
	for _, b := range []byte(k.name) {
		seed = seed*1099511628211 + uint64(b)
	}
	for try := range uint64(2000) {
		t := &tamper{soundLedger: s, r: mathrand.New(mathrand.NewPCG(seed, try)), steps: slices.Clone(s.steps), from: len(s.steps)}
		if !k.tamper(t) {
			continue
		}
		f, err := s.forge(t.steps, min(t.from, len(s.steps)), nil)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", t.what, err)
		}
		if t.cutAt > 0 {
			f.tip = f.commits[t.cutAt]
		}
		if f.distort = t.distort; t.hide != nil {
			f.hidden = t.hide(f)
		}
		return f, t.what, nil
	}
	return nil, "", fmt.Errorf("%s: could not", k.name)
}

// changed marks a step as changed and makes its files the tamperer's own.
func (t *tamper) changed(i int) *step {
	t.from = min(t.from, i)
	t.steps[i].files = maps.Clone(t.steps[i].files)
	if t.steps[i].files == nil {
		t.steps[i].files = map[string]file{}
	}
	return &t.steps[i]
}

// at picks a step that is not the first: late ones more often, as they take less
// time.
func (t *tamper) at() int {
	n := len(t.steps)
	if t.r.IntN(4) > 0 {
		return n - 1 - t.r.IntN(min(n-1, 120))
	}
	return 1 + t.r.IntN(n-1)
}

// name picks a file that a step writes.
func (t *tamper) name(i int, fit func(string) bool) (string, bool) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(t.steps[i].files)) {
		if fit(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", false
	}
	return names[t.r.IntN(len(names))], true
}

func any_(string) bool { return true }

func ends(suffix string) func(string) bool {
	return func(name string) bool { return strings.HasSuffix(name, suffix) }
}

func holds(part string) func(string) bool {
	return func(name string) bool { return strings.Contains(name, part) }
}

// idOf is the transaction of a step.
func (t *tamper) idOf(i int) string {
	for name := range t.steps[i].files {
		if id, ok := ledger.TransactionOf(name); ok {
			return id
		}
	}
	return ""
}

// later are the steps of a transaction from step i on.
func (t *tamper) later(id string, i int) []int {
	var out []int
	for _, n := range t.of[id] {
		if n >= i {
			out = append(out, n)
		}
	}
	return out
}

// lines edits the lines of events.jsonl in step i and in all later versions.
func (t *tamper) lines(i int, edit func([][]byte) [][]byte) bool {
	id := t.idOf(i)
	name := ledger.Dir(id) + "/" + ledger.EventsFile
	for _, n := range t.later(id, i) {
		st := t.changed(n)
		lines := slices.Collect(bytes.Lines(st.files[name].data))
		st.files[name] = file{data: bytes.Join(edit(slices.Clone(lines)), nil)}
	}
	return true
}

func TestT51T53T54T55T59Tampering(t *testing.T) {
	s := newSoundLedger(t)
	clean, err := s.forge(s.steps, len(s.steps), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := clean.audit(); err != nil || !c.found.OK || c.memory {
		t.Fatalf("the sound ledger: %v %+v", err, c)
	}
	all := os.Getenv("COUNTERSIGN_TAMPER") != ""
	var table []*row
	var done sync.WaitGroup
	limit := make(chan bool, 2)
	var tips sync.Map
	var different, unchanged atomic.Int64
	start := time.Now()
	only := os.Getenv("COUNTERSIGN_TAMPER_ONLY")
	for _, k := range slices.Concat(tamperers, forgers) {
		if !strings.Contains(k.name, only) {
			continue
		}
		r := &row{kind: k, rules: map[string]int{}}
		table = append(table, r)
		forger := slices.ContainsFunc(forgers, func(f kind) bool { return f.name == k.name })
		n := k.times
		if !all {
			n = min(n, max(2, n/sampled))
		}
		for i := range n {
			limit <- true
			done.Go(func() {
				defer func() { <-limit }()
				f, what, err := s.tamper(k, i)
				if err != nil {
					t.Error(err)
					return
				}
				c, err := f.audit()
				if err != nil {
					t.Errorf("%s (%s): %v", k.name, what, err)
					return
				}
				if _, twice := tips.LoadOrStore(fmt.Sprint(f.tip, f.hidden, k.name, what), true); !twice {
					different.Add(1)
				}
				if f.tip == s.commits[len(s.commits)-1] && f.hidden.IsZero() && f.distort == nil {
					unchanged.Add(1)
					if c.rules || c.signature || c.memory {
						t.Errorf("%s (%s) changed nothing: %+v", k.name, what, c.found.Findings)
					}
					return
				}
				r.note(c)
				switch {
				case !forger && !c.rules:
					t.Errorf("%s (%s) passes the rules", k.name, what)
				case !c.has(findings[k.name]) && len(c.found.Findings) < audit.MaxFindings:
					t.Errorf("%s (%s): want %s, not %+v", k.name, what, findings[k.name], c.found.Findings[:min(4, len(c.found.Findings))])
				case !c.rules && !c.memory && !c.signature:
					t.Errorf("%s (%s) passes", k.name, what)
				}
			})
		}
	}
	done.Wait()
	t.Logf("%d mutations, %d different, %d of them changed nothing, %.1f s\n%s", total(table), different.Load(), unchanged.Load(), time.Since(start).Seconds(), tableText(table))
	if all && different.Load() < 2000 {
		t.Errorf("%d different mutations", different.Load())
	}
}

// sampled is which part of the mutations a plain run tries.
var sampled = 20

// row is what became of the mutations of one kind.
type row struct {
	kind
	mu                       sync.Mutex
	n                        int
	byRules, byMemory, bySig int
	rules                    map[string]int
}

func (r *row) note(c caught) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	seen := map[string]bool{}
	for _, f := range c.found.Findings {
		if f.RuleID != "L13" && !seen[f.RuleID] {
			seen[f.RuleID] = true
			r.rules[f.RuleID]++
		}
	}
	for n, is := range map[*int]bool{&r.byRules: c.rules, &r.byMemory: c.memory, &r.bySig: c.signature} {
		if is {
			*n++
		}
	}
}

func total(table []*row) (n int) {
	for _, r := range table {
		n += r.n
	}
	return n
}

// tableText is the table of docs/security.md.
func tableText(table []*row) string {
	var b strings.Builder
	b.WriteString("| what was done | tried | by the rules | by the remembered tip | by signatures |\n|---|---|---|---|---|\n")
	part := func(n, of int) string {
		switch n {
		case 0:
			return "no"
		case of:
			return "all"
		}
		return fmt.Sprint(n)
	}
	for _, r := range table {
		rules := part(r.byRules, r.n)
		if r.byRules > 0 {
			often := slices.SortedFunc(maps.Keys(r.rules), func(x, y string) int {
				if d := r.rules[y] - r.rules[x]; d != 0 {
					return d
				}
				return strings.Compare(x, y)
			})
			rules += ": " + strings.Join(often[:min(3, len(often))], " ")
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", r.name, r.n, rules, part(r.byMemory, r.n), part(r.bySig, r.n))
	}
	return b.String()
}
