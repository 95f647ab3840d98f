package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/mcp"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/serve"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/sigstore"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/attributes"
	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/conversation"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/reviewed"
	"github.com/countersign-dev/countersign/pipeline/rule"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/pipeline/seal"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/witness"
	"github.com/countersign-dev/countersign/report"
)

// A command writes the command line for a next step (App.again).
type command = func(args ...string) string

// A row of the table says what an error means to the user; the hint is "" where
// there is nothing to say.
type row struct {
	is   func(error) bool
	code int
	hint func(err error, again command) string
}

// as reports whether an error is one of a type.
func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// on makes the row of an error type whose hint depends on the error.
func on[E error](code int, hint func(e E, again command) string) row {
	return row{as[E], code, func(err error, again command) string {
		var e E
		errors.As(err, &e)
		return hint(e, again)
	}}
}

// always makes the row of an error type that has one hint, or "".
func always[E error](code int, hint string) row {
	return row{as[E], code, func(error, command) string { return hint }}
}

// when makes the row of the errors that a function knows.
func when(is func(error) bool, code int, hint string) row {
	return row{is, code, func(error, command) string { return hint }}
}

// value makes the row of one error.
func value(want error, code int, hint func(again command) string) row {
	is := func(err error) bool { return errors.Is(err, want) }
	return row{is, code, func(_ error, again command) string { return hint(again) }}
}

func say(hint string) func(command) string { return func(command) string { return hint } }

