package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/action"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/completion"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/documents"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/ghtoken"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/terminal"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/report"
)

// App is one run of the program with everything it takes from outside.
type App struct {
	Args           []string
	Dir            string // where the paths that are given begin; "": in this process's working directory
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
	Entropy        io.Reader
	Wait           func(ctx context.Context, d time.Duration) error // before a request is sent again; nil: a timer
	EmptyInput     func(terminal *os.File) error                    // before a question is asked; nil: terminal.EmptyInput
	GH             *ghtoken.Keeper                                  // of gh's tokens; nil: gh does not run this
	SetGCPercent   func(percent int) int                            // nil where others share the process

	flags       globalFlags
	line        *terminal.Progress               // nil where nobody looks
	secrets     *secret.Finder                   // what is taken out of everything that is printed, also of the patch once there is one
	repo        *gitstore.Repo                   // what open opened
	helpers     bool                             // whether Git's credential helpers may be asked
	cloned      string                           // the address that --repo named
	beside      string                           // the directory that files are named from, where that is not flags.dir
	pager       string                           // the user's core.pager
	ownPager    string                           // the user's countersign.pager
	habitual    map[string]*string               // the flags that Git's configuration gives a value, by its keys
	client      forgeClient                      // to the forge, where there is a token
	clock       *rest.Clock                      // the forge's, as far as it was heard
	ghTokens    []string                         // what GH said
	elsewhere   bool                             // whether the ledger is kept in another repository, once that was asked
	handsOver   bool                             // only a bundle is written, in a job that cannot reach the ledger where that is in another repository
	pushedTo    func(address, tip string) string // the repository that is known to have a commit of a remote's ledger; "" if none is
	seen        func() string                    // the ledger's last tip that held, once one was opened
	transaction string                           // the one that this run is about, once that is known
	settled     *pull.Settled                    // what a run of settle did
	matrix      *action.Matrix                   // what list --matrix printed
	bundled     string                           // the file that review --bundle-out wrote
	unchanged   bool                             // whether what it was to write changes nothing
	shown       *report.Report                   // the last that was shown
}

// globalFlags are the flags that every command takes.
type globalFlags struct {
	dir       string
	json      bool
	fields    []string // of the document, nil for all
	ledgerRef string
	quiet     bool
	verbose   bool

	remote       string
	push, noPush bool
	knownTip     string
	tipFile      string
	signKey      string
	policyRef    string

	forge string // "" for what it is found to be

	color   string // auto, always or never
	noPager bool
}

// Main runs the program and returns its exit code.
func (a *App) Main() int {
	// Ctrl-C ends the program at once: whatever it was doing, the ledger says
	// where to go on.
	root := a.rootCommand()
	root.SetArgs(a.Args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		err = cli.UnknownCommand(cmd)
	}
	a.line.End()
	if a.repo != nil {
		_ = a.repo.Close() // `git gc` may have what was built for nothing
	}
	return a.finish(errors.Join(err, a.writeTip()))
}

