// Package console is one command line at work: what the process gives it, its flags, and the one place where it reads and
// prints. Everything that is printed goes through what is known of secrets (T47). A command returns an Outcome, which the last
// lines for a person are made of, and which the Action reads. It opens nothing but the files that are named.
//
// Beside that it has the person's terminal and pager, what a shell may offer to who types a command, and the inputs and outputs
// of a workflow step, for which alone go-githubactions is here. It asks the programs that keep a person's keys, tokens and
// passwords: OpenSSH's, Git's credential helpers, and the gh in PATH outside of the repository where this program is run as its
// extension. A repository has no say in what is run: no command that its configuration names ever is (T84).
package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/secret"
)

// Process is one run of the program with everything it takes from outside.
type Process struct {
	Args           []string
	Dir            string // where the paths that are given begin; "": in this process's working directory
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
	Entropy        io.Reader
	Wait           func(ctx context.Context, d time.Duration) error // before a request is sent again; nil: a timer
	EmptyInput     func(terminal *os.File) error                    // before a question is asked; nil: terminal.EmptyInput
	GH             *Keeper                                          // of gh's tokens; nil: gh does not run this
	SetGCPercent   func(percent int) int                            // nil where others share the process
	Nested         func(Process) (int, Outcome)                     // runs another command line of this program
	Elsewhere      bool                                             // whether the remote's ledger is known to be kept in another repository

}

// A Console is one command line at work: what the process gave it, its flags, and the one place where it reads and prints.
type Console struct {
	Process
	Flags  globalFlags
	Known  *redactor      // of secrets: what is taken out of everything that is printed
	Line   *Progress      // nil where nobody looks
	Cloned string         // the address that --repo named
	Beside string         // the directory that files are named from, where that is not flags.dir
	done   Outcome        // what the command came to
	AtEnd  []func() error // what ends the sessions of the command
}

// An Outcome is what a command came to, for who ran it: the last lines for a person, and the Action.
type Outcome struct {
	Transaction string            // that it was about, once that was known
	Shown       bool              // whether a person was shown where that stands
	Verdict     *approval.Verdict // of that, as it was shown last
	Settled     *Settled          // by settle
	Matrix      *Matrix           // of list --matrix
	Bundle      string            // the file that review --bundle-out wrote
	Unchanged   bool              // whether what it was to write changes nothing
	Elsewhere   bool              // whether sync found the ledger in another repository
	Secrets     *secret.Finder    // what is known of secrets since, nil for nothing
}

// Does makes a command's function out of one that returns what it came to.
func (c *Console) Does(f func(cmd *cobra.Command, args []string) (Outcome, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		c.done, err = f(cmd, args)
		return err
	}
}

// About is the outcome of a command about a transaction, of which nothing else is told.
func About(id string) Outcome { return Outcome{Transaction: id} }

// globalFlags are the flags that every command takes.
type globalFlags struct {
	Dir       string
	JSON      bool
	fields    []string // of the document, nil for all
	LedgerRef string
	Quiet     bool
	Verbose   bool

	Remote       string
	Push, NoPush bool
	KnownTip     string
	TipFile      string
	SignKey      string
	PolicyRef    string

	Forge    string          // "" for what it is found to be
	Habitual map[string]bool // those that Git's configuration may give a value, by its keys, and whether it is asked for that

	color   string // auto, always or never
	noPager bool
}

// Habits are the flags that Git's configuration may give a value, by its keys.
func (f *globalFlags) Habits() map[string]*string {
	return map[string]*string{"ledgerref": &f.LedgerRef, "remote": &f.Remote, "forge": &f.Forge, "signkey": &f.SignKey}
}

// Run runs a command line. It returns the exit code, and what the command came to.
func (c *Console) Run(root *cobra.Command) (int, Outcome) {
	// Ctrl-C ends the program at once: whatever it was doing, the ledger says
	// where to go on.
	root.SetArgs(c.Args)
	root.SetIn(c.Stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		err = UnknownCommand(cmd)
	}
	c.Line.End()
	code := c.finish(errors.Join(err, c.End()))
	c.done.Secrets = c.Known.Secrets
	return code, c.done
}

