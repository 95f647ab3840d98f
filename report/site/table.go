package site

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/markdown"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/html"
)

// A column of a table. On a narrow screen a row is a card, in which the label stands before the
// cell: a part for html.Body.Put, nil where a row has nothing there.
type column struct {
	head, label string
	number      bool
	cell        func(i int) any
}

// table has a row for each of these, without the columns that have nothing in any.
func (d *doc) table(rows []int, columns ...column) {
	columns = slices.DeleteFunc(columns, func(c column) bool {
		return !slices.ContainsFunc(rows, func(i int) bool { return c.cell(i) != nil })
	})
	if len(rows) == 0 {
		d.Markup("<p>Nothing.</p>\n")
		return
	}
	d.Markup("<table class=\"list\">\n<thead><tr>")
	for _, c := range columns {
		d.Markup("<th")
		d.PutIf(c.number, " class=\"number\"")
		d.Put(" scope=\"col\">{}</th>", c.head)
	}
	d.Markup("</tr></thead>\n<tbody>\n")
	for _, i := range rows {
		d.Markup("<tr>")
		for _, c := range columns {
			d.Markup("<td")
			d.PutIf(c.number, " class=\"number\"")
			cell := c.cell(i)
			d.PutIf(c.label != "" && cell != nil, ` data-label="{}"`, c.label)
			d.Put(">{}</td>", cell)
		}
		d.Markup("</tr>\n")
	}
	d.Markup("</tbody>\n</table>\n")
}

// rows are a table of transactions.
func (d *doc) rows(in []int) {
	d.table(in, d.changes(), d.states(), d.needs(), d.proposers(), d.deciders(), d.times("Proposed", func(t *html.Summary) string { return t.Proposed }))
}

func (d *doc) changes() column { return column{head: "Change", cell: d.change} }

func (d *doc) states() column {
	return column{head: "State", cell: func(i int) any {
		return html.Part("<span class=\"{}\">{}</span>", d.all[i].Class(), string(d.all[i].State))
	}}
}

func (d *doc) needs() column {
	return column{head: "Waits for", label: "of", cell: func(i int) any {
		if d.all[i].Needs == "" {
			return nil
		}
		return d.all[i].Needs
	}}
}

func (d *doc) proposers() column {
	return column{head: "Proposed by", label: "by", cell: func(i int) any {
		if d.all[i].Proposer == (ledger.Actor{}) {
			return nil
		}
		return d.person(d.all[i].Proposer)
	}}
}

// deciders are those whose decision counted.
func (d *doc) deciders() column {
	return column{head: "Decided by", label: "decided by", cell: func(i int) any {
		t := &d.all[i]
		if len(t.Approvers)+len(t.Deniers) == 0 {
			return nil
		}
		b := new(html.Body)
		d.persons(b, t.Approvers, func(a ledger.Actor) string { return map[bool]string{true: ", their own"}[isOwn(t, a)] })
		b.PutIf(len(t.Approvers) > 0 && len(t.Deniers) > 0, ", ")
		d.persons(b, t.Deniers, func(ledger.Actor) string { return " (denied)" })
		return b
	}}
}

// times is a column of moments in UTC, to the minute.
func (d *doc) times(head string, of func(*html.Summary) string) column {
	return column{head: head + " (UTC)", label: strings.ToLower(head), cell: func(i int) any {
		return html.When(markdown.ShortenTo(of(&d.all[i]), 40))
	}}
}

// numbers is a column in which 0 is left out.
func (d *doc) numbers(head string, of func(i int) int) column {
	return column{head: head, label: strings.ToLower(head), number: true, cell: func(i int) any {
		if n := of(i); n != 0 {
			return n
		}
		return nil
	}}
}

// change is a transaction by its summary.
func (d *doc) change(i int) any {
	return d.to(Transaction(d.all[i].ID), cmp.Or(markdown.ShortenTo(d.all[i].Summary, 100), d.all[i].ID))
}

// nameOf is what a person is called.
func nameOf(a ledger.Actor) string {
	return cmp.Or(markdown.ShortenTo(a.Login, 60), markdown.ShortenTo(a.ID, 60), "somebody")
}

func (d *doc) person(a ledger.Actor) *html.Body {
	b := d.to(Person(a), nameOf(a))
	b.PutIf(a.Kind != "user" && a.Kind != "", " ({})", markdown.ShortenTo(a.Kind, 20))
	return b
}

// persons are some people, with a word about each.
func (d *doc) persons(b *html.Body, all []ledger.Actor, about func(ledger.Actor) string) {
	for i, a := range all[:min(len(all), 5)] {
		b.Put("{}{}{}", map[bool]string{true: ", "}[i > 0], d.person(a), about(a))
	}
	b.PutIf(len(all) > 5, " and {} more", len(all)-5)
}

// isOwn reports whether somebody approved what they proposed themselves.
func isOwn(t *html.Summary, a ledger.Actor) bool {
	return a.Kind == t.Proposer.Kind && a.ID == t.Proposer.ID || t.Own && len(t.Approvers) == 1
}
