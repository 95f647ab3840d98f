package site

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/markdown"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/html"
)

// How many rows a page has: of a group's newest, and of each page of a month or day.
const (
	newest  = 200
	perPage = 500
)

// monthOf is the month that a transaction is listed in, such as 2026-11.
func monthOf(id string) string {
	day := strings.Split(ledger.Dir(id), "/")
	return day[1] + "-" + day[2]
}

// A group of more than newest transactions has pages for each of its months. They are addressed
// as those of a day are: the first page of DIR is DIR/index.html, the second DIR/2/index.html.

// pagesOf are the addresses of a group's pages.
func (s *Site) pagesOf(group string) []string {
	if !s.has(group) {
		return nil
	}
	if strings.HasPrefix(group, "month/") {
		return chunks(group, len(s.groups[group]))
	}
	out := []string{group + page}
	for _, m := range s.split[group] {
		out = append(out, chunks(group+"/"+m.name, len(m.in))...)
	}
	return out
}

// chunks are the addresses of the pages that so many rows take.
func chunks(dir string, rows int) []string {
	var out []string
	for n := 0; n*perPage < rows; n++ {
		out = append(out, chunk(dir, n))
	}
	return out
}

func chunk(dir string, n int) string {
	if n == 0 {
		return dir + page
	}
	return dir + "/" + strconv.Itoa(n+1) + page
}

// A month of a group, with the transactions in it.
type month struct {
	name string
	in   []int
}

// monthsOf are the months of a group that has pages for them.
func (s *Site) monthsOf(group string) (out []month) {
	in := s.groups[group]
	if len(in) <= newest {
		return nil
	}
	from := 0
	for at, i := range in {
		if name := s.monthOf[i]; len(out) == 0 || out[len(out)-1].name != name {
			out, from = append(out, month{name: name}), at
		}
		out[len(out)-1].in = in[from : at+1]
	}
	return out
}

// groupPage makes a page of a group: its own, or one of a month or day of it.
func (s *Site) groupPage(dir string) ([]byte, bool) {
	n := 0
	if _, known := s.groups[dir]; !known {
		at := strings.LastIndexByte(dir, '/')
		if at < 0 {
			return nil, false
		}
		if i, err := strconv.Atoi(dir[at+1:]); err == nil && i >= 2 && strconv.Itoa(i) == dir[at+1:] {
			dir, n = dir[:at], i-1
		}
	}
	if in := s.groups[dir]; s.has(dir) {
		if strings.HasPrefix(dir, "month/") {
			return s.listPage(dir, "Changes of "+strings.Replace(dir[len("month/"):], "/", "-", 1), in, n)
		}
		return s.groupTop(dir), n == 0
	}
	at := strings.LastIndexByte(dir, '/')
	if at < 0 {
		return nil, false
	}
	for _, m := range s.split[dir[:at]] {
		if m.name == dir[at+1:] {
			return s.listPage(dir, "Changes of "+m.name, m.in, n)
		}
	}
	return nil, false
}

// listPage is the nth page of a month or day.
func (s *Site) listPage(dir, title string, in []int, n int) ([]byte, bool) {
	if n*perPage >= len(in) {
		return nil, false
	}
	d := s.doc(chunk(dir, n), title)
	group := dir[:strings.LastIndexByte(dir, '/')]
	if strings.HasPrefix(dir, "month/") {
		d.Put("<p>{}</p>\n", d.to(group+page, "The whole month"))
	} else {
		d.Put("<p>{}</p>\n", d.to(group+page, d.titleOf(group)))
	}
	part := in[n*perPage : min(len(in), (n+1)*perPage)]
	d.rows(part)
	if pages := (len(in) + perPage - 1) / perPage; pages > 1 {
		d.Put("<p>Page {}", n+1)
		if n > 0 {
			d.Put(" · {}", d.to(chunk(dir, n-1), "earlier ones"))
		}
		if n+1 < pages {
			d.Put(" · {}", d.to(chunk(dir, n+1), "later ones"))
		}
		d.Markup("</p>\n")
	}
	return d.bytes(), true
}

// groupTop is the first page of what transactions have in common.
func (s *Site) groupTop(group string) []byte {
	in := s.groups[group]
	d := s.doc(group+page, s.titleOf(group))
	d.what(group)
	recent := slices.Clone(in[max(0, len(in)-newest):])
	slices.Reverse(recent)
	if len(recent) < len(in) {
		d.Put("<p>The newest {} of {} transactions; below are all of them, by month.</p>\n", len(recent), len(in))
	}
	d.rows(recent)
	if months := s.split[group]; len(months) > 0 {
		d.head("All of them, by month")
		d.table(down(len(months)), column{head: "Month", cell: func(i int) any { return d.to(group+"/"+months[i].name+page, months[i].name) }},
			d.numbers("Changes", func(i int) int { return len(months[i].in) }))
	}
	return d.bytes()
}

