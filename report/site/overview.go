package site

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
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
	case t.State == plain.Denied:
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
	mostWaiting = 100
	latest      = 20
	most        = 15
	longest     = 500
)

func (s *Site) overview() []byte {
	d := s.doc(overviewAddress, "Changes to "+s.o.Name+", and who approved them")
	c := d.columns()
	broken, waiting, who := s.groups[standings[broken].group()], s.groups[standings[waiting].group()], s.peopleBy()
	data := struct {
		Tip                                                            string
		Unsound, Differ                                                int
		Untold                                                         bool
		Open                                                           int
		Tally                                                          []tally
		Broken, Waiting, Older, Review, Decided, People, Others, Chart *html.Body
	}{Untold: s.o.Untold, Tip: s.o.Tip, Unsound: len(broken), Differ: s.o.Differ, Tally: d.tally(), Decided: d.decided(), Chart: chart(s.monthCounts())}
	if len(broken) > 0 {
		data.Broken = d.rows(broken[:min(len(broken), mostWaiting)])
	}
	if len(waiting) > mostWaiting {
		data.Older = d.to(standings[0].group()+page, fmt.Sprintf("all %d", len(waiting)))
	}
	waiting = slices.SortedStableFunc(slices.Values(waiting), func(a, b int) int { return d.turn(a).Compare(d.turn(b), d.o.Now) })
	data.Waiting = table(d, waiting[:min(len(waiting), mostWaiting)], c.change, c.state, c.needs, c.proposer, column[int]{
		head: "For", label: "for", number: true, cell: func(i int) any {
			if turn := d.turn(i); turn.Overdue(d.o.Now) {
				return html.Part("<span class=\"bad\">{}</span>", d.since(d.all[i].Proposed)+", overdue since "+turn.Due.Format(time.DateOnly))
			}
			return d.since(d.all[i].Proposed)
		},
	})
	if open, _ := explain.Unreviewed(s.o.Exceptions); len(open) > 0 {
		data.Open, data.Review = len(open), d.review(open[:min(len(open), mostWaiting)])
	}
	data.People = d.peopleTable(who[:min(len(who), most)])
	if len(who) > most {
		data.Others = d.to(peopleAddress, fmt.Sprintf("All %d people", len(who)))
	}
	return d.bytes("overview", data)
}

// turn is a transaction's turn to be looked at.
func (s *Site) turn(i int) lookup.Turn {
	return lookup.NewTurn(s.all[i].Proposed, s.o.Due, s.all[i].Rank, s.all[i].Proposer.Login)
}

// A tally counts the transactions that stand alike, and leads to the list of them.
type tally struct {
	Class string
	N     int
	Words *html.Body
}

func (d *doc) tally() (out []tally) {
	for _, st := range append(standings[:], own) {
		in := d.groups[st.group()]
		switch {
		case len(in) == 0 && st != standings[broken]:
			out = append(out, tally{"over", 0, html.Part("{}", st.words)})
		case len(in) > 0:
			words := st.words
			if since := d.since(d.all[in[0]].Proposed); st == standings[waiting] && since != "" {
				words += ", the oldest for " + since
			}
			out = append(out, tally{st.class, len(in), d.to(st.group()+page, words)})
		}
	}
	switch open, overdue := explain.Unreviewed(d.o.Exceptions); {
	case overdue > 0:
		out = append(out, tally{"bad", overdue, html.Part(`<a href="#review">overdue for review</a>`)})
	case len(open) > 0:
		out = append(out, tally{"waits", len(open), html.Part(`<a href="#review">due for review</a>`)})
	}
	return out
}

