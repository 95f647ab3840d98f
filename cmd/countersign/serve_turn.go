package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/report"
)

type turnParams struct {
	ThreadID       string         `json:"threadId"`
	Input          any            `json:"input"` // a text, or a list of items of text
	Description    string         `json:"description,omitempty"`
	CWD            string         `json:"cwd,omitempty"`
	WorkspaceRoot  string         `json:"workspaceRoot,omitempty"`
	Needle         string         `json:"needle,omitempty"`
	TargetFiles    []string       `json:"targetFiles,omitempty"`
	Patch          string         `json:"patch,omitempty"`
	SandboxPolicy  *sandboxParams `json:"sandboxPolicy,omitempty"`
	ApprovalPolicy any            `json:"approvalPolicy,omitempty"` // an object, or a word
	Trace          string         `json:"trace,omitempty"`
}

// Key keeps the turns of a thread in order.
func (p turnParams) Key() string { return p.ThreadID }

// summary is what the change is for: the description, and the text of the input.
func (p turnParams) summary() (string, error) {
	var parts []string
	if p.Description != "" {
		parts = append(parts, p.Description)
	}
	items, isList := p.Input.([]any)
	if !isList {
		items = []any{p.Input}
	}
	for _, one := range items {
		text, ok := one.(string)
		if item, _ := one.(map[string]any); isList && len(item) == 2 && (item["type"] == "input_text" || item["type"] == "text") {
			text, ok = item["text"].(string)
		} else if isList {
			ok = false
		}
		if !ok {
			return "", &usageError{`params.input is a text, or a list of items {"type": "input_text", "text": "…"}`, ""}
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ": "), nil
}

// sandboxParams are a sandboxPolicy; its members have two spellings.
type sandboxParams struct {
	Type           policy.Sandbox `json:"type"`
	WritableRoots  []string       `json:"writable_roots,omitempty"`
	NetworkAccess  bool           `json:"network_access,omitempty"`
	WritableRoots2 []string       `json:"writableRoots,omitempty"`
	NetworkAccess2 bool           `json:"networkAccess,omitempty"`
}

func (c *call) turnStart(ctx context.Context, p turnParams) (any, error) {
	t, err := c.turnThread(p)
	if err != nil {
		return nil, err
	}
	in, err := c.turnInput(ctx, t, p)
	if err != nil {
		return nil, err
	}
	done, err := c.r.Review(ctx, in, false)
	c.learn(done.Learnt)
	if err != nil {
		return nil, err
	}
	log, err := ledger.Read(done.Ledger.Tree, done.ID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"turnId": done.ID + turnMark + log.Transaction().Pointers.Proposal.ProposalTurnID, "transactionId": done.ID}, nil
}

// turnThread is the thread of a turn, with the narrower directories that the turn
// names.
func (c *call) turnThread(p turnParams) (thread, error) {
	t, err := c.thread(p.ThreadID)
	if err != nil {
		return t, err
	}
	roots := t.roots
	for _, dir := range []string{p.CWD, p.WorkspaceRoot} { // what targetFiles begin in: the last that is given
		if dir == "" {
			continue
		}
		if t.cwd, err = c.inside(dir); err != nil {
			return t, err
		}
		if !within(t.cwd, roots) {
			return t, &usageError{report.Clean(dir) + " is in none of the thread's workspace roots", ""}
		}
		if dir == p.WorkspaceRoot {
			t.roots = []string{t.cwd}
		}
	}
	return t, nil
}

// turnInput is what a turn proposes, in the bounds that it was given.
func (c *call) turnInput(ctx context.Context, t thread, p turnParams) (in pipeline.Input, err error) {
	rules, err := c.r.Rules(ctx, "")
	if err != nil {
		return in, err
	}
	if err := checkApprovals(p.ApprovalPolicy, rules.Policy); err != nil {
		return in, err
	}
	summary, err := p.summary()
	if err != nil {
		return in, err
	}
	switch {
	case (p.Needle == "") == (p.Patch == ""):
		return in, &usageError{"a turn proposes either what params.needle or what params.patch says", ""}
	case p.Patch != "" && p.TargetFiles != nil:
		return in, &usageError{"params.targetFiles belong to params.needle", ""}
	case p.Patch != "":
		in, err = pipeline.DiffInput([]byte(p.Patch), summary)
	default:
		in, err = pipeline.RecipeInput(p.Needle, t.files(p.TargetFiles), summary)
	}
	if err == nil && p.Trace != "" {
		in.Trace, err = readTurnTrace(p.Trace, rules.Policy)
	}
	if err != nil {
		return in, err
	}
	in = keepTo(in, t.roots)
	return c.inSandbox(in, p.SandboxPolicy)
}

func readTurnTrace(text string, p policy.Policy) ([]any, error) {
	if have := int64(len(text)); have > p.Limits.Bytes {
		return nil, fmt.Errorf("params.trace: %w", &pipeline.LimitError{What: "bytes", Have: have, Max: p.Limits.Bytes})
	}
	steps, err := pipeline.ReadTrace([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("params.trace: %w", err)
	}
	return steps, nil
}

// inSandbox takes over what a turn asks for. It can only ask for less than the
// Policy gives: read-only, which the transaction keeps, and fewer directories.
func (c *call) inSandbox(in pipeline.Input, want *sandboxParams) (pipeline.Input, error) {
	if want == nil {
		return in, nil
	}
	if want.WritableRoots != nil && want.WritableRoots2 != nil {
		return in, &usageError{"params.sandboxPolicy has both writable_roots and writableRoots", ""}
	}
	roots := append(want.WritableRoots, want.WritableRoots2...)
	switch want.Type {
	case policy.ReadOnly, policy.WorkspaceWrite:
		c.r.Sandbox = want.Type
	default:
		return in, &usageError{fmt.Sprintf("params.sandboxPolicy.type is %+q: it can be read-only or workspace-write", ledger.OneLine(string(want.Type), 40)), ""}
	}
	if want.NetworkAccess || want.NetworkAccess2 {
		return in, &usageError{"params.sandboxPolicy.network_access: commands have the network where the Policy says so, and nowhere else", ""}
	}
	if len(roots) == 0 {
		return in, nil
	}
	var dirs []string
	for _, dir := range roots {
		if !filepath.IsAbs(dir) { // as the ledger has them
			dir = filepath.Join(c.root, dir)
		}
		inside, err := c.inside(dir)
		if err != nil {
			return in, err
		}
		dirs = append(dirs, inside)
	}
	return keepTo(in, dirs), nil
}

// checkApprovals refuses an approvalPolicy that is not the Policy's: whoever asks
// for more would not get it, and nobody gets less. The words on-request and
// untrusted ask for what is always so: people are asked.
func checkApprovals(asked any, p policy.Policy) error {
	if asked == nil || asked == "on-request" || asked == "untrusted" {
		return nil
	}
	required, local := p.Approvals.Required, p.Approvals.Local.Counts(false)
	says := map[string]any{"required": float64(required), "local": local}
	members, ok := asked.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value, known := says[name]
		if !known {
			return &usageError{fmt.Sprintf("params.approvalPolicy has no member %+q", ledger.OneLine(name, 40)), ""}
		}
		ok = ok && (members[name] == nil || members[name] == value)
	}
	if !ok {
		return &usageError{fmt.Sprintf("params.approvalPolicy is the Policy's to say, and it says required %d, local %v (or on-request)", required, local), ""}
	}
	return nil
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
		return "", "", &usageError{"params.transactionId is no transaction's id, and params.turnId none that turn/start gave", ""}
	}
	if p.TransactionID != "" && p.TransactionID != transaction {
		return "", "", &usageError{"params.turnId is a turn of another transaction", ""}
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
	turn = firstOf(turn, log.Transaction().CurrentTurnID)
	starts := ledger.Of[*ledger.TurnStart](log)
	i := slices.IndexFunc(starts, func(s *ledger.TurnStart) bool { return s.TurnID == turn })
	if i < 0 {
		return nil, nil, &usageError{fmt.Sprintf("%s has no turn %s", id, report.Clean(ledger.OneLine(turn, 40))), ""}
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
		item.Changes[i].UnifiedDiff = firstOf(item.Changes[i].UnifiedDiff, before.Changes[i].UnifiedDiff)
	}
	return item
}
