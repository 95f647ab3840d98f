package evidence_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

var now = time.Date(2026, 2, 10, 0, 0, 0, 0, time.UTC)

// repository is one: what the commits change that transactions made, by commit. Others
// make a file.
type repository map[string]patch.Patchset

func (c repository) Diff(_ context.Context, _, to string) (patch.Patchset, error) {
	if set, changes := c[to]; changes {
		return set, nil
	}
	return patch.NewTree(fstest.MapFS{}).Between(map[string]*patch.File{"other": {Mode: patch.Regular, Data: []byte("other\n")}})
}

func (c repository) Paths(ctx context.Context, from, to string) (out []explain.PathChange, err error) {
	set, err := c.Diff(ctx, from, to)
	for _, f := range set.Files() {
		one := explain.PathChange{Path: f.Path, New: uint32(f.After.Mode), NewID: f.After.BlobID()}
		if f.Before != nil {
			one.Old, one.OldID = uint32(f.Before.Mode), f.Before.BlobID()
		}
		out = append(out, one)
	}
	return out, err
}
func (repository) Blob(context.Context, string) ([]byte, error)                 { return nil, fs.ErrNotExist }
func (repository) Descends(context.Context, string, string) (bool, error)       { return false, nil }
func (repository) Tree(context.Context, string) (fs.FS, error)                  { return fstest.MapFS{}, nil }
func (repository) MergeBases(context.Context, string, string) ([]string, error) { return nil, nil }
func (repository) RawCommit(context.Context, string) ([]byte, error)            { return nil, nil }

// codeOf is the repository of a ledger.
func codeOf(t testing.TB, files fs.FS) repository {
	t.Helper()
	c := repository{}
	ids, err := lookup.IDs(files)
	check(t, err)
	for _, id := range ids {
		log, err := lookup.Read(files, id)
		check(t, err)
		if log.Transaction().Pointers.Proposal == nil { // it says what became of an exception
			continue
		}
		path, n := log.Transaction().Pointers.Proposal.TargetFiles[0], 0
		if _, err := fmt.Sscanf(path, "dir/file%d.txt", &n); err != nil {
			t.Fatal(err)
		}
		base := fstest.MapFS{path: &fstest.MapFile{Data: fmt.Appendf(nil, "one\nhello %d\nthree\n", n), Mode: 0o644}}
		set, err := patch.NewTree(base).Between(map[string]*patch.File{path: {Mode: patch.Regular, Data: fmt.Appendf(nil, "one\nhello, world %d\nthree\n", n)}})
		if err != nil || set.ID() != log.Transaction().PatchID() {
			t.Fatalf("%s: %v", path, err)
		}
		for _, done := range ledger.Of[*ledger.ApplyComplete](log) {
			c[done.CommitAfter] = set
		}
	}
	return c
}

func applied(t testing.TB, files fs.FS, id string) string {
	t.Helper()
	log, err := lookup.Read(files, id)
	check(t, err)
	for _, done := range ledger.Of[*ledger.ApplyComplete](log) {
		if done.Success {
			return done.CommitAfter
		}
	}
	t.Fatalf("%s made no commit", id)
	return ""
}

// source is a branch on which the commits of transactions follow each other, and then one that
// nothing accounts for.
func source(t testing.TB, files fs.FS, made ...string) evidence.Source {
	t.Helper()
	clock := explain.NewClock(storetest.InOrder{Tree: files})
	check(t, clock.Commits(func(history.Commit) {}))
	x, err := explain.NewIndex(files, clock)
	check(t, err)
	var all []code.BranchCommit
	parent := strings.Repeat("0", 40)
	for _, id := range append(made, strings.Repeat("e", 40)) {
		all = append([]code.BranchCommit{{ID: id, Parents: []string{parent}, Message: "=cmd|' /C calc'!A0\n", When: 978307200}}, all...)
		parent = id
	}
	o := explain.Options{Ledger: files, Index: x, Code: codeOf(t, files), Default: []string{strings.Repeat("0", 40)}, Now: now}
	judged, err := explain.Run(context.Background(), o, all)
	check(t, err)
	return evidence.Source{
		Repository: evidence.Repository{Name: "acme/shop", Branch: "main", Commit: all[0].ID, LedgerRef: "refs/agent/ledger"},
		Links:      forge.Links{Web: "https://github.com/acme/shop"}, Ledger: files, Index: x, Judged: judged, Commits: all, Now: now,
	}
}

func period(t testing.TB, from, to string) evidence.Period {
	t.Helper()
	p, err := evidence.ParsePeriod(from, to)
	check(t, err)
	return p
}

