// Package evidence makes what an auditor asks of a change-management control: each change
// that came to a branch in a period, who proposed it, who approved it, whether these were others, which
// checks ran, and first of all what is not as it should be. It is pure: the branch is judged
// (package explain), the ledger audited and read by the caller.
//
// A Report has one table, its Rows. What could not be told is a row of it too: a repository that
// nobody could read, a ledger that does not verify. So an empty table says that nothing changed, and
// nothing else does. docs/evidence.md has each member and code.
package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Schema is the format of a Report.
const Schema = "countersign/evidence/1"

// A Period is whole days in UTC: From, and To as its last, both at midnight.
type Period struct{ From, To time.Time }

// ParsePeriod reads two days, such as 2026-01-01.
func ParsePeriod(from, to string) (p Period, err error) {
	if p.From, err = time.Parse(time.DateOnly, from); err != nil {
		return p, fmt.Errorf("%+q is no day such as 2026-01-31", from)
	}
	if p.To, err = time.Parse(time.DateOnly, to); err != nil {
		return p, fmt.Errorf("%+q is no day such as 2026-01-31", to)
	}
	if p.To.Before(p.From) {
		return p, errors.New("the period ends before it begins")
	}
	return p, nil
}

// End is the moment after the period's last.
func (p Period) End() time.Time { return p.To.AddDate(0, 0, 1) }

// A Report is the whole document. OK says that no row has an exception, Complete that every
// repository could be read, and its ledger verifies: the rows are all there are then.
type Report struct {
	Schema       string       `json:"schema"`
	From         string       `json:"from"`
	To           string       `json:"to"`
	MadeAt       string       `json:"made_at"`
	OK           bool         `json:"ok"`
	Complete     bool         `json:"complete"`
	Notes        []string     `json:"notes"`
	Totals       []Total      `json:"totals"`
	Repositories []Repository `json:"repositories"`
	Rows         []Row        `json:"rows"`
}

// A Total counts the rows of one kind. Rows are their places in Report.Rows, from 0.
type Total struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Rows  []int  `json:"rows"`
}

// A Repository is one that was asked about. Commit is where its branch was, LedgerCommit its ledger, when
// it was read; LedgerBegan is when the ledger's first transaction was recorded. Each is "" where that
// is not known. Web is where people see it on its forge.
type Repository struct {
	Name         string `json:"name"`
	Branch       string `json:"branch"`
	Read         bool   `json:"read"`
	Commit       string `json:"commit"`
	LedgerRef    string `json:"ledger_ref"`
	LedgerCommit string `json:"ledger_commit"`
	LedgerBegan  string `json:"ledger_began"`
	Web          string `json:"web"`
	Changes      int    `json:"changes"`
	Exceptions   int    `json:"exceptions"`
	// Settings are what protected its branches in the period, as far as that is on record.
	Settings []Setting `json:"settings,omitempty"`
}

// A Code names a kind of exception.
type Code string

// The codes of a repository as a whole; its row has no commit.
const (
	Unreadable   Code = "unreadable"     // it could not be fetched or read
	Unsound      Code = "ledger_unsound" // the audit found something: nothing else is said of it
	NoLedger     Code = "no_ledger"      // nothing is on record
	BeforeLedger Code = "before_ledger"  // the period begins before the record does
)

// The codes of a change.
const (
	Unexplained         Code = "unexplained"          // nothing is known that accounts for the commit
	UnknownPolicy       Code = "unknown_policy"       // which Policy it was under is not known
	WeakDecision        Code = "weak_decision"        // it was approved by decisions that are too weak
	NotApproved         Code = "not_approved"         // its transaction was not approved
	NotApplied          Code = "not_applied"          // its transaction was approved and never applied
	UsedUp              Code = "used_up"              // its approval accounts for another commit
	PartlyApproved      Code = "partly_approved"      // approved patches are in it, and more
	CannotTell          Code = "cannot_tell"          // whether something accounts for it cannot be told here
	RecordInvalid       Code = "record_invalid"       // its record does not verify
	NoApproval          Code = "no_approval"          // the Policy lets it in without a person's approval
	DependentApproval   Code = "not_independent"      // who proposed it approved it
	UnknownIndependence Code = "independence_unknown" // the record does not tell who it was
	BreakGlass          Code = "break_glass"          // somebody approved alone in an emergency
	ApprovedLate        Code = "approved_late"        // it was there before it was approved
	Denied              Code = "denied"               // somebody denied exactly this patch
	ChecksFailed        Code = "checks_failed"        // a required check failed the last time it ran
	ChecksAbsent        Code = "checks_absent"        // a check that the Policy asks for is not on record
	Overdue             Code = "review_overdue"       // nobody independent has reviewed an exception in time
	NotValidated        Code = "not_validated"        // it was not proved after it was applied, or that it was merged is not on record
)

