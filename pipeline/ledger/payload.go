package ledger

import "github.com/countersign-dev/countersign/pipeline/result"

// An Actor is who did something. Kind is "user" for a person at a terminal,
// "bot" for an account that is never human. ID is stable where Login may change.
type Actor struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Login string `json:"login"`
}

// SandboxPolicy says what a transaction's effects may reach.
type SandboxPolicy struct {
	Type          string   `json:"type"`
	WritableRoots []string `json:"writable_roots"`
	NetworkAccess bool     `json:"network_access"`
}

// ApprovalPolicy is the part of the Policy that decided what to ask for, as it
// stood at review.
type ApprovalPolicy struct {
	Required int  `json:"required"`
	Local    bool `json:"local"`
}

// Meta is tx/meta, always the first event. BaseCommit is the commit whose tree
// is patched, PolicyCommit the one the Policy was read from.
type Meta struct {
	TransactionID  string         `json:"transaction_id"`
	WorkspaceRoots []string       `json:"workspace_roots"`
	CWD            string         `json:"cwd"`
	SandboxPolicy  SandboxPolicy  `json:"sandbox_policy"`
	ApprovalPolicy ApprovalPolicy `json:"approval_policy"`
	Proposer       Actor          `json:"proposer"`
	BaseCommit     string         `json:"base_commit"`
	PolicyCommit   string         `json:"policy_commit"`
	Summary        string         `json:"summary"`
}

// StatusChange is tx/status.
type StatusChange struct {
	TransactionID string `json:"transaction_id"`
	From          Status `json:"from"`
	To            Status `json:"to"`
	Reason        string `json:"reason"`
}

// TurnStart is turn/start. Mode is "review" or "apply".
type TurnStart struct {
	TransactionID string `json:"transaction_id"`
	TurnID        string `json:"turn_id"`
	Input         string `json:"input"`
	Mode          string `json:"mode"`
}

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

	// Supersedes are the transactions whose place this one took: open proposals
	// of the same proposer, on the same pull request, of some of the same files.
	Supersedes []string `json:"supersedes,omitempty"`
}

// A Repository is one on a forge. ID is stable where Name, "owner/name", may
// change.
type Repository struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Source is the ApplyResult's patch_source: the document that the change comes
// from, else ids derived from the patch_id.
func (p Proposal) Source() result.Source {
	if p.SourceProposalID != "" {
		return result.Source{ProposalID: p.SourceProposalID, ProposalHash: p.SourceProposalHash}
	}
	return result.Source{ProposalID: "prop_" + p.PatchID[:min(16, len(p.PatchID))], ProposalHash: "sha256:" + p.PatchID}
}

// ArtifactStored is artifact/stored. ArtifactID is the bare hex SHA-256 of the
// stored bytes, StoredSHA256 the same as a "sha256:…" hash, Path is inside the
// transaction directory.
type ArtifactStored struct {
	TransactionID string `json:"transaction_id"`
	ArtifactID    string `json:"artifact_id"`
	Kind          string `json:"kind"`
	Path          string `json:"path"`
	ContentType   string `json:"content_type"`
	Redacted      bool   `json:"redacted"`
	StoredSHA256  string `json:"stored_sha256"`
}

// A PolicyRef says which Policy a stage went by: the commit that it was read
// from, and the "sha256:…" of its canonical JSON.
type PolicyRef struct {
	Commit string `json:"commit"`
	SHA256 string `json:"sha256"`
}

// ApprovalRequest is approval/request: one human is asked for one decision.
type ApprovalRequest struct {
	TransactionID     string    `json:"transaction_id"`
	TurnID            string    `json:"turn_id"`
	ApprovalRequestID string    `json:"approval_request_id"`
	ItemID            string    `json:"item_id"`
	Kind              string    `json:"kind"`
	Fingerprint       string    `json:"fingerprint"`
	Prompt            string    `json:"prompt"`
	Policy            PolicyRef `json:"policy"`
}

// A Decision is what a human said.
type Decision string

// The decisions.
const (
	Approve Decision = "approve"
	Deny    Decision = "deny"
)

// ApprovalDecision is approval/decision: the answer to one request.
type ApprovalDecision struct {
	TransactionID     string    `json:"transaction_id"`
	ApprovalRequestID string    `json:"approval_request_id"`
	Decision          Decision  `json:"decision"`
	Fingerprint       string    `json:"fingerprint"`
	Reason            string    `json:"reason,omitempty"`
	Source            Source    `json:"source"`
	Policy            PolicyRef `json:"policy"`
}