func report(t testing.TB, s evidence.Source, from, to string) evidence.Report {
	t.Helper()
	p := period(t, from, to)
	part, err := s.Changes(p)
	check(t, err)
	return evidence.New(p, now, []evidence.Part{part})
}

func codes(r evidence.Row) (out []evidence.Code) {
	for _, e := range r.Exceptions {
		out = append(out, e.Code)
	}
	return out
}

func total(r evidence.Report, name string) evidence.Total {
	i := slices.IndexFunc(r.Totals, func(t evidence.Total) bool { return t.Name == name })
	if i < 0 {
		return evidence.Total{Count: -1}
	}
	return r.Totals[i]
}

// T79 Each change has its row, with what the record proves of it, exceptions first.
func TestT79Evidence(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Whole, storetest.Whole, storetest.Retried)
	s := source(t, files, applied(t, files, ids[0]), applied(t, files, ids[1]), applied(t, files, ids[2]))
	r := report(t, s, "2026-01-06", "2026-01-31")
	if len(r.Rows) != 1 || r.Rows[0].Commit != strings.Repeat("e", 40) {
		t.Fatalf("after the ledger's last word: %+v", r.Rows)
	}
	r = report(t, s, "2026-01-05", "2026-01-05")
	if r.OK || !r.Complete || len(r.Rows) != 5 || r.Repositories[0].Changes != 4 || r.Repositories[0].Exceptions != 5 {
		t.Fatalf("%+v", r)
	}
	for i, row := range r.Rows {
		want := []evidence.Code{evidence.UnknownIndependence}
		switch {
		case i == 0:
			want = []evidence.Code{evidence.BeforeLedger}
		case i == 1:
			want = []evidence.Code{evidence.Unexplained}
		case row.Records[0].Status != ledger.Completed:
			want = append(want, evidence.NotValidated)
		}
		if got := codes(row); !slices.Equal(got, want) {
			t.Errorf("row %d: %v, want %v", i, got, want)
		}
	}
	row := r.Rows[4]
	if row.Commit != applied(t, files, ids[0]) || row.Records[0].TransactionID != ids[0] || row.URL != "https://github.com/acme/shop/commit/"+row.Commit || row.ClaimedAt != "2001-01-01T00:00:00.000Z" {
		t.Errorf("%+v", row)
	}
	rec := row.Records[0]
	if len(rec.Decisions) != 1 || !rec.Decisions[0].Counted || !slices.Equal(rec.Decisions[0].VerifiedBy, []string{"local"}) || rec.Proposers[0].ID != "local:bot@example.org" || rec.AppliedAt == "" || rec.CompletedAt == "" || !canon.IsSum(rec.Policy.SHA256) {
		t.Errorf("%+v", rec)
	}
	for name, want := range map[string]int{"changes": 4, "exceptions": 5, "by_transaction": 3, "independent_yes": 0, "independent_unknown": 3, "exception_unexplained": 1, "exception_not_validated": 1, "without_checks": 3} {
		if got := total(r, name); got.Count != want || len(got.Rows) != want {
			t.Errorf("%s: %+v, want %d", name, got, want)
		}
	}
	raw, err := canon.Marshal(r)
	var back evidence.Report
	if err == nil {
		err = canon.Unmarshal(raw, &back)
	}
	if err != nil {
		t.Error(err)
	}
}

// A line is a ledger's history: which transaction each commit is about, the oldest first, and when it says that it was made.
type line []struct {
	id   string
	when time.Time
}

func (l line) Commits(visit func(history.Commit)) error {
	for i, c := range l {
		visit(history.Commit{Age: len(l) - 1 - i, When: c.when.Unix(), Changes: []history.Change{{Path: ledger.Dir(c.id) + "/events.jsonl"}}})
	}
	return nil
}
func (line) Blob(history.ID) ([]byte, error)                 { return nil, nil }
func (line) Former(string) (map[string]history.Entry, error) { return nil, nil }

// T56 A clock that was set back hides no change: what is recorded later was recorded later, and the
// record begins with what was recorded first.
func TestT56Backdated(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Whole, storetest.Whole)
	s := source(t, files, applied(t, files, ids[0]), applied(t, files, ids[1]))
	february := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	seen := line{{ids[1], february}, {ids[0], time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}}
	clock := explain.NewClock(seen)
	if _, err := explain.NewIndex(files, clock); err == nil { // T82 nothing was read through it
		t.Error("an order that nobody noted")
	}
	check(t, clock.Commits(func(history.Commit) {}))
	x, err := explain.NewIndex(files, clock)
	check(t, err)
	first, err := lookup.Read(files, ids[1])
	check(t, err)
	if x.First != first.Meta().BaseCommit || !x.Began.Equal(february) {
		t.Errorf("it began with %s at %s", x.First, x.Began)
	}
	for _, span := range x.Came(s.Judged.Chain, now) {
		if span.By.Before(february) {
			t.Errorf("it was there by %s", span.By)
		}
	}
	clock = explain.NewClock(seen[:1])
	check(t, clock.Commits(func(history.Commit) {}))
	if _, err := explain.NewIndex(files, clock); err == nil {
		t.Error("a transaction that no commit recorded")
	}
}

