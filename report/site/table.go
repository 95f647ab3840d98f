package site

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/markdown"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/template"
)

// A column of a table, by what its rows are of. On a narrow screen a row is a card, in which the label stands before the
// cell: a part for html.Body.Put, nil where a row has nothing there.
type column[T any] struct {
	head, label string
	number      bool
	cell        func(of T) any
}

type cell struct {
	Head, Label string
	Number      bool
	Is          any
}

// table has a row for each of these, without the columns that have nothing in any.
func table[T any](d *doc, of []T, columns ...column[T]) *html.Body {
	var data struct {
		Heads []cell
		Rows  [][]cell
	}
	columns = slices.DeleteFunc(columns, func(c column[T]) bool {
		return !slices.ContainsFunc(of, func(one T) bool { return c.cell(one) != nil })
	})
	for _, c := range columns {
		data.Heads = append(data.Heads, cell{Head: c.head, Number: c.number})
	}
	for _, one := range of {
		var row []cell
		for _, c := range columns {
			row = append(row, cell{c.head, c.label, c.number, c.cell(one)})
		}
		data.Rows = append(data.Rows, row)
	}
	return d.fill("table", data)
}

// rows are a table of transactions.
func (d *doc) rows(in []int) *html.Body {
	return table(d, in, d.changes(), d.states(), d.needs(), d.proposers(), d.deciders(), d.times("Proposed", func(t *html.Summary) string { return t.Proposed }))
}

func (d *doc) changes() column[int] { return column[int]{head: "Change", cell: d.change} }

func (d *doc) states() column[int] {
	return column[int]{head: "State", cell: func(i int) any {
		return html.Part("<span class=\"{}\">{}</span>", d.all[i].Class(), string(d.all[i].State))
	}}
}

func (d *doc) needs() column[int] {
	return column[int]{head: "Waits for", label: "of", cell: func(i int) any { return some(d.all[i].Needs) }}
}

// some is a value, nil if it is a zero one.
func some[T comparable](value T) any {
	if value == *new(T) {
		return nil
	}
	return value
}

func (d *doc) proposers() column[int] {
	return column[int]{head: "Proposed by", label: "by", cell: func(i int) any {
		if d.all[i].Proposer == (ledger.Actor{}) {
			return nil
		}
		return d.person(d.all[i].Proposer)
	}}
}

// deciders are those whose decision counted.
func (d *doc) deciders() column[int] {
	return column[int]{head: "Decided by", label: "decided by", cell: func(i int) any {
		t := &d.all[i]
		if len(t.Approvers)+len(t.Deniers) == 0 {
			return nil
		}
		return html.Fill(templates, "people", t, template.Funcs{"person": d.person, "own": func(a ledger.Actor) bool { return isOwn(t, a) }})
	}}
}

// times is a column of moments in UTC, to the minute.
func (d *doc) times(head string, of func(*html.Summary) string) column[int] {
	return column[int]{head: head + " (UTC)", label: strings.ToLower(head), cell: func(i int) any {
		return html.When(markdown.ShortenTo(of(&d.all[i]), 40))
	}}
}

// numbers is a column in which 0 is left out.
func numbers[T any](head string, of func(T) int) column[T] {
	return column[T]{head: head, label: strings.ToLower(head), number: true, cell: func(one T) any { return some(of(one)) }}
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
	return html.Named(d.to(Person(a), nameOf(a)), markdown.ShortenTo(a.Kind, 20))
}

// isOwn reports whether somebody approved what they proposed themselves.
func isOwn(t *html.Summary, a ledger.Actor) bool {
	return a.Kind == t.Proposer.Kind && a.ID == t.Proposer.ID || t.Own && len(t.Approvers) == 1
}
