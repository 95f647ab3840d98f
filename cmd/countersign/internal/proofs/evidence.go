package proofs

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/workpaper"
)

type evidenceFlags struct {
	from, to, csv, out, atLeast string
	of                          session.Repositories
	strict, online              bool
	requests                    int
	packets                     packetFlags
}

func evidenceCommand(c *console.Console) *cobra.Command {
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

--online asks the forge which checks and deployments it has of a change now. Nothing of that is on record,
and it is shown as what it is; what the forge does not tell is not known.

--sample draws some of the changes by a seed, and writes for each what an auditor asks for: pages, diffs,
the records as they are, how to check them, and a manifest with the hash of each file, which the key of
--sign-key or COUNTERSIGN_SIGN_KEY signs, or one of your own. "countersign verify --packet DIR" checks it.

Exit code 1 means that there are exceptions, or with --strict that there are some which nobody independent
has reviewed (countersign dispose); the report is written all the same. 2 is a usage error; 3, that
something cannot be read or written.`,
		Example: `  countersign evidence --from 2026-01-01 --to 2026-03-31 --branch main
  countersign evidence --from 2026-01-01 --to 2026-03-31 --branch main --csv q1.csv --out q1
  countersign evidence --from 2026-01-01 --to 2026-03-31 --branch main --sample 25 --seed 'audit 2026/7' --packets packets
  countersign evidence --from 2026-01-01 --to 2026-03-31 --repos repositories.txt --out q1`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return collectEvidence(cmd.Context(), c, f) },
	}
	cmd.Flags().StringVar(&f.from, "from", "", "the first `DAY`, such as 2026-01-01 (UTC); without both, the month before")
	cmd.Flags().StringVar(&f.to, "to", "", "the last `DAY`")
	cmd.Flags().StringVar(&f.of.Branch, "branch", "", "the `BRANCH` whose changes are listed; with --repos the default one of each, if not given")
	cmd.Flags().StringVar(&f.of.File, "repos", "", "fetch and list the repositories in `FILE`")
	cmd.Flags().BoolVar(&f.of.Installed, "installed", false, "fetch and list the repositories of an app's installation")
	cmd.Flags().StringVar(&f.of.Cache, "cache", "", "with --repos or --installed: keep what was fetched in `DIR` (XDG_CACHE_HOME has one otherwise)")
	cmd.Flags().StringVar(&f.atLeast, "at-least", "", "how strong decisions must be to account for a change: hardware, signed, forge_twice, forge or shell")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "fail where somebody independent has not reviewed an exception, and not for those that have an end")
	cmd.Flags().BoolVar(&f.online, "online", false, "also ask the forge about each change, or each that --sample draws: its checks and deployments now")
	cmd.Flags().IntVar(&f.requests, "requests", mostAsked, "with --online: send at most `N` requests; of what is left nothing is known")
	cmd.Flags().StringVar(&f.csv, "csv", "", "also write the table to `FILE`, as CSV")
	cmd.Flags().IntVar(&f.packets.size, "sample", 0, "draw `N` of the changes, and write a packet for each")
	cmd.Flags().StringVar(&f.packets.seed, "seed", "", "draw by `TEXT`: the same text draws the same of the same changes")
	cmd.Flags().StringVar(&f.packets.dir, "packets", "", "the `DIR` for the packets, which is new or empty")
	cmd.Flags().BoolVar(&f.packets.pdf, "pdf", false, "also print the pages of the packets, with Chromium")
	cmd.Flags().StringVar(&f.packets.key, "key", "", "sign the packets with your own SSH key: a `FILE`, a public one's meaning the agent's")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "also write pages, the table, the JSON document and OSCAL into `DIR`, which is new or empty")
	return cmd
}

// mostAsked is how many requests are sent, unless somebody says otherwise.
const mostAsked = 500

// period is the one that was asked for, or the month before.
func (f evidenceFlags) period(now time.Time) (evidence.Period, error) {
	if f.from == "" && f.to == "" {
		first := now.UTC()
		first = time.Date(first.Year(), first.Month()-1, 1, 0, 0, 0, 0, time.UTC)
		f.from, f.to = first.Format(time.DateOnly), first.AddDate(0, 1, -1).Format(time.DateOnly)
	}
	p, err := evidence.ParsePeriod(f.from, f.to)
	if err != nil {
		err = &console.UsageError{Message: err.Error(), Hint: "give its first and last day: --from 2026-01-01 --to 2026-03-31"}
	}
	return p, err
}

// many says whether repositories are fetched.
func (f evidenceFlags) many() bool { return f.of.File != "" || f.of.Installed }

// check refuses what does not go together, and what would be written over.
func (f *evidenceFlags) check(c *console.Console) error {
	many := f.many()
	err := cmp.Or(
		checkStrength(f.atLeast),
		console.RefuseIf(f.of.File != "" && f.of.Installed, "--repos and --installed exclude each other", ""),
		console.RefuseIf(!many && f.of.Cache != "", "--cache is for repositories that are fetched", "name them: --repos FILE"),
		console.RefuseIf(many && f.online, "--online asks about this clone's repository", "leave out --repos and --installed"),
		console.RefuseIf(f.requests < 1 || !f.online && f.requests != mostAsked, "--requests takes a number from 1 on, with --online", "countersign evidence --online --requests 500"),
		console.RefuseIf(!many && f.of.Branch == "", "there is no branch", "name the one whose changes are asked for: --branch main"),
		console.RefuseIf(many && (c.Flags.KnownTip != "" || c.Flags.TipFile != ""), "--known-tip and --tip-file are of one ledger", "leave them out: --cache keeps the tip of each"),
	)
	if err == nil && f.out != "" {
		err = c.EmptyDir("--out", f.out)
	}
	if err == nil {
		err = f.packets.check(c, many)
	}
	return err
}

func collectEvidence(ctx context.Context, c *console.Console, f evidenceFlags) error {
	p, err := f.period(c.Now())
	if err == nil {
		err = f.check(c)
	}
	if err != nil {
		return err
	}
	var parts []evidence.Part
	var s *session.Session
	if f.many() {
		parts, err = evidenceOfAll(ctx, c, f, p)
	} else {
		s, parts, err = evidenceHere(ctx, c, f, p)
	}
	if err != nil {
		return err
	}
	found := evidence.New(p, c.Now(), parts)
	if f.online {
		if err := askAbout(ctx, s, &found, f); err != nil {
			return err
		}
	}
	made, err := cleanEvidence(c, found)
	if err != nil {
		return err
	}
	if err := writeEvidence(c, made, f); err != nil {
		return err
	}
	switch {
	case f.packets.dir == "":
	case !made.Complete:
		c.Say("no packets are made: which changes there were cannot be told")
	default:
		if err := (packer{Session: s, packetFlags: f.packets, masks: c.Masks(), report: made}).write(ctx); err != nil {
			return err
		}
	}
	if err := c.Result(made, workpaper.Text(made, session.Style(c).Red)); err != nil {
		return err
	}
	return exceptions(made, f.strict)
}

// exceptions is the error that a report has some, or does not know; if strict, that it has some that nobody independent
// has reviewed.
func exceptions(made evidence.Report, strict bool) error {
	open, unread := made.Count("unreviewed"), 0
	for _, repo := range made.Repositories {
		if !repo.Read {
			unread++
		}
	}
	text, hint := report.Counted(made.Count("exceptions"), "exception")+" in the report", "docs/evidence.md says what each reason means"
	switch {
	case made.OK, strict && made.Complete && open == 0:
		return nil
	case strict:
		text = fmt.Sprintf("%s without a review that counts, %d overdue", report.Counted(open, "exception"), made.Count("exception_"+string(evidence.Overdue)))
		if i := slices.IndexFunc(made.Rows, func(r evidence.Row) bool { return r.Commit != "" && r.Open() }); i >= 0 {
			hint = "countersign dispose " + made.Rows[i].Commit + ` --as accepted -m "…"`
		}
	}
	if unread > 0 {
		text += fmt.Sprintf("; of %s it cannot be told what changed", ledger.Plural(unread, "repository", "repositories"))
	}
	return fault.Fail(text, hint)
}

// cleanEvidence takes secrets out of all of a report, before any form is made of it.
func cleanEvidence(c *console.Console, r evidence.Report) (clean evidence.Report, err error) {
	raw, err := c.RedactJSON(r)
	if err == nil {
		err = canon.Unmarshal([]byte(raw.String()), &clean)
	}
	return clean, err
}

// writeEvidence writes the files that were asked for.
func writeEvidence(c *console.Console, r evidence.Report, f evidenceFlags) error {
	sheet := []byte(workpaper.CSV(r))
	if f.csv != "" {
		if err := atomicfile.Write(c.Path(f.csv), sheet); err != nil {
			return console.FileError(report.Clean(f.csv), err)
		}
	}
	if f.out == "" {
		return nil
	}
	files := workpaper.Pages(r)
	files["evidence.csv"] = sheet
	raw, err := canon.Line(r)
	if err != nil {
		return err
	}
	files[evidence.ReportFile] = raw
	if files["assessment-results.json"], err = canon.Line(workpaper.OSCAL(r, raw, console.Version())); err != nil {
		return err
	}
	return c.WriteFiles(f.out, files)
}

// evidenceOfAll fetches repositories and has a part for each of them, in their order. One that
// fails is a part that says so.
func evidenceOfAll(ctx context.Context, c *console.Console, f evidenceFlags, p evidence.Period) (parts []evidence.Part, err error) {
	all, err := session.Each(ctx, c, f.of, func(r session.Fetched) (evidence.Part, error) {
		return evidenceOf(ctx, r.Session, judgedRepo{r.Listed.Name, r.Ref, cmp.Or(r.Listed.Branch, "HEAD"), r.Head, r.On, f.atLeast, func(string, int, int) {}}, p)
	})
	for _, one := range all {
		about := evidence.Repository{Name: one.Listed.Name, Branch: cmp.Or(one.Listed.Branch, "HEAD"), LedgerRef: c.Flags.LedgerRef}
		switch {
		case one.NoLedger:
			one.Is = evidence.Failed(about, evidence.NoLedger, "it has no ledger on "+about.LedgerRef+": nothing is on record of what came to the branch")
		case one.Err != nil:
			one.Is = evidence.Failed(about, evidence.Unreadable, console.OneLine(one.Err))
		}
		parts = append(parts, one.Is)
	}
	return parts, err
}

// evidenceHere is the part of this clone's repository.
func evidenceHere(ctx context.Context, c *console.Console, f evidenceFlags, p evidence.Period) (s *session.Session, _ []evidence.Part, err error) {
	s, err = session.OpenLocal(c)
	if err != nil {
		return nil, nil, err
	}
	branch, repo := f.of.Branch, s.Repo
	name := github.RepositoryOf(repo.Config.RemoteURL(c.Flags.Remote))
	if name == "" { // it is on no forge: its directory has a name
		name = filepath.Base(cmp.Or(repo.Worktree(), repo.Dir()))
	}
	policyCommit, err := session.PolicyCommit(ctx, c, repo)
	if err != nil {
		return nil, nil, err
	}
	part, err := evidenceOf(ctx, s, judgedRepo{name, branch, branch, policyCommit, s.Links(), f.atLeast, c.Line.Show}, p)
	return s, []evidence.Part{part}, err
}

// A judgedRepo is a repository: where its branch is found, and how that is called; the commit of
// the Policy whose rules explain commits; and what is told how far the audit is.
type judgedRepo struct {
	name         string
	ref, branch  string
	policyCommit string
	links        forge.Links
	atLeast      string
	show         func(what string, done, total int)
}

// evidenceOf audits the ledger of one repository, and is its part. Of a ledger that does not verify it has nothing but that.
func evidenceOf(ctx context.Context, s *session.Session, j judgedRepo, p evidence.Period) (evidence.Part, error) {
	h, err := s.Local.History(ctx, gitstore.HistoryOptions{})
	if err != nil {
		return evidence.Part{}, err
	}
	clock := explain.NewClock(h) // what the audit reads through
	found, err := session.RunAudit(ctx, s, h, verdict.Options{Over: clock}, j.show)
	if err == nil && found.OK {
		err = s.Remember(h)
	}
	if err != nil {
		return evidence.Part{}, err
	}
	about := evidence.Repository{Name: j.name, Branch: j.branch, LedgerRef: s.Flags.LedgerRef, LedgerCommit: h.Tip(), Web: j.links.Web}
	if newer := found.Undecidable(); newer != nil {
		return evidence.Failed(about, evidence.Unreadable, newer.Error()), nil
	}
	if !found.OK {
		text := "the ledger is not all here, and so not verified"
		if len(found.Findings) > 0 {
			first := found.Findings[0]
			text = fmt.Sprintf("the ledger does not verify: %s; the first: %s %.12s %s: %s", report.Counted(found.Count, "finding"), first.RuleID, first.Commit, first.Path, first.Message)
		}
		return evidence.Failed(about, evidence.Unsound, text), nil
	}
	if s.SetGCPercent != nil { // what is known of each change is kept: to look through it as often as in an audit is half of the work
		s.SetGCPercent(100)
	}
	snap, err := s.Local.At(ctx, h.Tip())
	if err != nil {
		return evidence.Part{}, err
	}
	if err := writing.CheckSchema(snap.Tree); err != nil {
		return evidence.Part{}, err
	}
	judge, err := session.JudgeBy(j.policyCommit, s, snap.Tree, clock, j.atLeast)
	if err != nil {
		return evidence.Part{}, err
	}
	tip, err := s.Repo.BranchTip(ctx, j.ref)
	if err != nil {
		return evidence.Part{}, err
	}
	judged, all, err := judge.Branch(ctx, tip, "")
	if err != nil {
		return evidence.Part{}, err
	}
	if about.Commit, err = s.Repo.Commit(ctx, j.ref); err != nil {
		return evidence.Part{}, err
	}
	source, err := judge.Source(ctx, judged, all)
	if err != nil {
		return evidence.Part{}, err
	}
	source.Repository, source.Links = about, j.links
	return source.Changes(p)
}
