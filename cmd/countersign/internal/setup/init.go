// Package setup has the commands that set a repository up and say what is in force: init, doctor, policy, passkey, version, demo, conformance.
package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

// Commands are those that set a repository up, and the program.
func Commands(c *console.Console, explain *cobra.Command) []*cobra.Command {
	return []*cobra.Command{initCommand(c), doctorCommand(c), policyCommand(c, explain), passkeyCommand(c), demoCommand(c), versionCommand(c), conformanceCommand(c)}
}

type initFlags struct {
	scaffold.Setup
	doctor, check, harden, dryRun, pr bool
	fleet, organization, ledgerBranch bool
	pages, redact, watch, attest      bool
	digest                            bool
	mcp, agents                       bool
	branch                            string
	app                               int64
}

func (f initFlags) way() scaffold.Way {
	switch {
	case f.dryRun:
		return scaffold.WouldWrite
	case f.pr:
		return scaffold.Pushed
	}
	return scaffold.Wrote
}

func initCommand(c *console.Console) *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write the Policy and the GitHub workflows into the repository",
		Long: `init writes .github/countersign.yml, which says who must approve, and two workflows:
countersign-events, which has an example of a bot, reports reviews, and can only read; and
countersign, which calls the jobs with rights at the commit of --uses. The Policy and
countersign-events are yours to change, and init never overwrites them. It overwrites a changed
countersign.yml only with --force.
Run init again to update the files. It shows first what changes and, in a terminal, asks.
--interactive asks who must approve, and writes that into the Policy.

The workflows settle what bots propose. With --gate, the diffs of pull requests themselves are put
up for approval too. --fleet adds countersign-fleet, which settles many pull requests at once; --organization adds
countersign-organization, which starts that workflow in all repositories of an organisation
(docs/scaling.md). Once they are there, init keeps them up to date like the others.

--ledger-branch keeps the ledger on the branch countersign-ledger, where people see it beside the
others and a ruleset can protect it: the workflows and this clone use it from then on.

--ledger-repository keeps it in another, private repository (docs/ledger.md). The workflows need the
secret COUNTERSIGN_LEDGER_TOKEN for that one.

--pages adds countersign-pages, which publishes pages of the ledger (countersign site) with GitHub
Pages. Pages of a private repository can be public to everyone; they leave out diffs there, unless
--redact=false is given.

--attest adds countersign-attest, which signs a statement of each settled transaction, keeps it beside
the ledger and gives it to GitHub (docs/attestations.md). It signs without a key: a public log names the
repository for ever. It is refused where not everybody may read the repository or its ledger.

--watch adds countersign-watch, which audits the default branch and keeps one issue about commits
that nothing accounts for (docs/explain.md).

--digest adds countersign-digest, which tells once a day what waits (docs/queue.md).

With --mcp it writes none of these: it writes .mcp.json, in which clients of the Model Context
Protocol find "countersign mcp", and a section of AGENTS.md that has agents propose their changes.
It adds to files that are there, once the person agrees or with --force.

--agents writes these, and settings by which Claude Code, Codex and opencode deny their agents edits and commits
and say how to propose them. These are good manners: an agent can still write by a command of its own, and
"countersign agent" is what holds it.

With --check it writes nothing and says what will not work: the token's rights, rules for
pushes, the files on the default branch. With --harden it prints what protects the
repository further, as requests to GitHub's API.`,
		Example: "  countersign init --uses OWNER/countersign\n  countersign init --interactive\n  countersign init --ledger-branch\n  countersign init --mcp\n  countersign init --agents\n  countersign init --check\n" +
			"  countersign init --harden --ledger-ref refs/heads/countersign-ledger --app 12345",
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Given = cmd.Flags().Changed
			if f.Given("redact") {
				f.Redact = strconv.FormatBool(f.redact)
			}
			if err := initLedger(c, &f); err != nil {
				return err
			}
			switch err := f.refused(); {
			case err != nil:
				return err
			case f.mcp || f.agents:
				return initMCP(cmd.Context(), c, f)
			case f.check:
				return initCheck(cmd.Context(), c, f)
			case f.harden:
				return initHarden(c, f)
			}
			return setUp(cmd.Context(), c, f)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *initFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Uses, "uses", "", "the `ACTION` that the workflows use: OWNER/countersign for its newest release, OWNER/countersign@COMMIT, or ./ in its own repository")
	flags.BoolVar(&f.Gate, "gate", false, "guard pull requests themselves too: the check \"countersign\" passes once their own diff is approved")
	flags.BoolVar(&f.Inline, "inline", false, "write all jobs into the workflow, in place of a call to one of ours; the default for GitHub Enterprise Server")
	flags.BoolVar(&f.ledgerBranch, "ledger-branch", false, "keep the ledger on the branch countersign-ledger, in the workflows and in this clone")
	flags.StringVar(&f.LedgerRepository, "ledger-repository", "", "keep the ledger in the private repository `OWNER/NAME` on the same server: the Policy names it")
	flags.BoolVar(&f.fleet, scaffold.AskFleet, false, "also write a workflow that settles many pull requests at once")
	flags.BoolVar(&f.organization, scaffold.AskOrganization, false, "also write a workflow that starts countersign-fleet in every repository of an organisation")
	flags.BoolVar(&f.pages, scaffold.AskPages, false, "also write a workflow that publishes pages of the ledger with GitHub Pages")
	flags.BoolVar(&f.digest, scaffold.AskDigest, false, "also write a workflow that tells a team once a day what waits")
	flags.BoolVar(&f.watch, scaffold.AskWatch, false, "also write a workflow that opens an issue when a commit of the default branch is unexplained")
	flags.BoolVar(&f.attest, scaffold.AskAttest, false, "also write a workflow that attests what was settled; a public log names the repository for ever")
	flags.BoolVar(&f.redact, "redact", false, "the pages leave out diffs and what commands printed; by default where not everybody may read the repository")
	flags.BoolVar(&f.mcp, "mcp", false, "write the files alone that tell agents of \"countersign mcp\": .mcp.json and a section of AGENTS.md")
	flags.BoolVar(&f.agents, "agents", false, "write the files of --mcp, and settings by which Claude Code, Codex and opencode deny edits and commits")
	flags.BoolVar(&f.Force, "force", false, "write over workflows that were changed; with --mcp and --agents, change files that are there without being asked")
	flags.BoolVar(&f.Interactive, "interactive", false, "ask who must approve, how many, and what is guarded")
	flags.BoolVar(&f.pr, "pr", false, "write nothing here; push the files to the branch "+scaffold.Branch+" and open its pull request")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be written, and write nothing")
	flags.BoolVar(&f.check, "check", false, "write nothing; ask the forge, and say what will not work")
	flags.BoolVar(&f.harden, "harden", false, "write nothing; print the requests that protect the ledger's branch and the signing key")
	flags.StringVar(&f.branch, "branch", "", "the default branch's `NAME`: with --check, where the forge is not asked; with --harden (main); on Gitea and Forgejo, where the clone does not know it")
	flags.Int64Var(&f.app, "app", 0, "with --harden, the `NUMBER` of the app that alone may write the ledger's branch")
}

