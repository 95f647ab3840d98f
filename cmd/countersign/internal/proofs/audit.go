// Package proofs has the commands about a whole ledger and what it proves: audit, evidence, sync, witness, ledger.
package proofs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/witness"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

// Commands are those about the ledger itself, and what it proves.
func Commands(c *console.Console) []*cobra.Command {
	return []*cobra.Command{syncCommand(c), ledgerCommand(c), witnessCommand(c), auditCommand(c), evidenceCommand(c)}
}

type AuditFlags struct {
	from, signers, Branch, Since, commit, sarif, atLeast string
	Witness                                              WitnessFlags
	online                                               onlineFlags
	Keys                                                 *sshsig.Allowed // what signers is for, read already
}

func auditCommand(c *console.Console) *cobra.Command {
	var f AuditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify the whole ledger, or find the transaction of a commit",
		Long: `audit reads every object of the ledger's history and checks that it is one line of commits, to
which each only added; that every version of every transaction is what its events say; and that
nothing else is there. docs/formats.md has the rules. It reads this clone's ledger; "countersign
sync" brings the remote's here.

With --from it trusts one commit of the ledger and checks what came after. With --branch it also
says of each commit of a branch what accounts for it: a transaction, a pull request whose own diff
was approved, a rule of the Policy (explained), or nothing. It goes by files, signatures and the
ledger, never by messages, trailers, names or times. The branch begins where the default branch was
when the oldest transaction was reviewed; --since lists later commits alone: those that a COMMIT does
not have, or what came after the last one that the ledger named before a day (2026-01-31) or so
long ago (90d). docs/explain.md has the rules. --sarif also writes all that was found to a file
that code scanning takes. "countersign init --watch" writes a workflow that audits the default branch
and keeps an issue about it.

With --witnesses and --quorum it demands that so many of the witnesses in the file have signed a checkpoint of this
history, and says which commits that covers; --ask asks them whether they have seen more (docs/witnesses.md).

With --online it then asks the forge what it tells now of what is recorded: whether the comments
and reviews that decided are still there and unedited, whose accounts these are, what became of
check runs and pull requests, whether the default branch demands the check, and where the remote's
ledger is. What the forge does not tell is unknown, never fine (docs/online.md).

With --commit it says what accounts for one commit of the code, also a merged, squashed or rebased
one, or for all that changed from A to B: by the history of the default branch if that has it, or of
--branch, as each approval accounts for one making of its change. It reads the files alone, and
neither messages nor trailers. To check the ledger itself, run audit without --commit.

The pages in the ledger (README.md) decide nothing; audit makes them again, and counts those that a newer countersign
wrote, of which it cannot tell whether they say what the record does.

Exit code 1 means a violation, a history that is not all here, a commit that nothing
accounts for, or a forge that contradicts the record; 2, that there is no ledger; 3, that something
cannot be read; 4, with --online, that something is unknown, or was not asked yet; 6, that only a
newer countersign can judge the ledger; 7, that all of that is well, but a page in the ledger says
something else than the record.`,
		Example: `  countersign audit
  countersign audit --allowed-signers .github/ledger-signers --json
  countersign audit --from refs/tags/ledger-2026 --branch main
  countersign audit --branch main --since 90d --sarif audit.sarif
  countersign audit --witnesses witnesses.txt --quorum 2
  countersign audit --online --requests 200
  countersign audit --commit HEAD
  countersign audit --commit v1.2..main --json`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.online.check(cmd.Flags().Changed); err != nil {
				return err
			}
			_, err := Audit(cmd.Context(), c, f)
			return err
		},
	}
	cmd.Flags().StringVar(&f.from, "from", "", "trust this `COMMIT` of the ledger (all its digits, or a ref's full name), and check what came after it")
	cmd.Flags().StringVar(&f.signers, "allowed-signers", "", "demand of every commit a good signature of a key in `FILE` (ssh-keygen's ALLOWED SIGNERS)")
	cmd.Flags().StringVar(&f.Branch, "branch", "", "say of each commit of `BRANCH` what accounts for it")
	cmd.Flags().StringVar(&f.Since, "since", "", "with --branch, list what is later than `WHEN`: a commit, a day, or an age such as 90d")
	cmd.Flags().StringVar(&f.sarif, "sarif", "", "also write what was found to `FILE`, as SARIF 2.1.0")
	cmd.Flags().StringVar(&f.commit, "commit", "", "say what accounts for `COMMIT`, or for a range A..B: whole ids, HEAD, branches or tags")
	cmd.Flags().StringVar(&f.atLeast, "at-least", "", "with --branch or --commit, how strong decisions must be: hardware, signed, forge_twice, forge or shell")
	cmd.Flags().StringVar(&f.Witness.File, "witnesses", "", "hold the ledger to what the witnesses in `FILE` signed of it")
	cmd.Flags().IntVar(&f.Witness.Quorum, "quorum", 0, "with --witnesses: `N` of them are needed")
	f.online.add(cmd)
	cmd.Flags().BoolVar(&f.Witness.ask, "ask", false, "with --witnesses: ask them whether they have seen more")
	return cmd
}

