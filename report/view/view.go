// Package view says what people are told of a transaction: where it stands and why, what
// was asked for, who gave it and how much that proves, what may be overlooked, which files
// change and by how much, and what is next. It is one value, which the screens,
// pages, comments, check runs and evidence lay out; they decide nothing. It is pure, and its
// texts hold words of others as they are: whoever lays them out makes them safe to show.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// Facts are what a view is made of.
type Facts struct {
	State     plain.State
	Verdict   *approval.Verdict // nil where it cannot be told
	Proposers []ledger.Actor    // all who proposed these bytes
	Ended     string            // the record's reason of the end, "" for none
	GateOnly  bool              // the pull request's own diff: nothing is applied
	Written   bool              // whether it was applied or merged, as the state alone does not tell
	Risks     *risk.List        // nil where they are not known
	Files     []File

	// What is next follows from these.
	ID          string // as people are to call it
	Status      ledger.Status
	PullRequest int
	Redacted    bool // the ledger has the patch without its secrets
	Moved       bool // files are not any more as the review found them
}

// A Transaction is what people are told of one.
type Transaction struct {
	State        plain.State
	Banner       Banner
	Files        []File
	Requirements []Requirement
	Others       []Answer // decisions that met no requirement: denials, and what does not count
	Risks        []Risks  // the most dangerous first
	Next         []Step   // what takes it on
	Lapsed       *Answer  // an approval that counted once, nil where there is none or its author has given another
}

// A Banner is where a transaction stands, in a line, and what follows from it, "" for nothing.
type Banner struct {
	Tone   plain.Tone
	Title  string
	Detail string
}

// A Requirement is one approval that the Policy asks for.
type Requirement struct {
	Kind        string
	Fingerprint string   // of what answers name
	What        string   // "the change"
	Paths       []string // that it is about, nil for all
	From        string   // who can give it, "" for anybody who may approve
	Signed      bool     // whether only a signed answer counts
	Required    int
	Approved    int
	Answers     []Answer // that count for it
}

// Met reports whether enough people approved.
func (r Requirement) Met() bool { return r.Approved >= r.Required }

// An Answer is one decision.
type Answer struct {
	Number int // of the decision in the record, from 0
	By     ledger.Actor
	At     string // RFC 3339
	Said   string // the reason that its author gave
	Where  string // "in a shell"
	Key    string // the fingerprint of the key that signed it, "" for none
	Verb   string // "approve", "deny"
	Denies bool
	Own    bool // whether its author proposed these bytes
	Asked  bool // whether its author asked for them
	Counts bool
	Why    string // why it does not count, as a sentence whose subject is "it"
	Proof  string // how much it proves
}

// Of is the view of a transaction.
func Of(f Facts) Transaction {
	t := Transaction{State: f.State, Files: noted(f.Files, f.Risks)}
	if f.Verdict != nil {
		t.answers(f)
	}
	if f.Risks != nil {
		t.Risks = RisksOf(*f.Risks)
	}
	t.Banner, t.Next = t.banner(f), t.next(f)
	return t
}

// Flags are what `approve` takes to answer a requirement.
func (r Requirement) Flags() (flags []string) {
	if word := policy.Word(r.Kind); word != "" {
		flags = append(flags, "--fingerprint", word)
	}
	if r.Signed {
		flags = append(flags, "--sign")
	}
	return flags
}

// Missing are the requirements that still lack an approval, of each fingerprint the first.
func Missing(all []Requirement) (out []Requirement) {
	for _, r := range all {
		if !r.Met() && !slices.ContainsFunc(out, func(o Requirement) bool { return o.Fingerprint == r.Fingerprint }) {
			out = append(out, r)
		}
	}
	return out
}

// Open are the requirements that are not met.
func (t Transaction) Open() []Requirement {
	return slices.DeleteFunc(slices.Clone(t.Requirements), Requirement.Met)
}

