package report

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// Drift says in a line what else has changed since an approval; "" where nothing
// has, or nobody looked. It is safe to show on a terminal.
func Drift(d *approval.Drift) string {
	return driftIn(d, Clean, func(names []string) string { return Clean(shortenTo(strings.Join(names, ", "), 2*maxWords)) })
}

// drift is that in Markdown, with a link to the forge's comparison, or where there
// is none the command that compares.
func (r Report) drift(to Links) string {
	if r.Verdict == nil {
		return ""
	}
	d := r.Verdict.Drift
	text := driftIn(d, words, func(names []string) string { return codes(names, len(names)) })
	if text == "" {
		return ""
	}
	if d.From == "" || d.To == "" {
		return "What else has changed: " + text + ".\n\n"
	}
	return "What else has changed: " + text + " (" + to.compare(d.From, d.To) + ").\n\n"
}

func driftIn(d *approval.Drift, show func(string) string, list func([]string) string) string {
	switch {
	case d == nil || d.None():
		return ""
	case d.Unknown != "":
		return "since the approval, nobody can tell: " + show(d.Unknown)
	}
	text := Counted(d.Commits, "commit") + " since the approval, "
	switch {
	case d.Files == 0:
		return text + "and no file is another"
	case d.Beside == 0:
		return text + Counted(d.Files, "file") + " changed, none beside the touched ones"
	}
	text += fmt.Sprintf("%s changed, %d beside the touched ones: ", Counted(d.Files, "file"), d.Beside) + list(d.Names)
	if more := d.Beside - len(d.Names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// driftRow says in words how far the Policy lets the base move, "" for however far.
func driftRow(bound *policy.Drift) string {
	if bound == nil {
		return ""
	}
	var until []string
	if bound.Commits != nil {
		until = append(until, fmt.Sprintf("there are more than %s since", Counted(*bound.Commits, "commit")))
	}
	if bound.SameDirectory == policy.Ask {
		until = append(until, "another file changes in a directory of a touched one")
	}
	return "an approval holds until " + strings.Join(until, ", or ")
}
