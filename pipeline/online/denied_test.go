package online

import (
	"io/fs"
	"path"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

const deniedID = "tx_01M8AZ23SH63CX79ZBJPV475KX"

// aDenial is a ledger with pull request 5 of a repository, whose own diff is denied.
func aDenial(t *testing.T, in ledger.Repository) fstest.MapFS {
	t.Helper()
	p := ledger.Proposal{Kind: ledger.KindPullRequest, PatchID: patch, PullRequest: 5, Repository: &in, HeadCommit: head}
	tx := ledger.Transaction{TransactionID: deniedID, Status: ledger.Denied}
	tx.Pointers.Proposal = &p
	tree := fstest.MapFS{}
	for name, doc := range map[string]any{
		path.Join(ledger.DeniedDir(patch), deniedID+".json"):    ledger.Denial{Fingerprint: "patchset:" + patch, TransactionID: deniedID, Author: ada},
		path.Join(ledger.ProposedDir(patch), deniedID+".json"):  ledger.Listed{TransactionID: deniedID},
		path.Join(ledger.PullDir(5), deniedID+".json"):          ledger.Listed{TransactionID: deniedID},
		path.Join(ledger.Dir(deniedID), ledger.TransactionFile): tx,
	} {
		line, err := canon.Line(doc)
		fatal(t, err)
		tree[name] = &fstest.MapFile{Data: line, Mode: fs.FileMode(0o644)}
	}
	return tree
}

// What is recorded of another repository is not asked about, and so is neither gone nor merged.
func TestT15DeniedElsewhere(t *testing.T) {
	for in, want := range map[ledger.Repository]Verdict{site: Gone, {ID: "8", Name: "acme/other"}: Unknown} {
		f := honest()
		f.errs["Ends"] = forge.ErrNotFound
		found, _, err := AskDenied(t.Context(), f, aDenial(t, in), 20)
		if err != nil || len(found) != 1 || found[0].Verdict != want {
			t.Errorf("%s: %+v, %v", in.Name, found, err)
		}
	}
}

// A record that names no patch is an error: whoever can write the ledger can put it there.
func TestDeniedWithoutAPatch(t *testing.T) {
	for name, doc := range map[string]any{
		path.Join(ledger.DeniedDir(patch), deniedID+".json"): ledger.Denial{Fingerprint: "patchset:", TransactionID: deniedID},
		path.Join(ledger.Dir(deniedID), ledger.TransactionFile): func() any {
			tx := ledger.Transaction{TransactionID: deniedID, Status: ledger.Denied}
			tx.Pointers.Proposal = &ledger.Proposal{Kind: ledger.KindPullRequest, PullRequest: 5, Repository: &site}
			return tx
		}(),
	} {
		line, err := canon.Line(doc)
		fatal(t, err)
		tree := aDenial(t, site)
		tree[name].Data = line
		if found, _, err := AskDenied(t.Context(), honest(), tree, 20); err == nil {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
