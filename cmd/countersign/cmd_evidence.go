package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/replay"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/workpaper"
)

type evidenceFlags struct {
	from, to, branch, repos, cache, csv, out, atLeast string
	installed                                         bool
}

func (a *App) evidenceCommand() *cobra.Command {
	var f evidenceFlags
	cmd := &cobra.Command{
		Use:   "evidence",
		Short: "List the changes of a period: who proposed, who approved",
		Long: `evidence lists each change that came to a branch in a period, as an auditor asks for it: who
proposed it, who approved it, whether these were others, and which checks ran. What is not as it should be
stands first. It audits the ledger before; of one that does not verify it says nothing else.

The days are UTC's, and --to is the last; without both it is the month before. When a change came is told by the ledger, never by what
commits say of their own time; a change of which the ledger does not tell enough is in more than
one period, and none is in no period. docs/evidence.md has each member, and what counts as an exception.

It reads this clone's ledger and branch: fetch both before. With --repos it fetches each repository
of a file itself, one a line (NAME ADDRESS, and a branch if it is not the default one), and keeps
them in --cache, where the next run goes on; with --installed it does so for all repositories of
an app's installation, whose token is in COUNTERSIGN_TOKEN. A repository that cannot be read is an
exception, and the rest goes on.

Exit code 1 means that there are exceptions, and the report is written all the same; 2, a usage
error; 3, that something cannot be read or written.`,
		Example: `  countersign evidence --from 2026-01-01 --to 2026-03-31 --branch main
  countersign evidence --from 2026-01-01 --to 2026-03-31 --branch main --csv q1.csv --out q1
  countersign evidence --from 2026-01-01 --to 2026-03-31 --repos repositories.txt --out q1`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.evidence(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.from, "from", "", "the first `DAY`, such as 2026-01-01 (UTC); without both, the month before")
	cmd.Flags().StringVar(&f.to, "to", "", "the last `DAY`")
	cmd.Flags().StringVar(&f.branch, "branch", "", "the `BRANCH` whose changes are listed; with --repos the default one of each, if not given")
	cmd.Flags().StringVar(&f.repos, "repos", "", "fetch and list the repositories in `FILE`")
	cmd.Flags().BoolVar(&f.installed, "installed", false, "fetch and list the repositories of an app's installation")
	cmd.Flags().StringVar(&f.cache, "cache", "", "with --repos or --installed: keep what was fetched in `DIR` (XDG_CACHE_HOME has one otherwise)")
	cmd.Flags().StringVar(&f.atLeast, "at-least", "", "how strong decisions must be to account for a change: hardware, signed, forge_twice, forge or shell")
	cmd.Flags().StringVar(&f.csv, "csv", "", "also write the table to `FILE`, as CSV")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "also write pages, the table and the JSON document into `DIR`, which is new or empty")
	return cmd
}

// An evidenceError is a report with exceptions. Unread is of how many repositories nothing can be
// told.
type evidenceError struct{ rows, unread int }

func (e *evidenceError) Error() string {
	text := report.Counted(e.rows, "exception") + " in the report"
	if e.unread > 0 {
		text += fmt.Sprintf("; of %s it cannot be told what changed", ledger.Plural(e.unread, "repository", "repositories"))
	}
	return text
}

func (*evidenceError) Hint() string { return "docs/evidence.md says what each reason means" }

func (a *App) evidence(ctx context.Context, f evidenceFlags) error {
	if f.from == "" && f.to == "" { // the month before
		first := a.Now().UTC()
		first = time.Date(first.Year(), first.Month()-1, 1, 0, 0, 0, 0, time.UTC)
		f.from, f.to = first.Format(time.DateOnly), first.AddDate(0, 1, -1).Format(time.DateOnly)
	}
	p, err := evidence.ParsePeriod(f.from, f.to)
	if err != nil {
		return &cli.UsageError{Message: err.Error(), Hint: "give its first and last day: --from 2026-01-01 --to 2026-03-31"}
	}
	if err := checkStrength(f.atLeast); err != nil {
		return err
	}
	many := f.repos != "" || f.installed
	switch {
	case f.repos != "" && f.installed:
		return &cli.UsageError{Message: "--repos and --installed exclude each other", Hint: ""}
	case !many && f.cache != "":
		return &cli.UsageError{Message: "--cache is for repositories that are fetched", Hint: "name them: --repos FILE"}
	case !many && f.branch == "":
		return &cli.UsageError{Message: "there is no branch", Hint: "name the one whose changes are asked for: --branch main"}
	case many && (a.flags.knownTip != "" || a.flags.tipFile != ""):
		return &cli.UsageError{Message: "--known-tip and --tip-file are of one ledger", Hint: "leave them out: --cache keeps the tip of each"}
	}
	if f.out != "" {
		if err := a.emptyDir(f.out); err != nil {
			return err
		}
	}
	var parts []evidence.Part
	if many {
		parts, err = a.evidenceOfAll(ctx, f, p)
	} else {
		parts, err = a.evidenceHere(ctx, f, p)
	}
	if err != nil {
		return err
	}
	made, err := a.cleanEvidence(evidence.New(p, a.Now(), parts))
	if err != nil {
		return err
	}
	if err := a.writeEvidence(made, f); err != nil {
		return err
	}
	if err := a.result(made, workpaper.Text(made)); err != nil || made.OK {
		return err
	}
	failed := &evidenceError{}
	for _, repo := range made.Repositories {
		failed.rows += repo.Exceptions
		if !repo.Read {
			failed.unread++
		}
	}
	return failed
}