// Codes are all of them, the gravest first.
var Codes = []Code{Unreadable, Unsound, NoLedger, BeforeLedger, RecordInvalid, Unexplained, Denied, UnknownPolicy, WeakDecision, NotApproved, NotApplied, UsedUp, PartlyApproved, CannotTell, Overdue, BreakGlass, NoApproval, DependentApproval, UnknownIndependence, ApprovedLate, ChecksFailed, ChecksAbsent, NotValidated}

// An Exception is one reason why a row is not as it should be.
type Exception struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
}

// A Row is one change, or one repository of which not all could be told, which has no Commit.
// Commits are all of which the change consists, Commit the last of them. CameAfter and CameBy
// are when it came to the branch by the ledger's word; ClaimedAt is what the commit says of
// itself, by which nothing goes. Records are those of the transactions that account for it, of which
// there may be several, or of those that it is about if none does. Strength is that of the decisions that account for it. Reviews
// are what people found of its exceptions, DueBy when somebody independent has to have, and Reviewed says that somebody has. What is
// not known is "".
type Row struct {
	Repository  string      `json:"repository"`
	Branch      string      `json:"branch"`
	Exceptions  []Exception `json:"exceptions"`
	Commit      string      `json:"commit"`
	Commits     []string    `json:"commits"`
	BroughtBy   string      `json:"brought_by"`
	URL         string      `json:"url"`
	Subject     string      `json:"subject"`
	CameAfter   string      `json:"came_after"`
	CameBy      string      `json:"came_by"`
	ClaimedAt   string      `json:"claimed_at"`
	ExplainedBy string      `json:"explained_by"`
	Strength    string      `json:"strength"`
	Signer      string      `json:"signer"`
	Records     []Record    `json:"records"`
	DueBy       string      `json:"due_by,omitempty"`
	Reviews     []Review    `json:"reviews,omitempty"`
	// Told is what the forge told when it was asked.
	Told *Told `json:"told,omitempty"`
	// Tickets are those that its texts name.
	Tickets []Ticket `json:"tickets,omitempty"`
	// Deployments are, by environment, the first that had it.
	Deployments []Deployment `json:"deployments,omitempty"`
	Reviewed    bool         `json:"reviewed,omitempty"`
}

// A Record is what a transaction tells of a change.
type Record struct {
	TransactionID string             `json:"transaction_id"`
	PatchID       string             `json:"patch_id"`
	Summary       string             `json:"summary"`
	PullRequest   int                `json:"pull_request"`
	PullURL       string             `json:"pull_url"`
	ProposedAt    string             `json:"proposed_at"`
	Proposers     []Person           `json:"proposers"`
	RequestedBy   []ledger.Requester `json:"requested_by"` // who is known to have asked for it
	Decisions     []Decision         `json:"decisions"`
	Independent   Independence       `json:"independent"`
	Why           string             `json:"why"`
	Checks        []Check            `json:"checks"`
	Policy        ledger.PolicyRef   `json:"policy"`
	Needs         []Need             `json:"needs"`
	AppliedAt     string             `json:"applied_at"`
	MergedAt      string             `json:"merged_at"` // by the forge's clock
	CompletedAt   string             `json:"completed_at"`
	Status        ledger.Status      `json:"status"`

	head string // of its pull request
}

// A Person had a part in making a change. As is "proposer", "proposed_again", "author", of a
// pull request's commits, or "proposed_elsewhere", in another transaction.
type Person struct {
	ledger.Actor
	As string `json:"as"`
}

// A Decision is one that was recorded; Counted is decided again. Kind is what it was asked
// for. VerifiedBy are "local" (a shell's word), "forge" and "signature".
type Decision struct {
	Decision       ledger.Decision `json:"decision"`
	Kind           string          `json:"kind"`
	Author         ledger.Actor    `json:"author"`
	Permission     string          `json:"permission"`
	VerifiedBy     []string        `json:"verified_by"`
	KeyFingerprint string          `json:"key_fingerprint"`
	URL            string          `json:"url"`
	DecidedAt      string          `json:"decided_at"`
	Counted        bool            `json:"counted"`
	Requester      bool            `json:"requester"` // its author had asked for the change
	Why            string          `json:"why"`
}