// initLedger is where the ledger is to be: as a flag says, else as the workflows have it,
// else as this clone has it.
func initLedger(c *console.Console, f *initFlags) error {
	if f.Given("ledger-ref") {
		f.LedgerRef = c.Flags.LedgerRef
	}
	switch {
	case f.ledgerBranch && f.LedgerRef != "" && f.LedgerRef != scaffold.LedgerBranch:
		return &console.UsageError{Message: fmt.Sprintf("--ledger-branch and --ledger-ref %+q were both given", f.LedgerRef), Hint: "give one of them"}
	case f.ledgerBranch:
		f.LedgerRef, c.Flags.LedgerRef = scaffold.LedgerBranch, scaffold.LedgerBranch
		delete(c.Flags.Habitual, "ledgerref")
	case f.LedgerRef != "" && !scaffold.LedgerForm().MatchString(f.LedgerRef):
		return &console.UsageError{Message: fmt.Sprintf("--ledger-ref %+q cannot be the ledger's", f.LedgerRef), Hint: "a ledger ref looks like " + gitstore.LedgerRef}
	}
	return nil
}

// refused says which flags make no sense together, or by themselves.
func (f initFlags) refused() error {
	return cmp.Or(
		console.RefuseIf(f.check && f.harden, "--check and --harden were both given", "give one of them"),
		console.RefuseIf(f.Uses != "" && !scaffold.UsesForm().MatchString(f.Uses) && !scaffold.RepositoryForm().MatchString(f.Uses), fmt.Sprintf("--uses %+q is not an action at a commit", f.Uses), "--uses OWNER/countersign@COMMIT takes the 40 digits of a commit, and without @COMMIT the newest release"),
		console.RefuseIf(f.Given("ledger-repository") && !policy.IsRepository(f.LedgerRepository), fmt.Sprintf("--ledger-repository %+q is not a repository", f.LedgerRepository), "it is OWNER/NAME, on the server of this repository, as in acme/ledgers"),
		console.RefuseIf(f.Given("redact") && !f.pages, "--redact was given without --pages", "--redact is about the pages that init --pages publishes"),
		console.RefuseIf(f.agents && f.notMCP() != "", "--agents and --"+f.notMCP()+" were given",
			"give --dry-run or --force with --agents, and run init once more for the others"),
		console.RefuseIf(f.mcp && f.notMCP() != "", "--mcp and --"+f.notMCP()+" were given", "give --dry-run or --force with --mcp, and run init once more for the others"),
		console.RefuseIf(f.pr && (f.dryRun || f.check || f.harden), "--pr was given with a flag that writes nothing", "--dry-run, --check and --harden go by themselves"),
	)
}

