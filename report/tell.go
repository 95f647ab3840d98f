package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

// A Step is what to type next, and what for. Type can be pasted into a shell, or into a
// comment on the pull request where For says so.
type Step struct{ Type, For string }

// Steps take a transaction, called by an id, on from where it stands: none where nobody has
// anything to type. again writes a command line.
func (r Report) Steps(id string, again func(args ...string) string) (out []Step) {
	for _, s := range r.viewAs(id).Next {
		if s.Command != nil {
			s.Line = again(s.Command...)
		}
		out = append(out, Step{s.Line, s.For})
	}
	return out
}

// NextStep says in one line what happens next.
func (r Report) NextStep(again func(args ...string) string) string {
	steps := r.Steps(r.TransactionID, again)
	switch at := r.State; {
	case len(steps) > 0:
		return view.Joined(steps, ", ", func(s Step) string { return s.Type + " (" + s.For + ")" })
	case at == plain.Denied:
		return "nothing: nobody can apply these bytes any more, and a different change can be proposed"
	case at == plain.Mergeable:
		return "the pull request is merged, once its check has passed"
	case at.Tone() == plain.Over:
		return "nothing: it has ended, and the change can be proposed again"
	}
	return "nothing: it is done"
}

// standsIn is where it stands, with why it ended: "superseded: README.md changed meanwhile".
// show makes the foreign text in it safe.
func (r Report) standsIn(show func(string) string) string {
	if why := view.EndedWords(r.Ended); why != "" {
		return string(r.State) + ": " + show(why)
	}
	return string(r.State)
}

// View is what people are told of the transaction.
func (r Report) View() view.Transaction { return r.viewAs(r.TransactionID) }

// viewAs is the view in which people are to call the transaction by this id.
func (r Report) viewAs(id string) view.Transaction {
	proposers := []ledger.Actor{r.Proposer}
	for _, p := range r.Proposals {
		proposers = append(proposers, p.Proposer)
	}
	return view.Of(view.Facts{
		State: r.State, Verdict: r.Verdict, Proposers: proposers, Ended: r.Ended, GateOnly: r.GateOnly, Files: r.Files,
		Written: r.ApplyResult != nil && r.ApplyResult.Outcome == ledger.OutcomeSuccess && !r.ApplyResult.DryRun, Risks: r.Risks,
		ID: id, Status: r.Status, PullRequest: r.PullRequest, Redacted: r.Redacted, Moved: len(r.Moved) > 0,
	})
}

// Result is what a command came to, for the person who ran it: one line, the files that were
// written, and what to type next, alone on its line. by is whose decision was recorded just now,
// "" for none.
func (r Report) Result(by string, again func(args ...string) string, columns int, s Style) string {
	id, on := lookup.ShortID(r.TransactionID), ""
	if r.PullRequest > 0 {
		on = fmt.Sprintf(" on pull request %d", r.PullRequest)
	}
	funcs := template.Funcs{
		"called": func() string { return id }, "about": func() string { return cut(r.about(), 60) },
		"by": func() string { return by }, "on": func() string { return on },
		"tinted": template.Raw(func(parts ...any) string { return s.paint(tones[r.State.Tone()], join(parts...)) }),
		"why": func() string { // as whoever denied it said
			_, why, _ := strings.Cut(r.Verdict.Reason, ": ")
			return strings.TrimSuffix(": "+why, ": ")
		},
		"waits": func() bool { return r.State == plain.Waits }, "done": func() bool { return r.State == plain.Applied },
		"stands": func() string { return r.standsIn(Clean) }, "where": r.where, "operations": r.Operations,
		"uncounted": func() []view.Answer { // the newest
			all := slices.DeleteFunc(r.View().Others, func(a view.Answer) bool { return a.Counts })
			return all[max(0, len(all)-maxReasons):]
		},
		"other": other, "risks": template.Raw(func() string { return Risks(r.list(), columns, 3, s) }),
	}
	text := s.fill("glass", r) + r.told(r.came(by), s, funcs) + r.told("further", s, funcs)
	return Fold(text, columns) + r.toCommit(s.Top) + StepLines(r.Steps(id, again)) // commands are pasted, and not folded
}

// came is the name of the template that says what a command came to.
func (r Report) came(by string) string {
	if res := r.ApplyResult; res != nil && !(res.Outcome == ledger.OutcomeRefused && r.Waits()) {
		switch {
		case res.Outcome != ledger.OutcomeSuccess:
			return "not applied"
		case res.DryRun:
			return "dry run"
		case r.State == plain.CheckFailed:
			return "check failed"
		}
		return "applied"
	}
	switch at := r.State; {
	case by != "" && at == plain.Denied:
		return "denied now"
	case by != "" && at == plain.Approved:
		return "approved now"
	case by != "" && r.Waits():
		return "recorded"
	case at == plain.Denied:
		return "denied"
	case r.Waits(), at == plain.Approved, at == plain.Mergeable:
		return "stands"
	}
	return "ended"
}

