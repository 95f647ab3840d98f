package html_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/report/html"
)

// lives are the directories of transactions of every kind, as the pipeline records them.
func lives(t testing.TB, all ...storetest.Life) map[string]fstest.MapFS {
	t.Helper()
	entries, err := storetest.Lives(all...)
	check(t, err)
	out := map[string]fstest.MapFS{}
	for _, e := range entries {
		for name, data := range e.Files {
			id, _, ok := ledger.Within(name)
			if !ok {
				continue
			}
			if out[id] == nil {
				out[id] = fstest.MapFS{}
			}
			out[id][strings.TrimPrefix(name, ledger.Dir(id)+"/")] = &fstest.MapFile{Data: data}
		}
	}
	return out
}

// check ends a test that has an error.
var check = teststand.Fatal

func read(t testing.TB, dir fs.FS, id string) html.Transaction {
	t.Helper()
	tx, err := new(html.Reader).Read(only{dir}, id)
	check(t, err)
	return tx
}

// only is the files of a ledger of one transaction, by the directory of that.
type only struct{ fs.FS }

func (o only) Sub(string) (fs.FS, error) { return o.FS, nil }

func page(t testing.TB, tx html.Transaction, o html.Options) string {
	t.Helper()
	return string(tx.Page(o))
}

// banners begin what a page says of a life.
var banners = map[plain.State]string{
	plain.Applied: "Approved by Ada, and applied<", plain.Waits: "Not approved yet: ", plain.Denied: "Denied",
	plain.Approved: "Approved by Ada, not applied yet<", plain.Unchecked: "Applied; not checked yet<", plain.Closed: "Approved by Ada; closed without being applied: nobody needs it<", plain.Superseded: "Approved by Ada; never applied: dir/file8.txt changed meanwhile<",
}

// TestStates: every life has a page that says in words how it stands, and nothing is found against
// any of them.
func TestStates(t *testing.T) {
	got := map[string]int{}
	for id, dir := range lives(t, append(storetest.Mixed(9), storetest.Signed)...) {
		tx := read(t, dir, id)
		if !tx.Sound() {
			t.Errorf("%s: %v", id, tx.Findings)
		}
		got[string(tx.State)]++
		if text := page(t, tx, html.Options{Root: "../../"}); !strings.Contains(text, "<h1>") || !strings.Contains(text, " · "+string(tx.State)+"</title>") || !strings.Contains(text, "<strong>"+banners[tx.State]) {
			_, banner, _ := strings.Cut(text, `class="verdict `)
			t.Errorf("%s: the page does not say %q: %.200s", id, banners[tx.State], banner)
		}
	}
	want := map[string]int{
		"applied": 2, "waits for approval": 2, "denied": 2,
		"approved, not applied": 2, "applied, not checked yet": 1, "closed": 1, "superseded": 1,
	}
	for state, n := range want {
		if got[state] != n {
			t.Errorf("%d are %q, want %d: %v", got[state], state, n, got)
		}
	}
}

// TestFindings: a record that does not verify has its finding on top, and no word or colour of what
// is approved.
func TestFindings(t *testing.T) {
	for id, dir := range lives(t, storetest.Whole) {
		sound := page(t, read(t, dir, id), html.Options{})
		if !strings.Contains(sound, `class="verdict good"`) {
			t.Fatal("a sound page lacks its colour")
		}
		audited := read(t, dir, id).With(history.Finding{RuleID: "L8", Commit: strings.Repeat("a", 40), Path: "x", Message: "was <removed>"})
		dir[ledger.EventsFile].Data = []byte(strings.Replace(string(dir[ledger.EventsFile].Data), "approve", "deny", 1))
		for name, text := range map[string]string{"audited": page(t, audited, html.Options{}), "changed": page(t, read(t, dir, id), html.Options{})} {
			top, state := strings.Index(text, "does not verify</h2>"), strings.Index(text, `class="verdict bad"`)
			if top < 0 || state < top || strings.Contains(text, `"verdict good"`) {
				t.Errorf("%s: the finding is not on top, or a colour says approved", name)
			}
			text = strings.NewReplacer("counts as approved", "", "is recorded to have approved", "").Replace(text)
			for _, word := range []string{"Approved", " approved", "Counted", `"good"`} {
				if strings.Contains(text, word) {
					t.Errorf("%s: the page says %q: …%s…", name, word, text[max(0, strings.Index(text, word)-100):strings.Index(text, word)+50])
				}
			}
		}
	}
}

// TestFewElements: escapes that stand together have one mark, so that a line of a megabyte does not keep a browser
// busy for minutes.
func TestFewElements(t *testing.T) {
	var b html.Body
	b.Put("{}", "a"+strings.Repeat("\u202e\x1b", 3)+"b\x00<\x01")
	out := string(html.Layout(html.Head{}, &b))
	if want := `a<span class="hidden">\u202e\x1b\u202e\x1b\u202e\x1b</span>b<span class="hidden">\x00</span>&lt;<span class="hidden">\x01</span>`; !strings.Contains(out, want) {
		t.Errorf("no %s in %s", want, out)
	}
}
