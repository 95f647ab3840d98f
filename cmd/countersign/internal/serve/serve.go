// Package serve serves other programs. What clients ask for over JSON-RPC is here: threads, turns, transactions and
// approvals (docs/rpc.md). For MCP it is the program that package mcp asks. It keeps nothing but the ledger.
package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
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
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !stdio {
				return &console.UsageError{Message: "no way to talk to clients was given", Hint: "countersign serve --stdio"}
			}
			return serveStdio(cmd.Context(), c)
		},
	}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "talk over stdin and stdout")
	return cmd
}

// serveStdio answers the requests of stdin, until that ends.
func serveStdio(ctx context.Context, c *console.Console) error {
	// A client that is gone is an error of the write: what was begun goes on.
	signal.Ignore(syscall.SIGPIPE)
	c.Entropy = &shared{from: c.Entropy}
	s, err := newService(c)
	if err != nil {
		return err
	}
	return newRPCServer(s.methods(), func(doc json.RawMessage) error { return c.PrintJSON(doc) }).serve(ctx, c.Stdin)
}

// refused says what is wrong with a client's parameters.
func refused(format string, args ...any) error {
	return &console.UsageError{Message: fmt.Sprintf(format, args...), Hint: ""}
}

// A service does what clients ask for. It keeps no state but which events its
// client was told: each call opens the repository and the ledger anew.
type service struct {
	console *console.Console // as the flags made it; every call has one of its own
	root    string
	told    *toldEvents
	tip     sync.Mutex
}

// newService opens the repository once, so that what is wrong with it is said
// before anybody is served, and its rules about secrets hold for every line. Its
// root is the working tree's absolute path, or that of a bare repository.
func newService(c *console.Console) (_ *service, err error) {
	first := &run{&session.Session{Console: c}}
	defer func() { err = errors.Join(err, first.Close()) }()
	if err = first.open(); err != nil {
		return nil, err
	}
	root, err := filepath.Abs(cmp.Or(first.Repo.Worktree(), first.Repo.Dir()))
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	return &service{console: c, root: root, told: &toldEvents{counts: map[string]int{}}}, err
}

func (s *service) methods() map[string]rpcMethod {
	methods := map[string]rpcMethod{
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
	rules, err := c.Runner.Rules(ctx, "")
	if err != nil {
		return nil, err
	}
	slices.Sort(methods)
	p := rules.Policy
	return map[string]any{
		"name": "countersign", "version": console.Release, "jsonrpc": "2.0", "methods": methods, "notifications": []string{"event"},
		"workspaceRoots": []string{c.root}, "sandboxTypes": []policy.Sandbox{policy.ReadOnly, policy.WorkspaceWrite},
		"sandboxPolicy":  map[string]any{"type": p.Sandbox},
		"approvalPolicy": ledger.ApprovalPolicy{Required: p.Approvals.Required, Local: p.Approvals.Local.Counts(false)},
		"maxLineBytes":   maxLine, "maxCalls": maxCalls,
	}, nil
}

// A call is one request at work.
type call struct {
	*run
	*service
}

// method makes a method of what a call does, between opening and closing what it works on. Whatever
// leaves a call has been through its own Finder, which knows the secrets of the patch at hand.
func method[P any](s *service, do func(c *call, ctx context.Context, params P) (any, error)) rpcMethod {
	return methodOf(func(ctx context.Context, params P, notify notifier) (any, error) {
		c := &call{fresh(s.console), s}
		result, err := c.do(notify, func() (any, error) { return do(c, ctx, params) })
		if err != nil {
			return nil, c.failed(err)
		}
		return c.Redacted(result)
	})
}

func (c *call) do(notify notifier, work func() (any, error)) (result any, err error) {
	defer func() {
		c.tip.Lock()
		defer c.tip.Unlock()
		err = errors.Join(err, c.Close())
	}()
	if err = c.open(); err != nil {
		return nil, err
	}
	c.Runner.Store = &tellingStore{c.Runner.Store, c.told, func(event json.RawMessage) error {
		clean, err := c.Redacted(map[string]any{"event": event})
		if err != nil {
			return err
		}
		return notify("event", clean)
	}}
	return work()
}

// errApply is the error of an apply that was asked for in the right way and failed.
var errApply = errors.New("the apply failed")

// notApplied is that error, with why.
func notApplied(err error) error {
	return &fault.Error{Message: "Apply failed: " + err.Error(), Cause: errors.Join(errApply, err)}
}

// failed is an error as a client sees it. What was refused is the parameters'
// fault, anything else is ours; data.exit is the exit code that the command line
// would have had.
func (c *call) failed(err error) error {
	exit, _, message := c.Failure(err)
	e := &rpcError{Code: codeInternal, Message: message.String(), Data: map[string]any{"exit": exit}}
	if slices.Contains([]int{console.ExitRefused, console.ExitPending, console.ExitDenied}, exit) && !errors.Is(err, errApply) {
		e.Code = codeInvalidParams
	}
	return e
}

// toldEvents is all that a server remembers: how many events of a transaction
// its client was told, and which threads it opened.
type toldEvents struct {
	mu     sync.Mutex
	counts map[string]int // by transaction
	open   []thread
}

func (t *toldEvents) opened(one thread) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.ContainsFunc(t.open, func(other thread) bool { return other.id() == one.id() }) && one.id() != everything.id() {
		t.open = append(t.open, one)
	}
}

// threads are that of the whole repository, which is always there, and those
// that were opened here.
func (t *toldEvents) threads() []thread {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]thread{everything}, t.open...)
}

// upTo tells the events of a transaction that were not told yet. first is how
// many to leave out where none were told: the client knows them.
func (t *toldEvents) upTo(id string, events []byte, first int, tell func(json.RawMessage) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	count, known := t.counts[id]
	if !known {
		count = min(first, bytes.Count(events, []byte("\n")))
	}
	n := 0
	for line := range bytes.Lines(events) {
		if n++; n <= count {
			continue
		}
		t.counts[id] = n
		if err := tell(json.RawMessage(bytes.TrimSuffix(line, []byte("\n")))); err != nil {
			return err
		}
	}
	t.counts[id] = max(n, count)
	return nil
}

// A tellingStore tells a client of each event once it is in the ledger.
type tellingStore struct {
	writing.Store
	told *toldEvents
	tell func(event json.RawMessage) error
}

// Append tells what it recorded. That a client cannot be told is no error of
// the ledger.
func (s *tellingStore) Append(ctx context.Context, tip string, entries ...writing.Entry) (string, error) {
	next, err := s.Store.Append(ctx, tip, entries...)
	if err != nil {
		return next, err
	}
	for _, e := range entries {
		for name, events := range e.Files {
			id, _, ours := ledger.Within(name)
			if !ours || path.Base(name) != ledger.EventsFile {
				continue
			}
			if before, err := s.before(ctx, tip, name); err == nil {
				_ = s.told.upTo(id, events, before, s.tell)
			}
		}
	}
	return next, nil
}

// before is how many events a transaction had at a tip.
func (s *tellingStore) before(ctx context.Context, tip, name string) (int, error) {
	snap, err := s.At(ctx, tip)
	if err != nil {
		return 0, err
	}
	raw, err := fs.ReadFile(snap.Tree, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return bytes.Count(raw, []byte("\n")), err
}
