package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// An Explanation is what accounts for one commit, or for all that changed between two: what
// the judge of its branch says of it. Begins is where the change begins that transactions account
// for: before a row it is another than From. Transactions are those that account for it, and those that propose exactly
// it and do not. Tree is the one that shipped, PatchID "" for a change that no patch can be.
// Once is "first" where the branch's history tells that the approval accounts for nothing
// before, else "unknown"; "" where no approval is asked.
type Explanation struct {
	From         string   `json:"from"`
	Commit       string   `json:"commit"`
	Tree         string   `json:"tree"`
	PatchID      string   `json:"patch_id"`
	Explained    bool     `json:"explained"`
	By           By       `json:"by"`
	PartOf       string   `json:"part_of"`
	Strength     Strength `json:"strength"`
	Once         string   `json:"once"`
	Late         string   `json:"late"`
	Code         Reason   `json:"code"`
	Reason       string   `json:"reason"`
	LedgerRef    string   `json:"ledger_ref"`
	LedgerCommit string   `json:"ledger_commit"`
	Transactions []Claim  `json:"transactions"`
	Result       Making   `json:"result"`
	Uncovered    []Lines  `json:"uncovered"`
	More         int      `json:"uncovered_more"` // that Uncovered leaves out
}

// The values of Once.
const (
	First   = "first"
	Unknown = "unknown"
)

// maxLines is how many Lines are told.
const maxLines = 200

// Commit is what the judge says of one commit of the branch, with the transactions.
func (r Result) Commit(ctx context.Context, commit string) (Explanation, error) {
	j := r.judge
	c, here := j.commits[commit]
	if !here || len(c.Parents) == 0 {
		return Explanation{}, fmt.Errorf("commit %s is none of the branch that has a parent", commit)
	}
	out := Explanation{From: c.Parents[0], Commit: commit, Transactions: []Claim{}, Uncovered: []Lines{}}
	set, err := j.Code.Diff(ctx, out.From, commit)
	if err == nil {
		out.PatchID = set.ID()
	} else if !errors.As(err, new(*patch.Error)) {
		return out, err
	}
	w := j.of[commit]
	if e, is := r.Explained[commit]; is {
		out.Explained, out.By, out.PartOf, out.Strength, out.Late = true, e.By, e.PartOf, e.Strength, e.Late
		for _, claim := range w.claims {
			if slices.Contains(e.Transactions(), claim.TransactionID) {
				out.Transactions = append(out.Transactions, *claim)
			}
		}
		switch {
		case len(w.ids) == 0:
		case e.Exact:
			out.Result, out.Once = Exact, First
		default:
			out.Result, out.Once = Replay, First
		}
	} else {
		u := r.Unexplained[commit]
		out.Code, out.Reason = u.Code, u.Reason
		lines := u.Lines
		if out.PatchID != "" {
			if out.Result = NotCovered; len(lines) == 0 {
				lines = newState(set).missing()
			}
		}
		out.Uncovered, out.More = append(out.Uncovered, lines[:min(maxLines, len(lines))]...), max(0, len(lines)-maxLines)
	}
	return out, j.others(ctx, &out)
}

// others adds the transactions that propose exactly a change, or that its code is about, and do
// not account for it.
func (j *judge) others(ctx context.Context, out *Explanation) error {
	about := j.Unexplained[out.Commit].Transactions
	for i := range j.Index.entries {
		e := &j.Index.entries[i]
		listed := slices.ContainsFunc(out.Transactions, func(c Claim) bool { return c.TransactionID == e.id })
		if listed || !slices.Contains(about, e.id) && (out.PatchID == "" || e.patch != out.PatchID) {
			continue
		}
		t := j.trusted()
		if s := j.subjects[out.Commit]; s != nil {
			t = s.terms(e)
		}
		known, err := j.claim(e, t)
		if err != nil {
			return err
		}
		claim := *known
		if claim.Explains {
			claim.Explains, claim.Code, claim.Why = false, UsedUp, "it accounts for another commit"
			if slices.Contains(about, e.id) && out.Code != UsedUp {
				claim.Code, claim.Why = out.Code, "its patch is in this change, and more than that"
			}
		}
		out.Transactions = append(out.Transactions, claim)
	}
	return nil
}

// Between are commits for the judge: those of a branch up to one, and another that changes
// all that differs between the two at once.
func Between(branch []code.BranchCommit, from, to string) []code.BranchCommit {
	return append([]code.BranchCommit{{ID: to, Parents: []string{from}}}, slices.DeleteFunc(slices.Clone(branch), func(c code.BranchCommit) bool { return c.ID == to })...)
}
