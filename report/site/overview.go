package site

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/markdown"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/state"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/view"
)

// An outcome is what became of a transaction, as the overview counts them.
type outcome int

const (
	waiting outcome = iota
	applied
	denied
	over
	broken
	outcomes
)

// A standing is what transactions have in common that stand alike: an outcome, or that their own
// proposers approved them.
type standing struct{ name, words, title, class string }

var standings = [outcomes]standing{
	{"waiting", "waiting", "What waits", "waits"},
	{"applied", "applied or merged", "What was applied or merged", "good"},
	{"denied", "denied", "What was denied", "bad"},
	{"ended", "superseded, closed or failed", "What was superseded, closed or failed", "over"},
	{"unsound", "not verified", "What does not verify", "bad"},
}

var own = standing{"own", "approved by their own proposer", "What its own proposer approved", "waits"}

// group is the address of the list of the transactions that stand so.
func (s standing) group() string { return "state/" + s.name }

func outcomeOf(t *html.Summary) outcome {
	switch {
	case !t.Sound():
		return broken
	case t.Status == ledger.Completed || t.Status == ledger.Applied:
		return applied
	case t.State == state.Denied:
		return denied
	case !t.Closed && (t.Waits || t.Status == ledger.Created || t.Status == ledger.InProgress):
		return waiting
	}
	return over
}

// counts are numbers of transactions by outcome.
type counts [outcomes]int

func (c counts) sum() int {
	n := 0
	for _, one := range c {
		n += one
	}
	return n
}

func (s *Site) count(in []int) (c counts) {
	for _, i := range in {
		c[outcomeOf(&s.all[i])]++
	}
	return c
}

// How many rows the tables of the overview and of people and paths have.
const (
	oldestWaiting = 100
	latest        = 20
	most          = 15
	longest       = 500
)

func (s *Site) overview() []byte {
	d := s.doc(overviewAddress, "Changes to "+s.o.Name+", and who approved them")
	d.audited()
	d.cards()
	if in := s.groups[standings[broken].group()]; len(in) > 0 {
		d.head(standings[broken].title)
		d.Markup("<p>The findings are on these pages, and nothing there counts as approved.</p>\n")
		d.rows(in[:min(len(in), oldestWaiting)])
	}
	d.waiting(s.groups[standings[waiting].group()])
	d.decided()
	d.head("People")
	who := s.peopleBy()
	d.people(who[:min(len(who), most)])
	d.PutIf(len(who) > most, "<p>{}</p>\n", d.to(peopleAddress, fmt.Sprintf("All %d people", len(who))))
	d.head("By month")
	d.chart(s.monthCounts())
	return d.bytes()
}

// audited says whether the history was checked.
func (d *doc) audited() {
	unsound := len(d.groups[standings[broken].group()])
	switch {
	case len(d.o.Found) > 0: // stands on top
	case unsound > 0:
		d.Put("<p class=\"bad\"><strong>{} not verify.</strong></p>\n", ledger.Plural(unsound, "record does", "records do"))
	default:
		d.Put("<p>The whole history was audited up to commit <code title=\"{}\">{}</code>, and it verifies.</p>\n", d.o.Tip, markdown.ShortenTo(d.o.Tip, 12))
	}
	if d.o.Differ > 0 {
		d.Markup("<p class=\"bad\"><strong>Pages in the ledger itself (README.md) differ from the record:</strong> ").Text(ledger.Plural(d.o.Differ, "finding", "findings") + ", which countersign audit lists. These pages here are made of the record.").Markup("</p>\n")
	}
}

// cards count the transactions by how they stand. Each leads to the list of those that it counts.
func (d *doc) cards() {
	d.Markup("<ul class=\"tally\">\n")
	for _, st := range append(standings[:], own) {
		in := d.groups[st.group()]
		if len(in) == 0 && st == standings[broken] {
			continue
		}
		words := st.words
		if st == standings[waiting] && len(in) > 0 && d.since(d.all[in[0]].Proposed) != "" {
			words += ", the oldest for " + d.since(d.all[in[0]].Proposed)
		}
		class := st.class
		if len(in) == 0 {
			class = "over"
		}
		d.Put("<li class=\"{}\"><strong>{}</strong> {}</li>\n", class, len(in), d.maybe(len(in) > 0, st.group()+page, words))
	}
	d.Markup("</ul>\n")
}

// waiting is what waits, the longest first.
func (d *doc) waiting(in []int) {
	d.head(standings[waiting].title)
	if len(in) > oldestWaiting {
		d.Put("<p>The oldest {}; {}.</p>\n", oldestWaiting, d.to(standings[waiting].group()+page, fmt.Sprintf("all %d", len(in))))
		in = in[:oldestWaiting]
	}
	d.table(in, d.changes(), d.states(), d.needs(), d.proposers(), column{
		head: "For", label: "for", number: true, cell: func(i int) any { return d.since(d.all[i].Proposed) },
	})
}

