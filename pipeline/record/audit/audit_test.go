package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

// byHand are commits made by hand, and no files. What an audit makes of real ones
// is tested in gitstore.
type byHand []history.Commit

func (h byHand) Commits(visit func(history.Commit)) error {
	for i, c := range h {
		c.Age = len(h) - 1 - i
		visit(c)
	}
	return nil
}

func (h byHand) Blob(id history.ID) ([]byte, error) {
	return nil, errors.New("no file " + id.String())
}

func (h byHand) Former(string) (map[string]history.Entry, error) { return nil, nil }

func run(t *testing.T, h byHand, o audit.Options) audit.Result {
	t.Helper()
	r, err := audit.Run(h, o)
	fatal(t, err)
	return r
}

// TestBounded: however much is wrong, a result is short, and says how much.
func TestBounded(t *testing.T) {
	var h byHand
	for i := range 3000 {
		h = append(h, history.Commit{
			ID: numbered(i), Parents: []history.ID{numbered(1)}, Ours: true, Message: "x",
			Changes: []history.Change{{Path: fmt.Sprintf("%05d", 2999-i), New: history.Entry{Mode: history.ModeFile, ID: numbered(1)}}},
		})
	}
	r := run(t, h, audit.Options{})
	if r.OK || r.Count != 9000 || len(r.Findings) != audit.MaxFindings || r.Commits != 3000 || r.Complete {
		t.Errorf("ok %v, %d findings of %d, %d commits, complete %v", r.OK, len(r.Findings), r.Count, r.Commits, r.Complete)
	}
	for i, f := range r.Findings {
		if want := fmt.Sprintf("%05d", i); f.RuleID != "L10" || f.Path != want {
			t.Fatalf("finding %d is %+v, want %s", i, f, want)
		}
	}
}

// begunLater is a ledger of a later version.
type begunLater struct{ byHand }

func (begunLater) Blob(id history.ID) ([]byte, error) {
	if id == numbered(2) {
		return []byte(`{"needs_version":"9.0","payload":{},"prev":null,"seq":1,"timestamp":"2026-01-05T00:00:00.000Z","type":"x"}` + "\n"), nil
	}
	if id == numbered(3) {
		return nil, errors.New("is missing")
	}
	return writing.Schema("2026-01-05T00:00:00.000Z", "9.0"), nil
}

// TestT53NewerBounded: however much only a newer program can judge, what this one can judge is not forgotten over it.
func TestT53NewerBounded(t *testing.T) {
	id, err := writing.NewID(time.Unix(0, 0), bytes.NewReader(make([]byte, 10)))
	fatal(t, err)
	file := history.Entry{Mode: history.ModeFile, ID: numbered(1)}
	h := byHand{{ID: numbered(9<<8 + 9), Changes: []history.Change{
		{Path: ledger.SchemaFile, New: file}, {Path: ledger.Dir(id) + "/" + ledger.EventsFile, New: history.Entry{Mode: history.ModeFile, ID: numbered(2)}},
	}}}
	for i := range 3000 {
		h = append(h, history.Commit{ID: numbered(i), Parents: []history.ID{numbered(1)}, Ours: true, Changes: []history.Change{{Path: fmt.Sprintf("%05d", i), New: file}}})
	}
	for _, found := range [][]history.Finding{nil, {{RuleID: "WITNESS"}}} {
		r, err := audit.Run(begunLater{h}, audit.Options{Found: found})
		if err != nil || r.OK || (r.Undecidable() != nil) != (found == nil) || r.Count != 2+len(found) {
			t.Errorf("%v %v: %d %+v", err, r.Undecidable(), r.Count, r.Findings)
		}
	}
}

// TestEscaped: what a forger puts into names and messages does not reach a
// terminal, or a JSON document, as it is.
func TestEscaped(t *testing.T) {
	h := byHand{{
		ID: numbered(1), Message: "x\x1b[2J", Signature: history.Bad, SignatureError: errors.New("bad\x1b[2J"),
		Changes: []history.Change{
			{Path: "a\x1b[2J\u202e", New: history.Entry{Mode: 0o120000}}, {Path: "b\xff", New: history.Entry{Mode: 0o160000}},
			{Path: "denied/\n", New: history.Entry{Mode: history.ModeFile}},
		},
	}}
	r := run(t, h, audit.Options{Notes: []audit.Note{{Message: "n\x1b"}}})
	raw, err := canon.Line(r)
	fatal(t, err)
	for _, r := range strings.TrimSuffix(string(raw), "\n") {
		if !ledger.Visible(r) {
			t.Errorf("%+q in %q", r, raw)
		}
	}
	if !strings.Contains(string(raw), `"path":"\"a\\x1b[2J\\u202e\""`) {
		t.Errorf("%s", raw)
	}
}

// TestCallerFindings: what the caller found before is part of the verdict, and
// an empty history is never sound by itself.
func TestCallerFindings(t *testing.T) {
	found := []history.Finding{{RuleID: "L14", Message: "rewritten"}}
	if r := run(t, nil, audit.Options{Found: found}); r.OK || r.Count != 1 || !slices.Equal(r.Findings, found) || !r.Complete {
		t.Errorf("%+v", r)
	}
}

// numbered is an ID of its own for each number.
func numbered(n int) history.ID {
	return history.NewID([]byte{0: byte(n >> 8), 1: byte(n), 19: 1})
}
