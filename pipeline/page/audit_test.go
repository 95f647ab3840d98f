package page_test

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// viewed is the history of entries with their pages, as [storetest.LivesWith] has them, from the first one that is audited.
type viewed struct {
	entries []writing.Entry
	pages   []map[string][]byte
	from    int
}

func file(data []byte) history.Entry {
	sum := sha1.Sum(data)
	return history.Entry{Mode: history.ModeFile, ID: history.NewID(sum[:])}
}

// play has whole lives played by the stages themselves, with what somebody makes of the pages of each entry.
func play(t *testing.T, lives int, pages func(n int, tree fs.FS, e writing.Entry) map[string][]byte) viewed {
	t.Helper()
	var v viewed
	entries, err := storetest.LivesWith(func(n int, tree fs.FS, e writing.Entry) map[string][]byte {
		v.pages = append(v.pages, pages(n, tree, e))
		return v.pages[n]
	}, storetest.Mixed(lives)...)
	if err != nil {
		t.Fatalf("a page stops a stage: %v", err)
	}
	v.entries = entries
	return v
}

// changes are those of an entry, given all files before it, which become those after it.
func (v viewed) changes(n int, tree map[string][]byte) (out []history.Change) {
	before := maps.Clone(tree)
	for name, data := range v.pages[n] {
		if data == nil {
			delete(tree, name)
		}
	}
	for _, files := range []map[string][]byte{v.entries[n].Files, v.pages[n]} {
		for name, data := range files {
			if data != nil {
				tree[name] = data
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, is := tree[name]; !is {
			out = append(out, history.Change{Path: name, Old: file(before[name])})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		old, was := before[name]
		if was && bytes.Equal(old, tree[name]) {
			continue
		}
		one := history.Change{Path: name, New: file(tree[name])}
		if was {
			one.Old = file(old)
		}
		out = append(out, one)
	}
	return out
}

func (v viewed) Commits(visit func(history.Commit)) error {
	tree := map[string][]byte{}
	for n, e := range v.entries {
		c := history.Commit{ID: numbered(n), Age: len(v.entries) - 1 - n, Ours: true, When: e.When.Unix(), Message: e.Message, Base: n < v.from, Changes: v.changes(n, tree)}
		if n > 0 {
			c.Parents = []history.ID{numbered(n - 1)}
		}
		visit(c)
	}
	return nil
}

func (v viewed) Blob(id history.ID) ([]byte, error) {
	for n, e := range v.entries {
		for _, files := range []map[string][]byte{e.Files, v.pages[n]} {
			for _, data := range files {
				if file(data).ID == id {
					return data, nil
				}
			}
		}
	}
	return nil, fs.ErrNotExist
}

func (v viewed) Former(name string) (map[string]history.Entry, error) {
	tree := map[string][]byte{}
	for n := range v.from {
		v.changes(n, tree)
	}
	out := map[string]history.Entry{}
	for at, data := range tree {
		if at == name || strings.HasPrefix(at, name+"/") {
			out[at] = file(data)
		}
	}
	return out, nil
}

// audit audits with the versions that a program knows. The record is sound.
func (v viewed) audit(t *testing.T, versions page.Versions, from int) audit.Pages {
	t.Helper()
	v.from = from
	blobs := map[history.ID][]byte{}
	for n, e := range v.entries {
		for _, files := range []map[string][]byte{e.Files, v.pages[n]} {
			for _, data := range files {
				blobs[file(data).ID] = data
			}
		}
	}
	r, err := page.Audit(quick{v, blobs}, audit.Options{}, versions)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || !r.Complete || r.Count > 0 || len(r.Findings) > 0 {
		t.Errorf("the record is unsound: %+v", r.Findings[:min(3, len(r.Findings))])
	}
	if p := r.Pages; p.OK != (p.Count == 0) || p.Count != len(p.Findings) {
		t.Errorf("%+v", p)
	}
	return r.Pages
}

// quick is viewed with an index of contents.
type quick struct {
	viewed
	blobs map[history.ID][]byte
}

func (q quick) Blob(id history.ID) ([]byte, error) {
	if data, ok := q.blobs[id]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// T77 T96 Programs of two versions take turns on a ledger. A program of tomorrow, with other words and another
// escaping, finds ledgers of today sound, takes what is open there to its end, and tells a page that lies; a program of today
// does so on ledgers of tomorrow, and says of pages that it does not know that they were not checked.
func TestT77T96TwoVersions(t *testing.T) {
	today, tomorrow := page.Versions(nil), storetest.NextPages()
	plain := play(t, 9, func(_ int, tree fs.FS, e writing.Entry) map[string][]byte { return today.Of(tree, e) })
	half := len(plain.entries) / 2
	for name, by := range map[string]func(n int) page.Versions{
		"today's":                          func(int) page.Versions { return today },
		"tomorrow's":                       func(int) page.Versions { return tomorrow },
		"begun today, ended by tomorrow's": func(n int) page.Versions { return map[bool]page.Versions{true: today, false: tomorrow}[n < half] },
		"begun tomorrow, ended by today's": func(n int) page.Versions { return map[bool]page.Versions{true: tomorrow, false: today}[n < half] },
		"by turns":                         func(n int) page.Versions { return []page.Versions{today, tomorrow}[n%2] },
	} {
		if name != "by turns" && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			v := play(t, 9, func(n int, tree fs.FS, e writing.Entry) map[string][]byte { return by(n).Of(tree, e) })
			for n, e := range v.entries {
				if e.Message != plain.entries[n].Message || !reflect.DeepEqual(e.Files, plain.entries[n].Files) {
					t.Fatalf("the record of entry %d depends on pages", n)
				}
			}
			newer := map[string]bool{}
			for _, pages := range v.pages {
				for file, raw := range pages {
					if page.Number(raw) == 2 {
						newer[file] = true
					}
				}
			}
			if (name != "today's") != (len(newer) > 0) {
				t.Errorf("%d pages of tomorrow", len(newer))
			}
			for _, from := range []int{0, half - 3, half + 3} {
				if found := v.audit(t, tomorrow, from); !found.OK || found.NotChecked != 0 {
					t.Errorf("from %d, by tomorrow's: %+v", from, found)
				}
				if found := v.audit(t, today, from); !found.OK || from == 0 && found.NotChecked != len(newer) {
					t.Errorf("from %d, by today's: %d newer; %+v", from, len(newer), found)
				}
			}
			for number := 1; number <= 2; number++ {
				n, file := v.last(number)
				if file == "" {
					continue
				}
				lie := v
				lie.pages = slices.Clone(v.pages)
				lie.pages[n] = maps.Clone(v.pages[n])
				lie.pages[n][file] = append(bytes.Clone(v.pages[n][file]), "Approved by everybody.\n"...)
				if found := lie.audit(t, tomorrow, 0); found.Count != 1 || found.Findings[0].Path != file || found.Findings[0].RuleID != "L23" {
					t.Errorf("a lie in version %d: %+v", number, found)
				}
				if found := lie.audit(t, today, 0); found.OK != (number == 2) || number == 2 && found.NotChecked != len(newer) {
					t.Errorf("a lie in version %d, by today's: %+v", number, found)
				}
			}
		})
	}
}

// last is the last page of a transaction of a version.
func (v viewed) last(number int) (int, string) {
	for n := len(v.pages) - 1; n >= 0; n-- {
		for file, raw := range v.pages[n] {
			if _, _, ofTransaction := ledger.Within(file); ofTransaction && page.Number(raw) == number {
				return n, file
			}
		}
	}
	return 0, ""
}

// T77 T96 Whatever stands in the place of a page stops no stage and leaves the record sound, and each page that says anything
// else than the record is told; one that claims a newer version is told as not checked, unless it was of another before.
func TestT77T96PageChecked(t *testing.T) {
	const lie = "# All is well\n\nApproved by everybody.\n"
	own := func(e writing.Entry) string {
		events, _, _ := e.Record()
		return path.Join(path.Dir(events), ledger.ReadmeFile)
	}
	day := func(e writing.Entry) string {
		return path.Join(path.Dir(path.Dir(path.Dir(own(e)))), ledger.ReadmeFile)
	}
	const all, denied = "transactions/README.md", "denied/README.md"
	named := func(version string) string { return "<!-- countersign page " + version + " -->\n" + lie }
	type tampering struct {
		name  string
		edit  func(pages map[string][]byte, e writing.Entry) (file string)
		newer bool
	}
	put := func(of func(writing.Entry) string, text string) func(map[string][]byte, writing.Entry) string {
		return func(pages map[string][]byte, e writing.Entry) string {
			pages[of(e)] = []byte(text)
			return of(e)
		}
	}
	always := func(file string) func(writing.Entry) string { return func(writing.Entry) string { return file } }
	kinds := []tampering{
		{name: "other words", edit: put(own, named("1"))},
		{name: "a newer version that lies", edit: put(own, named("2")), newer: true},
		{name: "the last version there can be", edit: put(own, named("9999")), newer: true},
		{name: "larger than a page is", edit: put(own, named("2")+strings.Repeat("x", page.MaxSize))},
		{name: "the root, later", edit: put(always(ledger.ReadmeFile), lie)},
		{name: "the root of a newer version, later", edit: put(always(ledger.ReadmeFile), named("2"))},
		{name: "a table that lies", edit: put(day, named("1"))},
		{name: "a table that claims a newer version", edit: put(day, named("2"))},
		{name: "a table of no version", edit: put(always(all), lie)},
		{name: "denials", edit: put(always(denied), named("1"))},
	}
	for _, version := range []string{"0", "-1", "01", "+2", "2 ", " 2", "10000", "2.0", "two", "", "2\r", "1\n2", "0x2", "２"} {
		kinds = append(kinds, tampering{name: fmt.Sprintf("version %q", version), edit: put(own, named(version))})
	}
	kinds = append(kinds, tampering{name: "no version", edit: put(own, lie)}, tampering{name: "empty", edit: put(own, "")})
	for _, of := range []struct {
		name string
		file func(writing.Entry) string
	}{{"page", own}, {"day", day}, {"table", always(all)}, {"root", always(ledger.ReadmeFile)}} {
		kinds = append(kinds,
			tampering{name: of.name + " removed", edit: func(pages map[string][]byte, e writing.Entry) string {
				pages[of.file(e)] = nil
				return of.file(e)
			}},
			tampering{name: "a directory for a " + of.name, edit: func(pages map[string][]byte, e writing.Entry) string {
				pages[of.file(e)] = nil
				pages[of.file(e)+"/x"], pages[of.file(e)+"/transaction.json"] = []byte(lie), []byte("{}\n")
				return of.file(e) + "/x"
			}})
	}
	for i, k := range kinds {
		if i%4 > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			for _, at := range []int{19} {
				file := ""
				v := play(t, 9, func(n int, tree fs.FS, e writing.Entry) map[string][]byte {
					pages := page.Versions(nil).Of(tree, e)
					if n == at {
						file = k.edit(pages, e)
					}
					return pages
				})
				found := v.audit(t, nil, 0)
				told := slices.ContainsFunc(found.Findings, func(f history.Finding) bool {
					return f.Path == file && f.Commit == numbered(at).String()
				})
				switch {
				case k.newer && (!found.OK || found.NotChecked != 1):
					t.Errorf("%+v", found)
				case !k.newer && (!told || found.NotChecked != 0 && !strings.Contains(k.name, "newer")):
					t.Errorf("%s is not told at %d: %+v", file, at, found)
				}
			}
		})
	}
}

