package pipeline

import (
	"context"
	"io/fs"
	"path"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// conversation reads what was said on the transaction's pull request, where the
// stage may ask for that, and who said what is recorded.
func (r *Runner) conversation(ctx context.Context, snap ledger.Snapshot, g *Gated, from *reader) (err error) {
	tx := g.Transaction()
	if tx.Pointers.Proposal.PullRequest == 0 || tx.Closed || from == nil {
		return nil
	}
	if g.reading, err = from.read(ctx, tx); err != nil {
		return err
	}
	if err := r.listen(ctx, snap.Tree, g); err != nil {
		return err
	}
	return g.askAboutVoters(ctx)
}

// listen takes what was read as the conversation about a transaction.
func (r *Runner) listen(ctx context.Context, tree fs.FS, g *Gated) error {
	tx := g.Transaction()
	posted, err := posted(tree, g.log)
	if err != nil {
		return err
	}
	g.talk = approval.Conversation{Statements: g.reading.statements, Posted: posted, PatchID: tx.PatchID(), GateOnly: tx.GateOnly()}
	if tx.GateOnly() {
		g.talk.Heads = r.heads(ctx, g.reading, tx)
	}
	g.talk.Since, err = since(tree, g.log)
	return err
}

// askAboutVoters asks again what those may do whose approvals are recorded.
func (g *Gated) askAboutVoters(ctx context.Context) error {
	for _, d := range ledger.Of[*ledger.ApprovalDecision](g.log) {
		if d.Decision != ledger.Approve || d.Source.Evidence == "" {
			continue
		}
		if _, err := g.reading.accessOf(ctx, g.reading.account(d.Source.Author)); err != nil {
			return err
		}
	}
	return nil
}

// account is somebody under the login that they have now.
func (x *reading) account(who ledger.Actor) ledger.Actor {
	for _, s := range x.statements {
		if s.Author.ID == who.ID && !s.Gone {
			return s.Author
		}
	}
	return who
}

// stands says why a recorded approval does not hold any more, "" if it does.
func (g Gated) stands(d ledger.ApprovalDecision) string {
	if why := g.talk.Stands(d); why != "" {
		return why
	}
	return approval.Refused(g.rules.Policy, g.reading.access[d.Source.Author.ID])
}

// heads are the commits that were reviewed and whose diff is the patch.
func (r *Runner) heads(ctx context.Context, x *reading, tx ledger.Transaction) map[string]bool {
	const most = 20 // each takes a merge base and a diff
	heads := map[string]bool{tx.Pointers.Proposal.HeadCommit: true}
	asked := 0
	for _, s := range x.statements {
		if _, known := heads[s.Commit]; known || s.Kind != approval.KindReview || s.State != approval.ReviewApproved || asked == most {
			continue
		}
		asked++
		heads[s.Commit] = r.diffIs(ctx, x.pull, s.Commit, tx.PatchID())
	}
	return heads
}

// diffIs reports whether a commit's diff from its merge base is a patch; what
// cannot be read is not.
func (r *Runner) diffIs(ctx context.Context, pull forge.PullRequest, commit, patchID string) bool {
	if r.Code == nil {
		return false
	}
	base, err := r.Code.MergeBase(ctx, pull.Base.Branch, commit)
	if err != nil {
		return false
	}
	set, err := r.Code.Diff(ctx, base, commit)
	return err == nil && set.ID() == patchID
}

// recordDecisions records what was said and counts, and tells why the rest does not.
func (r *Runner) recordDecisions(ctx context.Context, s *ledger.Stage, g *Gated) error {
	var uncounted []approval.Judged
	for _, said := range g.talk.Said() {
		if said.Recorded(g.log) {
			continue
		}
		why, err := r.recordDecision(ctx, s, g, said)
		if err != nil {
			return err
		}
		if why != "" {
			g.keep(s, said)
			uncounted = append(uncounted, judged(said, why))
		}
	}
	g.Verdict = g.verdict(ctx, g.at)
	g.Verdict.Decisions = append(g.Verdict.Decisions, uncounted...)
	return nil
}

// maxUncounted is how many decisions that do not count are kept with a
// transaction: anybody may write comments.
const maxUncounted = 20

// keep puts a decision on this patch that does not count into the record.
func (g Gated) keep(s *ledger.Stage, said approval.Said) {
	if _, exact := said.Decision(); !exact || ledger.FingerprintPatch(said.Command.Fingerprint) != g.Transaction().PatchID() {
		return
	}
	if len(s.Log.Artifacts(approval.KindStatement)) < maxUncounted {
		s.Artifact(approval.KindStatement, approval.NewStatementDoc(said, g.reading.access[said.Author.ID]))
	}
}

// judged is a decision that does not count.
func judged(said approval.Said, why string) approval.Judged {
	d, _ := said.Decision()
	return approval.Judged{
		Decision: d, Fingerprint: said.Command.Fingerprint, Author: said.Author,
		Source: said.Kind, CreatedAt: said.CreatedAt, Reason: why,
	}
}

// recordDecision records one decision, or says why it does not count.
func (r *Runner) recordDecision(ctx context.Context, s *ledger.Stage, g *Gated, said approval.Said) (why string, err error) {
	decision, recordable := said.Decision()
	switch {
	case said.Void != "":
		return said.Void, nil
	case !recordable:
		return "says nothing that can be acted on", nil
	case said.Author.ID == "":
		return "its author is not known", nil
	}
	access, err := g.reading.accessOf(ctx, said.Author)
	if err != nil {
		return "", err
	}
	if decision == ledger.Deny && g.deniedAlready(said.Command.Fingerprint) {
		return "", nil // one denial says it, and the index of them is write-once
	}
	if decision == ledger.Deny {
		why = g.mayDeny(access, said.Author)
	} else {
		why, err = r.whyNotCounted(ctx, *g, said, access)
	}
	if why == "" && err == nil {
		r.record(s, g, said, access)
	}
	return why, err
}

// mayDeny says why somebody's denial is not heard. A pull request's author may
// always deny what others propose for it; who proposed it themselves closes the
// pull request. A denial is for ever and everywhere, and anybody can open a pull
// request with somebody else's bytes.
func (g Gated) mayDeny(access approval.Access, who ledger.Actor) string {
	author := g.reading.pull.Author
	if author.ID == g.log.Meta().Proposer.ID {
		author = ledger.Actor{}
	}
	return approval.MayDeny(g.rules.Policy, access, who, author)
}

func (g Gated) deniedAlready(fingerprint string) bool {
	return slices.ContainsFunc(ledger.Of[*ledger.ApprovalDecision](g.log), func(d *ledger.ApprovalDecision) bool {
		return d.Decision == ledger.Deny && d.Fingerprint == fingerprint
	})
}

// whyNotCounted says why an approval would not count, having recorded it in a copy.
func (r *Runner) whyNotCounted(ctx context.Context, g Gated, said approval.Said, access approval.Access) (string, error) {
	copied, err := ledger.ReadLog(slices.Clone(g.log.Bytes()))
	if err != nil {
		return "", err
	}
	g.log = copied
	r.record(r.stage(copied), &g, said, access)
	all := g.verdict(ctx, g.at).Decisions
	if last := all[len(all)-1]; !last.Counted {
		return last.Reason, nil
	}
	return "", nil
}

// record adds a decision of a pull request to a stage, after what shows that it
// was taken.
func (r *Runner) record(s *ledger.Stage, g *Gated, said approval.Said, access approval.Access) {
	decision, _ := said.Decision()
	evidence := s.Artifact(approval.KindStatement, approval.NewStatementDoc(said, access))
	g.enter(s, approval.Request{Kind: said.RequestKind(), Fingerprint: said.Command.Fingerprint}, ledger.ApprovalDecision{
		Decision: decision, Fingerprint: said.Command.Fingerprint, Reason: r.oneLine(said.Command.Reason, 500),
		Source: said.Source(access, g.head, evidence),
	})
}

// kindPosted is the kind of the artifact that says what we posted.
const kindPosted = "posted"

// A postedDoc is that artifact, countersign/posted/1.
type postedDoc struct {
	Schema   string            `json:"schema"`
	Comments []approval.Posted `json:"comments"`
}

// Note records the comments that were made for a transaction.
func (r *Runner) Note(ctx context.Context, id string, comments []approval.Posted) (ledger.Snapshot, error) {
	_, after, err := update(ctx, r, transaction(id), func(snap ledger.Snapshot) (try[none], error) {
		log, err := ledger.Read(snap.Tree, id)
		if err != nil || log.Transaction().Closed {
			return nothing(none{}, err)
		}
		known, err := posted(snap.Tree, log)
		if err != nil {
			return nothing(none{}, err)
		}
		var fresh []approval.Posted
		for _, c := range comments {
			if !slices.Contains(known, c) {
				fresh = append(fresh, c)
			}
		}
		if len(fresh) == 0 {
			return nothing(none{}, nil)
		}
		s := r.stage(log)
		s.Artifact(kindPosted, postedDoc{"countersign/posted/1", fresh})
		return recording(none{}, s, ledger.Title{Stage: "gate", Outcome: string(approval.Pending), Subject: "asked on pull request " + pullName(log.Transaction())})
	})
	return after, err
}

func posted(tree fs.FS, log *ledger.Log) ([]approval.Posted, error) {
	var out []approval.Posted
	tx := log.Transaction().TransactionID
	for _, a := range log.Artifacts(kindPosted) {
		var doc postedDoc
		raw, err := fs.ReadFile(tree, path.Join(ledger.Dir(tx), a.Path))
		if err == nil {
			err = canon.Unmarshal(raw, &doc)
		}
		if err != nil {
			return nil, &ledger.CorruptError{ID: tx, Err: err}
		}
		out = append(out, doc.Comments...)
	}
	return out, nil
}
