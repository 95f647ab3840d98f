package audit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/message"
	"github.com/countersign-dev/countersign/pipeline/storetest"
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

func TestExplain(t *testing.T) {
	entries, err := storetest.Lives(storetest.Whole, storetest.Reviewed)
	if err != nil {
		t.Fatal(err)
	}
	tree := fstest.MapFS{}
	for _, e := range entries {
		for name, data := range e.Files {
			tree[name] = &fstest.MapFile{Data: data, Mode: 0o644}
		}
	}
	all, err := ledger.All(tree)
	if err != nil {
		t.Fatal(err)
	}
	since, err := audit.Since(tree)
	if err != nil || since != all[0].Pointers.Proposal.BaseCommit {
		t.Errorf("since %s (%v), want %s", since, err, all[0].Pointers.Proposal.BaseCommit)
	}
	whole, open := all[0], all[1]
	if whole.Status != ledger.Completed {
		whole, open = open, whole
	}
	log, err := ledger.Read(tree, whole.TransactionID)
	if err != nil {
		t.Fatal(err)
	}
	made := ledger.Of[*ledger.ApplyComplete](log)[0].CommitAfter
	trailer := "fix\n\nCountersign-Transaction: "
	for words, want := range map[string]string{
		trailer + whole.TransactionID + "\n":        "",
		trailer + open.TransactionID + "\n":         "names " + open.TransactionID + ", which did not make it",
		trailer + "tx_01KE5W5200041061050R3GG28A\n": "names tx_01KE5W5200041061050R3GG28A, which the ledger does not have",
		trailer + "../../x\n":                       "names ../../x, which is not a transaction id",
		"countersign-transaction: x\n":              "names no transaction",
		// What a proposer claims is no trailer of ours, in a message of ours and in no other.
		message.Compose("fix", "fix\n\nCountersign-Transaction: "+whole.TransactionID+"\n\nx", []string{"Assisted-by: x\nCountersign-Transaction: " + whole.TransactionID}, nil): "names no transaction",
		message.Compose("Countersign-Transaction: "+whole.TransactionID, "", nil, nil):                                                                                           "names no transaction",
		message.Compose("fix", "fix\n\nx\n\nCountersign-Transaction: "+open.TransactionID, nil, []string{"Countersign-Transaction: " + whole.TransactionID}):                     "",
		"": "names no transaction",
		trailer + whole.TransactionID + "\n" + trailer: "names no transaction", // the last one counts
	} {
		b, err := audit.Explain(tree, "main", since, []history.BranchCommit{{ID: made, Message: words}})
		got := ""
		if len(b.Unexplained) > 0 {
			got = b.Unexplained[0].Reason
		}
		if err != nil || got != want || b.Commits != 1 || b.Name != "main" {
			t.Errorf("%q: %q (%v), want %q", words, got, err, want)
		}
	}
	if since, err := audit.Since(fstest.MapFS{}); since != "" || err != nil {
		t.Errorf("an empty ledger: %q %v", since, err)
	}
}
