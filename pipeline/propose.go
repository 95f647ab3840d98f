package pipeline

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/proposal"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/seal"
	"github.com/countersign-dev/countersign/pipeline/secret"
)

// gathered is what Review gathered before it looks at the ledger.
type gathered struct {
	set    patch.Patchset
	id     string
	diff   []byte                // the canonical bytes
	stored []byte                // the same without secrets
	sealed []byte                // diff, encrypted; nil where it is not
	found  []secret.PatchFinding // what the patch introduces
	risks  risk.List             // of the patch alone
	base   string
	rules  Rules
	mode   policy.Sandbox // the Policy's, or read-only where the proposer asks for that
	pull   *forge.PullRequest
	own    bool // it is the pull request's own diff
	known  Known

	proposer ledger.Actor
}

// seal encrypts a patch that is stored redacted for those that the Policy names.
func (g *gathered) seal(p policy.Policy) error {
	if g.redacted() == "" || len(p.Secrets.SealTo) == 0 {
		return nil
	}
	var err error
	if g.sealed, err = seal.Seal(g.diff, p.Secrets.SealTo); err != nil {
		err = fmt.Errorf("sealing the patch: %w", err)
	}
	return err
}

// redacted is the hash of what is stored of the patch where that is not the
// patch, else "".
func (g *gathered) redacted() string {
	if sum := canon.Sum(g.stored); sum != "sha256:"+g.id {
		return sum
	}
	return ""
}

// propose builds the first stage: what is proposed, by whom, on what base, in
// the place of what.
func (r *Runner) propose(in input.Change, p gathered, supersedes []string) (*ledger.Stage, error) {
	now := r.Now()
	id, err := ledger.NewID(now, r.Entropy)
	if err != nil {
		return nil, err
	}
	in.Summary = r.oneLine(in.Summary, 500)
	s := ledger.NewStage(&ledger.Log{}, now, r.Secrets)
	s.Event(&ledger.Meta{
		TransactionID: id, WorkspaceRoots: []string{"."}, CWD: ".",
		SandboxPolicy:  ledger.SandboxPolicy{Type: string(p.mode), WritableRoots: writable(p.mode)},
		ApprovalPolicy: ledger.ApprovalPolicy{Required: p.rules.Policy.Approvals.Required, Local: p.rules.Policy.Approvals.Local.Counts(in.For != nil)},
		Proposer:       p.proposer, BaseCommit: p.base, PolicyCommit: p.rules.Commit, Summary: in.Summary,
	})
	s.Status(ledger.InProgress, "review started")
	s.Event(&ledger.TurnStart{TransactionID: id, TurnID: "turn_1", Input: in.Summary, Mode: "review"})
	s.Patch(p.id, p.diff)
	if p.sealed != nil {
		s.Sealed(p.id, p.sealed)
	}
	s.Proposed(p.id, in.Number())
	p.rules.note(s)
	s.Artifact("proposal", r.provenance(in, p))
	s.Artifact(ledger.KindRisks, p.risks)
	if in.Trace != nil {
		in.RecordTrace(s, r.Secrets.Text)
	}
	change := r.fileChange(in, p)
	change.Metadata.Supersedes = supersedes
	if in.Proposal != nil {
		change.Metadata.Checks = s.Artifact("checks", checks.AskedBy(*in.Proposal))
	}
	s.Event(&ledger.TurnItem{TransactionID: id, TurnID: "turn_1", Item: change})
	s.Event(&ledger.TurnItem{TransactionID: id, TurnID: "turn_1", Item: ledger.Item{
		ID: "item_2", Type: "turnDiff", Op: "final", UnifiedDiff: shown(p.stored, maxShown),
	}})
	if in.Proposal != nil {
		s.Event(&ledger.TurnItem{TransactionID: id, TurnID: "turn_1", Item: r.plan(*in.Proposal)})
	}
	s.Status(ledger.Proposed, "review recorded the proposal")
	return s, nil
}

// proposer is who proposes a change.
func (r *Runner) proposer(in input.Change) ledger.Actor {
	if in.Proposer != nil {
		return *in.Proposer
	}
	return r.Actor
}

// bind notes which pull request a change is for.
func bind(in input.Change, meta *ledger.Proposal) {
	if in.For == nil {
		return
	}
	repository := in.For.Repository
	meta.Repository, meta.PullRequest, meta.HeadCommit = &repository, in.For.Number, in.For.Head.Commit
	if in.Kind == input.KindPullRequest {
		meta.Authors = in.For.Committers
	}
}