func New(a Process) *Console {
	c := &Console{Process: a}
	c.Known = &redactor{getenv: func(name string) string { return c.Getenv(name) }}
	return c
}

// End ends the sessions of a command.
func (c *Console) End() error {
	var errs []error
	for _, end := range c.AtEnd {
		errs = append(errs, end())
	}
	c.AtEnd = nil
	return errors.Join(errs...)
}

// RootCommand is the program without its commands; status is what it does without any, and decided is the
// document of a command that decides.
func (c *Console) RootCommand(status func(context.Context) error, decided any) *cobra.Command {
	root := &cobra.Command{
		Use:   "countersign",
		Short: "A human countersigns the exact bytes of a patch; a ledger in the repository proves it",
		Long: `Writes a patch of an agent, a bot or a colleague once a human has approved
exactly these bytes, and proves it in the repository. See it: countersign demo`,
		SilenceErrors: true, SilenceUsage: true, Version: Version(),
		Args: func(cmd *cobra.Command, args []string) error {
			err := NoCommand(cmd, args)
			if err != nil && c.IsFile(args[0]) {
				return c.FileNamed(args[0])
			}
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := status(cmd.Context())
			if errors.Is(err, gitstore.ErrNotRepository) {
				return cmd.Help()
			}
			return err
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := NoEmptyFlag(cmd); err != nil {
				return err
			}
			if name := cmd.Name(); c.Flags.fields != nil && (name == "approve" || name == "deny" || name == "close") { // before it is done
				if _, err := pick(decided, c.Flags.fields); err != nil {
					return err
				}
			}
			c.watch(cmd)
			return c.Habits(cmd)
		},
	}
	f := root.PersistentFlags()
	f.StringVarP(&c.Flags.Dir, "directory", "C", ".", "run as if started in `DIR`")
	f.BoolFunc("json", "print one canonical JSON document on stdout; --json=a,b: of its members, or of those in its list, only these", func(is string) error {
		on, err := strconv.ParseBool(is)
		if c.Flags.JSON, c.Flags.fields = on || err != nil, nil; err != nil {
			c.Flags.fields = strings.Split(is, ",")
		}
		return nil
	})
	f.StringVar(&c.Flags.LedgerRef, "ledger-ref", gitstore.LedgerRef, "keep the ledger on this `REF`")
	f.StringVar(&c.Flags.Remote, "remote", DefaultRemote, "the `REMOTE`, by name or address, whose ledger is shared")
	f.StringVar(&c.Flags.Forge, "forge", "", "what the remote is: `NAME` github, gitea or forgejo; found out where it is not given")
	f.BoolVar(&c.Flags.Push, "push", false, "work on the remote's ledger; on in CI (the variable CI is true)")
	f.BoolVar(&c.Flags.NoPush, "no-push", false, "work on this clone's ledger alone")
	f.StringVar(&c.Flags.KnownTip, "known-tip", "", "refuse a ledger that does not descend from this `COMMIT`")
	f.StringVar(&c.Flags.TipFile, "tip-file", "", "keep the last tip seen in `FILE`, and refuse a ledger that does not descend from it")
	f.StringVar(&c.Flags.SignKey, "sign-key", "", "sign the ledger's commits with the SSH key in `FILE`")
	f.StringVar(&c.Flags.PolicyRef, "policy-ref", "", "read the Policy from this `REF` (refs/heads/…, refs/tags/… or refs/remotes/…), not from HEAD (in a workflow: the default branch)")
	f.BoolVarP(&c.Flags.Quiet, "quiet", "q", false, "print no hints and no progress, and of a transaction its id alone")
	f.BoolVarP(&c.Flags.Verbose, "verbose", "v", false, "say what is being done")
	f.StringVar(&c.Flags.color, "color", "auto", "colour what is printed: `WHEN` auto (on a terminal), always or never")
	f.BoolVar(&c.Flags.noPager, "no-pager", false, "show long output without a pager")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		c.Flags.JSON = c.Flags.JSON || slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--json") }) // it may stand after the bad one
		message, _, _ := strings.Cut(err.Error(), ": strconv.")                                                                       // what Go calls it says nothing to a person
		return &UsageError{Message: message, Hint: cmp.Or(NearFlag(cmd, err.Error()), SeeHelp(cmd))}
	})
	return root
}