func doctorCommand(c *console.Console) *cobra.Command {
	f := initFlags{doctor: true}
	cmd := &cobra.Command{
		Use: "doctor", Short: "Say what does not work yet, and how to fix it", Args: console.NoArgs,
		Long: `doctor looks at this clone, at the default branch's Policy and workflows and, with a token, at the
repository on GitHub, Gitea or Forgejo. Each finding is one line, with the command or the setting that fixes it.
It changes nothing, but that the clone has and remembers what it fetched of the ledger. The exit code is
1 if something will not work.`,
		Example: "  countersign doctor\n  COUNTERSIGN_TOKEN=$(gh auth token) countersign doctor --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return initCheck(cmd.Context(), c, f) },
	}
	cmd.Flags().StringVar(&f.branch, "branch", "", "the default branch's `NAME`, where the forge is not asked")
	return cmd
}

// notMCP is a flag that was given and is not for --mcp and --agents, "" for none.
func (f initFlags) notMCP() string {
	for _, flag := range []string{
		"uses", "gate", "inline", "ledger-branch", "ledger-repository", scaffold.AskFleet, scaffold.AskOrganization, scaffold.AskPages, scaffold.AskWatch, scaffold.AskAttest, "redact", "interactive", "pr", "check", "harden", "branch", "app",
	} {
		if f.Given(flag) {
			return flag
		}
	}
	return ""
}

// initMCP tells the clients and agents of a project how they propose.
func initMCP(ctx context.Context, c *console.Console, f initFlags) error {
	s, err := session.OpenRepo(c)
	if err != nil {
		return err
	}
	place, done, err := initPlace(s, false)
	if err != nil {
		return err
	}
	defer done()
	tree, err := place.Tree(ctx)
	if err != nil {
		return err
	}
	r := scaffold.Result{MCP: true, Way: f.way(), Again: c.Again}
	if r.Files, err = scaffold.PlanMCP(tree, f.agents); err != nil {
		return err
	}
	if r.Way == scaffold.Wrote {
		person := c.Person()
		if person != nil {
			defer person.Close()
		} else if !f.Force {
			flag := "mcp"
			if f.agents {
				flag = "agents"
			}
			if err := scaffold.Consent(r.Files, flag); err != nil {
				return err
			}
		}
		if r.Shown, err = confirm(c, person, r.Diff()); err != nil {
			return err
		}
		if _, err = place.Write(ctx, r.Files, r.Settings); err != nil {
			return err
		}
	}
	return showInit(c, r)
}

