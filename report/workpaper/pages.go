package workpaper

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

//go:embed pages.html
var files embed.FS

var templates = html.Templates(files, template.Funcs{
	"wordsOf": wordsOf, "titleOf": func(code evidence.Code) string { return wordsOf("exception_" + string(code)) },
	"overdue": func(code evidence.Code) bool { return code == evidence.Overdue }, "totalPage": totalPage, "short": short, "day": day,
	"who": proposedApproved, "person": who, "explained": explained, "chain": chain, "needs": needs,
	"subject": func(r evidence.Row) string { return cmp.Or(r.Subject, "no subject") },
	"ids": func(r evidence.Row) string {
		return view.Joined(r.Records, " ", func(r evidence.Record) string { return r.TransactionID })
	},
	"pullRequest": func(n int) string { return "pull request " + strconv.Itoa(n) },
})

// onIndex is how many rows of a kind of exception the first page has; another page has all.
const onIndex = 100

// Pages are the files of the report by their names, which lie in one directory: index.html with the totals
// and what is not as it should be by its kind, a page for each total with the commits that it counts, one
// for each repository with all that is known of its rows, and their style sheet. None has a script, or loads anything
// from elsewhere.
func Pages(r evidence.Report) map[string][]byte {
	w := &pages{Report: r, at: repositoryPages(r), out: map[string][]byte{html.StyleFile: html.Style(), html.IconFile: html.Icon()}}
	of := map[string][]row{}
	for i, one := range r.Rows {
		of[one.Repository] = append(of[one.Repository], w.row(i))
	}
	w.index()
	for _, t := range r.Totals {
		if t.Count > 0 {
			w.write(totalPage(t.Name), wordsOf(t.Name), "total", struct {
				evidence.Total
				All    []evidence.Row
				Listed []row
			}{t, w.Rows, w.rowsAt(t.Rows)})
		}
	}
	for _, repo := range r.Repositories {
		w.write(w.at[repo.Name], repo.Name, "repository", struct {
			evidence.Repository
			Rows []row
		}{repo, of[repo.Name]})
	}
	return w.out
}

// repositoryPages are the names of the repositories' pages.
func repositoryPages(r evidence.Report) map[string]string {
	at := map[string]string{}
	for i, repo := range r.Repositories {
		at[repo.Name] = fmt.Sprintf("repository-%d.html", i+1)
	}
	return at
}

// Item is the first page of a packet: all that is known of a row of a report of one repository, and links to the files beside it.
func Item(r evidence.Report, row evidence.Row, files []string) []byte {
	return html.Layout(html.Head{
		Title: cmp.Or(row.Subject, short(row.Commit)), Alone: true, Footer: "Made at " + r.MadeAt + " from the ledger and the branch as they were then. This page decides nothing.",
	}, html.Fill(templates, "item", struct {
		Repository evidence.Repository
		Row        evidence.Row
		Files      []string
	}{r.Repositories[0], row, files}, nil))
}

type pages struct {
	evidence.Report
	at  map[string]string // by repository: its page
	out map[string][]byte
}

// A row is one with the address of all that is known of it.
type row struct {
	evidence.Row
	Anchor, More string
}

func (w *pages) row(i int) row {
	anchor := fmt.Sprintf("row-%d", i+1)
	return row{w.Rows[i], anchor, w.at[w.Rows[i].Repository] + "#" + anchor}
}

func (w *pages) rowsAt(numbers []int) (out []row) {
	for _, i := range numbers {
		out = append(out, w.row(i))
	}
	return out
}

func (w *pages) write(name, title, of string, data any) {
	w.out[name] = html.Layout(html.Head{
		Title: title + " · " + w.From + " to " + w.To, Here: name, Nav: []html.Link{{Address: "index.html", Text: "Evidence"}},
		Footer: "Made at " + w.MadeAt + " from the ledgers and branches as they were then. These pages decide nothing.",
	}, html.Fill(templates, of, data, template.Funcs{
		"several": func() bool { return len(w.Repositories) > 1 }, "pageOf": func(repository string) string { return w.at[repository] },
	}))
}

