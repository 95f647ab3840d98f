// Package clients has the commands that serve other programs: serve over JSON-RPC, and mcp.
package clients

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/decide"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/serve"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Commands are those that serve other programs.
func Commands(c *console.Console) []*cobra.Command {
	return []*cobra.Command{serveCommand(c), mcpCommand(c)}
}

func serveCommand(c *console.Console) *cobra.Command {
	var stdio bool
	cmd := &cobra.Command{
		Use:   "serve --stdio",
		Short: "Serve clients over JSON-RPC 2.0, one JSON document a line",
		Long: `serve reads requests from stdin and answers on stdout, until stdin ends. It keeps
nothing but the ledger: a client can go on with another server after any answer.

Whoever can write to its stdin can approve as you, where the Policy allows local
decisions. docs/rpc.md has the methods.`,
		Example: "  countersign -C repository serve --stdio",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !stdio {
				return &cli.UsageError{Message: "no way to talk to clients was given", Hint: "countersign serve --stdio"}
			}
			return serveStdio(cmd.Context(), c)
		},
	}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "talk over stdin and stdout")
	return cmd
}

func serveStdio(ctx context.Context, c *console.Console) error {
	c.Entropy = serve.Shared(c.Entropy)
	return serve.Serve(ctx, &serving{a: c}, console.Release, c.Stdin, func(doc json.RawMessage) error { return c.PrintJSON(doc) })
}

// serving is this program as a server's calls use it.
type serving struct {
	a *console.Console
	s *session.Session // that Open opened
}

var _ serve.Program = (*serving)(nil)

func (s *serving) Fresh() serve.Program {
	return &serving{a: s.a.Knowing(nil)} // the rules may have changed
}

func (s *serving) Open() (_ *pipeline.Runner, err error) {
	if s.s, err = session.Open(s.a); err != nil {
		return nil, err
	}
	return s.s.Runner, nil
}

func (s *serving) Learn(known pipeline.Known) { s.a.Learn(known) }

func (s *serving) RedactJSON(doc any) (secret.Redacted, error) { return s.a.RedactJSON(doc) }

func (s *serving) Close() error { return s.a.End() }

func (s *serving) Listed(ctx context.Context, snap writing.Snapshot, t ledger.Transaction, judge pipeline.Judge) (any, error) {
	one, err := s.s.Listed(ctx, snap, t, judge)
	return one.Document(), err
}

func (s *serving) CloseStatus(name, status string) error { return decide.CloseStatus(name, status) }

func (s *serving) Explain(err error) (exit int, refused bool, message secret.Redacted) {
	exit = console.CodeOf(err)
	refused = exit == cli.ExitRefused || exit == cli.ExitPending || exit == cli.ExitDenied
	return exit, refused, s.a.Redact(console.OneLine(err))
}