// setUp plans the files, asks where somebody is there to be asked, and writes them, here or
// into a pull request.
func setUp(ctx context.Context, c *console.Console, f initFlags) error {
	s, err := session.OpenRepo(c)
	if err != nil {
		return err
	}
	if f.pr {
		s = s.WithHelpers()
	}
	settings := s.Repo.Config
	if err := initForge(s, &f); err != nil {
		return err
	}
	place, done, err := initPlace(s, f.pr)
	if err != nil {
		return err
	}
	defer done()
	tree, err := place.Tree(ctx)
	if err != nil {
		return err
	}
	remote := settings.RemoteURL(c.Flags.Remote)
	f.Forge = scaffold.ForgeOf(cmp.Or(c.Getenv("GITHUB_SERVER_URL"), wire.WebOf(remote)), cmp.Or(c.Getenv("GITHUB_REPOSITORY"), github.RepositoryOf(remote)))
	if f.Guarded == "" {
		f.Forge.Say(c.Say, c.Flags.Remote, remote != "")
	}
	if scaffold.LedgerForm().MatchString(c.Flags.LedgerRef) {
		f.Usual = c.Flags.LedgerRef
	}
	r := scaffold.Result{Forge: f.Forge, Way: f.way(), Again: c.Again, Own: scaffold.Own()}
	person := c.Person()
	f.Say, f.Asked = c.Say, map[string]bool{scaffold.AskFleet: f.fleet, scaffold.AskOrganization: f.organization, scaffold.AskPages: f.pages, scaffold.AskWatch: f.watch, scaffold.AskAttest: f.attest, scaffold.AskDigest: f.digest}
	f.Tags = func(ctx context.Context, repository string) (map[string]string, error) {
		return tagsOf(ctx, s, repository)
	}
	if person != nil {
		defer person.Close()
		f.Ask = func(question string) (string, error) { return c.Answer(person, question) }
	}
	if r.Files, r.Settings, err = f.Plan(ctx, tree); err != nil {
		return err
	}
	if f.attest {
		if err := initAttest(ctx, s); err != nil {
			return err
		}
	}
	if r.Way != scaffold.WouldWrite {
		if r.Shown, err = confirm(c, person, r.Diff()); err != nil {
			return err
		}
		if r.Pull, err = place.Write(ctx, r.Files, r.Settings); err != nil {
			return err
		}
		if r.Way == scaffold.Wrote && c.Flags.Forge != "" && settings.Habit("forge") != c.Flags.Forge {
			if err := s.Repo.SetHabit("forge", c.Flags.Forge); err != nil {
				return err
			}
			c.Say("this clone knows from now on that its remote is on %s (git config countersign.forge)", c.Flags.Forge)
			c.Flags.Habitual["forge"] = true // no next step has to say it
		}
	}
	if r.Moves, err = moveLedger(ctx, s, f, r.Way == scaffold.Wrote); err != nil {
		return err
	}
	return showInit(c, r)
}

// initAttest says what attestations without a key tell everybody, and refuses them if GitHub, where
// there is a token to ask it with, does not say that everybody may read the repository.
func initAttest(ctx context.Context, s *session.Session) error {
	s.Say("--attest: %s", scaffold.PublicLog)
	client, err := session.GitHub(s.Console, s.Repo.Config)
	if err != nil || client == nil {
		return err
	}
	public, err := client.IsPublic(ctx)
	if err == nil && !public {
		err = fault.Refuse("--attest has a public log name the repository for ever, and not everybody may read it", "leave out --attest, and delete .github/workflows/countersign-attest.yml if it is there")
	}
	return err
}

// showInit prints what init came to.
func showInit(c *console.Console, r scaffold.Result) error {
	if c.Flags.JSON {
		diff := report.Diff([]byte(c.Finder().RedactDiff(r.Diff()).String()), report.Style{})
		return c.PrintJSON(r.Document(diff))
	}
	columns := 0
	if console.IsTerminal(c.Stdout) {
		columns, _ = console.Size(c.Stdout)
	}
	return c.LongWith(gitstore.Settings{}, c.Redact(r.Text(columns, c.Flags.Quiet, session.Style(c))))
}

