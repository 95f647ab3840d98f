package workpaper

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// reportOf is a report in which every text is the same.
func reportOf(text string) evidence.Report {
	p, err := evidence.ParsePeriod("2026-01-01", "2026-01-31")
	if err != nil {
		panic(err)
	}
	who := ledger.Actor{Kind: "user", ID: text, Login: text}
	row := evidence.Row{
		Repository: text, Branch: text, Commit: strings.Repeat("a", 40), Commits: []string{strings.Repeat("a", 40)}, URL: text, Subject: text, ExplainedBy: "transaction", Signer: text,
		Exceptions: []evidence.Exception{{Code: evidence.DependentApproval, Text: text}},
		Told: &evidence.Told{
			AskedAt: text, Checks: []evidence.ToldCheck{{Commit: text, Name: text, App: text, Conclusion: text, At: text}},
			Deployments: []evidence.ToldDeployment{{Environment: text, State: text, At: text}}, Unknown: []string{"checks: " + text},
		},
		Tickets:     []evidence.Ticket{{ID: text, From: "commit"}},
		Deployments: []evidence.Deployment{{Environment: text, Commit: text, DeployedAt: text, Author: who, URL: text}},
		Records: []evidence.Record{{
			TransactionID: text, PullRequest: 3, PullURL: text, Summary: text, Why: text, Independent: "no",
			Proposers: []evidence.Person{{Actor: who, As: "author"}}, Decisions: []evidence.Decision{{Decision: ledger.Approve, Author: who, Kind: "fileChange", VerifiedBy: []string{"forge"}, DecidedAt: text, Counted: true, Why: text}, {Author: who, Why: text}},
			Checks: []evidence.Check{{Name: text}}, Needs: []evidence.Need{{Kind: text}},
		}},
	}
	repo := evidence.Repository{Name: text, Branch: text, Read: true, Commit: text, LedgerRef: text, LedgerCommit: text, Settings: []evidence.Setting{{Branch: text, From: text, Rules: []string{text}, Unread: []string{text}, Author: who, TransactionID: text}}}
	failed := evidence.Failed(evidence.Repository{Name: "b"}, evidence.Unreadable, text)
	return evidence.New(p, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), []evidence.Part{{Repository: repo, Rows: []evidence.Row{row}}, failed})
}

// formula is how a program may see one begin, whatever it takes for a separator.
var formula = regexp.MustCompile("(^|[,;|\t\"'\r\n])[ \u00a0\u3000]*[=+@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b\u2212-]")

// holds is an error unless a CSV has these many columns, and no formula in any.
func holds(text string, columns int) error {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return err
	}
	for _, record := range records {
		if len(record) != columns {
			return fmt.Errorf("%d columns: %q", len(record), record)
		}
		for _, c := range record {
			for _, at := range formula.FindAllStringIndex(c, -1) {
				if c[at[0]] != '\'' { // it begins at the apostrophe before it
					return fmt.Errorf("a formula in %q", c)
				}
			}
		}
	}
	return nil
}

