package console

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/report/view"
)

// As reports whether an error is one of a type.
func As[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// is makes the question whether an error is another.
func is(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

// ends makes the question whether an error says itself that the program ends with a code.
func ends(code int) func(error) bool {
	return func(err error) bool {
		var own interface{ ExitCode() int }
		return errors.As(err, &own) && own.ExitCode() == code
	}
}

// exitCodes are the exit codes of errors, the first that fits. All others are of files, Git or the network: ExitIO.
var exitCodes = []struct {
	code int
	of   []func(error) bool
}{
	{ExitFailed, []func(error) bool{is(pipeline.ErrUnasked)}}, // whatever else went wrong
	{ExitNewer, []func(error) bool{As[*canon.NewerError]}},    // whatever that kept from
	{ExitRefused, []func(error) bool{is(fault.Barred), As[*UsageError], ends(ExitRefused)}},
	{ExitFailed, []func(error) bool{ends(ExitFailed)}},
	{ExitIO, []func(error) bool{ends(ExitIO)}},
	{ExitPending, []func(error) bool{As[*pipeline.PendingError]}},
	{ExitDenied, []func(error) bool{As[*pipeline.DeniedError]}},
	{ExitIO, []func(error) bool{ // whatever they wrap
		is(fault.Away),
		As[*rest.Error], As[*forge.ReadingError],
	}},
	{ExitFailed, []func(error) bool{
		is(fault.Failed),
		As[*effect.UncommittedError], As[*ledger.CorruptError], As[*ledger.DamagedError], As[*gitstore.ConflictError],
		As[*gitstore.RollbackError], As[*gitstore.UnverifiedError], As[*pipeline.ChecksError],
	}},
	{ExitRefused, []func(error) bool{
		is(fault.Refused),
		As[*pipeline.SupersededError], As[*pipeline.LimitError],
		As[*effect.DirtyError], As[*code.UncommittableError], As[*git.UnsupportedError],
		As[*lookup.AmbiguousError],
		As[*gitstore.UnsupportedError], As[*gitstore.RefError], As[*gitstore.BundleError],
		As[policy.Problems], As[*redact.FoundError], As[*pipeline.RedactedError],
		As[*sandbox.UnavailableError], As[*input.SeveralError], As[*patch.Error],
	}},
}

// parts are the errors that were joined into one.
func parts(err error) (of []error) {
	joined, is := err.(interface{ Unwrap() []error }) //nolint:errorlint // what wraps a join is one
	if !is {
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		of = append(of, parts(one)...)
	}
	return of
}

// CodeOf is the exit code of an error. Of several that were joined, one that is no error, but what people decide or have
// decided, comes last.
func CodeOf(err error) int {
	code := codeOf(err)
	for _, part := range parts(err) {
		if one := codeOf(part); decided(code) && !decided(one) {
			code = one
		}
	}
	return code
}

func decided(code int) bool { return code == ExitPending || code == ExitDenied }

func codeOf(err error) int {
	if exit, is := errors.AsType[*ExitError](err); is {
		return exit.Code
	}
	for _, e := range exitCodes {
		if slices.ContainsFunc(e.of, func(is func(error) bool) bool { return is(err) }) {
			return e.code
		}
	}
	if strings.HasPrefix(err.Error(), "unknown command") { // cobra's
		return ExitRefused
	}
	return ExitIO
}

// HintOf is what to do about an error, as the outermost one says that knows it; "" if none does. A hint is
// one line: the very command to type, or a short sentence where there is none.
func HintOf(err error) (hint string) {
	switch e := err.(type) { //nolint:errorlint // its causes are asked below
	case *UsageError:
		return e.Hint
	case *input.SeveralError:
		return "countersign review --patch " + escape.ShellQuote(e.File) + " --as one  # or --as each: a transaction each"
	case *effect.DirtyError:
		if len(e.New) == 0 {
			return "git stash"
		}
		return "git stash push --all -- " + escape.Pathspecs(e.Files, "top") // what is ignored too, and nothing but these
	case *code.UncommittableError:
		switch {
		case len(e.Staged) > 0:
			return "git restore --staged -- " + escape.Pathspecs(e.Staged, "top")
		case len(e.Written) > 0:
			return "git add -- " + escape.Pathspecs(e.Written, "top")
		case e.Lock != "":
			return "rm -f " + escape.ShellQuote(e.Lock) + "  # once no other git is at work"
		}
		return e.Hint
	case *effect.UncommittedError:
		if len(e.Unstaged) > 0 {
			return "git restore --staged -- " + escape.Pathspecs(e.Unstaged, "top")
		}
		return "git status"
	case *pipeline.PendingError:
		next := view.Of(view.Facts{ID: lookup.ShortID(e.ID), Status: ledger.Awaiting, PullRequest: e.PullRequest, Verdict: &e.Verdict}).Next[0]
		if next.Line != "" {
			return next.For + ": " + next.Line
		}
		return "countersign " + strings.Join(next.Command, " ")
	case interface{ Hint() string }:
		hint = e.Hint()
	}
	if wrapped, is := err.(interface{ Unwrap() []error }); is && hint == "" {
		for _, cause := range wrapped.Unwrap() {
			if hint == "" {
				hint = HintOf(cause)
			}
		}
	}
	if cause := errors.Unwrap(err); cause != nil && hint == "" {
		hint = HintOf(cause)
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

// Typed is a hint as it is to be typed where this run was started: with the global flags that it was given, and with the
// transaction that it was about, "" for none.
func (c *Console) Typed(hint, id string) string {
	dir := cmp.Or(c.Beside, c.Flags.Dir)
	switch program, rest, _ := strings.Cut(hint, " "); {
	case c.Cloned != "": // there is no clone to type it in
	case program == "countersign" && !strings.HasPrefix(rest, "-"):
		about := " "
		if id != "" {
			about = " " + lookup.ShortID(id) + " "
		}
		name, more, _ := strings.Cut(strings.Replace(rest+" ", " TX ", about, 1), " ")
		return strings.TrimSpace(c.Again(name, more))
	case program == "git" && dir != "." && !strings.Contains(rest, "--global"):
		return "git -C " + escape.ShellQuote(dir) + " " + rest
	}
	return hint
}

// Worst joins errors that say different things, as the one with the exit code of
// the worst.
func (a *Console) Worst(errs []error) error {
	worst, code := -1, 0
	var unlike []error
	for _, err := range errs {
		c := CodeOf(err)
		rank := 2
		switch c {
		case ExitPending:
			rank = 0
		case ExitDenied:
			rank = 1
		}
		if rank > worst {
			worst, code = rank, c
		}
		if !slices.ContainsFunc(unlike, func(o error) bool { return o.Error() == err.Error() }) {
			unlike = append(unlike, err)
		}
	}
	if code == 0 {
		return nil
	}
	return &ExitError{Code: code, Err: errors.Join(unlike...)}
}
