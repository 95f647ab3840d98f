package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/proposal"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// A Reviewed is a recorded proposal. Known says that it was there already.
type Reviewed struct {
	ID         string
	Patchset   patch.Patchset
	PatchID    string
	Status     ledger.Status
	BaseCommit string
	Ledger     ledger.Snapshot // as the review left it
	Known      bool
	Learnt     Known // of the patch and its secrets
	// InputSHA256 is of the file that was given, "sha256:…"; "" where none was, or
	// where it holds secrets, which a hash of what surrounds them can give away.
	InputSHA256 string
	// Supersedes are the transactions whose place it takes, or would take.
	Supersedes []string
}

// Review records a proposal and writes nothing but the ledger: no working
// tree, no index, no other ref. The same change on the same base returns the
// transaction that is open for it. dryRun records nothing.
func (r *Runner) Review(ctx context.Context, in input.Change, dryRun bool) (Reviewed, error) {
	p, err := r.gather(ctx, in)
	if err != nil {
		return Reviewed{Learnt: p.known}, err
	}
	r = r.With(p.known)
	p.pull, p.own, p.proposer = in.For, in.Kind == input.KindPullRequest, r.proposer(in)
	proposed := Reviewed{Patchset: p.set, PatchID: p.id, BaseCommit: p.base, Learnt: p.known}
	if (in.Kind == input.KindPatch || in.Kind == input.KindPack || in.Kind == input.KindProposal) && p.redacted() == "" {
		proposed.InputSHA256 = canon.Sum(in.Raw)
	}
	paths, err := r.rivals(ctx, p)
	if err != nil {
		return proposed, err
	}
	paths = append(paths, ledger.DeniedDir(p.id), ledger.ProposedDir(p.id), ledger.Day(r.Now()))
	out, after, err := update(ctx, r, paths, func(snap ledger.Snapshot) (try[Reviewed], error) {
		out := proposed
		known, err := r.recorded(ctx, snap.Tree, p)
		if err != nil {
			return nothing(out, err)
		}
		if known != nil {
			out.ID, out.Status, out.Known = known.TransactionID, known.Status, true
			return nothing(out, nil)
		}
		if err := r.refuseDirty(ctx, in, p.set.Files()); err != nil {
			return nothing(out, err)
		}
		old, err := p.superseded(snap.Tree)
		if err != nil {
			return nothing(out, err)
		}
		if out.Supersedes = ids(old); dryRun {
			return nothing(out, nil)
		}
		return r.succeed(in, p, old, out, snap.Tip == "")
	})
	out.Ledger, out.Learnt = after, p.known
	return out, err
}

// WorktreeInput proposes what the working tree holds beyond HEAD.
func (r *Runner) WorktreeInput(ctx context.Context, summary string) (input.Change, error) {
	if r.Worktree == nil {
		return input.Change{}, &NoWorktreeError{}
	}
	changed, err := r.Repo.Changed(ctx)
	if err != nil {
		return input.Change{}, err
	}
	return input.Worktree(changed, r.Worktree.Read, summary), nil
}

// gathered is what Review gathered before it looks at the ledger.
type gathered struct {
	set    patch.Patchset
	id     string
	diff   []byte                // the canonical bytes
	stored []byte                // the same without secrets
	sealed []byte                // diff, encrypted; nil where it is not
	found  []secret.PatchFinding // what the patch introduces
	base   string
	rules  Rules
	mode   policy.Sandbox // the Policy's, or read-only where the proposer asks for that
	pull   *forge.PullRequest
	own    bool // it is the pull request's own diff
	known  Known

	proposer ledger.Actor
}

func (r *Runner) gather(ctx context.Context, in input.Change) (gathered, error) {
	rules, err := r.rules(ctx, in.To())
	if err != nil {
		return gathered{}, err
	}
	limits := rules.Policy.Limits
	if size := int64(len(in.Raw)); size > limits.Bytes {
		return gathered{}, &LimitError{"bytes", size, limits.Bytes}
	}
	base, err := r.baseOf(ctx, in)
	if err != nil {
		return gathered{}, err
	}
	tree, err := r.Repo.Tree(ctx, base)
	if err != nil {
		return gathered{}, err
	}
	set, err := in.Resolve(tree)
	if err != nil {
		return gathered{}, err
	}
	if n := len(set.Files()); n > limits.Files {
		return gathered{}, &LimitError{"files", int64(n), int64(limits.Files)}
	}
	diff := set.Bytes()
	if size := int64(len(diff)); in.Computed() && size > limits.Bytes {
		return gathered{}, &LimitError{"bytes", size, limits.Bytes}
	}
	finder, found, err := r.secrets(rules.Policy, set)
	known := Known{finder, r.patches, r.ran}.given(diff)
	r = r.With(known) // from here on it knows what the patch holds
	if err == nil {
		err = r.keepable(in)
	}
	if err != nil {
		return gathered{known: known}, err
	}
	g := gathered{
		known: known, set: set, id: canon.Hex(diff), diff: diff, stored: r.Secrets.Diff(diff), found: found, base: base, rules: rules, mode: rules.Policy.Sandbox,
	}
	if r.Sandbox == policy.ReadOnly {
		g.mode = policy.ReadOnly
	}
	return g, g.seal(rules.Policy)
}

