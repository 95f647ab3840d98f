package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/conversation"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/signed"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report"
)

// decideCommand is approve or deny.
func (a *App) decideCommand(word string) *cobra.Command {
	ruling := pipeline.Ruling{Decision: ledger.Decision(word), Kind: "local"}
	var fingerprint string
	var f signFlags
	short := map[string]string{
		"approve": "Approve the exact bytes of a patch",
		"deny":    "Deny a patch for good: the same bytes are refused from now on",
	}
	cmd := &cobra.Command{
		Use:   word + " [TX]",
		Short: short[word],
		Long: short[word] + `.

In a terminal it shows the risks and the patch, through the pager, and then asks about each kind of
approval by itself, and says what it is needed for. The answer is about what was shown: if that has
changed by then, nothing is recorded, and the change is shown again. Elsewhere, and with --json, it
asks nobody, and you must name the transaction: by the last seven
characters of its id or more, or by the first twelve digits of the patch's SHA-256 or more.

A local decision proves that somebody with this shell made it, and no more. With approvals.signed
the Policy can demand a person's own key.`,
		Example: "  countersign " + word + "\n  countersign " + word + ` tx_01K5Z8M2QV --reason "read it line by line"`,
		Args:    cli.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if fingerprint != "" {
				ruling.Fingerprints = []string{fingerprint}
			}
			return a.decide(cmd.Context(), args, ruling, f)
		},
	}
	cmd.Flags().StringVar(&fingerprint, "fingerprint", "", "what is meant: secret, protected, or patchset:… in full: `WHAT`; refused if it is not the transaction's")
	cmd.Flags().BoolVar(&ruling.All, "all", false, "answer everything that the transaction asks about at once")
	cmd.Flags().StringVarP(&ruling.Reason, "reason", "m", "", "why, recorded with the decision: `TEXT`")
	cmd.Flags().BoolVar(&f.sign, "sign", false, "sign the decision with your own SSH key")
	f.add(cmd)
	return cmd
}

// decide records one person's decision on the transaction that it names.
func (a *App) decide(ctx context.Context, args []string, ruling pipeline.Ruling, f signFlags) error {
	if f.key != "" && !f.sign {
		return &cli.UsageError{Message: "--key belongs to --sign", Hint: ""}
	}
	r, err := a.open()
	if err != nil {
		return err
	}
	if r.Decider.ID == "" {
		return pipeline.ErrNobody
	}
	if name := namedPatch(ruling); name != "" && len(args) == 0 {
		args = []string{name}
	}
	if r, err = a.give(ctx, r, args, f.patch); err != nil {
		return err
	}
	var sign signFunc
	if f.sign {
		sign = func(g pipeline.Gated, ruling pipeline.Ruling) (*signed.Signature, error) {
			return a.sign(ctx, r, g, ruling, f.key)
		}
	}
	if len(args) == 0 && ruling.Decision == ledger.Approve && a.somebody() {
		switch queue, err := a.queue(ctx, r); {
		case err != nil:
			return err
		case len(queue) > 1:
			return a.decideEach(ctx, r, queue, ruling, sign)
		}
	}
	return a.decideOne(ctx, r, args, ruling, sign)
}

// queue are the transactions that wait for a decision here, the riskiest first. Nobody is asked about
// one that cannot be judged, which is said.
func (a *App) queue(ctx context.Context, r *pipeline.Runner) (queue []string, err error) {
	open, damaged, err := r.Open(ctx)
	for _, one := range damaged {
		a.say("not asked: %s", oneLine(one))
	}
	rank := map[string]int{}
	for _, tx := range open {
		if tx.PullRequest() > 0 { // decided there
			continue
		}
		g, err := r.Judge(ctx, tx.TransactionID)
		var risks risk.List
		if err == nil && errors.As(g.Err(), new(*pipeline.PendingError)) {
			risks, err = review.Risks(ctx, g)
		} else if err == nil {
			continue
		}
		if err != nil {
			a.say("not asked: %s", oneLine(err))
			continue
		}
		rank[tx.TransactionID] = len(risk.Kinds())
		if len(risks.Risks) > 0 {
			rank[tx.TransactionID] = slices.Index(risk.Kinds(), risks.Risks[0].Kind)
		}
		queue = append(queue, tx.TransactionID)
	}
	slices.SortStableFunc(queue, func(a, b string) int { return rank[a] - rank[b] })
	return queue, err
}

