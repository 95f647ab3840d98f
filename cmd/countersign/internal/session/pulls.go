package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

// TrustedEvent is the event of the workflow that this runs in, if its file is one that
// nobody's pull request brings along.
func TrustedEvent(c *console.Console) (forge.Event, error) {
	e, err := ReadEvent(c.Getenv)
	if err == nil {
		err = e.Trusted()
	}
	return e, err
}

// NewSettler is what settles pull requests with what the environment says.
func (a *Session) NewSettler() pull.Settler {
	s := pull.Settler{
		Runner: a.Runner, Host: a.AsHost(), LedgerRef: a.Flags.LedgerRef, Wait: a.Pause,
		InWorkflow: console.InWorkflow(a.Getenv),
		// action.yml says these.
		Dedicated: a.Getenv("COUNTERSIGN_OWN_APP") == "true", ActionsToken: a.Getenv("COUNTERSIGN_ACTIONS_TOKEN") == "true",
	}
	if a.Client != nil {
		s.Forge = a.Client
	}
	if a.Shared != nil {
		s.Shared = sharedLedger{a.Shared, a}
	}
	return s
}

// sharedLedger is the remote's ledger as package pull asks for it.
type sharedLedger struct {
	*gitstore.Shared
	a *Session
}

func (l sharedLedger) Demand(tips ...pull.Tip) error {
	var all []gitstore.Tip
	for _, tip := range tips {
		all = append(all, gitstore.Tip(tip))
	}
	return l.Shared.Demand(all...)
}

func (l sharedLedger) Root(ctx context.Context) (string, error) {
	commit, _, err := l.a.policyCommit(ctx)
	if err != nil {
		return "", err
	}
	return l.a.Repo.Root(ctx, commit)
}

// host is what a settlement asks of the program.
type host struct{ a *Session }

func (s *Session) AsHost() pull.Host { return host{s} }

func (h host) Learn(k pipeline.Known) { h.a.Learn(k) }

func (h host) Redact(text string) string { return h.a.Redact(text).String() }

func (h host) Unanswered(err error) bool {
	return wire.Unanswered(err) || rest.IsKind(err, rest.KindNetwork)
}

func (h host) RedactDiff(diff []byte) string { return h.a.RedactDiff(diff).String() }

func (h host) Report(ctx context.Context, o pipeline.Outcome) (report.Report, error) {
	return h.a.ReportRun(ctx, o)
}

func (h host) Clean(rep report.Report) (report.Report, error) { return h.a.CleanReport(rep) }

func (h host) Resumed(id string, done pipeline.ApplyOutcome) { SayResumed(h.a.Console, id, done) }

// HandOver puts the ledger into the clone for the job that runs commands.
// It is handed on as an artifact, which whoever may read the repository can download: a ledger that is kept in another one is not.
func (h host) HandOver() error {
	if h.a.Elsewhere {
		return &cli.UsageError{
			Message: "the Policy's commands run in a job without rights, which is handed the ledger; and this ledger is in another repository, so that not everybody may read it",
			Hint:    "leave commands.run out of the Policy, and require the checks of the forge instead",
		}
	}
	args := []string{"sync", "--quiet", "--ledger-ref=" + h.a.Flags.LedgerRef, "--remote=" + h.a.Flags.Remote}
	if code, _ := h.a.Command(io.Discard, h.a.Elsewhere, args...); code != 0 {
		return &cli.ExitError{Code: code, Err: errors.New("the ledger could not be put into the clone")}
	}
	return nil
}

// startedBy are those who started the workflow's run that this runs in, as its event and its variables say.
func startedBy(getenv func(string) string) ([]ledger.Requester, error) {
	if !console.InWorkflow(getenv) || getenv("GITHUB_EVENT_PATH") == "" {
		return nil, nil
	}
	e, err := ReadEvent(getenv)
	if err != nil {
		return nil, err
	}
	login, id := getenv("GITHUB_TRIGGERING_ACTOR"), ""
	if login == getenv("GITHUB_ACTOR") { // GITHUB_ACTOR_ID is of who started it first
		if id = getenv("GITHUB_ACTOR_ID"); e.Name == "schedule" {
			login = "" // who last changed the workflow's file
		}
	}
	return e.StartedBy(login, id), nil
}

// ReadEvent reads the event of the workflow that this runs in.
func ReadEvent(getenv func(string) string) (forge.Event, error) {
	f, err := os.Open(getenv("GITHUB_EVENT_PATH"))
	if err != nil {
		return forge.Event{}, fmt.Errorf("reading the workflow's event: %w", console.PlainText(err))
	}
	defer f.Close()
	return forge.ReadEvent(getenv("GITHUB_EVENT_NAME"), getenv("GITHUB_REF"), f)
}
