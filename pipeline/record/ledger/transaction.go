package ledger

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// transitions lists where each status may go. A status without an entry ends
// the transaction.
var transitions = map[Status][]Status{
	Created:    {InProgress},
	InProgress: {Proposed, Interrupted},
	Proposed:   {Awaiting, Applied, Failed, Denied, Superseded, Interrupted},
	Awaiting:   {Proposed, Denied, Superseded, Interrupted},
	Failed:     {Applied, Denied, Superseded, Interrupted},
	Applied:    {Completed, Interrupted},
}

// ends are the statuses that lead nowhere.
var ends = map[Status]bool{Completed: true, Interrupted: true, Denied: true, Superseded: true}

// A Transaction is transaction.json: the fold of its events. Paths are inside
// the transaction directory.
type Transaction struct {
	Version        string         `json:"version"`
	TransactionID  string         `json:"transaction_id"`
	CreatedAt      string         `json:"created_at"`
	UpdatedAt      string         `json:"updated_at"`
	Status         Status         `json:"status"`
	Closed         bool           `json:"closed"`
	WorkspaceRoots []string       `json:"workspace_roots"`
	CWD            string         `json:"cwd"`
	SandboxPolicy  SandboxPolicy  `json:"sandbox_policy"`
	ApprovalPolicy ApprovalPolicy `json:"approval_policy"`
	Proposer       Actor          `json:"proposer"`
	CurrentTurnID  string         `json:"current_turn_id"`
	Labels         []string       `json:"labels"`
	Notes          string         `json:"notes"`
	Pointers       Pointers       `json:"pointers"`
}

// Pointers name the newest of each thing a reader wants next.
type Pointers struct {
	EventsJSONL    string    `json:"events_jsonl"`
	LatestDiff     string    `json:"latest_diff"`
	LatestTurn     string    `json:"latest_turn"`
	LatestArtifact string    `json:"latest_artifact"`
	Proposal       *Proposal `json:"proposal"`
}

// nothing stands for the proposal where there is none.
var nothing = new(Proposal)

// PatchID is the patch_id of the transaction's proposal, "" before there is one.
func (t Transaction) PatchID() string { return cmp.Or(t.Pointers.Proposal, nothing).PatchID }

// RequestedBy are those who asked for the first proposal of the transaction's patch.
func (t Transaction) RequestedBy() []Requester {
	return cmp.Or(t.Pointers.Proposal, nothing).RequestedBy
}

// KindPullRequest is the kind of a proposal that is a pull request's own diff:
// nothing is applied, and what completes it is that it was merged.
const KindPullRequest = "pr_diff"

// KindPatch is the kind of a proposal that is a Git diff.
const KindPatch = "patch"

// KindProposal is the kind of a proposal that may ask for commands and tests.
const KindProposal = "proposal"

// KindWorktree is the kind of a proposal of what the working tree holds.
const KindWorktree = "worktree"

// PullRequest is the number of the pull request that the transaction is for, 0 for
// none.
func (t Transaction) PullRequest() int { return cmp.Or(t.Pointers.Proposal, nothing).PullRequest }

// IsWrittenAs reports whether raw is transaction.json as canon.Line writes it of t. It is read rather than t
// written, which takes three times as long: canon.Unmarshal takes nothing but what would be written of what it reads.
func (t Transaction) IsWrittenAs(raw []byte) bool {
	var read Transaction
	if bytes.HasSuffix(raw, []byte("\n")) && canon.Unmarshal(raw, &read) == nil && reflect.DeepEqual(read, t) {
		return true
	}
	want, err := canon.Line(t) // an empty list may stand for none, which DeepEqual tells apart
	return err == nil && bytes.Equal(raw, want)
}

// GateOnly reports whether the transaction is about a pull request's own diff.
func (t *Transaction) GateOnly() bool {
	return cmp.Or(t.Pointers.Proposal, nothing).Kind == KindPullRequest
}

// fold takes one more event in. It refuses what may not happen now, and leaves
// the transaction unusable then.
func (t *Transaction) fold(at string, p Payload) error {
	if t.Closed {
		return breaks("I9", "%s after tx/close", p.Type())
	}
	if _, first := p.(*Meta); first != (t.TransactionID == "") {
		return breaks("I1", "tx/meta must be the first event and only that")
	}
	t.UpdatedAt = at
	switch p := p.(type) {
	case *Meta:
		if err := CheckID(p.TransactionID); err != nil {
			return fmt.Errorf("tx/meta: %w", err)
		}
		*t = Transaction{
			Version: "0", TransactionID: p.TransactionID, CreatedAt: at, UpdatedAt: at, Status: Created,
			WorkspaceRoots: p.WorkspaceRoots, CWD: p.CWD, SandboxPolicy: p.SandboxPolicy,
			ApprovalPolicy: p.ApprovalPolicy, Proposer: p.Proposer, Labels: []string{}, Notes: p.Summary,
			Pointers: Pointers{EventsJSONL: EventsFile},
		}
	case *StatusChange:
		if p.From != t.Status {
			return breaks("I3", "tx/status from %s, the status is %s", p.From, t.Status)
		}
		// A merge is the one way to Completed that leads past Applied.
		merged := t.GateOnly() && p.From == Proposed && p.To == Completed
		if !merged && !slices.Contains(transitions[p.From], p.To) {
			return fmt.Errorf("tx/status may not go from %s to %s", p.From, p.To)
		}
		t.Status = p.To
	case *TurnStart:
		t.CurrentTurnID, t.Pointers.LatestTurn = p.TurnID, p.TurnID
	case *TurnItem:
		if p.Item.Type != FileChange || p.Item.Metadata == nil {
			return nil
		}
		proposal := *p.Item.Metadata
		if t.Pointers.Proposal != nil && !slices.Equal(proposal.RequestedBy, t.RequestedBy()) {
			return fmt.Errorf("turn/item tells otherwise than before who asked for the change")
		}
		proposal.ProposalTurnID, proposal.ProposalItemID = p.TurnID, p.Item.ID
		t.Pointers.Proposal = &proposal
		t.Pointers.LatestDiff = PatchFile(proposal.PatchID)
	case *ArtifactStored:
		t.Pointers.LatestArtifact = p.Path
	case *Close:
		if p.Status != t.Status {
			return fmt.Errorf("tx/close says %s, the status is %s", p.Status, t.Status)
		}
		t.Closed = true
	}
	return nil
}
