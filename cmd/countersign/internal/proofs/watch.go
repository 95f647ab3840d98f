package proofs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// Watch is the stage watch: it audits the default branch by the remote's ledger, also
// one that does not verify, and keeps the issue.
func Watch(ctx context.Context, c *console.Console, step console.Step) error {
	client, err := session.ForgeOfWorkflow(c)
	if err != nil {
		return err
	}
	on, err := session.Issues(c, client)
	if err != nil {
		return err
	}
	of, err := on.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	since := step.Input("since")
	found, _, err := session.TakeLedger(ctx, c, cmp.Or(step.Input("ledger-ref"), c.Flags.LedgerRef))
	var branch Judged
	switch {
	case since != "" && !canon.IsGitID(since): // an age would close the issue as time goes by
		err = errors.Join(err, &console.UsageError{Message: "the input since of the stage watch takes a whole commit id", Hint: ""})
	case err == nil && found:
		held := AuditFlags{Branch: of.Branch, Since: since}
		if err = holdTo(ctx, c, step.Input("allowed-signers"), &held); err == nil {
			branch, err = Audit(ctx, c, held)
		}
	case err == nil:
		err = gitstore.ErrNoLedger
	}
	return keepIssue(ctx, c, on, of.Branch, branch, err)
}

// holdTo has an audit demand what the default branch says, whatever is checked out: signatures of
// the keys in a file, "" for none, and as many witnesses as the Policy requires. A file that is named
// and is not there is an error.
func holdTo(ctx context.Context, c *console.Console, signers string, f *AuditFlags) error {
	s, err := session.OpenRepo(c)
	if err != nil {
		return err
	}
	if signers != "" {
		tree, p, err := s.Policy(ctx)
		if err != nil {
			return err
		}
		raw, err := policy.ReadNamed(tree, "allowed-signers", signers)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(p.Needs([]string{signers}, false), func(n policy.Need) bool { return n.Kind == policy.KindProtected }) {
			return &console.UsageError{Message: fmt.Sprintf("%+q says whom the audit believes, and the Policy protects it as little as any file", signers), Hint: "put it under protected in the Policy: protected: [{paths: [/.github/ledger-signers]}]"}
		}
		if f.Keys, err = session.SignersIn(c, signers, raw); err != nil {
			return err
		}
	}
	p, names, err := PolicyWitnesses(ctx, s)
	switch {
	case err != nil || p.File == "":
		return err
	case p.Required == 0 && !names.Demands():
		c.Say("the Policy requires no witness (witnesses.required), so that the ledger is held to none")
		return nil
	}
	with, err := session.OpenShared(c)
	if err != nil {
		return err
	}
	f.Witness = WitnessFlags{File: p.File, Quorum: p.Required, Names: &names}
	_, err = with.Shared.SyncBeside(ctx, gitstore.Checkpoints, c.Now())
	return err
}

// keepIssue brings the issue about a branch up to date with what the audit came to, which
// failed with an error unless all is explained. It fails as the audit did, and if the issue
// could not be kept.
func keepIssue(ctx context.Context, c *console.Console, on forge.Issues, name string, branch Judged, failure error) error {
	links := session.LinksOf(c, c.Getenv("GITHUB_SERVER_URL")+"/"+c.Getenv("GITHUB_REPOSITORY"))
	w := explain.Watch{
		Branch: name, Command: "countersign audit --branch " + escape.ShellQuote(name), OnBranch: branch.All.Has,
		Page:  func(commit string) string { return links.Page(0, forge.Posted{}, commit) },
		Clean: func(text string) string { return c.Redact(text).String() },
	}
	exit, _ := errors.AsType[*console.ExitError](failure)
	if failure == nil || errors.Is(failure, ErrBranch) || exit != nil && exit.Code == console.ExitPages {
		w.Found = branch.List
	}
	if w.Found == nil {
		w.Failure = "the audit came to nothing"
		if failure != nil {
			w.Failure = console.OneLine(failure)
		}
	}
	done, err := explain.KeepIssue(ctx, on, w)
	if done != "" {
		c.Say("%s", done)
	}
	switch {
	case err == nil:
		return failure
	case failure == nil:
		return err
	}
	return c.Worst([]error{failure, err})
}
