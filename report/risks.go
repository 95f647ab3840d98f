package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/view"
)

func riskPath(r risk.Risk) string { return cmp.Or(pathInList(r.Path), view.Whole(r.Kind)) }

// pathInList is a path among others: in quotation marks where what it has could be taken
// for the words and signs of a list.
func pathInList(path string) string {
	if !strings.ContainsAny(path, " ,;()\"'→…") {
		return Clean(path)
	}
	return `"` + strings.ReplaceAll(Clean(path), `"`, `\"`) + `"`
}

// riskPlace is where a risk is: old → path:lines.
func riskPlace(r risk.Risk) string {
	text := riskPath(r)
	if r.From != "" {
		text = pathInList(r.From) + " → " + text
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
	return *cmp.Or(r.Risks, &risk.List{})
}

// lineCounts are the changed lines of a file, in words that a reader cannot take
// for nothing: a binary file has no lines.
func lineCounts(f File) (added, deleted, note string) {
	for _, what := range f.Notes {
		note += ", " + what
	}
	if f.Binary {
		return "binary", "", note
	}
	return fmt.Sprintf("+%d", f.Added), fmt.Sprintf("-%d", f.Deleted), note
}

// The room of the risks in a report, which has a few lines above them, on a screen
// of 80 × 24.
const (
	screenWidth = 80
	risksHeight = 16
)

const riskIndent = 20 // columns of the title

// Risks shows a list of risks in as many columns and lines as a screen has: a line
// for each kind at least, then as much as there is room for, the shortest form of a
// risk being its file's name. What has no room is counted. No height, 0, is room for
// everything, in full.
func Risks(list risk.List, width, height int, s Style) string {
	groups := view.RisksOf(list)
	width -= riskIndent + 2
	lines := make([][]wrapped, len(groups))
	for _, form := range []func(risk.Risk) string{riskText, riskPlace, riskPath} {
		total := 0
		for i, g := range groups {
			if lines[i] = wrap(g.Risks, form, width); len(lines[i]) == 0 {
				lines[i] = []wrapped{{}}
			}
			total += len(lines[i])
		}
		if height == 0 || total <= height {
			height = total
			break
		}
	}
	fitLines(lines, height)
	var b strings.Builder
	for i, g := range groups {
		colour, title := yellow, g.Title
		if g.Grave {
			colour = red
		}
		for j, line := range lines[i] {
			text := line.text
			if j == len(lines[i])-1 {
				if text = strings.TrimSuffix(text, ","); line.left+g.More > 0 {
					more := fmt.Sprintf(" and %d more", line.left+g.More)
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

// fitLines takes lines from the longest until there are no more than height, or one of
// each kind.
func fitLines(lines [][]wrapped, height int) {
	for {
		total, longest := 0, 0
		for i := range lines {
			total += len(lines[i])
			if len(lines[i]) > len(lines[longest]) {
				longest = i
			}
		}
		if total <= height || len(lines[longest]) <= 1 {
			return
		}
		lines[longest] = lines[longest][:len(lines[longest])-1]
	}
}

// A wrapped line has left so many risks for the lines below it.
type wrapped struct {
	text string
	left int
}

// wrap breaks risks in a form, with commas, into lines of so many columns; one that is wider
// than a line is cut in its middle. Those that read the same are one, which says how many they are.
func wrap(risks []risk.Risk, form func(risk.Risk) string, width int) []wrapped {
	var texts []string
	counts := map[string]int{}
	for _, r := range risks {
		text := form(r)
		if counts[text]++; counts[text] == 1 {
			texts = append(texts, text)
		}
	}
	var lines []wrapped
	left := len(risks)
	for i, text := range texts {
		times := ""
		if n := counts[text]; n > 1 {
			times = fmt.Sprintf(" (%d times)", n)
		}
		left -= counts[text]
		text = cut(text, width-1-len(times)) + times
		if i < len(texts)-1 {
			text += ","
		}
		last := len(lines) - 1
		if i > 0 && columns(lines[last].text)+1+columns(text) <= width {
			lines[last] = wrapped{lines[last].text + " " + text, left}
		} else {
			lines = append(lines, wrapped{text, left})
		}
	}
	return lines
}

// columns is how many columns of a screen a text takes at most.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOf(r, n)
	}
	return n
}

// cut shortens a text in its middle to so many columns.
func cut(text string, width int) string {
	if columns(text) <= width || width < 3 {
		return text
	}
	runes := []rune(text)
	from, to := 0, len(runes)
	head, tail := (width-1)/2, width-1-(width-1)/2
	for ; head >= columnsOf(runes[from], 0); from++ {
		head -= columnsOf(runes[from], 0)
	}
	for ; tail >= columnsOf(runes[to-1], 0); to-- {
		tail -= columnsOf(runes[to-1], 0)
	}
	return string(runes[:from]) + "…" + string(runes[to:])
}

// maxRisks is the most room of the risks in Markdown, in bytes, and maxRiskWords
// how many characters of a foreign text are shown in one of them.
const (
	maxRisks     = 12 << 10
	maxRiskWords = 120
)

// A riskLine is what the risks of one file are in Markdown: each with its group's number.
type riskLine struct {
	place string
	first int // the lowest number
	items [][]string
}

// risks are the report's risks in Markdown, a line a file, in a part of the room that a page
// has: the file with the most dangerous one first. Every kind gets its first place before any
// gets its second, and what there is no room for is counted, so that no kind is left out.
func (r Report) risks(room int, to Links) string {
	groups := r.View().Risks
	switch {
	case r.Risks == nil:
		return ""
	case len(groups) == 0:
		return "Nothing in it is easy to overlook.\n\n"
	}
	left, shown, full := min(maxRisks, room/2), make([]int, len(groups)), make([]bool, len(groups))
	var lines []*riskLine
	at := map[string]*riskLine{}
	for n := range maxNames {
		for i, g := range groups {
			if n >= len(g.Risks) || full[i] {
				continue
			}
			place, item := riskWhere(g.Risks[n]), riskItem(g.Risks[n], to)
			line, cost := at[place], len(item)+len("; ")
			if line == nil {
				cost += len(place) + len("> - : \n")
			}
			if line == nil && len(lines) == maxNames {
				continue
			}
			if full[i] = cost > left; full[i] { // and no other of the kind is looked at
				continue
			}
			shown[i]++
			if left -= cost; line == nil {
				line = &riskLine{place: place, first: i, items: make([][]string, len(groups))}
				at[place], lines = line, append(lines, line)
			}
			line.first = min(line.first, i)
			if !slices.Contains(line.items[i], item) {
				line.items[i] = append(line.items[i], item)
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b *riskLine) int { return a.first - b.first })
	var b strings.Builder
	b.WriteString("> [!WARNING]\n> **Read these first**\n")
	for _, line := range lines {
		b.WriteString("> - " + line.place + ": " + strings.Join(slices.Concat(line.items...), "; ") + "\n")
	}
	var more []string
	for i, g := range groups {
		if n := g.More + len(g.Risks) - shown[i]; n > 0 {
			more = append(more, fmt.Sprintf("%d %s", n, prose(g.Title)))
		}
	}
	if len(more) > 0 {
		b.WriteString("> - and more: " + strings.Join(more, "; ") + "\n")
	}
	return b.String() + "\n"
}

// riskWhere is the file that a risk is in, in Markdown.
func riskWhere(r risk.Risk) string {
	switch {
	case r.Path == "":
		return view.Whole(r.Kind)
	case r.From != "":
		return code(shortenTo(r.From, maxRiskWords)) + " → " + code(shortenTo(r.Path, maxRiskWords))
	}
	return code(shortenTo(r.Path, maxRiskWords))
}

// riskItem is a risk of a file in Markdown, with a link to the Policy's rule where it is one's.
func riskItem(r risk.Risk, to Links) string {
	text := prose(view.RiskTitle(r.Kind))
	if lines := view.Lines(r.Lines, r.More, maxHiddenLines); lines != "" {
		text += ", " + lines
	}
	if rule, glob, ok := strings.Cut(r.Detail, " "); ok && r.Kind == risk.Protected && len(rule) <= maxRiskWords {
		return text + " (" + to.rule(rule) + " " + prose(shortenTo(glob, maxRiskWords)) + ")"
	}
	if r.Detail != "" {
		text += " (" + prose(shortenTo(r.Detail, maxRiskWords)) + ")"
	}
	return text
}
