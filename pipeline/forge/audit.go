package forge

import (
	"context"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// An Auditor is what an audit asks that compares a record with what the forge tells now
// (docs/online.md). Like every method of this package, these answer in full or fail.
type Auditor interface {
	// Statements and Access are Reader's.
	Statements(ctx context.Context, number int) ([]approval.Statement, error)
	Access(ctx context.Context, who ledger.Actor) (approval.Access, error)
	// DefaultBranch is Merger's, CheckRuns is Board's, Open is Finder's.
	DefaultBranch(ctx context.Context) (Side, error)
	CheckRuns(ctx context.Context, commit, name string) ([]CheckRun, error)
	Open(ctx context.Context) ([]Open, error)
	// Viewer is Forge's.
	Viewer(ctx context.Context) (ledger.Actor, error)
	// Ends tells what became of pull requests: of the first of the numbers, and of those
	// after it that the same request tells of.
	Ends(ctx context.Context, numbers []int) (map[int]End, error)
	// Account returns the account that has a number, with the login that it has now.
	// ErrNotFound also is of one that is hidden from the token.
	Account(ctx context.Context, id string) (ledger.Actor, error)
	// Required tells which checks a branch demands before something is merged into it.
	Required(ctx context.Context, branch string) (Required, error)
}

// An End is what became of a pull request, of a repository by its number: its state, and
// the commit that its head is at or, once it is merged, was.
type End struct{ Repository, State, Head string }

// Required are the checks that a branch demands. All that are listed are demanded;
// Unread says in words what the forge did not tell, "" for nothing: there may be more then.
type Required struct {
	Checks []RequiredCheck
	Unread string
}

// A RequiredCheck is one that a branch demands. AppID is the number of the app whose
// check alone counts, 0 for anybody's.
type RequiredCheck struct {
	Name  string
	AppID int64
}