// answers sorts the decisions by the requirement that they met.
func (t *Transaction) answers(f Facts) {
	all := make([]Answer, len(f.Verdict.Decisions))
	for i, d := range f.Verdict.Decisions {
		all[i] = answer(i, d, f)
		again := func(o approval.Judged) bool {
			return o.Counted && o.Fingerprint == d.Fingerprint && o.Author.ID == d.Author.ID
		}
		if d.Recorded && !d.Counted && d.Decision == ledger.Approve && t.Lapsed == nil && !slices.ContainsFunc(f.Verdict.Decisions, again) {
			t.Lapsed = &all[i]
		}
	}
	used := map[int]bool{}
	for _, n := range f.Verdict.Needs {
		r := Requirement{
			Kind: n.Kind, Fingerprint: n.Fingerprint, What: What(n.Kind), Paths: n.Of.Paths,
			From: n.Of.People(), Signed: n.Signed, Required: n.Required, Approved: n.Approved,
		}
		for i, d := range f.Verdict.Decisions {
			by := slices.Contains(n.By, d.Author.ID) || n.By == nil && n.Approved > 0 && !used[i] // a verdict that was read as JSON does not tell
			if d.Counted && d.Decision == ledger.Approve && d.Fingerprint == n.Fingerprint && by && (!n.Signed || d.SignedBy != "") {
				r.Answers, used[i] = append(r.Answers, all[i]), true
			}
		}
		t.Requirements = append(t.Requirements, r)
	}
	for i, a := range all {
		if !used[i] {
			t.Others = append(t.Others, a)
		}
	}
}

func answer(i int, d approval.Judged, f Facts) Answer {
	a := Answer{
		Number: i, By: d.Author, At: d.CreatedAt, Said: d.Said, Where: Where(d.Source), Key: d.SignedBy, Verb: string(d.Decision), Denies: d.Decision == ledger.Deny,
		Counts: d.Counted, Asked: d.Asked,
		Own: slices.ContainsFunc(f.Proposers, func(p ledger.Actor) bool { return p.Kind == d.Author.Kind && p.ID == d.Author.ID }),
	}
	if !d.Counted {
		a.Why = plain.Why(d)
	}
	proof, weak := Proof(d.Source, d.SignedBy != "", d.Author)
	if done := f.Written || f.State.Tone() == plain.ToneGood; done && d.Counted && d.SignedBy == "" && !weak { // Asked for again before it was carried out
		proof += ", asked twice"
	}
	if a.Own {
		proof = "the proposer themself, " + proof
	}
	if a.Asked {
		proof = AskedFor + ", " + proof
	}
	a.Proof = proof
	return a
}

// AskedFor is what is said of an approval by somebody who asked for the change.
const AskedFor = "asked for by the approver"

// Asked is AskedFor behind a title, where a requirement was met by those alone who asked for the change or proposed it.
func (t Transaction) Asked() string {
	for _, r := range t.Requirements {
		if slices.ContainsFunc(r.Answers, func(a Answer) bool { return a.Asked }) && !slices.ContainsFunc(r.Answers, func(a Answer) bool { return !a.Asked && !a.Own }) {
			return "; " + AskedFor
		}
	}
	return ""
}

