package ledger

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// The status of an item, and of a step of a plan (turn item schema 0.1). What
// became of a proposal stands in its transaction: the item is in progress until
// it is applied, and stays so where it never is.
const (
	ItemInProgress = "inProgress"
	ItemCompleted  = "completed"
	ItemFailed     = "failed"
	ItemCancelled  = "cancelled"
	StepPending    = "pending"
	StepSkipped    = "skipped"
)

// TurnItem is turn/item. Items upsert by (turn_id, item.id).
type TurnItem struct {
	TransactionID string `json:"transaction_id"`
	TurnID        string `json:"turn_id"`
	Item          Item   `json:"item"`
}

// An Item follows the turn item schema 0.1; which fields are set depends on its
// Type: "fileChange" has Changes, PatchID and Metadata, "turnDiff" has
// UnifiedDiff, "plan" has Steps.
type Item struct {
	ID          string       `json:"id"`
	Type        string       `json:"type"`
	Op          string       `json:"op,omitempty"`
	Status      string       `json:"status,omitempty"`
	Changes     []ItemChange `json:"changes,omitempty"`
	PatchID     string       `json:"patchId,omitempty"`
	UnifiedDiff string       `json:"unified_diff,omitempty"`
	Steps       []Step       `json:"steps,omitempty"`
	Metadata    *Proposal    `json:"metadata,omitempty"`
}

// A Step is one line of a "plan" item.
type Step struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"`
}

// An ItemChange is one file of a fileChange; From is the old path of a rename.
// UnifiedDiff is for display.
type ItemChange struct {
	Path        string `json:"path"`
	From        string `json:"from,omitempty"`
	Kind        string `json:"kind"`
	UnifiedDiff string `json:"unified_diff"`
}

// Follows reports whether the item is one of turn item schema 0.1, as far as the
// words that it may use go.
func (i Item) Follows() bool {
	if m := i.Metadata; m != nil && (m.Author != nil && (m.Kind != KindPatch || !m.Author.Valid()) || !m.claims() || CheckRequesters(m.RequestedBy) != nil) {
		return false
	}
	return i.ID != "" && i.Type != "" && isItemStatus(i.Status) && areSteps(i.Steps)
}

// isItemStatus reports whether an item may have the status; it need not have one.
func isItemStatus(s string) bool {
	return s == "" || slices.Contains([]string{ItemInProgress, ItemCompleted, ItemFailed, ItemCancelled}, s)
}

// areSteps reports whether each step has an id and a status of its own.
func areSteps(steps []Step) bool {
	return !slices.ContainsFunc(steps, func(s Step) bool {
		return s.ID == "" || !slices.Contains([]string{StepPending, ItemInProgress, ItemCompleted, StepSkipped, ItemFailed}, s.Status)
	})
}