// told is a template for a terminal about the report.
func (r Report) told(name string, s Style, more template.Funcs) string {
	funcs := template.Funcs{
		"about": r.about, "approvals": r.approvals, "filesLine": r.filesLine, "found": r.found, "moved": r.moved, "violations": r.unfit, "answers": r.answered,
		"author": r.author, "further": r.further, "drift": func() string { return Drift(r.verdict().Drift) },
	}
	maps.Copy(funcs, more)
	return s.with(name, r, funcs)
}

var tones = map[plain.Tone]string{plain.ToneOpen: yellow, plain.ToneGood: green, plain.ToneBad: red}

// Waits reports whether approvals are what the transaction needs next.
func (r Report) Waits() bool {
	tone := r.State.Tone()
	return tone != plain.Over && tone != plain.ToneGood && r.Status != ledger.Applied && r.verdict().State == approval.Pending
}

// about is what a change is for, in its proposer's words in quotation marks, or what it does to which files.
func (r Report) about() string {
	if r.Summary != "" {
		return Quoted(r.Summary)
	}
	before, after := map[string]*string{}, map[string]*string{}
	for _, f := range r.Files {
		if f.From != "" {
			after[f.From] = nil
		}
		before[cmp.Or(f.From, f.Path)], after[f.Path] = f.Before, f.After
	}
	return "(" + Clean(lookup.DoesTo(before, after)) + ")"
}

// approvals are how many of each kind there are, of how many.
func (r Report) approvals() string {
	if r.Verdict == nil {
		return "nobody was asked"
	}
	return Clean(strings.Replace(reasonOf(r.Verdict), " approvals", "", 1))
}

// StepLines are steps alone on a line each, as they are typed.
func StepLines(steps []Step) string {
	wide := 0
	for _, s := range steps {
		wide = max(wide, len(s.Type))
	}
	var b strings.Builder
	for i, s := range steps {
		switch {
		case wide <= 50:
			fmt.Fprintf(&b, "    %-*s  # %s\n", wide, Clean(s.Type), s.For)
			continue
		case strings.HasPrefix(s.Type, "/") && (i == 0 || steps[i-1].For != s.For):
			fmt.Fprintf(&b, "    # %s:\n", s.For)
		}
		b.WriteString("    " + Clean(s.Type) + "\n")
	}
	return b.String()
}

// where says as which commit it was applied, "" where it is none.
func (r Report) where() string {
	if r.AppliedCommit == "" {
		return ""
	}
	where := " as commit " + r.AppliedCommit[:min(12, len(r.AppliedCommit))]
	if branch, ok := strings.CutPrefix(r.AppliedBranch, "refs/heads/"); ok {
		where += " on " + branch
	}
	return where
}

// toCommit is the line that commits what was written to the working tree, "" where there is nothing to
// commit. top is where that begins, "" for here.
func (r Report) toCommit(top string) string {
	res := r.ApplyResult
	if res == nil || res.Outcome != ledger.OutcomeSuccess || res.DryRun || r.AppliedCommit != "" || len(res.Operations) == 0 {
		return ""
	}
	git := "git"
	if top != "" {
		git += " -C " + Clean(escape.ShellQuote(top))
	}
	next := " status"
	if names := paths(r.Operations()); names != "" {
		next = " add " + names + " && " + git + " commit"
	}
	return "Not committed yet:  " + git + next + "\n"
}

// paths are those of some operations as a shell reads them, "" where they are too many for a line, or
// cannot be typed: whatever else is in the tree is nothing to add with them.
func paths(ops []ledger.Operation) string {
	var out []string
	for _, o := range ops {
		if Clean(o.Path) != o.Path || len(ops) > maxRows {
			return ""
		}
		out = append(out, o.Path)
	}
	return escape.Pathspecs(out, "")
}

