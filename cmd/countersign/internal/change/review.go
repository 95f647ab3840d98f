package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/report"
)

// reviewFlags say what is proposed: one of the inputs, and what it is for.
type reviewFlags struct {
	patch, pack, proposal, bundle string
	from                          string              // the format of patch, one of input.Formats; "" is Git's
	suggestion                    string              // a review comment, by its address or number
	comment                       forge.ReviewComment // that it names, once it was read
	worktree                      bool
	made                          *input.Change // by the command itself
	recipe, needle                string
	files                         []string
	summary, trace                string
	requestedBy                   []string // the names of who asked for it
	dryRun                        bool
	pr                            int
	prDiff                        bool
	bundleOut                     string
	to                            policy.Target
	as                            string
	again                         string // a transaction that is proposed once more, on HEAD as it is
	base, below                   string // the commit that it is put on, "" for HEAD, and the directory that its names are in
	others                        Others
}

func (f *reviewFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.patch, "patch", "p", "", "propose a Git diff, `FILE` or - for stdin: of git diff, show or format-patch, or fenced with ```diff in a text")
	flags.StringVar(&f.from, "from", "", "what --patch is, `FORMAT`: auto finds out, or git, unified, codex, blocks, edits, gh-aw, codex-action, claude-code-action (docs/agents.md)")
	flags.StringVar(&f.as, "as", "", "what several patches in one file are, `HOW`: one change, or, with review, each a transaction of its own, once what it builds on is committed")
	flags.StringVar(&f.base, "base", "", "put it on this `COMMIT` and not on HEAD; with --to branch or ref")
	flags.StringVar(&f.below, "below", "", "the names in the diff are below this `DIR`: it was made there, with --relative")
	flags.StringVar(&f.pack, "pack", "", "propose the patch.json in `DIR`")
	flags.StringVar(&f.proposal, "proposal", "", "propose what a Proposal asks for, `FILE` or - for stdin")
	flags.StringVar(&f.bundle, "bundle", "", "check that the Proposal comes from this bundle, `FILE`")
	flags.StringVar(&f.suggestion, "suggestion", "", "propose what a review comment suggests, for its pull request: the comment's `URL` or number")
	flags.BoolVar(&f.worktree, "worktree", false, "propose what the working tree has beyond HEAD")
	flags.StringVar(&f.recipe, "recipe", "", "propose what a recipe makes: remove-todo")
	flags.StringVar(&f.needle, "needle", "", "remove-todo: delete every line that contains this `TEXT`")
	flags.StringSliceVar(&f.files, "files", nil, "remove-todo: in these files only (default: all text files)")
	flags.StringVarP(&f.summary, "summary", "s", "", "what the change is for, shown to the approver")
	flags.StringSliceVar(&f.requestedBy, "requested-by", nil, "who asked for the change: a `LOGIN`, or the address of a Git identity")
	flags.StringVar(&f.trace, "trace", "", "keep what the proposer did before: an agent's log, or steps as JSON Lines, `FILE`")
}

// given returns the names of the inputs that were given.
func (f *reviewFlags) given() []string {
	var out []string
	for _, in := range []struct {
		name string
		set  bool
	}{
		{"--patch", f.patch != ""}, {"--pack", f.pack != ""}, {"--proposal", f.proposal != ""},
		{"--again", f.again != ""}, {"--suggestion", f.suggestion != ""}, {"--worktree", f.worktree}, {"the agent's change", f.made != nil}, {"--recipe", f.recipe != ""}, {"--pr-diff", f.prDiff},
	} {
		if in.set {
			out = append(out, in.name)
		}
	}
	return out
}

// asked are those whom --requested-by names.
func (f *reviewFlags) asked() ([]ledger.Requester, error) {
	all, err := input.NamedAll(f.requestedBy, ledger.AskedByFlag)
	if err != nil {
		err = &console.UsageError{Message: "--requested-by " + err.Error(), Hint: "--requested-by LOGIN"}
	}
	return all, err
}