// A Proposal is a fileChange's metadata, and with its last three fields filled
// in it is transaction.json's pointers.proposal (seed: review_apply_resume_v0).
// Hashes are "sha256:…" over raw bytes; null stands for a file that is absent.
type Proposal struct {
	Kind             string             `json:"kind"`
	WorkspaceRoot    string             `json:"workspace_root"`
	TargetFiles      []string           `json:"target_files"`
	Needle           string             `json:"needle"`
	BaseSHA256       map[string]*string `json:"base_sha256_by_path"`
	AfterSHA256      map[string]*string `json:"after_sha256_by_path"`
	PatchID          string             `json:"patch_id"`
	PatchFingerprint string             `json:"patch_fingerprint"`
	ContainsSecrets  bool               `json:"contains_secret_introductions"`
	BaseCommit       string             `json:"base_commit"`
	PolicySHA256     string             `json:"policy_sha256"`
	Applied          bool               `json:"applied"`

	// Only where patches/<patch_id>.diff is not the patch but the patch without
	// its secrets: the hash of what is stored. The second is the hash of the
	// patch as patches/<patch_id>.diff.age has it, encrypted, if it is there.
	PatchRedactedSHA256 string `json:"patch_redacted_sha256,omitempty"`
	PatchSealedSHA256   string `json:"patch_sealed_sha256,omitempty"`

	ProposalTurnID string `json:"proposal_turn_id,omitempty"`
	ProposalItemID string `json:"proposal_item_id,omitempty"`

	// Only where the change comes from a patch.json or a Proposal. Checks is the
	// path of the artifact with what else the Proposal asks for.
	SourceProposalID   string `json:"source_proposal_id,omitempty"`
	SourceProposalHash string `json:"source_proposal_hash,omitempty"`
	Confidence         *int   `json:"confidence,omitempty"`
	RequiresApproval   *bool  `json:"requires_approval,omitempty"`
	Checks             string `json:"checks,omitempty"`

	// Only for a change of a pull request: where that is, and its head when the
	// change was reviewed. Authors are those who wrote the change where the pull
	// request's own diff is the patch.
	Repository  *Repository `json:"repository,omitempty"`
	PullRequest int         `json:"pull_request,omitempty"`
	HeadCommit  string      `json:"head_commit,omitempty"`
	Authors     []Actor     `json:"authors,omitempty"`
	// AuthorsComplete says that all of the pull request's commits are of accounts that Authors, or the proposer, are.
	AuthorsComplete bool `json:"authors_complete,omitempty"`

	// Author is whom the mail or commit names that the patch came in, if it names one.
	Author *Author `json:"author,omitempty"`

	// Message and Declared are what the commit of the change says in the proposer's words, beside the summary: a
	// text of several lines, and the trailers that it ended with, "Key: value" each. Nobody has verified them. They
	// are not there where a change brings no more than the summary.
	Message  string   `json:"message,omitempty"`
	Declared []string `json:"declared,omitempty"`

	// RequestedBy are those who are known to have asked for the change. Nothing is loosened where nobody is.
	RequestedBy []Requester `json:"requested_by,omitempty"`

	// Supersedes are the transactions whose place this one took: open proposals
	// of the same proposer, on the same pull request, of some of the same files.
	Supersedes []string `json:"supersedes,omitempty"`
}

// An Author is whom a patch says that it is by. Nobody has verified it: it is a line of
// a text that anybody can write, and nothing is decided by it.
type Author struct {
	Name  string `json:"name"`
	Email string `json:"email"`
	Date  string `json:"date"` // RFC 3339, in seconds, in the author's own zone
}

