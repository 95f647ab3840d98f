// Package html makes the page of one transaction, for people to look at: an HTML
// document that runs no script and asks nothing of any other place. It is pure: a page
// is a function of a transaction's directory and of what the caller found in the ledger, and it
// decides nothing.
//
// Every byte of a directory is untrusted. What does not verify is said on top of the page, and
// nothing on it is called approved then.
package html

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report/view"
)

// A Reader reads transactions. It keeps the Policies that it has read, as most transactions went by
// few; the zero value has read none. Several goroutines may use it.
type Reader struct {
	policies approval.Policies
	written  sync.Map // Policies as people write them, by their canonical form
}

// asWritten is plain.AsWritten, which takes half as long as the rest of a page.
func (r *Reader) asWritten(canonical string) string {
	text, known := r.written.Load(canonical)
	if !known {
		text, _ = r.written.LoadOrStore(canonical, plain.AsWritten(canonical))
	}
	return text.(string)
}

// A Transaction is all that its directory tells of one.
type Transaction struct {
	Summary
	events    []event
	Patch     []byte // canonical bytes as they are stored, nil where they cannot be read
	Proposal  *ledger.Proposal
	stats     []gitpatch.Stat
	renamings []gitpatch.Renaming
	Risks     *risk.List
	Again     []ledger.Provenance // further proposals of the patch
	verdict   approval.Verdict
	Told      bool // whether the verdict is that of all decisions of a record that verifies
	View      view.Transaction
	policy    policy.Policy
	Rules     approval.PolicyDoc // the Policy as it was recorded, and where it was read
	written   string             // the Policy as people write one
	NoPolicy  string             // why the Policy cannot be shown, "" where it can
	Result    *ledger.ApplyResult
	facts     view.Facts                 // of a record that verifies, but for the verdict
	asides    map[string]json.RawMessage // the artifacts that pages show, by path
	advice    []approval.Advice
}

// An event is one line of events.jsonl. Payload is nil where it cannot be read.
type event struct {
	ledger.Event
	payload ledger.Payload
}

// A Summary is what overviews, lists and search need of a transaction. Times are as the
// ledger writes them (ledger.TimeFormat), "" where something has not happened.
type Summary struct {
	ID      string
	PatchID string
	Kind    string // of the proposal, such as ledger.KindPatch
	Status  ledger.Status
	State   plain.State
	Closed  bool
	Waits   bool // for people's approval

	Proposed, Decided string // Decided is the newest decision

	Proposer  ledger.Actor
	Approvers []ledger.Actor // whose approval counted, each once
	Deniers   []ledger.Actor
	Others    []ledger.Actor // whom the page names beside them: who proposed the patch too, and whose decision did not count
	Summary   string
	Paths     []string

	Repository  *ledger.Repository
	PullRequest int
	Commits     []string // that the change became
	Supersedes  []string // transactions

	Tone  plain.Tone // of the banner
	Own   bool       // whether its proposer alone gave an approval that it needs
	Needs string     // what it waits for, such as "protected paths (1 of 2)"; "" for nothing

	Rank int // of its gravest risk, as far as the record tells: before all where it does not

	Findings []history.Finding // of the record alone, and what the caller added
}

// Sound reports whether nothing was found against the record.
func (s Summary) Sound() bool { return len(s.Findings) == 0 }

// Read reads a transaction of a ledger's files. The error is for an id that is none; everything that is wrong
// with its directory is a finding.
func (r *Reader) Read(tree fs.FS, id string) (Transaction, error) {
	if err := ledger.CheckID(id); err != nil {
		return Transaction{}, err
	}
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return Transaction{}, err
	}
	log, found := ledger.ReadOwn(dir, id)
	record := r.policies.Record(dir, log)
	if log != nil {
		found = append(found, record.Redo()...)
	}
	return r.Of(id, record, found), nil
}

