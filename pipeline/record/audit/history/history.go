// Package history is what an audit reads: the commits of a ledger, and what each
// of them changed. Package gitstore reads them from Git.
package history

// The modes of an entry that a ledger has.
const (
	ModeFile = 0o100644
	ModeDir  = 0o040000
)

// An Entry is what is at a path; the zero Entry is nothing.
type Entry struct {
	Mode uint32
	ID   ID
}

// A Change is a path whose entry a commit changed: a file, or anything else
// that is not a directory, or a directory without entries.
type Change struct {
	Path     string
	Old, New Entry
}

// A Signature says how a commit is signed.
type Signature int

// Signed means: has a signature, which nobody verified because no keys were given.
const (
	Unsigned Signature = iota
	Signed
	Good
	Bad
)

// A Commit is one commit of the ledger.
type Commit struct {
	ID      ID
	Age     int // how many commits are after it
	Parents []ID
	// Ours reports whether the commit has the form that this program gives it,
	// with its name as author and committer.
	Ours    bool
	When    int64 // seconds since 1970
	Message string

	Signature      Signature
	SignatureError error // why it is Bad

	Changes []Change
	// Problems are what is wrong with its objects. Changes are incomplete then.
	Problems []Finding
	// Base says that the commit is not audited: what the history before it is,
	// or holds, is not known.
	Base bool
}

// A Reader is one line of commits, from its tip back to its root or to where
// the audit begins. Objects are held to their names when they are read.
type Reader interface {
	// Commits calls visit once for every commit, in any order, on several
	// goroutines.
	Commits(visit func(Commit)) error
	// Blob returns the content of a file. It may be called from several
	// goroutines; the content is not to be modified.
	Blob(id ID) ([]byte, error)
	// Former lists the files at or below a path as they were before the first
	// commit that is visited. Nothing was, where that is the root.
	Former(path string) (map[string]Entry, error)
}

// A Finding is one broken rule. Commit and Path are empty where it is about no
// single one.
type Finding struct {
	RuleID  string `json:"rule_id"`
	Commit  string `json:"commit"`
	Path    string `json:"path"`
	Message string `json:"message"`
}