// cleanEvidence takes secrets out of all of a report, before any form is made of it.
func (a *App) cleanEvidence(r evidence.Report) (clean evidence.Report, err error) {
	raw, err := a.redactJSON(r)
	if err == nil {
		err = canon.Unmarshal([]byte(raw.String()), &clean)
	}
	return clean, err
}

// emptyDir refuses a directory that has anything in it: pages of another report would stay there.
func (a *App) emptyDir(name string) error {
	entries, err := os.ReadDir(a.path(name))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fileError(report.Clean(name), err)
	case len(entries) > 0:
		return &cli.UsageError{Message: fmt.Sprintf("%s is not empty", report.Clean(name)), Hint: "name a new directory with --out DIR"}
	}
	return nil
}

// writeEvidence writes the files that were asked for.
func (a *App) writeEvidence(r evidence.Report, f evidenceFlags) error {
	sheet := []byte(workpaper.CSV(r))
	if f.csv != "" {
		if err := writeFile(a.path(f.csv), sheet); err != nil {
			return fileError(report.Clean(f.csv), err)
		}
	}
	if f.out == "" {
		return nil
	}
	files := workpaper.Pages(r)
	files["evidence.csv"] = sheet
	var err error
	if files["evidence.json"], err = canon.Line(r); err != nil {
		return err
	}
	dir := a.path(f.out)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fileError(report.Clean(f.out), err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeFile(filepath.Join(dir, name), files[name]); err != nil {
			return fileError(report.Clean(filepath.Join(f.out, name)), err)
		}
	}
	return nil
}

// evidenceHere is the part of this clone's repository.
func (a *App) evidenceHere(ctx context.Context, f evidenceFlags, p evidence.Period) ([]evidence.Part, error) {
	branch := f.branch
	repo, settings, err := a.openRepo()
	if err != nil {
		return nil, err
	}
	a.repo, repo.Config = repo, settings // Main closes it
	local, err := a.localLedger(repo)
	if err != nil {
		return nil, err
	}
	name := github.RepositoryOf(settings.RemoteURL(a.flags.remote))
	if name == "" { // it is on no forge: its directory has a name
		root, err := repo.Worktree()
		if err != nil {
			return nil, err
		}
		name = filepath.Base(cmp.Or(root, repo.Dir()))
	}
	h, err := local.History(ctx, gitstore.HistoryOptions{})
	if err != nil {
		return nil, err
	}
	clock := explain.NewClock(h)
	found, err := a.runAudit(ctx, repo, h, verdict.Options{Over: clock}, a.line.Show)
	if err != nil {
		return nil, err
	}
	if found.OK {
		if err := local.Remember(h); err != nil {
			return nil, err
		}
		a.seen = local.Seen
	}
	policyCommit, err := a.policyCommit(ctx, repo)
	if err != nil {
		return nil, err
	}
	part, err := a.evidenceOf(ctx, judgedRepo{repo, local, h.Tip(), found, clock, name, branch, branch, policyCommit, a.links(), f.atLeast}, p)
	return []evidence.Part{part}, err
}

// A judgedRepo is a repository whose ledger was audited: where its branch is found, and how
// that is called; and the commit of the Policy whose rules explain commits.
type judgedRepo struct {
	repo         *gitstore.Repo
	local        *gitstore.Ledger
	tip          string
	found        audit.Result
	clock        *explain.Clock // what the audit read through
	name         string
	ref, branch  string
	policyCommit string
	links        forge.Links
	atLeast      string
}

// evidenceOf is the part of one repository. Of a ledger that does not verify it has nothing but that.
func (a *App) evidenceOf(ctx context.Context, j judgedRepo, p evidence.Period) (evidence.Part, error) {
	about := evidence.Repository{Name: j.name, Branch: j.branch, LedgerRef: a.flags.ledgerRef, LedgerCommit: j.tip, Web: j.links.Web}
	if newer := j.found.Undecidable(); newer != nil {
		return evidence.Failed(about, evidence.Unreadable, newer.Error()), nil
	}
	if !j.found.OK {
		text := "the ledger is not all here, and so not verified"
		if len(j.found.Findings) > 0 {
			first := j.found.Findings[0]
			text = fmt.Sprintf("the ledger does not verify: %s; the first: %s %.12s %s: %s", report.Counted(j.found.Count, "finding"), first.RuleID, first.Commit, first.Path, first.Message)
		}
		return evidence.Failed(about, evidence.Unsound, text), nil
	}
	snap, err := j.local.At(ctx, j.tip)
	if err != nil {
		return evidence.Part{}, err
	}
	if err := writing.CheckSchema(snap.Tree); err != nil {
		return evidence.Part{}, err
	}
	judge := branchJudge{Options: explain.Options{Ledger: snap.Tree, Code: j.repo, Now: a.Now(), AtLeast: replay.Strength(j.atLeast)}, repo: j.repo, policy: j.policyCommit}
	if judge.Index, err = explain.NewIndex(snap.Tree, j.clock); err != nil {
		return evidence.Part{}, err
	}
	tip, err := j.repo.BranchTip(ctx, j.ref)
	if err != nil {
		return evidence.Part{}, err
	}
	judged, all, err := judge.branch(ctx, tip, "")
	if err != nil {
		return evidence.Part{}, err
	}
	if about.Commit, err = j.repo.Commit(ctx, j.ref); err != nil {
		return evidence.Part{}, err
	}
	return evidence.Source{
		Repository: about, Links: j.links, Ledger: snap.Tree, Index: judge.Index, Judged: judged, Commits: all, Now: a.Now(),
	}.Changes(p)
}
