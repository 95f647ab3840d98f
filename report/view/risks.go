package view

import (
	"maps"
	"slices"
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

// RisksOf are the risks of a list by their kind, in its order, which is sorted; kinds of which it names none come last.
func RisksOf(list risk.List) []Risks {
	var out []Risks
	group := func(k risk.Kind) *Risks {
		if !KnownRisk(string(k)) {
			k = ""
		}
		i := slices.IndexFunc(out, func(g Risks) bool { return g.kind == k })
		if i < 0 {
			grave := slices.Index(risk.Kinds(), k) <= slices.Index(risk.Kinds(), risk.Protected)
			i, out = len(out), append(out, Risks{kind: k, Title: RiskTitle(string(k)), Grave: grave})
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
