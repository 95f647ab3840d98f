package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A Claim is a transaction that proposes a change, and whether it explains that
// the change was made: it was applied, or it is about a pull request's own diff
// and was approved. Why says so in words.
type Claim struct {
	TransactionID string        `json:"transaction_id"`
	Status        ledger.Status `json:"status"`
	Explains      bool          `json:"explains"`
	Why           string        `json:"why"`
	Kind          string        `json:"kind"` // of the proposal
	BaseCommit    string        `json:"base_commit"`
	AppliedCommit string        `json:"applied_commit"` // "" for a working tree, and where none was made
	Repository    string        `json:"repository"`     // of the pull request, else ""
	PullRequest   int           `json:"pull_request"`   // 0 for none
	Proposer      ledger.Actor  `json:"proposer"`
	Decisions     []Said        `json:"decisions"`
}

// Said is a decision that was recorded. Kind is what was asked for.
type Said struct {
	Kind       string          `json:"kind"`
	Decision   ledger.Decision `json:"decision"`
	Author     ledger.Actor    `json:"author"`
	Permission string          `json:"permission"`
	Source     string          `json:"source"`
	URL        string          `json:"url"`
	CreatedAt  string          `json:"created_at"`
	Reason     string          `json:"reason"`
}

// Claims returns the transactions that propose a patch, oldest first. tree is
// the ledger's tip. One whose record does not verify explains nothing.
func Claims(tree fs.FS, patchID string) ([]Claim, error) {
	listed, err := ledger.Proposals(tree, patchID)
	if err != nil {
		return nil, err
	}
	denials, err := ledger.Denials(tree, patchID)
	if err != nil {
		return nil, err
	}
	out := []Claim{}
	for _, l := range listed {
		if err := ledger.CheckID(l.TransactionID); err != nil {
			return nil, err
		}
		log, err := ledger.Read(tree, l.TransactionID)
		if err != nil {
			return nil, err
		}
		c, err := claim(log, patchID, len(denials) > 0)
		if err == nil && c.Explains {
			err = c.verify(tree, log)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func claim(log *ledger.Log, patchID string, denied bool) (Claim, error) {
	tx := log.Transaction()
	if tx.PatchID() != patchID {
		return Claim{}, &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New("it is listed for a patch that it does not propose")}
	}
	p := tx.Pointers.Proposal
	c := Claim{
		TransactionID: tx.TransactionID, Status: tx.Status, Kind: p.Kind, BaseCommit: p.BaseCommit,
		PullRequest: p.PullRequest, Proposer: tx.Proposer, Decisions: said(log),
	}
	if p.Repository != nil {
		c.Repository = p.Repository.Name
	}
	done := ledger.Of[*ledger.ApplyComplete](log)
	if i := slices.IndexFunc(done, func(d *ledger.ApplyComplete) bool { return d.Success }); i >= 0 {
		c.Explains, c.Why, c.AppliedCommit = true, "it was applied", done[i].CommitAfter
		return c, nil
	}
	c.Explains, c.Why = gateOnly(tx, c.Decisions, denied)
	return c, nil
}

// gateOnly: a transaction that nothing is applied of is completed when it was
// merged as approved. Before, it is proposed and not awaiting approval, with an
// approval recorded, exactly while its verdict is approved.
func gateOnly(tx ledger.Transaction, decisions []Said, denied bool) (explains bool, why string) {
	approved := slices.ContainsFunc(decisions, func(s Said) bool { return s.Decision == ledger.Approve })
	switch {
	case !tx.GateOnly():
		return false, "it was not applied"
	case denied:
		return false, "the patch was denied"
	case tx.Status == ledger.Completed && approved:
		return true, "it was merged as approved"
	case tx.Status == ledger.Proposed && approved:
		return true, "it was approved when the ledger was last written"
	}
	return false, "it was not approved"
}

func said(log *ledger.Log) []Said {
	kinds := map[string]string{}
	for _, q := range ledger.Of[*ledger.ApprovalRequest](log) {
		kinds[q.ApprovalRequestID] = q.Kind
	}
	out := []Said{}
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		out = append(out, Said{
			Kind: kinds[d.ApprovalRequestID], Decision: d.Decision, Author: d.Source.Author, Permission: d.Source.Permission,
			Source: d.Source.Kind, URL: d.Source.URL, CreatedAt: d.Source.CreatedAt, Reason: d.Reason,
		})
	}
	return out
}

// verify holds the record to its rules, and decides again from it.
func (c *Claim) verify(tree fs.FS, log *ledger.Log) error {
	dir, err := fs.Sub(tree, ledger.Dir(c.TransactionID))
	if err != nil {
		return err
	}
	found := append(ledger.CheckOwn(dir, c.TransactionID), new(approval.Policies).Redo(dir, log)...)
	if len(found) > 0 {
		c.Explains, c.Why = false, fmt.Sprintf("its record does not verify: %s %s: %s", found[0].RuleID, found[0].Path, found[0].Message)
	}
	return nil
}
