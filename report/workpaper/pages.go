package workpaper

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/report/html"
)

// onIndex is how many rows of a kind of exception the first page has; another page has all.
const onIndex = 100

// Pages are the files of the report by their names, which lie in one directory: index.html with the totals
// and what is not as it should be by its kind, a page for each total with the commits that it counts, one
// for each repository with all that is known of its rows, and their style sheet. None has a script, or loads anything
// from elsewhere.
func Pages(r evidence.Report) map[string][]byte {
	w := &pages{Report: r, at: map[string]string{}, out: map[string][]byte{html.StyleFile: html.Style(), html.IconFile: html.Icon()}}
	of := map[string][]int{}
	for i, repo := range r.Repositories {
		w.at[repo.Name] = fmt.Sprintf("repository-%d.html", i+1)
	}
	for i, row := range r.Rows {
		of[row.Repository] = append(of[row.Repository], i)
	}
	w.index()
	for _, t := range r.Totals {
		if t.Count > 0 {
			w.total(t)
		}
	}
	for _, repo := range r.Repositories {
		w.repository(repo, of[repo.Name])
	}
	return w.out
}

type pages struct {
	evidence.Report
	at  map[string]string // by repository: its page
	out map[string][]byte
}

func (w *pages) write(name, title string, b *html.Body) {
	var out bytes.Buffer
	_ = html.Layout(&out, html.Head{ // a Buffer takes everything
		Title: title + " · " + w.From + " to " + w.To, Here: name, Nav: []html.Link{{Address: "index.html", Text: "Evidence"}},
		Footer: "Made at " + w.MadeAt + " from the ledgers and branches as they were then. These pages decide nothing.",
	}, b)
	w.out[name] = out.Bytes()
}

// words are the names of totals as people read them.
var words = map[string]string{
	"changes": "Changes", "exceptions": "Rows with an exception", "by_transaction": "Made or proposed by a transaction", "by_pull_request": "Approved as a pull request",
	"by_merge": "Merges of changes that are listed", "by_bot": "Let in by a rule for bots", "by_empty": "Commits that change nothing", "independent_yes": "Approved by others", "independent_no": "Not approved by others",
	"independent_unknown": "Not known whether others approved", "without_checks": "Without a check on record",
}

func wordsOf(total string) string {
	if text := words[total]; text != "" {
		return text
	}
	if kind, ok := kinds[evidence.Code(strings.TrimPrefix(total, "exception_"))]; ok {
		return kind.title
	}
	return strings.ReplaceAll(total, "_", " ")
}

func totalPage(name string) string { return "total-" + strings.ReplaceAll(name, "_", "-") + ".html" }

func (w *pages) index() {
	b := new(html.Body)
	b.Markup("<h1>").Text("Changes from " + w.From + " to " + w.To + " (UTC)").Markup("</h1>\n")
	w.sentence(b)
	for _, n := range w.Notes {
		b.Markup("<p class=\"note\">").Text("Note: " + n).Markup("</p>\n")
	}
	b.Markup("<h2 id=\"totals\">Totals</h2>\n<table class=\"totals\">\n<tbody>\n")
	var none []string
	for _, t := range w.Totals {
		if t.Count == 0 {
			none = append(none, wordsOf(t.Name))
			continue
		}
		b.Markup("<tr><td class=\"number\">").Link(totalPage(t.Name), strconv.Itoa(t.Count)).Markup("</td><th scope=\"row\">").Text(wordsOf(t.Name)).Markup("</th></tr>\n")
	}
	b.Markup("</tbody>\n</table>\n")
	if len(none) > 0 {
		b.Markup("<details><summary>What there is none of</summary><p>").Text(strings.Join(none, "; ")).Markup("</p></details>\n")
	}
	for _, code := range evidence.Codes {
		w.kind(b, code)
	}
	b.Markup("<h2 id=\"repositories\">Repositories</h2>\n")
	begin(b, "Repository", "Branch", "Commit", "Ledger", "Since", "Changes", "Exceptions")
	for _, repo := range w.Repositories {
		b.Markup("<tr><td data-label=\"Repository\">").Link(w.at[repo.Name], repo.Name).Markup("</td><td data-label=\"Branch\">").Text(repo.Branch).Markup("</td><td data-label=\"Commit\">").Code(short(repo.Commit))
		b.Markup("</td><td data-label=\"Ledger\">").Code(repo.LedgerRef).Text(" ").Code(short(repo.LedgerCommit)).Markup("</td><td data-label=\"Since\">").Text(day(repo.LedgerBegan))
		b.Markup("</td><td class=\"number\" data-label=\"Changes\">").Link(w.at[repo.Name], count(repo)).Markup("</td><td class=\"number\" data-label=\"Exceptions\">").Link(w.at[repo.Name], strconv.Itoa(repo.Exceptions)).Markup("</td></tr>\n")
	}
	b.Markup("</tbody>\n</table>\n")
	w.write("index.html", "Evidence", b)
}

