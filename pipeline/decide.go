package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Ruling is one human's decision, taken here and now.
type Ruling struct {
	Decision ledger.Decision
	// Fingerprints are what is decided on: in full, or "secret" or "protected" for
	// the patch's fingerprint of that kind; none is the patch itself.
	Fingerprints []string
	All          bool // everything that there is a need for
	Reason       string
	Kind         string // where it was taken: "local" or "rpc"
	// Request is the open request that is answered, which says what is decided on and
	// must be about the Fingerprints, if any; "" is whichever there is.
	Request string
	// Signature is the decision, signed by the Decider's own key: what is decided, and why,
	// is what it says, and on what where no Request is named. Nil: nobody signed it.
	Signature *approval.Signature
	// Basis is what the person was shown. A transaction with another one is a
	// *ChangedError, and nothing is recorded. Nil is somebody who named the
	// transaction, having looked at it by other means.
	Basis *Basis
}

// A Basis is what a person decides on: the patch, the fingerprints that approvals
// are asked of, and the hash of the Policy that asks for them.
type Basis struct{ PatchID, Fingerprints, Policy string }

// Basis is what a decision on the transaction, as it is here, is taken on.
func (g Judgement) Basis() Basis {
	var about []string
	for _, n := range g.Verdict.Needs {
		about = append(about, fmt.Sprintf("%s %s %d", n.Kind, n.Fingerprint, n.Required))
	}
	return Basis{PatchID: g.Transaction().PatchID(), Fingerprints: strings.Join(about, "\n"), Policy: g.rules.Policy.Sum()}
}

// Judge is the verdict on a transaction as it is now, with what its pull request
// says. It records nothing.
func (r *Runner) Judge(ctx context.Context, id string) (Judgement, error) {
	snap, err := r.Ledger(ctx, Paths(id)...)
	if err != nil {
		return Judgement{}, err
	}
	return r.judge(ctx, snap, id, r.Reader())
}

// Decide records a ruling of the Decider, and what follows from it.
func (r *Runner) Decide(ctx context.Context, id string, ruling Ruling) (Judgement, error) {
	if r.Decider.ID == "" {
		return Judgement{}, ErrNobody
	}
	from := r.Reader()
	if s := ruling.Signature; s != nil {
		ruling.Decision, ruling.All, ruling.Reason = s.Statement.Decision, false, s.Statement.Reason
		if ruling.Request == "" {
			ruling.Fingerprints = s.Statement.Fingerprints
		}
	}
	if ruling.Decision != ledger.Approve && ruling.Decision != ledger.Deny {
		return Judgement{}, Undecided(fmt.Sprintf("nothing is decided here by %s", r.OneLine(string(ruling.Decision), 40)))
	}
	ruling.Reason = r.OneLine(ruling.Reason, 500)
	g, after, err := Update(ctx, r, Paths(id), func(snap writing.Snapshot) (Try[Judgement], error) {
		g, err := r.judge(ctx, snap, id, from)
		if err != nil {
			return Nothing(g, err)
		}
		if ruling.Basis != nil && *ruling.Basis != g.Basis() {
			return Nothing(g, Changed(id))
		}
		about, err := r.toDecide(g, ruling)
		if len(about) == 0 || err != nil {
			return Nothing(g, err)
		}
		g, s, err := r.decide(ctx, snap, g, about, ruling, from)
		if err != nil {
			return Nothing(g, err)
		}
		r.recordVerdict(ctx, s, g)
		return Recording(g, s, writing.Title{Stage: string(ruling.Decision), Outcome: string(g.Verdict.State), Subject: r.rulingSubject(ruling)})
	})
	g.Ledger = after
	return g, err
}