// Judged is what audit --branch came to, the zero value where it came to nothing.
type Judged struct {
	All  explain.Result
	List *explain.Branch
}

// Audit audits the ledger, and with --branch a branch, prints what it came to, and fails if
// anything was found.
func Audit(ctx context.Context, c *console.Console, f AuditFlags) (branch Judged, err error) {
	s, err := session.OpenLocal(c)
	if err != nil {
		return branch, err
	}
	if err := f.check(); err != nil {
		return branch, err
	}
	if f.commit != "" {
		return branch, auditCommit(ctx, s, f)
	}
	signers := f.Keys
	if f.signers != "" {
		if signers, err = session.AllowedSigners(c, f.signers); err != nil {
			return branch, err
		}
	}
	h, err := s.Local.History(ctx, gitstore.HistoryOptions{From: f.from, Signers: signers})
	if err != nil {
		return branch, err
	}
	var witnessed *witness.Witnessed
	var notWitnessed []history.Finding
	if f.Witness.File != "" {
		if witnessed, notWitnessed, err = heldToWitnesses(ctx, s, h.Tip(), f.Witness); err != nil {
			return branch, err
		}
	}
	clock := explain.NewClock(h)
	found, err := session.RunAudit(ctx, s, h, verdict.Options{Over: clock, Signatures: signers != nil}, c.Line.Show, notWitnessed...)
	if err != nil {
		return branch, err
	}
	doc := audited{Result: found, Witnessed: witnessed}
	if f.Branch != "" && found.OK {
		if f.from != "" { // which was trusted, and has transactions whose order counts as well
			if clock, err = session.WholeClock(ctx, s.Local); err != nil {
				return branch, err
			}
		}
		if branch.All, doc.Branch, err = explainBranch(ctx, s, h.Tip(), clock, f); err != nil {
			return branch, err
		}
	}
	if found.OK {
		if err := s.Remember(h); err != nil {
			return branch, err
		}
	}
	if f.online.ask && found.OK {
		if doc.Online, err = askForge(ctx, s, h.Tip(), f.online); err != nil {
			return branch, err
		}
	}
	if f.sarif != "" { // which code scanning takes
		if err := s.WriteJSON(f.sarif, SARIF(doc.Result, doc.Branch, doc.Online, s.Flags.LedgerRef, console.Version())); err != nil {
			return branch, err
		}
	}
	branch.List = doc.Branch
	if err := c.Result(doc, doc.text(c.Flags.LedgerRef, h.First, signers != nil, s.Style())); err != nil {
		return branch, err
	}
	return branch, doc.err(c.Flags.LedgerRef)
}

