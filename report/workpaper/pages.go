package workpaper

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/report/html"
)

// onIndex is how many exceptions the first page has; another page has all.
const onIndex = 500

// Pages are the files of the report by their names, which lie in one directory: index.html with the totals
// and what is not as it should be, a page for each total with the commits that it counts, one
// for each repository with all its rows, and their style sheet. None has a script, or loads anything
// from elsewhere.
func Pages(r evidence.Report) map[string][]byte {
	w := &pages{Report: r, at: map[string]string{}, out: map[string][]byte{html.StyleFile: html.Style()}}
	of := map[string][]int{}
	for i, repo := range r.Repositories {
		w.at[repo.Name] = fmt.Sprintf("repository-%d.html", i+1)
	}
	for i, row := range r.Rows {
		of[row.Repository] = append(of[row.Repository], i)
	}
	w.index()
	for _, t := range r.Totals {
		w.total(t)
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
	"by_merge": "Merges of changes that are listed", "by_bot": "Let in by a rule for bots", "independent_yes": "Approved by others", "independent_no": "Not approved by others",
	"independent_unknown": "Not known whether others approved", "without_checks": "Without a check on record",
}

func wordsOf(total string) string {
	if text := words[total]; text != "" {
		return text
	}
	return "Exception: " + strings.ReplaceAll(strings.TrimPrefix(total, "exception_"), "_", " ")
}

func totalPage(name string) string { return "total-" + strings.ReplaceAll(name, "_", "-") + ".html" }

func (w *pages) index() {
	b := new(html.Body)
	b.Markup("<h1>").Text("Changes from " + w.From + " to " + w.To + " (UTC)").Markup("</h1>\n")
	switch {
	case !w.Complete:
		b.Markup("<p class=\"state bad\"><strong>This is not all</strong>: of a repository below it cannot be told what changed.</p>\n")
	case !w.OK:
		b.Markup("<p class=\"state bad\"><strong>There are exceptions.</strong></p>\n")
	default:
		b.Markup("<p class=\"state good\"><strong>No exceptions.</strong></p>\n")
	}
	for _, n := range w.Notes {
		b.Markup("<p class=\"note\">").Text("Note: " + n).Markup("</p>\n")
	}
	var exceptions []int
	for i, row := range w.Rows {
		if len(row.Exceptions) > 0 {
			exceptions = append(exceptions, i)
		}
	}
	b.Markup("<h2 id=\"exceptions\">Exceptions</h2>\n")
	if n := len(exceptions); n > onIndex {
		b.Markup("<p>").Textf("The first %d of %d; ", onIndex, n).Link(totalPage("exceptions"), "all of them").Markup("</p>\n")
		exceptions = exceptions[:onIndex]
	}
	w.rows(b, "Exceptions", exceptions, false)
	b.Markup("<h2 id=\"totals\">Totals</h2>\n")
	begin(b, "Totals", "What", "Rows")
	for _, t := range w.Totals {
		b.Markup("<tr><td>").Text(wordsOf(t.Name)).Markup("</td><td class=\"number\">").Link(totalPage(t.Name), strconv.Itoa(t.Count)).Markup("</td></tr>\n")
	}
	end(b)
	b.Markup("<h2 id=\"repositories\">Repositories</h2>\n")
	begin(b, "Repositories", "Repository", "Branch", "Commit", "Ledger", "Since", "Changes", "Exceptions")
	for _, repo := range w.Repositories {
		b.Markup("<tr><td>").Link(w.at[repo.Name], repo.Name).Markup("</td><td>").Text(repo.Branch).Markup("</td><td>").Code(short(repo.Commit)).Markup("</td><td>")
		b.Code(repo.LedgerRef).Text(" ").Code(short(repo.LedgerCommit)).Markup("</td><td>").Text(repo.LedgerBegan).Markup("</td><td class=\"number\">")
		b.Link(w.at[repo.Name], count(repo)).Markup("</td><td class=\"number\">").Link(w.at[repo.Name], strconv.Itoa(repo.Exceptions)).Markup("</td></tr>\n")
	}
	end(b)
	w.write("index.html", "Evidence", b)
}

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
	w.rows(b, "Changes", rows, true)
	w.write(w.at[repo.Name], repo.Name, b)
}

// rows is a table; the one of a repository has the places that totals lead to.
func (w *pages) rows(b *html.Body, name string, rows []int, anchors bool) {
	if len(rows) == 0 {
		b.Markup("<p>None.</p>\n")
		return
	}
	begin(b, name, "Commit", "Exceptions", "Came by (UTC)", "Explained by", "Proposed by", "Decisions", "Independent", "Checks")
	for _, i := range rows {
		row := w.Rows[i]
		b.Markup("<tr")
		if anchors {
			b.Attribute("id", anchor(i))
		}
		b.Markup("><td>").Text(row.Repository + " ")
		w.commit(b, row)
		b.Text(" " + row.Subject).Markup("</td><td>")
		for _, e := range row.Exceptions {
			b.Markup("<p class=\"bad\">").Code(string(e.Code)).Text(" " + e.Text).Markup("</p>")
		}
		b.Markup("</td><td>").Text(row.CameBy).Markup("</td><td>").Text(explained(row))
		for _, rec := range row.Records {
			b.Markup("<p>").Code(rec.TransactionID)
			if rec.PullRequest > 0 {
				b.Text(" ").Link(rec.PullURL, "pull request "+pull(rec))
			}
			b.Text(" · Policy ").Code(rec.Policy.SHA256).Text(" " + needs(rec.Needs)).Markup("</p>")
		}
		cell := func(write func(evidence.Record)) {
			b.Markup("</td><td>")
			for _, rec := range row.Records {
				b.Markup("<p>")
				write(rec)
				b.Markup("</p>")
			}
		}
		cell(func(rec evidence.Record) { b.Text(people(rec.Proposers)) })
		cell(func(rec evidence.Record) {
			for i, d := range rec.Decisions {
				if i > 0 {
					b.Markup("<br>")
				}
				b.Text(decision(d))
				if !d.Counted {
					b.Text(": did not count, " + d.Why)
				}
			}
		})
		cell(func(rec evidence.Record) { b.Text(string(rec.Independent) + ": " + rec.Why) })
		cell(func(rec evidence.Record) { b.Text(checks(rec.Checks)) })
		b.Markup("</td></tr>\n")
	}
	end(b)
}

// commit leads to a commit on the forge, where it is known where that is.
func (w *pages) commit(b *html.Body, row evidence.Row) {
	if row.Commit == "" {
		b.Text("(all of it)")
		return
	}
	b.Link(row.URL, row.Commit)
}

func begin(b *html.Body, name string, columns ...string) {
	b.Markup("<div class=\"wide\" tabindex=\"0\" role=\"region\"").Attribute("aria-label", name).Markup("><table>\n<thead><tr>")
	for _, c := range columns {
		b.Markup("<th scope=\"col\">").Text(c).Markup("</th>")
	}
	b.Markup("</tr></thead>\n<tbody>\n")
}

func end(b *html.Body) { b.Markup("</tbody>\n</table></div>\n") }
