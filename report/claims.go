package report

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/view"
)

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

// claimsBlock are the claims in Markdown.
func (r Report) claimsBlock() string {
	all := view.Claims(r.Message, r.Declared)
	if len(all) == 0 {
		return ""
	}
	var shown []string
	for _, line := range all[:min(len(all), maxClaims)] {
		shown = append(shown, Clean(shorten(line)))
	}
	return view.ClaimsHead + "\n\n" + fenced("text", strings.Join(shown, "\n")) + list{noun: "line", all: r.seeAll()}.missing(len(all)-len(shown))
}

// A Proposed is one proposal of a patch: by whom, of what input, and with which words, none of the first,
// whose words are the report's.
type Proposed struct {
	Proposer ledger.Actor   `json:"proposer"`
	Input    ledger.Input   `json:"input"`
	Summary  string         `json:"summary,omitempty"`
	Author   *ledger.Author `json:"author,omitempty"`
	Message  string         `json:"message,omitempty"`
	Declared []string       `json:"declared,omitempty"`
	Trace    string         `json:"trace,omitempty"` // the path of the artifact

	RequestedBy []ledger.Requester `json:"requested_by,omitempty"`
}

// Proposals are those that a record has, the first first.
func Proposals(all []ledger.Provenance) []Proposed {
	var out []Proposed
	for i, p := range all {
		one := Proposed{Proposer: p.Proposer, Input: p.Input, RequestedBy: p.RequestedBy}
		if i > 0 {
			one = Proposed{p.Proposer, p.Input, p.Summary, p.Author, p.Message, p.Declared, p.Trace, p.RequestedBy}
		}
		out = append(out, one)
	}
	return out
}

// further are the proposals of the patch after the first.
func (r Report) further() []Proposed {
	if len(r.Proposals) == 0 {
		return nil
	}
	return r.Proposals[1:]
}

// from says who made a proposal, and what it was.
func from(p Proposed) string {
	return Clean(p.Proposer.Login + " (" + p.Proposer.Kind + ", " + p.Proposer.ID + ") as " + lookup.Form(p.Input))
}
