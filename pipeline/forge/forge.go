// Package forge says what this program needs of the place where pull requests
// live. Whoever writes it for another forge than GitHub implements Forge; this
// file is all there is to read.
//
// A PullReader reads what was said on a pull request about a transaction, and asks
// the forge what those who said it may do. A stage reads a pull request once,
// however often the ledger moves meanwhile. What cannot be read in full is an
// error, so that nothing of it counts (T61). An Event is what started the workflow that
// this runs in, and says whether that is trusted.
//
// Three promises hold for every method of a Forge. It answers in full or fails: half of the
// comments, a page that is missing or an account that could not be asked about is
// an error, as nothing that was not read may count as an approval. What is
// identified by a number is compared by that and never by a name, which can go to
// somebody else. An error tells what was being done in one line, has no secrets,
// and matches one of the errors below with errors.Is where it is one of these.
package forge

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// The errors that are told apart.
var (
	ErrPermission = errors.New("the token is not allowed to do that")
	ErrNotFound   = errors.New("it does not exist, or the token cannot see it")
	// ErrMoved is of a pull request that was not merged, as its head is another
	// commit than the one that was to be merged.
	ErrMoved = errors.New("the head of the pull request has moved")
	// ErrRefused is of what the forge does not do as things are, such as a merge
	// before another check has passed.
	ErrRefused = errors.New("the forge does not do that now")
	// ErrSpent is of a request that was not sent, or not answered, as there were as many
	// as the caller allows, or as the forge does.
	ErrSpent = errors.New("no more requests can be sent now")
)

// A Reader is what the gate asks before it counts anybody's word.
type Reader interface {
	// PullRequest tells what a pull request is now.
	PullRequest(ctx context.Context, number int) (PullRequest, error)
	// Statements returns all reviews, review comments and comments of a pull
	// request, in no certain order, with the texts that they had before.
	Statements(ctx context.Context, number int) ([]approval.Statement, error)
	// Access asks what an account may do in the repository now. It fails if the
	// account of that login has another id than who.
	Access(ctx context.Context, who ledger.Actor) (approval.Access, error)
	// Member reports whether an account is an active member of "org/team". A team
	// that cannot be read is an error, not a no.
	Member(ctx context.Context, team string, who ledger.Actor) (bool, error)
	// SigningKeys returns the SSH keys that an account has registered to sign with.
	// It fails if the account of that login has another id than who.
	SigningKeys(ctx context.Context, who ledger.Actor) ([]approval.Registered, error)
}

// A Forge is what it takes to settle pull requests.
type Forge interface {
	Reader
	Finder
	Board
	Runs
	Merger

	// ReviewComment tells a comment on a pull request's diff as it stands now. A forge
	// that does not tell which lines of which commit it is on fails with ErrRefused.
	ReviewComment(ctx context.Context, id int64) (ReviewComment, error)
	// Viewer is the account of the token, under the id and login by which it is
	// the author of what this program writes.
	Viewer(ctx context.Context) (ledger.Actor, error)
	// RunsBaseWorkflows names the server, with its version, if that takes the
	// file of a workflow about a pull request itself from the pull request's base
	// branch, which anybody who can push there may have changed. It returns "" for
	// one that takes the default branch's.
	RunsBaseWorkflows(ctx context.Context) (string, error)
}

// A Finder lists the pull requests of the repository, those from forks too: the open
// ones, unless it says otherwise.
type Finder interface {
	Open(ctx context.Context) ([]Open, error)
	// PullRequestsAt lists those whose head is a commit.
	PullRequestsAt(ctx context.Context, commit string) ([]Open, error)
	// PullRequestsOf returns the numbers of those with this head.
	PullRequestsOf(ctx context.Context, head Head) ([]int, error)
	// PullRequestOf returns the number of the one with this head, and 0 if there
	// is none. Several are an error.
	PullRequestOf(ctx context.Context, head Head) (int, error)
	// ClosedOf returns the number of the newest one with this head that is closed or
	// merged, and 0 if there is none.
	ClosedOf(ctx context.Context, head Head) (int, error)
	// Merged lists those that were merged at a time or later.
	Merged(ctx context.Context, since time.Time) ([]Merged, error)
}

// A Board is where this program tells people what it wants of them, and itself
// what it knew: only it can write its check runs.
type Board interface {
	// CheckRuns lists the check runs of a commit that have a name, for "" all of
	// them, newest first. A newer one hides none: it may be another app's.
	CheckRuns(ctx context.Context, commit, name string) ([]CheckRun, error)
	// PublishCheckOver updates the newest of the check runs that are known of
	// that name, or makes one: also where another app made that one and the token
	// may not touch it. Annotations are added, and never taken back.
	PublishCheckOver(ctx context.Context, commit string, check Check, known []CheckRun) (CheckRun, error)

	// UpsertComment replaces the text of a comment on a pull request, or posts a
	// new one where the id is "" or the comment was deleted.
	UpsertComment(ctx context.Context, number int, id, body string) (Posted, error)
	// CommentsBy returns the texts of an account's comments on a pull request.
	CommentsBy(ctx context.Context, number int, who ledger.Actor) ([]string, error)
	// CreateReviewComment opens a thread on a file of a pull request's diff, whose
	// head the commit is.
	CreateReviewComment(ctx context.Context, number int, commit, path, body string) (Posted, error)
	// ResolveThread resolves the thread that a review comment opened. It is false
	// where the token may not, or the comment is gone.
	ResolveThread(ctx context.Context, number int, comment string) (bool, error)
}

