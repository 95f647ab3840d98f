package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/agent"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/review"
)

// maxProposals is how often a running agent can propose.
const maxProposals = 200

// A courier proposes what a running agent has changed, when the agent or a signal asks for it, and tells the agent where the proposal
// stands. It believes nothing that the agent says: the change is what is in the scratch tree. It decides nothing.
type courier struct {
	s *session.Session
	f agentFlags
	t *agent.Tree

	mu        sync.Mutex
	proposals int
}

// A standing is where the last proposal of a scratch tree stands, as the agent is told.
type standing struct {
	Transaction string `json:"transaction_id,omitempty"`
	PatchID     string `json:"patch_id,omitempty"`
	Status      string `json:"status,omitempty"`
	Verdict     string `json:"verdict,omitempty"`
	Closed      bool   `json:"closed"`
	Reason      string `json:"reason,omitempty"` // in a line for people; of a denial, the person's
	Person      string `json:"person,omitempty"` // how a person decides
	Error       string `json:"error,omitempty"`
}

// serve answers the agent and the signal until it is stopped.
func (c *courier) serve(ctx context.Context) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx) // who has put a pipe in Git's way does not keep us longer than it runs
	channel, err := c.t.Listen(func(r agent.Request) any { return c.answer(ctx, r) })
	if err != nil {
		cancel()
		return nil, fmt.Errorf("opening the agent's channel: %w", err)
	}
	asked, unheard := agent.Asked()
	var signals sync.WaitGroup
	signals.Go(func() {
		for range asked {
			_ = c.answer(ctx, agent.Propose)
		}
	})
	return func() error {
		cancel()
		unheard()
		err := channel.Close()
		signals.Wait()
		return err
	}, nil
}

func (c *courier) answer(ctx context.Context, r agent.Request) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if r == agent.Propose {
		err = c.propose(ctx)
	}
	var now standing
	if err == nil {
		now, err = c.stands(ctx)
	}
	if err != nil {
		return standing{Error: c.s.Finder().Text(console.OneLine(err))}
	}
	return now
}

// propose records what the scratch tree has now, in the place of what was proposed of it before.
func (c *courier) propose(ctx context.Context) error {
	if c.proposals++; c.proposals > maxProposals {
		return fault.Refuse(fmt.Sprintf("this run has proposed %d times", maxProposals), "end, and be run again")
	}
	in, err := scratchChange(ctx, c.s, c.f, c.t)
	_ = addTrace(ctx, c.s, c.t, &in) // why there is none is told at the end: the terminal is the agent's
	if err == nil {
		in.RequestedBy, err = c.f.review.asked()
	}
	if err != nil {
		return err
	}
	in.Target = c.f.review.to
	done, err := review.Run(ctx, c.s.Runner, in, false)
	c.s.Learn(done.Learnt)
	if done.ID != "" {
		err = errors.Join(err, c.t.Proposed(done.ID, done.Known))
	}
	return err
}

// stands is where the last proposal stands.
func (c *courier) stands(ctx context.Context) (now standing, err error) {
	id := c.t.Transaction
	if id == "" {
		return now, fault.Refuse("nothing of this scratch tree is proposed yet", "call propose_worktree")
	}
	g, err := c.s.Runner.Judge(ctx, id)
	if err != nil {
		return now, err
	}
	rep, err := c.s.Report(ctx, g)
	if err == nil {
		_, rep, err = console.Cleanly(c.s.Console, rep)
	}
	if err != nil {
		return now, err
	}
	now = standing{id, rep.PatchID, string(rep.Status), string(g.Verdict.State), g.Transaction().Closed, rep.Headline(), "", ""}
	if !now.Closed {
		now.Person = "A person decides, in a terminal of their own: " + c.s.Typed("countersign run "+id, id)
	}
	if denial, err := denialOf(ctx, c.s, rep.PatchID); err != nil || denial != "" {
		now.Reason = denial
		return now, err
	}
	return now, nil
}

// scratchChange is what a scratch tree has beyond its commit, in the place of what was proposed of it before and waits. An agent that makes
// the bytes of somebody else's transaction cannot end that by its next ones, nor make its proposer one of these.
func scratchChange(ctx context.Context, s *session.Session, f agentFlags, t *agent.Tree) (in input.Change, err error) {
	rules, err := s.Runner.Rules(ctx, "")
	if err != nil {
		return in, err
	}
	if in, err = t.Change(ctx, rules.Policy.Limits.Bytes, cmp.Or(f.review.summary, "what "+filepath.Base(t.Command[0])+" changed")); err != nil {
		return in, console.InFile("the scratch tree", err)
	}
	if t.Transaction == "" || t.Found {
		return in, nil
	}
	tx, err := stateOf(ctx, s, t.Transaction)
	if err == nil && !tx.Closed && (tx.Status == ledger.Proposed || tx.Status == ledger.Awaiting) {
		in.Replaces, in.Because = tx.TransactionID, "its proposer proposed in its place what the scratch tree had later"
	}
	return in, err
}

// maxLogs is how many files an agent's log is looked for in.
const maxLogs = 20

// addTrace adds to a change what the agent did, where its profile says where its log of that is. The log is the agent's own word.
func addTrace(ctx context.Context, s *session.Session, t *agent.Tree, in *input.Change) error {
	profile, _ := agent.ProfileOf(t.Profile, t.Command[0])
	dir, names, err := t.Logs(profile, s.Getenv("HOME"))
	if err != nil {
		return err
	}
	rules, err := s.Runner.Rules(ctx, "")
	if err != nil {
		return err
	}
	for _, name := range names[:min(maxLogs, len(names))] {
		raw, failed := readInside(s.Console, dir, name, max(maxSession, rules.Policy.Limits.Bytes))
		if failed == nil && input.WorksIn(raw) != t.Dir() { // of another session
			continue
		}
		if failed == nil {
			var steps []any
			var format string
			if steps, format, failed = traceOf(raw, rules.Policy, s.Runner.Secrets.Text); failed == nil {
				in.Trace, in.TraceFormat = steps, format
				return nil
			}
		}
		err = cmp.Or(err, console.InFile(name, failed))
	}
	return err
}

func stateOf(ctx context.Context, s *session.Session, id string) (ledger.Transaction, error) {
	snap, err := s.Runner.Ledger(ctx, ledger.Dir(id))
	if err != nil {
		return ledger.Transaction{}, err
	}
	return lookup.ListedState(snap.Tree, id)
}

// denialOf says why a patch was denied, "" where it was not.
func denialOf(ctx context.Context, s *session.Session, patchID string) (string, error) {
	snap, err := s.Runner.Ledger(ctx, ledger.DeniedDir(patchID))
	if err != nil {
		return "", err
	}
	denials, err := ledger.Denials(snap.Tree, patchID)
	if err != nil || len(denials) == 0 {
		return "", err
	}
	d := denials[len(denials)-1]
	return fmt.Sprintf("denied by %s: %s", ledger.OneLine(d.Author.Login, 80), s.Finder().Text(d.Reason)), nil
}
