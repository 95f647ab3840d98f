// Package code is the repository that changes are made to, as far as the stages
// need it: package gitstore keeps it in Git, and knows nothing of the stages; and what puts a patch on one of its trees.
package code

import (
	"context"
	"io/fs"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A Repository is where the code lives. Several goroutines may use it. Tree must
// implement fs.ReadLinkFS, and must fail, not say "not found", where an object is
// missing.
type Repository interface {
	// Head returns the commit id of HEAD.
	Head(ctx context.Context) (string, error)
	Tree(ctx context.Context, commit string) (fs.FS, error)
	// TreeID returns the id of a commit's tree, which names its content.
	TreeID(ctx context.Context, commit string) (string, error)
	// Index compares the files with their index entries.
	Index(ctx context.Context, files []patch.Change) (IndexState, error)
	// Changed returns the paths whose file in the working tree is not HEAD's:
	// changed, deleted, or new and not ignored.
	Changed(ctx context.Context) ([]string, error)
	// Descends reports whether ancestor is commit or one of its ancestors; one
	// that the repository does not have is not.
	Descends(ctx context.Context, commit, ancestor string) (bool, error)
	// Drift returns how many commits only one of two commits leads to, and the
	// paths of the files in which their trees differ. What the repository does not
	// have as far as it takes, as a shallow clone, is an error.
	Drift(ctx context.Context, a, b string) (commits int, files []string, err error)
	// Past returns what a commit and those before it, by first parents and as far back as is
	// looked, have had at some paths, newest first.
	Past(ctx context.Context, commit string, paths []string) ([]Run, error)
}

// A Run is commits in a row that have the same files. Oldest is "" where the history here, or as far
// as it was looked at, does not tell; Back is how many commits Newest is before the first of all. Blobs
// are the ids of the files, "" for none.
type Run struct {
	Newest, Oldest string
	Back           int
	Blobs          []string
}

// A BranchCommit is a commit of the code. When is what its committer says, in seconds
// since 1970.
type BranchCommit struct {
	ID, Message string
	Parents     []string
	When        int64
}

// A PathChange is a path whose entry differs between two trees of the code. Old and New are
// the modes of Git's entries, 0 for none, OldID and NewID their objects, "" for none.
type PathChange struct {
	Path         string
	Old, New     uint32
	OldID, NewID string
}

// An IndexState says which files differ from the commit in the index, and which
// are not checked out at all (git-sparse-checkout).
type IndexState struct{ Staged, Sparse []string }

// A Commit is what a commit says beside its tree. Committer is the address of
// the committer, whose name is this program's; "" for its own.
type Commit struct {
	Author, Email string
	Committer     string
	When          time.Time
	Authored      time.Time // the author's own time and zone; zero: When
	Message       string
	// Sign returns the armored SSH signature of a commit, always the same for
	// the same one; nil signs nothing.
	Sign func(commit []byte) (string, error)
}

// A Checkout is the branch that is checked out, whose files are on disk.
type Checkout interface {
	// Branch returns its full name, or an *UncommittableError.
	Branch(ctx context.Context) (string, error)
	// MoveBranch sets it to next if it is still checked out and is old, else it returns
	// writing.ErrMoved. One that is next already stays.
	MoveBranch(ctx context.Context, branch, old, next string) error
	// Stage has these files in the index as they are after a change, and nothing else. It reads
	// no file and runs no filter or hook.
	Stage(ctx context.Context, files []patch.Change) error
}

// An UncommittableError says why no commit can be made on what is checked out. Hint is the command
// that helps, unless files are staged or were written before, or Lock keeps others from the index.
type UncommittableError struct {
	Why, Hint, Lock string
	Staged, Written []string
}

func (e *UncommittableError) Error() string { return "no commit can be made: " + e.Why }

// Refs makes commits and moves refs, without any working tree. Several goroutines
// may use it.
type Refs interface {
	// Ref returns the commit that a full ref name stands for, "" if there is
	// none.
	Ref(ctx context.Context, name string) (string, error)
	// BuildCommit writes the commit that changes these files of its parent, and
	// moves no ref.
	BuildCommit(ctx context.Context, parent string, files []patch.Change, c Commit) (string, error)
	// CheckRef refuses a name that is none, and a branch that is checked out
	// anywhere: its files would no longer be what HEAD says.
	CheckRef(ctx context.Context, name string) error
	// MoveRef sets a ref that CheckRef accepts to next if it still is old ("":
	// absent), else it returns writing.ErrMoved.
	MoveRef(ctx context.Context, name, old, next string) error
}