// check refuses flags that say nothing without another.
func (f AuditFlags) check() error {
	if err := checkStrength(f.atLeast); err != nil {
		return err
	}
	return cmp.Or(
		console.RefuseIf(f.atLeast != "" && f.Branch == "" && f.commit == "", "--at-least was given without --branch or --commit", "countersign audit --branch main --at-least "+escape.ShellQuote(f.atLeast)),
		console.RefuseIf(f.Since != "" && f.Branch == "", "--since was given without --branch", "countersign audit --branch main --since "+escape.ShellQuote(f.Since)),
		console.RefuseIf(f.Witness.File == "" && (f.Witness.Quorum != 0 || f.Witness.ask), "--quorum and --ask are about the witnesses of a file", "name their file: --witnesses FILE"),
	)
}

// checkStrength refuses what is no strength of decisions.
func checkStrength(word string) error {
	if word == "" || slices.Contains(explain.Strengths, explain.Strength(word)) {
		return nil
	}
	return &console.UsageError{Message: fmt.Sprintf("--at-least %+q is no strength", word), Hint: "--at-least is one of: hardware, signed, forge_twice, forge, shell"}
}

// err is the worst of what was found, nil for nothing.
func (d audited) err(ledgerRef string) error {
	newer := d.Undecidable()
	switch {
	case newer != nil:
		return fmt.Errorf("%s: %w", ledgerRef, newer)
	case !d.OK:
		return &console.ExitError{Code: console.ExitFailed, Err: fmt.Errorf("%s does not verify: %s", ledgerRef, report.Counted(d.Count, "finding"))}
	case d.Branch != nil && len(d.Branch.Unexplained) > 0:
		return &fault.Error{
			Kind: fault.Failed, Message: fmt.Sprintf("%s has %s that nothing accounts for", d.Branch.Name, report.Counted(len(d.Branch.Unexplained), "commit")),
			Try: "countersign audit --commit " + d.Branch.Unexplained[0].Commit, Cause: ErrBranch,
		}
	case !d.Pages.OK && (d.Online == nil || d.Online.Bad() == 0):
		return console.PagesDiffer(ledgerRef, report.Counted(d.Pages.Count, "finding"))
	}
	return onlineVerdict(d.Online)
}

// auditCommit says what accounts for one change to the code.
func auditCommit(ctx context.Context, s *session.Session, f AuditFlags) error {
	if f.from != "" || f.Since != "" || f.signers != "" || f.sarif != "" || f.Witness.File != "" || f.online.ask {
		return &console.UsageError{Message: "--commit cannot be combined with the other flags of audit", Hint: "audit the ledger, then the commit"}
	}
	snap, err := s.Local.Snapshot(ctx)
	if err != nil {
		return err
	}
	if snap.Tip == "" {
		return s.Repo.NoLedger()
	}
	if err := writing.CheckSchema(snap.Tree); err != nil {
		return err
	}
	s.Seen = s.Local.Seen
	from, to, err := commitRange(ctx, s.Repo, f.commit)
	if err != nil {
		return err
	}
	clock, err := session.WholeClock(ctx, s.Local)
	if err != nil {
		return err
	}
	j, err := session.OpenJudge(ctx, s, snap.Tree, clock, f.atLeast)
	if err != nil {
		return err
	}
	e, err := j.Commit(ctx, from, to, f.Branch)
	if err != nil {
		return err
	}
	e.LedgerRef, e.LedgerCommit = s.Flags.LedgerRef, snap.Tip
	if err := s.Result(e, report.Explanation(e)); err != nil || e.Explained {
		return err
	}
	return j.Unaccounted(e)
}

// commitRange reads "C", which stands for the commit before it and C, or "A..B".
func commitRange(ctx context.Context, repo *gitstore.Repo, name string) (from, to string, err error) {
	before, after, isRange := strings.Cut(name, "..")
	if !isRange {
		after = name
	}
	if to, err = session.CodeCommit(ctx, repo, after); err != nil {
		return "", "", err
	}
	if isRange {
		from, err = session.CodeCommit(ctx, repo, before)
	} else {
		from, err = repo.FirstParent(ctx, to)
	}
	return from, to, err
}