// Approvers are those who broke the glass, or whose approval counts where nobody did: by name, each once.
func (t Transaction) Approvers(brokeGlass bool) (names []string) {
	for _, r := range t.Requirements {
		for _, a := range r.Answers {
			if name := name(a.By); brokeGlass == (r.Kind == policy.KindBreakGlass) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func name(a ledger.Actor) string { return cmp.Or(a.Login, a.ID, "somebody") }

// Needs says what is missing, such as "the change (0 of 1), protected paths (1 of 2)"; "" for nothing.
func (t Transaction) Needs() string {
	return Joined(t.Open(), ", ", func(r Requirement) string {
		return fmt.Sprintf("%s (%d of %d)", strings.TrimPrefix(One(r.Kind), "a "), r.Approved, r.Required)
	})
}

// ByProposer are the answers to a requirement that those alone have met who proposed the change, none where there is
// no such requirement.
func (t Transaction) ByProposer() []Answer {
	for _, r := range t.Requirements {
		if !slices.ContainsFunc(r.Answers, func(a Answer) bool { return !a.Own }) && len(r.Answers) > 0 {
			return r.Answers
		}
	}
	return nil
}

func (t Transaction) banner(f Facts) Banner {
	b := Banner{Tone: f.State.Tone()}
	applied, nothing := "applied", "Nothing was applied."
	if f.GateOnly {
		applied, nothing = "merged", "It was not merged."
	}
	switch f.State {
	case plain.Damaged:
		b.Title, b.Detail = "This record does not verify", "Nothing here counts as approved."
	case plain.Applied, plain.Merged:
		b.Tone, b.Title = t.carriedOut(f.Verdict, applied)
	case plain.Unchecked:
		b.Tone, b.Title, b.Detail = plain.ToneOpen, "Applied; not checked yet", "Whether the files are as approved has not been recorded."
	case plain.CheckFailed, plain.ApplyFailed:
		b.Title, b.Detail = Upper(string(f.State)), nothing
		if f.Written {
			b.Title, b.Detail = "Applied; the check failed", "The files are not as they were approved, or a command did not pass."
		}
	case plain.Denied:
		b.Title, b.Detail = t.denial(f.Ended), "These bytes cannot be applied any more."
	case plain.Approved, plain.Mergeable:
		b.Title = t.approved(f.Verdict, ", not "+applied+" yet", Upper(string(f.State)))
		if f.Verdict != nil && f.Verdict.BreakGlass {
			b.Tone = plain.ToneBad
		}
	case plain.Superseded, plain.Closed:
		b.Title = t.ended(f, applied)
	case plain.Waits:
		b.waits(t, nothing)
	default:
		b.Title = Upper(string(f.State))
	}
	return b
}

// approved is a title of what was approved, with who did; otherwise is that of what nobody is known to have
// approved in all that was asked for. A broken glass is no approval.
func (t Transaction) approved(v *approval.Verdict, rest, otherwise string) string {
	if v == nil || v.State != approval.Approved {
		return otherwise
	}
	switch who := List(t.Approvers(v.BreakGlass)); {
	case who == "":
		return otherwise
	case v.BreakGlass:
		return "The glass was broken by " + who + rest
	default:
		return "Approved by " + who + rest + t.Asked()
	}
}

// carriedOut says who approved what was applied or merged, and whether that is as it should be.
func (t Transaction) carriedOut(v *approval.Verdict, applied string) (plain.Tone, string) {
	title, own := t.approved(v, ", and "+applied, ""), t.ByProposer()
	switch {
	case v != nil && v.State == approval.Denied:
		return plain.ToneOpen, Upper(applied) + "; since then " + strings.Replace(t.denial(""), "D", "d", 1)
	case title == "":
		return plain.ToneOpen, Upper(applied) + "; who approved it cannot be told"
	case v.BreakGlass:
		return plain.ToneBad, Upper(applied) + " without the approvals that it needs: the glass was broken by " + List(t.Approvers(true))
	case own != nil:
		return plain.ToneOpen, Upper(applied) + ", but approved by its own proposer, " + own[0].Where
	}
	return plain.ToneGood, title
}

// waits says how many answers are missing, and of what.
func (b *Banner) waits(t Transaction, nothing string) {
	missing, all := 0, 0
	for _, r := range t.Requirements {
		missing, all = missing+max(0, r.Required-r.Approved), all+r.Required
	}
	if all == 0 {
		b.Title, b.Detail = "Not approved yet", nothing
		return
	}
	b.Title = fmt.Sprintf("Not approved yet: %d of %s missing", missing, ledger.Plural(all, "answer is", "answers are"))
	kinds := Distinct(t.Open(), func(r Requirement) string { return r.What })
	b.Detail = "It waits for approval of " + List(kinds) + ". " + nothing
}

// ended says why a transaction is over that was not carried out, or was closed after that.
func (t Transaction) ended(f Facts, did string) string {
	over, otherwise, why := "; never "+did, Upper(string(f.State)), EndedWords(f.Ended)
	if f.State == plain.Closed {
		over = "; closed without being " + did
	}
	switch {
	case f.Written:
		over, otherwise = " and "+did+"; "+string(f.State), Upper(did)+"; "+string(f.State)
	case strings.HasPrefix(why, string(f.State)): // as in "superseded by tx_…"
		otherwise, why = Upper(why), ""
	}
	return strings.TrimSuffix(t.approved(f.Verdict, over, otherwise)+": "+why, ": ")
}

// Ended is the record's reason why a transaction ended without being carried out, nor denied; ""
// where it did not.
func Ended(log *ledger.Log) string {
	if s := log.Transaction().Status; s != ledger.Superseded && s != ledger.Interrupted {
		return ""
	}
	return Reason(log)
}

// Reason is that of the last change of status, as the record has it.
func Reason(log *ledger.Log) string {
	if last := ledger.Last[*ledger.StatusChange](log); last != nil {
		return last.Reason
	}
	return ""
}

// denial is who denied, and why.
func (t Transaction) denial(ended string) string {
	for _, a := range t.Others {
		if a.Denies && a.Counts {
			return strings.TrimSuffix(fmt.Sprintf("Denied by %s: “%s”", name(a.By), a.Said), ": “”")
		}
	}
	return strings.TrimSuffix("Denied: "+ended, ": ")
}

// Joined are the texts of some in one, with a sign between them.
func Joined[T any](all []T, sign string, of func(T) string) string {
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = of(one)
	}
	return strings.Join(out, sign)
}

// Distinct are the texts of some, each once.
func Distinct[T any](all []T, of func(T) string) (out []string) {
	for _, one := range all {
		if text := of(one); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// List is some names in a sentence.
func List(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Upper is a text with a capital letter, as a sentence begins.
func Upper(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
