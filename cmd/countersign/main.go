// Command countersign binds a human's approval to the exact bytes of a patch,
// applies those and nothing else, and proves it in a ledger inside the
// repository. README.md shows it at work; docs/ has the formats. This is the
// process; what the commands do is in the packages below internal.
package main

import (
	"context"
	"crypto/rand"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/change"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/decide"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/guard"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/look"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/proofs"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/pulls"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/serve"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/setup"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/statements"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/report"
)

func main() {
	sandbox.Child() // a command's first process is this program again
	collectLater()
	dir, _ := os.Getwd() // "" where it is gone
	app := console.Process{
		Args: os.Args[1:], Dir: dir, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Now: time.Now, Entropy: rand.Reader,
		SetGCPercent: debug.SetGCPercent,
	}
	if console.IsExtension(os.Args[0]) {
		app.GH = &console.Keeper{Path: os.Getenv("PATH")}
	}
	os.Exit(Main(app))
}

// collectLater puts the first garbage collection off until the heap has 32 MiB,
// as most runs end before that; from then on the collector works as it always
// does. A life of three files in four processes takes a third less CPU time.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	const later = 800
	usual := debug.SetGCPercent(later)
	runtime.AddCleanup(new([64]byte), func(percent int) {
		if was := debug.SetGCPercent(percent); was != later { // an audit has its own
			debug.SetGCPercent(was)
		}
	}, usual)
}

// run runs a command line. It returns the exit code, and what the command came to.
func run(app console.Process) (int, console.Outcome) {
	app.Nested = run
	c := console.New(app)
	return c.Run(rootCommand(c))
}

func rootCommand(a *console.Console) *cobra.Command {
	root := a.RootCommand(func(ctx context.Context) error { return look.Status(ctx, a) }, report.Report{})
	others := pulls.Others{Cosign: proofs.CosignSettled, Watch: proofs.Watch, Record: proofs.RecordSettings}
	root.AddCommand(slices.Concat(
		change.Commands(a, change.Others{Ask: decide.AskPerson, Open: pulls.Open}), decide.Commands(a), look.Commands(a), pulls.Commands(a, others),
		proofs.Commands(a), statements.Commands(a), setup.Commands(a, change.ExplainCommand(a)), serve.Commands(a),
	)...)
	root.AddCommand(pulls.Command(a, others), guard.Command(a))
	console.AddHelp(root)
	if len(a.Args) > 0 && (a.Args[0] == cobra.ShellCompRequestCmd || a.Args[0] == cobra.ShellCompNoDescRequestCmd) {
		console.Add(root, func(cmd *cobra.Command) (console.Clone, error) { return openClone(a, cmd) }, func(line string) string { return a.Redact(line).String() }) // cobra keeps it for as long as the process lives
	}
	return root
}

// openClone opens this clone for a completion, before which no flags were looked at.
func openClone(c *console.Console, cmd *cobra.Command) (console.Clone, error) {
	if err := c.Habits(cmd); err != nil {
		return console.Clone{}, err
	}
	s, err := session.OpenRepo(c)
	if s == nil {
		return console.Clone{LedgerRef: c.Flags.LedgerRef}, err
	}
	return console.Clone{Repo: s.Repo, Remotes: s.Repo.Config.Remotes(), LedgerRef: c.Flags.LedgerRef}, err
}

// Main runs a command line, and returns its exit code.
func Main(app console.Process) int {
	code, _ := run(app)
	return code
}