// decideEach asks the person at the terminal about one after the other.
func (a *App) decideEach(ctx context.Context, r *pipeline.Runner, queue []string, ruling pipeline.Ruling, sign signFunc) error {
	var pending error
	for i, id := range queue {
		a.say("%d of %d", i+1, len(queue))
		err := a.decideOne(ctx, r, []string{id}, ruling, sign)
		if code := codeOf(err); err != nil && code != cli.ExitPending {
			return err
		} else if err != nil {
			pending = &cli.ExitError{Code: code}
		}
	}
	return pending
}

// decideOne records one person's decision on one transaction.
func (a *App) decideOne(ctx context.Context, r *pipeline.Runner, args []string, ruling pipeline.Ruling, sign signFunc) error {
	g, answered, err := a.decideSomewhere(ctx, r, args, ruling, sign)
	if err != nil {
		return err
	}
	if !answered {
		a.say("nothing was recorded")
		return cmp.Or(g.Ending(), error(&cli.ExitError{Code: cli.ExitPending, Err: errors.New("nobody has decided")}))
	}
	a.sayUncounted(g)
	by := r.Decider.Login
	if !g.Recorded {
		a.say("nothing recorded: this was decided already")
		by = ""
	}
	return a.showGate(ctx, g, by)
}

// decideSomewhere asks the person at the terminal, whatever was named. Where nobody can
// be asked it takes the ruling on what was named as it is.
func (a *App) decideSomewhere(ctx context.Context, r *pipeline.Runner, args []string, ruling pipeline.Ruling, sign signFunc) (g pipeline.Gated, answered bool, err error) {
	find := func() (string, error) {
		id, err := a.toDecide(ctx, r, args)
		if len(args) == 0 && errors.As(err, new(*lookup.AmbiguousError)) {
			err = a.unnamed(ctx, r, "", ruling)
		}
		return id, err
	}
	if person := a.person(); person != nil {
		defer person.Close()
		g, answered, err = a.decideHere(ctx, r, find, ruling, sign, person)
		if !errors.Is(err, errNotAsked) {
			return g, answered, err
		}
	}
	if len(args) == 0 {
		return g, false, a.unnamed(ctx, r, "", ruling)
	}
	id, err := find()
	if (err == nil || errors.As(err, new(*lookup.AmbiguousError))) && !precise(args[0], id) {
		return g, false, a.unnamed(ctx, r, args[0], ruling)
	}
	if err != nil {
		return g, false, err
	}
	if sign != nil {
		if g, err = r.Judge(ctx, id); err == nil {
			ruling.Signature, err = sign(g, ruling)
		}
		if err != nil {
			return g, false, err
		}
	}
	g, err = r.Decide(ctx, id, ruling)
	return g, true, err
}

// What a name must have at least, where nobody was shown what it means: the time of a
// transaction's id, the end that people are told of it, or as much of a patch_id as is not there
// by chance.
const (
	preciseID    = 10
	preciseEnd   = 7
	precisePatch = 12
)

// precise reports whether a name of a transaction is one that its writer must have read
// somewhere: every id begins as any other does.
func precise(name, id string) bool {
	part := strings.TrimPrefix(strings.ToUpper(name), "TX_")
	switch {
	case strings.HasPrefix(strings.TrimPrefix(id, "tx_"), part):
		return len(part) >= preciseID
	case strings.HasSuffix(id, part):
		return len(part) >= preciseEnd
	}
	return len(strings.TrimPrefix(name, "patchset:")) >= precisePatch
}