// A Check ran on the change. When is "before" or "after" it was applied.
type Check struct {
	Name     string `json:"name"`
	Passed   bool   `json:"passed"`
	Required bool   `json:"required"`
	When     string `json:"when"`
	At       string `json:"at"`
}

// A Need is what the Policy asked for.
type Need struct {
	Kind     string `json:"kind"`
	Required int    `json:"required"`
	Approved int    `json:"approved"`
}

// Of says which of the exceptions a row has.
func (r Row) Of(code Code) bool {
	return slices.ContainsFunc(r.Exceptions, func(e Exception) bool { return e.Code == code })
}

// Open reports whether a row has an exception that nobody independent has reviewed. What no change is, and what is of a record
// that does not verify, which does not tell who had a part in it, stays open.
func (r Row) Open() bool {
	return len(r.Exceptions) > 0 && (!r.Reviewed || r.Commit == "" || r.Of(RecordInvalid))
}

// Independent is whether all that accounts for a change is: "" where no transaction does, and
// the worst of several.
func (r Row) Independent() (is Independence) {
	for i, rec := range r.Records {
		if i == 0 || rec.Independent == No || is == Yes {
			is = rec.Independent
		}
	}
	return is
}

// A Part is what one repository came to: its Repository and rows, and notes about them.
type Part struct {
	Repository Repository
	Rows       []Row
	Notes      []string
}

// Failed is the part of a repository of which nothing can be told, and why.
func Failed(r Repository, code Code, text string) Part {
	r.Read = false
	return Part{Repository: r, Rows: []Row{{
		Repository: r.Name, Branch: r.Branch, Commits: []string{}, Records: []Record{}, Exceptions: []Exception{{code, ledger.OneLine(text, 500)}},
	}}}
}

// New puts a report together: rows with exceptions first, the gravest of them before others.
func New(p Period, madeAt time.Time, parts []Part) Report {
	r := Report{
		Schema: Schema, From: p.From.Format(time.DateOnly), To: p.To.Format(time.DateOnly), MadeAt: ledger.FormatTime(madeAt),
		OK: true, Complete: true, Notes: []string{}, Totals: []Total{}, Repositories: []Repository{}, Rows: []Row{},
	}
	if madeAt.Before(p.End()) {
		r.Notes = append(r.Notes, "the period was not over when this was made: changes may still come")
	}
	for _, part := range parts {
		repo := part.Repository
		r.Notes = append(r.Notes, part.Notes...)
		for _, row := range part.Rows {
			if row.Commit != "" {
				repo.Changes++
			}
			if len(row.Exceptions) > 0 {
				repo.Exceptions++
			}
		}
		r.OK, r.Complete = r.OK && repo.Exceptions == 0, r.Complete && repo.Read
		r.Repositories = append(r.Repositories, repo)
		r.Rows = append(r.Rows, part.Rows...)
	}
	if len(parts) == 0 { // asked about nothing, it says nothing
		r.OK, r.Complete = false, false
		r.Notes = append(r.Notes, "there is no repository in this report")
	}
	slices.SortStableFunc(r.Rows, func(a, b Row) int { return cmp.Compare(a.rank(), b.rank()) })
	r.count()
	return r
}

// Count is a total.
func (r Report) Count(name string) int {
	for _, t := range r.Totals {
		if t.Name == name {
			return t.Count
		}
	}
	return 0
}

// rank is where a row stands.
func (r Row) rank() int {
	for i, code := range Codes {
		if r.Of(code) {
			return i
		}
	}
	return len(Codes)
}

// count makes the totals.
func (r *Report) count() {
	total := func(name string, is func(Row) bool) {
		t := Total{Name: name, Rows: []int{}}
		for i, row := range r.Rows {
			if is(row) {
				t.Count++
				t.Rows = append(t.Rows, i)
			}
		}
		r.Totals = append(r.Totals, t)
	}
	total("changes", func(row Row) bool { return row.Commit != "" })
	total("exceptions", func(row Row) bool { return len(row.Exceptions) > 0 })
	total("unreviewed", Row.Open)
	for _, by := range []string{"transaction", "pull_request", "merge", "bot", "empty"} {
		total("by_"+by, func(row Row) bool { return row.ExplainedBy == by })
	}
	for _, is := range []Independence{Yes, No, Untold} {
		total("independent_"+string(is), func(row Row) bool { return row.Independent() == is })
	}
	total("without_checks", func(row Row) bool {
		return len(row.Records) > 0 && !slices.ContainsFunc(row.Records, func(rec Record) bool { return len(rec.Checks) > 0 })
	})
	for _, code := range Codes {
		total("exception_"+string(code), func(row Row) bool { return row.Of(code) })
	}
}