// Publish is PublishCheckOver the check runs of that name that are there.
func Publish(ctx context.Context, on Board, commit string, check Check) (CheckRun, error) {
	known, err := on.CheckRuns(ctx, commit, check.Name)
	if err != nil {
		return CheckRun{}, err
	}
	return on.PublishCheckOver(ctx, commit, check, known)
}

// Runs are the workflow runs that hand over bundles, and those of this program.
type Runs interface {
	// PullRuns lists the runs of pull requests that succeeded, in the order in
	// which they ended: those on a commit or, for "", those that ended after since.
	PullRuns(ctx context.Context, commit string, since time.Time) ([]Run, error)
	// EndedRuns lists the runs that ended with a conclusion after since, in the order in
	// which they ended: those for a branch of the repository itself or, for "", all.
	EndedRuns(ctx context.Context, branch, conclusion string, since time.Time) ([]Run, error)
	// Artifact returns the one file of the newest artifact of that name that a run
	// left. More than limit bytes are an error.
	Artifact(ctx context.Context, run int64, name string, limit int64) ([]byte, error)
	// HasArtifact reports whether a run left one of that name.
	HasArtifact(ctx context.Context, run int64, name string) (bool, error)
}

// A Merger opens pull requests and merges them. Neither is ever asked for twice
// on a guess: where an answer is lost, the forge is asked what became of it.
type Merger interface {
	// DefaultBranch is the repository's default branch; its Commit and Owner are "". The
	// repository's name is the one that it has now, whatever it was asked for by.
	DefaultBranch(ctx context.Context) (Side, error)
	// OpenPullRequest opens a pull request between two branches of the repository
	// and returns its number. One of these branches that is open is returned as it
	// is: its head and its text may be others than the caller's. Where the
	// repository does not let a workflow open pull requests the error matches
	// ErrPermission and names the setting.
	OpenPullRequest(ctx context.Context, n NewPull) (int, error)
	// Merge merges a pull request whose head is exactly that commit, and returns
	// the commit that the base branch got: with a merge commit where the repository
	// allows that, else squashed, else rebased. One that was merged at that head
	// already is fine. A head that is another is ErrMoved, what the repository's rules
	// keep back ErrRefused. It says nothing about what the base had meanwhile: the
	// caller reads what was merged.
	Merge(ctx context.Context, number int, head string) (commit string, err error)
}

// A NewPull is a pull request to open. Branch and Base are short names of branches
// of the repository; Body is Markdown of at most 65,536 characters.
type NewPull struct {
	Branch, Base, Title, Body string
}

// The states of a pull request.
const (
	PullRequestOpen   = "open"
	PullRequestClosed = "closed"
	PullRequestMerged = "merged"
)

// A PullRequest is one as the forge told it.
type PullRequest struct {
	Repository ledger.Repository `json:"repository"` // that it is in
	Number     int               `json:"number"`
	State      string            `json:"state"`
	Draft      bool              `json:"draft"`
	Title      string            `json:"title"`
	Author     ledger.Actor      `json:"author"`
	Head       Side              `json:"head"`
	Base       Side              `json:"base"`
	// MergeCommit is the newest commit that the base branch got by the merge, and MergedAt when
	// that was (RFC 3339, UTC); "" unless it was merged. A forge may tell the commit a moment later.
	MergeCommit string `json:"merge_commit,omitempty"`
	MergedAt    string `json:"merged_at,omitempty"`
	// MaintainerCanModify says whether those with write access to the base may
	// push to the head of a fork.
	MaintainerCanModify bool `json:"maintainer_can_modify"`
	// Committers are the accounts that wrote or committed its commits, or are named as
	// co-authors there; Strangers tells that some commit, or co-author, is of no account.
	Committers []ledger.Actor `json:"committers"`
	Strangers  bool           `json:"strangers"`
	// Paths are the files of its diff, the first few thousand; a comment on a
	// file needs one of them.
	Paths []string `json:"paths"`
}

