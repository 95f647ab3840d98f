package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/witness"
	"github.com/countersign-dev/countersign/report/template"
)

// An Audited is what an audit of the ledger on Ref found. First says that nothing was known of this ledger before,
// Signatures that they were verified.
type Audited struct {
	audit.Result
	Witnessed         *witness.Witnessed // nil unless it was asked for
	Ref               string
	First, Signatures bool
}

// Audit is an audit in words, findings first.
func Audit(a Audited, s Style) string {
	return s.fill("audit", struct {
		Audited
		Unproven bool // whether nothing but the ledger itself vouches for it
	}{a, a.OK && !a.Signatures && a.First && a.Witnessed == nil})
}

// Branch is what accounts for the commits of a branch: those that nothing does first; then the exceptions that people review.
func Branch(r explain.Branch, s Style) string {
	return s.with("branch", r, template.Funcs{"due": template.Raw(s.due)})
}

func (s Style) due(state explain.ExceptionState) string {
	if text := fmt.Sprintf("%-8s ", state); state != explain.Overdue {
		return text
	}
	return s.Red(string(state)) + "  "
}

// Due says how many exceptions wait for a review; nothing where none does.
func Due(all []explain.Exception, s Style) string {
	open, overdue := explain.Unreviewed(all)
	text := Counted(len(open), "exception") + " to review"
	switch {
	case len(open) == 0:
		return ""
	case overdue > 0:
		return s.Red(fmt.Sprintf("%s, %d overdue", text, overdue)) + "\n"
	}
	return text + fmt.Sprintf(", the first by %.10s\n", open[0].DueBy)
}

// Explanation is what accounts for one change to the code.
func Explanation(e explain.Explanation) string { return Style{}.fill("explanation", e) }

// byRule says what accounts for a commit where that is no approval, "" where it is one.
func byRule(by explain.By, signer string) string {
	return map[explain.By]string{explain.ByMerge: "a merge of explained commits", explain.ByBot: "signed by the bot " + signer, explain.ByEmpty: "changes no file"}[by]
}

// part is a commit, or a range, of which another is a part.
func part(of string) string {
	from, to, isRange := strings.Cut(of, "..")
	if !isRange {
		return fmt.Sprintf("%.12s", from)
	}
	return fmt.Sprintf("%.12s..%.12s", from, to)
}

// lines says which lines of a file are meant.
func lines(l explain.Lines) string {
	switch {
	case l.From == 0:
		return l.Path
	case l.To < l.From:
		return fmt.Sprintf("%s: lines are missing before line %d", l.Path, l.From)
	case l.To == l.From:
		return fmt.Sprintf("%s: line %d", l.Path, l.From)
	}
	return fmt.Sprintf("%s: lines %d to %d", l.Path, l.From, l.To)
}

// Online is what the forge tells of the record now: what contradicts it first, and
// everything else that is not the same.
func Online(r online.Result, s Style) string {
	var counts []string
	for _, v := range online.Verdicts {
		if n := r.Counts[v]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, v))
		}
	}
	told := r.Findings
	if same := slices.IndexFunc(told, func(f online.Finding) bool { return f.Verdict == online.Same }); same >= 0 {
		told = told[:same]
	}
	return s.fill("online", struct {
		online.Result
		Bad  int
		Sum  string
		Told []online.Finding
	}{r, r.Bad(), strings.Join(counts, ", "), told})
}

// differences are what people are told of each difference.
var differences = map[explain.Difference]string{
	explain.Blocked: "would have been blocked", explain.AsksMore: "would have been asked more", explain.LetsThrough: "would have been let through",
	explain.AsksLess: "would have been asked less", explain.DifferenceUnknown: "cannot be told", explain.NoDifference: "without a difference",
}

// A difference is that of some cases: of those that another Policy would not have changed only their number.
type difference struct {
	What  string
	N     int
	Cases []explain.Case
}

// Simulation is what another Policy would have changed.
func Simulation(r explain.Simulation, s Style) string {
	var numbers, groups []difference
	for _, d := range explain.Differences {
		if n := r.Counts[d]; n > 0 {
			numbers = append(numbers, difference{What: differences[d], N: n})
		}
		if d == explain.DifferenceUnknown && r.AtBest > 0 {
			numbers = append(numbers, difference{What: "of these approved, if what is not known was in favour", N: r.AtBest})
		}
	}
	for i, c := range r.Cases {
		if c.Difference == explain.NoDifference {
			continue
		}
		if i == 0 || c.Difference != r.Cases[i-1].Difference {
			groups = append(groups, difference{What: differences[c.Difference]})
		}
		groups[len(groups)-1].Cases = append(groups[len(groups)-1].Cases, c)
	}
	return s.fill("simulation", struct {
		explain.Simulation
		Numbers, Groups []difference
	}{r, numbers, groups})
}

// verdicts are those of then and of now, in words.
func verdicts(c explain.Case) string {
	switch {
	case c.Now == explain.UnknownVerdict && c.Then == explain.UnknownVerdict:
		return "unknown"
	case c.AtBest != "" && c.AtBest != explain.UnknownVerdict:
		return fmt.Sprintf("%s → unknown, at best %s", c.Then, c.AtBest)
	}
	return fmt.Sprintf("%s → %s", c.Then, c.Now)
}

// Checks says what came of verifying a statement about a commit.
func Checks(about string, checks []explain.Check) string {
	verdict := "verified"
	if slices.ContainsFunc(checks, func(c explain.Check) bool { return c.Outcome != explain.Good }) {
		verdict = "verified, but for what is unknown"
	}
	if slices.ContainsFunc(checks, func(c explain.Check) bool { return c.Outcome == explain.Bad }) {
		verdict = "not verified"
	}
	return Style{}.fill("checks", struct {
		About, Verdict string
		Checks         []explain.Check
	}{about, verdict, checks})
}

// Asks is what a Policy asks of a patch: rules by path, secrets, approvals and commands.
func Asks(e risk.PolicyExplanation) string { return Style{}.fill("asks", e) }
