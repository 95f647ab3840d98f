package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/action"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/watch"
	"github.com/countersign-dev/countersign/report"
)

// actionWatch is the stage watch: it audits the default branch by the remote's ledger, also
// one that does not verify, and keeps the issue.
func (a *App) actionWatch(ctx context.Context, step action.Step) error {
	on, err := a.issues()
	if err != nil {
		return err
	}
	of, err := on.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	since := step.Input("since")
	found, err := a.takeLedger(ctx, cmp.Or(step.Input("ledger-ref"), a.flags.ledgerRef))
	var branch judged
	switch {
	case since != "" && !canon.IsHex(since, 40) && !canon.IsHex(since, 64): // an age would close the issue as time goes by
		err = errors.Join(err, &cli.UsageError{Message: "the input since of the stage watch takes a whole commit id", Hint: ""})
	case err == nil && found:
		held := auditFlags{branch: of.Branch, since: since}
		if err = a.holdTo(ctx, step.Input("allowed-signers"), &held); err == nil {
			branch, err = a.audit(ctx, held)
		}
	case err == nil:
		err = gitstore.ErrNoLedger
	}
	return a.keepIssue(ctx, on, of.Branch, branch, err)
}

// holdTo has an audit demand what the default branch says, whatever is checked out: signatures of
// the keys in a file, "" for none, and as many witnesses as the Policy requires. A file that is named
// and is not there is an error.
func (a *App) holdTo(ctx context.Context, signers string, f *auditFlags) error {
	repo, settings, err := a.openRepo()
	if err != nil {
		return err
	}
	a.repo, repo.Config = repo, settings
	if signers != "" {
		commit, err := a.policyCommit(ctx, repo)
		if err != nil {
			return err
		}
		tree, err := repo.Tree(ctx, commit)
		if err != nil {
			return err
		}
		raw, err := policy.ReadNamed(tree, "allowed-signers", signers)
		if err != nil {
			return err
		}
		p, _, err := policy.Read(tree)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(p.Needs([]string{signers}, false), func(n policy.Need) bool { return n.Kind == policy.KindProtected }) {
			return &cli.UsageError{Message: fmt.Sprintf("%+q says whom the audit believes, and the Policy protects it as little as any file", signers), Hint: "put it under protected in the Policy: protected: [{paths: [/.github/ledger-signers]}]"}
		}
		if f.keys, err = a.signersIn(signers, raw); err != nil {
			return err
		}
	}
	p, names, err := a.policyWitnesses(ctx)
	switch {
	case err != nil || p.File == "":
		return err
	case p.Required == 0 && !names.Demands():
		a.say("the Policy requires no witness (witnesses.required), so that the ledger is held to none")
		return nil
	}
	shared, _, err := a.openShared()
	if err != nil {
		return err
	}
	f.witness = witnessFlags{file: p.File, quorum: p.Required, names: &names}
	_, err = shared.SyncBeside(ctx, gitstore.Checkpoints, a.Now())
	return err
}

// issues is where the issue is kept.
func (a *App) issues() (forge.Issues, error) {
	client, err := a.forgeOfWorkflow()
	if err != nil {
		return nil, err
	}
	if client == nil {
		return nil, a.noClient("there is no token to write an issue with")
	}
	on, has := client.(forge.Issues)
	if !has {
		return nil, &cli.UsageError{Message: "the issue about a branch is kept on GitHub alone, and the repository is on Gitea or Forgejo", Hint: "docs/forges.md says what there is for these"}
	}
	return on, nil
}

// keepIssue brings the issue about a branch up to date with what the audit came to, which
// failed with an error unless all is explained. It fails as the audit did, and if the issue
// could not be kept.
func (a *App) keepIssue(ctx context.Context, on forge.Issues, name string, branch judged, failure error) error {
	links := a.linksOf(a.Getenv("GITHUB_SERVER_URL") + "/" + a.Getenv("GITHUB_REPOSITORY"))
	w := watch.Audit{
		Branch: name, Command: "countersign audit --branch " + report.ShellQuote(name), OnBranch: branch.all.Has,
		Page:  func(commit string) string { return links.Page(0, forge.Posted{}, commit) },
		Clean: func(text string) string { return a.redact(text).String() },
	}
	var unexplained *branchError
	var exit *cli.ExitError
	if failure == nil || errors.As(failure, &unexplained) || errors.As(failure, &exit) && exit.Code == cli.ExitPages {
		w.Found = branch.list
	}
	if w.Found == nil {
		w.Failure = "the audit came to nothing"
		if failure != nil {
			w.Failure = oneLine(failure)
		}
	}
	done, err := watch.Keep(ctx, on, w)
	if done != "" {
		a.say("%s", done)
	}
	switch {
	case err == nil:
		return failure
	case failure == nil:
		return err
	}
	return a.worst([]error{failure, err})
}
