package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/risk"
)

// Risks are what a reader of a diff may overlook, of one kind or of all kinds that this program does not
// know, and how many others the list leaves out.
type Risks struct {
	Title string // in few words
	Grave bool   // whether it is at least as dangerous as a protected path
	Risks []risk.Risk
	More  int
	kind  risk.Kind // empty for unknown ones
}

// EveryFile stands for the path of a risk without one.
const EveryFile = "every file"

// Lines says in which lines a risk is: "line 3", "lines 3, 7 and 2 more", of most that are named; "" for none.
func Lines(lines []int, more, most int) string {
	var out []string
	for _, n := range lines[:min(len(lines), most)] {
		out = append(out, strconv.Itoa(n))
	}
	if more += max(0, len(lines)-most); more > 0 {
		return strings.TrimSpace("lines "+strings.Join(out, ", ")) + fmt.Sprintf(" and %d more", more)
	}
	if len(out) == 0 {
		return ""
	}
	return map[bool]string{true: "line ", false: "lines "}[len(out) == 1] + strings.Join(out, ", ")
}

// RisksOf are the risks of a list by their kind, in its order, which is sorted; kinds of which it names none come last.
func RisksOf(list risk.List) []Risks {
	var out []Risks
	group := func(k risk.Kind) *Risks {
		if riskTitles[k] == "" {
			k = ""
		}
		i := slices.IndexFunc(out, func(g Risks) bool { return g.kind == k })
		if i < 0 {
			grave := slices.Index(risk.Kinds(), k) <= slices.Index(risk.Kinds(), risk.Protected)
			i, out = len(out), append(out, Risks{kind: k, Title: RiskTitle(k), Grave: grave})
		}
		return &out[i]
	}
	for _, r := range list.Risks {
		g := group(r.Kind)
		if g.kind == "" {
			r.Detail = strings.TrimSuffix(string(r.Kind)+": "+r.Detail, ": ")
		}
		g.Risks = append(g.Risks, r)
	}
	for _, kind := range slices.Sorted(maps.Keys(list.More)) {
		group(kind).More += list.More[kind]
	}
	return out
}
