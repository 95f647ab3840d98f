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
	applied outcome = iota
	waiting
	denied
	over
	broken
	outcomes
)

// outcomeWords name the outcomes, in the order in which they are drawn.
var outcomeWords = [outcomes]string{"applied or merged", "waiting", "denied", "superseded, closed or failed", "not verified"}

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
	d := s.doc(overviewAddress, "What was proposed, and who approved it")
	var total counts
	var waits []int
	for i := range s.all {
		o := outcomeOf(&s.all[i])
		total[o]++
		if o == waiting {
			waits = append(waits, i)
		}
	}
	d.paragraph(func() {
		d.Text(ledger.Plural(len(s.all), "transaction", "transactions"))
		for o, n := range total {
			if n > 0 {
				d.Textf(", %d %s", n, outcomeWords[o])
			}
		}
		d.Text(".")
	})
	d.audited(total[broken])
	d.waiting(waits)
	months := s.monthCounts()
	d.head("By month")
	d.chart(months)
	d.monthTable(months[max(0, len(months)-charted):])
	d.top("By proposer", "Proposed", func(p person) int { return p.proposed })
	d.top("By approver", "Approved", func(p person) int { return p.approved })
	d.decided()
	return d.bytes()
}

// audited says whether the history was checked.
func (d *doc) audited(unsound int) {
	switch {
	case len(d.o.Found) > 0: // stands on top
	case unsound > 0:
		d.paragraph(func() {
			d.Markup("<strong>").Text(ledger.Plural(unsound, "record does", "records do") + " not verify").Markup("</strong>")
			d.Text(": the findings are on the pages of these transactions, and nothing there counts as approved.")
		})
		var rows []int
		for i := range d.all {
			if !d.all[i].Sound() && len(rows) < oldestWaiting {
				rows = append(rows, i)
			}
		}
		d.rows("What does not verify", rows)
	default:
		d.paragraph(func() {
			d.Text("The whole history was audited up to commit ").Code(d.o.Tip).Text(", and it verifies. ").Code("countersign audit").Text(" does that again.")
		})
	}
}

// waiting is what waits, the longest first.
func (d *doc) waiting(in []int) {
	d.head("What waits")
	if len(in) == 0 {
		d.paragraph(func() { d.Text("Nothing.") })
		return
	}
	if len(in) > oldestWaiting {
		d.paragraph(func() {
			d.Textf("The oldest %d of %d; ", oldestWaiting, len(in))
			d.to(monthsAddress, "the months")
			d.Text(" have all of them.")
		})
		in = in[:oldestWaiting]
	}
	d.begin("What waits", "Since (UTC)", "For", "Change", "State", "By")
	for _, i := range in {
		t := &d.all[i]
		d.row(func() { d.when(t.Proposed) }, func() { d.Text(d.since(t.Proposed)) }, func() { d.change(t) }, func() { d.state(t) }, func() { d.person(t.Proposer) })
	}
	d.end()
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

func (d *doc) monthTable(months []monthCount) {
	d.begin("By month", slices.Concat([]string{"Month", "Transactions"}, outcomeWords[:])...)
	for _, m := range slices.Backward(months) {
		d.countRow(m.address+page, m.name(), m.counts)
	}
	d.end()
	if len(months) < len(d.months) {
		d.paragraph(func() { d.to(monthsAddress, "All months") })
	}
}

// countRow is a row of numbers.
func (d *doc) countRow(address, name string, c counts) {
	d.Markup("<tr><td>")
	d.to(address, name)
	d.Markup("</td>")
	for _, n := range append([]int{c.sum()}, c[:]...) {
		d.Markup("<td>").Textf("%d", n).Markup("</td>")
	}
	d.Markup("</tr>\n")
}

func (s *Site) allMonths() []byte {
	d := s.doc(monthsAddress, "Transactions by month")
	months := s.monthCounts()
	d.chart(months)
	d.monthTable(months)
	return d.bytes()
}

// month is a month's days.
func (s *Site) month(dir string) []byte {
	d := s.doc(dir+page, "Transactions of "+strings.TrimPrefix(dir, "month/"))
	d.begin("By day", slices.Concat([]string{"Day", "Transactions"}, outcomeWords[:])...)
	for _, day := range slices.Backward(s.months[dir]) {
		d.countRow(day+page, strings.Replace(day[len("month/"):], "/", "-", 1), s.count(s.groups[day]))
	}
	d.end()
	return d.bytes()
}

// top are those who did something most often.
func (d *doc) top(title, did string, count func(person) int) {
	d.head(title)
	who := d.peopleBy(count)
	if len(who) == 0 {
		d.paragraph(func() { d.Text("Nobody.") })
		return
	}
	d.begin(title, "Person", "Account", did)
	for _, address := range who[:min(len(who), most)] {
		p := d.people[address]
		d.row(func() { d.person(p.Actor) }, func() { d.Code(short(p.ID, 100)) }, func() { d.Textf("%d", count(p)) })
	}
	d.end()
	if len(who) > most {
		d.paragraph(func() { d.to(peopleAddress, fmt.Sprintf("All %d people", len(d.people))) })
	}
}

// peopleBy are the people of whom something is counted, the most first.
func (s *Site) peopleBy(count func(person) int) []string {
	var out []string
	for address, p := range s.people {
		if count(p) > 0 {
			out = append(out, address)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(count(s.people[b])-count(s.people[a]), strings.Compare(s.people[a].Login, s.people[b].Login), strings.Compare(a, b))
	})
	return out
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
	d.rows("Decided last", in[:min(len(in), latest)])
}

func (s *Site) allPeople() []byte {
	d := s.doc(peopleAddress, "Who proposed and decided")
	who := s.peopleBy(func(p person) int { return p.proposed + p.approved + p.denied })
	d.cut(len(who), "who took part most often")
	d.begin("People", "Person", "Account", "Proposed", "Approved", "Denied")
	for _, address := range who[:min(len(who), longest)] {
		p := s.people[address]
		d.row(func() { d.person(p.Actor) }, func() { d.Code(short(p.ID, 100)) },
			func() { d.Textf("%d", p.proposed) }, func() { d.Textf("%d", p.approved) }, func() { d.Textf("%d", p.denied) })
	}
	d.end()
	return d.bytes()
}

func (s *Site) allPaths() []byte {
	d := s.doc(pathsAddress, "Files that changes were proposed to")
	last := func(address string) int { return s.groups[address][len(s.groups[address])-1] }
	paths := slices.SortedFunc(maps.Keys(s.paths), func(a, b string) int {
		return cmp.Or(last(b)-last(a), strings.Compare(s.paths[a], s.paths[b]))
	})
	d.cut(len(paths), "that were proposed to be changed last")
	d.begin("Files", "File", "Transactions", "The last")
	for _, address := range paths[:min(len(paths), longest)] {
		d.row(func() { d.Markup("<code>"); d.to(address+page, short(s.paths[address], 200)); d.Markup("</code>") },
			func() { d.Textf("%d", len(s.groups[address])) }, func() { d.change(&s.all[last(address)]) })
	}
	d.end()
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