// baseOf is the commit that a change is proposed on.
func (r *Runner) baseOf(ctx context.Context, in input.Change) (string, error) {
	switch {
	case in.Base != "":
		return in.Base, nil
	case in.For != nil:
		return in.For.Head.Commit, nil
	}
	return r.Repo.Head(ctx)
}

// recorded returns the transaction that there is for the patch on this base, nil
// if there is none: the open one, or the one that put the files on disk where
// they are. A patch that was ever denied is a *DeniedError.
func (r *Runner) recorded(ctx context.Context, tree fs.FS, p gathered) (*ledger.Transaction, error) {
	if err := refuseDenied(tree, p.id); err != nil {
		return nil, err
	}
	proposals, err := ledger.Proposals(tree, p.id)
	if err != nil {
		return nil, err
	}
	var done *ledger.Transaction
	for _, known := range proposals {
		t, err := state(tree, known.TransactionID)
		if err != nil {
			return nil, err
		}
		switch {
		case t.PatchID() != p.id:
			return nil, &ledger.CorruptError{ID: t.TransactionID, Err: errors.New("it does not propose the patch that it is listed under")}
		case t.Status == ledger.Denied:
			return nil, &DeniedError{ID: t.TransactionID, PatchID: p.id, Reason: "denied", In: t.TransactionID}
		case !p.sameAs(t):
		case !t.Closed:
			return &t, nil
		case t.Status == ledger.Completed:
			done = &t
		}
	}
	if done == nil || r.Worktree == nil || p.pull != nil {
		return nil, nil
	}
	states, err := r.Worktree.Inspect(p.set.Files())
	if err != nil || slices.ContainsFunc(states, func(s workspace.State) bool { return s != workspace.After }) {
		return nil, err
	}
	return done, nil
}

// sameAs reports whether a transaction of this patch is about the same place: the
// same base or pull request, and one that may be applied if this one may. A
// patch names by hash what it changes, so that a push which leaves that alone
// changes nothing on a pull request. Only a patch that is stored without its
// secrets needs its base, which such a push may have taken away.
func (p gathered) sameAs(t ledger.Transaction) bool {
	of := t.Pointers.Proposal
	if (p.mode == policy.ReadOnly) != (t.SandboxPolicy.Type == string(policy.ReadOnly)) {
		return false
	}
	if p.pull == nil {
		return of.PullRequest == 0 && of.BaseCommit == p.base
	}
	return of.Repository != nil && of.Repository.ID == p.pull.Repository.ID && of.PullRequest == p.pull.Number &&
		t.GateOnly() == p.own && (p.own || of.BaseCommit == p.base || of.PatchRedactedSHA256 == "")
}

// state reads the state of a transaction whose id is the ledger's word.
func state(tree fs.FS, id string) (ledger.Transaction, error) {
	if err := ledger.CheckID(id); err != nil {
		return ledger.Transaction{}, err
	}
	return ledger.State(tree, id)
}

// refuseDirty: what the human is shown must be what the files in front of them
// would become. A proposal of the working tree is what is in front of them.
func (r *Runner) refuseDirty(ctx context.Context, in input.Change, files []patch.Change) error {
	if r.Worktree == nil || in.Kind == input.KindWorktree || in.For != nil {
		return nil
	}
	_, err := r.clean(ctx, files)
	return err
}

// clean compares files on disk, and in the index, with the base. It returns
// those that are not checked out, which are neither clean nor dirty.
func (r *Runner) clean(ctx context.Context, files []patch.Change) (sparse []string, err error) {
	states, err := r.Worktree.Inspect(files)
	if err != nil {
		return nil, err
	}
	index, err := r.Repo.Index(ctx, files)
	if err != nil {
		return nil, err
	}
	dirty := index.Staged
	for i, state := range states {
		name := files[i].Path
		if state == workspace.Before || slices.Contains(dirty, name) {
			continue
		}
		if !slices.Contains(index.Sparse, name) {
			dirty = append(dirty, name)
			continue
		}
		sparse = append(sparse, name)
	}
	if len(dirty) > 0 {
		return nil, &DirtyError{dirty}
	}
	return sparse, nil
}

func refuseDenied(tree fs.FS, patchID string) error {
	denials, err := ledger.Denials(tree, patchID)
	if err != nil || len(denials) == 0 {
		return err
	}
	d := denials[0]
	why := fmt.Sprintf("denied by %s in %s", ledger.OneLine(d.Author.Login, 80), d.TransactionID)
	if d.Reason != "" {
		why += ": " + ledger.OneLine(d.Reason, 200)
	}
	return &DeniedError{PatchID: patchID, Reason: why, In: d.TransactionID}
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
	s := plural(len(p.set.Changes), "change", "changes") + " to " + path.Base(p.set.Changes[0].Path)
	if len(p.set.Changes) > 1 {
		s = plural(len(p.set.Changes), "file", "files") + ", " + path.Base(p.set.Changes[0].Path) + " first"
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