// sentence says in numbers what the report comes to.
func (w *pages) sentence(b *html.Body) {
	changes, odd, untold := 0, 0, 0
	for _, row := range w.Rows {
		switch {
		case row.Commit == "":
			untold++
		case len(row.Exceptions) > 0:
			odd++
			fallthrough
		default:
			changes++
		}
	}
	text := fmt.Sprintf("%d of %s an explanation.", odd, ledger.Plural(changes, "change needs", "changes need"))
	if odd == 0 {
		text = fmt.Sprintf("None of %s an explanation.", ledger.Plural(changes, "change needs", "changes needs"))
	}
	switch {
	case !w.Complete:
		b.Markup("<p class=\"state bad\"><strong>").Text(text + " This is not all").Markup("</strong>: of a repository below it cannot be told what changed.</p>\n")
	case !w.OK:
		b.Markup("<p class=\"state bad\"><strong>").Text(text).Markup("</strong>")
		if untold > 0 {
			b.Text(" Of a repository below nothing is on record of a part of the period.")
		}
		b.Markup("</p>\n")
	default:
		b.Markup("<p class=\"state good\"><strong>").Text(text).Markup("</strong></p>\n")
	}
}

// kind is the section of one kind of exception, if there are any: what it means, and its rows by what exactly is
// wrong, the most frequent first.
func (w *pages) kind(b *html.Body, code evidence.Code) {
	var texts []string
	rows := map[string][]int{}
	for i, row := range w.Rows {
		for _, e := range row.Exceptions {
			if e.Code != code {
				continue
			}
			if rows[e.Text] == nil {
				texts = append(texts, e.Text)
			}
			rows[e.Text] = append(rows[e.Text], i)
		}
	}
	if len(texts) == 0 {
		return
	}
	slices.SortStableFunc(texts, func(x, y string) int { return len(rows[y]) - len(rows[x]) })
	name := "exception_" + string(code)
	b.Markup("<h2").Attribute("id", string(code)).Markup(">").Text(wordsOf(name)).Markup("</h2>\n<p>").Text(kinds[code].means + " ")
	b.Link(totalPage(name), "List").Markup("</p>\n")
	begin(b, "Day", "Commit", "Subject", "Proposed by → approved by", "Transaction")
	left := onIndex
	for _, text := range texts {
		b.Markup("<tr class=\"group\"><th colspan=\"5\" scope=\"rowgroup\">").Text(text)
		if n := len(rows[text]); n > 1 {
			b.Textf(" (%d)", n)
		}
		b.Markup("</th></tr>\n")
		shown := rows[text][:min(left, len(rows[text]))]
		for _, i := range shown {
			w.row(b, i)
		}
		if left -= len(shown); left == 0 {
			break
		}
	}
	b.Markup("</tbody>\n</table>\n")
	if left == 0 {
		b.Markup("<p>").Textf("These are the first %d; ", onIndex).Link(totalPage(name), "all of them").Markup("</p>\n")
	}
}

// row is one row of a table of exceptions. Its subject leads to all that is known of it.
func (w *pages) row(b *html.Body, i int) {
	row := w.Rows[i]
	b.Markup("<tr><td data-label=\"Day\">").Text(day(row.CameBy)).Markup("</td><td data-label=\"Commit\">")
	if len(w.Repositories) > 1 {
		b.Text(row.Repository + " ")
	}
	if row.Commit == "" {
		b.Markup("all of it</td><td>").Link(w.at[row.Repository]+"#"+anchor(i), "more").Markup("</td><td></td><td></td></tr>\n")
		return
	}
	b.Link(row.URL, short(row.Commit)).Markup("</td><td>").Link(w.at[row.Repository]+"#"+anchor(i), cmp.Or(row.Subject, "no subject")).Markup("</td><td>")
	var who, ids []string
	for _, rec := range row.Records {
		ids = append(ids, rec.TransactionID)
		if text := proposersOf(rec) + " → " + approversOf(rec); !slices.Contains(who, text) {
			who = append(who, text)
		}
	}
	b.Text(strings.Join(who, " / ")).Markup("</td><td>").Code(strings.Join(ids, " ")).Markup("</td></tr>\n")
}

