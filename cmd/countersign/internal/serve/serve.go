// Package serve is what clients of the program ask for over JSON-RPC: threads,
// turns, transactions and approvals (docs/rpc.md). It keeps nothing but the ledger.
package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rpc"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Program is one run of the program, as a call needs it: what leaves a call
// goes through the Program's own Finder.
type Program interface {
	// Fresh is a run of its own for one call, which knows no secret of another's.
	Fresh() Program
	Open() (*pipeline.Runner, error)
	// Learn takes over what a stage has learnt about secrets.
	Learn(known pipeline.Known)
	RedactJSON(doc any) (secret.Redacted, error)
	// Explain is an error's exit code, whether that says that something was
	// refused or waits, and its message as it may be shown.
	Explain(err error) (exit int, refused bool, message secret.Redacted)
	// Close ends what Open opened, and keeps the ledger's last tip seen, for --tip-file.
	Close() error
	// Listed is a transaction as lists have it.
	Listed(ctx context.Context, snap writing.Snapshot, t ledger.Transaction, judge pipeline.Judge) (any, error)
	// CloseStatus refuses the ends that are not a client's to set.
	CloseStatus(name, status string) error
}

// A RefusedError says what is wrong with a client's parameters.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return e.Message }

// Serve answers the requests of in, until that ends. The program says that it is
// this version.
func Serve(ctx context.Context, p Program, version string, in io.Reader, write func(json.RawMessage) error) error {
	// A client that is gone is an error of the write: what was begun goes on.
	signal.Ignore(syscall.SIGPIPE)
	s, err := newService(p, version)
	if err != nil {
		return err
	}
	server := rpc.Server{Methods: s.methods(), Write: write}
	return server.Serve(ctx, in)
}

// Shared is a source of entropy that several calls may read from.
func Shared(from io.Reader) io.Reader { return &shared{from: from} }

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
	program Program // as the flags made it; every call works on a fresh one
	version string
	root    string
	told    *toldEvents
	tip     sync.Mutex
}

// newService opens the repository once, so that what is wrong with it is said
// before anybody is served, and its rules about secrets hold for every line. Its
// root is the working tree's absolute path, or that of a bare repository.
func newService(p Program, version string) (_ *service, err error) {
	defer func() { err = errors.Join(err, p.Close()) }()
	r, err := p.Open()
	if err != nil {
		return nil, err
	}
	repo := r.Repo.(interface {
		Worktree() (string, error)
		Dir() string
	})
	root, err := repo.Worktree()
	if err != nil {
		return nil, err
	}
	if root, err = filepath.Abs(cmp.Or(root, repo.Dir())); err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	return &service{program: p, version: version, root: root, told: &toldEvents{counts: map[string]int{}}}, err
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
		"name": "countersign", "version": c.version, "jsonrpc": "2.0", "methods": methods, "notifications": []string{"event"},
		"workspaceRoots": []string{c.root}, "sandboxTypes": []policy.Sandbox{policy.ReadOnly, policy.WorkspaceWrite},
		"sandboxPolicy":  map[string]any{"type": p.Sandbox},
		"approvalPolicy": ledger.ApprovalPolicy{Required: p.Approvals.Required, Local: p.Approvals.Local.Counts(false)},
		"maxLineBytes":   rpc.MaxLine, "maxCalls": rpc.MaxCalls,
	}, nil
}

// A call is one request at work. It is a run of the program of its own: it
// knows no other call.
type call struct {
	Program
	*service
	r *pipeline.Runner
}

// method makes a method of what a call does. Whatever leaves a call has been
// through its own Finder, which knows the secrets of the patch at hand.
func method[P any](s *service, do func(c *call, ctx context.Context, params P) (any, error)) rpc.Method {
	return rpc.Of(func(ctx context.Context, params P, notify rpc.Notify) (any, error) {
		c := &call{Program: s.program.Fresh(), service: s}
		result, err := c.do(ctx, notify, func(ctx context.Context) (any, error) { return do(c, ctx, params) })
		if err != nil {
			return nil, c.failed(err)
		}
		clean, err := c.RedactJSON(result)
		return json.RawMessage(clean.String()), err
	})
}

// do does what a call asks for, between opening and closing what it works on.
func (c *call) do(ctx context.Context, notify rpc.Notify, work func(ctx context.Context) (any, error)) (result any, err error) {
	defer func() {
		c.tip.Lock()
		defer c.tip.Unlock()
		err = errors.Join(err, c.Close())
	}()
	if c.r, err = c.Open(); err != nil {
		return nil, err
	}
	c.r.Store = &tellingStore{c.r.Store, c.told, func(event json.RawMessage) error {
		clean, err := c.RedactJSON(map[string]any{"event": event})
		if err != nil {
			return err
		}
		return notify("event", json.RawMessage(clean.String()))
	}}
	return work(ctx)
}

// An applyError is why an apply that was asked for in the right way failed.
type applyError struct{ err error }

func (e *applyError) Error() string { return "Apply failed: " + e.err.Error() }

func (e *applyError) Unwrap() error { return e.err }

// failed is an error as a client sees it. What was refused is the parameters'
// fault, anything else is ours; data.exit is the exit code that the command line
// would have had.
func (c *call) failed(err error) error {
	exit, refused, message := c.Explain(err)
	e := &rpc.Error{Code: rpc.CodeInternal, Message: message.String(), Data: map[string]any{"exit": exit}}
	if refused && !errors.As(err, new(*applyError)) {
		e.Code = rpc.CodeInvalidParams
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
			id, ours := ledger.TransactionOf(name)
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
