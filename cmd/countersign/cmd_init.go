package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/terminal"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/report"
)

type initFlags struct {
	doctor, check, harden, force, dryRun, interactive bool
	fleet, organization                               bool
	gate, inline                                      bool
	given                                             func(flag string) bool
	uses, branch, ledgerRef                           string
	app                                               int64
}

func (a *App) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write the Policy and the GitHub workflows into the repository",
		Long: `init writes .github/countersign.yml, which says who must approve, and two workflows:
countersign-events (an example of a bot, and what tells of reviews, with no right but to read)
and countersign, which calls the jobs with rights at the commit of --uses. The Policy and
countersign-events are yours to change and are never written over; a changed countersign.yml
is written over with --force alone.
The files that are there are updated: what changes in them is shown first, and in a terminal you are
asked. --interactive asks who must approve, and writes that into the Policy.

What bots propose is settled; with --gate the diffs of pull requests themselves are put up for
approval too. --fleet adds countersign-fleet, which settles many pull requests at once; --organization adds
countersign-organization, which starts that workflow in all repositories of an organisation
(docs/scaling.md). Once they are there they are kept up to date like the others.

With --check it writes nothing and says what will not work: the token's rights, rules for
pushes, the files on the default branch. With --harden it prints what protects the
repository further, as requests to GitHub's API.`,
		Example: "  countersign init --uses OWNER/countersign\n  countersign init --interactive\n  countersign init --check\n" +
			"  countersign init --harden --ledger-ref refs/heads/countersign-ledger --app 12345",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.given = cmd.Flags().Changed
			if cmd.Flags().Changed("ledger-ref") {
				f.ledgerRef = a.flags.ledgerRef
			}
			switch {
			case f.ledgerRef != "" && !scaffold.LedgerForm().MatchString(f.ledgerRef):
				return &usageError{fmt.Sprintf("--ledger-ref %+q cannot be the ledger's", f.ledgerRef), "a ledger ref looks like " + gitstore.LedgerRef}
			case f.check && f.harden:
				return &usageError{"--check and --harden were both given", "give one of them"}
			case f.uses != "" && !scaffold.UsesForm().MatchString(f.uses) && !scaffold.RepositoryForm().MatchString(f.uses):
				return &usageError{fmt.Sprintf("--uses %+q is not an action at a commit", f.uses), "--uses OWNER/countersign takes its newest release; a tag can be moved, so else name the 40 digits: OWNER/countersign@COMMIT"}
			case f.check:
				return a.initCheck(cmd.Context(), f)
			case f.harden:
				return a.initHarden(f)
			}
			return a.init(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.uses, "uses", "", "the `ACTION` that the workflows use: OWNER/countersign for its newest release, OWNER/countersign@COMMIT, or ./ in its own repository")
	flags.BoolVar(&f.gate, "gate", false, "guard pull requests themselves too: the check \"countersign\" passes once their own diff is approved")
	flags.BoolVar(&f.inline, "inline", false, "write all jobs into the workflow, in place of a call to one of ours; the default for GitHub Enterprise Server")
	flags.BoolVar(&f.fleet, scaffold.AskFleet, false, "also write a workflow that settles many pull requests at once")
	flags.BoolVar(&f.organization, scaffold.AskOrganization, false, "also write a workflow that starts countersign-fleet in every repository of an organisation")
	flags.BoolVar(&f.force, "force", false, "write over workflows that were changed")
	flags.BoolVar(&f.interactive, "interactive", false, "ask who must approve, how many, and what is guarded")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be written, and write nothing")
	flags.BoolVar(&f.check, "check", false, "write nothing; ask GitHub, and say what will not work")
	flags.BoolVar(&f.harden, "harden", false, "write nothing; print the requests that protect the ledger's branch and the signing key")
	flags.StringVar(&f.branch, "branch", "", "the default branch's `NAME`: with --check, where GitHub is not asked; with --harden (main)")
	flags.Int64Var(&f.app, "app", 0, "with --harden, the `NUMBER` of the app that alone may write the ledger's branch")
	return cmd
}