// patchOf is the file that --patch names where a transaction is given: it is that one's
// patch, and no new proposal. Whatever else is about a proposal is refused there.
func (f *reviewFlags) patchOf(args []string) (file string, err error) {
	if len(args) == 0 {
		return "", nil
	}
	other := *f
	other.patch = ""
	if given := other.given(); len(given) > 0 {
		return "", &console.UsageError{Message: "both a transaction and " + given[0] + " were given", Hint: "give one of them"}
	}
	if f.from != "" || f.summary != "" || f.base != "" || f.below != "" {
		return "", &console.UsageError{Message: "--from, --summary, --base and --below belong to a new proposal, and a transaction was given", Hint: "leave them out"}
	}
	return f.patch, nil
}

func reviewCommand(c *console.Console) *cobra.Command {
	var f reviewFlags
	cmd := &cobra.Command{
		Use:   "review FILE | --from FORMAT FILE | --pack DIR | --proposal FILE | --suggestion URL | --worktree | --recipe NAME | --again TX",
		Short: "Record a proposal; writes nothing but the ledger",
		Example: `  countersign review fix.patch --summary "close the file"
  git diff main...topic | countersign review --patch -
  countersign review --from auto answer.md
  countersign review --suggestion https://github.com/OWNER/NAME/pull/7#discussion_r12
  countersign review --recipe remove-todo --needle "TODO(bot)"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(f.given()) > 0 {
				return console.NoArgs(cmd, args)
			}
			return console.UpToOne(cmd, args)
		},
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			if len(args) > 0 {
				f.patch = args[0]
			}
			if err := f.check(); err != nil {
				return console.Outcome{}, err
			}
			s, err := session.OpenAs(c, session.Opening{HandsOver: f.bundleOut != ""})
			if err != nil {
				return console.Outcome{}, err
			}
			return reviewChange(cmd.Context(), s, f)
		}),
	}
	f.Add(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "check the patch and print its patch_id; record nothing")
	cmd.Flags().StringVar(&f.again, "again", "", "propose what this `TX` does on HEAD as it is now, in its place, and show what is different")
	cmd.Flags().IntVar(&f.pr, "pr", 0, "propose it for the pull request with this `NUMBER`, on its head")
	cmd.Flags().BoolVar(&f.prDiff, "pr-diff", false, "with --pr: the pull request's own diff, which is approved and never applied")
	cmd.Flags().StringVar((*string)(&f.to), "to", "", "where it is to be applied, `PLACE`: worktree, branch or ref; for a branch or ref the working tree is not looked at")
	cmd.Flags().StringVar(&f.bundleOut, "bundle-out", "", "record nothing; write what is proposed to `FILE`, for \"settle --bundle\" elsewhere")
	return cmd
}

// pullRequestTo is --to where a change becomes a pull request.
const pullRequestTo = "pull-request"

func proposeCommand(c *console.Console, others Others) *cobra.Command {
	f := reviewFlags{others: others}
	var to string
	cmd := &cobra.Command{
		Use:   "propose FILE | TX [--patch FILE]",
		Short: "Record a proposal, and make a pull request of it",
		Long: `propose records a proposal, as review does. With --to pull-request, or where the Policy says
"apply.to: pull_request", it pushes a branch with exactly these bytes and opens a pull request
from it. A review there that approves it approves the change (docs/pull-requests.md).

It needs a token (COUNTERSIGN_TOKEN) that may write contents and pull requests.`,
		Example: "  countersign propose fix.patch --to pull-request\n  countersign propose tx_01J --to pull-request",
		Args:    console.UpToOne,
		RunE: c.Does(func(cmd *cobra.Command, args []string) (done console.Outcome, err error) {
			s, err := session.Open(c)
			if err != nil {
				return done, err
			}
			args = takeFile(cmd.Context(), s, &f, args)
			if _, err := f.patchOf(args); err != nil {
				return done, err
			}
			opens, err := becomesPull(cmd.Context(), s, f, to)
			switch {
			case err != nil:
				return done, err
			case opens && f.as == "each":
				return done, &console.UsageError{Message: "--as each and a pull request do not go together", Hint: "propose them one at a time"}
			case opens:
				s, id, err := openPull(cmd.Context(), s, f, args)
				if err != nil {
					return console.About(id), err
				}
				snap, err := s.Runner.Ledger(cmd.Context(), ledger.Dir(id))
				if err != nil {
					return console.About(id), err
				}
				return showReviewed(cmd.Context(), s, f, review.Reviewed{ID: id, Ledger: snap})
			case len(args) > 0:
				return done, &console.UsageError{Message: args[0] + " is proposed already", Hint: "--to " + pullRequestTo + " makes a pull request of it"}
			}
			f.to = policy.Target(to)
			if err := f.check(); err != nil {
				return done, err
			}
			return reviewChange(cmd.Context(), s, f)
		}),
	}
	f.Add(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "check the patch and print its patch_id; record nothing")
	cmd.Flags().StringVar(&to, "to", "", "`PLACE`: pull-request makes one of it; or where it is to be applied, worktree, branch or ref")
	return cmd
}

// becomesPull reports whether a change is to become a pull request: somebody says so, or
// the Policy does and nobody says otherwise.
func becomesPull(ctx context.Context, s *session.Session, f reviewFlags, to string) (bool, error) {
	if to != "" || f.dryRun || f.pr > 0 || f.suggestion != "" {
		return to == pullRequestTo && !f.dryRun, nil
	}
	return s.Runner.OpensPulls(ctx)
}

// openPull makes a pull request of a transaction, a new one for a patch, and returns
// the transaction that people approve.
func openPull(ctx context.Context, s *session.Session, f reviewFlags, args []string) (_ *session.Session, id string, err error) {
	if err := s.WorkShared(); err != nil {
		return nil, "", err
	}
	if s.Client == nil {
		return nil, "", s.NoClient("there is no token to open a pull request with")
	}
	if console.InWorkflow(s.Getenv) { // before anything is pushed
		if _, err := session.TrustedEvent(s.Console); err != nil {
			return nil, "", err
		}
	}
	if s.Runner.Actor, err = s.Client.Viewer(ctx); err != nil { // the forge knows nobody else by an id
		return nil, "", err
	}
	f.to = policy.ToPullRequest
	if len(args) == 0 && len(f.given()) > 0 {
		done, err := propose(ctx, s, f)
		if err != nil {
			return nil, done.ID, err
		}
		id, s = done.ID, s.With(s.Runner.With(done.Learnt))
	} else if _, id, err = s.Find(ctx, args, false); err != nil {
		return nil, "", err
	} else if s, err = s.Give(ctx, args, f.patch); err != nil {
		return nil, id, err
	}
	o, err := f.others.Open(ctx, s, id)
	if err != nil {
		return nil, id, err
	}
	s.Say("it is pull request %d now", o.PullRequest)
	return s, o.ID, nil
}

// check refuses flags that do not go together.
func (f *reviewFlags) check() error {
	_, err := (&session.TargetFlags{To: string(f.to)}).Options(false)
	return cmp.Or(
		console.RefuseIf(f.from != "" && f.as == "each", "--from and --as each do not go together", "propose them one at a time"),
		console.RefuseIf(!slices.Contains([]string{"", "one", "each"}, f.as) || f.as == "each" && f.bundleOut != "",
			"--as must be one or each, and a bundle holds one change", "--as one"),
		console.RefuseIf(f.pr < 0 || f.prDiff && f.pr == 0, "no pull request was named", "--pr N"), err,
	)
}

func reviewChange(ctx context.Context, s *session.Session, f reviewFlags) (console.Outcome, error) {
	if f.pr > 0 || f.suggestion != "" {
		if err := s.WorkShared(); err != nil {
			return console.Outcome{}, err
		}
	}
	if f.again != "" {
		return reviewAgain(ctx, s, f)
	}
	if f.bundleOut != "" {
		return writeBundle(ctx, s, f)
	}
	for f.as != "each" {
		proposed, err := propose(ctx, s, f)
		if err == nil {
			return showReviewed(ctx, s, f, proposed)
		}
		if f.as = askSeveral(s.Console, err, f, f.pr == 0 && f.trace == ""); f.as == "" {
			return console.About(proposed.ID), err
		}
	}
	return reviewEach(ctx, s, f)
}

// reviewAgain proposes what a transaction does once more, on HEAD as it is.
func reviewAgain(ctx context.Context, s *session.Session, f reviewFlags) (console.Outcome, error) {
	switch given := f.given(); {
	case len(given) > 1:
		return console.Outcome{}, &console.UsageError{Message: strings.Join(given, " and ") + " were given", Hint: "give one of them"}
	case f.base+f.below+f.summary+f.trace+f.bundleOut+f.from+f.as != "" || f.pr > 0:
		return console.Outcome{}, &console.UsageError{Message: "--again proposes the same patch with the same words, on HEAD", Hint: "give no other flag than --dry-run beside it"}
	}
	_, id, err := s.Find(ctx, []string{f.again}, false)
	if err != nil {
		return console.Outcome{}, err
	}
	done, was, err := review.Anew(ctx, s.Runner, id, f.dryRun)
	s.Learn(done.Learnt)
	out := console.About(cmp.Or(done.ID, id))
	var unfit *review.UnfitError
	if f.again = id; errors.As(err, &unfit) {
		return out, &unfitError{f, fmt.Errorf("%s: %w", id, err), unfit}
	}
	if err != nil {
		return out, err
	}
	if !s.Flags.JSON {
		now := s.Finder().RedactDiff(done.Patchset.Bytes())
		old := s.Finder().RedactDiff(was).String()
		if err := console.Emit(s.Stdout, now.Show(func(now string) string { return report.Between([]byte(old), []byte(now), s.Style()) })); err != nil {
			return out, err
		}
	}
	return showReviewed(ctx, s, f, done)
}

// reviewEach proposes each patch of a file by itself: all of them, or none where one cannot be. Of a series, whose
// patches build on each other, it proposes what fits: those at the beginning that are there already are passed over, and
// what builds on others is left until these are committed, as a proposal is for a tree that a commit has.
func reviewEach(ctx context.Context, s *session.Session, f reviewFlags) (out console.Outcome, err error) {
	if f.patch == "" || f.pr > 0 || f.trace != "" {
		return out, &console.UsageError{Message: "--as each works only with --patch", Hint: "propose them one at a time"}
	}
	rules, err := s.Runner.Rules(ctx, "")
	if err != nil {
		return out, err
	}
	asked, err := f.asked()
	if err != nil {
		return out, err
	}
	raw, err := s.ReadLimited(f.patch, rules.Policy.Limits.Bytes)
	if err != nil {
		return out, console.InFile(f.patch, err)
	}
	each, err := input.Each(raw, f.summary)
	if err != nil {
		return out, console.InFile(f.patch, err)
	}
	for i := range each {
		if each[i], err = placed(ctx, s, each[i], f); err != nil {
			return out, err
		}
		each[i].RequestedBy = asked
		each[i].Target = f.to
	}
	there, fits, err := fitting(ctx, s, each)
	if err != nil {
		return out, console.InFile(f.patch, err)
	}
	if there > 0 {
		s.Say("there already: %d of %d patches", there, len(each))
	}
	for _, in := range fits {
		done, err := review.Run(ctx, s.Runner, in, f.dryRun)
		if err == nil {
			out, err = showReviewed(ctx, s, f, done)
		}
		if err != nil {
			return out, err
		}
	}
	if left := len(each) - there - len(fits); left > 0 {
		s.Say("left until those that they build on are committed: %d of %d patches; then", left, len(each))
		s.Say("hint: %s", s.Typed(strings.Join(f.words("review", "each"), " "), out.Transaction))
	}
	return out, nil
}

// fitting returns how many patches of a file, from the first, are in its base already, and which of the others fit that.
// What fits neither that nor what those before it make is an error.
func fitting(ctx context.Context, s *session.Session, each []input.Change) (there int, fits []input.Change, err error) {
	r := s.Runner
	try := func(in input.Change) error { // records nothing
		done, err := review.Run(ctx, r, in, true)
		s.Learn(done.Learnt)
		return err
	}
	if console.As[*review.UnfitError](try(each[0])) {
		for there = len(each); there > 0; there-- {
			has, err := review.Has(ctx, r, each[there-1].After(each[:there-1]...))
			if err != nil {
				return 0, nil, err
			}
			if has {
				break
			}
		}
	}
	if there == len(each) {
		return 0, nil, try(each[there-1].After(each[:there-1]...))
	}
	for i, in := range each[there:] {
		err := try(in)
		if err == nil {
			fits = append(fits, in)
		} else if !console.As[*review.UnfitError](err) || i == 0 || try(in.After(each[there:there+i]...)) != nil {
			return there, nil, fmt.Errorf("patch %d of %d, by itself: %w", there+i+1, len(each), err)
		}
	}
	return there, fits, nil
}

func showReviewed(ctx context.Context, s *session.Session, f reviewFlags, done review.Reviewed) (console.Outcome, error) {
	if f.dryRun {
		return console.About(done.ID), showDryRun(s, done)
	}
	g, err := s.Runner.History(ctx, done.Ledger, done.ID)
	if err != nil {
		return console.About(done.ID), err
	}
	rep, err := s.Report(ctx, g)
	if err != nil {
		return console.About(done.ID), err
	}
	if base := g.Transaction().Pointers.Proposal.BaseCommit; s.Flags.Push && f.pr == 0 && f.suggestion == "" && !console.InWorkflow(s.Getenv) {
		if on, err := s.Repo.OnRemote(ctx, base); err == nil && !on {
			s.Say("commit %.12s, on which it is proposed, is on no branch of the remote yet: push it as well, or others cannot check what this is about", base)
		}
	}
	rep.Verdict, rep.InputSHA256, rep.Offsets = nil, done.InputSHA256, done.Patchset.Offsets
	if !s.Flags.JSON {
		rep.Verdict = &g.Verdict
	}
	return s.Tell(rep, "")
}

func showDryRun(s *session.Session, done review.Reviewed) error {
	if s.Flags.JSON {
		doc := map[string]any{
			"base_commit": done.BaseCommit, "dry_run": true, "patch_id": done.PatchID, "fingerprint": "patchset:" + done.PatchID,
			"risks": done.Risks,
		}
		if done.InputSHA256 != "" {
			doc["input_sha256"] = done.InputSHA256
		}
		if len(done.Supersedes) > 0 {
			doc["supersedes"] = done.Supersedes
		}
		if len(done.Patchset.Offsets) > 0 {
			doc["offsets"] = done.Patchset.Offsets
		}
		return s.PrintJSON(doc)
	}
	if len(done.Supersedes) > 0 {
		s.Say("this would supersede %s", strings.Join(done.Supersedes, ", "))
	}
	risks := report.RiskLines(*done.Risks.Redacted(s.Finder().Text), s.Style()) + "\n"
	shown := s.Finder().RedactDiff(done.Patchset.Bytes())
	return console.Emit(s.Stdout, shown.Show(func(diff string) string {
		text := risks + report.Diff([]byte(diff), s.Style()) + report.Renamed([]byte(diff), s.Style()) + "\npatch " + done.PatchID + " (dry run: nothing was recorded)\n"
		if given := strings.TrimPrefix(done.InputSHA256, "sha256:"); given != "" && given != done.PatchID {
			text += "file given " + given + "\n"
		}
		return text
	}))
}