// finish turns the outcome of a command into its last lines on stderr and the
// exit code.
func (c *Console) finish(err error) int {
	if err == nil {
		return 0
	}
	code := CodeOf(err)
	said := slices.DeleteFunc(parts(err), func(part error) bool {
		quiet, is := errors.AsType[*ExitError](part)
		return is && quiet.Err == nil || codeOf(part) == ExitPending && code != ExitPending && c.done.Shown
	})
	if len(said) == 0 {
		return code
	}
	err = errors.Join(said...)
	hint := c.Typed(HintOf(err), c.done.Transaction)
	if As[*effect.DirtyError](err) && c.done.Transaction != "" {
		hint += " && " + c.Again("run", lookup.ShortID(c.done.Transaction))
	}
	waits := code == ExitPending // is no error
	switch {
	case c.Flags.JSON:
		doc := map[string]any{"error": OneLine(err), "exit": float64(code)}
		var listing interface{ Open() []any }
		if errors.As(err, &listing) {
			doc["open"] = listing.Open()
		}
		if hint != "" {
			doc["hint"] = escape.Clean(hint)
		}
		if line, err := canon.Line(doc); err == nil {
			_ = Emit(c.Stderr, c.Redact(string(line)))
		}
		return code
	case waits && (c.done.Shown || c.Flags.Quiet):
		return code
	}
	text := c.errorText(err, waits)
	if hint != "" && !c.Flags.Quiet {
		text += "countersign: hint: " + escape.Clean(hint) + "\n"
	}
	if !As[*lookup.AmbiguousError](err) {
		text = lookup.ShortIDs(text)
	}
	_ = Emit(c.Stderr, c.Redact(text))
	return code
}

// errorText is an error for a person: a line, and below it what there is to see.
func (c *Console) errorText(err error, waits bool) string {
	title, below := OneLine(err), []string(nil)
	var more interface {
		Lines(clean func(string) string) (title string, below []string)
	}
	var dirty *effect.DirtyError
	switch {
	case waits:
		return "countersign: " + title + "\n"
	case errors.Is(err, pipeline.ErrUnapplied) && c.done.Shown:
		return ""
	case errors.As(err, &dirty):
		return inTheWay(dirty)
	case errors.As(err, &more):
		title, below = more.Lines(c.Finder().Text)
	}
	head := "countersign: error:"
	if c.Colours(c.Stderr) {
		head = "\x1b[31m" + head + "\x1b[0m" // red (ECMA-48, SGR)
	}
	text := head + " " + title + "\n"
	for _, line := range below {
		text += "  " + escape.Clean(line) + "\n"
	}
	return text
}

// inTheWay says which files keep a change from being applied.
func inTheWay(err *effect.DirtyError) string {
	wide := 0
	for _, file := range err.Files {
		wide = max(wide, min(len(escape.Clean(file)), 40))
	}
	text := "countersign: nothing is written, your files are as they were. In the way:\n"
	for _, file := range err.Files {
		why := "has your changes"
		if slices.Contains(err.New, file) {
			why = "is here, not in Git"
		}
		text += fmt.Sprintf("    %-*s  %s\n", wide, escape.Clean(file), why)
	}
	return text
}

