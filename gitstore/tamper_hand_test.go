package gitstore

import (
	"bytes"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// tamper is one tamperer at work.
type tamper struct {
	*soundLedger
	r       *mathrand.Rand
	steps   []step
	from    int // the first step that is changed
	distort func(*lineage.Distortions)
	hide    func(*forge) packfile.ID
	cutAt   int // the tip is this step; 0: the last
	what    string
}

// A kind is one way to tamper; it reports whether it could.
type kind struct {
	name   string
	times  int
	tamper func(*tamper) bool
}

// findings are what has to be among what is found, by kind: a rule and some
// words.
var findings = map[string]string{
	"an event dropped":                                                     `^(L2|L8|L9|L15|PARSE) `,
	"two events exchanged":                                                 `^L2 `,
	"an event twice":                                                       `^L2 `,
	"an event copied from another transaction":                             `^L2 `,
	"an approval inserted, chain and state made good":                      `^(L15|I6) `,
	"a denial turned into an approval, chain and state made good":          `^L11 .*no event of its commit`,
	"a denial removed from the events, chain and state made good":          `^L11 .*no event of its commit`,
	"a further proposal of another patch, hash, chain and state made good": `^L24 .*proposes another patch`,
	"apply_result.json changed":                                            `^L[67] `,
	"transaction.json of an earlier version changed":                       `^L9 .*fold to`,
	"a file removed":                                                       `^(L8|L23) was removed`,
	"a byte of any file, in a later commit":                                `^(L8|L23) `,
	"a file added a commit earlier than its event":                         `^L10 .*not accounted for`,
	"a file added a commit later than its event":                           `^L1[012] .*is missing`,
	"an empty directory":                                                   `^L10 is an empty directory`,
	"a mode changed":                                                       `^(L10 |L23 |OBJECT )`,
	"a malformed tree":                                                     `^L10 the tree`,
	"an object missing":                                                    `^(OBJECT|HISTORY) `,
	"an object of the wrong type":                                          `^OBJECT .*, not a`,
	"a merge":                                                              `^L8 is a merge`,
	"a second root, merged in":                                             `^L8 is a merge`,
	"the history cut off at a new root":                                    `^L8 adds to \d+ transactions`,
	"a commit left out, its files not":                                     `^(L8|L15) `,
	"a commit left out whose transaction went on":                          `^L8 .*more than one time|^L15 .*stage`,
	"two commits of one transaction exchanged":                             `^L8 (did not grow|is not the beginning)`,
	"a commit twice":                                                       `^L8 adds to no transaction`,
	"a commit that brings nothing":                                         `^L8 adds to no transaction`,
	"a denial changed in the index":                                        `^L11 `,
	"a proposal removed from the index, or another added":                  `^L12 `,
	"the time of a commit":                                                 `^L15 its time`,
	"a trailer":                                                            `^L15 its (trailer|message)`,
	"author, committer or another header":                                  `^(L15 is not a commit|HISTORY |L13 )`,
	"README.md or ledger.json":                                             `^(L16|L8|L23) `,
	"a transaction at another place":                                       `^L10 does not belong`,
	"a page changed":                                                       `^L23 .*is not (the page|the table)`,
	"the page of another transaction":                                      `^L23 .*is not the page`,
	"a page that was not written again":                                    `^L23 .*(was not written again|is missing)`,
	"a row of a table left out, or another added":                          `^L23 .*(is not the table|lacks the row)`,
	"a table written without a row":                                        `^L23 .*(adds no row|names no version)`,
	"a page removed":                                                       `^L23 was removed`,
	"an acceptance of another tip, or one that is malformed":               `^(L16|L10) `,
	"a shallow clone":                                                      `^HISTORY .*shallow`,
	"grafts":                                                               `^HISTORY .*grafts`,
	"a replacement of a commit, a tree or a file":                          `^HISTORY .*refs/replace`,
}

// all is what is found, of the record and of pages.
func (c caught) all() []history.Finding {
	return slices.Concat(c.found.Findings, c.found.Pages.Findings)
}

func (c caught) has(pattern string) bool {
	if pattern == "" {
		return true
	}
	re := regexp.MustCompile(pattern)
	return slices.ContainsFunc(c.all(), func(f history.Finding) bool { return re.MatchString(f.RuleID + " " + f.Message) })
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
		if k.forges() {
			t.makePages()
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

// forges reports whether a kind is one of the forgers.
func (k kind) forges() bool {
	return slices.ContainsFunc(forgers, func(f kind) bool { return f.name == k.name })
}

// makePages makes the pages good from the first step that was changed on.
func (t *tamper) makePages() {
	tree := fstest.MapFS{}
	for i, st := range t.steps {
		e := writing.Entry{Files: map[string][]byte{}}
		for name, one := range st.files {
			if i >= t.from && ledger.IsPage(name) {
				delete(t.changed(i).files, name)
			} else if !one.gone {
				e.Files[name] = one.data
			}
		}
		if i >= t.from {
			pages := page.Versions(nil).Of(tree, e)
			for name, data := range pages {
				t.changed(i).files[name] = file{data: data}
				tree[name] = &fstest.MapFile{Data: data}
			}
		}
		for name, data := range e.Files {
			tree[name] = &fstest.MapFile{Data: data}
		}
	}
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
		if id, _, ok := ledger.Within(name); ok {
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
