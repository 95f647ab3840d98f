// Package mcp is what agents ask for over the Model Context Protocol (docs/mcp.md): they
// propose changes, look at what became of them, and wait. Whether a change is made is
// decided elsewhere, by a person, and never in what a client shows: whoever runs the
// client can answer its questions (T74). It keeps nothing but the ledger.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

// A Program is one run of the program, as a call needs it. What leaves a call goes
// through the Program's own Finder.
type Program interface {
	// Fresh is a run of its own for one call, which knows no secret of another's.
	Fresh() Program
	// Open opens the repository and its ledger, and Share in its place the remote's, unless the person declined that.
	Open() (Stages, error)
	Share() (Stages, error)
	// Close gives back what Open took, and keeps the ledger's last tip seen, for --tip-file.
	Close() error
	// Root is the working tree's absolute path with slashes, "" of a bare repository.
	Root() string
	// LedgerRef is the ref that has the ledger.
	LedgerRef() string
	// Rules are those of the Policy as it is now.
	Rules(ctx context.Context) (pipeline.Rules, error)
	// ForPull makes it a change of an open pull request, which whoever the token belongs to proposes.
	ForPull(ctx context.Context, in input.Change, number int) (input.Change, error)
	// Learn takes over what a stage has learnt about secrets.
	Learn(known pipeline.Known)
	// Redacted is a document as it may leave.
	Redacted(doc any) (json.RawMessage, error)
	// Failure is an error's exit code, hint and message as they may be shown.
	Failure(err error) (exit int, hint string, message secret.Redacted)
	// Warn tells whoever runs the server of an error, in one line.
	Warn(err error)
	// Report describes a transaction with its next step, and Diff its patch, as report.DiffDocument does.
	Report(ctx context.Context, g pipeline.Judgement) (report.Report, error)
	Diff(g pipeline.Judgement) (map[string]any, error)
	// Newest are the newest transactions of a kind as lists have them, oldest first, and whether there are more.
	Newest(ctx context.Context, limit int, keep func(ledger.Transaction) bool) (rows []any, more bool, err error)
	// Page is the address of a pull request, "" where none is known.
	Page(number int) string
	// Again is the command line for a next step.
	Again(args ...string) string
	// Audit verifies the whole ledger.
	Audit(ctx context.Context, show func(what string, done, total int)) (audit.Result, error)
}

// Stages are what this package reaches of a pipeline.Runner: it proposes and looks. From
// here no way leads to a decision, to an apply or to the end of a transaction (T74).
type Stages interface {
	Review(ctx context.Context, in input.Change, dryRun bool) (review.Reviewed, error)
	Explain(ctx context.Context, in input.Change) (risk.Explanation, pipeline.Known, error)
	WorktreeInput(ctx context.Context, summary string) (input.Change, error)
	Ledger(ctx context.Context, paths ...string) (writing.Snapshot, error)
	Find(ctx context.Context, name string, look bool) (writing.Snapshot, string, error)
	History(ctx context.Context, snap writing.Snapshot, id string) (pipeline.Judgement, error)
}

// An ArgumentError says what is wrong with a tool's arguments.
type ArgumentError struct{ Message string }

func (e *ArgumentError) Error() string { return e.Message }

// ExitCode is that of a command line that cannot be obeyed.
func (*ArgumentError) ExitCode() int { return console.ExitRefused }

// Limits of a server. More calls wait for their turn; a longer message ends a session over
// stdio, and is answered with status 413 over HTTP.
const (
	MaxMessage = 8 << 20 // bytes of one message
	MaxCalls   = 16      // at work at the same time, but for those that wait
	MaxWaits   = 64
)

// A service answers calls. It keeps no state: each call opens the repository and the
// ledger anew.
type service struct {
	program     Program // as the flags made it; every call works on a fresh one
	server      *sdk.Server
	work, waits chan struct{}
}

const instructions = `countersign puts the exact bytes of a change before a person, and makes the change only once a person has approved them. Propose what you want changed with propose_worktree (files that you have edited), propose_edits or propose_patch; then tell the person what "person" in the result says, and call wait. An error says what to mend, in "error", "path", "line", "rule" and "hint". No tool approves, denies or applies: do not look for one, and do not run those commands yourself. A denial is final for these bytes.`

// newService opens the repository once, so that what is wrong with it is said before
// anybody is served.
func newService(p Program, version string) (*service, error) {
	first := p.Fresh()
	_, err := first.Open()
	if err != nil {
		return nil, err
	}
	if err := first.Close(); err != nil {
		return nil, err
	}
	s := &service{program: p, work: make(chan struct{}, MaxCalls), waits: make(chan struct{}, MaxWaits)}
	s.server = sdk.NewServer(&sdk.Implementation{Name: "countersign", Title: "Countersign", Version: version}, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
	})
	s.server.AddReceivingMiddleware(s.recovered)
	s.addTools()
	s.addResources()
	s.addPrompt()
	return s, nil
}

// Serve answers one client over two streams until the first ends. The program says that it
// is this version.
func Serve(ctx context.Context, p Program, version string, in io.Reader, out io.Writer) error {
	s, err := newService(p, version)
	if err != nil {
		return err
	}
	return s.server.Run(ctx, streams{in, out})
}

// A call is one request at work. It is a run of the program of its own: it knows no other
// call.
type call struct {
	Program
	Stages
	shared bool                                      // whether the ledger is the remote's
	tell   func(message string, done, total float64) // progress, where the client asked for it
}

// do answers one request, once there is a place among those at work: with the document that it comes to, as it may leave,
// or an error for the Program to describe.
func (s *service) do(ctx context.Context, places chan struct{}, work func(c *call, ctx context.Context) (any, error)) (p Program, clean json.RawMessage, err error) {
	ctx, stop := whileAsked(ctx)
	defer stop()
	c := &call{Program: s.program.Fresh(), tell: func(string, float64, float64) {}}
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return c, nil, ctx.Err()
	}
	defer func() {
		err = errors.Join(err, c.Close())
		<-places
	}()
	if c.Stages, err = c.Open(); err != nil {
		return c, nil, err
	}
	doc, err := work(c, ctx)
	if err != nil {
		return c, nil, err
	}
	clean, err = c.Redacted(doc)
	return c, clean, err
}

// share has the call work on the remote's ledger: what is for a pull request is for
// everybody who looks at it.
func (c *call) share() error {
	stages, err := c.Share()
	if err == nil {
		c.Stages, c.shared = stages, true
	}
	return err
}
