package site

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/state"
	"github.com/countersign-dev/countersign/report/html"
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
		d.paragraph(func() { d.Text("The findings are on these pages, and nothing there counts as approved.") })
		d.rows(in[:min(len(in), oldestWaiting)])
	}
	d.waiting(s.groups[standings[waiting].group()])
	d.decided()
	d.head("People")
	who := s.peopleBy()
	d.people(who[:min(len(who), most)])
	if len(who) > most {
		d.paragraph(func() { d.to(peopleAddress, fmt.Sprintf("All %d people", len(who))) })
	}
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
		d.Markup("<p class=\"bad\"><strong>").Text(ledger.Plural(unsound, "record does", "records do") + " not verify.").Markup("</strong></p>\n")
	default:
		d.paragraph(func() {
			d.Text("The whole history was audited up to commit ").Markup("<code").Attribute("title", d.o.Tip).Markup(">").Text(short(d.o.Tip, 12)).Markup("</code>").Text(", and it verifies.")
		})
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
		d.Markup("<li").Attribute("class", class).Markup("><strong>").Textf("%d", len(in)).Markup("</strong> ")
		if len(in) == 0 {
			d.Text(words)
		} else {
			d.to(st.group()+page, words)
		}
		d.Markup("</li>\n")
	}
	d.Markup("</ul>\n")
}

// waiting is what waits, the longest first.
func (d *doc) waiting(in []int) {
	d.head(standings[waiting].title)
	if len(in) == 0 {
		d.paragraph(func() { d.Text("Nothing.") })
		return
	}
	if len(in) > oldestWaiting {
		d.paragraph(func() {
			d.Textf("The oldest %d; ", oldestWaiting)
			d.to(standings[waiting].group()+page, fmt.Sprintf("all %d", len(in)))
			d.Text(".")
		})
		in = in[:oldestWaiting]
	}
	d.table(in, d.changes(), d.states(), d.needs(), d.proposers(), column{
		head: "For", label: "for", number: true, write: func(i int) { d.Text(d.since(d.all[i].Proposed)) },
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
	if len(in) == 0 {
		d.paragraph(func() { d.Text("Nothing.") })
		return
	}
	d.table(in[:min(len(in), latest)], d.changes(), d.states(), d.proposers(), d.deciders(), d.times("Decided", func(i int) string { return d.all[i].Decided }))
}

// A monthCount is a month and what became of its transactions.
type monthCount struct {
	address string // without index.html
	counts
}

// name is the month as 2026-11.
func (m monthCount) name() string { return strings.TrimPrefix(m.address, "month/") }

// monthCounts are the months that have transactions, in order.
func (s *Site) monthCounts() []monthCount {
	var out []monthCount
	for _, m := range slices.SortedFunc(maps.Keys(s.months), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) {
		c := monthCount{address: m}
		for _, day := range s.months[m] {
			for o, n := range s.count(s.groups[day]) {
				c.counts[o] += n
			}
		}
		out = append(out, c)
	}
	return out
}

// countTable has a row of numbers for each month or day, the newest first.
func (d *doc) countTable(of string, all []monthCount) {
	columns := []column{
		{head: of, write: func(i int) { d.to(all[i].address+page, strings.Replace(all[i].name(), "/", "-", 1)) }},
		d.numbers("Changes", func(i int) int { return all[i].sum() }),
	}
	for o, st := range standings {
		columns = append(columns, d.numbers(upper(st.words), func(i int) int { return all[i].counts[o] }))
	}
	d.table(down(len(all)), columns...)
}

// down are the numbers below n, the last one first.
func down(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = n - 1 - i
	}
	return out
}

func (s *Site) allMonths() []byte {
	d := s.doc(monthsAddress, "All changes")
	in := down(len(s.all))
	if len(in) > newest {
		in = in[:newest]
		d.paragraph(func() {
			d.Textf("The newest %d of %d. The ", newest, len(s.all))
			d.Markup("<a href=\"#months\">").Text("months").Markup("</a>")
			d.Text(" below have all of them.")
		})
	}
	d.rows(in)
	d.Markup("<h2 id=\"months\">By month</h2>\n")
	d.countTable("Month", s.monthCounts())
	return d.bytes()
}

// month is a month's days.
func (s *Site) month(dir string) []byte {
	d := s.doc(dir+page, "Changes of "+strings.TrimPrefix(dir, "month/"))
	var days []monthCount
	for _, day := range s.months[dir] {
		days = append(days, monthCount{day, s.count(s.groups[day])})
	}
	d.countTable("Day", days)
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
	number := func(head string, of func(person) int) column {
		return d.numbers(head, func(i int) int { return of(d.Site.people[who[i]]) })
	}
	rows := down(len(who))
	slices.Reverse(rows)
	d.table(rows,
		column{head: "Who", write: func(i int) { d.person(d.Site.people[who[i]].Actor) }},
		column{head: "Account", write: func(i int) { d.Code(short(d.Site.people[who[i]].ID, 100)) }},
		number("Proposed", func(p person) int { return p.proposed }),
		number("Approved", func(p person) int { return p.approved }),
		number("Of these their own", func(p person) int { return p.own }),
		number("Denied", func(p person) int { return p.denied }))
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
	rows := down(min(len(paths), longest))
	slices.Reverse(rows)
	d.table(rows,
		column{head: "File", write: func(i int) {
			d.Markup("<code>")
			if name := short(s.paths[paths[i]], 200); s.has(paths[i]) {
				d.to(paths[i]+page, name)
			} else {
				d.Text(name)
			}
			d.Markup("</code>")
		}},
		d.numbers("Changes", func(i int) int { return len(s.groups[paths[i]]) }),
		column{head: "The last", label: "the last:", write: func(i int) { d.change(last(paths[i])) }})
	return d.bytes()
}

// cut says that a list has not all, and where the others are found.
func (d *doc) cut(n int, which string) {
	if n > longest {
		d.paragraph(func() {
			d.Textf("The %d of %d %s. ", longest, n, which)
			d.to(searchAddress, "Search")
			d.Text(" finds the transactions of the others.")
		})
	}
}