// table is the one place where errors become exit codes and hints.
var table = []row{
	on(cli.ExitRefused, func(e *cli.UsageError, _ command) string { return e.Hint }),
	always[*serve.RefusedError](cli.ExitRefused, ""),
	always[*mcp.ArgumentError](cli.ExitRefused, ""),
	always[*mcp.PanicError](cli.ExitFailed, "do the same with the command line, and report what it says"),
	on(cli.ExitRefused, (*unnamedError).hint),
	on(cli.ExitRefused, func(e *pull.RefusedError, _ command) string { return e.Hint }),
	on(cli.ExitFailed, func(_ *manyError, again command) string {
		return again("list")
	}),
	on(cli.ExitPending, func(e *pipeline.PendingError, again command) string {
		rep := report.Report{TransactionID: e.ID, Status: ledger.Awaiting, PullRequest: e.PullRequest, Verdict: &e.Verdict}
		next := rep.Steps(report.ShortID(e.ID), again)[0]
		if strings.HasPrefix(next.Type, "/") {
			return next.For + ": " + next.Type
		}
		return next.Type
	}),
	always[*pipeline.DeniedError](cli.ExitDenied, "a denial is final for these bytes; propose a different patch"),
	always[*guessError](cli.ExitIO, "the server was taken for GitHub Enterprise Server, since it does not say what it is: if that is wrong, --forge gitea or forgejo"),
	always[*conversation.NoForgeError](cli.ExitIO, "set COUNTERSIGN_TOKEN to a token that may read pull requests; one that is set is kept back from another host than origin's, and from a server of which nobody said what it is: --forge gitea, forgejo or github"),
	on(cli.ExitIO, forgeHint),
	always[*conversation.ReadingError](cli.ExitIO, "run it again: nothing there counts until all of it was read"),
	on(cli.ExitRefused, func(e *pull.OpenError, _ command) string { return e.Hint }),
	always[*pull.MergeError](cli.ExitFailed, "look at what was merged, and revert it if it is not what was approved; the ledger has the patch"),
	always[*pull.ClosedError](cli.ExitRefused, "reopen the pull request, or propose the change without --pr"),
	always[*pipeline.GateOnlyError](cli.ExitRefused, "merge the pull request once its check has passed"),
	always[*effect.NoHeadError](cli.ExitRefused, "apply to a ref of the repository itself: --to ref"),
	on(cli.ExitRefused, func(e *effect.PullRequestError, again command) string {
		return again("propose", e.ID, "--to", "pull-request")
	}),
	on(cli.ExitRefused, func(e *pull.ObstacleError, _ command) string { return e.Obstacle.Instead }),
	on(cli.ExitIO, func(e *gitstore.PushError, _ command) string {
		if strings.Contains(e.Reason, "workflow") { // GitHub's words where a token may not push .github/workflows
			return "gh auth refresh -s workflow, or give another token the right to change workflows"
		}
		return "give a token that may push there (push-token in the Action, COUNTERSIGN_TOKEN elsewhere), or apply with --to ref"
	}),
	on(cli.ExitRefused, func(e *scaffold.RefusedError, _ command) string { return e.Hint }),
	always[*scaffold.TagsError](cli.ExitIO, "look whether that repository is there; countersign init --uses OWNER/countersign@COMMIT, with the 40 digits of a commit, asks no server"),
	always[*gitstore.CutOffError](cli.ExitIO, "git fetch --unshallow; with actions/checkout: fetch-depth: 0"),
	on(cli.ExitRefused, func(e *effect.DirtyError, _ command) string {
		if len(e.New) > 0 {
			names := slices.Clone(e.Files)
			for i, file := range names {
				names[i] = ":/" + report.ShellQuote(file) // from the top, wherever it is typed
			}
			return "git stash push --all -- " + strings.Join(names, " ") // what is ignored too, and nothing but these
		}
		return "git stash"
	}),
	on(cli.ExitRefused, func(e *code.UncommittableError, _ command) string {
		switch {
		case len(e.Staged) > 0:
			return "git restore --staged -- " + report.ShellWords(e.Staged)
		case len(e.Written) > 0:
			return "git add -- " + report.ShellWords(e.Written)
		}
		return e.Hint
	}),
	always[*effect.UncommittedError](cli.ExitFailed, "git status"),
	always[*attributes.UnsupportedError](cli.ExitRefused, "apply without the working tree: --to branch"),
	always[*effect.SparseError](cli.ExitRefused, "check them out, or apply without the working tree: --to branch"),
	on(cli.ExitRefused, func(e *pipeline.SupersededError, again command) string {
		if e.PullRequest > 0 {
			return "make the patch again on the current commit, and review it"
		}
		return again("review", "--again", e.ID)
	}),
	on(cli.ExitRefused, func(e *effect.ElsewhereError, again command) string {
		if e.Base == "" {
			return "run the same command there; if it is gone: " + again("close", e.ID)
		}
		return "check out the branch that it was reviewed on, or review the patch again here"
	}),
	on(cli.ExitRefused, func(e *pipeline.ClosedError, again command) string { return again("show", e.ID) }),
	always[*effect.NotHereError](cli.ExitIO, "run it in the clone where it was applied, or git fetch the commit or the one that it was reviewed on"),
	on(cli.ExitFailed, func(e *pipeline.UnprovenError, again command) string {
		if slices.ContainsFunc(e.Report.Violations, func(v rule.Violation) bool { return v.RuleID == "READBACK" }) {
			return "run it in the working tree where it was applied, with the files as the patch leaves them"
		}
		return again("validate", e.ID)
	}),
	always[*pipeline.UnappliedError](cli.ExitFailed, "fix what it says about the files, then run the same command again"),
	on(cli.ExitRefused, func(e *pipeline.LimitError, _ command) string {
		return "split the change, or raise limits." + e.What + " in the Policy"
	}),
	always[*pipeline.UndecidedError](cli.ExitRefused, ""),
	always[*pipeline.NobodyError](cli.ExitRefused, "git config user.email YOU@EXAMPLE.ORG"),
	on(cli.ExitRefused, func(e *pipeline.ChangedError, again command) string { return again("gate", e.ID) }),
	always[*pipeline.NoWorktreeError](cli.ExitRefused, "apply in a clone that has a working tree"),
	on(cli.ExitFailed, func(e *ledger.CorruptError, again command) string { return again("validate", e.ID) }),
	always[*ledger.WordError](cli.ExitRefused, "take the word out of the patch, or have it read from the environment"),
	always[*ledger.DamagedError](cli.ExitFailed, "git log --stat of the ledger's ref shows who added it"),
	on(cli.ExitFailed, func(e *gitstore.ConflictError, again command) string {
		if len(e.Denied) > 0 {
			return "nothing was changed; deny it again in a fresh clone with --push, then sync here"
		}
		return again("sync", "--set-aside") + "  # keeps the remote's, and this clone's on a ref"
	}),
	always[*gitstore.AcceptError](cli.ExitRefused, ""),
	always[*gitstore.NotInHistoryError](cli.ExitRefused, "git log --oneline of the ledger's ref lists them"),
	always[*unverifiedError](cli.ExitFailed, "do not rely on it; where the ledger is, countersign attest --commit C makes one anew"),
	always[*unkeptError](cli.ExitFailed, "countersign sync brings what the remote keeps; countersign attest --commit C --push keeps one"),
	always[*publicError](cli.ExitRefused, "--sign-key FILE or --sign-key FILE --bundle signs with a key, and tells nobody"),
	always[*sigstore.MissingError](cli.ExitRefused, "put countersign-sigstore of the same release beside countersign, or set COUNTERSIGN_SIGSTORE to its path"),
	always[*sigstore.FailedError](cli.ExitIO, "nothing was signed or verified; try again, and see that countersign-sigstore is of the same release"),
	on(cli.ExitRefused, func(e *attest.UnsettledError, again command) string {
		return again("show", e.ID) + " says where it stands; countersign attest --commit C attests the commit that it became"
	}),
	on(cli.ExitFailed, func(_ *branchError, again command) string {
		return again("audit", "--commit", "COMMIT") + " says more about one; docs/explain.md says what accounts for a commit"
	}),
	always[*evidenceError](cli.ExitFailed, "they stand first, each with its reason; docs/evidence.md has every code"),
	on(cli.ExitFailed, (*onlineError).hint),
	always[*gitstore.NoParentError](cli.ExitFailed, "no patch is all that a repository began with: name a later commit"),
	always[*unexplainedError](cli.ExitFailed, "countersign sync brings the remote's ledger here; for a change of several commits give a range: --commit A..B"),
	value(gitstore.ErrNoLedger, cli.ExitRefused, func(again command) string {
		return again("sync") + " brings the remote's; " + again("review") + " begins one"
	}),
	value(gitstore.ErrNoBranch, cli.ExitRefused, say("git branch --all lists them")),
	always[*effect.SignerError](cli.ExitRefused, "put an SSH key into that variable, without a passphrase or with it in COUNTERSIGN_SIGN_PASSPHRASE"),
	always[*gitstore.UnsignableError](cli.ExitRefused, "give the key: --sign-key FILE"),
	on(cli.ExitIO, func(e *placeError, _ command) string { return e.Hint }),
	value(wire.ErrElsewhere, cli.ExitIO, say("the repository was renamed or moved: name it anew in the Policy, ledger.repository")),
	when(isLedgerPlace, cli.ExitIO, "set COUNTERSIGN_LEDGER_TOKEN to a token that may write to that repository: a job's own token reaches no repository but its own on GitHub, and the job of a fork's pull request has no secrets"),
	on(cli.ExitIO, func(e *wire.AuthError, _ command) string {
		if e.Status == 0 {
			return "check that ssh -T lets you in; COUNTERSIGN_SSH_KEY names the key, and core.sshCommand counts in your own Git configuration only"
		}
		if e.Status == http.StatusForbidden {
			return "the server knows who asks and does not allow it, as in a repository that is archived or a mirror, or with a token that may only read"
		}
		return "set COUNTERSIGN_TOKEN to a token that may write to the repository, or use an ssh address"
	}),
	always[*wire.HostKeyError](cli.ExitIO, "ssh to the server once by hand and compare its key with what its owner publishes; SSH_KNOWN_HOSTS names a file of known keys"),
	value(wire.ErrNoSSH, cli.ExitIO, say("install OpenSSH's client, name another program in GIT_SSH_COMMAND, or use an https address")),
	always[*wire.RejectedError](cli.ExitIO, "the error says why the remote refuses the ledger; fix that, then run the same command again"),
	always[*wire.NetworkError](cli.ExitIO, "run it again once the server answers; with --no-push review, approve, run and list work without it, and a later countersign sync joins what they record"),
	always[*wire.StatusError](cli.ExitIO, "run it again once the server answers; with --no-push review, approve, run and list work without it, and a later countersign sync joins what they record"),
	value(wire.ErrNotFound, cli.ExitIO, say("git remote get-url says where it is looked for; a private repository needs a token that may read it, in COUNTERSIGN_TOKEN")),
	on(cli.ExitFailed, rollbackHint),
	always[*witness.HistoryError](cli.ExitFailed, "find out who moved the ledger's ref, and put it back; one that was accepted anew is another log for witnesses: give it another name (docs/witnesses.md)"),
	on(cli.ExitFailed, func(e *gitstore.UnverifiedError, again command) string {
		return "these commits were not accepted: find out who added them, and put " + cmp.Or(e.Since, "the ledger as it was") +
			" back; only if they are right: " + again("ledger", "accept-tip", e.Tip, "--reason", "WHY") +
			"; for settle also docs/ledger.md, Memory of a workflow"
	}),
	always[*ledger.AmbiguousError](cli.ExitRefused, "name one of them by its id, or by more characters of it"),
	value(ledger.ErrNoTransactions, cli.ExitRefused, reviewHint),
	value(ledger.ErrNoneOpen, cli.ExitRefused, reviewHint),
	value(ledger.ErrNotFound, cli.ExitRefused, func(again command) string { return again("list") }),
	value(gitstore.ErrNotRepository, cli.ExitRefused, say("run it inside a Git repository, or name one with -C DIR")),
	value(git.ErrNotInstalled, cli.ExitIO, say("install Git, version 2.39 or later, and see that it is in PATH")),
	on(cli.ExitRefused, func(e *gitstore.UnsafeError, _ command) string { return "only if you trust what is in it: " + e.Mend }),
	always[gitstore.MissingError](cli.ExitIO, "git fetch --refetch --no-filter origin brings all that a partial clone left out; git fsck tells whether a clone is damaged"),
	value(gitstore.ErrNoCommits, cli.ExitRefused, say("make a first commit: a patch needs a base to apply to")),
	always[*wire.HashError](cli.ExitRefused, "repositories of the object format sha256 are not supported, nor are clones of them; git init --object-format=sha1 makes another"),
	always[*gitstore.UnsupportedError](cli.ExitRefused, "a plain clone of it works: git clone --no-local"),
	always[*pipeline.ChecksError](cli.ExitFailed, ""),
	always[policy.Problems](cli.ExitRefused, "docs/policy.md lists the keys and their values"),
	on(cli.ExitIO, func(e *policyRefError, _ command) string {
		if branch, ok := strings.CutPrefix(e.ref, "refs/remotes/"+defaultRemote+"/"); ok {
			return fmt.Sprintf("git fetch %s +refs/heads/%s:%s", defaultRemote, report.ShellQuote(branch), report.ShellQuote(e.ref))
		}
		return "--policy-ref takes a full name, such as refs/heads/main, refs/tags/v1 or refs/remotes/origin/main; no commit, and no short name"
	}),
	always[*secret.FoundError](cli.ExitRefused, "take it out of the patch; if it is a real secret, replace it; close the transaction that has it, and review again"),
	on(cli.ExitRefused, func(e *reviewed.RedactedError, again command) string {
		hint := "give the patch again: " + again("run", e.ID, "--patch", "FILE")
		if e.Sealed {
			hint += "; or set COUNTERSIGN_AGE_IDENTITY, because the ledger has it sealed"
		}
		return hint
	}),
	always[*seal.Error](cli.ExitRefused, "set COUNTERSIGN_AGE_IDENTITY to the age identity, AGE-SECRET-KEY-1…"),
	always[*checks.ReadOnlyError](cli.ExitRefused, "the Policy's key sandbox or --sandbox says read-only"),
	always[*pipeline.PolicyChangedError](cli.ExitRefused, "run it again: the new Policy applies"),
	always[*checks.SandboxError](cli.ExitRefused, "leave --sandbox out, or let the Policy's key sandbox allow it"),
	on(cli.ExitRefused, func(_ *checks.ResultsError, again command) string {
		return "run " + again("checks", "--out", "FILE") + " again on what is there now"
	}),
	on(cli.ExitRefused, func(_ *checks.NoCommandsError, again command) string {
		return "this job holds a token: run " + again("checks", "--out", "results.json") + " in one that has none (actions/checkout with persist-credentials: false), and give --checks results.json here"
	}),
	on(cli.ExitRefused, func(e *sandbox.UnavailableError, _ command) string {
		if slices.Contains(e.Missing, "user namespaces") {
			return e.Hint + "; or take less: --accept-seccomp"
		}
		return e.Hint
	}),
	always[*gitstore.RefError](cli.ExitRefused, "apply to another branch: --to branch --branch NAME"),
	on(cli.ExitIO, func(e *gitstore.LockedError, _ command) string {
		return "if no other countersign or git is running, remove " + e.File
	}),
	on(cli.ExitRefused, func(e *gitstore.BundleError, _ command) string {
		if e.Missing == "" {
			return ""
		}
		return "git fetch --unshallow, or the branch that has it; with actions/checkout: fetch-depth: 0"
	}),
	on(cli.ExitRefused, func(e *input.SeveralError, again command) string {
		return again("review", "--patch", report.ShellQuote(e.File), "--as", "one") + "  # or --as each: a transaction each"
	}),
	always[*input.FormatError](cli.ExitRefused, "--from is one of: "+strings.Join(input.Formats, ", ")),
	always[*input.InvalidError](cli.ExitRefused, "countersign patch verify and countersign proposal verify list every violation"),
	on(cli.ExitRefused, (*unfitError).hint),
	on(cli.ExitRefused, func(e *pipeline.AnewError, again command) string {
		if e.Stays {
			return again("run", e.ID)
		}
		return again("show", e.ID)
	}),
	on(cli.ExitRefused, func(e *seriesError, again command) string {
		return again("review", "--patch", report.ShellQuote(e.file), "--as", "one")
	}),
	{as[*patch.Error], cli.ExitRefused, func(err error, _ command) string { return report.PatchHint(err) }},
	value(fs.ErrPermission, cli.ExitIO, say("check who owns the file and its directory")),
}