// T77 A page is that of its directory, whosever events are there.
func TestT77EventsOfAnother(t *testing.T) {
	v := play(t, 2, func(_ int, tree fs.FS, e writing.Entry) map[string][]byte { return page.Versions(nil).Of(tree, e) })
	events := func(e writing.Entry) string { name, _, _ := e.Record(); return name }
	var whole, reviewed []writing.Entry // all that a life of several commits has, and of one
	for _, e := range v.entries {
		if events(e) == events(v.entries[0]) {
			whole = append(whole, e)
		} else {
			reviewed = append(reviewed, e)
		}
	}
	if len(whole) == 1 {
		whole, reviewed = reviewed, whole
	}
	first, second := events(whole[0]), events(reviewed[0])
	reviewed[0].Files[second] = whole[0].Files[first]
	r, err := page.Audit(v, audit.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{}
	for _, f := range r.Pages.Findings {
		pages[f.Path] = true
	}
	if page := func(events string) string { return path.Join(path.Dir(events), ledger.ReadmeFile) }; !pages[page(second)] || pages[page(first)] {
		t.Errorf("%+v", r.Pages.Findings)
	}
}

// T77 A program that writes pages of a version leaves no table of that version, or of an older one, alone: what it records is
// in them, and an audit tells where not.
func TestT77TableLeftAlone(t *testing.T) {
	today, tomorrow := page.Versions(nil), storetest.NextPages()
	for _, c := range []struct {
		name          string
		before, after page.Versions // programs before the commit, and of it
		told          bool
	}{
		{"today's by today's", today, today, true}, {"today's by tomorrow's", today, tomorrow, true},
		{"tomorrow's by tomorrow's", tomorrow, tomorrow, true}, {"tomorrow's by today's", tomorrow, today, false},
	} {
		dropped := 0
		v := play(t, 9, func(n int, tree fs.FS, e writing.Entry) map[string][]byte {
			if n < 10 {
				return c.before.Of(tree, e)
			}
			pages := c.after.Of(tree, e)
			for file := range pages {
				if _, _, ofTransaction := ledger.Within(file); !ofTransaction && n == 20 && c.told {
					delete(pages, file)
					dropped++
				}
			}
			return pages
		})
		lacks := 0
		for _, f := range v.audit(t, tomorrow, 0).Findings {
			if strings.HasPrefix(f.Message, "lacks the row") {
				lacks++
			}
		}
		if lacks != dropped || c.told != (lacks > 0) {
			t.Errorf("%s: %d tables left alone, %d told", c.name, dropped, lacks)
		}
	}
}

// missing is a history whose objects cannot be read.
type missing struct{ quick }

func (missing) Blob(history.ID) ([]byte, error) { return nil, errors.New("is missing") }

// TestT53Unreadable: an object of a page that is missing is a finding of the record, as any that is.
func TestT53Unreadable(t *testing.T) {
	v := play(t, 1, func(_ int, tree fs.FS, e writing.Entry) map[string][]byte { return page.Versions(nil).Of(tree, e) })
	r, err := page.Audit(missing{quick{viewed: v}}, audit.Options{}, nil)
	if err != nil || r.OK || r.Complete || !slices.ContainsFunc(r.Findings, func(f history.Finding) bool { return f.RuleID == "OBJECT" && f.Path == ledger.ReadmeFile }) {
		t.Errorf("%v %+v", err, r)
	}
}

// numbered is an ID of its own for each number.
func numbered(n int) history.ID {
	return history.NewID([]byte{0: byte(n), 1: byte(n >> 8), 2: 1, 19: 0})
}
