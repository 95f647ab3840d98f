package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/audit/commits"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/sshsig"
	"github.com/countersign-dev/countersign/report"
)

// audited is what audit --json prints.
type audited struct {
	audit.Result
	Branch *commits.Branch `json:"branch,omitempty"`
	Online *online.Result  `json:"online,omitempty"`
}

// A branchError is a branch with commits that nothing accounts for.
type branchError struct {
	branch string
	n      int
}

func (e *branchError) Error() string {
	return fmt.Sprintf("%s has %s that nothing accounts for", e.branch, report.Counted(e.n, "commit"))
}

// explainBranch says of each commit of a branch what accounts for it, by the ledger's tip:
// all that was judged, and what of it is listed. The audit read the ledger through the clock.
func (a *App) explainBranch(ctx context.Context, repo *gitstore.Repo, local *gitstore.Ledger, tip string, clock *commits.Clock, f auditFlags) (r commits.Result, list *commits.Branch, err error) {
	snap, err := local.At(ctx, tip)
	if err != nil {
		return r, nil, err
	}
	since, err := a.readSince(ctx, repo, f.since)
	if err != nil {
		return r, nil, err
	}
	r, o, err := a.judgeBranch(ctx, repo, snap.Tree, clock, f.branch, since.commit)
	if err != nil {
		return r, nil, err
	}
	listed, shown := r.After(0), o.Index.First
	switch {
	case since.commit != "":
		shown = since.commit
		listed, err = commitsSince(ctx, repo, f.branch, since.commit)
	case !since.at.IsZero():
		n := o.Index.Before(r.Chain, since.at)
		if listed = r.After(n); n > 0 {
			shown = r.Chain[n-1].ID
		}
	}
	if err != nil {
		return r, nil, err
	}
	b := r.List(f.branch, shown, listed)
	return r, &b, nil
}

// judgeBranch judges the commits of a branch since the ledger began, or since a commit
// before that. What is judged does not depend on what is listed: a change that was
// approved once is not approved again because its first commit is not asked about.
func (a *App) judgeBranch(ctx context.Context, repo *gitstore.Repo, tree fs.FS, clock *commits.Clock, branch, since string) (commits.Result, commits.Options, error) {
	o := commits.Options{Ledger: tree, Code: repo, Now: a.Now()}
	var err error
	if o.Index, err = commits.NewIndex(tree, clock); err != nil {
		return commits.Result{}, o, err
	}
	if o.Policy, o.BotKeys, err = a.commitRules(ctx, repo); err != nil {
		return commits.Result{}, o, err
	}
	from := o.Index.First
	if since != "" && from != "" {
		earlier, err := repo.Descends(ctx, from, since)
		if err != nil {
			return commits.Result{}, o, err
		}
		if earlier {
			from = since
		}
	}
	all, err := repo.CommitsSince(ctx, branch, from)
	if err != nil {
		return commits.Result{}, o, err
	}
	r, err := commits.Run(ctx, o, all)
	return r, o, err
}

// commitRules are the Policy in force and the keys of its bots.
func (a *App) commitRules(ctx context.Context, repo *gitstore.Repo) (policy.Policy, []commits.BotKeys, error) {
	commit, err := a.policyCommit(ctx, repo)
	if err != nil {
		return policy.Policy{}, nil, err
	}
	return commitRulesAt(ctx, repo, commit)
}

// commitRulesAt are those of the Policy in a commit.
func commitRulesAt(ctx context.Context, repo *gitstore.Repo, commit string) (policy.Policy, []commits.BotKeys, error) {
	rules, err := pipeline.ReadRules(ctx, repo, commit, "")
	if err != nil {
		return policy.Policy{}, nil, err
	}
	tree, err := repo.Tree(ctx, rules.Commit)
	if err != nil {
		return policy.Policy{}, nil, err
	}
	var keys []commits.BotKeys
	for i := range rules.Policy.Explained.Bots {
		var one commits.BotKeys
		raw, err := rules.Policy.ReadBotKeys(tree, i)
		if err == nil {
			one.Allowed, err = sshsig.ParseAllowedSigners(raw)
		}
		one.Err = err
		keys = append(keys, one)
	}
	return rules.Policy, keys, nil
}

func commitsSince(ctx context.Context, repo *gitstore.Repo, branch, since string) (func(string) bool, error) {
	late := map[string]bool{}
	all, err := repo.CommitsSince(ctx, branch, since)
	for _, c := range all {
		late[c.ID] = true
	}
	return func(id string) bool { return late[id] }, err
}

// since is what --since says: a commit, or a time; neither where it was not given.
type since struct {
	commit string
	at     time.Time
}

var ageForm = lazyregexp.New(`^([1-9][0-9]{0,3})([dw])$`)

// readSince reads a commit, a day in UTC, a time of RFC 3339, or an age in days or weeks.
func (a *App) readSince(ctx context.Context, repo *gitstore.Repo, text string) (since, error) {
	if text == "" {
		return since{}, nil
	}
	if at, ok := a.readWhen(text); ok {
		return since{at: at}, nil
	}
	commit, err := codeCommit(ctx, repo, text)
	return since{commit: commit}, err
}

// readWhen reads a day in UTC, a time of RFC 3339, or an age in days or weeks.
func (a *App) readWhen(text string) (time.Time, bool) {
	if m := ageForm().FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return a.Now().AddDate(0, 0, -n*map[string]int{"d": 1, "w": 7}[m[2]]), true
	}
	return readDay(text)
}

// readDay reads a day, which begins in UTC, or a time.
func readDay(text string) (time.Time, bool) {
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// writeJSON writes a document into a file that somebody named.
func (a *App) writeJSON(name string, doc any) error {
	clean, err := a.redactJSON(doc)
	if err != nil {
		return err
	}
	if err := os.WriteFile(a.path(name), []byte(clean.String()), 0o666); err != nil {
		return fileError(report.Clean(name), err)
	}
	return nil
}
