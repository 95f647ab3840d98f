package decide

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// disposeFlags are what somebody found of an exception.
type disposeFlags struct {
	as, reason, key string
	sign            bool
}

// disposeCommand records what became of an exception.
func disposeCommand(c *console.Console) *cobra.Command {
	var f disposeFlags
	cmd := &cobra.Command{
		Use:   "dispose TX|COMMIT",
		Short: "Record that you reviewed an exception, and what you found",
		Long: `dispose records that you have reviewed an exception, such as a change that somebody approved alone in an
emergency or a commit that nothing accounts for. It is named by its transaction or its commit. Nothing
is approved by that, and the exception stays on record: countersign evidence shows both.

It counts if you had no part in it: did not propose it, ask for it or approve it. Where the Policy asks
for signed approvals, it must be signed. exceptions.review in the Policy says how long there is.`,
		Example: `  countersign dispose tx_01K5Z8M2QV --as accepted -m "the outage is over, and the change is right"
  countersign dispose 3f0c… --as revoked -m "reverted by the next commit" --sign`,
		Args: console.ExactlyOne("no exception was named", "give its transaction or its commit"),
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			return dispose(cmd.Context(), c, args[0], f)
		}),
	}
	cmd.Flags().StringVar(&f.as, "as", "", "what was found: accepted, fixed or revoked (required)")
	cmd.Flags().StringVarP(&f.reason, "reason", "m", "", "why, recorded with it: `TEXT` (required)")
	cmd.Flags().BoolVar(&f.sign, "sign", false, "sign it with your own SSH key")
	cmd.Flags().StringVar(&f.key, "key", "", "the SSH key to sign with: a `FILE`, a public one's meaning the agent's (default: the agent's, or user.signingKey)")
	return cmd
}

func dispose(ctx context.Context, c *console.Console, name string, f disposeFlags) (done console.Outcome, err error) {
	switch {
	case !slices.Contains(observation.Outcomes, observation.Outcome(f.as)):
		return done, &console.UsageError{Message: "what was found is not said", Hint: "--as accepted, --as fixed or --as revoked"}
	case f.reason == "":
		return done, &console.UsageError{Message: "a review needs a reason", Hint: `say why: -m "…"`}
	case f.key != "" && !f.sign:
		return done, &console.UsageError{Message: "--key belongs to --sign", Hint: ""}
	}
	s, err := session.Open(c)
	if err != nil {
		return done, err
	}
	about, err := exception(ctx, s, name)
	if err != nil {
		return done, err
	}
	var sign func([]byte) (string, error)
	if f.sign {
		rules, err := s.Runner.CurrentRules(ctx, "")
		if err != nil {
			return done, err
		}
		key, err := signingKey(ctx, s, rules.Keys, f.key)
		if err != nil {
			return done, err
		}
		sign = func(statement []byte) (string, error) {
			return s.SignWith(ctx, key, observation.DispositionNamespace, statement)
		}
	}
	d := &observation.Disposition{About: about, As: observation.Outcome(f.as), Reason: f.reason}
	if err := s.Runner.Dispose(ctx, d, sign); err != nil {
		return done, err
	}
	return done, session.Observed(c, d)
}

// exception is the transaction that a name means, or else the commit. One whose reviewer had a part in it is refused.
func exception(ctx context.Context, s *session.Session, name string) (string, error) {
	snap, id, err := s.Find(ctx, []string{name}, false)
	if session.IsNone(err) {
		return session.CodeCommit(ctx, s.Repo, name)
	}
	if err != nil {
		return "", err
	}
	part, err := s.Runner.Part(ctx, snap.Tree, id, ledger.Source{Kind: "local", Author: s.Runner.Decider})
	if err == nil && part != "" {
		err = &console.UsageError{Message: fmt.Sprintf("%s %s, and so cannot review %s", s.Runner.Decider.Login, part, id), Hint: "have somebody review it who had no part in it"}
	}
	return id, err
}
