package forgetest

import (
	"slices"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Lack is something that a forge cannot do (docs/forges.md).
type Lack string

// What a forge may lack.
const (
	EditHistory  Lack = "edit history"  // all texts that a comment had: the first alone is told
	CheckRuns    Lack = "check runs"    // with texts, that apps alone can write; there are statuses
	FileThreads  Lack = "file threads"  // that a comment of ours opens, and answers are bound to
	SigningKeys  Lack = "signing keys"  // beside those to log in with
	Paths        Lack = "paths"         // the files of a pull request's diff
	OwnFiles     Lack = "own files"     // workflows about a pull request are those of the default branch
	ClosedHeads  Lack = "closed heads"  // the head that a closed pull request had, in lists
	OldReviews   Lack = "old reviews"   // that stay as they were when the same person reviews again
	WorkflowRuns Lack = "workflow runs" // of the past, in lists
)

// A Place is a repository on a forge, and what people do there. It is public, its branch
// main has mainFiles, its branch topic a commit of bob's on that with topicFiles
// beside them, and the account of Forge administers it. What cannot be done
// fails the test. People are told apart by their ID.
type Place interface {
	Lacks() []Lack
	// PageSize is how many entries a page of a list has.
	PageSize() int
	// Forge is what is tested, with the program's token. Each call's has read nothing yet.
	Forge() forge.Forge
	// ForgeOf is the same with a person's token.
	ForgeOf(who ledger.Actor) forge.Forge
	// Ref is the commit of a branch, "" for none.
	Ref(branch string) string

	// Person is an account with a role in the repository: "admin", "write", "read". Those
	// called ada, bob, eve and mallory are left as they are by all cases.
	Person(name, role string) ledger.Actor
	// Bot is an account that may write, and that the forge can tell from a person's.
	Bot(name string) ledger.Actor
	// Role changes a role; "none" leaves what everybody may do.
	Role(who ledger.Actor, role string)
	Rename(who ledger.Actor, name string) ledger.Actor
	// Reuse makes another account with the login that somebody had before a Rename, or is an
	// error where that login is kept from others.
	Reuse(before ledger.Actor, role string) (ledger.Actor, error)
	DeleteAccount(who ledger.Actor)
	// Team makes a team of the repository's organization, and returns "org/team".
	Team(name string, members ...ledger.Actor) string

	// Commit adds a commit with files to a branch, which is made on main's tip if need be.
	// Its message names others who wrote it, as Git does: Co-authored-by.
	Commit(by ledger.Actor, branch string, files map[string]string, with ...ledger.Actor) string
	// Force makes a commit on main's tip the branch's.
	Force(by ledger.Actor, branch string, files map[string]string) string
	// Stranger adds n commits without a change, of an address that no account has, and
	// returns the last.
	Stranger(branch string, n int) string
	// Branch makes a branch at a commit, or deletes it for "".
	Branch(name, commit string)
	Protect(branch string)
	// Require lets nothing into a branch before a check has passed.
	Require(branch, check string)
	// Fork makes somebody's fork with a commit on a branch, on main's tip.
	Fork(by ledger.Actor, branch string, files map[string]string) string
	DeleteFork(by ledger.Actor)

	Open(by ledger.Actor, p Pull) int
	Close(by ledger.Actor, number int)
	Reopen(by ledger.Actor, number int)

	Comment(by ledger.Actor, number int, body string) (id string)
	// Edit edits so much later that the forge can tell.
	Edit(by ledger.Actor, id, body string)
	Delete(by ledger.Actor, id string)
	// Review reviews the head: the state is "APPROVED", "CHANGES_REQUESTED", "COMMENTED"
	// or "PENDING".
	Review(by ledger.Actor, number int, state, body string) (id string)
	Dismiss(by ledger.Actor, number int, id string)
	// LineComment comments on the first line of a file of the diff.
	LineComment(by ledger.Actor, number int, path, body string) (id string)

	// Lose loses the answer to the next request that does something, once that was done.
	Lose(done Done)
	// Break lets all requests to the API but the first n fail, until heal is called.
	Break(n int) (heal func())
}

// Done is what a request does.
type Done string

// What a request may do whose answer is lost.
const (
	Commented Done = "commented"
	Opened    Done = "opened"
	Merged    Done = "merged"
)

// A Pull is a pull request to open: from a branch of the repository or of the opener's
// fork, to main.
type Pull struct {
	Fork          bool
	Branch, Title string
	Draft         bool
}

// mainFiles are what main has in every Place.
func mainFiles() map[string]string {
	return map[string]string{"greet.txt": "one\nhello\nthree\n", "other.txt": "other\n"}
}

// topicFiles are what topic has beside that.
func topicFiles() map[string]string { return map[string]string{"work.txt": "work\n"} }

type testCase struct {
	name string
	run  func(*scene)
}

// runAll runs all cases, several at once, each in a Place of its own.
func runAll(t *testing.T, atOnce int, place func(*testing.T) Place) {
	t.Helper()
	var running sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, c := range slices.Concat(approvalCases, greenCases, statementCases, peopleCases, pullCases, boardCases, mergeCases, settleCases, onlineCases) {
		free <- struct{}{}
		running.Go(func() {
			t.Run(c.name, func(t *testing.T) { c.run(newScene(t, place(t))) })
			<-free
		})
	}
	running.Wait()
}
