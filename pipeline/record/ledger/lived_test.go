package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// lived is a directory as the commands leave it: a change of three files that
// was reviewed or, if finished, also approved by two people, applied and
// validated.
func lived(t testing.TB, finished bool) directory {
	t.Helper()
	s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	p := reviewed(s)
	if finished {
		asked(s)
		landed(s, p)
	}
	entry, err := s.Entry(writing.Title{Stage: "test"}, false)
	fatal(t, err)
	d := directory{nil, fstest.MapFS{}}
	for name, data := range entry.Files {
		d.put(strings.TrimPrefix(name, ledger.Dir(txID)+"/"), string(data))
	}
	return d
}

const commit = "644225e751beb7f3df608aa58cb5b9672d9ad719"

func reviewed(s *writing.Stage) ledger.Proposal {
	m := meta()
	m.WorkspaceRoots, m.CWD, m.BaseCommit, m.PolicyCommit = []string{"."}, ".", commit, commit
	m.SandboxPolicy = ledger.SandboxPolicy{Type: "workspace-write", WritableRoots: []string{"."}}
	m.ApprovalPolicy = ledger.ApprovalPolicy{Required: 2, Local: true}
	s.Event(m)
	s.Status(ledger.InProgress, "review started")
	s.Event(&ledger.TurnStart{TransactionID: txID, TurnID: "turn_1", Mode: "review"})
	s.Patch(patchID, diff)
	s.Artifact("proposal", map[string]any{
		"transaction_id": txID, "patch_id": patchID, "input": "fix.patch", "base_commit": commit, "files": []any{"a", "dir/b.go", "dir/c.go"},
		"policy": map[string]any{"approvals": 2.0, "local": true, "commit": commit}, "note": strings.Repeat("An \"input\" of a line.\n", 10),
	})
	it := change()
	p := it.Metadata
	p.Kind, p.WorkspaceRoot, p.TargetFiles = "patch", ".", []string{"a"}
	p.BaseCommit, p.PolicySHA256, p.PatchFingerprint = commit, canon.Sum(nil), "patchset:"+patchID
	it.Changes[0].UnifiedDiff = hunks("a", 6)
	it.Op, it.Status = "upsert", ledger.ItemInProgress
	s.Event(item(it))
	s.Event(item(ledger.Item{ID: "item_2", Type: "turnDiff", Op: "final", UnifiedDiff: hunks("a", 6) + hunks("dir/b.go", 6) + hunks("dir/c.go", 6)}))
	s.Status(ledger.Proposed, "review recorded the proposal")
	return *p
}

func hunks(name string, lines int) string {
	return fmt.Sprintf("diff --git a/%s b/%[1]s\nindex %s..%s 100644\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n", name, commit, commit) +
		strings.Repeat("-\treturn fmt.Errorf(\"%w: %q\", ErrNotFound, name)\n+\treturn fmt.Errorf(\"%q: %w\", name, ErrNotFound)\n", lines)
}

func asked(s *writing.Stage) {
	s.Event(request("req_1"))
	s.Event(request("req_2"))
	s.Status(ledger.Awaiting, "2 approvals are missing")
	for i, id := range []string{"req_1", "req_2"} {
		d := decision(id, ledger.Approve)
		d.Reason = "looks right to me"
		d.Source = ledger.Source{
			Kind: "pull_request_review", ID: "1234567890", URL: "https://github.com/owner/repository/pull/17#pullrequestreview-1234567890",
			Author:     ledger.Actor{Kind: "user", ID: fmt.Sprintf("github:%d", i), Login: "ada"},
			Permission: "write", Commit: commit, BodySHA256: canon.Sum(nil), CreatedAt: "2026-01-05T00:00:00Z",
		}
		s.Event(d)
	}
	s.Status(ledger.Proposed, "every request is answered with an approval")
}

func landed(s *writing.Stage, p ledger.Proposal) {
	s.Event(&ledger.TurnStart{TransactionID: txID, TurnID: "turn_2", Mode: "apply"})
	s.Event(&ledger.ApplyStart{
		TransactionID: txID, ApplyID: "apply_1", PatchIDs: []string{patchID}, Files: p.TargetFiles, Target: "branch countersign/GG28A", BaseCommit: commit,
		Approvals: []ledger.Approved{{Kind: "fileChange", Fingerprint: "patchset:" + patchID, Required: 2}}, Policy: ledger.PolicyRef{Commit: commit, SHA256: p.PolicySHA256},
	})
	var done []ledger.Operation
	for _, name := range p.TargetFiles {
		done = append(done, ledger.Operation{
			Op: "modify", Path: name, Status: ledger.StatusSuccess, BeforeHash: p.BaseSHA256[name], AfterHash: p.AfterSHA256[name], BytesWritten: 1234,
		})
	}
	res := effect.NewResult(".", p.Source(), false, done)
	s.Result(res)
	artifact := s.Artifact("apply", map[string]any{"apply_id": "apply_1", "apply_result": res, "commit": commit, "target": "branch"})
	s.Event(&ledger.ApplyComplete{
		TransactionID: txID, ApplyID: "apply_1", Success: true, Outcome: "SUCCESS", ApplyArtifact: artifact,
		Target: "branch countersign/GG28A", CommitBefore: commit, CommitAfter: commit,
	})
	it := change()
	p.Applied = true
	it.Metadata, it.Op, it.Status = &p, "upsert", ledger.ItemCompleted
	s.Event(item(it))
	s.Status(ledger.Applied, "apply succeeded")
	s.Event(&ledger.ValidateStart{TransactionID: txID, ValidateID: "validate_1"})
	s.Artifact("validation", map[string]any{"ok": true, "violations": []any{}, "tests": []any{}})
	s.Event(&ledger.ValidateComplete{TransactionID: txID, ValidateID: "validate_1", Success: true})
	s.Status(ledger.Completed, "validate found nothing")
	s.Close()
}
