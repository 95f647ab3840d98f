package evidence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// T79 A change has the first deployment to each environment that had it, of its own commit or a later one of the branch. A later
// change, a commit that is elsewhere, and a record that does not hold say nothing.
func TestT79Deployments(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Whole, storetest.Whole)
	first, second, pushed := applied(t, files, ids[0]), applied(t, files, ids[1]), strings.Repeat("e", 40)
	n := 0
	deployed := func(commit, environment, at string) {
		id := fmt.Sprintf("tx_01KEZZZZZZ%016d", n)
		n++
		d := &observation.Deployment{Commit: commit, Environment: environment, DeployedAt: at}
		d.Head = observation.Head{Schema: observation.Schema(d), TransactionID: id, Author: by(id, "ci@example.org").Proposer}
		files = observed(t, files, by(id, "ci@example.org"), d)
	}
	deployed(second, "production", "2026-01-20T00:00:00.000Z")
	deployed(first, "production", "2026-01-10T00:00:00.000Z")
	deployed(pushed, "production", "2026-01-15T00:00:00.000Z") // before that of the second, which it had
	deployed(second, "staging", "2026-01-07T00:00:00.000Z")
	deployed(strings.Repeat("f", 40), "elsewhere", "2026-01-06T00:00:00.000Z")
	deployed(first, "to the moon", "2026-01-06T00:00:00.000Z") // no name of an environment
	deployed(first, "later", "2036-01-06T00:00:00.000Z")
	got := func(r evidence.Report, commit string) (out []string) {
		for _, d := range r.Rows[slices.IndexFunc(r.Rows, func(row evidence.Row) bool { return row.Commit == commit })].Deployments {
			out = append(out, d.Environment+" "+d.DeployedAt[8:10]+" "+d.Commit+" "+d.Author.Login)
		}
		return out
	}
	r := report(t, source(t, files, first, second), "2026-01-05", "2026-01-31")
	for commit, want := range map[string][]string{
		first:  {"production 10 " + first + " ci@example.org", "staging 07 " + second + " ci@example.org"},
		second: {"production 15 " + pushed + " ci@example.org", "staging 07 " + second + " ci@example.org"},
		pushed: {"production 15 " + pushed + " ci@example.org"},
	} {
		if got := got(r, commit); !slices.Equal(got, want) {
			t.Errorf("%.12s: %q, want %q", commit, got, want)
		}
	}
	for i := range 60 { // whoever can write to the ledger makes no report of any size
		deployed(pushed, fmt.Sprintf("env-%d", i), ledger.FormatTime(now.AddDate(0, 0, -2)))
	}
	r = report(t, source(t, files, first, second), "2026-01-05", "2026-01-31")
	if n := len(got(r, pushed)); n != 48 || !slices.Contains(r.Notes, "acme/shop: deployments to 13 more environments than the first 50 are not shown") { // production, elsewhere and staging are before
		t.Errorf("%d environments: %q", n, r.Notes)
	}
}

// T67 What protected a branch is a list over the period, each until something else was read; of what is not on record, a note says so.
func TestT67Settings(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Whole)
	made := applied(t, files, ids[0])
	read := func(from, to string) (out []string, notes string) {
		r := report(t, source(t, files, made), from, to)
		for _, s := range r.Repositories[0].Settings {
			out = append(out, s.Branch+" "+s.From[5:10]+" "+strings.TrimSuffix(s.Until, "T00:00:00.000Z")+" "+strings.Join(s.Rules, ","))
		}
		return out, strings.Join(r.Notes, "|")
	}
	if got, notes := read("2026-01-05", "2026-01-31"); got != nil || !strings.Contains(notes, "acme/shop: what protected the branch is not on record") {
		t.Errorf("nothing is on record: %q, %q", got, notes)
	}
	for i, one := range []struct{ day, branch, rule string }{{"06", "main", "a"}, {"20", "main", "b"}, {"25", "next", "c"}} {
		at, id := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), fmt.Sprintf("tx_01KEZZZZZZ%016d", i)
		o := observation.NewSettings(ledger.Repository{ID: "7", Name: "acme/shop"}, one.branch, at, []string{one.rule}, nil)
		o.ReadAt = "2026-01-" + one.day + "T00:00:00.000Z"
		o.Head = observation.Head{Schema: observation.Schema(o), TransactionID: id, Author: by(id, "ci@example.org").Proposer}
		files = observed(t, files, by(id, "ci@example.org"), o)
	}
	for period, want := range map[[2]string]string{
		{"2026-01-05", "2026-01-31"}: "main 01-06 2026-01-20 a|main 01-20  b|next 01-25  c|before 2026-01-06T00:00:00.000Z is not on record",
		{"2026-01-06", "2026-01-19"}: "main 01-06 2026-01-20 a|",
		{"2026-01-20", "2026-01-24"}: "main 01-20  b|",
		{"2026-01-05", "2026-01-05"}: "|what protected the branch is not on record",
	} {
		got, notes := read(period[0], period[1])
		rows, note := want[:strings.LastIndex(want, "|")], want[strings.LastIndex(want, "|")+1:]
		if strings.Join(got, "|") != rows || !strings.Contains(notes, note) || note == "" && strings.Contains(notes, "protected") {
			t.Errorf("%s: %q, %q", period, got, notes)
		}
	}
}
