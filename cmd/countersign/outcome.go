package main

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/mcp"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/serve"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/sigstore"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/attributes"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/conversation"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/format"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/reviewed"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/pipeline/seal"
	"github.com/countersign-dev/countersign/pipeline/witness"
	"github.com/countersign-dev/countersign/report"
)

// as reports whether an error is one of a type.
func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// is makes the question whether an error is another.
func is(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

// exitCodes are the exit codes of errors, the first that fits. All others are of files, Git or the network: cli.ExitIO.
var exitCodes = []struct {
	code int
	of   []func(error) bool
}{
	{cli.ExitFailed, []func(error) bool{as[*pull.QueueError]}},   // whatever else went wrong
	{cli.ExitNewer, []func(error) bool{as[*format.NewerError]}},  // whatever that kept from
	{cli.ExitRefused, []func(error) bool{as[*pull.BundleError]}}, // whatever is wrong with what it holds
	{cli.ExitRefused, []func(error) bool{as[*cli.UsageError], as[*serve.RefusedError], as[*mcp.ArgumentError], as[*unnamedError]}},
	{cli.ExitFailed, []func(error) bool{as[*mcp.PanicError], as[*manyError]}},
	{cli.ExitPending, []func(error) bool{as[*pipeline.PendingError]}},
	{cli.ExitDenied, []func(error) bool{as[*pipeline.DeniedError]}},
	{cli.ExitIO, []func(error) bool{ // whatever they wrap
		is(fault.Away),
		as[*rest.Error], as[*conversation.ReadingError], as[*gitstore.PushError], as[*scaffold.TagsError],
		as[*sigstore.FailedError], as[*placeError], as[*policyRefError],
	}},
	{cli.ExitFailed, []func(error) bool{
		is(fault.Failed),
		as[*pipeline.UnappliedError], as[*effect.UncommittedError], as[*ledger.CorruptError], as[*ledger.DamagedError], as[*gitstore.ConflictError],
		as[*unverifiedError], as[*unkeptError], as[*branchError], as[*evidenceError], as[*onlineError], as[*gitstore.NoParentError], as[*unexplainedError],
		as[*gitstore.RollbackError], as[*witness.HistoryError], as[*gitstore.UnverifiedError], as[*pipeline.ChecksError],
	}},
	{cli.ExitRefused, []func(error) bool{
		is(fault.Refused),
		as[*pull.ClosedError], as[*scaffold.RefusedError], as[*publicError], as[*sigstore.MissingError], as[*attest.UnsettledError],
		as[*pipeline.GateOnlyError], as[*pipeline.SupersededError], as[*pipeline.LimitError],
		as[*pipeline.ChangedError],
		as[*effect.DirtyError], as[*code.UncommittableError], as[*attributes.UnsupportedError],
		as[*lookup.AmbiguousError],
		as[*gitstore.AcceptError], as[*gitstore.NotInHistoryError], as[*gitstore.UnsignableError], as[*gitstore.UnsafeError], as[*gitstore.UnsupportedError], as[*gitstore.RefError], as[*gitstore.BundleError],
		is(gitstore.ErrNoLedger), is(gitstore.ErrNoBranch), is(gitstore.ErrNotRepository), is(gitstore.ErrNoCommits), as[*wire.HashError],
		as[policy.Problems], as[*redact.FoundError], as[*reviewed.RedactedError], as[*seal.Error],
		as[*sandbox.UnavailableError], as[*input.SeveralError], as[*input.FormatError], as[*input.InvalidError], as[*patch.Error],
	}},
}

// codeOf is the exit code of an error.
func codeOf(err error) int {
	var exit *cli.ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	for _, e := range exitCodes {
		if slices.ContainsFunc(e.of, func(is func(error) bool) bool { return is(err) }) {
			return e.code
		}
	}
	if strings.HasPrefix(err.Error(), "unknown command") { // cobra's
		return cli.ExitRefused
	}
	return cli.ExitIO
}

// hintOf is what to do about an error, as the outermost one says that knows it; "" if none does. A hint is
// one line: the very command to type, or a short sentence where there is none.
func hintOf(err error) (hint string) {
	switch e := err.(type) { //nolint:errorlint // its causes are asked below
	case *cli.UsageError:
		return e.Hint
	case *input.SeveralError:
		return "countersign review --patch " + report.ShellQuote(e.File) + " --as one  # or --as each: a transaction each"
	case *effect.DirtyError:
		if len(e.New) == 0 {
			return "git stash"
		}
		return "git stash push --all -- " + report.Pathspecs(e.Files, "top") // what is ignored too, and nothing but these
	case *code.UncommittableError:
		switch {
		case len(e.Staged) > 0:
			return "git restore --staged -- " + report.Pathspecs(e.Staged, "top")
		case len(e.Written) > 0:
			return "git add -- " + report.Pathspecs(e.Written, "top")
		case e.Lock != "":
			return "rm -f " + report.ShellQuote(e.Lock) + "  # once no other git is at work"
		}
		return e.Hint
	case *effect.UncommittedError:
		if len(e.Unstaged) > 0 {
			return "git restore --staged -- " + report.Pathspecs(e.Unstaged, "top")
		}
		return "git status"
	case *pipeline.PendingError:
		rep := report.Report{TransactionID: e.ID, Status: ledger.Awaiting, PullRequest: e.PullRequest, Verdict: &e.Verdict}
		next := rep.Steps(report.ShortID(e.ID), plainly)[0]
		if strings.HasPrefix(next.Type, "/") {
			return next.For + ": " + next.Type
		}
		return next.Type
	case interface{ Hint() string }:
		hint = e.Hint()
	}
	if wrapped, is := err.(interface{ Unwrap() []error }); is && hint == "" {
		for _, cause := range wrapped.Unwrap() {
			if hint == "" {
				hint = hintOf(cause)
			}
		}
	}
	if cause := errors.Unwrap(err); cause != nil && hint == "" {
		hint = hintOf(cause)
	}
	switch {
	case hint != "":
	case strings.HasPrefix(err.Error(), "unknown command"): // cobra's
		return "countersign --help"
	case errors.Is(err, fs.ErrPermission):
		return "check who owns the file and its directory"
	}
	return hint
}

// plainly is the command line without the flags of a run, which typed adds.
func plainly(args ...string) string { return "countersign " + strings.Join(args, " ") }

// typed is a hint as it is to be typed where this run was started: with the global flags that it was given, and with the
// transaction that it was about.
func (a *App) typed(hint string) string {
	dir := cmp.Or(a.beside, a.flags.dir)
	switch program, rest, _ := strings.Cut(hint, " "); {
	case a.cloned != "": // there is no clone to type it in
	case program == "countersign" && !strings.HasPrefix(rest, "-"):
		about := " "
		if a.transaction != "" {
			about = " " + report.ShortID(a.transaction) + " "
		}
		name, more, _ := strings.Cut(strings.Replace(rest+" ", " TX ", about, 1), " ")
		return strings.TrimSpace(a.again(name, more))
	case program == "git" && dir != "." && !strings.Contains(rest, "--global"):
		return "git -C " + report.ShellQuote(dir) + " " + rest
	}
	return hint
}
