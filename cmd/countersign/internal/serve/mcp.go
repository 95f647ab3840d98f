package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/agent"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/mcp"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report"
)

func mcpCommand(c *console.Console) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve an agent over MCP: it proposes, looks and waits",
		Long: `mcp answers a client of the Model Context Protocol, such as a coding agent, on stdin and
stdout, until stdin ends. "countersign init --mcp" tells clients of it. Its tools propose changes,
say what became of them, and wait. None approves, denies or applies: a person does, on the pull
request or in a terminal of their own.

With --http it answers clients of this machine over HTTP instead, below http://127.0.0.1:PORT/mcp.
They need the token that it prints, as "Authorization: Bearer TOKEN"; COUNTERSIGN_MCP_TOKEN sets one.
docs/mcp.md says more.`,
		Example: "  countersign -C repository mcp\n  countersign mcp --http\n  COUNTERSIGN_MCP_TOKEN=$(openssl rand -hex 32) countersign mcp --http=127.0.0.1:8765",
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address == "" {
				return serveMCP(cmd.Context(), c)
			}
			return mcpHTTP(cmd.Context(), c, address)
		},
	}
	cmd.Flags().StringVar(&address, "http", "", "answer over HTTP, at this `ADDRESS` of this machine (127.0.0.1 and any free port, if it is left out)")
	cmd.Flags().Lookup("http").NoOptDefVal = "127.0.0.1:0"
	return cmd
}

// served is this program as calls use it. A person types the commands that it names in any
// directory, so they name the repository.
func served(c *console.Console) (mcp.Program, error) {
	dir, err := filepath.Abs(c.From(c.Flags.Dir))
	if err != nil {
		return nil, console.FileError(c.Flags.Dir, err)
	}
	c.Flags.Dir, c.Entropy = dir, &shared{from: c.Entropy}
	s, err := session.OpenRepo(c) // for the habits that it has
	if err != nil {
		return nil, err
	}
	return &proposing{&run{s}}, s.Close()
}

func serveMCP(ctx context.Context, c *console.Console) error {
	signal.Ignore(syscall.SIGPIPE) // a client that is gone is an error of the write
	if channel := c.Getenv(agent.InScratch); channel != "" {
		ask := func(request string) (json.RawMessage, error) { return agent.Ask(channel, agent.Request(request)) }
		return mcp.ServeScratch(ctx, console.Release, ask, c.Stdin, c.Stdout)
	}
	p, err := served(c)
	if err != nil {
		return err
	}
	return mcp.Serve(ctx, p, console.Release, c.Stdin, c.Stdout)
}

// bearerToken is what a header can carry (RFC 6750, section 2.1).
var bearerToken = canon.Regexp(`^[A-Za-z0-9._~+/-]+=*$`)

// mcpHTTP listens at an address that only this machine reaches.
func mcpHTTP(ctx context.Context, c *console.Console, address string) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return &console.UsageError{Message: fmt.Sprintf("--http %+q is no address of this machine alone", address), Hint: "--http=127.0.0.1:8765"}
	}
	given := c.Getenv(console.McpTokenName)
	if given != "" && len(given) < 20 {
		return &console.UsageError{Message: console.McpTokenName + " is shorter than 20 characters", Hint: "openssl rand -hex 32"}
	}
	if given != "" && !bearerToken().MatchString(given) {
		return &console.UsageError{Message: console.McpTokenName + " has a character that no bearer token has", Hint: "openssl rand -hex 32"}
	}
	p, err := served(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return &console.ExitError{Code: console.ExitIO, Err: err}
	}
	defer l.Close()
	token := cmp.Or(given, rand.Text())
	return mcp.ServeHTTP(ctx, p, console.Release, l, token, func() error { return sayToken(c, "http://"+l.Addr().String()+mcp.Path, token, given == "") })
}

// sayToken prints where the server is. It is the one place that shows the token, to who
// started it.
func sayToken(c *console.Console, address, token string, made bool) error {
	doc, text := console.Document{"url": address}, address+"\n"
	if made {
		doc["token"] = token
		text += "Authorization: Bearer " + token + "\n"
	}
	if !c.Flags.JSON {
		return c.GiveBack(text)
	}
	line, err := canon.Line(doc)
	if err != nil {
		return err
	}
	return c.GiveBack(string(line))
}

// proposing is this program as the calls of an agent use it.
type proposing struct{ *run }

func (p *proposing) Fresh() mcp.Program {
	next := fresh(p.Console)
	next.SetGCPercent = nil // it is the whole process's
	next.Flags.Habitual = map[string]bool{}
	for name := range p.Flags.Habitual { // the flags have them since the server began
		next.Flags.Habitual[name] = false
	}
	return &proposing{next}
}

func (p *proposing) Open() (mcp.Stages, error) {
	err := p.open()
	return stages{p.Runner}, err
}

func (p *proposing) Share() (mcp.Stages, error) {
	err := p.WorkShared()
	return stages{p.Runner}, err
}

// stages are what proposes and looks, of a Runner that can do more.
type stages struct{ *pipeline.Runner }

func (s stages) Review(ctx context.Context, in input.Change, dryRun bool) (review.Reviewed, error) {
	return review.Run(ctx, s.Runner, in, dryRun)
}

func (s stages) Explain(ctx context.Context, in input.Change) (risk.Explanation, pipeline.Known, error) {
	return review.Explain(ctx, s.Runner, in)
}

func (s stages) WorktreeInput(ctx context.Context, summary string) (input.Change, error) {
	return review.Worktree(ctx, s.Runner, summary)
}

func (p *proposing) Root() string { return filepath.ToSlash(p.Repo.Worktree()) }

func (p *proposing) LedgerRef() string { return p.Flags.LedgerRef }

func (p *proposing) Rules(ctx context.Context) (pipeline.Rules, error) {
	return p.Runner.Rules(ctx, "")
}

func (p *proposing) ForPull(ctx context.Context, in input.Change, number int) (input.Change, error) {
	in, err := pull.ChangeFor(ctx, p.Runner, in, number)
	if err != nil {
		return in, err
	}
	p.Runner.Actor, err = p.Client.Viewer(ctx) // the forge knows nobody else by an id
	return in, err
}

func (p *proposing) Warn(err error) {
	_ = console.Emit(p.Stderr, p.Redact("countersign: error: "+console.OneLine(err)+"\n"))
}

func (p *proposing) Report(ctx context.Context, g pipeline.Judgement) (report.Report, error) {
	rep, err := p.ReportResult(ctx, g)
	rep.Next = rep.NextStep(p.Again)
	return rep, err
}

func (p *proposing) Diff(g pipeline.Judgement) (map[string]any, error) {
	diff, err := g.Diff()
	return report.DiffDocument(g.Transaction().TransactionID, p.Finder().RedactDiff(diff).String()), err
}

func (p *proposing) Page(number int) string { return p.Links().Page(number, forge.Posted{}, "") }

func (p *proposing) Audit(ctx context.Context, show func(what string, done, total int)) (audit.Result, error) {
	h, err := p.Local.History(ctx, gitstore.HistoryOptions{})
	if err != nil {
		return audit.Result{}, err
	}
	return session.RunAudit(ctx, p.Session, h, verdict.Options{}, show)
}
