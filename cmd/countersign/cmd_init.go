package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/report"
)

type initFlags struct {
	doctor, check, harden, force, dryRun bool
	fleet, organization                  bool
	gate, gateSet                        bool
	uses, branch, ledgerRef              string
	app                                  int64
}

func (a *App) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write the Policy and the GitHub workflows into the repository",
		Long: `init writes .github/countersign.yml, which says who must approve, and four workflows:
countersign-propose (an example of a bot, with no rights but to read), countersign-relay,
countersign-settle and countersign-sweep. The first two files are yours to change and are
never written over; of the others, one that was changed is written over with --force alone.
What bots propose is settled; with --gate the diffs of pull requests themselves are put up for
approval too. --fleet adds countersign-fleet, which settles many pull requests at once; --organization adds
countersign-organization, which starts that workflow in all repositories of an organisation
(docs/scaling.md). Once they are there they are kept up to date like the others.

With --check it writes nothing and says what will not work: the token's rights, rules for
pushes, the files on the default branch. With --harden it prints what protects the
repository further, as requests to GitHub's API.`,
		Example: "  countersign init --uses OWNER/countersign@0123456789abcdef0123456789abcdef01234567\n  countersign init --check\n" +
			"  countersign init --harden --ledger-ref refs/heads/countersign-ledger --app 12345",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.gateSet = cmd.Flags().Changed("gate")
			if cmd.Flags().Changed("ledger-ref") {
				f.ledgerRef = a.flags.ledgerRef
			}
			switch {
			case f.ledgerRef != "" && !scaffold.LedgerForm().MatchString(f.ledgerRef):
				return &usageError{fmt.Sprintf("--ledger-ref %+q cannot be the ledger's", f.ledgerRef), "a ledger ref looks like " + gitstore.LedgerRef}
			case f.check && f.harden:
				return &usageError{"--check and --harden were both given", "give one of them"}
			case f.uses != "" && !scaffold.UsesForm().MatchString(f.uses):
				return &usageError{fmt.Sprintf("--uses %+q is not an action at a commit", f.uses), "a tag can be moved: OWNER/REPOSITORY@ and the 40 digits of the commit"}
			case f.check:
				return a.initCheck(cmd.Context(), f)
			case f.harden:
				return a.initHarden(f)
			}
			return a.init(f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.uses, "uses", "", "the `ACTION` that the workflows use: OWNER/countersign@COMMIT, or ./ in its own repository")
	flags.BoolVar(&f.gate, "gate", false, "guard pull requests themselves too: the check \"countersign\" passes once their own diff is approved")
	flags.BoolVar(&f.fleet, scaffold.AskFleet, false, "also write a workflow that settles many pull requests at once")
	flags.BoolVar(&f.organization, scaffold.AskOrganization, false, "also write a workflow that starts the former in every repository of an organisation")
	flags.BoolVar(&f.force, "force", false, "write over workflows that were changed")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be written, and write nothing")
	flags.BoolVar(&f.check, "check", false, "write nothing; ask GitHub, and say what will not work")
	flags.BoolVar(&f.harden, "harden", false, "write nothing; print the requests that protect the ledger's branch and the signing key")
	flags.StringVar(&f.branch, "branch", "", "the default branch's `NAME`: with --check, where GitHub is not asked; with --harden (main)")
	flags.Int64Var(&f.app, "app", 0, "with --harden, the `NUMBER` of the app that alone may write the ledger's branch")
	return cmd
}

func (a *App) doctorCommand() *cobra.Command {
	f := initFlags{doctor: true}
	cmd := &cobra.Command{
		Use: "doctor", Short: "Say what does not work here yet, and what mends it", Args: noArgs,
		Long: `doctor looks at this clone, at the default branch's Policy and workflows, and at the repository on
GitHub where there is a token to ask it with. A line for each finding, with the command or the
setting that mends it. It changes nothing. The exit code is 1 if something will not work.`,
		Example: "  countersign doctor\n  COUNTERSIGN_TOKEN=$(gh auth token) countersign doctor --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.initCheck(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.branch, "branch", "", "the default branch's `NAME`, where GitHub is not asked")
	return cmd
}

func (a *App) init(f initFlags) error {
	repo, err := gitstore.Open(a.flags.dir)
	if err != nil {
		return a.inDir(err)
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
	asked := map[string]bool{scaffold.AskFleet: f.fleet, scaffold.AskOrganization: f.organization}
	files, s, err := scaffold.Plan(root, scaffold.Settings{Uses: f.uses, Gate: f.gate, LedgerRef: f.ledgerRef}, f.gateSet, asked)
	if err != nil {
		return &exitError{exitIO, err}
	}
	var names []string
	for _, file := range files {
		if file.State == scaffold.Differs && !f.force {
			removed, added := scaffold.Changed(file.Have, file.Want)
			names = append(names, fmt.Sprintf("%s (%d lines would go, %d come)", file.Path, removed, added))
		}
	}
	if len(names) > 0 {
		return &usageError{"nothing was written: changed since init wrote them are " + strings.Join(names, ", "), "init --force writes over them; the change is then only in Git's history"}
	}
	if !f.dryRun {
		if err := scaffold.Write(root, files); err != nil {
			return &exitError{exitIO, err}
		}
	}
	return a.showInit(files, s, f.dryRun)
}

// initWords say what was done with a file in a state, and what would be.
var initWords = map[string][2]string{
	scaffold.Missing: {"written", "would be written"},
	scaffold.Same:    {"as it was", "stays as it is"},
	scaffold.Old:     {"brought up to date", "would be brought up to date"},
	scaffold.Theirs:  {"yours, left alone", "yours, stays as it is"},
	scaffold.Differs: {"written over", "would be written over"},
}

func (a *App) showInit(files []scaffold.Planned, s scaffold.Settings, dryRun bool) error {
	list, text := make([]any, len(files)), ""
	for i, file := range files {
		word := initWords[file.State][0]
		if dryRun {
			word = initWords[file.State][1]
		}
		if file.State == scaffold.Old || file.State == scaffold.Differs {
			removed, added := scaffold.Changed(file.Have, file.Want)
			word += fmt.Sprintf(" (-%d +%d lines)", removed, added)
		}
		text += fmt.Sprintf("%-43s %s\n", file.Path, word)
		list[i] = document{"path": file.Path, "state": file.State}
	}
	if s.Uses == scaffold.Placeholder {
		a.say("hint: the workflows name %s; run it again with --uses and the commit of a release", scaffold.Placeholder)
	} else {
		a.say("hint: commit these files to the default branch, then: %s", a.again("init", "--check"))
	}
	return a.result(document{"files": list, "uses": s.Uses, "gate": s.Gate, "dry_run": dryRun}, text)
}

// initHarden prints the requests that protect the repository further.
func (a *App) initHarden(f initFlags) error {
	if !strings.HasPrefix(a.flags.ledgerRef, "refs/heads/") {
		a.say("no ruleset reaches %s: rulesets are for branches and tags, so whoever may push can rewrite or delete that ref", a.flags.ledgerRef)
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
		facts.GitHub.Teams = client.ReadableTeams(ctx, facts.Teams())
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
