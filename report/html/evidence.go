package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// exit is what came of a command, in words.
func exit(c ledger.Command) string {
	switch {
	case c.Status == ledger.ItemCompleted && c.ExitCode == 0:
		return "passed"
	case c.ExitCode < 0:
		return "could not be run"
	}
	return fmt.Sprintf("failed with exit code %d", c.ExitCode)
}

// An executed artifact has what a command printed.
type executed struct {
	Execution checks.Execution `json:"execution"`
}

// A checked artifact has what became of the checks of the result.
type checked struct {
	Checks []checks.TestResult `json:"checks"`
}

// commands are those that ran.
func (s *sheet) commands() []*ledger.CommandItem { return all[*ledger.CommandItem](s.T) }

// validations are the checks of the result.
func (s *sheet) validations() (out []checked) {
	for _, a := range all[*ledger.ArtifactStored](s.T) {
		if doc := aside[checked](s.T, a.Path); a.Kind == "validation" && doc != nil && len(doc.Checks) > 0 {
			out = append(out, *doc)
		}
	}
	return out
}

// quoting is a text of ours that may end with the last words of a command.
func (s *sheet) quoting(text string) string {
	if s.O.Redact && text != "" {
		return "left out of these pages"
	}
	return text
}

// A printed text is what a command printed, by its name.
type printed struct{ Name, Text, Command string }

func (s *sheet) printed(c ledger.Command) []printed {
	if s.O.Redact {
		return nil
	}
	doc := aside[executed](s.T, c.Metadata.Artifact.Path)
	if doc == nil {
		doc = &executed{}
		doc.Execution.Stdout = c.AggregatedOutput
	}
	all := []printed{
		{"It could not be run", doc.Execution.Error, c.Command}, {"Standard output", doc.Execution.Stdout, c.Command},
		{"Standard error", doc.Execution.Stderr, c.Command},
	}
	return slices.DeleteFunc(all, func(p printed) bool { return p.Text == "" })
}

// didWhat is the verb for a step of what the proposer says that it did before.
func didWhat(step ledger.TraceStep) string {
	if step.Metadata.Source == ledger.SourceClaimed {
		return "claimed"
	}
	return map[string]string{
		"agentMessage": "said", "reasoning": "thought", "plan": "planned", "mcpToolCall": "called a tool", ledger.CommandExecution: "ran",
	}[step.Type]
}

// A shell command, and what it prints if all is well.
type shell struct{ Type, Prints string }

// checks are the commands by which anybody can check what the page says.
func (s *sheet) checks() []shell {
	t := s.T
	if ledger.CheckID(t.ID) != nil {
		return nil
	}
	ref, dir := cmp.Or(s.O.LedgerRef, "refs/agent/ledger"), ledger.Dir(t.ID)
	at := s.O.LedgerCommit
	if !canon.IsGitID(at) {
		at = ref
	}
	list := []shell{{"git fetch origin " + escape.ShellQuote(ref+":"+ref), ""}}
	if s.O.Elsewhere {
		list[0].Type = "countersign sync"
	}
	list = append(list, shell{"git log --format='%h %ad %s' " + escape.ShellQuote(at) + " -- " + dir, "each stage is a commit"})
	if canon.IsHex64(t.PatchID) && t.Proposal.PatchRedactedSHA256 == "" {
		list = append(list, shell{"git show " + escape.ShellQuote(at+":"+dir+"/"+ledger.PatchFile(t.PatchID)) + " | sha256sum", t.PatchID})
	}
	if n := len(t.Commits); n > 0 && canon.IsGitID(t.Commits[n-1]) && t.Kind != ledger.KindPullRequest {
		for _, f := range t.View.Files {
			if f.After != nil && !hidden(Part("{}", f.Path)) { // it can be copied from the page as it is
				list = append(list, shell{"git show " + escape.ShellQuote(t.Commits[n-1]+":"+f.Path) + " | sha256sum", strings.TrimPrefix(*f.After, "sha256:")})
			}
		}
	}
	return append(list, shell{"countersign show " + t.ID, ""}, shell{"countersign audit", ""})
}

// said is who decided what. What does not verify is told as the record's word.
func (s *sheet) said(d *ledger.ApprovalDecision) *Body {
	verb, kind := map[bool]string{true: "approved ", false: "denied "}[d.Decision == ledger.Approve], ""
	if !s.T.Sound() {
		verb = "is recorded to have " + verb
	}
	for _, r := range all[*ledger.ApprovalRequest](s.T) {
		if r.ApprovalRequestID == d.ApprovalRequestID {
			kind = r.Kind
			break
		}
	}
	return Part("{} {}{}", s.person(d.Source.Author), verb, plain.InWords(kind))
}

// decided leads to a decision, by its number from 0.
func (s *sheet) decided(d *ledger.ApprovalDecision, i int) *Body {
	return s.fill("ApprovalDecision", struct {
		Decision *ledger.ApprovalDecision
		Number   int
	}{d, i + 1})
}

// judged is a decision by its number from 0, and whether it counted; nil where the record does not tell.
func (s *sheet) judged(i int) *approval.Judged {
	if !s.T.Told {
		return nil
	}
	return &s.T.verdict.Decisions[i]
}

// maxShown bounds a foreign text on the page, in bytes.
const maxShown = 64 << 10

func cut(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return text[:maxShown] + fmt.Sprintf("\n… %d more bytes: see the record", len(text)-maxShown)
}

// sum is a hash, of which the beginning is shown.
func sum(hex string) *Body {
	if !isLongHex(hex) {
		return Code(cmp.Or(hex, "none"))
	}
	return Part(`<code title="{}">{}…</code>`, hex, hex[:shownDigits])
}

// isLongHex reports whether a text is a hash, of which the beginning is shown; what is none stands as it is.
func isLongHex(text string) bool { return len(text) > shownDigits && canon.IsHex(text, len(text)) }

const shownDigits = 12
