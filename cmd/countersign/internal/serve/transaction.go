package serve

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

type transactionParams struct {
	TransactionID string `json:"transactionId"`
}

// Key keeps the calls about a transaction in order.
func (p transactionParams) Key() string { return p.TransactionID }

// log reads a transaction, which a client names in full.
func (c *call) log(ctx context.Context, id string) (*ledger.Log, error) {
	if ledger.CheckID(id) != nil {
		return nil, refused("params.transactionId is no transaction's id")
	}
	snap, err := c.Runner.Ledger(ctx, ledger.Dir(id))
	if err != nil {
		return nil, err
	}
	log, err := lookup.Read(snap.Tree, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refused("there is no transaction %s", id)
	}
	return log, err
}

type listParams struct {
	Limit *int `json:"limit,omitempty"` // the newest; nil: all
}

// transactionList answers the same rows under two names.
func (c *call) transactionList(ctx context.Context, p listParams) (any, error) {
	limit := math.MaxInt
	if p.Limit != nil {
		if limit = *p.Limit; limit < 1 {
			return nil, refused("params.limit is less than 1")
		}
	}
	rows, more, err := c.Newest(ctx, limit, func(ledger.Transaction) bool { return true })
	return map[string]any{"transactions": rows, "data": rows, "more": more}, err
}

func (c *call) transactionGet(ctx context.Context, p transactionParams) (any, error) {
	log, err := c.log(ctx, p.TransactionID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"transaction": c.absolute(log.Transaction()), "pendingApprovals": pending(log)}, nil
}

type resumeParams struct {
	TransactionID string `json:"transactionId"`
	AfterSeq      *int   `json:"afterSeq,omitempty"`
}

// Key keeps the calls about a transaction in order.
func (p resumeParams) Key() string { return p.TransactionID }

// transactionResume is transactionGet for a client that was away: it is told the
// events after the last one that it had.
func (c *call) transactionResume(ctx context.Context, p resumeParams) (any, error) {
	log, err := c.log(ctx, p.TransactionID)
	if err != nil {
		return nil, err
	}
	if p.AfterSeq != nil {
		store := c.Runner.Store.(*tellingStore)
		if err := c.told.upTo(p.TransactionID, log.Bytes(), max(0, *p.AfterSeq), store.tell); err != nil {
			return nil, err
		}
	}
	return c.transactionGet(ctx, transactionParams{p.TransactionID})
}

// absolute is a transaction with the paths of this machine, which a ledger never
// has.
func (c *call) absolute(tx ledger.Transaction) ledger.Transaction {
	tx.WorkspaceRoots, tx.SandboxPolicy.WritableRoots = c.at(tx.WorkspaceRoots...), c.at(tx.SandboxPolicy.WritableRoots...)
	tx.CWD = c.at(tx.CWD)[0]
	if tx.Pointers.Proposal != nil {
		p := *tx.Pointers.Proposal
		p.WorkspaceRoot = c.at(p.WorkspaceRoot)[0]
		tx.Pointers.Proposal = &p
	}
	return tx
}

// at is where directories of the repository are on this machine.
func (s *service) at(dirs ...string) []string {
	out := []string{}
	for _, dir := range dirs {
		out = append(out, filepath.Join(s.root, filepath.FromSlash(dir)))
	}
	return out
}

// pending are the requests that wait for an answer.
func pending(log *ledger.Log) []any {
	out := []any{}
	if log.Transaction().Closed {
		return out
	}
	for _, q := range writing.OpenRequests(log) {
		out = append(out, map[string]any{
			"approval_request_id": q.ApprovalRequestID, "fingerprint": q.Fingerprint, "kind": q.Kind, "prompt": q.Prompt,
		})
	}
	return out
}

type applyParams struct {
	TransactionID string `json:"transactionId"`
	Patch         string `json:"patch,omitempty"`
}

// Key keeps the calls about a transaction in order.
func (p applyParams) Key() string { return p.TransactionID }

