package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/rule"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/pipeline/seal"
)

// The exit codes; they are an interface (README.md). What is not there is 3 where
// it was to be read: a file, a directory, the Policy's ref, an object, a server.
// It is 2 where the ledger does not have it: a transaction, or any at all.
const (
	exitFailed  = 1 // PARTIAL, FAILED, a violation
	exitRefused = 2 // REFUSED, or a usage error
	exitIO      = 3 // file, directory, Git or network could not be read or written
	exitPending = 4
	exitDenied  = 5
)

// A usageError is a command line that cannot be obeyed.
type usageError struct{ message, hint string }

func (e *usageError) Error() string { return e.message }

// An exitError ends the program with a code; err nil says that everything there
// is to say was printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// A row of the table says what an error means to the user.
type row struct {
	is   func(error) bool
	code int
	hint func(err error, again func(...string) string) string
}

// as makes a test for an error type, is for an error value.
func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

func is(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

func say(hint string) func(error, func(...string) string) string {
	return func(error, func(...string) string) string { return hint }
}

// table is the one place where errors become exit codes and hints.
var table = []row{
	{as[*usageError], exitRefused, usageHint},
	{as[*manyError], exitFailed, func(_ error, again func(...string) string) string {
		return again("run", "TX") + " says more about one of them; " + again("approve", "TX") + " records an approval"
	}},
	{as[*pipeline.PendingError], exitPending, pendingHint},
	{as[*pipeline.DeniedError], exitDenied, say("a denial is final for these bytes; propose a different patch")},
	{as[*pipeline.NoForgeError], exitIO, say("set COUNTERSIGN_TOKEN to a token that may read pull requests")},
	{as[*github.Error], exitIO, forgeHint},
	{as[*pipeline.ReadingError], exitIO, say("nothing on it counts until it is read in full: run it again")},
	{as[*pipeline.PullClosedError], exitRefused, say("reopen it, or propose the change without --pr")},
	{as[*pipeline.GateOnlyError], exitRefused, say("merge the pull request once its check has passed")},
	{as[*pipeline.NoHeadError], exitRefused, say("apply to a ref of the repository itself: --to ref")},
	{as[*obstacleError], exitRefused, obstacleHint},
	{as[*gitstore.PushError], exitIO, say("a token that may push there: push-token in the Action, COUNTERSIGN_TOKEN elsewhere; or --to ref")},
	{as[*gitstore.CutOffError], exitIO, say("git fetch --unshallow; with actions/checkout: fetch-depth: 0")},
	{as[*pipeline.DirtyError], exitRefused, say(`commit the changes or put them away with "git stash", then try again`)},
	{as[*pipeline.SparseError], exitRefused, say("check them out, or apply without a working tree: --to branch")},
	{as[*pipeline.SupersededError], exitRefused, say("make the patch again on the present commit, and review that")},
	{as[*pipeline.ElsewhereError], exitRefused, elsewhereHint},
	{as[*pipeline.ClosedError], exitRefused, closedHint},
	{as[*pipeline.NotHereError], exitIO, say("run it in the clone where it was applied, or git fetch the commit or the one that it was reviewed on")},
	{as[*pipeline.UnprovenError], exitFailed, unprovenHint},
	{as[*pipeline.UnappliedError], exitFailed, say("once what is said of the files is mended, run the same command again")},
	{as[*pipeline.LimitError], exitRefused, say("split the change into smaller patches")},
	{as[*pipeline.UndecidedError], exitRefused, nil},
	{as[*pipeline.NoWorktreeError], exitRefused, say("apply in a clone that has a working tree")},
	{as[*ledger.CorruptError], exitFailed, corruptHint},
	{as[*ledger.DamagedError], exitFailed, say("git log --stat on the ledger's ref shows who put it there")},
	{as[*gitstore.ConflictError], exitFailed, conflictHint},
	{as[*gitstore.AcceptError], exitRefused, nil},
	{as[*gitstore.NotInHistoryError], exitRefused, say("git log --oneline on the ledger's ref lists them")},
	{as[*unexplainedError], exitFailed, say("countersign sync brings the remote's ledger here; a change of several commits is a range: --commit A..B")},
	{is(gitstore.ErrNoLedger), exitRefused, noLedgerHint},
	{is(gitstore.ErrNoBranch), exitRefused, say("git branch --all lists them")},
	{as[*pipeline.SignerError], exitRefused, say("put an SSH key into that variable, without a passphrase or with it in COUNTERSIGN_SIGN_PASSPHRASE")},
	{as[*gitstore.UnsignableError], exitRefused, say("give the key: --sign-key FILE")},
	{as[*wire.AuthError], exitIO, accessHint},
	{as[*wire.HostKeyError], exitIO, say("ssh to the server once by hand and compare its key with what its owner publishes; SSH_KNOWN_HOSTS names a file of known keys")},
	{is(wire.ErrNoSSH), exitIO, say("install OpenSSH's client, name another program in GIT_SSH_COMMAND, or use an https address")},
	{as[*wire.RejectedError], exitIO, say("the remote says why it does not take the ledger; once it does, run the same command again")},
	{as[*wire.NetworkError], exitIO, say("the record stays here with --no-push; countersign sync joins it with the remote's later")},
	{as[*gitstore.RollbackError], exitFailed, rollbackHint},
	{as[*gitstore.UnverifiedError], exitFailed, unverifiedHint},
	{as[*ledger.AmbiguousError], exitRefused, say("name one of them by its id, or by more characters of it")},
	{is(ledger.ErrNoTransactions), exitRefused, reviewHint},
	{is(ledger.ErrNoneOpen), exitRefused, reviewHint},
	{is(ledger.ErrNotFound), exitRefused, listHint},
	{is(gitstore.ErrNotRepository), exitRefused, say("run it inside a Git repository, or name one with -C DIR")},
	{is(gitstore.ErrNoCommits), exitRefused, say("make a first commit; a patch needs a base to apply to")},
	{as[*wire.HashError], exitRefused, say("SHA-256 repositories are not supported, and a clone of one is one too; git init --object-format=sha1 makes one that is")},
	{as[*gitstore.UnsupportedError], exitRefused, say("a plain clone of it (git clone --no-local) is supported")},
	{as[*pipeline.ChecksError], exitFailed, nil},
	{as[policy.Problems], exitRefused, say("docs/policy.md lists the keys and their values")},
	{as[*policyRefError], exitIO, policyRefHint},
	{as[*pipeline.SecretError], exitRefused, say("take it out of the patch, and replace the secret if it is one; close a transaction that has it, and review again")},
	{as[*pipeline.RedactedError], exitRefused, redactedHint},
	{as[*seal.Error], exitRefused, say("COUNTERSIGN_AGE_IDENTITY holds the age identity, AGE-SECRET-KEY-1…")},
	{as[*pipeline.ReadOnlyError], exitRefused, say("the Policy's key sandbox, or --sandbox, says so")},
	{as[*pipeline.PolicyChangedError], exitRefused, say("run it again: the new Policy holds")},
	{as[*pipeline.SandboxError], exitRefused, say("the Policy's key sandbox allows it, or leave --sandbox out")},
	{as[*pipeline.ResultsError], exitRefused, resultsHint},
	{as[*pipeline.NoCommandsError], exitRefused, noCommandsHint},
	{as[*sandbox.UnavailableError], exitRefused, unavailableHint},
	{as[*gitstore.RefError], exitRefused, say("apply to another branch: --to branch --branch NAME")},
	{as[*gitstore.LockedError], exitIO, lockedHint},
	{as[*pipeline.InvalidError], exitRefused, say("countersign patch verify and countersign proposal verify list every violation")},
	{as[*patch.Error], exitRefused, patchHint},
	{is(fs.ErrPermission), exitIO, say("check who owns the file and its directory")},
}

// explain returns the exit code of an error, and a hint where there is one.
func explain(err error, again func(...string) string) (code int, hint string) {
	var exit *exitError
	for _, r := range table {
		if r.is(err) {
			code = r.code
			if r.hint != nil {
				hint = r.hint(err, again)
			}
			break
		}
	}
	switch {
	case errors.As(err, &exit):
		code = exit.code
	case code == 0 && strings.HasPrefix(err.Error(), "unknown command"):
		return exitRefused, `see "countersign --help"`
	case code == 0:
		code = exitIO
	}
	return code, hint
}

func usageHint(err error, _ func(...string) string) string {
	var e *usageError
	errors.As(err, &e)
	return e.hint
}

func pendingHint(err error, again func(...string) string) string {
	var e *pipeline.PendingError
	errors.As(err, &e)
	kinds := map[string]bool{}
	var lines []string
	for _, m := range e.Verdict.Missing() {
		if !kinds[m.Kind] {
			lines = append(lines, "/approve "+m.Fingerprint)
		}
		kinds[m.Kind] = true
	}
	if e.PullRequest > 0 {
		return fmt.Sprintf("comment on pull request %d: %s", e.PullRequest, strings.Join(lines, ", and in another comment: "))
	}
	approve := []string{"approve", e.ID}
	switch {
	case len(kinds) > 1:
		approve = append(approve, "--all")
	case kinds[policy.KindSecret]:
		approve = append(approve, "--fingerprint", "secret")
	case kinds[policy.KindProtected]:
		approve = append(approve, "--fingerprint", "protected")
	}
	return again(approve...) + " && " + again("run", e.ID)
}

func forgeHint(err error, _ func(...string) string) string {
	var e *github.Error
	errors.As(err, &e)
	switch e.Kind {
	case github.KindAuth:
		return "the token is not valid any more: give another one"
	case github.KindPermission:
		return `"countersign init --check" says what the token may do, and what it takes`
	case github.KindNotFound:
		return "it is not there, or the token cannot see it"
	case github.KindRateLimited:
		return "run it again later: what was not read is not approved"
	}
	return "nothing that was not read in full counts: run it again"
}

func obstacleHint(err error, _ func(...string) string) string {
	var e *obstacleError
	errors.As(err, &e)
	return e.obstacle.Instead
}

func elsewhereHint(err error, again func(...string) string) string {
	var e *pipeline.ElsewhereError
	errors.As(err, &e)
	if e.Base == "" {
		return "run the same command there; if it is gone: " + again("close", e.ID)
	}
	return "check out the branch that it was reviewed on, or review the patch again here"
}

func closedHint(err error, again func(...string) string) string {
	var e *pipeline.ClosedError
	errors.As(err, &e)
	return again("show", e.ID)
}

func unprovenHint(err error, again func(...string) string) string {
	var e *pipeline.UnprovenError
	errors.As(err, &e)
	if slices.ContainsFunc(e.Report.Violations, func(v rule.Violation) bool { return v.RuleID == "READBACK" }) {
		return "run it in the working tree where it was applied, with the files as the patch leaves them"
	}
	return again("validate", e.ID)
}

func corruptHint(err error, again func(...string) string) string {
	var e *ledger.CorruptError
	errors.As(err, &e)
	return again("validate", e.ID)
}

func accessHint(err error, _ func(...string) string) string {
	var e *wire.AuthError
	if errors.As(err, &e) && e.Status == 0 {
		return "the same host must let you in with ssh -T; COUNTERSIGN_SSH_KEY names the key, and core.sshCommand counts in your own Git configuration only"
	}
	return "set COUNTERSIGN_TOKEN to a token that may write to the repository, or use an ssh address"
}

func rollbackHint(err error, again func(...string) string) string {
	var e *gitstore.RollbackError
	errors.As(err, &e)
	if e.Source != "" {
		return "find out who did that; a clone that has " + e.Seen + " can push it there again; docs/ledger.md, Memory of a workflow, says more, and how an owner accepts another ledger"
	}
	if e.Tip == "" {
		return "find out who removed it; git push or git update-ref puts " + e.Seen + " back"
	}
	return "find out who moved it and why; only if that was right: " + again("ledger", "accept-tip", e.Tip, "--reason", "WHY")
}

func unverifiedHint(err error, again func(...string) string) string {
	var e *gitstore.UnverifiedError
	errors.As(err, &e)
	return "nothing of it was remembered: find out who added it, and put " + firstOf(e.Since, "the ledger as it was") +
		" back; only if it is to stay: " + again("ledger", "accept-tip", e.Tip, "--reason", "WHY") +
		"; for settle also docs/ledger.md, Memory of a workflow"
}

func conflictHint(err error, again func(...string) string) string {
	var e *gitstore.ConflictError
	if errors.As(err, &e) && len(e.Denied) > 0 {
		return "nothing was changed; deny it again in a fresh clone with --push, then sync here"
	}
	return "nothing was changed; " + again("sync", "--set-aside") + " keeps the remote's and puts this clone's on a ref"
}

func noLedgerHint(_ error, again func(...string) string) string {
	return again("sync") + " brings the remote's; " + again("review") + " begins one"
}

func reviewHint(_ error, again func(...string) string) string {
	return again("review", "--patch", "FILE") + " records one"
}

func listHint(_ error, again func(...string) string) string { return again("list") }

func policyRefHint(err error, _ func(...string) string) string {
	var e *policyRefError
	errors.As(err, &e)
	if branch, ok := strings.CutPrefix(e.ref, "refs/remotes/"+defaultRemote+"/"); ok {
		return fmt.Sprintf("git fetch %s +refs/heads/%s:%s", defaultRemote, shellQuote(branch), shellQuote(e.ref))
	}
	return "--policy-ref takes a full name, such as refs/heads/main"
}

func redactedHint(err error, _ func(...string) string) string {
	var e *pipeline.RedactedError
	errors.As(err, &e)
	hint := "give it again: the same command with --patch FILE (run takes that without " + e.ID + ")"
	if e.Sealed {
		hint += "; or set COUNTERSIGN_AGE_IDENTITY, as it is sealed in the ledger"
	}
	return hint
}

func resultsHint(_ error, again func(...string) string) string {
	return "run " + again("checks", "--out", "FILE") + " again on what is there now"
}

func noCommandsHint(_ error, again func(...string) string) string {
	return "this job holds a token: run " + again("checks", "--out", "results.json") + " in one that has none (actions/checkout with persist-credentials: false), and give --checks results.json here"
}

func unavailableHint(err error, _ func(...string) string) string {
	var e *sandbox.UnavailableError
	errors.As(err, &e)
	if slices.Contains(e.Missing, "user namespaces") {
		return e.Hint + "; or take less: --accept-seccomp"
	}
	return e.Hint
}

func lockedHint(err error, _ func(...string) string) string {
	var e *gitstore.LockedError
	errors.As(err, &e)
	return "if no other countersign or git is running, remove " + e.File
}

// patchHint knows what usually helps against a parser's message.
func patchHint(err error, _ func(...string) string) string {
	for message, hint := range map[string]string{
		`no "diff --git" lines`:        `make the diff with "git diff" rather than "diff -u"`,
		"not a Git diff":               `give the output of "git diff" or "git format-patch -1 --stdout"`,
		"the patch is empty":           `"git diff" prints nothing for staged or committed changes; try "git diff HEAD"`,
		`names do not begin with "a/"`: "git -c diff.noprefix=false -c diff.mnemonicPrefix=false diff",
		"binary file without":          `make the diff with "git diff --binary"`,
		"does not apply":               "make the diff against the commit that HEAD is on",
		"in the base commit":           "make the diff against the commit that HEAD is on",
	} {
		if strings.Contains(err.Error(), message) {
			return hint
		}
	}
	return ""
}