// Text is all that there is to know of a transaction, for a person: where it stands, what
// is missing, what to look at and what to type. long adds hashes, ids and addresses.
func (r Report) Text(again func(args ...string) string, columns int, long bool, s Style) string {
	at := r.standsIn(Clean)
	switch {
	case r.Waits():
		at += " (" + r.approvals() + ")"
	case r.State == plain.Denied && r.Verdict != nil:
		at = r.approvals()
	}
	funcs := template.Funcs{
		"files":     func() []File { return r.View().Files },
		"stands":    template.Raw(func() string { return s.paint(tones[r.State.Tone()], at) }),
		"riskCount": func() string { return cmp.Or(strings.TrimPrefix(strconv.Itoa(r.list().Count()), "0"), "none found") },
		"risks":     template.Raw(func() string { return Risks(r.list(), columns, risksHeight, s) }),
		"claims":    template.Raw(func() string { return r.claimLines(maxClaims) }),
		"apply":     template.Raw(func() string { return r.applyText(s) }),
		"long":      func() bool { return long }, "unwritten": r.unwritten,
		"next": template.Raw(func() string { // is pasted, and not folded
			return strings.ReplaceAll(strings.TrimSpace(StepLines(r.Steps(lookup.ShortID(r.TransactionID), again))), "\n    ", "\n       ")
		}),
		"given": func() string {
			if file := strings.TrimPrefix(r.InputSHA256, "sha256:"); file != r.PatchID {
				return file
			}
			return ""
		},
		"supersedes": func() string { return strings.Join(r.Supersedes, ", ") }, "signed": r.proofs,
	}
	return Fold(r.told("transaction", s, funcs), columns) + r.told("ids", s, funcs)
}

// applyText says what the state does not of an apply.
func (r Report) applyText(s Style) string {
	switch res := r.ApplyResult; {
	case res != nil && res.Outcome != ledger.OutcomeSuccess:
		return s.paint(red, Clean(cmp.Or(res.Error, string(r.State))))
	case res != nil && r.State.Tone() != plain.ToneGood:
		return "it was applied, and read back"
	}
	return ""
}

// unfit are what was found wrong with the result.
func (r Report) unfit() []canon.Violation {
	if r.Validation == nil || r.Validation.OK {
		return nil
	}
	return r.Validation.Violations
}

// unwritten are the operations that did not do what they should.
func (r Report) unwritten() []ledger.Operation {
	return slices.DeleteFunc(r.Operations(), func(o ledger.Operation) bool { return o.Status == ledger.StatusSuccess })
}

// An answerLine is an answer with the requirement that it meets, or why it does not count; or paths of a requirement that
// nobody has answered.
type answerLine struct {
	view.Answer
	Mark, Colour, What, Paths string
}

// answered are the answers, and the requirements with paths of their own that lack some.
func (r Report) answered() (lines []answerLine) {
	v := r.View()
	for _, n := range v.Requirements {
		for _, a := range n.Answers {
			lines = append(lines, answerLine{Answer: a, Mark: "ok", Colour: green, What: n.What})
		}
		if len(n.Paths) > 0 && !n.Met() {
			lines = append(lines, answerLine{Mark: "--", Colour: yellow, What: n.What, Paths: shortenTo(strings.Join(n.Paths, ", "), 2*escape.MaxWords)})
		}
	}
	for _, a := range v.Others {
		lines = append(lines, other(a))
	}
	return lines
}

// other is an answer that meets no requirement.
func other(a view.Answer) answerLine {
	switch {
	case a.Counts && a.Denies:
		return answerLine{Answer: a, Mark: "no", Colour: red, What: "denied"}
	case a.Counts:
		return answerLine{Answer: a, Mark: "ok", Colour: green, What: a.Verb}
	}
	return answerLine{Answer: a, Mark: "--", Colour: yellow, What: cmp.Or(a.Verb, "unclear")}
}

// A proof is how much a decision proves that is signed, or weak.
type proof struct{ Name, Text string }

func (r Report) proofs() (out []proof) {
	for _, d := range r.verdict().Decisions {
		switch words, weak := view.Proof(d.Source, d.SignedBy != "", d.Author); {
		case d.SignedBy != "":
			out = append(out, proof{"signed", "by " + d.Author.Login + " with " + d.SignedBy})
		case weak:
			out = append(out, proof{string(d.Decision), "by " + d.Author.Login + ", " + words})
		}
	}
	return out
}

// verdict is the Verdict, an empty one where there is none.
func (r Report) verdict() approval.Verdict {
	return *cmp.Or(r.Verdict, &approval.Verdict{})
}

// maxClaims is how many lines of a proposer's message are shown where there is little room.
const maxClaims = 40

// claimLines are the claims for a terminal, a line each, at most most of them.
func (r Report) claimLines(most int) string {
	all := view.Claims(r.Message, r.Declared)
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	for _, line := range all[:min(len(all), most)] {
		b.WriteString(strings.TrimRight("  | "+Clean(line), " ") + "\n")
	}
	if n := len(all) - most; n > 0 {
		fmt.Fprintf(&b, "  … and %s, which --json has\n", Counted(n, "more line"))
	}
	return b.String()
}