// since is how long ago a moment is.
func (d *doc) since(at string) string {
	parsed, err := time.Parse(time.RFC3339, at)
	switch days := int(d.o.Now.Sub(parsed).Hours() / 24); {
	case err != nil || d.o.Now.Before(parsed):
		return ""
	case days > 0:
		return ledger.Plural(days, "day", "days")
	}
	return "less than a day"
}

// decided is what was decided last.
func (d *doc) decided() {
	var in []int
	for i := range d.all {
		if t := &d.all[i]; t.Sound() && t.Decided != "" {
			in = append(in, i)
		}
	}
	slices.SortFunc(in, func(a, b int) int { return cmp.Or(strings.Compare(d.all[b].Decided, d.all[a].Decided), b-a) })
	d.head("Decided last")
	d.table(in[:min(len(in), latest)], d.changes(), d.states(), d.proposers(), d.deciders(), d.times("Decided", func(t *html.Summary) string { return t.Decided }))
}

// A monthCount is a month, such as 2026-11, and what became of its transactions.
type monthCount struct {
	name string
	counts
}

// monthCounts are the months that have transactions, in order.
func (s *Site) monthCounts() (out []monthCount) {
	for group, in := range s.groups {
		if name, is := strings.CutPrefix(group, "month/"); is {
			out = append(out, monthCount{name, s.count(in)})
		}
	}
	slices.SortFunc(out, func(a, b monthCount) int { return cmp.Or(len(a.name)-len(b.name), strings.Compare(a.name, b.name)) })
	return out
}

// up are the numbers below n, and down are those with the last one first.
func up(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func down(n int) []int {
	out := up(n)
	slices.Reverse(out)
	return out
}

func (s *Site) allMonths() []byte {
	d := s.doc(monthsAddress, "All changes")
	in := down(len(s.all))
	if len(in) > newest {
		in = in[:newest]
		d.Put("<p>The newest {} of {}. The <a href=\"#months\">months</a> below have all of them.</p>\n", newest, len(s.all))
	}
	d.rows(in)
	d.Markup("<h2 id=\"months\">By month</h2>\n")
	all := s.monthCounts()
	columns := []column{
		{head: "Month", cell: func(i int) any { return d.to("month/"+all[i].name+page, all[i].name) }},
		d.numbers("Changes", func(i int) int { return all[i].sum() }),
	}
	for o, st := range standings {
		columns = append(columns, d.numbers(view.Upper(st.words), func(i int) int { return all[i].counts[o] }))
	}
	d.table(down(len(all)), columns...)
	return d.bytes()
}

// peopleBy are the people who took part, those who did most first.
func (s *Site) peopleBy() []string {
	sum := func(address string) int { p := s.people[address]; return p.proposed + p.approved + p.denied }
	who := slices.SortedFunc(maps.Keys(s.people), func(a, b string) int {
		return cmp.Or(sum(b)-sum(a), strings.Compare(s.people[a].Login, s.people[b].Login), strings.Compare(a, b))
	})
	return slices.DeleteFunc(who, func(address string) bool { return sum(address) == 0 })
}

// people are a table of people, by their addresses.
func (d *doc) people(who []string) {
	number := func(head string, of func(*person) int) column {
		return d.numbers(head, func(i int) int { return of(d.Site.people[who[i]]) })
	}
	d.table(up(len(who)),
		column{head: "Who", cell: func(i int) any { return d.person(d.Site.people[who[i]].Actor) }},
		column{head: "Account", cell: func(i int) any { return html.Code(markdown.ShortenTo(d.Site.people[who[i]].ID, 100)) }},
		number("Proposed", func(p *person) int { return p.proposed }),
		number("Approved", func(p *person) int { return p.approved }),
		number("Of these their own", func(p *person) int { return p.own }),
		number("Denied", func(p *person) int { return p.denied }))
}

func (s *Site) allPeople() []byte {
	d := s.doc(peopleAddress, "Who proposed and decided")
	who := s.peopleBy()
	d.cut(len(who), "who took part most often")
	d.people(who[:min(len(who), longest)])
	return d.bytes()
}

func (s *Site) allPaths() []byte {
	d := s.doc(pathsAddress, "Files that changes were proposed to")
	last := func(address string) int { return s.groups[address][len(s.groups[address])-1] }
	paths := slices.SortedFunc(maps.Keys(s.paths), func(a, b string) int {
		return cmp.Or(last(b)-last(a), strings.Compare(s.paths[a], s.paths[b]))
	})
	d.cut(len(paths), "that were proposed to be changed last")
	d.table(up(min(len(paths), longest)),
		column{head: "File", cell: func(i int) any {
			return html.Part("<code>{}</code>", d.maybe(s.has(paths[i]), paths[i]+page, markdown.ShortenTo(s.paths[paths[i]], 200)))
		}},
		d.numbers("Changes", func(i int) int { return len(s.groups[paths[i]]) }),
		column{head: "The last", label: "the last:", cell: func(i int) any { return d.change(last(paths[i])) }})
	return d.bytes()
}

// cut says that a list has not all, and where the others are found.
func (d *doc) cut(n int, which string) {
	d.PutIf(n > longest, "<p>The {} of {} {}. {} finds the transactions of the others.</p>\n", longest, n, which, d.to(searchAddress, "Search"))
}
