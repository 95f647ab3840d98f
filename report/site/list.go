package site

import (
	"cmp"
	"embed"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/template"
)

// How many rows the list of all changes has, and each page of the list of a group: DIR/index.html has its newest,
// DIR/2/index.html those before them.
const (
	newest  = 200
	perPage = 500
)

func chunk(dir string, n int) string {
	if n == 0 {
		return dir + page
	}
	return dir + "/" + strconv.Itoa(n+1) + page
}

// groupPage makes a page of the list of what transactions have in common.
func (s *Site) groupPage(dir string) ([]byte, bool) {
	group, n := dir, 0
	if at := strings.LastIndexByte(dir, '/'); s.groups[dir] == nil && at >= 0 {
		if i, err := strconv.Atoi(dir[at+1:]); err == nil && i >= 2 && strconv.Itoa(i) == dir[at+1:] {
			group, n = dir[:at], i-1
		}
	}
	in := s.groups[group]
	if !s.has(group) || n*perPage >= len(in) {
		return nil, false
	}
	d := s.doc(chunk(group, n), s.titleOf(group))
	part := slices.Clone(in[max(0, len(in)-(n+1)*perPage) : len(in)-n*perPage])
	slices.Reverse(part)
	data := struct {
		What, Rows, Later, Earlier *html.Body
		Pages                      bool
		Here, All                  int
	}{What: d.what(group), Rows: d.rows(part), Pages: len(in) > perPage, Here: len(part), All: len(in)}
	if n > 0 {
		data.Later = d.to(chunk(group, n-1), "later ones")
	}
	if (n+1)*perPage < len(in) {
		data.Earlier = d.to(chunk(group, n+1), "earlier ones")
	}
	return d.bytes("group", data), true
}

func (s *Site) titleOf(group string) string {
	kind, name, _ := strings.Cut(group, "/")
	switch kind {
	case "person":
		return "What " + nameOf(s.people[group].Actor) + " proposed and decided"
	case "path":
		name = s.paths[group]
	}
	for _, st := range append(standings[:], own) {
		if st.group() == group {
			return st.title
		}
	}
	return map[string]string{"month": "Changes of ", "patch": "Patch ", "commit": "Commit ", "pull": "Pull request #", "path": "Changes to "}[kind] + name
}

// what says what the transactions of a group have in common, nothing of those that stand alike.
func (d *doc) what(group string) *html.Body {
	kind, name, _ := strings.Cut(group, "/")
	if !templates().Has("what " + kind) {
		return nil
	}
	data := struct {
		Name, Forge, Repositories, Path string
		Person                          *person
	}{Name: name, Path: d.paths[group], Person: d.people[group]}
	switch kind {
	case "commit":
		if d.o.Links.Web != "" {
			data.Forge = d.o.Links.Web + "/commit/" + name
		}
	case "pull":
		if n, err := strconv.Atoi(name); err == nil {
			data.Forge = d.o.Links.Pull(n)
		}
		var names []string
		for _, i := range d.groups[group] {
			if r := d.all[i].Repository; r != nil && !slices.Contains(names, escape.ShortenTo(r.Name, 100)) {
				names = append(names, escape.ShortenTo(r.Name, 100))
			}
		}
		if len(names) > 1 {
			data.Repositories = strings.Join(names, ", ")
		}
	}
	return d.fill("what "+kind, data)
}

//go:embed pages.html
var files embed.FS

var templates = html.Templates(files, template.Funcs{"short": func(id string) string { return escape.ShortenTo(id, 12) }})

// A doc is a page of lists in the making.
type doc struct {
	*Site
	address, title, root string
}

// doc begins a page.
func (s *Site) doc(address, title string) *doc {
	return &doc{Site: s, address: address, title: title, root: strings.Repeat("../", strings.Count(address, "/"))}
}

func (d *doc) fill(of string, data any) *html.Body {
	return html.Fill(templates, of, data, template.Funcs{
		"to": d.to, "person": d.person, "findings": html.Findings, "found": func() []history.Finding { return d.o.Found },
	})
}

