package site

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/report/html"
)

// A column of a table. On a narrow screen a row is a card, in which the label stands before the
// cell.
type column struct {
	head, label string
	number      bool
	has         func(i int) bool // whether a row has something there, nil for yes
	write       func(i int)
}

// table has a row for each of these, without the columns that have nothing in any.
func (d *doc) table(rows []int, columns ...column) {
	columns = slices.DeleteFunc(columns, func(c column) bool { return c.has != nil && !slices.ContainsFunc(rows, c.has) })
	if len(rows) == 0 {
		d.paragraph(func() { d.Text("Nothing.") })
		return
	}
	d.Markup("<table class=\"list\">\n<thead><tr>")
	for _, c := range columns {
		if c.number {
			d.Markup("<th class=\"number\" scope=\"col\">").Text(c.head).Markup("</th>")
		} else {
			d.Markup("<th scope=\"col\">").Text(c.head).Markup("</th>")
		}
	}
	d.Markup("</tr></thead>\n<tbody>\n")
	for _, i := range rows {
		d.Markup("<tr>")
		for _, c := range columns {
			d.Markup("<td")
			if c.number {
				d.Markup(" class=\"number\"")
			}
			if c.label != "" && (c.has == nil || c.has(i)) {
				d.Attribute("data-label", c.label)
			}
			d.Markup(">")
			c.write(i)
			d.Markup("</td>")
		}
		d.Markup("</tr>\n")
	}
	d.Markup("</tbody>\n</table>\n")
}

// rows are a table of transactions.
func (d *doc) rows(in []int) {
	d.table(in, d.changes(), d.states(), d.needs(), d.proposers(), d.deciders(), d.times("Proposed", func(i int) string { return d.all[i].Proposed }))
}

func (d *doc) changes() column { return column{head: "Change", write: d.change} }

func (d *doc) states() column {
	return column{head: "State", write: func(i int) {
		d.Markup("<span").Attribute("class", d.all[i].Class()).Markup(">").Text(string(d.all[i].State)).Markup("</span>")
	}}
}

func (d *doc) needs() column {
	return column{head: "Waits for", label: "of", has: func(i int) bool { return d.all[i].Needs != "" }, write: func(i int) { d.Text(d.all[i].Needs) }}
}

func (d *doc) proposers() column {
	return column{head: "Proposed by", label: "by", has: func(i int) bool { return d.all[i].Proposer != (ledger.Actor{}) }, write: func(i int) {
		if a := d.all[i].Proposer; a != (ledger.Actor{}) {
			d.person(a)
		}
	}}
}

// deciders are those whose decision counted.
func (d *doc) deciders() column {
	return column{
		head: "Decided by", label: "decided by", has: func(i int) bool { return len(d.all[i].Approvers)+len(d.all[i].Deniers) > 0 },
		write: func(i int) {
			t := &d.all[i]
			d.persons(t.Approvers, func(a ledger.Actor) string {
				if isOwn(t, a) {
					return ", their own"
				}
				return ""
			})
			if len(t.Approvers) > 0 && len(t.Deniers) > 0 {
				d.Text(", ")
			}
			d.persons(t.Deniers, func(ledger.Actor) string { return " (denied)" })
		},
	}
}

// times is a column of moments in UTC.
func (d *doc) times(head string, of func(i int) string) column {
	return column{head: head + " (UTC)", label: strings.ToLower(head), write: func(i int) { d.when(of(i)) }}
}

// numbers is a column in which 0 is left out.
func (d *doc) numbers(head string, of func(i int) int) column {
	return column{head: head, label: strings.ToLower(head), number: true, has: func(i int) bool { return of(i) != 0 }, write: func(i int) {
		if of(i) != 0 {
			d.Textf("%d", of(i))
		}
	}}
}

// change is a transaction by its summary.
func (d *doc) change(i int) {
	d.to(Transaction(d.all[i].ID), cmp.Or(short(d.all[i].Summary, 100), d.all[i].ID))
}

func (d *doc) person(a ledger.Actor) {
	d.to(Person(a), cmp.Or(short(a.Login, 60), short(a.ID, 60), "somebody"))
	if a.Kind != "user" && a.Kind != "" {
		d.Text(" (" + short(a.Kind, 20) + ")")
	}
}

// persons are some people, with a word about each.
func (d *doc) persons(all []ledger.Actor, about func(ledger.Actor) string) {
	for i, a := range all[:min(len(all), 5)] {
		if i > 0 {
			d.Text(", ")
		}
		d.person(a)
		d.Text(about(a))
	}
	if len(all) > 5 {
		d.Textf(" and %d more", len(all)-5)
	}
}

// when is a moment in UTC, to the minute.
func (d *doc) when(at string) {
	parsed, err := time.Parse(time.RFC3339, at)
	if err != nil {
		d.Text(short(at, 40))
		return
	}
	d.Markup("<time>").Text(parsed.UTC().Format("2006-01-02 15:04")).Markup("</time>")
}

// isOwn reports whether somebody approved what they proposed themselves.
func isOwn(t *html.Summary, a ledger.Actor) bool {
	return a.Kind == t.Proposer.Kind && a.ID == t.Proposer.ID || t.Own && len(t.Approvers) == 1
}

// short is a foreign text that fits into a row.
func short(text string, limit int) string {
	n := 0
	for i := range text {
		if n++; n > limit {
			return text[:i] + "…"
		}
	}
	return text
}

// upper begins a head.
func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
