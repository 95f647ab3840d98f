package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// The states of a check run.
const (
	CheckCompleted  = "completed"
	CheckInProgress = "in_progress"
)

// The conclusions of a completed check run that this package draws.
const (
	CheckSuccess        = "success"
	CheckNeutral        = "neutral"
	CheckFailure        = "failure"
	CheckActionRequired = "action_required"
)

// transactionCheck begins the name of each transaction's check run.
const transactionCheck = "countersign/"

// CheckName is the name of the check run of a transaction with a patch.
func CheckName(patchID string) string { return transactionCheck + patchID[:min(12, len(patchID))] }

// CheckRun renders the report as a check run of its own name. A proposal that
// nobody answered, or that a human denied, is neutral: it must not paint a pull
// request red.
func (r Report) CheckRun() forge.Check {
	c := forge.Check{
		Name: CheckName(r.PatchID), Title: r.title(), ExternalID: r.TransactionID,
		Status: CheckCompleted, Conclusion: r.conclusion(), Text: r.resultBlock(),
	}
	if r.Status == ledger.Created || r.Status == ledger.InProgress {
		c.Status, c.Conclusion = CheckInProgress, ""
	}
	marker := tipMarker(r.LedgerRef, r.LedgerCommit)
	p := newPage(MaxCheckText - len(marker))
	var cut string
	c.Annotations, cut = r.annotations()
	r.write(p, Links{})
	p.write(cut)
	c.Summary = p.String() + marker
	return c
}

func (r Report) title() string {
	title := "waiting: " + r.needed()
	if r.needed() == "" {
		title = r.Headline()
	}
	if r.verdict().BreakGlass {
		title = "BREAK-GLASS: " + title
	}
	return shorten(Clean(title))
}

func (r Report) conclusion() string {
	switch {
	case r.Validation != nil && !r.Validation.OK, r.State == plain.CheckFailed, r.Status == ledger.Failed:
		return CheckFailure
	case r.ApplyResult != nil && r.ApplyResult.Outcome != ledger.OutcomeSuccess:
		return CheckFailure
	case r.Status == ledger.Applied || r.Status == ledger.Completed:
		return CheckSuccess
	case r.GateOnly && r.Ended == "" && r.verdict().State == approval.Approved:
		return CheckSuccess
	}
	return CheckNeutral
}

// resultBlock is the canonical ApplyResult, whole or not at all: half of a
// document has another hash and no meaning.
func (r Report) resultBlock() string {
	if r.ApplyResult == nil {
		return ""
	}
	line, err := canon.Line(r.ApplyResult)
	if err != nil {
		return "The ApplyResult cannot be shown: " + words(err.Error()) + "\n"
	}
	if text := fenced("json", string(line)); len(text) <= MaxCheckText {
		return text
	}
	return "The ApplyResult is too long to be shown here; the ledger has it" + r.seeAll() + ".\n"
}

// maxAnnotations is how many a report has: a few requests' worth.
const maxAnnotations = 200

// annotations are at the files that failed, and a sentence about those that
// were left out. A path that is none of the change's is no file of it.
func (r Report) annotations() (notes []forge.Annotation, cut string) {
	paths := map[string]bool{}
	for _, f := range r.Files {
		paths[f.Path], paths[f.From] = true, true
	}
	delete(paths, "")
	over := 0
	add := func(path, title, message string) {
		if paths[path] && len(notes) < maxAnnotations {
			notes = append(notes, forge.Annotation{
				Path: path, StartLine: 1, EndLine: 1, Level: "failure",
				Title: "countersign: " + Clean(shorten(title)), Message: Clean(shorten(message)),
			})
		} else if paths[path] {
			over++
		}
	}
	for _, o := range r.failed() {
		add(o.Path, o.Op+" failed", o.Error)
	}
	for _, v := range r.violations() {
		add(v.Path, v.RuleID, v.Message)
	}
	if over > 0 {
		cut = fmt.Sprintf("**Cut:** %s not annotated in the files.\n", Counted(over, "failure"))
	}
	return notes, cut
}

// violations are those of the apply, then those of the validation.
func (r Report) violations() []canon.Violation {
	return slices.Concat(r.applied().Violations, cmp.Or(r.Validation, &canon.Report{}).Violations)
}

// LedgerCheckName is the name of the check run that says where a ledger is.
func LedgerCheckName(ref string) string { return "countersign ledger " + ref }

// LedgerCheck is that check run. A job that remembers nothing finds there how far
// the ledger had come, whoever has moved its ref since (T51, T81).
func LedgerCheck(ref, tip string) forge.Check {
	text := "The ledger " + name(ref) + " is at " + name(tip) + ". A later job refuses one that is not there, or does not descend from it.\n\n"
	return forge.Check{
		Name: LedgerCheckName(ref), Title: fmt.Sprintf("at %.12s", tip), Status: CheckCompleted, Conclusion: CheckNeutral,
		Summary: text + tipMarker(ref, tip),
	}
}

// IsCheckOf reports whether a check run's name is that of a transaction.
func IsCheckOf(name string) bool { return strings.HasPrefix(name, transactionCheck) }

// tipMarker is the last line of every check run's summary. The ref stands there
// as a hash, as its name may be anything.
func tipMarker(ref, tip string) string {
	if tip == "" {
		return ""
	}
	return marker("ledger", markOf(ref), tip)
}

func markOf(ref string) string {
	sum := sha256.Sum256([]byte(ref))
	return hex.EncodeToString(sum[:8])
}