// applyExecute applies and validates an approved transaction, and asks for what
// is missing of another.
func (c *call) applyExecute(ctx context.Context, p applyParams) (any, error) {
	log, err := c.log(ctx, p.TransactionID)
	if err != nil {
		return nil, err
	}
	if tx := log.Transaction(); !tx.Closed && tx.SandboxPolicy.Type == string(policy.ReadOnly) {
		return nil, notApplied(checks.ErrReadOnly) // and nobody is asked
	}
	r := c.Runner
	if p.Patch != "" {
		snap, err := r.Ledger(ctx, ledger.Dir(p.TransactionID))
		if err == nil {
			r, err = r.Give(ctx, snap, p.TransactionID, []byte(p.Patch))
		}
		if err != nil {
			return nil, notApplied(err)
		}
	}
	out, err := r.Advance(ctx, p.TransactionID, pipeline.Ahead{Until: pipeline.StageValidate})
	c.Learn(out.Learnt)
	if errors.As(err, new(*pipeline.PendingError)) {
		return map[string]any{"ok": false, "pendingApprovals": pending(out.Log())}, nil
	}
	if err != nil {
		return nil, notApplied(err)
	}
	files := []string{}
	for _, op := range out.Applied.Result.Operations {
		files = append(files, op.Path)
	}
	return map[string]any{"ok": true, "appliedFiles": files, "apply_artifact": ledger.Last[*ledger.ApplyComplete](out.Log()).ApplyArtifact}, nil
}

type respondParams struct {
	TransactionID     string          `json:"transactionId"`
	ApprovalRequestID string          `json:"approvalRequestId"`
	Decision          ledger.Decision `json:"decision"`
	Reason            string          `json:"reason,omitempty"`
	Fingerprint       string          `json:"fingerprint,omitempty"` // what the request must be about
	Signature         *string         `json:"signature,omitempty"`   // the decision as "countersign sign" writes it on a line
}

// Key keeps the calls about a transaction in order.
func (p respondParams) Key() string { return p.TransactionID }

func (c *call) approvalRespond(ctx context.Context, p respondParams) (any, error) {
	if _, err := c.log(ctx, p.TransactionID); err != nil {
		return nil, err
	}
	switch {
	case p.Decision != ledger.Approve && p.Decision != ledger.Deny:
		return nil, refused("params.decision is %+q: it is approve or deny", ledger.OneLine(string(p.Decision), 40))
	case p.ApprovalRequestID == "":
		return nil, refused("params.approvalRequestId is empty")
	}
	ruling := pipeline.Ruling{Decision: p.Decision, Request: p.ApprovalRequestID, Reason: p.Reason, Kind: "rpc"}
	if p.Fingerprint != "" {
		ruling.Fingerprints = []string{p.Fingerprint}
	}
	var err error
	if ruling.Signature, err = p.signature(); err != nil {
		return nil, err
	}
	g, err := c.Runner.Decide(ctx, p.TransactionID, ruling)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"ok": g.Recorded, "verdict": g.Verdict.State, "reason": report.New(g.Log(), nil, &g.Verdict).Headline(), "pendingApprovals": pending(g.Log()),
	}, nil
}

// signature is the signed decision that a client hands over, nil for none. It must be
// the decision that the other parameters say.
func (p respondParams) signature() (*approval.Signature, error) {
	if p.Signature == nil {
		return nil, nil
	}
	s, _, err := approval.ParseSigned(*p.Signature)
	switch {
	case err != nil:
		return nil, refused("params.signature is not what countersign sign prints: %v", err)
	case approval.SignedLine(s) != *p.Signature:
		return nil, refused("params.signature is more than the one line that countersign sign prints")
	case s.Statement.Decision != p.Decision:
		return nil, refused("params.signature is to %s, and params.decision to %s", s.Statement.Decision, p.Decision)
	case p.Reason != "" && p.Reason != s.Statement.Reason:
		return nil, refused("params.reason is not the reason that was signed")
	}
	return &s, nil
}

type closeParams struct {
	TransactionID string `json:"transactionId"`
	Status        string `json:"status,omitempty"`
}

// Key keeps the calls about a transaction in order.
func (p closeParams) Key() string { return p.TransactionID }

func (c *call) txClose(ctx context.Context, p closeParams) (any, error) {
	log, err := c.log(ctx, p.TransactionID)
	if err != nil {
		return nil, err
	}
	if tx := log.Transaction(); tx.Closed && p.Status == string(tx.Status) { // it is as it is asked to be
		return map[string]any{"ok": true, "status": tx.Status}, nil
	}
	if err := session.CloseStatus("params.status", cmp.Or(p.Status, string(ledger.Interrupted))); err != nil {
		return nil, err
	}
	g, err := c.Runner.Interrupt(ctx, p.TransactionID, "closed by "+c.Runner.Actor.Login)
	if err != nil {
		return nil, err
	}
	return map[string]any{"ok": true, "status": g.Transaction().Status}, nil
}

// turnMark stands between a transaction's id and a turn's in what clients get as
// turnId: by itself turn_1 says nothing, and a server remembers nothing.
const turnMark = "/"

