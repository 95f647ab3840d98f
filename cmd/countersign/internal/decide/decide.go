// Package decide has the commands with which people decide: approve, deny, sign, gate, wait, close, dispose, and deployed, with which a pipeline
// tells. A person at a terminal is
// shown what the answer is about.
package decide

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

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report"
)

// Commands are those with which people decide.
func Commands(c *console.Console) []*cobra.Command {
	return []*cobra.Command{decideCommand(c, "approve"), decideCommand(c, "deny"), signCommand(c), gateCommand(c), waitCommand(c), closeCommand(c), disposeCommand(c), deployedCommand(c), adviseCommand(c)}
}

// decideCommand is approve or deny.
func decideCommand(c *console.Console, word string) *cobra.Command {
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
changed by then, nothing is recorded, and the change is shown again. With [p]art you choose files and hunks;
what you took is proposed in its place, shown, and asked about. approve without a name goes through all that waits,
in the order of status, and a single key answers. Elsewhere, and with --json, it
asks nobody, and you must name the transaction: by the last seven
characters of its id or more, or by the first twelve digits of the patch's SHA-256 or more.

A local decision proves that somebody with this shell made it, and no more. With approvals.signed
the Policy can demand a person's own key.`,
		Example: "  countersign " + word + "\n  countersign " + word + ` tx_01K5Z8M2QV --reason "read it line by line"`,
		Args:    console.UpToOne,
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			if fingerprint != "" {
				ruling.Fingerprints = []string{fingerprint}
			}
			return decide(cmd.Context(), c, args, ruling, f)
		}),
	}
	cmd.Flags().StringVar(&fingerprint, "fingerprint", "", "what is meant: secret, protected, or patchset:… in full: `WHAT`; refused if it is not the transaction's")
	cmd.Flags().BoolVar(&ruling.All, "all", false, "answer everything that the transaction asks about at once")
	cmd.Flags().StringVarP(&ruling.Reason, "reason", "m", "", "why, recorded with the decision: `TEXT`")
	cmd.Flags().BoolVar(&f.sign, "sign", false, "sign the decision with your own SSH key")
	f.add(cmd)
	return cmd
}

// decide records one person's decision on the transaction that it names.
func decide(ctx context.Context, c *console.Console, args []string, ruling pipeline.Ruling, f signFlags) (console.Outcome, error) {
	if f.key != "" && !f.sign {
		return console.Outcome{}, &console.UsageError{Message: "--key belongs to --sign", Hint: ""}
	}
	s, err := session.Open(c)
	if err != nil {
		return console.Outcome{}, err
	}
	if s.Runner.Decider.ID == "" {
		return console.Outcome{}, pipeline.ErrNobody
	}
	if name := namedPatch(ruling); name != "" && len(args) == 0 {
		args = []string{name}
	}
	if s, err = s.Give(ctx, args, f.patch); err != nil {
		return console.Outcome{}, err
	}
	var sign signFunc
	if f.sign {
		sign = func(g pipeline.Judgement, ruling pipeline.Ruling) (*approval.Signature, error) {
			return signRuling(ctx, s, g, ruling, f.key)
		}
	}
	if len(args) == 0 && ruling.Decision == ledger.Approve && c.Somebody() {
		switch queue, err := queue(ctx, s); {
		case err != nil:
			return console.Outcome{}, err
		case len(queue) > 1:
			return decideEach(ctx, s, queue, ruling, sign)
		}
	}
	return decideOne(ctx, s, args, ruling, sign)
}

// queue are the transactions that wait for a decision here, in their turn. Nobody is asked about
// one that cannot be judged, which is said.
func queue(ctx context.Context, s *session.Session) (queue []string, err error) {
	open, damaged, err := s.Runner.Open(ctx)
	for _, one := range damaged {
		s.Say("not asked: %s", console.OneLine(one))
	}
	turn, due := map[string]lookup.Turn{}, s.Due(ctx)
	for _, tx := range open {
		if tx.PullRequest() > 0 { // decided there
			continue
		}
		g, err := s.Runner.Judge(ctx, tx.TransactionID)
		var risks risk.List
		if err == nil && errors.As(g.Err(), new(*pipeline.PendingError)) {
			risks, err = review.Risks(ctx, g)
		} else if err == nil {
			continue
		}
		if err != nil {
			s.Say("not asked: %s", console.OneLine(err))
			continue
		}
		turn[tx.TransactionID] = lookup.NewTurn(tx.CreatedAt, due, risks.Rank(), tx.Proposer.Login)
		queue = append(queue, tx.TransactionID)
	}
	slices.SortStableFunc(queue, func(a, b string) int { return turn[a].Compare(turn[b], s.Now()) })
	return queue, err
}