// decide says what a ruling is about, and judges with that. What does not
// count is not recorded: the person is told why, and of several things the
// others are said again without it.
func (r *Runner) decide(ctx context.Context, snap writing.Snapshot, g Judgement, about []approval.Request, ruling Ruling, from *forge.PullReader) (Judgement, *writing.Stage, error) {
	var uncounted []string
	for {
		s := r.Stage(g.log)
		if ruling.Decision == ledger.Approve || ruling.Signature != nil {
			if err := r.noteElsewhere(ctx, s, &g); err != nil {
				return g, nil, err
			}
		}
		for _, one := range about {
			if err := r.rule(s, &g, one, ruling); err != nil {
				return g, nil, Undecided("the signature does not count: " + r.OneLine(err.Error(), 300))
			}
		}
		g.Verdict = g.verdict(ctx, r.Now())
		all := g.Verdict.Decisions
		said := all[max(0, len(all)-len(about)):]
		i := slices.IndexFunc(said, func(j approval.Judged) bool { return !j.Counted })
		if i < 0 {
			g.Recorded, g.Uncounted = true, uncounted
			return g, s, nil
		}
		why := fmt.Sprintf("your approval of %s does not count: %s", plain.InWords(about[i].Kind), plain.Why(said[i]))
		if len(about) == 1 {
			return g, nil, Undecided(why)
		}
		uncounted, about = append(uncounted, why), slices.Delete(slices.Clone(about), i, i+1)
		var err error
		if g, err = r.judge(ctx, snap, g.Transaction().TransactionID, from); err != nil {
			return g, nil, err
		}
	}
}

// toDecide returns what a ruling is about, nothing where it need not be taken.
func (r *Runner) toDecide(g Judgement, ruling Ruling) ([]approval.Request, error) {
	tx := g.Transaction()
	if ruling.Request != "" && tx.Closed {
		return nil, ClosedError(tx.TransactionID, tx.Status)
	}
	about, err := r.Named(g, ruling)
	switch {
	case err != nil:
		return nil, err
	case g.Verdict.State == approval.Denied && ruling.Decision == ledger.Deny:
		return nil, nil
	case g.Verdict.State == approval.Denied:
		return nil, g.Err()
	case tx.Closed || tx.Status == ledger.Applied:
		return nil, ClosedError(tx.TransactionID, tx.Status)
	case !g.rules.Policy.Approvals.Local.Counts(tx.PullRequest() > 0):
		return nil, Undecided("the Policy does not allow local decisions")
	case ruling.Decision == ledger.Deny:
		return about, nil
	}
	return slices.DeleteFunc(about, func(one approval.Request) bool { return r.needless(g, one) }), nil
}

// Asks are what a ruling of the Decider can decide on now, everything where it names
// nothing: none where all is said. An error says why it cannot be taken.
func (r *Runner) Asks(g Judgement, ruling Ruling) ([]approval.Request, error) {
	if r.Decider.ID == "" {
		return nil, ErrNobody
	}
	ruling.All = len(ruling.Fingerprints) == 0
	return r.toDecide(g, ruling)
}

// WhyNot says why a ruling of the Decider on one thing would not count, "" where it
// would. It is tried on a copy of the record.
func (r *Runner) WhyNot(ctx context.Context, g Judgement, one approval.Request, ruling Ruling) (string, error) {
	g.log = g.log.Clone()
	s := r.Stage(g.log)
	if err := r.noteElsewhere(ctx, s, &g); err != nil {
		return "", err
	}
	if err := r.rule(s, &g, one, ruling); err != nil {
		return "", err
	}
	all := g.verdict(ctx, g.at).Decisions
	if last := all[len(all)-1]; !last.Counted {
		return fmt.Sprintf("your approval of %s does not count: %s", plain.InWords(one.Kind), plain.Why(last)), nil
	}
	return "", nil
}

// needless reports whether an approval changes nothing: enough people have
// approved, or this one has.
func (r *Runner) needless(g Judgement, one approval.Request) bool {
	voted := slices.ContainsFunc(g.Verdict.Decisions, func(j approval.Judged) bool {
		return j.Counted && j.Author.ID == r.Decider.ID && j.Fingerprint == one.Fingerprint
	})
	return voted || !slices.ContainsFunc(g.Verdict.Needs, func(n approval.Need) bool {
		return n.Fingerprint == one.Fingerprint && n.Approved < n.Required
	})
}

