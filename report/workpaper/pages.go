package workpaper

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/html"
)

// cards begins a table whose rows are cards on a phone.
const cards = "<table class=\"cards\">\n"

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
	b := html.Part("<h1>Changes from {} to {} (UTC)</h1>\n", w.From, w.To)
	w.sentence(b)
	for _, n := range w.Notes {
		b.Put("<p class=\"note\">Note: {}</p>\n", n)
	}
	b.Markup("<h2 id=\"totals\">Totals</h2>\n<table class=\"totals\">\n<tbody>\n")
	var none []string
	for _, t := range w.Totals {
		if t.Count == 0 {
			none = append(none, wordsOf(t.Name))
			continue
		}
		b.Put("<tr><td class=\"number\">{}</td><th scope=\"row\">{}</th></tr>\n", html.To(totalPage(t.Name), strconv.Itoa(t.Count)), wordsOf(t.Name))
	}
	b.Markup("</tbody>\n</table>\n")
	b.PutIf(len(none) > 0, "<details><summary>What there is none of</summary><p>{}</p></details>\n", strings.Join(none, "; "))
	for _, code := range evidence.Codes {
		w.kind(b, code)
	}
	b.Markup("<h2 id=\"repositories\">Repositories</h2>\n")
	b.Markup(cards).Heads("Repository", "Branch", "Commit", "Ledger", "Since", "Changes", "Exceptions")
	for _, repo := range w.Repositories {
		at := w.at[repo.Name]
		b.Put("<tr><td data-label=\"Repository\">{}</td><td data-label=\"Branch\">{}</td><td data-label=\"Commit\">{}</td>", html.To(at, repo.Name), repo.Branch, html.Code(short(repo.Commit)))
		b.Put("<td data-label=\"Ledger\">{} {}</td><td data-label=\"Since\">{}</td>", html.Code(repo.LedgerRef), html.Code(short(repo.LedgerCommit)), day(repo.LedgerBegan))
		b.Put("<td class=\"number\" data-label=\"Changes\">{}</td><td class=\"number\" data-label=\"Exceptions\">{}</td></tr>\n", html.To(at, count(repo)), html.To(at, strconv.Itoa(repo.Exceptions)))
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
	class, rest := "good", ""
	switch {
	case !w.Complete:
		class, text, rest = "bad", text+" This is not all", ": of a repository below it cannot be told what changed."
	case !w.OK && untold > 0:
		class, rest = "bad", " Of a repository below nothing is on record of a part of the period."
	case !w.OK:
		class = "bad"
	}
	b.Put("<p class=\"state {}\"><strong>{}</strong>{}</p>\n", class, text, rest)
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
	b.Put("<h2 id=\"{}\">{}</h2>\n<p>{} {}</p>\n", string(code), wordsOf(name), kinds[code].means, html.To(totalPage(name), "List"))
	b.Markup(cards).Heads("Day", "Commit", "Subject", "Proposed by → approved by", "Transaction")
	left := onIndex
	for _, text := range texts {
		head := text
		if n := len(rows[text]); n > 1 {
			head += fmt.Sprintf(" (%d)", n)
		}
		b.Put("<tr class=\"group\"><th colspan=\"5\" scope=\"rowgroup\">{}</th></tr>\n", head)
		shown := rows[text][:min(left, len(rows[text]))]
		for _, i := range shown {
			w.row(b, i)
		}
		if left -= len(shown); left == 0 {
			break
		}
	}
	b.Markup("</tbody>\n</table>\n")
	b.PutIf(left == 0, "<p>These are the first {}; {}</p>\n", onIndex, html.To(totalPage(name), "all of them"))
}