// decideEach asks the person at the terminal about one after the other.
func decideEach(ctx context.Context, s *session.Session, queue []string, ruling pipeline.Ruling, sign signFunc) (done console.Outcome, err error) {
	var pending error
	s = s.With(s.Runner)
	s.OneKey = true
	for i, id := range queue {
		s.Say("%d of %d", i+1, len(queue))
		done, err = decideOne(ctx, s, []string{id}, ruling, sign)
		switch {
		case err == nil:
		case console.CodeOf(err) != console.ExitPending:
			return done, err
		default:
			pending = &console.ExitError{Code: console.ExitPending}
		}
	}
	return done, pending
}

// decideOne records one person's decision on one transaction.
func decideOne(ctx context.Context, s *session.Session, args []string, ruling pipeline.Ruling, sign signFunc) (console.Outcome, error) {
	id, g, answered, err := decideSomewhere(ctx, s, args, ruling, sign)
	if err != nil {
		return console.About(id), err
	}
	if !answered {
		s.Say("nothing was recorded")
		return console.About(id), cmp.Or(g.Ending(), error(&console.ExitError{Code: console.ExitPending, Err: errors.New("nobody has decided")}))
	}
	sayUncounted(s.Console, g)
	by := s.Runner.Decider.Login
	if !g.Recorded {
		s.Say("nothing recorded: this was decided already")
		by = ""
	}
	return showGate(ctx, s, g, by)
}

// decideSomewhere asks the person at the terminal, whatever was named. Where nobody can
// be asked it takes the ruling on what was named as it is; but nobody named what a queue names.
func decideSomewhere(ctx context.Context, s *session.Session, args []string, ruling pipeline.Ruling, sign signFunc) (id string, g pipeline.Judgement, answered bool, err error) {
	find := func() (string, error) {
		id, err = toDecide(ctx, s, args)
		if len(args) == 0 && errors.As(err, new(*lookup.AmbiguousError)) {
			err = unnamed(ctx, s, "", ruling)
		}
		return id, err
	}
	if person := s.Person(); person != nil {
		defer person.Close()
		g, answered, err = decideHere(ctx, s, find, ruling, sign, person)
		if !errors.Is(err, console.ErrNotAsked) {
			return id, g, answered, err
		}
	}
	if len(args) == 0 || s.OneKey {
		return "", g, false, unnamed(ctx, s, "", ruling)
	}
	_, err = find()
	if (err == nil || errors.As(err, new(*lookup.AmbiguousError))) && !precise(args[0], id) {
		return id, g, false, unnamed(ctx, s, args[0], ruling)
	}
	if err == nil && sign != nil {
		if g, err = s.Runner.Judge(ctx, id); err == nil {
			ruling.Signature, err = sign(g, ruling)
		}
	}
	if err != nil {
		return id, g, false, err
	}
	g, err = s.Runner.Decide(ctx, id, ruling)
	return id, g, true, err
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
func toDecide(ctx context.Context, s *session.Session, args []string) (string, error) {
	snap, id, err := s.Find(ctx, args, false)
	var several *lookup.AmbiguousError
	if !errors.As(err, &several) || several.Name == "" {
		return id, err
	}
	var open []string
	patchID := ""
	for _, id := range several.IDs {
		tx, stateErr := lookup.State(snap.Tree, id)
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
	return strings.Join(append([]string{"countersign"}, e.command(lookup.ShortID(e.open[len(e.open)-1].TransactionID))...), " ")
}

// ExitCode is that of a usage error.
func (*unnamedError) ExitCode() int { return console.ExitRefused }

// Lines are what is open, below the error.
func (e *unnamedError) Lines(func(string) string) (title string, below []string) {
	return console.OneLine(e), report.OpenLines(e.open)
}

// Open is what is open, for a program.
func (e *unnamedError) Open() []any { return report.Documents(e.open) }

// unnamed says what there is to name; short is what was given instead, if anything.
func unnamed(ctx context.Context, s *session.Session, short string, ruling pipeline.Ruling) error {
	snap, err := s.Runner.Ledger(ctx, ledger.TransactionsDir)
	if err != nil {
		return err
	}
	open, err := lookup.Open(snap.Tree)
	if err == nil && len(open) == 0 {
		err = s.Lacks(snap, lookup.ErrNoneOpen)
	}
	if err != nil {
		return err
	}
	rows, err := s.Listing(ctx, snap, open)
	if err != nil {
		return err
	}
	return &unnamedError{short, rows, func(tx string) []string {
		words := []string{string(ruling.Decision), tx}
		for _, f := range ruling.Fingerprints {
			words = append(words, "--fingerprint", escape.ShellQuote(f))
		}
		if ruling.Reason != "" {
			words = append(words, "--reason", escape.ShellQuote(ruling.Reason))
		}
		return words
	}}
}

// sayUncounted says which of several decisions were not recorded, and why.
func sayUncounted(c *console.Console, g pipeline.Judgement) {
	for _, why := range g.Uncounted {
		c.Say("%s", why)
	}
}

func gateCommand(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:     "gate [TX]",
		Short:   "Say whether a patch is approved, and why each decision counts or not",
		Example: "  countersign gate tx_01J --json",
		Args:    console.UpToOne,
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			s, _, id, err := session.OpenOne(cmd.Context(), c, args, false)
			if err != nil {
				return console.Outcome{}, err
			}
			g, err := s.Runner.Gate(cmd.Context(), id)
			if err != nil {
				return console.About(id), err
			}
			return showEnding(cmd.Context(), s, g)
		}),
	}
}

