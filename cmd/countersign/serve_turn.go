package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/report"
)

type turnParams struct {
	ThreadID       string          `json:"threadId"`
	Input          string          `json:"input"`
	Needle         string          `json:"needle,omitempty"`
	TargetFiles    []string        `json:"targetFiles,omitempty"`
	Patch          string          `json:"patch,omitempty"`
	SandboxPolicy  *sandboxParams  `json:"sandboxPolicy,omitempty"`
	ApprovalPolicy *approvalParams `json:"approvalPolicy,omitempty"`
	Trace          string          `json:"trace,omitempty"`
}

// Key keeps the turns of a thread in order.
func (p turnParams) Key() string { return p.ThreadID }

type sandboxParams struct {
	Type          policy.Sandbox `json:"type"`
	WritableRoots []string       `json:"writable_roots,omitempty"`
	NetworkAccess bool           `json:"network_access,omitempty"`
}

type approvalParams struct {
	Required *int  `json:"required,omitempty"`
	Local    *bool `json:"local,omitempty"`
}

func (c *call) turnStart(ctx context.Context, p turnParams) (any, error) {
	t, err := c.thread(p.ThreadID)
	if err != nil {
		return nil, err
	}
	in, err := c.turnInput(ctx, t, p)
	if err != nil {
		return nil, err
	}
	done, err := c.r.Review(ctx, in, false)
	if err != nil {
		return nil, err
	}
	log, err := c.r.Log(ctx, done.ID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"turnId": log.Transaction().Pointers.Proposal.ProposalTurnID, "transactionId": done.ID}, nil
}

// turnInput is what a turn proposes, in the bounds that it was given.
func (c *call) turnInput(ctx context.Context, t thread, p turnParams) (in pipeline.Input, err error) {
	rules, err := c.r.Rules(ctx, "")
	if err != nil {
		return in, err
	}
	if err := p.ApprovalPolicy.check(rules.Policy); err != nil {
		return in, err
	}
	switch {
	case (p.Needle == "") == (p.Patch == ""):
		return in, &usageError{"a turn proposes either what params.needle or what params.patch says", ""}
	case p.Patch != "" && p.TargetFiles != nil:
		return in, &usageError{"params.targetFiles belong to params.needle", ""}
	case p.Patch != "":
		in, err = pipeline.DiffInput([]byte(p.Patch), p.Input)
	default:
		in, err = pipeline.RecipeInput(p.Needle, t.files(p.TargetFiles), p.Input)
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
	switch want.Type {
	case policy.ReadOnly, policy.WorkspaceWrite:
		c.r.Sandbox = want.Type
	default:
		return in, &usageError{fmt.Sprintf("params.sandboxPolicy.type is %+q: it can be read-only or workspace-write", ledger.OneLine(string(want.Type), 40)), ""}
	}
	if want.NetworkAccess {
		return in, &usageError{"params.sandboxPolicy.network_access: commands have the network where the Policy says so, and nowhere else", ""}
	}
	if len(want.WritableRoots) == 0 {
		return in, nil
	}
	var dirs []string
	for _, dir := range want.WritableRoots {
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

// check refuses a policy that is not the Policy's: whoever asks for more would
// not get it, and nobody gets less.
func (a *approvalParams) check(p policy.Policy) error {
	if a == nil {
		return nil
	}
	required, local := p.Approvals.Required, p.Approvals.Local.Counts(false)
	if a.Required != nil && *a.Required != required || a.Local != nil && *a.Local != local {
		return &usageError{fmt.Sprintf("params.approvalPolicy is the Policy's to say, and it says required %d, local %v", required, local), ""}
	}
	return nil
}

type turnGetParams struct {
	TransactionID string `json:"transactionId"`
	TurnID        string `json:"turnId,omitempty"`
}

// Key keeps the calls about a transaction in order.
func (p turnGetParams) Key() string { return p.TransactionID }

func (c *call) turnGet(ctx context.Context, p turnGetParams) (any, error) {
	log, err := c.log(ctx, p.TransactionID)
	if err != nil {
		return nil, err
	}
	turn := firstOf(p.TurnID, log.Transaction().CurrentTurnID)
	starts := ledger.Of[*ledger.TurnStart](log)
	i := slices.IndexFunc(starts, func(s *ledger.TurnStart) bool { return s.TurnID == turn })
	if i < 0 {
		return nil, &usageError{fmt.Sprintf("%s has no turn %s", p.TransactionID, report.Clean(ledger.OneLine(turn, 40))), ""}
	}
	return map[string]any{"turn": map[string]any{
		"turnId": turn, "transactionId": p.TransactionID, "input": starts[i].Input, "mode": starts[i].Mode, "items": items(log, turn),
	}}, nil
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