// namedPatch is the patch that a ruling names by a fingerprint in full, "" for none.
func namedPatch(ruling pipeline.Ruling) string {
	for _, f := range ruling.Fingerprints {
		if id := ledger.FingerprintPatch(f); slices.Contains(policy.Fingerprints(id), f) && canon.IsHex64(id) {
			return id
		}
	}
	return ""
}

// toDecide finds the transaction that a decision is about. Of several with the
// patch that is named it is the one that is open.
func (a *App) toDecide(ctx context.Context, r *pipeline.Runner, args []string) (string, error) {
	snap, id, err := a.find(ctx, r, args, false)
	var several *lookup.AmbiguousError
	if !errors.As(err, &several) || several.Name == "" {
		return id, err
	}
	var open []string
	patchID := ""
	for _, id := range several.IDs {
		tx, stateErr := ledger.State(snap.Tree, id)
		if stateErr != nil {
			return "", stateErr
		}
		if patchID = cmp.Or(patchID, tx.PatchID()); tx.PatchID() != patchID {
			return "", err
		}
		if !tx.Closed {
			open = append(open, id)
		}
	}
	if len(open) == 1 {
		a.transaction = open[0]
		return open[0], nil
	}
	return "", err
}

// An unnamedError is a decision that names no transaction, where no person was
// shown one, or by too short a part of its name. Command is what it was to be, but for
// the name.
type unnamedError struct {
	short   string
	open    []report.Listed
	command func(tx string) []string
}

func (e *unnamedError) Error() string {
	why := "nobody was shown it here"
	if len(e.open) > 1 {
		why = fmt.Sprintf("%d transactions are open", len(e.open))
	}
	if e.short != "" {
		why = fmt.Sprintf("%s is too short a part of a name", ledger.OneLine(e.short, 40))
	}
	return e.command("")[0] + " must name the exact change: " + why
}

// Hint is the command that names it.
func (e *unnamedError) Hint() string {
	return strings.Join(append([]string{"countersign"}, e.command(report.ShortID(e.open[len(e.open)-1].TransactionID))...), " ")
}

// unnamed says what there is to name; short is what was given instead, if anything.
func (a *App) unnamed(ctx context.Context, r *pipeline.Runner, short string, ruling pipeline.Ruling) error {
	snap, err := r.Ledger(ctx, ledger.TransactionsDir)
	if err != nil {
		return err
	}
	open, err := lookup.Open(snap.Tree)
	if err == nil && len(open) == 0 {
		err = lookup.ErrNoneOpen
	}
	if err != nil {
		return err
	}
	rows, err := a.listing(ctx, snap, open, r.History)
	if err != nil {
		return err
	}
	return &unnamedError{short, rows, func(tx string) []string {
		words := []string{string(ruling.Decision), tx}
		for _, f := range ruling.Fingerprints {
			words = append(words, "--fingerprint", report.ShellQuote(f))
		}
		if ruling.Reason != "" {
			words = append(words, "--reason", report.ShellQuote(ruling.Reason))
		}
		return words
	}}
}

// sayUncounted says which of several decisions were not recorded, and why.
func (a *App) sayUncounted(g pipeline.Gated) {
	for _, why := range g.Uncounted {
		a.say("%s", why)
	}
}

func (a *App) gateCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "gate [TX]",
		Short:   "Say whether a patch is approved, and why each decision counts or not",
		Example: "  countersign gate tx_01J --json",
		Args:    cli.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, _, id, err := a.openOne(cmd.Context(), args, false)
			if err != nil {
				return err
			}
			g, err := r.Gate(cmd.Context(), id)
			if err != nil {
				return err
			}
			return errors.Join(a.showGate(cmd.Context(), g, ""), g.Ending())
		},
	}
}

func (a *App) showGate(ctx context.Context, g pipeline.Gated, by string) error {
	rep, err := a.report(ctx, g)
	if err == nil {
		rep.ApplyResult, rep.AppliedCommit, err = g.Result()
	}
	if err != nil {
		return err
	}
	return a.tell(rep, by)
}