// words are the names of totals as people read them.
var words = map[string]string{
	"changes": "Changes", "exceptions": "Rows with an exception", "unreviewed": "Rows with an exception that nobody independent has reviewed", "by_transaction": "Made or proposed by a transaction", "by_pull_request": "Approved as a pull request",
	"by_merge": "Merges of changes that are listed", "by_bot": "Let in by a rule for bots", "by_empty": "Commits that change nothing", "independent_yes": "Approved by others", "independent_no": "Not approved by others",
	"independent_unknown": "Not known whether others approved", "without_checks": "Without a check on record",
}

func wordsOf(total string) string {
	return cmp.Or(words[total], kinds[evidence.Code(strings.TrimPrefix(total, "exception_"))].title)
}

func totalPage(name string) string { return "total-" + strings.ReplaceAll(name, "_", "-") + ".html" }

func (w *pages) index() {
	var none []string
	for _, t := range w.Totals {
		if t.Count == 0 {
			none = append(none, wordsOf(t.Name))
		}
	}
	var kinds []section
	for _, code := range evidence.Codes {
		if s := w.section(code); len(s.Groups) > 0 {
			kinds = append(kinds, s)
		}
	}
	w.write("index.html", "Evidence", "index", struct {
		evidence.Report
		Sum   sentence
		None  string
		Kinds []section
	}{w.Report, w.sentence(), strings.Join(none, "; "), kinds})
}

// A sentence says in numbers what the report comes to.
type sentence struct{ Class, Says, Rest string }

func (w *pages) sentence() sentence {
	odd, untold := 0, 0
	for _, row := range w.Rows {
		switch {
		case row.Commit == "":
			untold++
		case len(row.Exceptions) > 0:
			odd++
		}
	}
	changes := len(w.Rows) - untold
	text := fmt.Sprintf("%d of %s an explanation.", odd, ledger.Plural(changes, "change needs", "changes need"))
	if odd == 0 {
		text = fmt.Sprintf("None of %s an explanation.", ledger.Plural(changes, "change needs", "changes needs"))
	}
	switch {
	case !w.Complete:
		return sentence{"bad", text + " This is not all", ": of a repository below it cannot be told what changed."}
	case !w.OK && untold > 0:
		return sentence{"bad", text, " Of a repository below nothing is on record of a part of the period."}
	case !w.OK:
		return sentence{"bad", text, ""}
	}
	return sentence{"good", text, ""}
}

// A section is one kind of exception: what it means, and its rows by what exactly is wrong, the most frequent first. Cut is
// how many rows it has, where these are not all.
type section struct {
	Code               evidence.Code
	Title, Means, Page string
	Groups             []group
	Cut                int
}

type group struct {
	Text    string
	Several int // how many there are, if not one
	Rows    []row
}

func (w *pages) section(code evidence.Code) section {
	name := "exception_" + string(code)
	s := section{Code: code, Title: wordsOf(name), Means: kinds[code].means, Page: totalPage(name)}
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
	slices.SortStableFunc(texts, func(x, y string) int { return len(rows[y]) - len(rows[x]) })
	left := onIndex
	for _, text := range texts {
		all := rows[text]
		g := group{Text: text, Rows: w.rowsAt(all[:min(left, len(all))])}
		if len(all) > 1 {
			g.Several = len(all)
		}
		s.Groups = append(s.Groups, g)
		if left -= len(g.Rows); left == 0 {
			s.Cut = onIndex
			break
		}
	}
	return s
}

// proposedApproved is who proposed a row's changes, and who approved them.
func proposedApproved(row evidence.Row) string {
	return strings.Join(view.Distinct(row.Records, func(rec evidence.Record) string {
		approved := slices.DeleteFunc(slices.Clone(rec.Decisions), func(d evidence.Decision) bool { return !d.Counted || d.Decision != ledger.Approve })
		return names(rec.Proposers, func(p evidence.Person) ledger.Actor { return p.Actor }) + " → " + names(approved, func(d evidence.Decision) ledger.Actor { return d.Author })
	}), " / ")
}

