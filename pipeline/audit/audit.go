// Package audit verifies the whole history of a ledger: that it is one line of
// commits with one root, that nothing in it was ever changed or removed, and
// that every version of every transaction is what its events say. It reads a
// [history.Reader], knows nothing of Git's files, and fails on nothing that a history
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
//	L13      a signature is one; every commit has a good one, where that is asked for
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
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/audit/history"
)

// Options are what an audit is given beside the history.
type Options struct {
	Tip string
	// Signatures demands a Good signature of every commit.
	Signatures bool
	// Found and Notes are what the caller found before.
	Found []history.Finding
	Notes []Note
	// Progress, which may be nil, is told how far the audit is; total is 0 where
	// it is not known. It is called on several goroutines.
	Progress func(what string, done, total int)
}

// Run audits a history. The error is only that of reading it.
func Run(h history.Reader, o Options) (Result, error) {
	a := &auditor{
		Reader: h, o: o, transactions: map[string]*transaction{}, denied: map[string]int{},
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
	history.Reader
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
