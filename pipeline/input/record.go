package input

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Patch is what a change comes to on a base commit, as a review records it.
type Patch struct {
	Set    patch.Patchset
	ID     string // patch_id
	Base   string
	Stored []byte // the canonical bytes without secrets
	Sealed []byte // the canonical bytes, encrypted; nil where they are not
	// ContainsSecrets says that the patch adds what looks like secrets.
	ContainsSecrets bool
}

// Redacted is the hash of what is stored of the patch where that is not the
// patch, else "".
func (p Patch) Redacted() string {
	if sum := canon.Sum(p.Stored); sum != "sha256:"+p.ID {
		return sum
	}
	return ""
}

// Subject says in a line what the patch changes, with the proposer's words.
func (p Patch) Subject(summary string) string {
	first := path.Base(p.Set.Changes[0].Path)
	s := ledger.Plural(len(p.Set.Changes), "change", "changes") + " to " + first
	if len(p.Set.Changes) > 1 {
		s = ledger.Plural(len(p.Set.Changes), "file", "files") + ", " + first + " first"
	}
	if summary != "" {
		s += ": " + summary
	}
	return s
}

// Provenance says where a proposal came from, and who proposed it with which
// program.
func (in Change) Provenance(p Patch, proposer ledger.Actor, tool string) ledger.Provenance {
	from := ledger.Provenance{
		Schema: ledger.ProposalSchema, Tool: tool, Proposer: proposer,
		Input: ledger.Input{Kind: in.Kind, Format: in.Format, Via: in.Via, Bytes: len(in.Raw)}, BaseCommit: p.Base, PatchID: p.ID,
	}
	from.BaseSHA256, from.AfterSHA256 = p.Set.Hashes()
	if p.Redacted() == "" { // the hash of a weak secret's surroundings gives it away (T49)
		from.Input.SHA256 = canon.Sum(in.Raw)
	}
	return from
}

// Claims are the message and the trailers that a change comes with, without secrets, as a commit can
// have them; of a message that says no more than the summary, "". The message of a change without one is
// what the agent said last in the log of its session. clean takes secrets out of a text.
func (in Change) Claims(clean func(string) string) (text string, declared []string) {
	if in.Kind == KindPullRequest {
		return "", nil // whose commits are there
	}
	given := in.Messages
	if last := lastMessage(in.Trace); len(given) == 0 && in.TraceFormat != "" && last != "" {
		given = []string{last}
	}
	messages := make([]string, len(given))
	for i, m := range given {
		messages[i] = clean(writing.EscapeBytes(m))
	}
	if text, declared = escape.ReadMessages(messages...); len(declared) == 0 && text == escape.MessageLine(in.Summary) {
		text = ""
	}
	return text, declared
}

// lastMessage is the last thing that an agent said, of the steps of its session.
func lastMessage(steps []any) string {
	for _, step := range slices.Backward(steps) {
		if object, _ := step.(map[string]any); stepType(object) == stepMessage {
			return said(object, "content")
		}
	}
	return ""
}

// itemMessages are the messages of a change that an item of gh-aw asks for: its own title and text, if
// it has one, above what the commits declare, else those of the commits.
func itemMessages(item map[string]any, commits []string) []string {
	body := said(item, "body")
	if body == "" {
		return commits
	}
	_, declared := escape.ReadMessages(commits...)
	return []string{said(item, "title") + "\n\n" + body + "\n\n" + strings.Join(declared, "\n")}
}

// FileChange is the item that proposes the patch under a Policy.
func (in Change) FileChange(p Patch, rules policy.Policy) ledger.Item {
	before, after := p.Set.Hashes()
	meta := &ledger.Proposal{
		Kind: in.Kind, WorkspaceRoot: ".", BaseSHA256: before, AfterSHA256: after,
		PatchID: p.ID, PatchFingerprint: "patchset:" + p.ID, BaseCommit: p.Base, PolicySHA256: rules.Sum(),
		Needle: in.Needle, ContainsSecrets: p.ContainsSecrets, PatchRedactedSHA256: p.Redacted(), Author: in.Author,
	}
	if p.Sealed != nil {
		meta.PatchSealedSHA256 = canon.Sum(p.Sealed)
	}
	if in.For != nil {
		repository := in.For.Repository
		meta.Repository, meta.PullRequest, meta.HeadCommit = &repository, in.For.Number, in.For.Head.Commit
		if in.Kind == KindPullRequest {
			meta.Authors, meta.AuthorsComplete = in.For.Committers, !in.For.Strangers
		}
	}
	if in.Source != nil {
		meta.SourceProposalID, meta.SourceProposalHash = in.Source.ProposalID, in.Source.ProposalHash
	}
	if in.Proposal != nil {
		meta.Confidence, meta.RequiresApproval = &in.Proposal.Confidence, &in.Proposal.RequiresApproval
	}
	item := ledger.Item{ID: "item_1", Type: ledger.FileChange, Op: "upsert", Status: ledger.ItemInProgress, PatchID: p.ID, Metadata: meta}
	left := maxShown // for all files together
	sections := sections(p.Stored)
	for i, c := range p.Set.Changes {
		diff := shown(sections[i], left)
		left = max(0, left-len(diff))
		item.Changes = append(item.Changes, ledger.ItemChange{Path: c.Path, From: c.From, Kind: string(c.Kind), UnifiedDiff: diff})
	}
	for _, f := range p.Set.Files() {
		meta.TargetFiles = append(meta.TargetFiles, f.Path)
	}
	return item
}

// Diff is the item that shows the whole patch.
func (p Patch) Diff() ledger.Item {
	return ledger.Item{ID: "item_2", Type: "turnDiff", Op: "final", UnifiedDiff: shown(p.Stored, maxShown)}
}

// Plan is the item that shows a Proposal's actions and tests to the reviewer; clean
// takes secrets out of a text.
func (in Change) Plan(clean func(string) string) ledger.Item {
	item := ledger.Item{ID: "item_3", Type: "plan", Op: "upsert", Status: ledger.ItemInProgress}
	add := func(id, title string) {
		item.Steps = append(item.Steps, ledger.Step{ID: id, Title: ledger.OneLine(clean(title), 200), Status: ledger.StepPending})
	}
	for _, a := range in.Proposal.Actions {
		add(a.ID, a.Type+" "+a.Target+": "+a.Description)
	}
	for _, t := range in.Proposal.AcceptanceTests {
		add(t.ID, t.Type+" "+t.Target+": "+t.Name)
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
	text := writing.EscapeBytes(string(diff))
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "\n… cut here; the whole is in patches/\n"
}

// Named is the requester that somebody names: by a login, or by the address of a Git identity.
func Named(name, source string) ledger.Requester {
	who := ledger.Actor{Kind: "user", Login: strings.TrimPrefix(name, "@")}
	if strings.Contains(who.Login, "@") {
		who.ID = "local:" + strings.ToLower(who.Login)
	}
	return ledger.Requester{Actor: who, Source: source}
}

// NamedAll are those that somebody names, or an error if that is nobody, or too many.
func NamedAll(names []string, source string) (all []ledger.Requester, err error) {
	for _, name := range names {
		all = append(all, Named(name, source))
	}
	all = ledger.SortRequesters(all)
	if err = ledger.CheckRequesters(all); err == nil && len(all) > ledger.MaxRequesters {
		err = fmt.Errorf("names %d people, more than %d, as who asked for it", len(all), ledger.MaxRequesters)
	}
	return all, err
}