func (a *App) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "countersign",
		Short: "A human countersigns the exact bytes of a patch; a ledger in the repository proves it",
		Long: `Writes a patch of an agent, a bot or a colleague once a human has approved
exactly these bytes, and proves it in the repository. See it: countersign demo`,
		SilenceErrors: true, SilenceUsage: true, Version: version(),
		Args: func(cmd *cobra.Command, args []string) error {
			err := cli.NoCommand(cmd, args)
			if err != nil && a.isFile(args[0]) {
				return a.fileNamed(args[0])
			}
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.status(cmd.Context())
			if errors.Is(err, gitstore.ErrNotRepository) {
				return cmd.Help()
			}
			return err
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.NoEmptyFlag(cmd); err != nil {
				return err
			}
			if name := cmd.Name(); a.flags.fields != nil && (name == "approve" || name == "deny" || name == "close") { // before it is done
				if _, err := pick(report.Report{}, a.flags.fields); err != nil {
					return err
				}
			}
			a.watch(cmd)
			return a.habits(cmd)
		},
	}
	f := root.PersistentFlags()
	f.StringVarP(&a.flags.dir, "directory", "C", ".", "run as if started in `DIR`")
	f.BoolFunc("json", "print one canonical JSON document on stdout; --json=a,b: of its members, or of those in its list, only these", func(is string) error {
		on, err := strconv.ParseBool(is)
		if a.flags.json, a.flags.fields = on || err != nil, nil; err != nil {
			a.flags.fields = strings.Split(is, ",")
		}
		return nil
	})
	f.StringVar(&a.flags.ledgerRef, "ledger-ref", gitstore.LedgerRef, "keep the ledger on this `REF`")
	f.StringVar(&a.flags.remote, "remote", defaultRemote, "the `REMOTE`, by name or address, whose ledger is shared")
	f.StringVar(&a.flags.forge, "forge", "", "what the remote is: `NAME` github, gitea or forgejo; found out where it is not given")
	f.BoolVar(&a.flags.push, "push", false, "work on the remote's ledger; on in CI (the variable CI is true)")
	f.BoolVar(&a.flags.noPush, "no-push", false, "work on this clone's ledger alone")
	f.StringVar(&a.flags.knownTip, "known-tip", "", "refuse a ledger that does not descend from this `COMMIT`")
	f.StringVar(&a.flags.tipFile, "tip-file", "", "keep the last tip seen in `FILE`, and refuse a ledger that does not descend from it")
	f.StringVar(&a.flags.signKey, "sign-key", "", "sign the ledger's commits with the SSH key in `FILE`")
	f.StringVar(&a.flags.policyRef, "policy-ref", "", "read the Policy from this `REF` (refs/heads/…, refs/tags/… or refs/remotes/…), not from HEAD (in a workflow: the default branch)")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "print no hints and no progress, and of a transaction its id alone")
	f.BoolVarP(&a.flags.verbose, "verbose", "v", false, "say what is being done")
	f.StringVar(&a.flags.color, "color", "auto", "colour what is printed: `WHEN` auto (on a terminal), always or never")
	f.BoolVar(&a.flags.noPager, "no-pager", false, "show long output without a pager")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		a.flags.json = a.flags.json || slices.ContainsFunc(a.Args, func(arg string) bool { return strings.HasPrefix(arg, "--json") }) // it may stand after the bad one
		message, _, _ := strings.Cut(err.Error(), ": strconv.")                                                                       // what Go calls it says nothing to a person
		return &cli.UsageError{Message: message, Hint: cmp.Or(completion.NearFlag(cmd, err.Error()), cli.SeeHelp(cmd))}
	})
	root.AddCommand(
		a.runCommand(), a.reviewCommand(), a.proposeCommand(), a.decideCommand("approve"), a.decideCommand("deny"), a.signCommand(), a.gateCommand(),
		a.applyCommand(), a.validateCommand(), a.statusCommand(), a.listCommand(), a.showCommand(), a.logCommand(), a.diffCommand(),
		a.exportCommand(), a.reportCommand(), a.closeCommand(), a.serveCommand(), a.mcpCommand(), a.demoCommand(), a.versionCommand(), a.actionCommand(), a.artifactCommand(),
		a.syncCommand(), a.ledgerCommand(), a.witnessCommand(), a.auditCommand(), a.evidenceCommand(), a.attestCommand(), a.verifyCommand(), a.policyCommand(), a.checksCommand(), a.initCommand(), a.doctorCommand(), a.settleCommand(), a.planCommand(), a.fleetCommand(), a.waitCommand(), a.conformanceCommand(),
	)
	root.AddCommand(documents.Program{Path: a.path, Read: a.readInput, Name: inputName, Print: a.print, GiveBack: a.giveBack}.Commands()...)
	root.AddCommand(a.pagesCommands()...)
	cli.AddHelp(root)
	if len(a.Args) > 0 && (a.Args[0] == cobra.ShellCompRequestCmd || a.Args[0] == cobra.ShellCompNoDescRequestCmd) {
		completion.Add(root, a.openLocal, func(line string) string { return a.redact(line).String() }) // cobra keeps it for as long as the process lives
	}
	return root
}

