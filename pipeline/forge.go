package pipeline

import (
	"context"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// A Forge is where pull requests live. Each method answers in full or fails:
// half of the comments, or an account that could not be asked about, is an error.
type Forge interface {
	// PullRequest tells what a pull request is now.
	PullRequest(ctx context.Context, number int) (PullRequest, error)
	// Statements returns all reviews, review comments and comments of a pull
	// request, in no certain order.
	Statements(ctx context.Context, number int) ([]approval.Statement, error)
	// Access asks what an account may do in the repository now. It fails if the
	// account of that login has another id than who.
	Access(ctx context.Context, who ledger.Actor) (approval.Access, error)
	// Member reports whether an account is an active member of "org/team".
	Member(ctx context.Context, team string, who ledger.Actor) (bool, error)
}

// Code brings what pull requests are made of into the repository, and back.
type Code interface {
	// Head fetches the head of a pull request, with all that it reaches, and
	// returns its commit.
	Head(ctx context.Context, number int) (string, error)
	// MergeBase is the best common ancestor of a branch of the base repository,
	// as it is there now, and a commit.
	MergeBase(ctx context.Context, branch, commit string) (string, error)
	// Fetch brings a ref of the base repository. It fails unless the repository
	// then has the commit.
	Fetch(ctx context.Context, ref, commit string) error
	// Diff is what makes the second commit's tree of the first one's; "" for the
	// first is the second's first parent.
	Diff(ctx context.Context, from, to string) (patch.Patchset, error)
	// Refs are those of the repository that a side of a pull request is in.
	Refs(ctx context.Context, s Side) (code.Refs, error)
}

// The states of a pull request.
const (
	PullRequestOpen   = "open"
	PullRequestClosed = "closed"
	PullRequestMerged = "merged"
)

// A PullRequest is one as the forge told it.
type PullRequest struct {
	Repository  ledger.Repository `json:"repository"` // that it is in
	Number      int               `json:"number"`
	State       string            `json:"state"`
	Draft       bool              `json:"draft"`
	Title       string            `json:"title"`
	Author      ledger.Actor      `json:"author"`
	Head        Side              `json:"head"`
	Base        Side              `json:"base"`
	MergeCommit string            `json:"merge_commit,omitempty"` // once merged
	// MaintainerCanModify says whether those with write access to the base may
	// push to the head of a fork.
	MaintainerCanModify bool `json:"maintainer_can_modify"`
	// Committers are the accounts that wrote or committed its commits;
	// Strangers tells that some commit is of no account.
	Committers []ledger.Actor `json:"committers"`
	Strangers  bool           `json:"strangers"`
	// Paths are the files of its diff, the first few thousand; a comment on a
	// file needs one of them.
	Paths []string `json:"paths"`
}

// A Side is the head or the base of a pull request. Repository is nil where the
// head's was deleted. Owner is "User" or "Organization".
type Side struct {
	Repository *ledger.Repository `json:"repository"`
	Owner      string             `json:"owner"`
	Branch     string             `json:"branch"` // short name
	Commit     string             `json:"commit"`
	CloneURL   string             `json:"clone_url"`
	Protected  bool               `json:"protected"` // only known of a head in the same repository
}

// Fork reports whether the head is in another repository than the base.
func (p PullRequest) Fork() bool {
	return p.Head.Repository == nil || p.Base.Repository == nil || p.Head.Repository.ID != p.Base.Repository.ID
}