// writable are the directories that a transaction's effects may write to.
func writable(mode policy.Sandbox) []string {
	if mode == policy.ReadOnly {
		return []string{}
	}
	return []string{"."}
}

func (r *Runner) fileChange(in input.Change, p gathered) ledger.Item {
	before, after := p.set.Hashes()
	meta := &ledger.Proposal{
		Kind: in.Kind, WorkspaceRoot: ".", BaseSHA256: before, AfterSHA256: after,
		PatchID: p.id, PatchFingerprint: patch.Fingerprint(p.id), BaseCommit: p.base, PolicySHA256: p.rules.Policy.Sum(),
		Needle: in.Needle, ContainsSecrets: len(p.found) > 0, PatchRedactedSHA256: p.redacted(),
	}
	if p.sealed != nil {
		meta.PatchSealedSHA256 = canon.Sum(p.sealed)
	}
	bind(in, meta)
	if in.Source != nil {
		meta.SourceProposalID, meta.SourceProposalHash = in.Source.ProposalID, in.Source.ProposalHash
	}
	if in.Proposal != nil {
		meta.Confidence, meta.RequiresApproval = &in.Proposal.Confidence, &in.Proposal.RequiresApproval
	}
	item := ledger.Item{ID: "item_1", Type: "fileChange", Op: "upsert", Status: ledger.ItemInProgress, PatchID: p.id, Metadata: meta}
	left := maxShown // for all files together
	sections := sections(p.stored)
	for i, c := range p.set.Changes {
		diff := shown(sections[i], left)
		left = max(0, left-len(diff))
		item.Changes = append(item.Changes, ledger.ItemChange{Path: c.Path, From: c.From, Kind: string(c.Kind), UnifiedDiff: diff})
	}
	for _, f := range p.set.Files() {
		meta.TargetFiles = append(meta.TargetFiles, f.Path)
	}
	return item
}

// sections are the parts of a canonical diff, one a change.
func sections(diff []byte) [][]byte {
	const header = "diff --git "
	var out [][]byte
	for len(diff) > 0 {
		next := bytes.Index(diff[len(header):], []byte("\n"+header))
		end := len(diff)
		if next >= 0 {
			end = len(header) + next + 1
		}
		out = append(out, diff[:end])
		diff = diff[end:]
	}
	return out
}

// maxShown is how many bytes of diff an item holds.
const maxShown = 128 << 10

// shown is a diff for display in an event: text, cut to a size that is safe to
// print. patches/<patch_id>.diff has the whole.
func shown(diff []byte, limit int) string {
	text := ledger.EscapeBytes(string(diff))
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "\n… cut here; the whole is in patches/\n"
}

// provenance says where the proposal came from.
func (r *Runner) provenance(in input.Change, p gathered) any {
	before, after := p.set.Hashes()
	given := map[string]any{"kind": in.Kind, "bytes": len(in.Raw)}
	if p.redacted() == "" { // the hash of a weak secret's surroundings gives it away (T49)
		given["sha256"] = canon.Sum(in.Raw)
	}
	return map[string]any{
		"schema": "countersign/proposal/1", "tool": r.Tool, "proposer": p.proposer, "input": given,
		"base_commit": p.base, "patch_id": p.id,
		"base_sha256_by_path": before, "after_sha256_by_path": after,
	}
}

func (p gathered) subject(summary string) string {
	s := ledger.Plural(len(p.set.Changes), "change", "changes") + " to " + path.Base(p.set.Changes[0].Path)
	if len(p.set.Changes) > 1 {
		s = ledger.Plural(len(p.set.Changes), "file", "files") + ", " + path.Base(p.set.Changes[0].Path) + " first"
	}
	if summary != "" {
		s += ": " + summary
	}
	return s
}

// plan shows a Proposal's actions and tests to the reviewer.
func (r *Runner) plan(p proposal.Proposal) ledger.Item {
	item := ledger.Item{ID: "item_3", Type: "plan", Op: "upsert", Status: ledger.ItemInProgress}
	add := func(id, title string) {
		item.Steps = append(item.Steps, ledger.Step{ID: id, Title: r.oneLine(title, 200), Status: ledger.StepPending})
	}
	for _, a := range p.Actions {
		add(a.ID, a.Type+" "+a.Target+": "+a.Description)
	}
	for _, t := range p.AcceptanceTests {
		add(t.ID, t.Type+" "+t.Target+": "+t.Name)
	}
	return item
}