// T79 A change that was there before somebody approved it says so, of whatever kind its transaction is: the
// second one's commit is below the first's here.
func TestT79ApprovedLate(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Whole, storetest.Whole)
	s := source(t, files, applied(t, files, ids[1]), applied(t, files, ids[0]))
	for _, row := range report(t, s, "2026-01-01", "2026-01-31").Rows {
		if row.ExplainedBy != "" && row.Of(evidence.ApprovedLate) != (row.Commit == applied(t, files, ids[1])) {
			t.Errorf("%s: %v", row.Commit, codes(row))
		}
	}
}

// T82 What is missing in a ledger never leaves a change without an exception.
func TestT82Missing(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Whole)
	s := source(t, files, applied(t, files, ids[0]))
	for name := range files {
		if !strings.HasPrefix(name, ledger.Dir(ids[0])+"/") || strings.HasSuffix(name, "README.md") {
			continue
		}
		bad := maps.Clone(files)
		delete(bad, name)
		s.Ledger = bad
		part, err := s.Changes(period(t, "2026-01-01", "2026-01-31"))
		if err != nil {
			continue // the ledger cannot be read
		}
		for _, row := range part.Rows {
			if row.Commit == applied(t, files, ids[0]) && (!row.Of(evidence.RecordInvalid) || len(row.Records) > 0) {
				t.Errorf("without %s: %+v", name, row)
			}
		}
	}
}

// TestPeriods: the days of a period are UTC's, its last is in it, and a period without a change is a
// statement if the ledger covers it.
func TestPeriods(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Whole)
	s := source(t, files, applied(t, files, ids[0]))
	for _, c := range []struct {
		from, to string
		rows     int
		codes    string
	}{
		{"2026-01-01", "2026-01-04", 1, "[before_ledger]"},
		{"2026-01-01", "2026-01-05", 3, "[before_ledger][unexplained][independence_unknown]"},
		{"2026-01-05", "2026-01-05", 3, "[before_ledger][unexplained][independence_unknown]"},
		{"2026-01-06", "2026-01-06", 1, "[unexplained]"},
		{"2026-02-10", "2026-03-01", 1, "[unexplained]"},
		{"2026-02-11", "2026-03-01", 0, ""},
	} {
		r := report(t, s, c.from, c.to)
		got := ""
		for _, row := range r.Rows {
			got += fmt.Sprint(codes(row))
		}
		if len(r.Rows) != c.rows || got != c.codes || r.OK != (c.rows == 0) {
			t.Errorf("%s to %s: %s, %v", c.from, c.to, got, r.OK)
		}
		// One note is that nothing is known of what protected the branch.
		if over := len(r.Notes) == 1; over != (c.to < "2026-02-10") {
			t.Errorf("%s to %s: notes %q", c.from, c.to, r.Notes)
		}
	}
	for _, bad := range [][2]string{{"2026-01-02", "2026-01-01"}, {"", "2026-01-01"}, {"2026-01-01", ""}, {"2026-1-1", "2026-01-02"}, {"2026-01-01T00:00:00Z", "2026-01-02"}} {
		if _, err := evidence.ParsePeriod(bad[0], bad[1]); err == nil {
			t.Errorf("%v is a period", bad)
		}
	}
}

// T82 A repository that could not be read, a ledger without a transaction, and no repository at all
// are no clean table.
func TestT82Unread(t *testing.T) {
	p := period(t, "2026-01-01", "2026-01-31")
	empty, err := evidence.Source{Repository: evidence.Repository{Name: "a"}, Index: &explain.Index{}, Now: now}.Changes(p)
	check(t, err)
	for name, parts := range map[string][]evidence.Part{
		"no repository": nil, "no ledger": {empty},
		"unreadable": {evidence.Failed(evidence.Repository{Name: "a", Read: true}, evidence.Unreadable, "\x1b[2Jno\nsuch")},
	} {
		r := evidence.New(p, now, parts)
		if r.OK || r.Complete || total(r, "changes").Count != 0 || len(parts) > 0 && len(r.Rows) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
		for _, row := range r.Rows {
			if strings.ContainsAny(row.Exceptions[0].Text, "\x1b\n") {
				t.Errorf("%s: %q", name, row.Exceptions[0].Text)
			}
		}
	}
}
