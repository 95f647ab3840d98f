package site

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/markdown"
	"github.com/countersign-dev/countersign/report/html"
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
	d.what(group)
	part := slices.Clone(in[max(0, len(in)-(n+1)*perPage) : len(in)-n*perPage])
	slices.Reverse(part)
	d.rows(part)
	if len(in) > perPage {
		d.Put("<p>{} of {} transactions", len(part), len(in))
		d.PutIf(n > 0, " · {}", d.to(chunk(group, n-1), "later ones"))
		d.PutIf((n+1)*perPage < len(in), " · {}", d.to(chunk(group, n+1), "earlier ones"))
		d.Markup("</p>\n")
	}
	return d.bytes(), true
}

func (s *Site) titleOf(group string) string {
	kind, name, _ := strings.Cut(group, "/")
	switch kind {
	case "month":
		return "Changes of " + name
	case "patch":
		return "Patch " + name
	case "commit":
		return "Commit " + name
	case "pull":
		return "Pull request #" + name
	case "person":
		p := s.people[group]
		return "What " + nameOf(p.Actor) + " proposed and decided"
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
		d.PutIf(d.o.Links.Web != "", " {}.", html.To(d.o.Links.Web+"/commit/"+name, "The commit on the forge"))
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
