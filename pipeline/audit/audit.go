// Package audit verifies the whole history of a ledger: that it is one line of
// commits with one root, that nothing in it was ever changed or removed, and
// that every version of every transaction is what its events say. It reads a
// [History], knows nothing of Git's files, and fails on nothing that a history
// holds: whatever is wrong is a finding.
//
// An audit goes over the history twice. First each commit, in any order: who
// made it, what it says, and which files it changes. Then each transaction, with
// all its versions, oldest first. What is checked, by the rule that a finding
// names:
//
//	HISTORY  all of it is here: no commit is missing, none is shown otherwise
//	         than it is (shallow, grafts, replacements)
//	OBJECT   every object is there, whole, and of the right type
//	L8       one line, one root; each commit adds to one transaction: files are
//	         only added, transaction.json is replaced, events.jsonl grows
//	L10      nothing is anywhere but what the events of the same commit account
//	         for; files are regular, trees well-formed
//	L9       each transaction.json is the fold of the events beside it
//	L11      denied/ holds the denials that are recorded, and no other
//	L12      proposed/ holds the proposals that are recorded, and no other
//	L13      every commit has a good signature, where that is asked for
//	L14      the tip descends from the last one seen
//	L15      author, committer, time, title and trailers of a commit are what
//	         this program writes for the events in it
//	L16      README.md, ledger.json and events.jsonl at the root are what this
//	         program writes
//	L19      a transaction took the place of those which it says that it did
//
// and I1 to I12, L1 to L7, L9 and L10 of each transaction as it stands at the
// tip (package ledger).
package audit

import (
	"encoding/hex"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/countersign-dev/countersign/pipeline/approval"
)

// An ID names an object of the history.
type ID [20]byte

// String is 40 hex digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero tells whether this names nothing.
func (id ID) IsZero() bool { return id == ID{} }

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

// Signed commits are not known to be good where no keys were given.
const (
	Unsigned Signature = iota
	Signed
	Good
	Bad
)

// A Commit is one commit of the history.
type Commit struct {
	ID      ID
	Age     int // how many commits are after it
	Parents []ID
	// Ours tells whether the commit has the form that this program gives it,
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

// A History is one line of commits, from its tip back to its root or to where
// the audit begins. Objects are held to their names when they are read.
type History interface {
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

// Options are what an audit is given beside the history.
type Options struct {
	Tip string
	// Signatures demands a Good signature of every commit.
	Signatures bool
	// Found and Notes are what the caller found before.
	Found []Finding
	Notes []Note
	// Progress, which may be nil, is told how far the audit is; total is 0 where
	// it is not known. It is called on several goroutines.
	Progress func(what string, done, total int)
}

// Run audits a history. The error is only that of reading it.
func Run(h History, o Options) (Result, error) {
	a := &auditor{
		History: h, o: o, transactions: map[string]*transaction{}, denied: map[string]int{},
		superseded: map[string]ended{},
	}
	for _, f := range o.Found {
		a.found.add(f)
	}
	a.found.notes = append(a.found.notes, o.Notes...)
	if err := h.Commits(a.commit); err != nil {
		return Result{}, err
	}
	all := a.sorted()
	var done atomic.Int64
	parallel(len(all), func(i int) {
		a.transaction(all[i])
		a.progress("transactions", int(done.Add(1)), len(all))
	})
	a.successions()
	a.ownEvents()
	return a.result(len(all)), nil
}

// auditor is one audit.
type auditor struct {
	History
	o       Options
	found   findings
	commits atomic.Int64
	signed  atomic.Int64

	policies approval.Policies

	mu           sync.Mutex
	transactions map[string]*transaction
	denied       map[string]int // directory in denied/ → age of the first commit that added to it
	own          []ownVersion
	heirs        []heir
	superseded   map[string]ended // by id
}

func (a *auditor) progress(what string, done, total int) {
	if a.o.Progress != nil {
		a.o.Progress(what, done, total)
	}
}

// parallel calls do(0) to do(n-1), on all cores.
func parallel(n int, do func(int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
}