// initForge finds out whether the files are for Gitea or Forgejo, and which branch they guard
// there: the remote's default one, as far as the clone knows it. What these cannot do is refused.
func initForge(s *session.Session, f *initFlags) error {
	if !session.OnGitea(s.Console, s.Repo.Config) {
		return nil
	}
	for _, flag := range []string{"uses", "gate", "inline", "pr", scaffold.AskFleet, scaffold.AskOrganization, scaffold.AskPages, scaffold.AskWatch, scaffold.AskAttest} {
		if f.Given(flag) {
			return &console.UsageError{Message: "--" + flag + " is for GitHub alone, and the repository is on Gitea or Forgejo", Hint: "docs/forges.md says what there is for these"}
		}
	}
	f.Guarded = f.branch
	if f.Guarded == "" {
		branch, err := s.Repo.DefaultBranch(s.Flags.Remote)
		if err != nil {
			return err
		}
		f.Guarded = cmp.Or(branch, "main")
	}
	if !plainBranch().MatchString(f.Guarded) {
		return &console.UsageError{Message: fmt.Sprintf("the branch %+q cannot be written into a Policy as it is", f.Guarded), Hint: "--branch NAME names another"}
	}
	f.Forgejo = s.Flags.Forge != console.ForgeGitea
	return nil
}

// plainBranch is a branch's name that needs no quotes in YAML.
var plainBranch = canon.Regexp(`^[A-Za-z][A-Za-z0-9._/-]*$`)

// moveLedger has this clone keep its ledger on the branch from now on, and reports whether
// it has one elsewhere that is to be moved there.
func moveLedger(ctx context.Context, s *session.Session, f initFlags, write bool) (moves bool, err error) {
	if !f.ledgerBranch {
		return false, nil
	}
	const habit = "ledgerRef"
	repo := s.Repo
	if write && repo.Config.Habit(habit) != f.LedgerRef {
		if err := repo.SetHabit(habit, f.LedgerRef); err != nil {
			return false, err
		}
		s.Say("this clone keeps the ledger on %s from now on (git config countersign.%s)", f.LedgerRef, habit)
	}
	there, err := repo.Ref(ctx, f.LedgerRef)
	if err != nil || there != "" {
		return false, err
	}
	before, err := repo.Ref(ctx, gitstore.LedgerRef)
	return before != "", err
}

// initPlace is where the files go: the working tree, or a pull request.
func initPlace(s *session.Session, pull bool) (place scaffold.Place, done func(), err error) {
	repo, settings := s.Repo, s.Repo.Config
	if !pull {
		if repo.Worktree() == "" {
			return nil, nil, &console.UsageError{Message: "the repository has no working tree to write into", Hint: "run it in a clone of it"}
		}
		root, err := os.OpenRoot(repo.Worktree())
		return scaffold.Worktree{Root: root}, func() { root.Close() }, err
	}
	client, err := session.GitHub(s.Console, s.Repo.Config)
	if err == nil && client == nil {
		err = &console.UsageError{Message: "--pr opens a pull request, and there is no token, or no repository on GitHub to open it in", Hint: "COUNTERSIGN_TOKEN=$(gh auth token) countersign init --pr"}
	}
	if err != nil {
		return nil, nil, err
	}
	address, err := s.RemoteURL()
	if err != nil {
		return nil, nil, err
	}
	server, err := s.Server(address, "")
	if err != nil {
		return nil, nil, err
	}
	by := code.Commit{Author: cmp.Or(settings.Name, "countersign"), Email: cmp.Or(settings.Email, "countersign@localhost"), When: s.Now()}
	refs := &gitstore.RemoteRefs{Repo: repo, Server: server, Pause: session.Pause}
	return &scaffold.Pull{Repo: repo, Refs: refs, Forge: client, Author: by}, func() { server.Close() }, nil
}

// confirm shows a person what changes in files that are there, through the pager, and asks
// whether to write it. It is not shown where nothing changes or nobody is there.
func confirm(c *console.Console, person io.Writer, diff []byte) (shown bool, err error) {
	if !console.IsTerminal(person) || len(diff) == 0 {
		return false, nil
	}
	s := report.Style{Colour: c.Colours(person)}
	if _, err := c.Page(gitstore.Settings{}, person, c.Redact(report.Diff(diff, s))); err != nil {
		return false, err
	}
	if !c.Agrees(person, s.Bold("Write these changes?")+" [y/N] ") {
		return false, &console.UsageError{Message: "nothing was written", Hint: ""}
	}
	return true, nil
}

