package site_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/site"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func options() site.Options {
	return site.Options{Now: now, Name: "acme/app", Ref: "refs/agent/ledger", Tip: strings.Repeat("a", 40), Nav: site.Nav("acme/app", false)}
}

// check ends a test that has an error.
var check = teststand.Fatal

// lives are the summaries of transactions of every kind, as the pipeline records them.
func lives(t testing.TB, n int) []html.Summary {
	t.Helper()
	tree, ids := storetest.Recorded(t, storetest.Mixed(n)...)
	var out []html.Summary
	for _, id := range ids {
		tx, err := new(html.Reader).Read(tree, id)
		check(t, err)
		out = append(out, tx.Summary)
	}
	return out
}

// made are n summaries of a few years, by some people, to some paths.
func made(t testing.TB, n int, seed uint64) []html.Summary {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	entropy := rand.NewChaCha8([32]byte{byte(seed)})
	statuses := []ledger.Status{ledger.Completed, ledger.Awaiting, ledger.Denied, ledger.Superseded, ledger.Failed}
	var out []html.Summary
	for i := range n {
		at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 11 * time.Hour)
		id, err := writing.NewID(at, entropy)
		check(t, err)
		status := statuses[random.IntN(len(statuses))]
		s := html.Summary{
			ID: id, PatchID: canon.Hex(fmt.Append(nil, seed, i/3)), Status: status, State: plain.State(status), Waits: status == ledger.Awaiting,
			Closed: status != ledger.Awaiting, Proposed: ledger.FormatTime(at), Summary: fmt.Sprintf("change number %d", i),
			Proposer: ledger.Actor{Kind: "bot", ID: "github:1", Login: "bot"}, Paths: []string{fmt.Sprintf("dir%d/file.txt", random.IntN(20))},
			PullRequest: random.IntN(9),
		}
		if status == ledger.Completed {
			s.Approvers = []ledger.Actor{{Kind: "user", ID: fmt.Sprint("github:", 2+random.IntN(3)), Login: "ada"}}
			s.Commits, s.Decided = []string{canon.Hex([]byte(id))[:40]}, s.Proposed
		}
		out = append(out, s)
	}
	return out
}

// files makes every file of a site.
func files(t testing.TB, s *site.Site) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, address := range s.Addresses() {
		data, ok := s.File(address)
		if _, twice := out[address]; !ok || twice {
			t.Fatalf("%s: made %v, listed twice %v", address, ok, twice)
		}
		out[address] = string(data)
	}
	return out
}