// row is one row of a table of exceptions. Its subject leads to all that is known of it.
func (w *pages) row(b *html.Body, i int) {
	row, more := w.Rows[i], w.at[w.Rows[i].Repository]+"#"+anchor(i)
	of := ""
	if len(w.Repositories) > 1 {
		of = row.Repository + " "
	}
	b.Put("<tr><td data-label=\"Day\">{}</td><td data-label=\"Commit\">{}", day(row.CameBy), of)
	if row.Commit == "" {
		b.Put("all of it</td><td>{}</td><td></td><td></td></tr>\n", html.To(more, "more"))
		return
	}
	b.Put("{}</td><td>{}</td>", html.To(row.URL, short(row.Commit)), html.To(more, cmp.Or(row.Subject, "no subject")))
	var who, ids []string
	for _, rec := range row.Records {
		ids = append(ids, rec.TransactionID)
		approved := slices.DeleteFunc(slices.Clone(rec.Decisions), func(d evidence.Decision) bool { return !d.Counted || d.Decision != ledger.Approve })
		text := names(rec.Proposers, func(p evidence.Person) ledger.Actor { return p.Actor }) + " → "
		if text += names(approved, func(d evidence.Decision) ledger.Actor { return d.Author }); !slices.Contains(who, text) {
			who = append(who, text)
		}
	}
	b.Put("<td>{}</td><td>{}</td></tr>\n", strings.Join(who, " / "), html.Code(strings.Join(ids, " ")))
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
	b := html.Part("<h1>{}</h1>\n<p>{} of {} rows.</p>\n<ul>\n", wordsOf(t.Name), t.Count, len(w.Rows))
	for _, i := range t.Rows {
		row := w.Rows[i]
		b.Put("<li>{} {} {} · {}</li>\n", row.Repository, commit(row), row.Subject, html.To(w.at[row.Repository]+"#"+anchor(i), "more"))
	}
	b.Markup("</ul>\n")
	w.write(totalPage(t.Name), wordsOf(t.Name), b)
}

func anchor(i int) string { return fmt.Sprintf("row-%d", i+1) }

func (w *pages) repository(repo evidence.Repository, rows []int) {
	b := html.Part("<h1>{}</h1>\n", repo.Name)
	if repo.Read {
		b.Put("<p>Branch {} at {}, by the ledger {} at {}, which verifies.</p>\n", html.Code(repo.Branch), html.Code(repo.Commit), html.Code(repo.LedgerRef), html.Code(repo.LedgerCommit))
	} else {
		b.Markup("<p>What changed here cannot be told.</p>\n")
	}
	for _, i := range rows {
		w.change(b, i)
	}
	w.write(w.at[repo.Name], repo.Name, b)
}

// change is all that is known of a row.
func (w *pages) change(b *html.Body, i int) {
	row := w.Rows[i]
	b.Put("<h2 id=\"{}\">{}</h2>\n<dl>\n", anchor(i), cmp.Or(row.Subject, short(row.Commit)))
	for _, e := range row.Exceptions {
		b.Fact(wordsOf("exception_"+string(e.Code)), html.Part("<span class=\"bad\">{}</span>", e.Text))
	}
	b.Fact("Commit", commit(row))
	if row.CameBy != "" {
		b.Fact("Came by (UTC)", row.CameBy)
	}
	if text := explained(row); text != "" {
		b.Fact("Explained by", text)
	}
	for _, rec := range row.Records {
		record(b, rec)
	}
	b.Markup("</dl>\n")
}

func record(b *html.Body, rec evidence.Record) {
	of := html.Code(rec.TransactionID)
	of.PutIf(rec.PullRequest > 0, " {}", html.To(rec.PullURL, "pull request "+pull(rec)))
	b.Fact("Transaction", of)
	b.Fact("Proposed by", people(rec.Proposers))
	said := new(html.Body)
	for i, d := range rec.Decisions {
		said.PutIf(i > 0, "<br>")
		said.Text(decision(d))
		said.PutIf(!d.Counted, ": did not count, {}", d.Why)
	}
	b.Fact("Decisions", said)
	b.Fact("Independent", string(rec.Independent)+": "+rec.Why)
	b.Fact("Checks", cmp.Or(checks(rec.Checks), "none on record"))
	b.Fact("Policy", html.Part("{} {}", html.Code(rec.Policy.SHA256), needs(rec.Needs)))
}

// commit leads to a commit on the forge, where it is known where that is.
func commit(row evidence.Row) *html.Body {
	if row.Commit == "" {
		return html.Part("(all of it)")
	}
	return html.To(row.URL, row.Commit)
}