// Of is the transaction of a record that was read, whose Log is nil if it cannot be, with what was found against it.
func (r *Reader) Of(id string, record *approval.Record, found []canon.Violation) Transaction {
	t := Transaction{Summary: Summary{ID: id}, asides: map[string]json.RawMessage{}}
	dir, log := record.Dir, record.Log
	for _, v := range found {
		t.Findings = append(t.Findings, history.Finding{RuleID: v.RuleID, Path: v.Path, Message: v.Message})
	}
	if log == nil || len(log.Events()) == 0 {
		t.salvage(dir)
		return t
	}
	for i, e := range log.Events() {
		t.events = append(t.events, event{e, log.Payloads()[i]})
	}
	t.summarize(log)
	t.readFiles(dir, log)
	if item, ok := writing.FileChange(log); ok && t.Proposal != nil {
		t.measure(item.Item.Changes)
	}
	var err error
	t.verdict, t.policy, t.Rules, err = explain.AsRecorded(record)
	at := plain.StateOfLog(log, t.verdict.State)
	if err != nil {
		t.NoPolicy, at = err.Error(), plain.StateOfLog(log, "")
	} else if t.Risks != nil {
		more := t.Risks.Under(t.policy, t.Paths)
		t.Risks = &more
	}
	for _, a := range t.advice {
		if t.Risks != nil {
			list := t.Risks.Claimed(a, t.Paths)
			t.Risks = &list
		}
	}
	if t.Rank = -1; t.Risks != nil {
		t.Rank = t.Risks.Rank()
	}
	if t.Rules.Policy != "" {
		t.written = r.asWritten(t.Rules.Policy)
	}
	for _, j := range t.verdict.Decisions {
		to := &t.Approvers
		if j.Decision == ledger.Deny {
			to = &t.Deniers
		}
		if j.Counted && !slices.ContainsFunc(*to, func(a ledger.Actor) bool { return a.ID == j.Author.ID && a.Kind == j.Author.Kind }) {
			*to = append(*to, j.Author)
		}
		t.Decided = max(t.Decided, j.CreatedAt)
	}
	t.facts = view.Facts{
		State:     at,
		Proposers: append(slices.Concat(slices.Collect(maps.Values(ledger.Proposers(dir, log)))...), t.Proposer),
		Ended:     view.Ended(log), GateOnly: t.Kind == ledger.KindPullRequest,
		Written: slices.ContainsFunc(all[*ledger.ApplyComplete](t), func(a *ledger.ApplyComplete) bool { return a.Success }), Risks: t.Risks, Files: t.facts.Files,
		ID: id[max(0, len(id)-7):], Status: t.Status, PullRequest: t.PullRequest, Redacted: t.Proposal != nil && t.Proposal.PatchRedactedSHA256 != "",
	}
	if t.Status == ledger.Denied {
		t.facts.Ended = view.Reason(log)
	}
	return t.With()
}

// measure takes the numbers of the diff for the files that the record has.
func (t *Transaction) measure(changes []ledger.ItemChange) {
	t.stats, t.renamings = gitpatch.Stats(t.Patch), gitpatch.Renamings(t.Patch)
	t.facts.Files = view.Files(changes, t.Proposal, t.stats, t.renamings)
}

// Missing are the approvals that it waits for.
func (t Transaction) Missing() []approval.Request { return plain.Missing(t.verdict) }

// With is the transaction with what an audit found against it: nobody's approval counts then.
func (t Transaction) With(found ...history.Finding) Transaction {
	for _, f := range found {
		if !slices.ContainsFunc(t.Findings, func(o history.Finding) bool {
			return o.RuleID == f.RuleID && o.Path == f.Path && o.Message == f.Message
		}) {
			t.Findings = append(slices.Clip(t.Findings), f)
		}
	}
	if !t.Sound() {
		t.Approvers = nil
	}
	t.look()
	return t
}

// look notes whom the page names beside those who decided, and makes the view.
func (t *Transaction) look() {
	var named []ledger.Actor
	for _, p := range t.Again {
		named = append(named, p.Proposer)
	}
	for _, d := range all[*ledger.ApprovalDecision](*t) {
		named = append(named, d.Source.Author)
	}
	t.Others = nil
	known := slices.Concat([]ledger.Actor{{}, t.Proposer}, t.Approvers, t.Deniers)
	for _, a := range named {
		if !slices.Contains(known, a) {
			known, t.Others = append(known, a), append(t.Others, a)
		}
	}
	t.Told = t.Sound() && t.NoPolicy == "" && len(t.verdict.Decisions) == len(all[*ledger.ApprovalDecision](*t))
	f := t.facts
	if t.Told {
		f.Verdict = &t.verdict
	}
	if !t.Sound() {
		f.State = plain.Damaged
	}
	t.View = view.Of(f)
	t.State, t.Tone, t.Own, t.Needs = t.View.State, t.View.Banner.Tone, len(t.View.ByProposer()) > 0, ""
	if t.Waits && t.Sound() {
		t.Needs = t.View.Needs()
	}
}