func (a *App) waitCommand() *cobra.Command {
	var timeout, every time.Duration
	cmd := &cobra.Command{
		Use:   "wait [TX]",
		Short: "Wait until people have decided, or the transaction has ended",
		Long: `wait looks again and again until the verdict on a transaction is there. Its exit code is that
of gate: 0 approved, 5 denied; 4 when the time is over and approvals are still pending.`,
		Example: "  countersign wait tx_01J --timeout 30m && countersign apply tx_01J",
		Args:    cli.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 || every < 0 {
				return &cli.UsageError{Message: "a time to wait cannot be negative", Hint: "--timeout 30m"}
			}
			r, _, id, err := a.openOne(cmd.Context(), args, false)
			if err != nil {
				return err
			}
			return a.wait(cmd.Context(), r, id, timeout, every)
		},
	}
	cmd.Flags().Var((*seconds)(&timeout), "timeout", "give up after this `TIME`, in seconds or such as 90s or 2h (default: never)")
	cmd.Flags().Var((*seconds)(&every), "every", "look again after this `TIME` (default: 1s, of a pull request 30s)")
	return cmd
}

// seconds is a flag's duration, whose number alone is one of seconds.
type seconds time.Duration

func (s *seconds) Set(text string) error {
	if _, err := strconv.ParseUint(text, 10, 32); err == nil {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	*s = seconds(d)
	return err
}

func (s *seconds) String() string { return time.Duration(*s).String() }
func (*seconds) Type() string     { return "duration" }

// wait looks until there is a verdict. What could not be read this time is
// looked at again: it is no verdict.
func (a *App) wait(ctx context.Context, r *pipeline.Runner, id string, timeout, every time.Duration) error {
	began := a.Now()
	for {
		g, err := r.Gate(ctx, id)
		unread := errors.As(err, new(*conversation.ReadingError))
		switch {
		case err != nil && !unread:
			return err
		case unread:
			a.say("%s", oneLine(err))
		case g.Transaction().Closed || !errors.As(g.Err(), new(*pipeline.PendingError)):
			return errors.Join(a.showGate(ctx, g, ""), g.Ending())
		}
		if timeout > 0 && a.Now().Sub(began) >= timeout {
			if unread {
				return err
			}
			return g.Err()
		}
		d := time.Second
		if unread || g.Pull() != nil {
			d = 30 * time.Second // a forge counts requests
		}
		if err := sleep(ctx, cmp.Or(every, d)); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// pause waits as the program was told to wait.
func (a *App) pause(ctx context.Context, d time.Duration) error {
	if a.Wait != nil {
		return a.Wait(ctx, d)
	}
	return sleep(ctx, d)
}

func (a *App) closeCommand() *cobra.Command {
	var reason, file, status string
	cmd := &cobra.Command{
		Use:   "close [TX]",
		Short: "Close a transaction that nobody will take further",
		Long: `close ends an open transaction. Unlike a denial it says nothing about the patch: the same bytes
may be proposed again.`,
		Example: `  countersign close tx_01J --reason "no longer needed"`,
		Args:    cli.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := closeStatus("--status", status); err != nil {
				return err
			}
			r, err := a.open()
			if err != nil {
				return err
			}
			if r, err = a.give(cmd.Context(), r, args, file); err != nil {
				return err
			}
			_, id, err := a.find(cmd.Context(), r, args, false)
			if err != nil {
				return err
			}
			g, err := r.Interrupt(cmd.Context(), id, cmp.Or(reason, "closed by "+r.Actor.Login))
			if err != nil {
				return err
			}
			return a.showGate(cmd.Context(), g, "")
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, recorded with it")
	cmd.Flags().StringVar(&status, "status", string(ledger.Interrupted), "the record's word for it: `STATUS` can only be interrupted")
	givePatch(cmd, &file)
	return cmd
}

// closeStatus refuses the ends that are not a person's, nor a client's, to set.
func closeStatus(name, status string) error {
	if status == string(ledger.Interrupted) {
		return nil
	}
	return &cli.UsageError{Message: name + " can only be interrupted: countersign sets every other status itself", Hint: ""}
}