func (s *Site) titleOf(group string) string {
	kind, name, _ := strings.Cut(group, "/")
	switch kind {
	case "patch":
		return "Patch " + name
	case "commit":
		return "Commit " + name
	case "pull":
		return "Pull request #" + name
	case "person":
		p := s.people[group]
		return "What " + cmp.Or(markdown.ShortenTo(p.Login, 60), markdown.ShortenTo(p.ID, 60), "somebody") + " proposed and decided"
	}
	for _, st := range append(standings[:], own) {
		if st.group() == group {
			return st.title
		}
	}
	return "Changes to " + s.paths[group]
}

// what says what the transactions of a group have in common.
func (d *doc) what(group string) {
	kind, name, _ := strings.Cut(group, "/")
	switch kind {
	case "patch":
		d.Put("<p>These transactions propose exactly the bytes whose SHA-256 is {}.</p>\n", html.Code(name))
	case "commit":
		d.Markup("<p>These transactions became this commit, or are of a pull request that ended with it.")
		if d.o.Links.Web != "" {
			d.Put(" {}.", html.To(d.o.Links.Web+"/commit/"+name, "The commit on the forge"))
		}
		d.Markup("</p>\n")
	case "pull":
		d.Markup("<p>The transactions of this pull request")
		if names := d.repositories(group); len(names) > 1 {
			d.Put(", which several repositories have: {}", strings.Join(names, ", "))
		}
		d.Markup(".")
		if n, err := strconv.Atoi(name); err == nil && d.o.Links.Pull(n) != "" {
			d.Put(" {}.", html.To(d.o.Links.Pull(n), "It on the forge"))
		}
		d.Markup("</p>\n")
	case "person":
		p := d.Site.people[group]
		d.Put("<p>Account {} {}, id {}: proposed {}, approved {}, of these their own {}, denied {}.</p>\n", p.Kind, html.Code(p.Login), html.Code(p.ID), p.proposed, p.approved, p.own, p.denied)
	case "path":
		d.Put("<p>The transactions that propose to change {}.</p>\n", html.Code(d.paths[group]))
	}
}

// repositories are those that a pull request's transactions name.
func (d *doc) repositories(group string) []string {
	var names []string
	for _, i := range d.groups[group] {
		if r := d.all[i].Repository; r != nil && !slices.Contains(names, markdown.ShortenTo(r.Name, 100)) {
			names = append(names, markdown.ShortenTo(r.Name, 100))
		}
	}
	return names
}

// A doc is a page of lists in the making.
type doc struct {
	*Site
	html.Body
	address, title, root string
}

// doc begins a page.
func (s *Site) doc(address, title string) *doc {
	d := &doc{Site: s, address: address, title: title, root: strings.Repeat("../", strings.Count(address, "/"))}
	d.Put("<h1>{}</h1>\n", title)
	if len(s.o.Found) > 0 {
		d.Add(html.Findings("This ledger does not verify", "Nothing in it counts as approved.", s.o.Found))
	}
	return d
}

// bytes are the whole page. Only the overview says which commit of the ledger it was made of:
// the others stay as they are when that grows.
func (d *doc) bytes() []byte {
	var out bytes.Buffer
	footer := "These pages decide nothing. They were made of the ledger"
	if d.address == overviewAddress {
		footer += " " + d.o.Ref + " as it is in commit " + d.o.Tip
	}
	title := d.title
	if d.address != overviewAddress {
		title += " · " + d.o.Name
	}
	_ = html.Layout(&out, html.Head{
		Title: title, Root: d.root, Here: d.address, Nav: d.o.Nav, Scripts: Scripts(d.address), Footer: footer + ".",
	}, &d.Body) // a Buffer takes everything
	return out.Bytes()
}

func (d *doc) head(text string) { d.Put("<h2>{}</h2>\n", text) }

// to is text that leads to another page, and maybe does only if there is one.
func (d *doc) to(address, text string) *html.Body { return html.To(d.root+address, text) }

func (d *doc) maybe(is bool, address, text string) *html.Body {
	if !is {
		return html.Part("{}", text)
	}
	return d.to(address, text)
}
