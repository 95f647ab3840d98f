package approval

import "github.com/countersign-dev/countersign/pipeline/ledger"

// The kinds of statement, which are those of a decision's source.
const (
	KindReview        = "review"
	KindReviewComment = "review_comment"
	KindIssueComment  = "issue_comment"
)

// The states of a review that matter here (GitHub's REST API, "Reviews").
const (
	ReviewApproved         = "APPROVED"
	ReviewChangesRequested = "CHANGES_REQUESTED"
	ReviewDismissed        = "DISMISSED"
)

// A Statement is one review or comment of a pull request, as the forge told it.
type Statement struct {
	Kind      string       `json:"kind"`
	ID        string       `json:"id"` // the forge's number
	URL       string       `json:"url"`
	Author    ledger.Actor `json:"author"` // Kind "user" for a human account, else "bot"; ID is the account's number
	Body      string       `json:"body"`
	Earlier   []string     `json:"earlier,omitempty"` // the texts that it had before, oldest first
	Edited    bool         `json:"edited"`
	Gone      bool         `json:"gone,omitempty"`     // an event told it, and the forge has it no more
	App       string       `json:"app,omitempty"`      // the app that posted it for its author
	Email     bool         `json:"email,omitempty"`    // it came by e-mail
	Hidden    bool         `json:"hidden,omitempty"`   // somebody hid ("minimized") it
	State     string       `json:"state,omitempty"`    // of a review
	Commit    string       `json:"commit,omitempty"`   // that a review, or a comment of one, was made on
	ReplyTo   string       `json:"reply_to,omitempty"` // the id of the first comment of a review comment's thread
	CreatedAt string       `json:"created_at"`         // RFC 3339
}

// Posted is a comment that this program made. BodySHA256 is of the body as the
// forge returned it; a thread whose first comment has another body, or was
// edited, binds nobody.
type Posted struct {
	Kind       string `json:"kind"` // KindReviewComment, or KindIssueComment for the one that is updated
	ID         string `json:"id"`
	URL        string `json:"url"`
	BodySHA256 string `json:"body_sha256"`
}

// Access is what an account may do in a repository. Permission is one of
// policy.Permission's words, custom roles reduced to the one they are based on,
// "none" for an account that is no collaborator; Role is the forge's own word.
type Access struct {
	Permission string `json:"permission"`
	Role       string `json:"role"`
}
