package pipeline

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// maxTogether bounds how many transactions are held in memory at once.
const maxTogether = 1000

// AdvanceAll is Runner.Advance for many transactions, which are given the oldest first;
// they read and write together (docs/batch.md). A plain loop over them, with an append and a push for
// each stage of each, was measured: 4.3 times as long for BenchmarkRunAll without a remote.
//
// At most concurrency of them work at the same time. done gets each Outcome with the transaction's
// index, one
// call after the other; it must not use the Runner. What the Runner has, but for Store
// and Worktree, is used from several goroutines. The error is that the ledger
// could not be read: done is not called then for those that were not begun.
func AdvanceAll(ctx context.Context, r *Runner, all []ledger.Transaction, to Ahead, concurrency int, done func(i int, o Outcome, err error)) error {
	first := 0
	for some := range slices.Chunk(all, maxTogether) {
		err := sideBySide(ctx, r, some, concurrency, func(m *participant) func() {
			to := to
			to.Place = m.place
			o, err := m.own().Advance(ctx, some[m.index].TransactionID, to)
			return func() { done(first+m.index, o, err) }
		})
		if err != nil {
			return err
		}
		first += len(some)
	}
	return nil
}

// sideBySide calls do for each transaction, side by side, and then what it returns,
// one after the other.
func sideBySide(ctx context.Context, r *Runner, all []ledger.Transaction, concurrency int, do func(*participant) func()) error {
	b := &rounds{runner: r, events: make(chan func()), free: max(1, concurrency)}
	for i, tx := range all {
		m := &participant{rounds: b, index: i, patch: tx.PatchID(), goOn: make(chan struct{})}
		if p := tx.Pointers.Proposal; p != nil {
			m.files = folded(p.TargetFiles)
		}
		b.all, b.paths = append(b.all, m), append(b.paths, ledger.Dir(tx.TransactionID))
	}
	if err := b.refresh(ctx); err != nil {
		return err
	}
	for _, m := range b.all {
		go func() {
			<-m.goOn
			told := do(m)
			m.events <- func() {
				told()
				m.over = true
				m.live--
				m.working--
				m.free++
			}
		}()
	}
	b.run(ctx)
	return nil
}

// apart does something that uses nothing that participants share, and may take long:
// rounds are closed meanwhile.
func apart[T any](m *participant, do func() (T, error)) (T, error) {
	m.events <- func() {
		m.working--
		m.away++
	}
	value, err := do()
	m.events <- func() {
		m.away--
		m.working++
	}
	return value, err
}

// own returns the Runner of a participant.
func (m *participant) own() *Runner {
	r := m.runner.With(Known{})
	r.Store, r.Pause = m, nil
	if r.Worktree != nil {
		r.Worktree = &sharedTree{r.Worktree, m}
	}
	if r.Forge != nil {
		r.Forge = apartForge{r.Forge, m}
	}
	if r.Commands != nil {
		r.Commands = apartCommands{r.Commands, m}
	}
	return r
}

var _ writing.Store = (*participant)(nil)

// Snapshot returns the ledger as this round sees it. It may have moved on; then
// what is appended to it does not get there.
func (m *participant) Snapshot(context.Context, ...string) (writing.Snapshot, error) {
	return m.snap, nil
}

// At returns the ledger as it was.
func (m *participant) At(ctx context.Context, tip string) (writing.Snapshot, error) {
	if tip == m.snap.Tip {
		return m.snap, nil
	}
	m.store.Lock()
	defer m.store.Unlock()
	return m.runner.Store.At(ctx, tip)
}

// Append waits for the end of the round. What was judged on an earlier one's
// ledger is sent to look again.
func (m *participant) Append(_ context.Context, tip string, entries ...writing.Entry) (string, error) {
	if tip != m.snap.Tip {
		return "", writing.ErrMoved
	}
	a := &appending{entries: entries}
	m.ask(a)
	return a.made, a.err
}

// place waits for its turn at a target, and until no other process writes there.
func (m *participant) place(_ context.Context, target string) (leave func(), err error) {
	if target == effect.Worktree {
		target = ""
	}
	t := &turn{target: target}
	m.ask(t)
	if t.err != nil {
		return nil, t.err
	}
	return func() { m.events <- func() { m.leave(t) } }, nil
}

// sharedTree is the working tree as a participant has it: written together, and noted
// when the ledger is told.
type sharedTree struct {
	effect.Tree
	m *participant
}

func (t *sharedTree) Begin(applies ...string) error {
	t.m.begun, t.m.ended = append(t.m.begun, applies...), without(t.m.ended, applies)
	return nil
}

func (t *sharedTree) Begun() ([]string, error) {
	begun, err := t.Tree.Begun()
	return append(without(begun, t.m.ended), t.m.begun...), err
}

func (t *sharedTree) End(applies ...string) error {
	t.m.begun, t.m.ended = without(t.m.begun, applies), append(t.m.ended, applies...)
	return nil
}

func (t *sharedTree) Write(files []patch.Change) []ledger.Operation {
	w := &filesWrite{files: files}
	t.m.ask(w)
	return w.ops
}

func without(all, some []string) []string {
	return slices.DeleteFunc(all, func(a string) bool { return slices.Contains(some, a) })
}

// apartForge asks the forge without keeping others from anything.
type apartForge struct {
	forge forge.Reader
	m     *participant
}

func (f apartForge) PullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	return apart(f.m, func() (forge.PullRequest, error) { return f.forge.PullRequest(ctx, number) })
}

func (f apartForge) Statements(ctx context.Context, number int) ([]approval.Statement, error) {
	return apart(f.m, func() ([]approval.Statement, error) { return f.forge.Statements(ctx, number) })
}

func (f apartForge) Access(ctx context.Context, who ledger.Actor) (approval.Access, error) {
	return apart(f.m, func() (approval.Access, error) { return f.forge.Access(ctx, who) })
}

func (f apartForge) SigningKeys(ctx context.Context, who ledger.Actor) ([]approval.Registered, error) {
	return apart(f.m, func() ([]approval.Registered, error) { return f.forge.SigningKeys(ctx, who) })
}

func (f apartForge) Member(ctx context.Context, team string, who ledger.Actor) (bool, error) {
	return apart(f.m, func() (bool, error) { return f.forge.Member(ctx, team, who) })
}

// apartCommands runs commands beside everything else.
type apartCommands struct {
	commands checks.Commands
	m        *participant
}

func (c apartCommands) Run(ctx context.Context, known redact.Finder, mode policy.Sandbox, tree fs.FS, commands []policy.Check) ([]checks.Execution, error) {
	return apart(c.m, func() ([]checks.Execution, error) { return c.commands.Run(ctx, known, mode, tree, commands) })
}

// maxDays is as far as a Duration reaches, and longer than there has been Git.
const maxDays = 100_000

// ParseSince reads a moment: a date, a time, or how long before now it was. Days are
// UTC; nothing is the zero time.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	ago, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		ago = time.Duration(min(n, maxDays)) * 24 * time.Hour
	}
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("%+q is no time", text)
	}
	return now.Add(-ago), nil
}