// Named are the needs that a ruling names, each fingerprint once.
func (r *Runner) Named(g Judgement, ruling Ruling) ([]approval.Request, error) {
	tx := g.Transaction()
	var wanted []string
	for _, name := range ruling.Fingerprints {
		wanted = append(wanted, inFull(name, tx.PatchID()))
	}
	if ruling.Request != "" {
		open := writing.OpenRequests(g.log)
		i := slices.IndexFunc(open, func(q ledger.ApprovalRequest) bool { return q.ApprovalRequestID == ruling.Request })
		if i < 0 {
			return nil, Undecided(fmt.Sprintf("%s has no open request %s", tx.TransactionID, r.OneLine(ruling.Request, 40)))
		}
		for _, one := range wanted {
			if one != open[i].Fingerprint {
				return nil, Undecided(fmt.Sprintf("%s asks about %s, and not about %s", ruling.Request, open[i].Fingerprint, r.OneLine(one, 100)))
			}
		}
		wanted = []string{open[i].Fingerprint}
	}
	if len(wanted) == 0 {
		wanted = []string{policy.Fingerprint(policy.KindFileChange, tx.PatchID())}
	}
	var out []approval.Request
	for _, n := range g.Verdict.Needs {
		one := approval.Request{Kind: n.Kind, Fingerprint: n.Fingerprint}
		if n.Kind == policy.KindBreakGlass { // what is decided on is the change, whoever broke the glass
			one.Kind = policy.KindFileChange
		}
		if (ruling.All || slices.Contains(wanted, n.Fingerprint)) && !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	for _, one := range wanted {
		if (!ruling.All || len(ruling.Fingerprints) > 0) && !slices.ContainsFunc(out, func(q approval.Request) bool { return q.Fingerprint == one }) {
			return nil, Undecided(fmt.Sprintf("%s asks for no decision on %s", tx.TransactionID, r.OneLine(one, 100)))
		}
	}
	return out, nil
}

// inFull is the fingerprint of a patch that a person means by "secret" or
// "protected"; any other name is taken as it is.
func inFull(name, patchID string) string {
	switch name {
	case "secret":
		return policy.Fingerprint(policy.KindSecret, patchID)
	case "protected":
		return policy.Fingerprint(policy.KindProtected, patchID)
	}
	return name
}

// rule records one decision that was taken here; an error is what is wrong with its
// signature.
func (r *Runner) rule(s *writing.Stage, g *Judgement, about approval.Request, ruling Ruling) error {
	body := "/" + string(ruling.Decision) + " " + about.Fingerprint
	if ruling.Reason != "" {
		body += " " + ruling.Reason
	}
	d := ledger.ApprovalDecision{
		ApprovalRequestID: ruling.Request, Decision: ruling.Decision, Fingerprint: about.Fingerprint, Reason: ruling.Reason,
		Source: ledger.Source{
			Kind: ruling.Kind, Author: r.Decider, Permission: "local", Commit: g.head,
			BodySHA256: canon.Sum([]byte(body)), CreatedAt: ledger.FormatTime(r.Now()),
		},
	}
	if ruling.Signature != nil {
		signature, err := r.prove(s, *g, *ruling.Signature, d, about.Kind)
		if err != nil {
			return err
		}
		d.Source.Signature = g.store(s, signature)
	}
	g.enter(s, about, d)
	return nil
}

func (r *Runner) rulingSubject(ruling Ruling) string {
	said := map[ledger.Decision]string{ledger.Approve: "approved", ledger.Deny: "denied"}[ruling.Decision]
	s := said + " by " + r.OneLine(r.Decider.Login, 60)
	if ruling.Reason != "" {
		s += ": " + ruling.Reason
	}
	return s
}
