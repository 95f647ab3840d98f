package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
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

// Whole stands for the path of a risk without one.
func Whole(kind risk.Kind) string {
	if kind == risk.Claimed { // a tool need not name a file
		return "the change"
	}
	return "every file"
}

// Lines says in which lines a risk is: "line 3", "lines 3, 7 and 2 more", of most that are named; "" for none.
func Lines(lines []int, more, most int) string {
	named := lines[:min(len(lines), most)]
	text := Joined(named, ", ", strconv.Itoa)
	if more += max(0, len(lines)-most); more > 0 {
		return strings.TrimSpace("lines "+text) + fmt.Sprintf(" and %d more", more)
	}
	if len(named) == 0 {
		return ""
	}
	return map[bool]string{true: "line ", false: "lines "}[len(named) == 1] + text
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

// whats name what an approval is of, by the kind of its request.
var whats = map[string]string{"fileChange": "the change", "secrets_override": "secrets", "protected_path": "protected paths", policy.KindBreakGlass: "break-glass"}

// What names what an approval of a kind is of: "protected paths".
func What(kind string) string { return cmp.Or(whats[kind], kind) }

// One names what one approval of a kind is of, in a sentence: "a protected path".
func One(kind string) string {
	switch kind {
	case policy.KindProtected:
		return "a protected path"
	case policy.KindSecret:
		return "what looks like a secret"
	}
	return What(kind)
}

// wheres say where a decision was made, by the kind of its source.
var wheres = map[string]string{
	"local": "in a shell", "rpc": "over JSON-RPC", "review": "in a review", "review_comment": "in a review comment", "issue_comment": "in a comment",
}

// Where says where a decision was made, by its source's kind: "in a shell".
func Where(kind string) string { return cmp.Or(wheres[kind], kind) }

// forges name whose account an id is of.
var forges = map[string]string{"github": "GitHub", "gitea": "Gitea"}

// Proof says how much a decision proves, by its source's kind, whether it is signed, and its author, and whether that
// is weak: the word of a machine that anybody may have used.
func Proof(kind string, signed bool, by ledger.Actor) (words string, weak bool) {
	switch {
	case signed:
		return "signed by a key", false
	case kind == "local":
		return "in a shell, unsigned: proves that somebody with this shell said so", true
	case kind == "rpc":
		return "over JSON-RPC, unsigned: proves that some program here said so", true
	}
	of, _, _ := strings.Cut(by.ID, ":")
	if name := forges[of]; name != "" {
		return name + " account", false
	}
	return "account on the forge", false
}

// EndedWords is the record's reason of an end for people: "README.md changed meanwhile".
func EndedWords(reason string) string {
	if files, moved := strings.CutPrefix(reason, "the base changed: "); moved {
		return files + " changed meanwhile"
	}
	return reason
}

// riskTitles say what a kind of risk means, in few words.
var riskTitles = map[risk.Kind]string{
	"unlisted": "not listed", "executable": "becomes executable", "trusted": "steers automation", "build": "builds or installs",
	"secret": "secret", "protected": "protected", "binary": "binary", "delete": "deleted", "rename": "renamed",
	"mode": "executable no more", "whitespace": "white space only", "long": "long lines", "hidden": "hidden characters",
	"lookalike": "look-alike letters", "generated": "generated", "claimed": "claims of a tool",
}

// RiskTitle says what a kind of risk means, in few words.
func RiskTitle(kind risk.Kind) string { return cmp.Or(riskTitles[kind], "of unknown kind") }

// ClaimsHead is what stands above claims.
const ClaimsHead = "A commit of this change says, in the proposer's words, which nobody has verified:"

// Claims are what a commit says in its proposer's words below its summary: lines of their text, and
// the trailers that they declare. They are foreign text.
func Claims(message string, declared []string) (lines []string) {
	if message != "" {
		lines = strings.Split(message, "\n")
	}
	if len(lines) > 0 && len(declared) > 0 {
		lines = append(lines, "")
	}
	return append(lines, declared...)
}

// StepSaid is the text that the item is about, and of a call the files that it changes; "" for
// a plan.
func StepSaid(i ledger.TraceStep) string {
	for _, text := range []*string{i.Command, i.Tool, i.Summary, i.Content} {
		if text != nil {
			return strings.TrimSpace(*text + " " + strings.Join(i.Metadata.Paths, ", "))
		}
	}
	return ""
}

// Unfinished is what became of a call that was not completed, in words, "" for any other
// item.
func Unfinished(i ledger.TraceStep) string {
	return map[string]string{ledger.ItemInProgress: "not ended", ledger.ItemFailed: "failed", ledger.ItemCancelled: "cancelled"}[i.Status]
}
