package evidence

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// reviewed are the exceptions that somebody independent has to review (exceptions.review): a change that came without
// an approval that was due before, or by who is not independent.
var reviewed = []Code{
	Unexplained, Denied, UnknownPolicy, WeakDecision, NotApproved, NotApplied, UsedUp, PartlyApproved, CannotTell, BreakGlass, DependentApproval, ApprovedLate,
}

// A Review is what somebody found of an exception, by countersign dispose, and whether that counts: Why says why not.
type Review struct {
	TransactionID  string              `json:"transaction_id"`
	About          string              `json:"about"`
	As             observation.Outcome `json:"as"`
	Author         ledger.Actor        `json:"author"`
	Reason         string              `json:"reason"`
	ReviewedAt     string              `json:"reviewed_at"`
	KeyFingerprint string              `json:"key_fingerprint"`
	Counted        bool                `json:"counted"`
	Why            string              `json:"why"`
}

// Exceptions are the changes that are due for review, by when, or were reviewed: the overdue ones first, then by time. There are
// none where the Policy asks for no review, and nobody reviewed anything.
func (s Source) Exceptions() (out []explain.Exception, err error) {
	if s.Policy.Exceptions.Review == 0 && len(s.Index.Observations()) == 0 {
		return nil, nil
	}
	part, err := s.Changes(Period{To: s.Now})
	for _, r := range part.Rows {
		e := explain.Exception{Commit: r.Commit, Commits: r.Commits, Subject: r.Subject, DueBy: r.DueBy, State: explain.Due, Codes: []string{}}
		for _, x := range r.Exceptions {
			if x.Code != Overdue {
				e.Codes = append(e.Codes, string(x.Code))
			}
		}
		switch {
		case r.Reviewed:
			e.State = explain.Reviewed
		case r.DueBy == "":
			continue
		case r.Of(Overdue):
			e.State = explain.Overdue
		}
		e.Text = r.Exceptions[0].Text
		out = append(out, e)
	}
	states := []explain.ExceptionState{explain.Overdue, explain.Due, explain.Reviewed}
	slices.SortStableFunc(out, func(a, b explain.Exception) int {
		return cmp.Or(slices.Index(states, a.State)-slices.Index(states, b.State), strings.Compare(a.DueBy, b.DueBy))
	})
	return out, err
}

// A said disposition is one of the ledger, with the proof of its signature. why says why it counts for nothing, "" if it may.
type said struct {
	observation.Disposition
	at    time.Time
	proof sshsig.Proof
	why   string
}

// signs holds a disposition to what the Policy asks of signatures, and says why it falls short of that.
func (s Source) signs(d observation.Disposition, at time.Time) (proof sshsig.Proof, why string) {
	approvals := s.Policy.Approvals
	switch {
	case s.Policy.IsBot(d.Author.ID, d.Author.Login):
		return proof, "the Policy lists its author under bots"
	case d.Signature == nil && approvals.Signing() == policy.SignedOnly:
		return proof, "it is not signed, which the Policy asks for"
	case d.Comment != nil:
		if why = approval.Refused(s.Policy, d.Comment.Access); why != "" {
			why = "its author " + why
		}
		return proof, why
	case d.Signature == nil && !approvals.Local.Counts(false):
		return proof, "a shell alone tells who it was, which does not count here"
	case d.Signature == nil:
		return proof, ""
	case s.Keys.Err != nil:
		return proof, s.Keys.Err.Error()
	}
	proof, err := d.Prove(s.Keys.Allowed, at)
	if err == nil {
		err = s.Keys.Take(proof)
	}
	if err != nil {
		return proof, err.Error()
	}
	return proof, ""
}

