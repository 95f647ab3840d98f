package v1_test

import (
	"time"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

const (
	txID    = "tx_01KE5W5200041061050R3GG28A"
	otherID = "tx_01KE5W5200041061050R3GG28B"
)

var (
	moment  = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	actor   = ledger.Actor{Kind: "user", ID: "a@example.org", Login: "Ada"}
	diff    = []byte("diff --git a/a b/a\n")
	patchID = canon.Hex(diff)
)

func meta() *ledger.Meta { return &ledger.Meta{TransactionID: txID, Proposer: actor, Summary: "greet"} }

func change() ledger.Item {
	after := canon.Sum([]byte("x"))
	return ledger.Item{ID: "item_1", Type: "fileChange", PatchID: patchID, Metadata: &ledger.Proposal{
		PatchID: patchID, TargetFiles: []string{"a"},
		BaseSHA256: map[string]*string{"a": nil}, AfterSHA256: map[string]*string{"a": &after},
	}}
}

func item(it ledger.Item) *ledger.TurnItem {
	return &ledger.TurnItem{TransactionID: txID, TurnID: "turn_1", Item: it}
}

func request(id string) *ledger.ApprovalRequest {
	return &ledger.ApprovalRequest{
		TransactionID: txID, TurnID: "turn_1", ApprovalRequestID: id, ItemID: "item_1",
		Kind: "fileChange", Fingerprint: "patchset:" + patchID,
	}
}

func decision(id string, d ledger.Decision) *ledger.ApprovalDecision {
	return &ledger.ApprovalDecision{
		TransactionID: txID, ApprovalRequestID: id, Decision: d, Fingerprint: "patchset:" + patchID,
		Source: ledger.Source{Kind: "local", Author: actor},
	}
}

// start is an apply for which so many people had to approve the patch.
func start(required int) *ledger.ApplyStart {
	return &ledger.ApplyStart{
		TransactionID: txID, ApplyID: "apply_1", PatchIDs: []string{patchID}, Files: []string{"a"},
		Approvals: []ledger.Approved{{Kind: "fileChange", Fingerprint: "patchset:" + patchID, Required: required}},
	}
}

func applied() ledger.ApplyResult {
	hash := canon.Sum([]byte("x"))
	return effect.NewResult(".", ledger.Proposal{PatchID: patchID}.Source(), false, []ledger.Operation{
		{Op: "create", Path: "a", Status: ledger.StatusSuccess, AfterHash: &hash, BytesWritten: 1},
	})
}

// record is a whole life, from tx/meta to tx/close.
func record(s *writing.Stage) {
	s.Event(meta())
	s.Status(ledger.InProgress, "")
	s.Event(&ledger.TurnStart{TransactionID: txID, TurnID: "turn_1", Mode: "review"})
	s.Patch(patchID, diff)
	s.Artifact("proposal", map[string]any{"n": 1})
	s.Event(item(change()))
	s.Status(ledger.Proposed, "")
	s.Event(request("req_1"))
	s.Status(ledger.Awaiting, "")
	s.Event(decision("req_1", ledger.Approve))
	s.Status(ledger.Proposed, "")
	s.Event(start(1))
	artifact := s.Artifact("apply", map[string]any{"apply_result": applied()})
	s.Event(&ledger.ApplyComplete{TransactionID: txID, ApplyID: "apply_1", Success: true, Outcome: "SUCCESS", ApplyArtifact: artifact})
	s.Result(applied())
	s.Status(ledger.Applied, "")
	s.Event(&ledger.ValidateStart{TransactionID: txID, ValidateID: "validate_1"})
	s.Event(&ledger.ValidateComplete{TransactionID: txID, ValidateID: "validate_1", Success: true})
	s.Status(ledger.Completed, "")
	s.Close()
}