// finish turns the outcome of a command into its last lines on stderr and the
// exit code.
func (a *App) finish(err error) int {
	if err == nil {
		return 0
	}
	var quiet *cli.ExitError
	if errors.As(err, &quiet) && quiet.Err == nil {
		return quiet.Code
	}
	code, hint := codeOf(err), a.typed(hintOf(err))
	if as[*effect.DirtyError](err) && a.transaction != "" {
		hint += " && " + a.again("run", report.ShortID(a.transaction))
	}
	waits := code == cli.ExitPending // is no error
	switch {
	case a.flags.json:
		doc := map[string]any{"error": oneLine(err), "exit": float64(code)}
		var unnamed *unnamedError
		if errors.As(err, &unnamed) {
			doc["open"] = report.Documents(unnamed.open)
		}
		if hint != "" {
			doc["hint"] = report.Clean(hint)
		}
		if line, err := canon.Line(doc); err == nil {
			_ = emit(a.Stderr, a.redact(string(line)))
		}
		return code
	case waits && (a.shown != nil || a.flags.quiet):
		return code
	}
	text := a.errorText(err, waits)
	if hint != "" && !a.flags.quiet {
		text += "countersign: hint: " + report.Clean(hint) + "\n"
	}
	if !as[*lookup.AmbiguousError](err) {
		text = report.ShortIDs(text)
	}
	_ = emit(a.Stderr, a.redact(text))
	return code
}

// errorText is an error for a person: a line, and below it what there is to see.
func (a *App) errorText(err error, waits bool) string {
	title, below := oneLine(err), []string(nil)
	var unfit *unfitError
	var unnamed *unnamedError
	var dirty *effect.DirtyError
	switch {
	case waits:
		return "countersign: " + title + "\n"
	case as[*pipeline.UnappliedError](err) && a.shown != nil:
		return ""
	case errors.As(err, &dirty):
		return report.InTheWay(dirty.Files, dirty.New)
	case errors.As(err, &unfit):
		title, below = unfit.lines(a.finder().Text)
	case errors.As(err, &unnamed):
		below = report.OpenLines(unnamed.open)
	}
	text := report.Style{Colour: a.colours(a.Stderr)}.Red("countersign: error:") + " " + title + "\n"
	for _, line := range below {
		text += "  " + report.Clean(line) + "\n"
	}
	return text
}

// oneLine is an error as it is shown: one line, nothing that does not print.
func oneLine(err error) string {
	return report.Clean(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// again is the command line for a next step, with the global flags that this
// run was given, and the file that it takes where that is known.
func (a *App) again(args ...string) string {
	words := []string{"countersign"}
	if dir := cmp.Or(a.beside, a.flags.dir); dir != "." {
		words = append(words, "-C", report.ShellQuote(dir))
	}
	if a.flags.ledgerRef != gitstore.LedgerRef {
		words = append(words, "--ledger-ref", report.ShellQuote(a.flags.ledgerRef))
	}
	if a.flags.push && args[0] != "sync" { // which works on the remote's anyway
		words = append(words, "--push")
	}
	if a.flags.noPush {
		words = append(words, "--no-push")
	}
	for _, f := range []struct{ name, value string }{
		{"--policy-ref", a.flags.policyRef}, {"--known-tip", a.flags.knownTip}, {"--tip-file", a.flags.tipFile}, {"--sign-key", a.flags.signKey},
	} {
		if f.value != "" {
			words = append(words, f.name, report.ShellQuote(f.value))
		}
	}
	if a.flags.remote != defaultRemote {
		words = append(words, "--remote", report.ShellQuote(a.flags.remote))
	}
	if _, habit := a.habitual["forge"]; a.flags.forge != "" && !habit {
		words = append(words, "--forge", a.flags.forge)
	}
	return a.withFile(strings.Join(append(words, args...), " "))
}
