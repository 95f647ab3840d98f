package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// riskTitles say what a kind of risk means, in few words.
var riskTitles = map[risk.Kind]string{
	risk.Unlisted:   "not listed",
	risk.Executable: "becomes executable",
	risk.Trusted:    "is obeyed",
	risk.Build:      "builds or installs",
	risk.Secret:     "secret",
	risk.Protected:  "protected",
	risk.Binary:     "binary",
	risk.Delete:     "deleted",
	risk.Rename:     "renamed",
	risk.Mode:       "executable no more",
	risk.Whitespace: "white space only",
	risk.Long:       "long lines",
	risk.Hidden:     "hidden characters",
	risk.Lookalike:  "look-alike letters",
	risk.Generated:  "generated",
}

// riskTitle is the kind's own word for one that this program does not know.
func riskTitle(k risk.Kind) string {
	if title := riskTitles[k]; title != "" {
		return title
	}
	return Clean(string(k))
}

// everyFile stands for the path of a risk without one.
const everyFile = "every file"

func riskPath(r risk.Risk) string { return cmp.Or(Clean(r.Path), everyFile) }

// riskPlace is where a risk is: old → path:lines.
func riskPlace(r risk.Risk) string {
	text := riskPath(r)
	if r.From != "" {
		text = Clean(r.From) + " → " + text
	}
	for i, n := range r.Lines {
		text += map[bool]string{true: ":", false: ","}[i == 0] + strconv.Itoa(n)
	}
	if r.More > 0 {
		text += fmt.Sprintf(" and %d more lines", r.More)
	}
	return text
}

// riskText is a risk in full: its place, and what there is to say about it.
func riskText(r risk.Risk) string {
	if r.Detail == "" {
		return riskPlace(r)
	}
	return riskPlace(r) + " (" + Clean(r.Detail) + ")"
}

// list is the report's risks, an empty list where they are not known.
func (r Report) list() risk.List {
	if r.Risks == nil {
		return risk.List{}
	}
	return *r.Risks
}

// Reasons are the risks that an approval of a kind (policy.KindSecret and others)
// is about; none for the change as such, which is about all of them.
func Reasons(list risk.List, kind string) []risk.Risk {
	about := map[string][]risk.Kind{
		policy.KindSecret:    {risk.Secret},
		policy.KindProtected: {risk.Trusted, risk.Protected},
	}[kind]
	var out []risk.Risk
	for _, r := range list.Risks {
		if slices.Contains(about, r.Kind) || about != nil && r.Kind == risk.Unlisted {
			out = append(out, r)
		}
	}
	return out
}

// lineCounts are the changed lines of a file, in words that a reader cannot take
// for nothing: a binary file has no lines.
func (r Report) lineCounts(f File) (added, deleted, note string) {
	added, deleted = fmt.Sprintf("+%d", f.Added), fmt.Sprintf("-%d", f.Deleted)
	for _, one := range r.list().Risks {
		switch {
		case one.Path != f.Path:
		case one.Kind == risk.Binary:
			added, deleted = "binary", ""
		case one.Kind == risk.Executable || one.Kind == risk.Mode || one.Kind == risk.Whitespace:
			note += ", " + riskTitle(one.Kind)
		}
	}
	return added, deleted, note
}

// The room of the risks in a report, which has a few lines above them, on a screen
// of 80 × 24.
const (
	screenWidth = 80
	risksHeight = 16
)

// A riskGroup is the risks of one kind, and how many others the list leaves out.
type riskGroup struct {
	kind  risk.Kind
	risks []risk.Risk
	more  int
}

// riskGroups keeps the order of the list, which is sorted; kinds of which it names
// none come last.
func riskGroups(list risk.List) []riskGroup {
	var out []riskGroup
	more := maps.Clone(list.More)
	for _, r := range list.Risks {
		if len(out) == 0 || out[len(out)-1].kind != r.Kind {
			out = append(out, riskGroup{kind: r.Kind, more: more[r.Kind]})
			delete(more, r.Kind)
		}
		last := &out[len(out)-1]
		last.risks = append(last.risks, r)
	}
	for _, kind := range slices.Sorted(maps.Keys(more)) {
		out = append(out, riskGroup{kind: kind, more: more[kind]})
	}
	return out
}

const riskIndent = 20 // columns of the title

