package report

import (
	"embed"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

// A Style colours text, or leaves it as it is. Zone is the reader's, in which times are told
// beside UTC; nil is UTC.
type Style struct {
	Colour bool
	Zone   *time.Location
	Top    string // of the working tree, as it is typed where the reader is; "" is there
}

// when is a time in the reader's zone, which it names: Z is UTC.
func (s Style) when(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return Clean(at)
	}
	if s.Zone != nil {
		t = t.In(s.Zone)
	}
	zone := t.Format(" MST")
	if _, offset := t.Zone(); offset == 0 {
		zone = "Z"
	}
	return t.Format("2006-01-02 15:04") + zone
}

// Terminal colours (ECMA-48 SGR).
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	invert = "7"
)

func (s Style) paint(code, text string) string {
	if !s.Colour || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// found says where the hunks of a patch were found, if that is not where they say, "" otherwise.
func (r Report) found() string {
	if len(r.Offsets) == 0 {
		return ""
	}
	return Clean(strings.Join(view.Distinct(r.Offsets, gitpatch.Moved), ", ")) + " than the patch says"
}

// moved says which files are not any more as the review found them, "" where none is.
func (r Report) moved() string {
	if len(r.Moved) == 0 {
		return ""
	}
	return Clean(escape.QuoteList(r.Moved)) + " changed meanwhile"
}

func (r Report) filesLine() string {
	added, deleted := r.View().Lines()
	return fmt.Sprintf("%s, +%d −%d", Counted(len(r.Files), "file"), added, deleted)
}

// maxRows is how many files the text lists; --json lists all.
const maxRows = 40

// author is whom the patch names.
func (r Report) author() string {
	if r.Author == nil {
		return ""
	}
	return fmt.Sprintf("%s <%s>, %s (from the patch, not verified)", Clean(r.Author.Name), Clean(r.Author.Email), Clean(r.Author.Date))
}

// Clean makes foreign text safe in one line on a terminal or in a log: what
// does not print (controls, bidi, zero width) is shown as an escape (T14).
func Clean(text string) string { return escape.Clean(text) }

// ErrorLine is an error as it is shown: one line, nothing that does not print.
func ErrorLine(err error) string { return Clean(strings.ReplaceAll(err.Error(), "\n", "; ")) }

// Red is text in the colour of errors.
func (s Style) Red(text string) string { return s.paint(red, text) }

// Bold is text that stands out.
func (s Style) Bold(text string) string { return s.paint(bold, text) }

// Events are a transaction's events, a line each.
func Events(log *ledger.Log) string {
	var b strings.Builder
	for i, p := range log.Payloads() {
		said, name := "", strings.TrimPrefix(fmt.Sprintf("%T", p), "*ledger.")
		if texts().Has(name) {
			said = Style{}.fill(name, p)
		}
		b.WriteString(Style{}.fill("event", struct {
			ledger.Event
			Text template.Safe
		}{log.Events()[i], template.Safe(said)}))
	}
	return b.String()
}

// ShortHash is enough of a hash for a person to compare it with the whole one: both
// ends, as a text made to look alike would have to match 96 bits.
func ShortHash(id string) string { return id[:12] + "…" + id[len(id)-12:] }

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
		"letter":    wordOf(map[string]string{"create": "A", "modify": "M", "delete": "D"}),
		"succeeded": func(o ledger.Operation) bool { return o.Status == ledger.StatusSuccess },
		"shortID":   lookup.ShortID, "quoted": Quoted, "from": from,
		"renamedFrom": func(f File) string { return renamedFrom(f, Clean) }, "warning": func() string { return glassWarning },
		"claimed": func(t *ledger.TraceItem) bool { return t.Item.Metadata.Source == ledger.SourceClaimed }, "stepSaid": view.StepSaid, "unfinished": view.Unfinished,
		"stateOf": stateOf, "applyFailed": func() string { return string(plain.ApplyFailed) },
		"endedAs": func(to ledger.Status) string {
			if to == ledger.Proposed || to == ledger.Awaiting { // also once it is approved
				return ""
			}
			return stateOf(to)
		},
		"broken": func(r Report) bool { return r.verdict().BreakGlass }, "reason": func(r Report) string { return reasonOf(r.Verdict) },
		"lines": lines, "part": part, "byRule": byRule, "strength": explain.Strength.Words, "inWords": plain.InWords,
		"byRecord": wordOf(map[explain.By]string{explain.ByTransaction: "transaction ", explain.ByPullRequest: "approved pull request, "}),
		"replayed": func(m explain.Making) bool { return m == explain.Replay },
		"unlisted": func(d audit.SignedDecisions) int { return max(0, d.Count-d.Listed-d.Registered-d.Unknown) },
		"verb":     wordOf(map[ledger.Decision]string{ledger.Approve: "approved", ledger.Deny: "denied"}),
		"verdicts": verdicts, "contradicts": func(v online.Verdict) bool { return v == online.Gone || v == online.Changed },
		"ownedBy": func(owners []string) string {
			if owners == nil {
				return ""
			}
			return plain.OwnedBy(owners)
		},
		"asked": func(n risk.ExplainedNeed) string {
			return (policy.Need{Users: n.Users, Teams: n.Teams, Owners: n.Owners}).People()
		},
		"merges": wordOf(map[policy.Merge]string{policy.MergeHuman: "a person merges", policy.MergeAuto: "settle merges once it is approved"}),
	})
})

func stateOf(status ledger.Status) string { return string(plain.StateOf(status, "", false, false)) }

// wordOf is a function for templates: the word for a value, "" for none.
func wordOf[K comparable](words map[K]string) func(K) string {
	return func(of K) string { return words[of] }
}

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
		"red": in(red), "bold": in(bold), "yellow": in(yellow), "green": in(green), "when": s.when,
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
