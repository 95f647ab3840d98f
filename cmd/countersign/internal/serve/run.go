package serve

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/report"
)

// A run is the program for one call, over either protocol: a session on a console of its own, which knows no secret of
// another call's. Before it is opened it has the console alone.
type run struct{ *session.Session }

// fresh is a run for one call: the rules may have changed since the last.
func fresh(c *console.Console) *run {
	return &run{&session.Session{Console: c.Knowing(nil)}}
}

// open opens the repository and its ledger.
func (r *run) open() error {
	s, err := session.Open(r.Console)
	if err == nil {
		r.Session = s
	}
	return err
}

// Close ends what open opened, and keeps the ledger's last tip seen, for --tip-file.
func (r *run) Close() error { return r.End() }

// Redacted is a document as it may leave.
func (r *run) Redacted(doc any) (json.RawMessage, error) {
	clean, err := r.RedactJSON(doc)
	return json.RawMessage(strings.TrimSuffix(clean.String(), "\n")), err
}

// Failure is an error's exit code, hint and message as they may be shown.
func (r *run) Failure(err error) (exit int, hint string, message secret.Redacted) {
	return console.CodeOf(err), r.Typed(console.HintOf(err), ""), r.Redact(console.OneLine(err))
}

// Newest are the newest transactions of a kind as lists have them, oldest first, and whether there are more.
func (r *run) Newest(ctx context.Context, limit int, keep func(ledger.Transaction) bool) (rows []any, more bool, err error) {
	snap, err := r.Runner.Ledger(ctx, ledger.TransactionsDir)
	if err != nil {
		return nil, false, err
	}
	latest, more, err := lookup.Latest(snap.Tree, limit, keep)
	if err != nil {
		return nil, false, err
	}
	list, err := r.Listing(ctx, snap, latest)
	return report.Documents(list), more, err
}

// shared is a source of entropy that several calls may read from.
type shared struct {
	mu   sync.Mutex
	from io.Reader
}

func (s *shared) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return io.ReadFull(s.from, p)
}