// day is the day of a time, in UTC.
func day(when string) string { return when[:min(len(when), len("2026-01-02"))] }

// A kind says what an exception is called, what it means, and which statement of NIST SP 800-53 it speaks against.
type kind struct{ title, means, against string }

// kinds are those of docs/evidence.md.
var kinds = map[evidence.Code]kind{
	evidence.Unreadable:          {"Repository not read", "It could not be fetched or read: nothing is known of its changes.", "cm-3_smt.e"},
	evidence.Unsound:             {"Ledger does not verify", "An audit found something in it, so nothing that it says is relied on.", "cm-3_smt.e"},
	evidence.NoLedger:            {"No ledger", "Nothing is on record of what came to the branch.", "cm-3_smt.e"},
	evidence.BeforeLedger:        {"Before the ledger", "The period begins before anything was on record.", "cm-3_smt.e"},
	evidence.RecordInvalid:       {"Record does not verify", "What is on record of these changes breaks a rule.", "cm-3_smt.e"},
	evidence.Unexplained:         {"Nothing accounts for it", "Nobody is on record as having approved these commits, and no rule lets them in.", "cm-3_smt.b"},
	evidence.Denied:              {"Denied, and there", "Somebody denied exactly this patch, and it is on the branch all the same.", "cm-3_smt.b"},
	evidence.UnknownPolicy:       {"Policy not known", "Which Policy these changes were under is not known, so nor is what they needed.", "cm-3_smt.e"},
	evidence.WeakDecision:        {"Approved too weakly", "The decisions about these changes prove less than was asked for.", "cm-3_smt.b"},
	evidence.NotApproved:         {"Without the approvals it needed", "The transactions of these changes did not get what their Policy asks for.", "cm-3_smt.b"},
	evidence.NotApplied:          {"Came otherwise than by its transaction", "These changes were approved, and that the approved bytes were put here is not on record.", "cm-3_smt.d"},
	evidence.UsedUp:              {"Approval used already", "The approval of these changes accounts for another commit: one approval is for one.", "cm-3_smt.b"},
	evidence.PartlyApproved:      {"More than was approved", "Approved patches are in these changes, and more that nobody approved.", "cm-3_smt.b"},
	evidence.CannotTell:          {"Cannot be told", "Whether something accounts for these changes cannot be told here.", "cm-3_smt.e"},
	evidence.Overdue:             {"Not reviewed in time", "Nobody who had no part in these has reviewed them within the time that the Policy gives (countersign dispose).", "cm-3_smt.f"},
	evidence.BreakGlass:          {"Approved alone in an emergency", "Somebody broke the glass: they approved alone what others should have.", "ac-5_smt.b"},
	evidence.NoApproval:          {"Let in without an approval", "A rule of the Policy for bots let these changes in.", "cm-3_smt.b"},
	evidence.DependentApproval:   {"Approved by its own proposer", "An approval that these changes needed was given by who had proposed them, or had written their commits.", "ac-5_smt.b"},
	evidence.UnknownIndependence: {"Approver perhaps the proposer", "The record does not tell whether those who approved these changes are others than who proposed them.", "ac-5_smt.b"},
	evidence.ApprovedLate:        {"Approved too late", "These changes were merged, or named in the ledger, before they were approved.", "cm-3_smt.b"},
	evidence.ChecksFailed:        {"A check failed", "A required check failed the last time that it ran.", "cm-3.2_smt"},
	evidence.ChecksAbsent:        {"A check is missing", "A command of the Policy is not on record.", "cm-3.2_smt"},
	evidence.NotValidated:        {"Not proved afterwards", "These changes were not checked after they were applied, or that they were merged as approved is not on record.", "cm-3_smt.d"},
}