// OneLine is an error as it is shown: one line, nothing that does not print.
func OneLine(err error) string {
	return escape.Clean(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// Again is the command line for a next step, with the global flags that this
// run was given, and the file that it takes where that is known.
func (c *Console) Again(args ...string) string {
	words := []string{"countersign"}
	if dir := cmp.Or(c.Beside, c.Flags.Dir); dir != "." {
		words = append(words, "-C", escape.ShellQuote(dir))
	}
	if c.Flags.LedgerRef != gitstore.LedgerRef {
		words = append(words, "--ledger-ref", escape.ShellQuote(c.Flags.LedgerRef))
	}
	if c.Flags.Push && args[0] != "sync" { // which works on the remote's anyway
		words = append(words, "--push")
	}
	if c.Flags.NoPush {
		words = append(words, "--no-push")
	}
	for _, f := range []struct{ name, value string }{
		{"--policy-ref", c.Flags.PolicyRef}, {"--known-tip", c.Flags.KnownTip}, {"--tip-file", c.Flags.TipFile}, {"--sign-key", c.Flags.SignKey},
	} {
		if f.value != "" {
			words = append(words, f.name, escape.ShellQuote(f.value))
		}
	}
	if c.Flags.Remote != DefaultRemote {
		words = append(words, "--remote", escape.ShellQuote(c.Flags.Remote))
	}
	if _, habit := c.Flags.Habitual["forge"]; c.Flags.Forge != "" && !habit {
		words = append(words, "--forge", c.Flags.Forge)
	}
	return c.withFile(strings.Join(append(words, args...), " "))
}

// Command runs another command line of this program, in the same directory, and
// returns its exit code and what it came to.
func (c *Console) Command(out io.Writer, elsewhere bool, args ...string) (int, Outcome) {
	return c.CommandTo(out, c.Stderr, elsewhere, args...)
}

func (c *Console) CommandTo(out, errs io.Writer, elsewhere bool, args ...string) (int, Outcome) {
	other := Process{
		Args: append([]string{"-C", c.Flags.Dir}, args...), Dir: c.Dir,
		Stdin: bytes.NewReader(nil), Stdout: out, Stderr: errs, Getenv: c.Getenv, Now: c.Now, Entropy: c.Entropy, Wait: c.Wait, Elsewhere: elsewhere,
	}
	return c.Nested(other)
}

// Release is the version of the next or present release.
const Release = "0.1.0"

// Version is the release and the commit it was built from, where Go knows it.
func Version() string {
	if c := Commit(); c != "" {
		return Release + "+" + c[:min(12, len(c))]
	}
	return Release
}

func Commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// The forges that --forge names.
const (
	ForgeGitHub  = "github"
	ForgeGitea   = "gitea"
	ForgeForgejo = "forgejo"
)

// NoClient is the error of a command for which there is no token for the server.
func (c *Console) NoClient(message string) error {
	hint := "set COUNTERSIGN_TOKEN, or give the Action its input token"
	if c.Getenv("COUNTERSIGN_TOKEN") != "" {
		hint = "name the token's host in COUNTERSIGN_TOKEN_HOST, and with --forge what the server is"
	}
	return &UsageError{Message: message, Hint: hint}
}

// CheckForge refuses a forge that is none, which a flag or Git's configuration names.
func (c *Console) CheckForge(named string) error {
	if c.Flags.Forge == "" || slices.Contains([]string{ForgeGitHub, ForgeGitea, ForgeForgejo}, c.Flags.Forge) {
		return nil
	}
	return &UsageError{Message: fmt.Sprintf("%s %+q is not known", named, c.Flags.Forge), Hint: "--forge github, gitea or forgejo"}
}

// InWorkflow reports whether this is a job of a workflow. Each forge's runner says so in a variable of its own, and
// one alone is enough: a job is never taken for a person's machine.
func InWorkflow(getenv func(string) string) bool {
	return getenv("GITHUB_ACTIONS") == "true" || OnGiteaRunner(getenv)
}

// OnGiteaRunner reports whether this is a job of Gitea's or Forgejo's runner.
func OnGiteaRunner(getenv func(string) string) bool {
	return getenv("GITEA_ACTIONS") == "true" || getenv("FORGEJO_ACTIONS") == "true"
}

// Pause waits as the program was told to wait.
func (c *Console) Pause(ctx context.Context, d time.Duration) error {
	if c.Wait != nil {
		return c.Wait(ctx, d)
	}
	return rest.Sleep(ctx, d)
}
