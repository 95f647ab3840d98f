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
		if err != nil {
			return nil, err
		}
		if c.Explains { // then the record is held to its rules, and decided again from
			dir, err := fs.Sub(tree, ledger.Dir(c.TransactionID))
			if err != nil {
				return nil, err
			}
			found := append(ledger.CheckOwn(dir, c.TransactionID), new(approval.Policies).Redo(dir, log)...)
			if len(found) > 0 {
				c.Explains, c.Why = false, fmt.Sprintf("its record does not verify: %s %s: %s", found[0].RuleID, found[0].Path, found[0].Message)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// An Explanation says which transactions propose exactly the change from one
// commit to another, and whether one of them explains that it was made. PatchID
// is "" for a change that none can propose; Reason says why nothing explains it.
type Explanation struct {
	From         string  `json:"from"`
	Commit       string  `json:"commit"`
	PatchID      string  `json:"patch_id"`
	Explained    bool    `json:"explained"`
	Reason       string  `json:"reason"`
	LedgerRef    string  `json:"ledger_ref"`
	LedgerCommit string  `json:"ledger_commit"`
	Transactions []Claim `json:"transactions"`
}

// Look looks a patch up in the ledger's tree. unfit is why the change is no
// patch, nil where it is one.
func (e *Explanation) Look(tree fs.FS, patchID string, unfit error) error {
	e.Transactions, e.Reason = []Claim{}, "none proposes this change"
	if unfit != nil {
		e.Reason = "no transaction can propose it: " + ledger.OneLine(unfit.Error(), 300)
		return nil
	}
	e.PatchID = patchID
	var err error
	if e.Transactions, err = Claims(tree, patchID); err != nil {
		return err
	}
	switch n := len(e.Transactions); {
	case slices.ContainsFunc(e.Transactions, func(c Claim) bool { return c.Explains }):
		e.Explained, e.Reason = true, ""
	case n == 1:
		e.Reason = "of the transaction that proposes it: " + e.Transactions[0].Why
	case n > 1:
		e.Reason = fmt.Sprintf("of the %d transactions that propose it: %s", n, e.Transactions[n-1].Why)
	}
	return nil
}

func claim(log *ledger.Log, patchID string, denied bool) (Claim, error) {
	tx := log.Transaction()
	if tx.PatchID() != patchID {
		return Claim{}, &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New("it is listed for a patch that it does not propose")}
	}
	p := tx.Pointers.Proposal
	c := Claim{
		TransactionID: tx.TransactionID, Status: tx.Status, Kind: p.Kind, BaseCommit: p.BaseCommit,
		PullRequest: p.PullRequest, Proposer: tx.Proposer, Decisions: []Said{},
	}
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		c.Decisions = append(c.Decisions, Said{
			Kind: log.Request(d.ApprovalRequestID).Kind, Decision: d.Decision, Author: d.Source.Author,
			Permission: d.Source.Permission, Source: d.Source.Kind, URL: d.Source.URL, CreatedAt: d.Source.CreatedAt, Reason: d.Reason,
		})
	}
	if p.Repository != nil {
		c.Repository = p.Repository.Name
	}
	late := false // whether it was denied after the apply began
	for _, p := range log.Payloads() {
		switch p := p.(type) {
		case *ledger.ApplyStart:
			late = false
		case *ledger.ApprovalDecision:
			late = late || p.Decision == ledger.Deny
		case *ledger.ApplyComplete:
			if !p.Success {
				continue
			}
			// Of an apply that was cut off, what is found is recorded, whoever put it there.
			c.Explains, c.Why, c.AppliedCommit = !late, "it was applied", p.CommitAfter
			if late {
				c.Why = "it was denied before it was found to be applied"
			}
			return c, nil
		}
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
