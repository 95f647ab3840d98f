package forge

import (
	"context"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Issues are where this program tells people about a repository as a whole. A forge need
// not have them; the promises are those of the package.
type Issues interface {
	// Viewer and DefaultBranch are those of Forge, UpsertComment is Board's, by the number
	// of an issue.
	Viewer(ctx context.Context) (ledger.Actor, error)
	DefaultBranch(ctx context.Context) (Side, error)
	UpsertComment(ctx context.Context, number int, id, body string) (Posted, error)

	// OpenIssues lists the issues that are open, and no pull requests, the oldest first.
	OpenIssues(ctx context.Context) ([]Issue, error)
	// ClosedIssues lists those that are closed, of the hundred issues and pull requests
	// that something changed of last, the latest first.
	ClosedIssues(ctx context.Context) ([]Issue, error)
	// CreateIssue opens an issue. It is never asked for twice on a guess.
	CreateIssue(ctx context.Context, title, body string) (Issue, error)
	// UpdateIssue gives an issue the title, the body and the state of this one.
	UpdateIssue(ctx context.Context, issue Issue) error
}

// An Issue is one as the forge has it. Title is one line of plain text, Body Markdown of at
// most 65,536 characters.
type Issue struct {
	Number int
	Author ledger.Actor
	Title  string
	Body   string
	Open   bool
	URL    string
}