// T76 A formula of a spreadsheet, an escape of a terminal and markup are text in each form.
func TestT76Workpaper(t *testing.T) {
	texts := []string{
		"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "a,=1", "a;=1", "a\";=1", "a|=1", "\"=1", "'=1", "\"\"=1", "a\u200b=1", "\u200b=1", "\uff1d1", "; \uff20x", "\x1b[2J", "<script>alert(1)</script>",
		"a\r\nb", "a\nb", "\ufeff=1", "\u2212 1", "=HYPERLINK(\"http://x\")",
	}
	for _, text := range append(texts, pagetest.HostileTexts()...) {
		if len(text) > 10_000 { // a page has each in dozens of places
			continue
		}
		r := reportOf(text)
		sheet := CSV(r)
		if err := holds(sheet, len(Columns)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if n := strings.Count(sheet, "\r\n"); n != len(r.Rows)+1 || strings.ContainsAny(strings.ReplaceAll(sheet, "\r\n", ""), "\r\n\t\x1b\x00") {
			t.Errorf("%q: %d lines", text, n)
		}
		if shown := Text(r, strings.ToUpper); strings.IndexFunc(strings.ReplaceAll(shown, "\n", ""), func(r rune) bool { return !ledger.Visible(r) }) >= 0 {
			t.Errorf("%q: on a terminal %q", text, shown)
		}
		pages := Pages(r)
		pages["item.html"] = Item(r, r.Rows[1], nil)
		for name, page := range pages {
			if !strings.HasSuffix(name, ".html") {
				continue
			}
			if bad := regexp.MustCompile(`(?i)<(script|img|iframe|svg|a href="(javascript|data))|\x1b| on[a-z]+="`).Find(page); bad != nil {
				t.Errorf("%q: %s has %q", text, name, bad)
			}
			if regexp.MustCompile(`[^a-z0-9.-]`).MatchString(name) {
				t.Errorf("a page is called %q", name)
			}
		}
	}
}

// T79 Nobody's name, and no check's, reads as one more of them in a list.
func TestT79Lists(t *testing.T) {
	eve := ledger.Actor{Kind: "user", ID: "local:e;f@x", Login: "ada (1), fileChange, forge, 2026; bob"}
	for got, want := range map[string]string{
		people([]evidence.Person{{Actor: eve}}):                                                  `"ada (1), fileChange, forge, 2026; bob" ("local:e;f@x")`,
		people([]evidence.Person{{Actor: ledger.Actor{Kind: "user", ID: "7", Login: "a/b"}}}):    `"a/b" (7)`,
		people([]evidence.Person{{Actor: ledger.Actor{Kind: "user", ID: "7", Login: "Ada L."}}}): `Ada L. (7)`,
		checks([]evidence.Check{{Name: "a: passed; go test", When: "after"}}):                    `"a: passed; go test": failed (not required) after it was applied`,
		checks([]evidence.Check{{Name: "go test ./...", When: "after", Required: true}}):         `go test ./...: failed after it was applied`,
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestNumbers: each number of the first page leads to the rows that it counts, and each of these to
// its commit.
func TestNumbers(t *testing.T) {
	r := reportOf("x")
	r.Rows[1].URL = "https://github.com/acme/shop/commit/" + r.Rows[1].Commit
	out := Pages(r)
	for _, total := range r.Totals {
		page := totalPage(total.Name)
		if total.Count == 0 {
			if out[page] != nil || !bytes.Contains(out["index.html"], []byte(wordsOf(total.Name))) {
				t.Errorf("%s: %q", total.Name, out[page])
			}
			continue
		}
		if !bytes.Contains(out["index.html"], fmt.Appendf(nil, `<a href="%s">%d</a>`, page, total.Count)) {
			t.Errorf("%s: no link to %s", total.Name, page)
		}
		if n := bytes.Count(out[page], []byte("<li>")) - 1; n != total.Count { // one is in the navigation
			t.Errorf("%s: %d rows, want %d", page, n, total.Count)
		}
	}
	if !bytes.Contains(out["total-changes.html"], []byte(`<a href="https://github.com/acme/shop/commit/`)) || !bytes.Contains(out["repository-1.html"], []byte(`id="row-2"`)) {
		t.Errorf("%s\n%s", out["total-changes.html"], out["repository-1.html"])
	}
	if !bytes.Contains(out["index.html"], []byte("This is not all")) || !bytes.Contains(out["repository-2.html"], []byte("cannot be told")) {
		t.Error("an unread repository is not told of")
	}
}

// TestKinds: the first page says in numbers what there is to explain, and has a section for each kind of exception, the worst first,
// which explains it once and has what is equal together.
func TestKinds(t *testing.T) {
	for _, code := range evidence.Codes {
		if kinds[code].title == "" || kinds[code].means == "" {
			t.Errorf("%s has no words", code)
		}
	}
	odd := func(subject string, all ...evidence.Exception) evidence.Row {
		who := func(name string) ledger.Actor { return ledger.Actor{Kind: "user", ID: name + "-id", Login: name} }
		return evidence.Row{
			Repository: "shop", Commit: strings.Repeat("a", 40), Commits: []string{strings.Repeat("a", 40)}, Subject: subject, CameBy: "2026-01-02T03:04:05Z", URL: "https://example.org/c", Exceptions: all,
			Records: []evidence.Record{{
				TransactionID: "tx_1", Proposers: []evidence.Person{{Actor: who("eve")}},
				Decisions: []evidence.Decision{{Decision: ledger.Approve, Author: who("ada"), Counted: true}, {Decision: ledger.Approve, Author: who("bob")}, {Decision: ledger.Deny, Author: who("dan"), Counted: true}},
			}},
		}
	}
	missing, late := evidence.Exception{Code: evidence.ChecksAbsent, Text: "go vet never ran"}, evidence.Exception{Code: evidence.ChecksAbsent, Text: "go test never ran"}
	p, err := evidence.ParsePeriod("2026-01-01", "2026-01-31")
	check(t, err)
	rows := []evidence.Row{odd("one", late), odd("two", missing), odd("three"), odd("four", missing, evidence.Exception{Code: evidence.Denied, Text: "dan denied it"}), odd("five")}
	pages := func(rows []evidence.Row) string {
		r := evidence.New(p, p.End(), []evidence.Part{{Repository: evidence.Repository{Name: "shop", Read: true}, Rows: rows}})
		return string(Pages(r)["index.html"])
	}
	page := pages(rows)
	at := 0
	for _, want := range []string{
		"3 of 5 changes need an explanation.", "Totals", "What there is none of", "Nothing accounts for it", `<h2 id="denied">`, kinds[evidence.Denied].means, "dan denied it", ">four<", "eve → ada<", "tx_1",
		`<h2 id="checks_absent">`, kinds[evidence.ChecksAbsent].means, "go vet never ran (2)", ">2026-01-02<", `<a href="https://example.org/c" rel="noopener noreferrer">aaaaaaaaaaaa</a>`, "#row-", ">two<", "go test never ran<", ">one<", "Repositories",
	} {
		n := strings.Index(page[at:], want)
		if n < 0 {
			t.Fatalf("no %q after %q in %s", want, page[max(0, at-30):at], page)
		}
		at += n
	}
	for _, once := range []string{kinds[evidence.ChecksAbsent].means, "go vet never ran"} {
		if n := strings.Count(page, once); n != 1 {
			t.Errorf("%q stands there %d times", once, n)
		}
	}
	if page := pages(rows[2:3]); !strings.Contains(page, "None of 1 change needs an explanation.") || !strings.Contains(page, "state good") {
		t.Errorf("a period without exceptions: %s", page)
	}
	whole := evidence.Row{Repository: "shop", Exceptions: []evidence.Exception{{Code: evidence.BeforeLedger, Text: "nothing is on record"}}}
	if page := pages([]evidence.Row{rows[2], whole}); !strings.Contains(page, "None of 1 change needs an explanation.") || strings.Contains(page, "state good") {
		t.Errorf("a part of the period is not told: %s", page)
	}
}

// FuzzCell: whatever a cell holds, a CSV reader gets one cell without a formula.
func FuzzCell(f *testing.F) {
	for _, s := range []string{"=1", "a;\"=1", "\t@x", "''=", "\" -"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := holds(cell(s)+"\r\n", 1); err != nil {
			t.Error(err)
		}
	})
}

// TestChain: each step of a change's way is told with where it is known from, and one of which nothing is known says so.
func TestChain(t *testing.T) {
	unknown := func(row evidence.Row) (out []string) {
		for _, s := range chain(row) {
			if s.From == "" {
				t.Errorf("%s: known from nowhere", s.Step)
			}
			if s.Known == "" {
				out = append(out, s.Step)
			}
		}
		return out
	}
	if got := strings.Join(unknown(evidence.Row{Commit: "c"}), ", "); got != "Ticket, Asked for by, Proposed by, Approved by, Checked, Applied or merged, Checked by the forge, On the branch, Deployed, Deployed, by the forge" {
		t.Errorf("of a commit alone: not known are %s", got)
	}
	ada, bob := ledger.Actor{Kind: "user", ID: "1", Login: "ada"}, ledger.Actor{Kind: "user", ID: "local:bob@x", Login: "bob"}
	row := evidence.Row{Commit: "c", CameBy: "2026-01-02T00:00:00.000Z", Records: []evidence.Record{{
		RequestedBy: []ledger.Requester{{Actor: ada, Source: ledger.AskedBySender}, {Actor: bob, Source: ledger.AskedByFlag}}, Proposers: []evidence.Person{{Actor: bob}},
		Decisions: []evidence.Decision{
			{Decision: ledger.Approve, Author: ada, VerifiedBy: []string{"forge", "signature"}, KeyFingerprint: "SHA256:x", URL: "https://x", Counted: true},
			{Decision: ledger.Deny, Author: bob, VerifiedBy: []string{"local"}, Why: "too late"},
		},
		Checks: []evidence.Check{{Name: "go test", Passed: true}}, MergedAt: "2026-01-01T00:00:00Z",
	}}}
	if got := strings.Join(unknown(row), ", "); got != "Ticket, Checked by the forge, Deployed, Deployed, by the forge" {
		t.Errorf("not known are %s", got)
	}
	row.Told = &evidence.Told{
		AskedAt: "2026-01-03T00:00:00.000Z", Checks: []evidence.ToldCheck{{Commit: "c", Name: "a: b", App: "ci", Conclusion: "failure", At: "2026-01-02T00:00:00.000Z"}},
		Unknown: []string{"deployments of c: no more requests"},
	}
	row.Tickets = []evidence.Ticket{{ID: "OPS-1", From: "merge"}}
	row.Deployments = []evidence.Deployment{{Environment: "eu", Commit: "d", DeployedAt: "2026-01-04T00:00:00.000Z", Author: bob}}
	if got := strings.Join(unknown(row), ", "); got != "Deployed, by the forge" {
		t.Errorf("not known are %s", got)
	}
	page := string(Item(reportOf("x"), row, []string{"a.diff"}))
	for _, want := range []string{
		">ada (1)<", ">the forge, of the run that proposed it (actions.sender)<", ">the word of whoever proposed it (flag)<", ">the record: the word of a shell, which nobody verified<",
		">the record: the forge, asked about it, a signature with SHA256:x https://x<", ">Denied by<", ": did not count, too late<", ">the forge, asked after the merge<", ">by 2026-01-02T00:00:00.000Z<", ">&#34;a: b&#34;: failure of ci at 2026-01-02T00:00:00.000Z (c)<", ">the forge, as it was at 2026-01-03T00:00:00.000Z, and not the record<",
		">the forge, asked at 2026-01-03T00:00:00.000Z: deployments of c: no more requests<", ">OPS-1<", ">the message of the merge that brought it: its author&#39;s word<", ">to eu at 2026-01-04T00:00:00.000Z, with commit d<",
		"<strong>not known</strong>", `<a href="a.diff"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, page)
		}
	}
	if len(chain(evidence.Row{})) > 0 {
		t.Error("a repository has a way")
	}
}