// initHarden prints the requests that protect the repository further.
func initHarden(c *console.Console, f initFlags) error {
	if c.Flags.Forge == console.ForgeGitea || c.Flags.Forge == console.ForgeForgejo {
		return &console.UsageError{Message: "--harden is for GitHub alone, and the repository is on Gitea or Forgejo", Hint: "docs/forges.md says what there is for these"}
	}
	if !strings.HasPrefix(c.Flags.LedgerRef, "refs/heads/") {
		c.Say("rulesets cannot protect %s: they are for branches and tags, so whoever may push can rewrite or delete that ref", c.Flags.LedgerRef)
		c.Say("hint: countersign remembers the last tip and refuses a ledger that was rewritten; --ledger-ref refs/heads/countersign-ledger keeps it where a ruleset holds")
	} else if f.app == 0 {
		c.Say("hint: --app NUMBER also keeps everybody but that app from adding to the ledger")
	}
	c.Say("hint: after these requests, put the secrets COUNTERSIGN_SIGN_KEY and COUNTERSIGN_APP_KEY into the environment %q, and that name into the variable COUNTERSIGN_ENVIRONMENT", scaffold.SignEnvironment)
	requests, err := scaffold.Harden(c.Flags.LedgerRef, cmp.Or(f.branch, "main"), f.Gate, f.app)
	if err != nil {
		return err
	}
	return c.PrintJSON(requests)
}

// initCheck says what will not work, and exits with 1 if anything will not. The
// files are those of this clone's copy of the default branch, the rest is
// the forge's.
func initCheck(ctx context.Context, c *console.Console, f initFlags) error {
	s, err := session.OpenRepo(c)
	if err != nil {
		return err
	}
	repo, settings := s.Repo, s.Repo.Config
	client, err := session.Forge(c, settings)
	if err != nil {
		return err
	}
	facts := scaffold.Facts{LedgerRef: c.Flags.LedgerRef, Asked: client != nil, Branch: f.branch}
	if f.doctor {
		facts.Here = &scaffold.Here{Name: settings.Name, Email: settings.Email}
		if facts.Here.Ledger, err = repo.Ref(ctx, c.Flags.LedgerRef); err != nil {
			return err
		}
		facts.Here.CheckedOut = repo.IsCheckedOut(c.Flags.LedgerRef)
	}
	remote := settings.RemoteURL(c.Flags.Remote)
	unknown := remote != "" && session.ToldForge(c, wire.WebOf(remote)) == "" && !session.IsHub(remote)
	if err := probeFirst(ctx, s, client, &facts); err != nil {
		if _, hub := client.(*github.Client); hub && unknown {
			return session.Guessed(err)
		}
		return err
	}
	facts.Unknown = unknown && facts.Gitea == nil && c.Getenv("COUNTERSIGN_TOKEN") != ""
	if client == nil && f.branch == "" {
		if facts.Branch, err = repo.DefaultBranch(c.Flags.Remote); err != nil {
			return err
		}
		if facts.Branch == "" && !f.doctor {
			if _, err := s.RemoteURL(); err != nil {
				return err
			}
			return &console.UsageError{Message: "this clone does not know which branch of " + report.Clean(c.Flags.Remote) + " is the default one", Hint: "git remote set-head " + escape.ShellQuote(c.Flags.Remote) + " --auto"}
		}
	}
	if facts.Branch != "" {
		if err := readBranch(ctx, s, &facts); err != nil {
			return err
		}
	}
	if f.doctor {
		facts.Here.Alone = remote == ""
		if err := readWritten(ctx, s, &facts); err != nil {
			return err
		}
	}
	if name := facts.Policy.Ledger.Repository; name != "" {
		facts.Place = lookElsewhere(ctx, s, name)
	}
	if facts.Here != nil && facts.Here.Ledger != "" && client != nil {
		readLedger(ctx, s, client, facts.Here)
	}
	switch client := client.(type) {
	case *github.Client:
		client.ProbeNamed(ctx, &facts.GitHub, facts.Teams(), facts.Workflows())
	case *gitea.Client:
		client.ProbeTeams(ctx, facts.Gitea, facts.Teams())
	}
	return showFindings(c, facts.Findings(), console.Document{"commit": facts.Commit}, "will not work")
}