// review adds to a row what became of its exceptions, and that nobody reviewed them in time. What accounts for the
// change are transactions; of a change of several, each has to be reviewed, or one of its commits.
func (t *table) review(row *Row, transactions []string, span explain.Span) error {
	if len(row.Exceptions) == 0 {
		return nil
	}
	done := false
	for _, commit := range row.Commits {
		counts, err := t.reviews(row, commit)
		if err != nil {
			return err
		}
		done = done || counts
	}
	all := len(transactions) > 0
	for _, id := range transactions {
		counts, err := t.reviews(row, id)
		if err != nil {
			return err
		}
		all = all && counts
	}
	row.Reviewed = done || all
	within := time.Duration(t.Policy.Exceptions.Review)
	if within == 0 || !slices.ContainsFunc(reviewed, row.Of) {
		return nil
	}
	due := t.came(span).Add(within)
	row.DueBy = ledger.FormatTime(due)
	if !row.Reviewed && t.Now.After(due) {
		row.add(Overdue, "it was due for review by "+row.DueBy+", and nobody independent has reviewed it")
	}
	return nil
}

// reviews adds the reviews of a commit or a transaction, and reports whether one counts.
func (t *table) reviews(row *Row, about string) (counts bool, err error) {
	for _, d := range t.disposed[about] {
		r := Review{
			TransactionID: d.TransactionID, About: about, As: d.As, Author: d.Author, Reason: d.Reason,
			ReviewedAt: ledger.FormatTime(d.at), KeyFingerprint: d.proof.Fingerprint, Why: d.why,
		}
		if r.Why == "" {
			if r.Why, err = t.part(row, d); err != nil {
				return false, err
			}
		}
		r.Counted = r.Why == ""
		counts = counts || r.Counted
		row.Reviews = append(row.Reviews, r)
		text := fmt.Sprintf("; reviewed by %s: %s (%s)", r.Author.Login, r.As, r.Reason)
		if !r.Counted {
			text += ", which does not count: " + r.Why
		}
		for i, e := range row.Exceptions {
			row.Exceptions[i].Text = ledger.OneLine(e.Text+text, 500)
		}
	}
	return counts, nil
}

// part says which part the author of a disposition had in a change: by the records that it has, and by what its commits say
// of themselves. Nobody has verified the latter: it can only count against a review.
func (t *table) part(row *Row, d said) (string, error) {
	from := d.Source(d.proof)
	for _, r := range row.Records {
		dir, err := fs.Sub(t.Ledger, ledger.Dir(r.TransactionID))
		if err != nil {
			return "", err
		}
		log, err := lookup.Read(t.Ledger, r.TransactionID)
		if err != nil {
			return "", err
		}
		if part := observation.Part(dir, log, from, t.Keys.Listed); part != "" {
			return "its author " + part, nil
		}
		people := approval.Case{People: approval.People(dir, log, t.Keys.Listed)}
		if slices.ContainsFunc(claimedAuthors(log.Transaction().Pointers.Proposal), func(a ledger.Actor) bool { return people.Is(from, a) }) {
			return "the change itself names its author as one of its authors", nil
		}
	}
	for _, commit := range row.Commits {
		raw, err := t.RawCommit(commit)
		if err != nil {
			return "", err
		}
		people := approval.Case{People: func(names ...string) []string { return sshsig.Person(names, t.Keys.Listed) }}
		if slices.ContainsFunc(committers(string(raw)), func(a ledger.Actor) bool { return people.Is(from, a) }) {
			return "the commit names its author as its author or committer", nil
		}
	}
	return "", nil
}

// committers are those whom a commit, as Git stores it, names as its authors, as its committer, and as having written it together.
func committers(raw string) (out []ledger.Actor) {
	head, message, _ := strings.Cut(raw, "\n\n")
	for line := range strings.Lines(head) {
		key, who, _ := strings.Cut(line, " ")
		if key == "author" || key == "committer" {
			out = append(out, claimedBy(who)...)
		}
	}
	for line := range strings.Lines(message) {
		if key, who, is := strings.Cut(line, ":"); is && strings.EqualFold(key, "co-authored-by") {
			out = append(out, claimedBy(who)...)
		}
	}
	return out
}
