package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/serve"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

func (a *App) serveCommand() *cobra.Command {
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
			return a.serve(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "talk over stdin and stdout")
	return cmd
}

func (a *App) serve(ctx context.Context) error {
	a.Entropy = serve.Shared(a.Entropy)
	return serve.Serve(ctx, serving{a}, release, a.Stdin, func(doc json.RawMessage) error { return a.printJSON(doc) })
}

// serving is this program as a server's calls use it.
type serving struct{ a *App }

var _ serve.Program = serving{}

func (s serving) Fresh() serve.Program {
	app := *s.a
	app.secrets = nil // the rules may have changed
	return serving{&app}
}

func (s serving) Open() (*pipeline.Runner, error) { return s.a.open() }

func (s serving) Learn(known pipeline.Known) { s.a.learn(known) }

func (s serving) RedactJSON(doc any) (secret.Redacted, error) { return s.a.redactJSON(doc) }

func (s serving) WriteTip() error { return s.a.writeTip() }

func (s serving) Listed(ctx context.Context, snap writing.Snapshot, t ledger.Transaction, judge pipeline.Judge) (any, error) {
	one, err := s.a.listed(ctx, snap, t, judge)
	return one.Document(), err
}

func (s serving) CloseStatus(name, status string) error { return closeStatus(name, status) }

func (s serving) Explain(err error) (exit int, refused bool, message secret.Redacted) {
	exit = codeOf(err)
	refused = exit == cli.ExitRefused || exit == cli.ExitPending || exit == cli.ExitDenied
	return exit, refused, s.a.redact(oneLine(err))
}