// day is the day of a time, in UTC.
func day(when string) string { return when[:min(len(when), len("2026-01-02"))] }

// count is how many changes a repository has, if that can be told.
func count(repo evidence.Repository) string {
	if !repo.Read {
		return "unknown"
	}
	return strconv.Itoa(repo.Changes)
}

// total lists what a number counts.
func (w *pages) total(t evidence.Total) {
	b := new(html.Body)
	b.Markup("<h1>").Text(wordsOf(t.Name)).Markup("</h1>\n<p>").Textf("%d of %d rows.", t.Count, len(w.Rows)).Markup("</p>\n<ul>\n")
	for _, i := range t.Rows {
		row := w.Rows[i]
		b.Markup("<li>").Text(row.Repository + " ")
		w.commit(b, row)
		b.Text(" "+row.Subject+" · ").Link(w.at[row.Repository]+"#"+anchor(i), "more").Markup("</li>\n")
	}
	b.Markup("</ul>\n")
	w.write(totalPage(t.Name), wordsOf(t.Name), b)
}

func anchor(i int) string { return fmt.Sprintf("row-%d", i+1) }

func (w *pages) repository(repo evidence.Repository, rows []int) {
	b := new(html.Body)
	b.Markup("<h1>").Text(repo.Name).Markup("</h1>\n<p>")
	if repo.Read {
		b.Text("Branch ").Code(repo.Branch).Text(" at ").Code(repo.Commit).Text(", by the ledger ").Code(repo.LedgerRef).Text(" at ").Code(repo.LedgerCommit).Text(", which verifies.")
	} else {
		b.Text("What changed here cannot be told.")
	}
	b.Markup("</p>\n")
	for _, i := range rows {
		w.change(b, i)
	}
	w.write(w.at[repo.Name], repo.Name, b)
}

// change is all that is known of a row.
func (w *pages) change(b *html.Body, i int) {
	row := w.Rows[i]
	b.Markup("<h2").Attribute("id", anchor(i)).Markup(">").Text(cmp.Or(row.Subject, short(row.Commit))).Markup("</h2>\n<dl>\n")
	for _, e := range row.Exceptions {
		fact(b, wordsOf("exception_"+string(e.Code))).Markup("<span class=\"bad\">").Text(e.Text).Markup("</span>").Markup(endFact)
	}
	w.commit(fact(b, "Commit"), row).Markup(endFact)
	if row.CameBy != "" {
		fact(b, "Came by (UTC)").Text(row.CameBy).Markup(endFact)
	}
	if text := explained(row); text != "" {
		fact(b, "Explained by").Text(text).Markup(endFact)
	}
	for _, rec := range row.Records {
		record(b, rec)
	}
	b.Markup("</dl>\n")
}

func record(b *html.Body, rec evidence.Record) {
	fact(b, "Transaction").Code(rec.TransactionID)
	if rec.PullRequest > 0 {
		b.Text(" ").Link(rec.PullURL, "pull request "+pull(rec))
	}
	b.Markup(endFact)
	fact(b, "Proposed by").Text(people(rec.Proposers)).Markup(endFact)
	fact(b, "Decisions")
	for i, d := range rec.Decisions {
		if i > 0 {
			b.Markup("<br>")
		}
		b.Text(decision(d))
		if !d.Counted {
			b.Text(": did not count, " + d.Why)
		}
	}
	b.Markup(endFact)
	fact(b, "Independent").Text(string(rec.Independent) + ": " + rec.Why).Markup(endFact)
	fact(b, "Checks").Text(cmp.Or(checks(rec.Checks), "none on record")).Markup(endFact)
	fact(b, "Policy").Code(rec.Policy.SHA256).Text(" " + needs(rec.Needs)).Markup(endFact)
}

// commit leads to a commit on the forge, where it is known where that is.
func (w *pages) commit(b *html.Body, row evidence.Row) *html.Body {
	if row.Commit == "" {
		return b.Text("(all of it)")
	}
	return b.Link(row.URL, row.Commit)
}

// fact begins a fact of a list, which endFact ends.
func fact(b *html.Body, name string) *html.Body {
	return b.Markup("<div><dt>").Text(name).Markup("</dt><dd>")
}

const endFact = "</dd></div>\n"

// begin begins a table whose rows are cards on a phone.
func begin(b *html.Body, columns ...string) {
	b.Markup("<table class=\"cards\">\n<thead><tr>")
	for _, c := range columns {
		b.Markup("<th scope=\"col\">").Text(c).Markup("</th>")
	}
	b.Markup("</tr></thead>\n<tbody>\n")
}
