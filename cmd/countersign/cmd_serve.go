package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rpc"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
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
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !stdio {
				return &usageError{"no way to talk to clients was named", "countersign serve --stdio"}
			}
			return a.serve(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "talk over stdin and stdout")
	return cmd
}

func (a *App) serve(ctx context.Context) error {
	// A client that is gone is an error of the write: what was begun goes on.
	signal.Ignore(syscall.SIGPIPE)
	a.Entropy = &shared{from: a.Entropy}
	s, err := a.service()
	if err != nil {
		return err
	}
	server := rpc.Server{Methods: s.methods(), Write: func(doc json.RawMessage) error { return a.printJSON(doc) }}
	return server.Serve(ctx, a.Stdin)
}

// shared is a source of entropy that several calls read from.
type shared struct {
	mu   sync.Mutex
	from io.Reader
}

func (s *shared) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return io.ReadFull(s.from, p)
}

// A service does what clients ask for. It keeps no state but which events its
// client was told: each call opens the repository and the ledger anew.
type service struct {
	app  *App // as the flags made it; every call works on a copy
	root string
	told *toldEvents
	tip  sync.Mutex
}

// service opens the repository once, so that what is wrong with it is said
// before anybody is served, and its rules about secrets hold for every line.
func (a *App) service() (*service, error) {
	r, err := a.open()
	if err != nil {
		return nil, err
	}
	root, err := topOf(r)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	return &service{app: a, root: root, told: &toldEvents{counts: map[string]int{}}}, err
}

// topOf is the absolute path of a repository's working tree, or of one that is
// bare.
func topOf(r *pipeline.Runner) (string, error) {
	repo := r.Repo.(interface {
		Worktree() (string, error)
		Dir() string
	})
	root, err := repo.Worktree()
	if err != nil {
		return "", err
	}
	return filepath.Abs(firstOf(root, repo.Dir()))
}

func (s *service) methods() map[string]rpc.Method {
	methods := map[string]rpc.Method{
		"thread/start":       method(s, (*call).threadStart),
		"thread/list":        method(s, (*call).threadList),
		"turn/start":         method(s, (*call).turnStart),
		"turn/get":           method(s, (*call).turnGet),
		"turn/interrupt":     method(s, (*call).turnInterrupt),
		"transaction/list":   method(s, (*call).transactionList),
		"transaction/get":    method(s, (*call).transactionGet),
		"transaction/resume": method(s, (*call).transactionResume),
		"apply/execute":      method(s, (*call).applyExecute),
		"approval/respond":   method(s, (*call).approvalRespond),
		"tx/close":           method(s, (*call).txClose),
	}
	names := slices.Sorted(maps.Keys(methods))
	methods["system/capabilities"] = method(s, func(c *call, ctx context.Context, _ struct{}) (any, error) {
		return c.capabilities(ctx, append(names, "system/capabilities"))
	})
	return methods
}

// capabilities says what this server can do, and what the Policy says of it.
func (c *call) capabilities(ctx context.Context, methods []string) (any, error) {
	rules, err := c.r.Rules(ctx, "")
	if err != nil {
		return nil, err
	}
	slices.Sort(methods)
	p := rules.Policy
	return map[string]any{
		"name": "countersign", "version": release, "jsonrpc": "2.0", "methods": methods, "notifications": []string{"event"},
		"workspaceRoots": []string{c.root}, "sandboxTypes": []policy.Sandbox{policy.ReadOnly, policy.WorkspaceWrite},
		"sandboxPolicy":  map[string]any{"type": p.Sandbox},
		"approvalPolicy": ledger.ApprovalPolicy{Required: p.Approvals.Required, Local: p.Approvals.Local.Counts(false)},
		"maxLineBytes":   rpc.MaxLine, "maxCalls": rpc.MaxCalls,
	}, nil
}

// A call is one request at work. It is a run of the program of its own: it
// knows no other call.
type call struct {
	*App
	*service
	r *pipeline.Runner
}

// method makes a method of what a call does. Whatever leaves a call has been
// through its own Finder, which knows the secrets of the patch at hand.
func method[P any](s *service, do func(c *call, ctx context.Context, params P) (any, error)) rpc.Method {
	return rpc.Of(func(ctx context.Context, params P, notify rpc.Notify) (any, error) {
		app := *s.app
		app.secrets = nil // the rules may have changed
		c := &call{App: &app, service: s}
		var err error
		if c.r, err = app.open(); err != nil {
			return nil, c.failed(err)
		}
		c.r.Store = &tellingStore{c.r.Store, s.told, func(event json.RawMessage) error {
			clean, err := c.redactJSON(map[string]any{"event": event})
			if err != nil {
				return err
			}
			return notify("event", json.RawMessage(clean.String()))
		}}
		result, err := do(c, ctx, params)
		if err = errors.Join(err, c.keepTip()); err != nil {
			return nil, c.failed(err)
		}
		clean, err := c.redactJSON(result)
		return json.RawMessage(clean.String()), err
	})
}

// keepTip writes the tip that this call saw, for --tip-file.
func (c *call) keepTip() error {
	c.tip.Lock()
	defer c.tip.Unlock()
	return c.writeTip()
}

// An applyError is why an apply that was asked for in the right way failed.
type applyError struct{ err error }

func (e *applyError) Error() string { return "Apply failed: " + e.err.Error() }

func (e *applyError) Unwrap() error { return e.err }

// failed is an error as a client sees it. What was refused is the parameters'
// fault, anything else is ours; data.exit is the exit code that the command line
// would have had.
func (c *call) failed(err error) error {
	exit, _ := explain(err, c.again)
	e := &rpc.Error{Code: rpc.CodeInternal, Message: c.redact(oneLine(err)).String(), Data: map[string]any{"exit": exit}}
	if refused := exit == exitRefused || exit == exitPending || exit == exitDenied; refused && !as[*applyError](err) {
		e.Code = rpc.CodeInvalidParams
	}
	return e
}