var links = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// TestLinks: every address is a plain one, and every link of every page leads to a file of the site or to
// a transaction.
func TestLinks(t *testing.T) {
	all := append(lives(t, 9), made(t, 700, 1)...)
	have := files(t, site.New(all, options()))
	for _, s := range all {
		have[site.Transaction(s.ID)] = ""
	}
	plain := regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*(/[A-Za-z0-9][A-Za-z0-9_-]*)*\.(html|css|js|svg)$`)
	for address, text := range have {
		if !plain.MatchString(address) {
			t.Errorf("the address %q is not plain", address)
		}
		if !strings.HasSuffix(address, ".html") {
			continue
		}
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			if to := path.Join(path.Dir(address), m[1]); !strings.HasPrefix(m[1], "#") && have[to] == "" && !strings.HasPrefix(to, "tx/") {
				t.Errorf("%s leads to %s, which is not there", address, m[1])
			}
		}
	}
	if n := len(have); n < 900 {
		t.Errorf("only %d files", n)
	}
	for _, address := range []string{"", "x", "tx/a/index.html", "month/2025-01/1/index.html", "person/../index.html", "path/x/index.html", "search/i/zz.js", "search/i/t/9.js", "search/i/t/-1.js", "month/2025-01/01/index.html", "month/2025-01/02/index.html", "state/applied/3/index.html", "person/2/index.html"} {
		if _, ok := site.New(all, options()).File(address); ok {
			t.Errorf("there is a file %q", address)
		}
	}
}

// TestGolden pins the overview, the page of a person, and a file of the index.
func TestGolden(t *testing.T) {
	all := lives(t, 9)
	s := site.New(all, options())
	var out strings.Builder
	shared := slices.IndexFunc(all, func(t html.Summary) bool { return s.Has(site.Path(t.Paths[0])) })
	for _, address := range []string{"index.html", site.Person(all[0].Proposer), site.Path(all[shared].Paths[0]), "search/index.html", "search/i/t/0.js"} {
		data, ok := s.File(address)
		if !ok {
			t.Fatal(address)
		}
		fmt.Fprintf(&out, "-- %s --\n%s", address, data)
	}
	golden := "testdata/site.golden"
	if *update {
		check(t, os.WriteFile(golden, []byte(out.String()), 0o666))
	}
	want, err := os.ReadFile(golden)
	check(t, err)
	if out.String() != string(want) {
		t.Errorf("the pages are not those of %s: look at what -update changes", golden)
	}
}

// TestOverviewIsSmall: with 10,000 transactions that wait.
func TestOverviewIsSmall(t *testing.T) {
	all := made(t, 10_000, 2)
	for i := range all {
		all[i].Status, all[i].Waits, all[i].Closed, all[i].Summary = ledger.Awaiting, true, false, strings.Repeat("long ", 10_000)
		all[i].Proposer = ledger.Actor{Kind: "user", ID: fmt.Sprint(i), Login: strings.Repeat("x", 300)}
		all[i].Paths = []string{strings.Repeat("y", 400) + fmt.Sprint(i)}
	}
	s := site.New(all, options())
	for address, limit := range map[string]int{"index.html": 200 << 10, "person/index.html": 1 << 20, "path/index.html": 1 << 20} {
		if data, _ := s.File(address); len(data) > limit || len(data) < 10_000 {
			t.Errorf("%s has %d bytes, not up to %d", address, len(data), limit)
		}
	}
}

// TestT76SiteNames: hostile names are text, and addresses are made of none of them.
func TestT76SiteNames(t *testing.T) {
	hostile := []string{"<script>alert(1)</script>", "../../etc/passwd", "CON", "a", "A", "\u202eevil", "\x00\x1b[31m", `"><img src=x onerror=alert(1)>`, "{{.}}", "\xff\xfe", "</noscript>", "__proto__", "*/alert(1)//", "\u2028alert(1)", strings.Repeat("w", 1<<20), "javascript:alert(1)", "index.html", "..", "."}
	all := made(t, len(hostile), 4)
	seen := map[string]string{}
	for i, name := range hostile {
		all[i].Summary, all[i].Paths = name, []string{name}
		all[i].Proposer = ledger.Actor{Kind: name, ID: name, Login: name}
		all[i].Approvers = []ledger.Actor{{Kind: "user", ID: name, Login: name}}
		all[i].Repository = &ledger.Repository{ID: name, Name: name}
		all[i].PatchID, all[i].Commits = name, []string{name}
		for _, address := range []string{site.Person(all[i].Proposer), site.Path(name)} {
			if was, twice := seen[strings.ToLower(address)]; twice {
				t.Errorf("%q and %q have one address", was, name)
			}
			seen[strings.ToLower(address)] = name
		}
	}
	o := options()
	o.Name, o.Nav = strings.Join(hostile, " "), site.Nav(strings.Join(hostile, " "), false)
	o.Found = []history.Finding{{RuleID: hostile[0], Path: hostile[7], Message: hostile[5], Commit: hostile[0]}}
	for address, text := range files(t, site.New(all, o)) {
		if strings.Contains(address, "script") && address != "search/search.js" || strings.Contains(address, "..") {
			t.Errorf("the address %q", address)
		}
		for _, bad := range []string{"<script>alert", "<img", "\x1b", "\u202e", "\x00", "\u2028", "\xff"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %q", address, bad)
			}
		}
	}
}

