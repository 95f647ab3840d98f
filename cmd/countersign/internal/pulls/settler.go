package pulls

import (
	"context"
	"errors"
	"io"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/report"
)

// newSettler is what settles pull requests with what the environment says.
func newSettler(of *session.Session) pull.Settler {
	s := pull.Settler{
		Runner: of.Runner, Host: host{of}, LedgerRef: of.Flags.LedgerRef, Wait: of.Pause,
		InWorkflow: console.InWorkflow(of.Getenv),
		// action.yml says these.
		Dedicated: of.Getenv("COUNTERSIGN_OWN_APP") == "true", ActionsToken: of.Getenv("COUNTERSIGN_ACTIONS_TOKEN") == "true",
	}
	if of.Client != nil {
		s.Forge = of.Client
	}
	if of.Shared != nil {
		s.Shared = sharedLedger{of.Shared, of}
	}
	return s
}

// Open makes a pull request of a transaction.
func Open(ctx context.Context, s *session.Session, id string) (pull.Opened, error) {
	return newSettler(s).Open(ctx, id)
}

// sharedLedger is the remote's ledger as package pull asks for it.
type sharedLedger struct {
	*gitstore.Shared
	s *session.Session
}

func (l sharedLedger) Root(ctx context.Context) (string, error) { return l.s.Root(ctx) }

// host is what a settlement asks of the program.
type host struct{ s *session.Session }

func (h host) Learn(k pipeline.Known) { h.s.Learn(k) }

func (h host) Redact(text string) string { return h.s.Redact(text).String() }

func (h host) Unanswered(err error) bool {
	return wire.Unanswered(err) || rest.IsKind(err, rest.KindNetwork)
}

func (h host) RedactDiff(diff []byte) string { return h.s.RedactDiff(diff).String() }

func (h host) Report(ctx context.Context, o pipeline.Outcome) (report.Report, error) {
	return h.s.ReportRun(ctx, o)
}

func (h host) Clean(rep report.Report) (report.Report, error) {
	_, clean, err := console.Cleanly(h.s.Console, rep)
	return clean, err
}

func (h host) Resumed(id string, done pipeline.ApplyOutcome) {
	session.SayResumed(h.s.Console, id, done)
}

// HandOver puts the ledger into the clone for the job that runs commands.
// It is handed on as an artifact, which whoever may read the repository can download: a ledger that is kept in another one is not.
func (h host) HandOver() error {
	if h.s.Elsewhere {
		return &console.UsageError{
			Message: "the Policy's commands run in a job without rights, which is handed the ledger; and this ledger is in another repository, so that not everybody may read it",
			Hint:    "leave commands.run out of the Policy, and require the checks of the forge instead",
		}
	}
	args := []string{"sync", "--quiet", "--ledger-ref=" + h.s.Flags.LedgerRef, "--remote=" + h.s.Flags.Remote}
	if code, _ := h.s.Command(io.Discard, h.s.Elsewhere, args...); code != 0 {
		return &console.ExitError{Code: code, Err: errors.New("the ledger could not be put into the clone")}
	}
	return nil
}