// mostDenied is about how many denied pull requests doctor asks.
const mostDenied = 20

// readLedger compares the ledger that is here with the remote's, and asks what became of the pull
// requests that were denied last.
func readLedger(ctx context.Context, s *session.Session, client session.ForgeClient, to *scaffold.Here) {
	local, err := s.OpenLedger()
	var snap writing.Snapshot
	if err == nil {
		remote := session.RemoteLedger(ctx, s, to.Ledger)
		to.Remote = &remote
		snap, err = local.Snapshot(ctx)
	}
	if err == nil {
		to.Denied, to.MoreDenied, err = online.AskDenied(ctx, client, snap.Tree, mostDenied)
	}
	to.DeniedErr = err
}

// probeFirst asks the forge what there is to know before the files are read. Of Gitea and Forgejo it is
// known without a client that the repository is there.
func probeFirst(ctx context.Context, s *session.Session, client session.ForgeClient, f *scaffold.Facts) error {
	hub, tea, err := probe(ctx, client, f.LedgerRef)
	switch {
	case hub != nil:
		f.GitHub, f.Branch = *hub, hub.DefaultBranch
	case tea != nil:
		f.Gitea, f.Branch = tea, tea.DefaultBranch
	default:
		if session.OnGitea(s.Console, s.Repo.Config) {
			f.Gitea = &gitea.Facts{}
		}
	}
	return err
}

// showFindings prints findings, also into a document, and is an error if any fails: so
// many things are what is said.
func showFindings(c *console.Console, findings []scaffold.Finding, doc console.Document, what string) error {
	failing, text, list := 0, "", []any{}
	for _, one := range findings {
		if one.Level == scaffold.LevelFails {
			failing++
		}
		text += fmt.Sprintf("%-6s %s\n", one.Level, report.Clean(one.Text))
		if one.Hint != "" && !c.Flags.Quiet {
			text += "       " + one.Hint + "\n"
		}
		list = append(list, console.Document{"level": one.Level, "text": one.Text, "hint": one.Hint})
	}
	doc["findings"] = list
	if err := c.Result(doc, text); err != nil || failing == 0 {
		return err
	}
	return &console.ExitError{Code: console.ExitFailed, Err: fmt.Errorf("%s %s", report.Counted(failing, "thing"), what)}
}

// readBranch reads the files of init as the default branch has them here.
func readBranch(ctx context.Context, s *session.Session, f *scaffold.Facts) error {
	ref := "refs/remotes/" + s.Flags.Remote + "/" + f.Branch
	var err error
	if f.Commit, err = session.RefCommit(ctx, s.Repo, ref); err != nil {
		return err
	}
	tree, err := s.Repo.Tree(ctx, f.Commit)
	if err != nil {
		return err
	}
	return f.ReadTree(tree)
}

// readWritten notes which files of init the default branch does not have, and HEAD or the working tree does; and the Policy of
// HEAD where there is no remote.
func readWritten(ctx context.Context, s *session.Session, f *scaffold.Facts) error {
	repo := s.Repo
	head, err := repo.Head(ctx)
	if errors.Is(err, gitstore.ErrNoCommits) {
		return nil
	}
	if err != nil {
		return err
	}
	tree, err := repo.Tree(ctx, head)
	if err != nil {
		return err
	}
	missing := *f
	if f.Branch == "" {
		if err := missing.ReadTree(tree); err != nil {
			return err
		}
	}
	if f.Here.Alone {
		f.Files, f.PolicyErr = missing.Files, missing.PolicyErr
	}
	if repo.Worktree() == "" {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(missing.Files)) {
		if missing.Files[name] != scaffold.Missing {
			continue
		}
		if _, err := fs.Stat(tree, name); err == nil {
			f.Here.Committed = append(f.Here.Committed, name)
		} else if _, err := os.Lstat(filepath.Join(repo.Worktree(), filepath.FromSlash(name))); err == nil {
			f.Here.Written = append(f.Here.Written, name)
		}
	}
	return nil
}