func showGate(ctx context.Context, s *session.Session, g pipeline.Judgement, by string) (console.Outcome, error) {
	rep, err := s.ReportResult(ctx, g)
	if err != nil {
		return console.About(g.Transaction().TransactionID), err
	}
	return s.Tell(rep, by)
}

// showEnding is showGate, with the error that the verdict is.
func showEnding(ctx context.Context, s *session.Session, g pipeline.Judgement) (console.Outcome, error) {
	done, err := showGate(ctx, s, g, "")
	return done, errors.Join(err, g.Ending())
}

func waitCommand(c *console.Console) *cobra.Command {
	var timeout, every time.Duration
	cmd := &cobra.Command{
		Use:   "wait [TX]",
		Short: "Wait until people have decided, or the transaction has ended",
		Long: `wait looks again and again until the verdict on a transaction is there. Its exit code is that
of gate: 0 approved, 5 denied; 4 when the time is over and approvals are still pending.`,
		Example: "  countersign wait tx_01J --timeout 30m && countersign apply tx_01J",
		Args:    console.UpToOne,
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			if timeout < 0 || every < 0 {
				return console.Outcome{}, &console.UsageError{Message: "a time to wait cannot be negative", Hint: "--timeout 30m"}
			}
			s, _, id, err := session.OpenOne(cmd.Context(), c, args, false)
			if err != nil {
				return console.Outcome{}, err
			}
			return wait(cmd.Context(), s, id, timeout, every)
		}),
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

func (*seconds) Type() string { return "duration" }

// wait looks until there is a verdict. What could not be read this time is
// looked at again: it is no verdict.
func wait(ctx context.Context, s *session.Session, id string, timeout, every time.Duration) (console.Outcome, error) {
	began := s.Now()
	for {
		g, err := s.Runner.Gate(ctx, id)
		unread := errors.As(err, new(*forge.ReadingError))
		switch {
		case err != nil && !unread:
			return console.About(id), err
		case unread:
			s.Say("%s", console.OneLine(err))
		case g.Transaction().Closed || !errors.As(g.Err(), new(*pipeline.PendingError)):
			return showEnding(ctx, s, g)
		}
		if timeout > 0 && s.Now().Sub(began) >= timeout {
			if unread {
				return console.About(id), err
			}
			return console.About(id), g.Err()
		}
		d := time.Second
		if unread || g.Pull() != nil {
			d = 30 * time.Second // a forge counts requests
		}
		if err := rest.Sleep(ctx, cmp.Or(every, d)); err != nil {
			return console.About(id), err
		}
	}
}

func closeCommand(c *console.Console) *cobra.Command {
	var reason, file, status string
	cmd := &cobra.Command{
		Use:   "close [TX]",
		Short: "Close a transaction that nobody will take further",
		Long: `close ends an open transaction. Unlike a denial it says nothing about the patch: the same bytes
may be proposed again.`,
		Example: `  countersign close tx_01J --reason "no longer needed"`,
		Args:    console.UpToOne,
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			if err := session.CloseStatus("--status", status); err != nil {
				return console.Outcome{}, err
			}
			s, err := session.Open(c)
			if err == nil {
				s, err = s.Give(cmd.Context(), args, file)
			}
			if err != nil {
				return console.Outcome{}, err
			}
			_, id, err := s.Find(cmd.Context(), args, false)
			if err != nil {
				return console.Outcome{}, err
			}
			g, err := s.Runner.Interrupt(cmd.Context(), id, cmp.Or(reason, "closed by "+s.Runner.Actor.Login))
			if err != nil {
				return console.About(id), err
			}
			return showGate(cmd.Context(), s, g, "")
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, recorded with it")
	cmd.Flags().StringVar(&status, "status", string(ledger.Interrupted), "the record's word for it: `STATUS` can only be interrupted")
	session.GivePatch(cmd, &file)
	return cmd
}