func (a *App) doctorCommand() *cobra.Command {
	f := initFlags{doctor: true}
	cmd := &cobra.Command{
		Use: "doctor", Short: "Say what does not work yet, and how to fix it", Args: noArgs,
		Long: `doctor looks at this clone, at the default branch's Policy and workflows, and at the repository on
GitHub where there is a token to ask it with. A line for each finding, with the command or the
setting that mends it. It changes nothing. The exit code is 1 if something will not work.`,
		Example: "  countersign doctor\n  COUNTERSIGN_TOKEN=$(gh auth token) countersign doctor --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.initCheck(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.branch, "branch", "", "the default branch's `NAME`, where GitHub is not asked")
	return cmd
}

// init plans the files, asks where somebody is there to be asked, and writes them.
func (a *App) init(ctx context.Context, f initFlags) error {
	repo, settings, err := a.openRepo()
	if err != nil {
		return err
	}
	dir, err := repo.Worktree()
	if err != nil {
		return err
	}
	if dir == "" {
		return &usageError{"the repository has no working tree to write into", "run it in a clone of it"}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	plan, err := a.planInit(ctx, repo, settings, root.FS(), f)
	if err != nil {
		return err
	}
	if plan.shown, err = a.showChanges(plan.files, f.dryRun); err != nil {
		return err
	}
	if !f.dryRun {
		if err := scaffold.Write(root, plan.files); err != nil {
			return &exitError{exitIO, err}
		}
	}
	return a.showInit(settings, plan, f.dryRun)
}

// An initPlan is what init writes, and whether the person has seen what it changes.
type initPlan struct {
	scaffold.Settings
	files []scaffold.Planned
	shown bool
}

// planInit finds out what the files are to say: as the flags and the person have it, else
// as the present ones do.
func (a *App) planInit(ctx context.Context, repo *gitstore.Repo, settings gitstore.Settings, tree fs.FS, f initFlags) (p initPlan, err error) {
	if f.uses != "" && !scaffold.UsesForm().MatchString(f.uses) {
		if f.uses, err = a.releaseOf(ctx, repo, settings, f.uses, ""); err != nil {
			return p, err
		}
	}
	asked := map[string]bool{scaffold.AskFleet: f.fleet, scaffold.AskOrganization: f.organization}
	p.files, p.Settings, err = scaffold.Plan(tree, scaffold.Settings{Uses: f.uses, Gate: f.gate, Inline: f.inline || !f.given("inline") && !a.forgeOf(settings).Calls(), LedgerRef: f.ledgerRef}, f.given, asked)
	if err != nil {
		return p, &exitError{exitIO, err}
	}
	if repository, tag := scaffold.ReleaseOf(debug.ReadBuildInfo()); p.Uses == scaffold.Placeholder && repository != "" {
		if uses, err := a.releaseOf(ctx, repo, settings, repository, tag); err != nil {
			a.say("the commit of %s %s is not known: %s", repository, tag, oneLine(err))
		} else {
			p.Uses = uses
		}
	}
	if f.interactive {
		if err := a.interview(&p); err != nil {
			return p, err
		}
	}
	scaffold.Replan(p.files, p.Settings)
	if names := scaffold.Overwritten(p.files); len(names) > 0 && !f.force {
		return p, &usageError{"nothing was written: changed since init wrote them are " + strings.Join(names, ", "), "init --force writes over them; the change is then only in Git's history"}
	}
	return p, nil
}

// releaseOf asks the server that has the program's repository which commit a release is,
// the newest one where no tag is given.
func (a *App) releaseOf(ctx context.Context, repo *gitstore.Repo, settings gitstore.Settings, repository, tag string) (string, error) {
	tags, err := a.tagsOf(ctx, repo, settings, repository)
	if err != nil {
		return "", err
	}
	pin, err := scaffold.Released(repository, tag, tags)
	if err != nil {
		return "", &usageError{err.Error(), "--uses OWNER/countersign@COMMIT names the 40 digits of a commit"}
	}
	return pin.String(), nil
}

// interview asks what the Policy is to say.
func (a *App) interview(p *initPlan) error {
	if p.files[0].State == scaffold.Theirs {
		return &usageError{policy.Path + " is yours: init does not write over it", "change it in an editor, then: " + a.again("policy", "check", policy.Path)}
	}
	person := a.person()
	if person == nil {
		return &usageError{"--interactive asks questions, and there is no terminal to ask them in", a.again("init") + " writes the defaults"}
	}
	defer person.Close()
	for _, q := range scaffold.Questions(&p.Settings) {
		for taken := false; !taken; {
			typed, err := a.answer(person, q.Ask(report.Style{Colour: a.colours(person)}))
			if err != nil {
				return &usageError{"not all questions were answered, so nothing was written", ""}
			}
			taken = q.Answer(typed)
		}
	}
	return nil
}

// showChanges shows what becomes of files that are there, in a terminal through the pager,
// and asks there whether to write it.
func (a *App) showChanges(files []scaffold.Planned, dryRun bool) (shown bool, err error) {
	person := a.person()
	if person == nil || dryRun || len(scaffold.Diff(files, false)) == 0 {
		return false, nil
	}
	defer person.Close()
	s := report.Style{Colour: a.colours(person)}
	if err := a.page(person, a.redact(report.Diff(scaffold.Diff(files, false), s))); err != nil {
		return false, err
	}
	typed, err := a.answer(person, s.Bold("Write these changes?")+" [y/N] ")
	if word := strings.ToLower(strings.TrimSpace(typed)); err != nil || word != "y" && word != "yes" {
		return false, &usageError{"nothing was written", ""}
	}
	return true, nil
}

// forgeOf is where the remote has the repository.
func (a *App) forgeOf(settings gitstore.Settings) scaffold.Forge {
	remote := settings.RemoteURL(a.flags.remote)
	return scaffold.ForgeOf(cmp.Or(a.Getenv("GITHUB_SERVER_URL"), wire.WebOf(remote)), cmp.Or(a.Getenv("GITHUB_REPOSITORY"), github.RepositoryOf(remote)))
}

func (a *App) showInit(settings gitstore.Settings, p initPlan, dryRun bool) error {
	diff := scaffold.Diff(p.files, dryRun)
	if p.shown {
		diff = nil
	}
	forge := a.forgeOf(settings)
	a.say("%s", forge.Say(a.flags.remote))
	next := scaffold.Next(p.Settings, p.files, a.again)
	if a.flags.json {
		shown := report.Diff([]byte(a.finder().RedactDiff(diff).String()), report.Style{})
		return a.printJSON(scaffold.Document(p.Settings, p.files, forge, next, shown, dryRun))
	}
	columns := 0
	if terminal.Is(a.Stdout) {
		columns, _ = terminal.Size(a.Stdout)
	}
	text := report.Diff(diff, a.style()) + scaffold.Table(p.files, dryRun, columns, a.style())
	if !a.flags.quiet && !dryRun {
		text += scaffold.Steps(next, columns)
	}
	return a.long(a.redact(text))
}

// initHarden prints the requests that protect the repository further.
func (a *App) initHarden(f initFlags) error {
	if !strings.HasPrefix(a.flags.ledgerRef, "refs/heads/") {
		a.say("rulesets cannot protect %s: they are for branches and tags, so whoever may push can rewrite or delete that ref", a.flags.ledgerRef)
		a.say("hint: countersign remembers the last tip and refuses a ledger that was rewritten; --ledger-ref refs/heads/countersign-ledger keeps it where a ruleset holds")
	} else if f.app == 0 {
		a.say("hint: --app NUMBER also keeps everybody but that app from adding to the ledger")
	}
	a.say("hint: after these requests, put the secrets COUNTERSIGN_SIGN_KEY and COUNTERSIGN_APP_KEY into the environment %q, and that name into the variable COUNTERSIGN_ENVIRONMENT", scaffold.SignEnvironment)
	return a.printJSON(scaffold.Harden(a.flags.ledgerRef, cmp.Or(f.branch, "main"), f.gate, f.app))
}

// initCheck says what will not work, and exits with 1 if anything will not. The
// files are those of this clone's copy of the default branch, the rest is
// GitHub's.
func (a *App) initCheck(ctx context.Context, f initFlags) error {
	repo, settings, err := a.openRepo()
	if err != nil {
		return err
	}
	client, err := a.forge(settings)
	if err != nil {
		return err
	}
	facts := scaffold.Facts{LedgerRef: a.flags.ledgerRef, Asked: client != nil, Branch: f.branch}
	if f.doctor {
		facts.Here = &scaffold.Here{Name: settings.Name, Email: settings.Email}
		if facts.Here.Ledger, err = repo.Ref(ctx, a.flags.ledgerRef); err != nil {
			return err
		}
	}
	if client != nil {
		branch, isBranch := strings.CutPrefix(facts.LedgerRef, "refs/heads/")
		if !isBranch {
			branch = ""
		}
		if facts.GitHub, err = client.Probe(ctx, branch); err != nil {
			return err
		}
		facts.Branch = facts.GitHub.DefaultBranch
	} else if f.branch == "" {
		if facts.Branch, err = repo.DefaultBranch(a.flags.remote); err != nil {
			return err
		}
		if facts.Branch == "" && !f.doctor {
			return &usageError{
				"this clone does not know which branch of " + report.Clean(a.flags.remote) + " is the default one",
				"--branch NAME, or git remote set-head " + report.ShellQuote(a.flags.remote) + " --auto; with COUNTERSIGN_TOKEN, GitHub says it",
			}
		}
	}
	if facts.Branch != "" {
		if err := a.readBranch(ctx, repo, &facts); err != nil {
			return err
		}
	}
	if client != nil {
		client.ProbeNamed(ctx, &facts.GitHub, facts.Teams(), facts.Workflows())
	}
	return a.showFindings(facts.Findings(), document{"commit": facts.Commit}, "will not work")
}

// showFindings prints findings, also into a document, and is an error if any fails: so
// many things are what is said.
func (a *App) showFindings(findings []scaffold.Finding, doc document, what string) error {
	failing, text, list := 0, "", []any{}
	for _, one := range findings {
		if one.Level == scaffold.LevelFails {
			failing++
		}
		text += fmt.Sprintf("%-6s %s\n", one.Level, report.Clean(one.Text))
		if one.Hint != "" && !a.flags.quiet {
			text += "       " + one.Hint + "\n"
		}
		list = append(list, document{"level": one.Level, "text": one.Text, "hint": one.Hint})
	}
	doc["findings"] = list
	if err := a.result(doc, text); err != nil || failing == 0 {
		return err
	}
	return &exitError{exitFailed, fmt.Errorf("%s %s", report.Counted(failing, "thing"), what)}
}

// readBranch reads the files of init as the default branch has them here.
func (a *App) readBranch(ctx context.Context, repo *gitstore.Repo, f *scaffold.Facts) error {
	ref := "refs/remotes/" + a.flags.remote + "/" + f.Branch
	var err error
	if f.Commit, err = refCommit(ctx, repo, ref); err != nil {
		return err
	}
	tree, err := repo.Tree(ctx, f.Commit)
	if err != nil {
		return err
	}
	return f.ReadTree(tree)
}
