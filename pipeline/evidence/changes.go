package evidence

import (
	"cmp"
	"fmt"
	"io/fs"
	"regexp"
	"runtime"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A Source is a repository whose ledger was audited and found sound, and whose branch was
// judged by it: all Commits since the ledger began, the tip first. Ledger is the tree of its
// tip, Now when the branch was read. RawCommit is a commit of the branch as Git stores it.
type Source struct {
	Repository Repository
	Links      forge.Links
	Ledger     fs.FS
	Index      *explain.Index
	Judged     explain.Result
	Commits    []code.BranchCommit
	Now        time.Time
	Policy     policy.Policy // of the default branch, as it is now, by which exceptions are due for review
	Keys       approval.Keys // and its list
	RawCommit  func(commit string) ([]byte, error)
}

// Changes are what came to the branch in a period. A commit is in it if it may have come then by
// the ledger's word (explain.Span): one of which too little is known is in several periods, and none is
// in no period. The error is that of reading the ledger.
func (s Source) Changes(p Period) (Part, error) {
	s.Repository.Read, s.Repository.Web = true, s.Links.Web
	part := Part{Repository: s.Repository}
	whole := Row{Repository: s.Repository.Name, Branch: s.Repository.Branch, Commits: []string{}, Records: []Record{}}
	switch {
	case s.Index.Began.IsZero():
		part = Failed(s.Repository, NoLedger, "the ledger has no transaction: nothing is on record of what came to the branch")
		return part, nil
	case p.From.Before(s.Index.Began):
		whole.Exceptions = []Exception{{BeforeLedger, "nothing is on record of the time before " + ledger.FormatTime(s.Index.Began) + ", when the ledger began"}}
		part.Rows = append(part.Rows, whole)
	}
	s.Repository.LedgerBegan = ledger.FormatTime(s.Index.Began)
	part.Repository.LedgerBegan = s.Repository.LedgerBegan
	t := &table{Source: s, spans: map[string]explain.Span{}, commits: map[string]code.BranchCommit{}, policies: new(approval.Policies)}
	seen, err := s.observations()
	if err != nil {
		return part, err
	}
	t.disposed = seen.reviews
	var unknown string
	if part.Repository.Settings, unknown = inPeriod(seen.settings, p); unknown != "" {
		part.Notes = append(part.Notes, s.Repository.Name+": "+unknown)
	}
	if err := t.readPatterns(); err != nil {
		return part, err
	}
	for i, span := range s.Index.Came(s.Judged.Chain, s.Now) {
		t.spans[s.Judged.Chain[i].ID] = span
	}
	for _, c := range s.Commits {
		t.commits[c.ID] = c
	}
	if left := t.deploy(seen.deployments); left != "" {
		part.Notes = append(part.Notes, left)
	}
	groups := slices.DeleteFunc(t.groups(), func(group []string) bool { return !t.span(group).Within(p.From, p.End()) })
	rows := make([]Row, len(groups))
	err = parallel.Try(4*runtime.GOMAXPROCS(0), len(groups), func(i int) (err error) { // most wait for git
		if rows[i], err = t.row(groups[i], t.span(groups[i])); err == nil {
			err = t.tickets(&rows[i])
		}
		if err != nil {
			err = fmt.Errorf("commit %s: %w", rows[i].Commit, err)
		}
		return err
	})
	part.Rows = append(part.Rows, rows...)
	return part, err
}

// A table makes rows.
type table struct {
	Source
	spans    map[string]explain.Span // of the chain
	commits  map[string]code.BranchCommit
	policies *approval.Policies
	disposed map[string][]said                 // by what they are about
	patterns []*regexp.Regexp                  // of tickets
	deployed map[string]map[string]*Deployment // by environment and commit
}

// groups are the commits that are one change, each with the commit first that stands for it: a
// merge with what it brought, commits in a row that are one approved change.
func (t *table) groups() [][]string {
	var out [][]string
	at := map[string]int{}
	for _, id := range t.Judged.Order() {
		e := t.Judged.Explained[id]
		key := id
		switch {
		case canon.IsGitID(e.PartOf):
			key = e.PartOf
		case e.PartOf != "":
			key = e.PartOf + " " + e.Transaction
		}
		n, is := at[key]
		switch {
		case !is:
			at[key] = len(out)
			out = append(out, []string{id})
		case id == key: // the merge itself
			out[n] = append([]string{id}, out[n]...)
		default:
			out[n] = append(out[n], id)
		}
	}
	return t.withMerges(out)
}

// withMerges puts a merge to what it brought, where that is the same change: of transactions that account for the merge,
// whose records its row has. A merge that only a rule of the Policy accounts for has a row of its own.
func (t *table) withMerges(groups [][]string) [][]string {
	brought := map[string][]int{} // by merge: groups that it alone brought
	for n, group := range groups {
		by := t.Judged.BroughtBy(group[0])
		if by != "" && !slices.ContainsFunc(group, func(id string) bool { return t.Judged.BroughtBy(id) != by }) {
			brought[by] = append(brought[by], n)
		}
	}
	joined := map[int]bool{}
	for n, group := range groups {
		merge, is := t.Judged.Explained[group[0]]
		for _, at := range brought[group[0]] {
			change, explained := t.Judged.Explained[groups[at][0]]
			approved := explained && (change.By == explain.ByTransaction || change.By == explain.ByPullRequest)
			has := merge.Transactions()
			same := merge.By == change.By && !slices.ContainsFunc(change.Transactions(), func(tx string) bool { return !slices.Contains(has, tx) })
			if is && approved && same {
				groups[n] = append(groups[n], groups[at]...)
				joined[at] = true
			}
		}
	}
	var out [][]string
	for n, group := range groups {
		if !joined[n] {
			out = append(out, group)
		}
	}
	return out
}

// span is when a change may have come: some commit of it.
func (t *table) span(group []string) (out explain.Span) {
	for i, id := range group {
		one, known := t.spans[cmp.Or(t.Judged.BroughtBy(id), id)]
		if !known { // of no place in the chain: any time
			one = explain.Span{By: t.Now}
		}
		if i == 0 || one.After.Before(out.After) {
			out.After = one.After
		}
		if one.By.After(out.By) {
			out.By = one.By
		}
	}
	return out
}

func (t *table) row(group []string, span explain.Span) (Row, error) {
	id := group[0]
	row := Row{
		Repository: t.Repository.Name, Branch: t.Repository.Branch, Exceptions: []Exception{}, Records: []Record{}, Commit: id, Commits: group, BroughtBy: t.Judged.BroughtBy(id),
		URL: t.Links.Page(0, forge.Posted{}, id), CameBy: ledger.FormatTime(span.By), ClaimedAt: claimed(t.commits[id].When),
		Deployments: t.deployments(id),
	}
	if !span.After.IsZero() {
		row.CameAfter = ledger.FormatTime(span.After)
	}
	e, is := t.Judged.Explained[id]
	if !is {
		u := t.Judged.Unexplained[id]
		row.Subject = u.Subject
		code, known := codes[u.Code]
		if !known {
			code = Unexplained
		}
		row.add(code, cmp.Or(u.Reason, "nothing accounts for it"))
		for _, tx := range u.Transactions {
			if err := t.record(&row, tx, false); err != nil {
				return row, err
			}
		}
		return row, t.review(&row, nil, span)
	}
	row.Subject, row.ExplainedBy, row.Signer, row.Strength = e.Subject, string(e.By), e.Signer, string(e.Strength)
	switch e.By {
	case explain.ByTransaction, explain.ByPullRequest:
		if len(e.Transactions()) == 0 {
			row.add(RecordInvalid, "it has no transaction")
		}
		for _, tx := range e.Transactions() {
			if err := t.record(&row, tx, true); err != nil {
				return row, err
			}
		}
		if e.Late != "" {
			row.add(ApprovedLate, e.Late)
		}
	case explain.ByBot:
		row.add(NoApproval, "a rule of the Policy lets in what this bot signs; nobody approved it")
	case explain.ByMerge, explain.ByEmpty: // what it merges has rows of its own
	default:
		row.add(Unexplained, "what accounts for it is not known here")
	}
	return row, t.review(&row, e.Transactions(), span)
}

// came is when a change came at the latest, or, where the ledger has not named it yet, at the earliest: an exception is not due
// later because nobody records anything.
func (t *table) came(span explain.Span) time.Time {
	switch {
	case span.By.Before(t.Now):
		return span.By
	case span.After.IsZero():
		return t.Index.Began
	}
	return span.After
}

// codes are those of commits that nothing accounts for, where there is one that says more than that.
var codes = map[explain.Reason]Code{
	explain.Denied: Denied, explain.RecordInvalid: RecordInvalid, explain.UnknownPolicy: UnknownPolicy, explain.WeakDecision: WeakDecision, explain.NotApproved: NotApproved,
	explain.NotApplied: NotApplied, explain.UsedUp: UsedUp, explain.PartlyApproved: PartlyApproved, explain.CannotTell: CannotTell,
}

func (r *Row) add(code Code, text string) {
	r.Exceptions = append(r.Exceptions, Exception{code, ledger.OneLine(text, 500)})
}

// claimed is a time that a commit gives itself, "" for one that no date has.
func claimed(seconds int64) string {
	if seconds <= 0 || seconds >= 253402300800 { // the year 10000
		return ""
	}
	return ledger.FormatTime(time.Unix(seconds, 0))
}
