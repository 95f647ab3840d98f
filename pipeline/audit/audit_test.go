package audit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

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
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBounded: however much is wrong, a result is short, and says how much.
func TestBounded(t *testing.T) {
	var h byHand
	for i := range 3000 {
		h = append(h, history.Commit{
			ID: history.ID{byte(i >> 8), byte(i)}, Parents: []history.ID{{1}}, Ours: true, Message: "x",
			Changes: []history.Change{{Path: fmt.Sprintf("%05d", 2999-i), New: history.Entry{Mode: history.ModeFile, ID: history.ID{1}}}},
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

// TestEscaped: what a forger puts into names and messages does not reach a
// terminal, or a JSON document, as it is.
func TestEscaped(t *testing.T) {
	h := byHand{{
		ID: history.ID{1}, Message: "x\x1b[2J", Signature: history.Bad, SignatureError: errors.New("bad\x1b[2J"),
		Changes: []history.Change{
			{Path: "a\x1b[2J\u202e", New: history.Entry{Mode: 0o120000}}, {Path: "b\xff", New: history.Entry{Mode: 0o160000}},
			{Path: "denied/\n", New: history.Entry{Mode: history.ModeFile}},
		},
	}}
	r := run(t, h, audit.Options{Notes: []audit.Note{{Message: "n\x1b"}}})
	raw, err := canon.Line(r)
	if err != nil {
		t.Fatal(err)
	}
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