// outcome returns the exit code of an error, and a hint where there is one.
func outcome(err error, again command) (code int, hint string) {
	if i := slices.IndexFunc(table, func(r row) bool { return r.is(err) }); i >= 0 {
		code, hint = table[i].code, table[i].hint(err, again)
	}
	var exit *cli.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.Code
	case as[*pull.QueueError](err): // whatever else went wrong
		code = cli.ExitFailed
	case as[*pull.BundleError](err): // whatever is wrong with what it holds
		code = cli.ExitRefused
	case code == 0 && strings.HasPrefix(err.Error(), "unknown command"):
		return cli.ExitRefused, `see "countersign --help"`
	case code == 0:
		code = cli.ExitIO
	}
	return code, hint
}

func forgeHint(e *github.Error, _ command) string {
	switch e.Kind {
	case github.KindAuth:
		return "the token is no longer valid: give another one"
	case github.KindPermission:
		return `"countersign init --check" says what the token can do, and what it needs`
	case github.KindNotFound:
		return "it does not exist, or the token cannot see it"
	case github.KindRateLimited:
		return "run it again later: nothing counts until it was read"
	}
	return "run it again: nothing counts until all of it was read"
}

func rollbackHint(e *gitstore.RollbackError, again command) string {
	if e.Source != "" {
		return "find out who did that; a clone that has " + e.Seen + " can push it there again; docs/ledger.md, Memory of a workflow, says more, and how an owner accepts another ledger"
	}
	if e.Tip == "" {
		return "find out who removed it; git push or git update-ref puts " + e.Seen + " back"
	}
	return "find out who moved it and why; only if that was right: " + again("ledger", "accept-tip", e.Tip, "--reason", "WHY")
}

func reviewHint(again command) string { return again("review", "--patch", "FILE") + " records one" }
