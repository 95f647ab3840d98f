package report

import (
	"embed"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/result"
	"github.com/countersign-dev/countersign/pipeline/replay"
	"github.com/countersign-dev/countersign/pipeline/state"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

//go:embed text
var files embed.FS

// texts are the templates for a terminal.
var texts = sync.OnceValue(func() *template.Set {
	return template.Parse(files, func(out []byte, value any) []byte { return append(out, shown(value)...) }, template.Funcs{
		"counted": Counted, "short": func(id string) string { return id[:min(12, len(id))] },
		"pad":   template.Raw(func(n int, text string) string { return fmt.Sprintf("%-*s", n, Clean(text)) }),
		"right": func(wide, n int) string { return fmt.Sprintf("%*d", wide, n) },
		"more":  func(count int, shown any) int { return max(0, count-template.Len(shown)) },
		"add":   func(a, b int) int { return a + b }, "joined": template.Raw(join), "plus": join, "shorten": shorten, "abbreviated": func(id string) string { return id[:min(7, len(id))] },
		"id": template.Raw(func(name, text string) string { // of nothing there is none
			if text == "" {
				return ""
			}
			return fmt.Sprintf("       %-12s %s\n", name, Clean(text))
		}),
		"letter":    func(op string) string { return map[string]string{"create": "A", "modify": "M", "delete": "D"}[op] },
		"succeeded": func(o result.Operation) bool { return o.Status == result.StatusSuccess },
		"shortID":   ShortID, "quoted": Quoted, "from": from, "fileName": fileName,
		"renamedFrom": func(f File) string { return renamedFrom(f, Clean) }, "warning": func() string { return glassWarning },
		"claimed": func(t *ledger.TraceItem) bool { return t.Item.Metadata.Source == ledger.SourceClaimed }, "stepSaid": view.StepSaid, "unfinished": view.Unfinished,
		"stateOf": stateOf, "applyFailed": func() string { return string(state.ApplyFailed) },
		"endedAs": func(to ledger.Status) string {
			if to == ledger.Proposed || to == ledger.Awaiting { // also once it is approved
				return ""
			}
			return stateOf(to)
		},
		"broken": func(r Report) bool { return r.verdict().BreakGlass }, "reason": func(r Report) string { return reasonOf(r.Verdict) },
		"lines": lines, "part": part, "byRule": byRule, "strength": replay.Strength.Words, "inWords": plain.InWords,
		"byRecord": func(by explain.By) string {
			return map[explain.By]string{explain.ByTransaction: "transaction ", explain.ByPullRequest: "approved pull request, "}[by]
		},
		"replayed": func(m explain.Making) bool { return m == explain.Replay },
		"unlisted": func(d audit.SignedDecisions) int { return max(0, d.Count-d.Listed-d.Registered-d.Unknown) },
		"verb": func(d ledger.Decision) string {
			return map[ledger.Decision]string{ledger.Approve: "approved", ledger.Deny: "denied"}[d]
		},
		"verdicts": verdicts,
		"ownedBy": func(owners []string) string {
			if owners == nil {
				return ""
			}
			return plain.OwnedBy(owners)
		},
		"asked": func(n plain.ExplainedNeed) string {
			return (policy.Need{Users: n.Users, Teams: n.Teams, Owners: n.Owners}).People()
		},
		"merges": func(m policy.Merge) string {
			return map[policy.Merge]string{policy.MergeHuman: "a person merges", policy.MergeAuto: "settle merges once it is approved"}[m]
		},
	})
})

func stateOf(status ledger.Status) string { return string(state.Of(status, "", false, false)) }

// shown is a value as it is safe to show on a terminal.
func shown(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return Clean(value)
	case int:
		return strconv.Itoa(value)
	case template.Safe:
		return string(value)
	}
	panic(fmt.Sprintf("report: a %T is no text", value))
}

// fill fills in a template for a terminal.
func (s Style) fill(name string, data any) string { return s.with(name, data, nil) }

// with is fill with functions for the template.
func (s Style) with(name string, data any, funcs template.Funcs) string {
	in := func(colour string) any {
		return template.Raw(func(parts ...any) string { return s.paint(colour, join(parts...)) })
	}
	all := template.Funcs{
		"red": in(red), "bold": in(bold), "yellow": in(yellow), "when": s.when,
		"in": template.Raw(func(colour, text string) string { return s.paint(colour, Clean(text)) }),
		"row": template.Raw(func(name string, value any) string { // of nothing there is none
			if text := shown(value); text != "" {
				return s.paint(bold, fmt.Sprintf("%-6s", name)) + " " + text + "\n"
			}
			return ""
		}),
		"lineCounts": template.Raw(func(f File) string {
			added, deleted, note := lineCounts(f)
			return strings.TrimSpace(s.paint(green, added)+" "+s.paint(red, deleted)) + s.paint(yellow, note)
		}),
	}
	maps.Copy(all, funcs)
	return string(texts().Fill(nil, name, data, all))
}

// join is some values as they are shown, in one.
func join(parts ...any) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(shown(part))
	}
	return b.String()
}
