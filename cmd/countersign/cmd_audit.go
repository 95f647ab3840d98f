package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/sshsig"
	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/report"
)

// auditFlags are the flags of audit.
type auditFlags struct{ from, signers, branch, commit string }

func (a *App) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify the whole ledger, or find the transaction of a commit",
		Long: `audit reads every object of the ledger's history and checks that it is one line of commits, to
which each only added; that every version of every transaction is what its events say; and that
nothing else is there. docs/formats.md has the rules. It reads this clone's ledger; "countersign
sync" brings the remote's here.

With --from it trusts one commit of the ledger and checks what came after. With --branch it also
lists the commits of a branch that no transaction made, since the commit that the oldest
transaction was reviewed on; changes that were applied to a working tree and committed by hand are
among them.

With --commit it finds the transactions of one commit of the code, also of a merged, squashed or
rebased one: those that propose exactly what changed from the commit's first parent to it, or from
A to B. It reads the files alone, and neither messages nor trailers. Such a change is explained
when a transaction of it was applied, or, where a pull request's own diff is the patch, approved.
That the ledger itself is sound is for audit without --commit to say.

Exit code 1 means a violation, a history that is not all here, or a commit that no transaction
explains; 2, that there is no ledger; 3, that something cannot be read.`,
		Example: `  countersign audit
  countersign audit --allowed-signers .github/ledger-signers --json
  countersign audit --from refs/tags/ledger-2026 --branch main
  countersign audit --commit HEAD
  countersign audit --commit v1.2..main --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.audit(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.from, "from", "", "trust this `COMMIT` of the ledger (all 40 digits, or a ref's full name), and check what came after it")
	cmd.Flags().StringVar(&f.signers, "allowed-signers", "", "demand of every commit a good signature of a key in `FILE` (ssh-keygen's ALLOWED SIGNERS)")
	cmd.Flags().StringVar(&f.branch, "branch", "", "list the commits of `BRANCH` that no transaction made")
	cmd.Flags().StringVar(&f.commit, "commit", "", "find the transactions of `COMMIT`, or of a range A..B: whole ids, HEAD, branches or tags")
	return cmd
}

func (a *App) audit(ctx context.Context, f auditFlags) error {
	repo, err := gitstore.Open(a.flags.dir)
	if err != nil {
		return a.inDir(err)
	}
	local, err := a.localLedger(repo)
	if err != nil {
		return err
	}
	if f.commit != "" {
		return a.auditCommit(ctx, repo, local, f)
	}
	signers, err := a.allowedSigners(f.signers)
	if err != nil {
		return err
	}
	h, err := local.History(ctx, gitstore.HistoryOptions{From: f.from, Signers: signers})
	if err != nil {
		return err
	}
	found, err := a.runAudit(h, signers != nil)
	if err != nil {
		return err
	}
	if f.branch != "" && found.OK {
		if found.Branch, err = a.explainBranch(ctx, repo, local, h.Tip(), f.branch); err != nil {
			return err
		}
	}
	if found.OK {
		if err := local.Remember(h); err != nil {
			return err
		}
		a.seen = local.Seen
	}
	if a.flags.json {
		err = a.printJSON(found)
	} else {
		err = a.print(a.auditText(found, h.First, signers != nil))
	}
	if err != nil || found.OK {
		return err
	}
	return &exitError{exitFailed, fmt.Errorf("%s does not verify: %s", a.flags.ledgerRef, counted(found.Count, "finding"))}
}

func (a *App) allowedSigners(name string) (*sshsig.Allowed, error) {
	if name == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(a.path(name))
	if err != nil {
		return nil, &exitError{exitIO, fmt.Errorf("%s: %w", name, plain(err))}
	}
	signers, err := sshsig.ParseAllowedSigners(raw)
	if err != nil {
		return nil, &usageError{fmt.Sprintf("%s: %v", name, err), `a line looks like: ci@example.org namespaces="git" ssh-ed25519 AAAA…`}
	}
	return &signers, nil
}

// runAudit checks the packs, then the history.
func (a *App) runAudit(h *gitstore.History, signatures bool) (audit.Result, error) {
	// The history of a large ledger makes much garbage: half as much memory is
	// worth a tenth of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	p := a.progressLine("audit")
	defer p.end()
	o := audit.Options{Tip: h.Tip(), Signatures: signatures, Progress: p.show}
	o.Found = h.Packs(func(done, total int64) { p.show("MB of packs", int(done>>20), int(total>>20)) })
	if h.Rollback != nil {
		o.Found = append(o.Found, history.Finding{RuleID: "L14", Commit: h.Tip(), Message: h.Rollback.Error()})
	}
	found, err := audit.Run(h, o)
	found.From = h.From()
	return found, err
}

func (a *App) explainBranch(ctx context.Context, repo *gitstore.Repo, local *gitstore.Ledger, tip, name string) (*audit.Branch, error) {
	snap, err := local.At(ctx, tip)
	if err != nil {
		return nil, err
	}
	since, err := audit.Since(snap.Tree)
	if err != nil {
		return nil, err
	}
	commits, err := repo.CommitsSince(ctx, name, since)
	if err != nil {
		return nil, err
	}
	b, err := audit.Explain(snap.Tree, name, since, commits)
	return &b, err
}

// auditText is a Result for people: findings first.
func (a *App) auditText(r audit.Result, first, signatures bool) string {
	var b strings.Builder
	for _, f := range r.Findings {
		where := f.Path
		if f.Commit != "" {
			where = strings.TrimSuffix(f.Commit[:12]+" "+f.Path, " ")
		}
		fmt.Fprintf(&b, "%-8s %s: %s\n", f.RuleID, where, f.Message)
	}
	if more := r.Count - len(r.Findings); more > 0 {
		fmt.Fprintf(&b, "… and %s more\n", counted(more, "finding"))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "%-8s %.12s %s: %s\n", "note", n.Commit, n.Path, n.Message)
	}
	scope := "from the first"
	if r.From != "" {
		scope = fmt.Sprintf("after %.12s, which was trusted", r.From)
	}
	verdict := a.style().Bold("sound")
	switch {
	case !r.Complete:
		verdict = a.style().Red("not all here, and so not verified")
	case !r.OK:
		verdict = a.style().Red("not sound")
	}
	fmt.Fprintf(&b, "%s %.12s is %s: %s %s, %s\n", a.flags.ledgerRef, r.Tip, verdict, commits(r.Commits), scope, counted(r.Transactions, "transaction"))
	b.WriteString(signedText(r, signatures))
	if r.OK && !signatures && first {
		b.WriteString(unproven)
	}
	if r.Branch != nil {
		b.WriteString(branchText(*r.Branch))
	}
	return b.String()
}

func signedText(r audit.Result, checked bool) string {
	switch {
	case checked && r.OK:
		return "signed: all of them, by allowed signers\n"
	case checked:
		return ""
	case r.Signed == 0:
		return "signed: none of them\n"
	}
	return fmt.Sprintf("signed: %d of %d, not verified (--allowed-signers FILE)\n", r.Signed, r.Commits)
}

// unproven is what to say of a ledger that nothing but itself vouches for.
const unproven = `Nothing was known of this ledger here before. That it is sound proves that it agrees with itself,
not that it is the one that was kept: whoever can write to the ref can make all of it anew. What
shows that is a tip from another place (--known-tip, --tip-file) or signatures (--allowed-signers).
This tip is remembered now, and the next audit here notices.
`

func branchText(b audit.Branch) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %d of %s since %.12s made by no transaction\n", report.Clean(b.Name), len(b.Unexplained), commits(b.Commits), b.Since)
	for _, u := range b.Unexplained {
		fmt.Fprintf(&out, "  %.12s %s (%s)\n", u.Commit, report.Clean(u.Subject), u.Reason)
	}
	return out.String()
}

// A progressLine is one line on the terminal that says how far the work is. It
// may be used by several goroutines.
type progressLine struct {
	app     *App // nil: nobody is looking
	command string
	mu      sync.Mutex
	last    time.Time
	wide    int
}

func (a *App) progressLine(command string) *progressLine {
	if a.flags.json || a.flags.quiet || !isTerminal(a.Stderr) || a.Getenv("TERM") == "dumb" {
		return &progressLine{}
	}
	return &progressLine{app: a, command: command}
}

// show says how far it is, at most ten times a second; total 0 is not known.
func (p *progressLine) show(what string, done, total int) {
	if p.app == nil || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	now := p.app.Now()
	if now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last = now
	text := fmt.Sprintf("%s: %d %s", p.command, done, what)
	if total > 0 {
		text = fmt.Sprintf("%s: %d of %d %s", p.command, done, total, what)
	}
	fmt.Fprintf(p.app.Stderr, "\r%-*s", p.wide, text)
	p.wide = max(p.wide, len(text))
}

// end wipes the line.
func (p *progressLine) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.app != nil && p.wide > 0 {
		fmt.Fprintf(p.app.Stderr, "\r%*s\r", p.wide, "")
	}
}
