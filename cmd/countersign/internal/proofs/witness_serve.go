package proofs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/witness"
)

func witnessKeyCommand(c *console.Console) *cobra.Command {
	var cosigner bool
	cmd := &cobra.Command{
		Use:   "key NAME",
		Short: "Print the line of a key for the file of witnesses",
		Long: `key prints the line with which the public half of --sign-key stands in the file of witnesses:
"log NAME+…" for the key of a ledger, or with --cosigner "witness NAME NAME+…" for that of a witness.
The key has to be Ed25519. NAME is usually an address without https://.`,
		Example: "  countersign witness key github.com/acme/app --sign-key ledger-key\n  countersign witness key witness.acme.example --cosigner --sign-key witness-key",
		Args:    console.ExactlyOne("no name given", "name the ledger or the witness, such as github.com/acme/app"),
		RunE: func(_ *cobra.Command, args []string) error {
			k, _, err := noteKey(c, args[0], cosigner)
			if err != nil {
				return err
			}
			line := fileLine(k)
			return c.Result(console.Document{"line": line}, line+"\n")
		},
	}
	cmd.Flags().BoolVar(&cosigner, "cosigner", false, "the key is a witness's")
	return cmd
}

// fileLine is the line of a key in a file of witnesses.
func fileLine(k witness.Key) string {
	if k.Cosigns() {
		return "witness " + k.Name() + " " + k.String()
	}
	return "log " + k.String()
}

// serveFlags are those of a witness.
type serveFlags struct {
	name, logs, state, listen string
	init                      bool
}

func witnessServeCommand(c *console.Console) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve --name NAME --logs FILE --state FILE",
		Short: "Be a witness: sign the checkpoints of ledgers that only add to what was signed before",
		Long: `serve answers add-checkpoint (c2sp.org/tlog-witness) for the ledgers on the log lines of a file. It
signs with --sign-key a checkpoint that only adds to the last one that it signed, and says no to anything else.
What it signed last is in the state, one file, which is on disk before a signature leaves; --init makes it, and
nothing else does: a witness that forgot it would sign another history.

It speaks plain HTTP on 127.0.0.1. Put a server with TLS before it.`,
		Example: "  countersign witness serve --name witness.acme.example --sign-key witness-key --logs logs.txt --state witness.json --init",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return witnessServe(cmd.Context(), c, f) },
	}
	cmd.Flags().StringVar(&f.name, "name", "", "the witness's `NAME`, usually its address without https://")
	cmd.Flags().StringVar(&f.logs, "logs", "", "the keys of the ledgers are on the log lines of `FILE`")
	cmd.Flags().StringVar(&f.state, "state", "", "what was signed last is in `FILE`")
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:7380", "listen on this `ADDRESS`")
	cmd.Flags().BoolVar(&f.init, "init", false, "make the state, which must not be there yet")
	return cmd
}

func witnessServe(ctx context.Context, c *console.Console, f serveFlags) error {
	if f.name == "" || f.logs == "" || f.state == "" {
		return &console.UsageError{Message: "a witness needs a name, the ledgers that it knows, and a state", Hint: "countersign witness serve --name NAME --logs FILE --state FILE --sign-key FILE"}
	}
	k, sign, err := noteKey(c, f.name, true)
	if err != nil {
		return err
	}
	raw, err := c.ReadFile(f.logs)
	if err != nil {
		return err
	}
	logs, err := witness.ParseFile(raw)
	if err == nil && len(logs.Logs) == 0 {
		err = errors.New("it has no line that begins with log")
	}
	if err != nil {
		return &console.UsageError{Message: fmt.Sprintf("%s: %v", f.logs, err), Hint: "docs/witnesses.md says what the file has"}
	}
	s, err := OpenWitness(c.Path(f.state), f.init, k, sign, logs.Logs, c.Now)
	if err != nil {
		if usage, is := errors.AsType[*console.UsageError](err); is {
			return &console.UsageError{Message: f.state + ": " + usage.Message, Hint: usage.Hint}
		}
		return console.FileError(f.state, err)
	}
	defer s.Close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return &console.ExitError{Code: console.ExitIO, Err: err}
	}
	served := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- served.Serve(l) }()
	line := fmt.Sprintf("%s http://%s/", fileLine(k), l.Addr())
	if err := c.Result(console.Document{"line": line}, line+"\n"); err != nil {
		return errors.Join(err, served.Close())
	}
	select {
	case <-ctx.Done():
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return served.Shutdown(ctx)
	case err := <-ended:
		return &console.ExitError{Code: console.ExitIO, Err: err}
	}
}
