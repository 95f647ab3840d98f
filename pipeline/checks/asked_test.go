package checks

import (
	"errors"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// T82: a record of a Proposal that does not say what the Proposal asks for is not
// read as one that asks for nothing.
func TestT82ChecksAreMissing(t *testing.T) {
	for _, c := range []struct {
		kind string
		ok   bool
	}{{ledger.KindProposal, false}, {"patch", true}} {
		tx := ledger.Transaction{TransactionID: "tx_1"}
		tx.Pointers.Proposal = &ledger.Proposal{Kind: c.kind}
		_, err := ReadAsked(fstest.MapFS{}, tx)
		var corrupt *ledger.CorruptError
		if (err == nil) != c.ok || err != nil && !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", c.kind, err)
		}
	}
}

// T82: what a newer program recorded that a Proposal asks for is not read as what this one does.
func TestT82ChecksOfAnotherSchema(t *testing.T) {
	const id = "tx_01KE5W5200041061050R3GG28A"
	for schema, ok := range map[string]bool{AskedSchema: true, "countersign/checks/2": false} {
		raw, err := canon.Line(Asked{Schema: schema, Actions: []Action{}, Tests: []Test{}})
		if err != nil {
			t.Fatal(err)
		}
		tx := ledger.Transaction{TransactionID: id}
		tx.Pointers.Proposal = &ledger.Proposal{Checks: ledger.ArtifactFile(canon.Hex(raw))}
		tree := fstest.MapFS{ledger.Dir(id) + "/" + tx.Pointers.Proposal.Checks: {Data: raw}}
		if _, err := ReadAsked(tree, tx); (err == nil) != ok {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// What runs is listed once, and what the Policy does not allow is said not to run.
func TestLines(t *testing.T) {
	allowed := policy.Command{Argv: []string{"go", "vet"}}
	p := policy.Policy{Commands: policy.Commands{Run: []policy.Check{{Command: policy.Command{Argv: []string{"make"}}}}, Allow: []policy.Command{allowed}}}
	doc := Asked{Actions: []Action{
		{ID: "a", Type: document.ExecuteCommand, Target: "go vet"}, {ID: "b", Type: document.ExecuteCommand, Target: "go vet"}, {ID: "c", Type: document.ExecuteCommand, Target: "curl x"},
	}}
	want := []string{p.Commands.Run[0].Command.Text(), "go vet", "curl x (not run: the Policy does not allow the command)"}
	if got := Lines(p, doc); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTypes: what a Proposal may ask for has the same names here.
func TestTypes(t *testing.T) {
	for here, there := range map[string]string{
		executeCommand: document.ExecuteCommand, hashMatch: document.HashMatch, commandSuccess: document.CommandSuccess,
		fileExists: document.FileExists, contentMatch: document.ContentMatch,
	} {
		if here != there {
			t.Errorf("%s is %s in a Proposal", here, there)
		}
	}
}