// TestT77SiteFindings: what was found against the ledger is on top of every page, and a record that does
// not verify has no approver and no colour of what is approved.
func TestT77SiteFindings(t *testing.T) {
	all := made(t, 20, 5)
	o := options()
	o.Found = []history.Finding{{RuleID: "L8", Message: "a commit was removed"}}
	for i := range all {
		all[i] = html.Transaction{Summary: all[i]}.With(o.Found...).Summary
	}
	for address, text := range files(t, site.New(all, o)) {
		if !strings.HasSuffix(address, ".html") {
			continue
		}
		if !strings.Contains(text, "This ledger does not verify</h2>") || !strings.Contains(text, "a commit was removed") {
			t.Errorf("%s does not have the finding", address)
		}
		if strings.Contains(text, `class="good"`) || strings.Contains(text, "it verifies") || strings.Contains(text, ">ada<") {
			t.Errorf("%s presents something as approved", address)
		}
	}
	one := made(t, 20, 5)
	one[3] = html.Transaction{Summary: one[3]}.With(o.Found...).Summary
	text, _ := site.New(one, options()).File("index.html")
	if !strings.Contains(string(text), "1 record does not verify") || strings.Contains(string(text), "it verifies") {
		t.Error("the overview does not tell of the record")
	}
}

// TestExceptions: what is overdue for review stands out on the overview, and what commits say of themselves is not there.
func TestExceptions(t *testing.T) {
	o := options()
	o.Exceptions = []explain.Exception{
		{Commit: strings.Repeat("b", 40), Subject: "<b>secret</b>", Codes: []string{"unexplained"}, DueBy: "2026-11-10T12:00:00.000Z", State: explain.Overdue},
		{Commit: strings.Repeat("c", 40), Codes: []string{"break_glass"}, DueBy: "2026-11-30T12:00:00.000Z", State: explain.Due},
		{Commit: strings.Repeat("d", 40), State: explain.Reviewed},
	}
	overview := func(s *site.Site) string {
		page, _ := s.File("index.html")
		return string(page)
	}
	page := overview(site.New(lives(t, 1), o))
	for _, text := range []string{`<li class="bad"><strong>1</strong> <a href="#review">overdue for review</a></li>`, `<span class="bad">2026-11-10, overdue</span>`, "bbbbbbbbbbbb", "2026-11-30"} {
		if !strings.Contains(page, text) {
			t.Errorf("the overview has no %q", text)
		}
	}
	if strings.Contains(page, "secret") || strings.Contains(page, "dddddddddddd") {
		t.Error("the overview has what is no part of it")
	}
	if o.Exceptions, o.Untold = nil, true; !strings.Contains(overview(site.New(nil, o)), "What is to be reviewed cannot be told.") {
		t.Error("that nothing is known is not told")
	}
}

// TestQueue: the first page has what waits in the order of the queue, and since when it is overdue.
func TestQueue(t *testing.T) {
	var all []html.Summary
	for i, one := range []struct {
		summary string
		age     time.Duration
		rank    int
	}{{"plain", time.Hour, 9}, {"risky", time.Hour, 1}, {"overdue", 72 * time.Hour, 9}} {
		all = append(all, html.Summary{
			ID: fmt.Sprintf("tx_01M82YFRMRC61F83E0W3CJ76H%d", i), Status: ledger.Awaiting, State: plain.Waits, Waits: true, Summary: one.summary, Rank: one.rank,
			Proposed: ledger.FormatTime(now.Add(-one.age)),
		})
	}
	o := options()
	for due, want := range map[time.Duration][]string{48 * time.Hour: {"overdue</a>", "risky", "plain"}, 0: {"risky", "overdue</a>", "plain"}} {
		o.Due = due
		page, _ := site.New(all, o).File("index.html")
		_, text, _ := strings.Cut(string(page), "What waits")
		for _, word := range want {
			if before, after, found := strings.Cut(text, word); !found {
				t.Errorf("due within %v: %q does not come there\n%s", due, word, before)
			} else {
				text = after
			}
		}
		if late := `<span class="bad">3 days, overdue since 2026-11-22</span>`; strings.Contains(string(page), late) != (due > 0) {
			t.Errorf("due within %v:\n%s", due, page)
		}
	}
}