type turnNameParams struct {
	TransactionID string `json:"transactionId,omitempty"`
	TurnID        string `json:"turnId,omitempty"`
}

// split returns a turn's transaction and its id in there, "" for the latest.
func (p turnNameParams) split() (transaction, turn string, err error) {
	transaction, turn, whole := strings.Cut(p.TurnID, turnMark)
	if !whole {
		transaction, turn = p.TransactionID, p.TurnID
	}
	if transaction == "" {
		return "", "", refused("params.transactionId is no transaction's id, and params.turnId none that turn/start gave")
	}
	if p.TransactionID != "" && p.TransactionID != transaction {
		return "", "", refused("params.turnId is a turn of another transaction")
	}
	return transaction, turn, nil
}

// Key keeps the calls about a transaction in order.
func (p turnNameParams) Key() string {
	transaction, _, _ := p.split()
	return transaction
}

// turn finds a turn that a client names.
func (c *call) turn(ctx context.Context, p turnNameParams) (*ledger.Log, *ledger.TurnStart, error) {
	id, turn, err := p.split()
	if err != nil {
		return nil, nil, err
	}
	log, err := c.log(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	turn = cmp.Or(turn, log.Transaction().CurrentTurnID)
	starts := ledger.Of[*ledger.TurnStart](log)
	i := slices.IndexFunc(starts, func(s *ledger.TurnStart) bool { return s.TurnID == turn })
	if i < 0 {
		return nil, nil, refused("%s has no turn %s", id, report.Clean(ledger.OneLine(turn, 40)))
	}
	return log, starts[i], nil
}

// turnGet answers what a turn is now, once by itself and once under the name
// turn. A turn is recorded whole, and so is completed once it can be asked for.
func (c *call) turnGet(ctx context.Context, p turnNameParams) (any, error) {
	log, start, err := c.turn(ctx, p)
	if err != nil {
		return nil, err
	}
	tx := log.Transaction()
	turn := map[string]any{
		"turnId": start.TurnID, "transactionId": tx.TransactionID, "input": start.Input, "mode": start.Mode, "items": items(log, start.TurnID),
	}
	answer := maps.Clone(turn)
	answer["turn"], answer["turnId"], answer["status"], answer["error"] = turn, tx.TransactionID+turnMark+start.TurnID, "completed", nil
	if tx.Status == ledger.Interrupted {
		answer["status"] = "interrupted"
	}
	for _, p := range ledger.Of[*ledger.TurnItem](log) {
		if p.TurnID == start.TurnID && p.Item.Type == "turnDiff" {
			answer["diff"] = p.Item.UnifiedDiff
		}
	}
	return answer, nil
}

// turnInterrupt ends a turn's transaction as interrupted: what nobody wants any
// more must not be applied later.
func (c *call) turnInterrupt(ctx context.Context, p turnNameParams) (any, error) {
	log, _, err := c.turn(ctx, p)
	if err != nil {
		return nil, err
	}
	return c.txClose(ctx, closeParams{TransactionID: log.Transaction().TransactionID, Status: string(ledger.Interrupted)})
}

// items are those of a turn as they stand now, each once, in the order in which
// they first came. The fileChange that says that it was applied has no diffs: it
// changes nothing of them.
func items(log *ledger.Log, turn string) []any {
	out, at := []any{}, map[string]int{}
	put := func(id string, item any) {
		if i, known := at[id]; known {
			out[i] = item
			return
		}
		at[id] = len(out)
		out = append(out, item)
	}
	for _, p := range log.Payloads() {
		switch p := p.(type) {
		case *ledger.TurnItem:
			if p.TurnID == turn {
				put(p.Item.ID, withDiffs(p.Item, out, at))
			}
		case *ledger.CommandItem:
			if p.TurnID == turn {
				put(p.Item.ID, p.Item)
			}
		case *ledger.TraceItem:
			if p.TurnID == turn {
				put(p.Item.ID, p.Item)
			}
		}
	}
	return out
}

// withDiffs puts an earlier item's diffs where the new one leaves them out.
func withDiffs(item ledger.Item, out []any, at map[string]int) ledger.Item {
	i, known := at[item.ID]
	if !known {
		return item
	}
	before, ok := out[i].(ledger.Item)
	if !ok || len(before.Changes) != len(item.Changes) {
		return item
	}
	item.Changes = slices.Clone(item.Changes)
	for i := range item.Changes {
		item.Changes[i].UnifiedDiff = cmp.Or(item.Changes[i].UnifiedDiff, before.Changes[i].UnifiedDiff)
	}
	return item
}