// Risks shows a list of risks in as many columns and lines as a screen has: a line
// for each kind at least, then as much as there is room for, the shortest form of a
// risk being its file's name. What has no room is counted. No height, 0, is room for
// everything, in full.
func Risks(list risk.List, width, height int, s Style) string {
	groups := riskGroups(list)
	width -= riskIndent + 2
	lines := make([][]wrapped, len(groups))
	for _, form := range []func(risk.Risk) string{riskText, riskPlace, riskPath} {
		total := 0
		for i, g := range groups {
			var items []string
			for _, r := range g.risks {
				items = append(items, form(r))
			}
			if lines[i] = wrap(slices.Compact(items), width); len(lines[i]) == 0 {
				lines[i] = []wrapped{{"", 0}}
			}
			total += len(lines[i])
		}
		if height == 0 || total <= height {
			height = total
			break
		}
	}
	for total := height + 1; total > height; { // the longest gives way
		total = 0
		longest := 0
		for i := range lines {
			total += len(lines[i])
			if len(lines[i]) > len(lines[longest]) {
				longest = i
			}
		}
		if total <= height || len(lines[longest]) <= 1 {
			break // or there are more kinds than lines
		}
		lines[longest] = lines[longest][:len(lines[longest])-1]
	}
	var b strings.Builder
	for i, g := range groups {
		colour := yellow
		if slices.Index(risk.Kinds(), g.kind) <= slices.Index(risk.Kinds(), risk.Protected) {
			colour = red
		}
		title := riskTitle(g.kind)
		for j, line := range lines[i] {
			text := line.text
			if j == len(lines[i])-1 {
				if text = strings.TrimSuffix(text, ","); line.left+g.more > 0 {
					more := fmt.Sprintf(" and %d more", line.left+g.more)
					text = strings.TrimPrefix(cut(text, width-len(more))+more, " and ")
				}
			}
			fmt.Fprintf(&b, "  %s%s\n", s.paint(colour, fmt.Sprintf("%-*s", riskIndent, title)), text)
			title = ""
		}
	}
	return b.String()
}

// RiskLines are a list of risks as the text of a transaction has them: how many there
// are, and as much as a screen has room for.
func RiskLines(list risk.List, s Style) string {
	count := cmp.Or(strings.TrimPrefix(strconv.Itoa(list.Count()), "0"), "none")
	return fmt.Sprintf("%s %s\n", s.paint(bold, fmt.Sprintf("%-12s", "risks")), count) + Risks(list, screenWidth, risksHeight, s)
}

// A wrapped line has left so many items for the lines below it.
type wrapped struct {
	text string
	left int
}

// wrap breaks a list, with commas, into lines of a width; an item that is wider than
// one is cut in its middle.
func wrap(items []string, width int) []wrapped {
	var lines []wrapped
	for i, item := range items {
		item = cut(item, width-1)
		left := len(items) - 1 - i
		if left > 0 {
			item += ","
		}
		last := len(lines) - 1
		if i > 0 && utf8.RuneCountInString(lines[last].text)+1+utf8.RuneCountInString(item) <= width {
			lines[last] = wrapped{lines[last].text + " " + item, left}
		} else {
			lines = append(lines, wrapped{item, left})
		}
	}
	return lines
}

// cut shortens a text in its middle.
func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width || width < 3 {
		return text
	}
	head := (width - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}

// maxRisks is the most room of the risks in Markdown, in bytes, and maxRiskWords
// how many characters of a foreign text are shown in one of them.
const (
	maxRisks     = 12 << 10
	maxRiskWords = 120
)

// risks are the report's risks in Markdown, a line a kind, in a part of the room
// that a page has. Kinds share it; what a line has no room for is counted in it, so
// that no kind is left out.
func (r Report) risks(room int, to Links) string {
	groups := riskGroups(r.list())
	switch {
	case r.Risks == nil:
		return ""
	case len(groups) == 0:
		return "**Risks:** none that a reader of the diff would overlook.\n\n"
	}
	var b strings.Builder
	b.WriteString("**Look at this first:**\n\n")
	for _, g := range groups {
		b.WriteString(g.row(min(maxRisks, room/2)/len(groups), to))
	}
	return b.String() + "\n"
}

// row is a group in one line of at most room bytes, or its kind and count alone.
func (g riskGroup) row(room int, to Links) string {
	head := "- **" + prose(riskTitle(g.kind)) + "**: "
	var items []string
	left := room - len(head) - len(" and 1000000000 more\n")
	for _, one := range g.risks[:min(len(g.risks), maxNames)] {
		item := riskItem(one, to)
		if left -= len(item) + len("; "); left < 0 {
			break
		}
		items = append(items, item)
	}
	text := head + strings.Join(items, "; ")
	switch more := len(g.risks) - len(items) + g.more; {
	case more > 0 && len(items) == 0:
		text += fmt.Sprintf("%d", more)
	case more > 0:
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "\n"
}

// riskItem is a risk in Markdown, with a link to the Policy's rule where it is one's.
func riskItem(r risk.Risk, to Links) string {
	text := everyFile
	if r.Path != "" {
		text = code(shortenTo(r.Path, maxRiskWords))
	}
	if r.From != "" {
		text = code(shortenTo(r.From, maxRiskWords)) + " → " + text
	}
	if len(r.Lines) > 0 {
		text += ", " + lineNumbers(r.Lines)
	}
	if r.More > 0 {
		text += fmt.Sprintf(" and %d more", r.More)
	}
	if rule, glob, ok := strings.Cut(r.Detail, " "); ok && r.Kind == risk.Protected && len(rule) <= maxRiskWords {
		return text + " (" + to.rule(rule) + " " + prose(shortenTo(glob, maxRiskWords)) + ")"
	}
	if r.Detail != "" {
		text += " (" + prose(shortenTo(r.Detail, maxRiskWords)) + ")"
	}
	return text
}