// bytes are the whole page, with a template below its title. Only the overview says which commit of the ledger it was made of:
// the others stay as they are when that grows.
func (d *doc) bytes(of string, data any) []byte {
	footer := "These pages decide nothing. They were made of the ledger"
	if d.address == overviewAddress {
		footer += " " + d.o.Ref + " as it is in commit " + d.o.Tip
	}
	title := d.title
	if d.address != overviewAddress {
		title += " · " + d.o.Name
	}
	return html.Layout(html.Head{
		Title: title, Root: d.root, Here: d.address, Nav: d.o.Nav, Scripts: Scripts(d.address), Footer: footer + ".",
	}, d.fill("head", d.title).Add(d.fill(of, data)))
}

// to is text that leads to another page.
func (d *doc) to(address, text string) *html.Body { return html.To(d.root+address, text) }

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

// Columns of tables of transactions, of which rows has the most usual.
type columns struct{ change, state, needs, proposer, deciders column[int] }

func (d *doc) columns() columns {
	return columns{
		change: column[int]{head: "Change", cell: d.change},
		state: column[int]{head: "State", cell: func(i int) any {
			return html.Part("<span class=\"{}\">{}</span>", d.all[i].Class(), string(d.all[i].State))
		}},
		needs: column[int]{head: "Waits for", label: "of", cell: func(i int) any { return some(d.all[i].Needs) }},
		proposer: column[int]{head: "Proposed by", label: "by", cell: func(i int) any {
			if d.all[i].Proposer == (ledger.Actor{}) {
				return nil
			}
			return d.person(d.all[i].Proposer)
		}},
		deciders: column[int]{head: "Decided by", label: "decided by", cell: func(i int) any { // whose decision counted
			t := &d.all[i]
			if len(t.Approvers)+len(t.Deniers) == 0 {
				return nil
			}
			return html.Fill(templates, "people", t, template.Funcs{"person": d.person, "own": func(a ledger.Actor) bool { return isOwn(t, a) }})
		}},
	}
}

// times is a column of moments in UTC, to the minute.
func (d *doc) times(head string, of func(*html.Summary) string) column[int] {
	return column[int]{head: head + " (UTC)", label: strings.ToLower(head), cell: func(i int) any {
		return html.When(escape.ShortenTo(of(&d.all[i]), 40))
	}}
}

func (d *doc) rows(in []int) *html.Body {
	c := d.columns()
	return table(d, in, c.change, c.state, c.needs, c.proposer, c.deciders, d.times("Proposed", func(t *html.Summary) string { return t.Proposed }))
}

// some is a value, nil if it is a zero one.
func some[T comparable](value T) any {
	if value == *new(T) {
		return nil
	}
	return value
}

// numbers is a column in which 0 is left out.
func numbers[T any](head string, of func(T) int) column[T] {
	return column[T]{head: head, label: strings.ToLower(head), number: true, cell: func(one T) any { return some(of(one)) }}
}

// change is a transaction by its summary.
func (d *doc) change(i int) any {
	return d.to(Transaction(d.all[i].ID), cmp.Or(escape.ShortenTo(d.all[i].Summary, 100), d.all[i].ID))
}

// nameOf is what a person is called.
func nameOf(a ledger.Actor) string {
	return cmp.Or(escape.ShortenTo(a.Login, 60), escape.ShortenTo(a.ID, 60), "somebody")
}

func (d *doc) person(a ledger.Actor) *html.Body {
	return html.Named(d.to(Person(a), nameOf(a)), escape.ShortenTo(a.Kind, 20))
}

// isOwn reports whether somebody approved what they proposed themselves.
func isOwn(t *html.Summary, a ledger.Actor) bool {
	return a.Kind == t.Proposer.Kind && a.ID == t.Proposer.ID || t.Own && len(t.Approvers) == 1
}