// TipIn returns the tip of a ledger that a check run's summary ends with, "" for
// none. A last line that begins as one with a tip does and has none is an error.
func TipIn(summary, ref string) (string, error) {
	summary = strings.TrimSpace(summary)
	last := summary[strings.LastIndexByte(summary, '\n')+1:]
	fields, is := marked(last, "ledger")
	switch {
	case !is:
		return "", nil
	case len(fields) != 2 || !canon.IsGitID(fields[1]):
		return "", fmt.Errorf("%+q names no tip of a ledger", last[:min(len(last), 200)])
	case fields[0] != markOf(ref):
		return "", nil
	}
	return fields[1], nil
}

// GuardName is the name of the check run that branch protection can require.
const GuardName = "countersign"

// A Guard is the sum of the gate-only transactions of one head commit. It is a
// success only if there is one, each is approved, nothing went wrong, and no
// other pull request would ride on it.
type Guard struct {
	HeadCommit   string
	Transactions []Report // each with its Verdict
	Siblings     []Sibling
	Denied       []string // denials elsewhere of what the commit does, plain text
	Errors       []string // what could not be read or told, plain text
	Dedicated    bool     // the token is an App's that does nothing else
}

// A Sibling is another open pull request to a gated base that has the same head
// commit and is not approved (T16).
type Sibling struct {
	PullRequest int
	Base        string
	Reason      string
}

// CheckRun is failure on any error or denial, action_required while anything is
// pending, else success. That of a denial links to its record.
func (g Guard) CheckRun() forge.Check {
	conclusion, say := g.conclude()
	broken, standing := Comment{Transactions: g.Transactions}.broken(), g.standing()
	p := newPage(MaxCheckText)
	p.write(broken)
	p.write("### Countersign: " + words(say) + "\n\n")
	p.list(list{"", points("Error", g.Errors), maxNames, "error", ""})
	p.list(list{"", points("Denied", g.Denied), maxNames, "denial", ""})
	const head = "These pull requests have the same head commit and are not approved. Merging one of them would merge these bytes without an answer:\n\n"
	p.list(list{head, each(g.Siblings, func(s Sibling) string {
		return fmt.Sprintf("- pull request %d to %s: %s\n", s.PullRequest, name(s.Base), words(plain.Reason(s.Reason)))
	}), maxNames, "pull request", ""})
	// The denied and the pending come first.
	order := []approval.State{approval.Approved, approval.Pending, "", approval.Denied}
	worse := func(a, b Report) int { return slices.Index(order, b.state()) - slices.Index(order, a.state()) }
	p.list(list{"", each(slices.SortedStableFunc(slices.Values(g.Transactions), worse), func(r Report) string {
		return fmt.Sprintf("Pull request %d, transaction %s: **%s**.\n\n%s%s", r.PullRequest, r.linked(), r.says(words, ""), r.risks(p.left/len(g.Transactions), Links{}), r.asks(Links{}, false)+r.effect())
	}), 50, "transaction", ""})
	p.write("Head commit: " + name(g.HeadCommit) + "\n\n")
	p.write(standing)
	c := forge.Check{Name: GuardName, Status: CheckCompleted, Conclusion: conclusion, Title: say, Summary: p.String(), Text: standing}
	if denied := g.denied(); denied != nil {
		c.DetailsURL = denied.Record
	}
	if broken != "" {
		c.Title = "BREAK-GLASS: " + c.Title
	}
	return c
}

// conclude is the conclusion and its sentence. What is no known state is an error.
func (g Guard) conclude() (conclusion, say string) {
	count := map[approval.State]int{}
	for _, r := range g.Transactions {
		count[r.state()]++
	}
	switch {
	case len(g.Errors) > 0:
		return CheckFailure, "not everything could be read, so nothing counts as approved"
	case len(g.Denied) > 0 || count[approval.Denied] > 0:
		if denied := g.denied(); denied != nil {
			return CheckFailure, ledger.OneLine(Clean(denied.Verdict.Reason), 200)
		}
		return CheckFailure, "denied"
	case len(g.Transactions) == 0:
		return CheckFailure, "nothing was put to people for approval"
	case count[""] > 0:
		return CheckFailure, "a transaction has no verdict"
	case count[approval.Pending] > 0:
		for _, r := range g.Transactions {
			if r.state() == approval.Pending && r.needed() != "" {
				return CheckActionRequired, "waiting: " + r.needed()
			}
		}
		return CheckActionRequired, string(plain.Waits)
	case len(g.Siblings) > 0:
		return CheckActionRequired, "withheld, another pull request has the same head and is not approved"
	}
	return CheckSuccess, "approved"
}

// denied is the first transaction that is, nil if none is.
func (g Guard) denied() *Report {
	i := slices.IndexFunc(g.Transactions, func(r Report) bool { return r.state() == approval.Denied })
	if i < 0 {
		return nil
	}
	return &g.Transactions[i]
}

// state is the Verdict's, "" where there is none that is known.
func (r Report) state() approval.State {
	if at := r.verdict().State; slices.Contains([]approval.State{approval.Approved, approval.Pending, approval.Denied}, at) {
		return at
	}
	return ""
}

// standing says what this check is worth (T60, T67).
func (g Guard) standing() string {
	if g.Dedicated {
		return "An App of your own writes this check. Branch protection can name that App as the expected source.\n"
	}
	return "**Advisory:** any workflow of this repository can get the token that writes this check, and so can forge it. " +
		"The signed ledger is the truth. To make the check binding, use the token of an App of your own, and name that App as the expected source in branch protection.\n"
}