// review is a table of exceptions, without what commits say of themselves, which is not in the ledger.
func (d *doc) review(open []explain.Exception) *html.Body {
	return table(d, open,
		column[explain.Exception]{head: "Commit", cell: func(e explain.Exception) any {
			return html.To(d.o.Links.Page(0, forge.Posted{}, e.Commit), e.Commit[:min(len(e.Commit), 12)])
		}},
		column[explain.Exception]{head: "Why", cell: func(e explain.Exception) any { return html.Code(strings.Join(e.Codes, " ")) }},
		column[explain.Exception]{head: "Review due by", label: "due by", cell: func(e explain.Exception) any {
			if due := e.DueBy[:min(len(e.DueBy), 10)]; e.State == explain.Overdue {
				return html.Part(`<span class="bad">{}, overdue</span>`, due)
			} else {
				return due
			}
		}})
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
func (d *doc) decided() *html.Body {
	var in []int
	for i, t := range d.all {
		if t.Sound() && t.Decided != "" {
			in = append(in, i)
		}
	}
	slices.SortFunc(in, func(a, b int) int { return cmp.Or(strings.Compare(d.all[b].Decided, d.all[a].Decided), b-a) })
	c := d.columns()
	return table(d, in[:min(len(in), latest)], c.change, c.state, c.proposer, c.deciders, d.times("Decided", func(t *html.Summary) string { return t.Decided }))
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

func (s *Site) allMonths() []byte {
	d := s.doc(monthsAddress, "All changes")
	var in []int
	for i := len(s.all) - 1; i >= 0 && len(in) < newest; i-- {
		in = append(in, i)
	}
	columns := []column[monthCount]{
		{head: "Month", cell: func(m monthCount) any { return d.to("month/"+m.name+page, m.name) }}, numbers("Changes", monthCount.sum),
	}
	for o, st := range standings {
		columns = append(columns, numbers(view.Upper(st.words), func(m monthCount) int { return m.counts[o] }))
	}
	months := s.monthCounts()
	slices.Reverse(months)
	return d.bytes("months", struct {
		Some           bool
		N              int
		Newest, Months *html.Body
	}{len(s.all) > newest, len(s.all), d.rows(in), table(d, months, columns...)})
}

// peopleBy are the people who took part, those who did most first.
func (s *Site) peopleBy() []*person {
	who := slices.Collect(maps.Values(s.people))
	slices.SortFunc(who, func(a, b *person) int {
		return cmp.Or(b.sum()-a.sum(), strings.Compare(a.Login, b.Login), strings.Compare(Person(a.Actor), Person(b.Actor)))
	})
	return slices.DeleteFunc(who, func(p *person) bool { return p.sum() == 0 })
}

func (d *doc) peopleTable(who []*person) *html.Body {
	return table(d, who,
		column[*person]{head: "Who", cell: func(p *person) any { return d.person(p.Actor) }},
		column[*person]{head: "Account", cell: func(p *person) any { return html.Code(escape.ShortenTo(p.ID, 100)) }},
		numbers("Proposed", func(p *person) int { return p.Proposed }), numbers("Approved", func(p *person) int { return p.Approved }),
		numbers("Of these their own", func(p *person) int { return p.Own }), numbers("Denied", func(p *person) int { return p.Denied }))
}

func (s *Site) allPeople() []byte {
	d, who := s.doc(peopleAddress, "Who proposed and decided"), s.peopleBy()
	return d.list(len(who), "who took part most often", d.peopleTable(who[:min(len(who), longest)]))
}

func (s *Site) allPaths() []byte {
	d := s.doc(pathsAddress, "Files that changes were proposed to")
	last := func(address string) int { return s.groups[address][len(s.groups[address])-1] }
	paths := slices.SortedFunc(maps.Keys(s.paths), func(a, b string) int {
		return cmp.Or(last(b)-last(a), strings.Compare(s.paths[a], s.paths[b]))
	})
	return d.list(len(paths), "that were proposed to be changed last", table(d, paths[:min(len(paths), longest)],
		column[string]{head: "File", cell: func(address string) any {
			name := escape.ShortenTo(s.paths[address], 200)
			if !s.has(address) {
				return html.Code(name)
			}
			return html.Part("<code>{}</code>", d.to(address+page, name))
		}},
		numbers("Changes", func(address string) int { return len(s.groups[address]) }),
		column[string]{head: "The last", label: "the last:", cell: func(address string) any { return d.change(last(address)) }}))
}

// list is a page of a table that may not have all.
func (d *doc) list(n int, which string, table *html.Body) []byte {
	return d.bytes("longest", struct {
		Some  bool
		N     int
		Which string
		Table *html.Body
	}{n > longest, n, which, table})
}
