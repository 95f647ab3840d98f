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
//	L16      ledger.json and events.jsonl at the root are what this program writes
//	L19      a transaction took the place of those which it says that it did
//	WITNESS  as many witnesses as were asked for signed checkpoints of this history
//	         (the caller's to find, see [Witnessed])
//	L22      the key of a signed decision is recorded as the commit of the Policy
//	         lists it, where that commit is here
//	L24      who approves a patch that they had proposed in another transaction is named
//	         there before
//
// and I1 to I12, L1 to L7, L9, L10, L17, L18, L20, L21, L24 and L25 of each transaction as it stands at the
// tip (package ledger).
//
// Pages are a view of the record, which is sound or not whatever they say. Who knows what they should say checks them on the
// way ([View]), and findings about them (L23) are apart.
package audit

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Options are what an audit is given beside the history.
type Options struct {
	Tip string
	// Signatures demands a Good signature of every commit.
	Signatures bool
	// Found and Notes are what the caller found before.
	Found []history.Finding
	Notes []Note
	// Keys reads the keys that a commit of the code lists. Nil is an audit without the
	// code: whose keys a commit listed is unknown then.
	Keys KeyReader
	// Spread calls do for 0 to n-1, on several goroutines. If it is nil, the audit has one.
	Spread func(n int, do func(i int))
	// Each, which may be nil, is handed each transaction as it stands at the tip, on several goroutines: the newest commit
	// that changed it, the record, whose Log is nil if it cannot be read, and what the directory alone tells against it. The
	// record is nil where a file cannot be read.
	Each Each
	// View, which may be nil, begins a check of pages.
	View func(ViewReader) View
	// Progress, which may be nil, is told how far the audit is; total is 0 where
	// it is not known. It is called on several goroutines.
	Progress func(what string, done, total int)
}

// An Each takes a transaction (see Options).
type Each = func(id string, commit history.ID, record *approval.Record, found []canon.Violation)

// A View is what a ledger has for people who browse it, beside the record. An audit hands on what it goes over to whom checks
// that.
type View interface {
	// Commit is called for each commit, on several goroutines, with the changes of what ledger.IsPage tells and the transactions
	// that the commit adds to. What it returns comes with the version.
	Commit(c history.Commit, changes []history.Change, transactions []string) []history.Change
	// Version is called for what a commit did to a transaction: for one of them the oldest first, for several on several goroutines.
	Version(Version)
	// End is called last, and returns how many pages could not be checked.
	End() (notChecked int)
}

// A Version is what a commit did to the transaction of an ID: the events up to it, what they fold to, which may be of another
// one, and whether it brought the first of them; Dir is the directory as the last commit leaves it, and Denials are the files that this one adds to denied/.
type Version struct {
	ID          string
	Commit      history.ID
	Age         int
	Dir         fs.FS
	Payloads    []ledger.Payload
	Transaction ledger.Transaction
	First       bool
	Denials     map[string][]byte
	Pages       []history.Change
}

// A ViewReader is what a View reads and tells.
type ViewReader interface {
	// Read returns what an entry is, nil if it is no file or cannot be read, which is a finding of the audit.
	Read(commit history.ID, name string, e history.Entry) []byte
	Former(path string) (map[string]history.Entry, error)
	// Differs is a finding about a page.
	Differs(commit history.ID, page, format string, args ...any)
}

// Run audits a history. The error is only that of reading it.
func Run(h history.Reader, o Options) (Result, error) {
	a := &auditor{
		Reader: h, o: o, transactions: map[string]*transaction{}, denied: map[string]int{},
		superseded: map[string]ended{}, proposals: map[string][]proposalAt{}, keys: keyLists{read: o.Keys},
	}
	if o.View != nil {
		a.view = o.View(a)
	}
	for _, f := range o.Found {
		a.found.add(f)
	}
	a.found.notes = append(a.found.notes, o.Notes...)
	if err := h.Commits(a.commit); err != nil {
		return Result{}, err
	}
	all := a.sorted()
	a.ownEvents()
	var done atomic.Int64
	do := func(i int) {
		a.transaction(all[i])
		a.progress("transactions", int(done.Add(1)), len(all))
	}
	if o.Spread != nil {
		o.Spread(len(all), do)
	} else {
		for i := range all {
			do(i)
		}
	}
	a.successions()
	a.ownApprovals()
	a.undecided()
	r := Result{
		Tip: o.Tip, Commits: int(a.commits.Load()), Transactions: len(all), Signed: int(a.signed.Load()), Decisions: a.keys.seen,
		Count: a.found.count, OK: a.found.count == 0, Complete: !a.found.incomplete, Newer: a.least,
		faults: a.found.count - a.found.newer,
	}
	if a.view != nil {
		r.Pages = Pages{NotChecked: a.view.End(), OK: a.pages.count == 0, Count: a.pages.count}
		a.pages.trim()
		r.Pages.Findings = append([]history.Finding{}, a.pages.all...)
	}
	a.found.trim()
	r.Findings = append([]history.Finding{}, a.found.all...)
	r.Notes = append([]Note{}, a.found.notes...)
	sort.Slice(r.Notes, func(i, j int) bool {
		x, y := r.Notes[i], r.Notes[j]
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Commit, y.Commit), strings.Compare(x.Message, y.Message)) < 0
	})
	r.Notes = r.Notes[:min(len(r.Notes), MaxFindings)]
	return r, nil
}