// Fork reports whether the head is in another repository than the base.
func (p PullRequest) Fork() bool {
	return p.Head.Repository == nil || p.Base.Repository == nil || p.Head.Repository.ID != p.Base.Repository.ID
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

// A Head is what a workflow run, or an event, tells of a pull request's head.
// Repository is the number of the repository that the branch is in, "" where it
// is not known.
type Head struct {
	Owner      string // of that repository
	Repository string
	Branch     string
	Commit     string
}

// An Open is an open pull request. Of its head the owner and the repository are
// "" where that was deleted.
type Open struct {
	Number int
	Base   string // the branch
	Head   Head
}

// A Merged is a pull request that was merged, and when.
type Merged struct {
	Number int
	At     time.Time
}

// A Run is a workflow run. Workflow is the path of its file in the repository, Title
// what its run-name came to. HeadRepository is nil where that was deleted.
type Run struct {
	ID             int64
	Workflow       string
	Title          string
	Event          string
	Conclusion     string // "" while it is not completed
	HeadRepository *ledger.Repository
	HeadOwner      string
	HeadBranch     string
	HeadCommit     string
	CreatedAt      time.Time
	UpdatedAt      time.Time // when it was completed, if it is
	// RequestedBy are who started it, and who ran it again; nobody of a schedule.
	RequestedBy []ledger.Requester
}

// A ReviewComment is a comment on lines of a file: those from Start to Line, counted from
// 1, of the file at Path in Commit. Side and StartSide say whether these are lines of the
// pull request's head ("RIGHT") or of its base ("LEFT"), each "" where it is not told.
// Line is 0 for a comment on a whole file, and for one whose lines have changed since;
// Start is 0 for a comment on one line.
type ReviewComment struct {
	ID          int64
	PullRequest int
	URL         string
	Author      ledger.Actor
	Body        string
	Edited      bool
	CreatedAt   string // RFC 3339

	Path, Commit    string
	Start, Line     int
	StartSide, Side string
	OnFile          bool // it is on the whole file
}

// A Check is what a check run is to show (GitHub's REST API, "Check runs").
// Status is "completed" or "in_progress", Conclusion one of GitHub's and "" while
// it is in progress. Summary and Text are Markdown of at most 65,535 bytes each.
// ExternalID is the transaction, if it is of one.
type Check struct {
	Name        string
	Title       string
	Summary     string
	Text        string
	Status      string
	Conclusion  string
	DetailsURL  string // for the caller to fill in
	ExternalID  string
	Annotations []Annotation
}

// An Annotation is a note at lines of a file. Title has at most 255 characters,
// Message 64 KiB.
type Annotation struct {
	Path      string
	StartLine int
	EndLine   int
	Level     string // "failure"
	Title     string
	Message   string
}

// A CheckRun is one as the forge has it. App is the short name of the app that
// made it, AppID its number; Annotations is how many it has.
type CheckRun struct {
	ID          int64
	Name        string
	Head        string
	Status      string
	Conclusion  string
	URL         string
	ExternalID  string
	App         string
	AppID       int64
	Annotations int
	Title       string
	Summary     string
	Text        string
	StartedAt   time.Time
	CompletedAt time.Time // the zero time where that is not told
}

// Says reports whether a check run shows what another would.
func (c CheckRun) Says(check Check) bool {
	return c.Name == check.Name && c.Status == check.Status && c.Conclusion == check.Conclusion && c.ExternalID == check.ExternalID &&
		c.Title == check.Title && c.Summary == check.Summary && c.Text == check.Text && c.Annotations >= len(check.Annotations)
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

// StartedBy are those who started a run of a workflow by an event, and who ran it again: what it hands over they asked
// for. Nobody asks for what a schedule starts, whose run names the last who changed the workflow's file.
func StartedBy(event string, actor, triggering ledger.Actor) (out []ledger.Requester) {
	if actor.ID != "" && event != "schedule" {
		out = append(out, ledger.Requester{Actor: actor, Source: ledger.AskedByRunActor})
	}
	if triggering.ID != "" && triggering.ID != actor.ID {
		out = append(out, ledger.Requester{Actor: triggering, Source: ledger.AskedByRunTrigger})
	}
	return out
}

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

// A Protector tells what protects a branch. A forge need not; the promises are those of the package.
type Protector interface {
	Protection(ctx context.Context, branch string) (Protection, error)
}

// Protection is what protects a branch, in lines of the forge's own words, in no certain order: what it demands, and who can bypass
// that. Unread is what the forge does not tell the token.
type Protection struct{ Rules, Unread []string }

// Deployments are where a commit was deployed to, by a forge's own record of that. A forge need not have them; the promises are
// those of the package.
type Deployments interface {
	// Deployments lists those of a commit.
	Deployments(ctx context.Context, commit string) ([]Deployment, error)
}

// A Deployment is one as the forge has it. State is what it came to, in the forge's word, "" where nothing is told, and At when.
type Deployment struct {
	Environment, State string
	At                 time.Time
}

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

// Reviews are what people say of exceptions in comments on an issue. A forge need not have them; the promises are those of the
// package.
type Reviews interface {
	Issues
	// Access is Reader's.
	Access(ctx context.Context, who ledger.Actor) (approval.Access, error)
	// IssueComment returns a comment on an issue, with the texts that it had before. It fails with ErrNotFound if the issue has none of
	// that number.
	IssueComment(ctx context.Context, issue int, id string) (approval.Statement, error)
	// CommitAuthors are the accounts that wrote or committed a commit, or are named as co-authors there; strangers tells that some
	// of these is of no account.
	CommitAuthors(ctx context.Context, commit string) (accounts []ledger.Actor, strangers bool, err error)
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
