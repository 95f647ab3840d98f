package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/report"
)

// An explanation is what audit --commit says: which transactions propose
// exactly the change from one commit to another, and whether one of them
// explains that it was made. PatchID is "" for a change that none can propose;
// Reason says why nothing explains it.
type explanation struct {
	From         string        `json:"from"`
	Commit       string        `json:"commit"`
	PatchID      string        `json:"patch_id"`
	Explained    bool          `json:"explained"`
	Reason       string        `json:"reason"`
	LedgerRef    string        `json:"ledger_ref"`
	LedgerCommit string        `json:"ledger_commit"`
	Transactions []audit.Claim `json:"transactions"`
}

// An unexplainedError is a commit that no transaction explains.
type unexplainedError struct{ commit, reason string }

func (e *unexplainedError) Error() string {
	return fmt.Sprintf("no transaction explains commit %s: %s", e.commit, e.reason)
}

// auditCommit looks for the transactions of one change to the code.
func (a *App) auditCommit(ctx context.Context, repo *gitstore.Repo, local *gitstore.Ledger, f auditFlags) error {
	if f.from != "" || f.branch != "" || f.signers != "" {
		return &usageError{"--commit goes with none of the other flags of audit", "audit the ledger, then the commit"}
	}
	snap, err := local.Snapshot(ctx)
	if err == nil && snap.Tip == "" {
		err = gitstore.ErrNoLedger
	}
	if err == nil {
		err = ledger.CheckSchema(snap.Tree)
	}
	if err != nil {
		return err
	}
	a.seen = local.Seen
	from, to, err := commitRange(ctx, repo, f.commit)
	if err != nil {
		return err
	}
	e := explanation{From: from, Commit: to, LedgerRef: a.flags.ledgerRef, Transactions: []audit.Claim{}}
	if err := e.find(ctx, repo, snap); err != nil {
		return err
	}
	if a.flags.json {
		err = a.printJSON(e)
	} else {
		err = a.print(explanationText(e))
	}
	if err == nil && !e.Explained {
		err = &unexplainedError{e.Commit, e.Reason}
	}
	return err
}

// commitRange reads "C", which stands for the commit before it and C, or "A..B".
func commitRange(ctx context.Context, repo *gitstore.Repo, name string) (from, to string, err error) {
	before, after, isRange := strings.Cut(name, "..")
	if !isRange {
		after = name
	}
	if to, err = codeCommit(ctx, repo, after); err != nil {
		return "", "", err
	}
	if isRange {
		from, err = codeCommit(ctx, repo, before)
	} else {
		from, err = repo.FirstParent(ctx, to)
	}
	return from, to, err
}

func codeCommit(ctx context.Context, repo *gitstore.Repo, name string) (string, error) {
	id, err := repo.Commit(ctx, name)
	var none *gitstore.NoCommitError
	if errors.As(err, &none) {
		err = &usageError{none.Error(), "give all 40 digits of an id, HEAD, a branch or a tag"}
	}
	return id, err
}

// find makes the change's patch_id from the files alone, and looks it up.
func (e *explanation) find(ctx context.Context, repo *gitstore.Repo, snap ledger.Snapshot) error {
	e.LedgerCommit = snap.Tip
	set, err := repo.Diff(ctx, e.From, e.Commit)
	var unfit *patch.Error
	if errors.As(err, &unfit) {
		e.Reason = "no transaction can propose it: " + ledger.OneLine(unfit.Error(), 300)
		return nil
	}
	if err != nil {
		return err
	}
	e.PatchID = set.ID()
	if e.Transactions, err = audit.Claims(snap.Tree, e.PatchID); err != nil {
		return err
	}
	e.Reason = "none proposes this change"
	for _, c := range e.Transactions {
		e.Explained = e.Explained || c.Explains
		e.Reason = "of the transaction that proposes it: " + c.Why
	}
	if n := len(e.Transactions); n > 1 {
		e.Reason = fmt.Sprintf("of the %d transactions that propose it: %s", n, e.Transactions[n-1].Why)
	}
	if e.Explained {
		e.Reason = ""
	}
	return nil
}

func explanationText(e explanation) string {
	var b strings.Builder
	verdict := "made by no transaction: " + report.Clean(e.Reason)
	if e.Explained {
		verdict = "explained"
	}
	fmt.Fprintf(&b, "%.12s..%.12s is %s\n", e.From, e.Commit, verdict)
	if e.PatchID != "" {
		fmt.Fprintf(&b, "patch %s\n", e.PatchID)
	}
	for _, c := range e.Transactions {
		claimText(&b, c)
	}
	return b.String()
}

func claimText(b *strings.Builder, c audit.Claim) {
	fmt.Fprintf(b, "%s %s: %s\n  proposed by %s", c.TransactionID, c.Status, report.Clean(c.Why), report.Clean(c.Proposer.Login))
	if c.PullRequest > 0 {
		fmt.Fprintf(b, " in pull request %d of %s", c.PullRequest, report.Clean(c.Repository))
	}
	fmt.Fprintf(b, ", on %.12s\n", c.BaseCommit)
	for _, d := range c.Decisions {
		said := map[ledger.Decision]string{ledger.Approve: "approved", ledger.Deny: "denied"}[d.Decision]
		fmt.Fprintf(b, "  %s (%s) by %s at %s, %s", said, d.Kind, report.Clean(d.Author.Login), d.CreatedAt, d.Source)
		if d.URL != "" {
			fmt.Fprintf(b, " %s", report.Clean(d.URL))
		}
		if d.Reason != "" {
			fmt.Fprintf(b, ": %s", report.Clean(d.Reason))
		}
		b.WriteString("\n")
	}
}