// salvage reads the readable events of a damaged log.
func (t *Transaction) salvage(dir fs.FS) {
	t.facts.State = plain.Unknown
	raw, err := fs.ReadFile(dir, ledger.EventsFile)
	if err != nil && t.Sound() {
		t.Findings = []history.Finding{{RuleID: "L1", Path: ledger.EventsFile, Message: err.Error()}}
	}
	for line := range bytes.Lines(raw) {
		var e event
		if json.Unmarshal(line, &e.Event) != nil {
			continue
		}
		e.payload, _ = e.Decode()
		t.events = append(t.events, e)
		if meta, ok := e.payload.(*ledger.Meta); ok && t.Summary.Summary == "" {
			t.Proposer, t.Summary.Summary, t.Proposed = meta.Proposer, meta.Summary, e.Timestamp
		}
	}
	t.look()
}

// summarize takes from the log what lists need.
func (t *Transaction) summarize(log *ledger.Log) {
	tx := log.Transaction()
	t.Status, t.Closed, t.Proposer, t.Summary.Summary = tx.Status, tx.Closed, tx.Proposer, tx.Notes
	t.Proposed = tx.CreatedAt
	if p := tx.Pointers.Proposal; p != nil {
		t.Proposal = p
		t.PatchID, t.Kind, t.Paths = p.PatchID, p.Kind, p.TargetFiles
		t.Repository, t.PullRequest, t.Supersedes = p.Repository, p.PullRequest, p.Supersedes
	}
	for _, a := range ledger.Of[*ledger.ApplyComplete](log) {
		if a.Success && a.CommitAfter != "" {
			t.Commits = append(t.Commits, a.CommitAfter)
		}
	}
	if tx.GateOnly() && t.Proposal.HeadCommit != "" {
		t.Commits = append(t.Commits, t.Proposal.HeadCommit)
	}
	t.Waits = !t.Closed && (t.Status == ledger.Proposed || t.Status == ledger.Awaiting)
}

// readFiles reads the files that the events name. That they are whole was found before; one that
// cannot be read is left out.
func (t *Transaction) readFiles(dir fs.FS, log *ledger.Log) {
	if canon.IsHex64(t.PatchID) {
		raw, err := fs.ReadFile(dir, ledger.PatchFile(t.PatchID))
		if err == nil && canon.Sum(raw) != cmp.Or(t.Proposal.PatchRedactedSHA256, "sha256:"+t.PatchID) {
			err = errors.New("the stored patch does not hash to its patch_id")
		}
		if err != nil && t.Sound() {
			t.Findings = []history.Finding{{RuleID: "L4", Path: ledger.PatchFile(t.PatchID), Message: err.Error()}}
		} else if err == nil {
			t.Patch = raw
		}
	}
	for _, a := range ledger.Of[*ledger.ArtifactStored](log) {
		if a.Path != ledger.ArtifactFile(a.ArtifactID) {
			continue
		}
		raw, err := fs.ReadFile(dir, a.Path)
		if err != nil {
			continue
		}
		switch a.Kind {
		case ledger.KindAgain:
			var p ledger.Provenance
			if canon.UnmarshalDocument("it", raw, &p) == nil {
				t.Again = append(t.Again, p)
			}
		case ledger.KindRisks:
			if list, err := risk.Read(raw); err == nil {
				t.Risks = &list
			}
		case ledger.KindAdvice:
			if a, err := approval.ReadAdvice(dir, log, a); err == nil {
				t.advice = append(t.advice, a)
			}
		case approval.KindStatement, "command", "validation", ledger.KindFindings, forge.KindPosted, approval.KindStanding, approval.KindMerge, approval.KindDecision, "trace", "proposal":
			t.asides[a.Path] = raw
		}
	}
	if raw, err := fs.ReadFile(dir, ledger.ResultFile); err == nil {
		if res, err := ledger.ParseResult(raw); err == nil {
			t.Result = &res
		}
	}
}

// aside reads an artifact that is shown, nil where there is none.
func aside[T any](t Transaction, path string) *T {
	doc := new(T)
	if raw, ok := t.asides[path]; !ok || json.Unmarshal(raw, doc) != nil {
		return nil
	}
	return doc
}

// all are the payloads of one type, in order.
func all[P ledger.Payload](t Transaction) []P {
	var out []P
	for _, e := range t.events {
		if p, ok := e.payload.(P); ok {
			out = append(out, p)
		}
	}
	return out
}