// A Source is where a decision was read. Kind is "local" for one taken with the
// command line, "review", "review_comment" or "issue_comment" for one of a pull
// request. Commit is HEAD, or the pull request's head, at that time, or the one
// that a review is of. Evidence is the path of the artifact that has the text
// and the answer of the forge about its author, "" for a local one.
type Source struct {
	Kind       string `json:"kind"`
	ID         string `json:"id"`
	URL        string `json:"url"`
	Author     Actor  `json:"author"`
	Permission string `json:"permission"`
	Commit     string `json:"commit"`
	BodySHA256 string `json:"body_sha256"`
	CreatedAt  string `json:"created_at"`
	Evidence   string `json:"evidence,omitempty"`
}

// An Approved is one fingerprint that so many people had to approve, and had.
type Approved struct {
	Kind        string `json:"kind"`
	Fingerprint string `json:"fingerprint"`
	Required    int    `json:"required"`
}

// ApplyStart is apply/start, the intent: recorded before anything is written.
// Approvals are what Policy asks for and what has been given.
type ApplyStart struct {
	TransactionID string     `json:"transaction_id"`
	ApplyID       string     `json:"apply_id"`
	PatchIDs      []string   `json:"patch_ids"`
	Files         []string   `json:"files"`
	Target        string     `json:"target"`
	BaseCommit    string     `json:"base_commit"`
	Approvals     []Approved `json:"approvals"`
	Policy        PolicyRef  `json:"policy"`
}

// ApplyComplete is apply/complete. ApplyArtifact is the path of the artifact
// that holds the ApplyResult; the commits are empty for a working tree.
type ApplyComplete struct {
	TransactionID string `json:"transaction_id"`
	ApplyID       string `json:"apply_id"`
	Success       bool   `json:"success"`
	Outcome       string `json:"outcome"`
	ApplyArtifact string `json:"apply_artifact"`
	Target        string `json:"target"`
	CommitBefore  string `json:"commit_before"`
	CommitAfter   string `json:"commit_after"`
}

// ValidateStart is validate/start.
type ValidateStart struct {
	TransactionID string `json:"transaction_id"`
	ValidateID    string `json:"validate_id"`
}

// ValidateComplete is validate/complete.
type ValidateComplete struct {
	TransactionID string `json:"transaction_id"`
	ValidateID    string `json:"validate_id"`
	Success       bool   `json:"success"`
}

// Close is tx/close, always the last event.
type Close struct {
	TransactionID string `json:"transaction_id"`
	Status        Status `json:"status"`
}

// Type is tx/meta.
func (*Meta) Type() Type { return TypeMeta }

// Type is tx/status.
func (*StatusChange) Type() Type { return TypeStatus }

// Type is turn/start.
func (*TurnStart) Type() Type { return TypeTurnStart }

// Type is turn/item.
func (*TurnItem) Type() Type { return TypeTurnItem }

// Type is artifact/stored.
func (*ArtifactStored) Type() Type { return TypeArtifact }

// Type is approval/request.
func (*ApprovalRequest) Type() Type { return TypeRequest }

// Type is approval/decision.
func (*ApprovalDecision) Type() Type { return TypeDecision }

// Type is apply/start.
func (*ApplyStart) Type() Type { return TypeApplyStart }

// Type is apply/complete.
func (*ApplyComplete) Type() Type { return TypeApplyComplete }

// Type is validate/start.
func (*ValidateStart) Type() Type { return TypeValidateStart }

// Type is validate/complete.
func (*ValidateComplete) Type() Type { return TypeValidateComplete }

// Type is tx/close.
func (*Close) Type() Type { return TypeClose }

// transactionID is the transaction that a payload names, "" for a type that is
// none of ours.
func transactionID(p Payload) string {
	switch p := p.(type) {
	case *Meta:
		return p.TransactionID
	case *StatusChange:
		return p.TransactionID
	case *TurnStart:
		return p.TransactionID
	case *TurnItem:
		return p.TransactionID
	case *CommandItem:
		return p.TransactionID
	case *TraceItem:
		return p.TransactionID
	case *ArtifactStored:
		return p.TransactionID
	case *ApprovalRequest:
		return p.TransactionID
	case *ApprovalDecision:
		return p.TransactionID
	case *ApplyStart:
		return p.TransactionID
	case *ApplyComplete:
		return p.TransactionID
	case *ValidateStart:
		return p.TransactionID
	case *ValidateComplete:
		return p.TransactionID
	case *Close:
		return p.TransactionID
	}
	return ""
}