// Valid reports whether a commit can have the author: a name in one line of at most 100
// characters that all show, an address in ASCII, and a time from 1970 to 2099.
func (a Author) Valid() bool {
	at, err := time.Parse(time.RFC3339, a.Date)
	_, offset := at.Zone()
	return err == nil && at.Format(time.RFC3339) == a.Date && at.Unix() >= 0 && at.Year() < 2100 && max(offset, -offset) <= 14*60*60 &&
		a.Name != "" && OneLine(a.Name, 100) == a.Name && !strings.ContainsAny(a.Name, `<>"\`) &&
		len(a.Email) <= 200 && addressForm().MatchString(a.Email)
}

// addressForm is an address as forges have them, with the brackets of a bot's.
var addressForm = canon.Regexp(`^[A-Za-z0-9.!#$%&*+/=?^_{|}~\[\]-]+@[A-Za-z0-9.-]+$`)

// A Repository is one on a forge. ID is stable where Name, "owner/name", may
// change.
type Repository struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Source is the ApplyResult's patch_source: the document that the change comes
// from, else ids derived from the patch_id.
func (p Proposal) Source() PatchSource {
	if p.SourceProposalID != "" {
		return PatchSource{ProposalID: p.SourceProposalID, ProposalHash: p.SourceProposalHash}
	}
	return PatchSource{ProposalID: "prop_" + p.PatchID[:min(16, len(p.PatchID))], ProposalHash: "sha256:" + p.PatchID}
}

// The types of an item that the rules look into (turn item schema 0.1).
const (
	FileChange       = "fileChange"
	CommandExecution = "commandExecution"
)

// CommandItem is turn/item for a command that was run: the events have one type,
// what an item holds goes by its own.
type CommandItem struct {
	TransactionID string  `json:"transaction_id"`
	TurnID        string  `json:"turn_id"`
	Item          Command `json:"item"`
}

// A Command is an item of type "commandExecution". CWD is inside the tree that
// it ran on; AggregatedOutput is for display, the artifact has more.
type Command struct {
	ID               string          `json:"id"`
	Type             string          `json:"type"`
	Op               string          `json:"op"`
	Status           string          `json:"status"`
	Command          string          `json:"command"`
	CWD              string          `json:"cwd"`
	AggregatedOutput string          `json:"aggregatedOutput"`
	ExitCode         int             `json:"exitCode"`
	DurationMS       int             `json:"durationMs"`
	Metadata         CommandMetadata `json:"metadata"`
}

// Follows reports whether the item is one of turn item schema 0.1. A command is
// recorded once it has ended, and has an artifact then (I12).
func (c Command) follows() bool {
	return c.ID != "" && (c.Status == ItemCompleted || c.Status == ItemFailed)
}

// CommandMetadata names the evidence and says what the outcome decided. Tree is
// the Git tree that the command ran on; When is "before" or "after" the apply.
type CommandMetadata struct {
	Artifact ArtifactRef `json:"artifact"`
	Required bool        `json:"required"`
	Tree     string      `json:"tree"`
	When     string      `json:"when"`
}

// An ArtifactRef names an artifact of the same transaction.
type ArtifactRef struct {
	ArtifactID string `json:"artifact_id"`
	Path       string `json:"path"`
}

// What an item that is the proposer's word was taken from: nothing here ran it, or saw it.
// SourceTrace is a log of what an agent did, SourceClaimed a record that only says who wrote
// which lines, or which lines of a log could not be read.
const (
	SourceTrace   = "trace"
	SourceClaimed = "claimed"
)

// traceTypes are the types of item that a trace can tell of.
var traceTypes = []string{"agentMessage", "reasoning", "plan", "mcpToolCall", CommandExecution}

// TraceItem is turn/item for one step of what a proposer says it did before it
// proposed.
type TraceItem struct {
	TransactionID string    `json:"transaction_id"`
	TurnID        string    `json:"turn_id"`
	Item          TraceStep `json:"item"`
}

// A TraceStep is an item whose fields go by its Type: "agentMessage" has
// Content, "reasoning" Summary, "plan" Steps, "mcpToolCall" Server and Tool,
// "commandExecution" Command and what follows it. The pointers are to what an
// item of its type must have, also when it is empty. Texts are for display and
// cut; the artifact has all.
type TraceStep struct {
	ID               string        `json:"id"`
	Type             string        `json:"type"`
	Op               string        `json:"op"`
	Status           string        `json:"status,omitempty"`
	Content          *string       `json:"content,omitempty"`
	Summary          *string       `json:"summary,omitempty"`
	Steps            []Step        `json:"steps,omitempty"`
	Server           *string       `json:"server,omitempty"`
	Tool             *string       `json:"tool,omitempty"`
	Command          *string       `json:"command,omitempty"`
	CWD              string        `json:"cwd,omitempty"`
	AggregatedOutput string        `json:"aggregatedOutput,omitempty"`
	ExitCode         *int          `json:"exitCode,omitempty"`
	DurationMS       *int          `json:"durationMs,omitempty"`
	Metadata         TraceMetadata `json:"metadata"`
}

// TraceMetadata says where a step stands in the trace: Step counts from 1, Steps
// is how many there are. Source is SourceTrace or SourceClaimed. Paths are the files that
// the call changes, the first of them; OutputBytes is the size of an output that the trace
// has only the beginning of.
type TraceMetadata struct {
	Artifact    ArtifactRef `json:"artifact"`
	Source      string      `json:"source"`
	Step        int         `json:"step"`
	Steps       int         `json:"steps"`
	Paths       []string    `json:"paths,omitempty"`
	OutputBytes int         `json:"output_bytes,omitempty"`
	StartedAt   string      `json:"started_at,omitempty"`
	EndedAt     string      `json:"ended_at,omitempty"`
}

// Follows reports whether the item is one of turn item schema 0.1.
func (i TraceStep) follows() bool {
	has := map[string]bool{
		"agentMessage": i.Content != nil, "reasoning": i.Summary != nil, "plan": len(i.Steps) > 0,
		"mcpToolCall": i.Server != nil && i.Tool != nil, CommandExecution: i.Command != nil && i.Status != "",
	}
	return i.ID != "" && has[i.Type] && isItemStatus(i.Status) && areSteps(i.Steps)
}

// isTrace reports whether an item may be one of a trace. A claim is words, never a call.
func (i TraceStep) isTrace() bool {
	switch i.Metadata.Source {
	case SourceTrace:
		return slices.Contains(traceTypes, i.Type)
	case SourceClaimed:
		return i.Type == "agentMessage"
	}
	return false
}