// auditor is one audit.
type auditor struct {
	history.Reader
	o       Options
	view    View
	found   findings
	pages   findings // about pages
	commits atomic.Int64
	signed  atomic.Int64

	first    string   // version of ledger.json
	raises   []raised // versions of the ledger, the oldest first
	unknown  int      // one more than the age of the first commit of a version that this program does not know; 0 for none
	least    string   // the least version that can judge all of it, "" where this program can
	ages     []aged
	policies approval.Policies
	keys     keyLists

	mu           sync.Mutex
	transactions map[string]*transaction
	denied       map[string]int // directory in denied/ → age of the first commit that added to it
	own          []ownVersion
	heirs        []heir
	superseded   map[string]ended // by id
	proposals    map[string][]proposalAt
	approvals    []approvalAt
}

func (a *auditor) progress(what string, done, total int) {
	if a.o.Progress != nil {
		a.o.Progress(what, done, total)
	}
}

// A Note is worth knowing and breaks no rule.
type Note struct {
	Commit  string `json:"commit"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

// A Result is what an audit found. OK says that the record is sound, whatever pages say. From, which the caller knows, is where it
// began. Complete says that everything from there on was read. Findings are sorted by rule, path and commit, and are at
// most MaxFindings; Count is how many there are.
type Result struct {
	OK           bool              `json:"ok"`
	Complete     bool              `json:"complete"`
	Tip          string            `json:"tip"`
	From         string            `json:"from"`
	Commits      int               `json:"commits"`
	Transactions int               `json:"transactions"`
	Signed       int               `json:"signed"`
	Decisions    SignedDecisions   `json:"signed_decisions"`
	Count        int               `json:"count"`
	Findings     []history.Finding `json:"findings"`
	Notes        []Note            `json:"notes"`
	Newer        string            `json:"newer,omitempty"` // the least version that can judge all of it, if this program cannot
	Pages        Pages             `json:"pages"`
	faults       int               // how many findings there are that are not of canon.Newer
}

// Pages are what an audit found of pages. OK says that each one that was checked says what the record does; Findings, of
// which there are Count, are those of the others. NotChecked is how many have versions that this program does not know.
type Pages struct {
	OK         bool              `json:"ok"`
	Count      int               `json:"count"`
	Findings   []history.Finding `json:"findings"`
	NotChecked int               `json:"not_checked"`
}

// MaxFindings is how many findings, and how many notes, a Result holds.
const MaxFindings = 1000

// findings are gathered from several goroutines; all are counted, and the first
// in order are kept.
type findings struct {
	mu         sync.Mutex
	all        []history.Finding
	notes      []Note
	count      int
	newer      int            // of canon.Newer
	unsure     map[string]int // of rules that a newer version may not have, by commit
	incomplete bool
}

func (f *findings) add(one history.Finding) {
	one.Path, one.Message = shown(one.Path), shown(one.Message)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if one.RuleID == canon.Newer {
		f.newer++
	} else if !slices.Contains(sure, one.RuleID) {
		if f.unsure == nil {
			f.unsure = map[string]int{}
		}
		f.unsure[one.Commit]++
	}
	f.incomplete = f.incomplete || one.RuleID == "HISTORY" || one.RuleID == "OBJECT"
	if f.all = append(f.all, one); len(f.all) > 4*MaxFindings {
		f.trim()
	}
}

func (f *findings) note(one Note) {
	one.Path, one.Message = shown(one.Path), shown(one.Message)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, one)
}

func (f *findings) trim() {
	// slices.SortFunc is compiled for every type anew, which a browser would load.
	sort.Slice(f.all, func(i, j int) bool {
		x, y := f.all[i], f.all[j]
		return cmp.Or(canon.Compare(x.RuleID, y.RuleID), canon.Compare(x.Path, y.Path),
			strings.Compare(x.Commit, y.Commit), strings.Compare(x.Message, y.Message)) < 0
	})
	f.all = f.all[:min(len(f.all), MaxFindings)]
}

// shown makes foreign text safe to print: what a reader would not see for what
// it is, is escaped.
func shown(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !ledger.Visible(r) }) < 0 {
		return s
	}
	return fmt.Sprintf("%+q", s)
}

func (a *auditor) add(rule string, commit history.ID, path, format string, args ...any) {
	a.found.add(history.Finding{RuleID: rule, Commit: commit.String(), Path: path, Message: fmt.Sprintf(format, args...)})
}

// Differs is L23.
func (a *auditor) Differs(commit history.ID, page, format string, args ...any) {
	a.pages.add(history.Finding{RuleID: "L23", Commit: commit.String(), Path: page, Message: fmt.Sprintf(format, args...)})
}

// directory is a transaction's, of which ledger.ReadOwn asks what there is, and anybody reads files.
type directory struct {
	files   map[string]history.Entry
	content map[history.ID][]byte
}

// Files are the modes of what is there.
func (d directory) Files() map[string]fs.FileMode {
	out := map[string]fs.FileMode{}
	for name, e := range d.files {
		switch e.Mode {
		case history.ModeFile:
			out[name] = 0o644
		case history.ModeDir:
			out[name] = fs.ModeDir
		default:
			out[name] = fs.ModeIrregular
		}
	}
	return out
}

// ReadFile returns a regular file, which is not to be modified.
func (d directory) ReadFile(name string) ([]byte, error) {
	if e := d.files[name]; e.Mode == history.ModeFile {
		return d.content[e.ID], nil
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
}

// Open is never called.
func (d directory) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
}
