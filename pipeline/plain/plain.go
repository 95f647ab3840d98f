// Package plain says in plain words, for people, where a transaction stands, and where a Policy is
// written that asks for what is missing. Nothing is decided by it.
package plain

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// InWords is what an approval of a kind is about, as people are told.
func InWords(kind string) string {
	switch kind {
	case policy.KindSecret:
		return "what looks like a secret"
	case policy.KindProtected:
		return "the protected paths"
	case policy.KindBreakGlass:
		return "the change, by breaking the glass"
	}
	return "the change"
}

// Reason says in words of which kinds a verdict's reason tells. Those stand behind the
// first part of it, which is about the change.
func Reason(reason string) string {
	return strings.NewReplacer("; "+policy.KindSecret, "; secrets", "; "+policy.KindProtected, "; protected paths").Replace(reason)
}

// NameOwners adds to a verdict's reason who owns the paths that wait for their owners, of the
// first few. Nil names none.
func NameOwners(v approval.Verdict, ownersOf func(path string) ([]string, error)) approval.Verdict {
	const most = 5
	for _, n := range v.Needs {
		if len(n.Waiting) == 0 || ownersOf == nil {
			continue
		}
		var out []string
		for _, path := range n.Waiting[:min(most, len(n.Waiting))] {
			owners, err := ownersOf(path)
			said := OwnedBy(owners)
			if err != nil {
				said = "its owners cannot be told: " + err.Error()
			}
			out = append(out, ledger.OneLine(path, 80)+": "+ledger.OneLine(said, 200))
		}
		if more := len(n.Waiting) - most; more > 0 {
			out = append(out, fmt.Sprintf("and %d more", more))
		}
		v.Reason = strings.Replace(v.Reason, n.String(), n.String()+" ("+strings.Join(out, "; ")+")", 1)
	}
	return v
}

// OwnedBy says in words who owns a path.
func OwnedBy(owners []string) string {
	if len(owners) == 0 {
		return "nobody owns it"
	}
	return "owned by " + strings.Join(owners, ", ")
}

// ShownDrift is the drift that people are shown of a case: of the first approval that counts;
// where none does, of the first that would but for its drift. Nobody looks how far
// it is since an approval that does not count anyway.
func ShownDrift(c approval.Case, v approval.Verdict) *approval.Drift {
	if c.Drift == nil {
		return nil
	}
	unbound := c
	unbound.Policy.Approvals.Drift = nil
	for _, judged := range [][]approval.Judged{v.Decisions, unbound.Decide().Decisions} {
		for i, d := range ledger.Of[*ledger.ApprovalDecision](c.Log) {
			if judged[i].Counted && d.Decision == ledger.Approve {
				drift := c.Drift(approval.MadeOn(c.Log, *d))
				return &drift
			}
		}
	}
	return nil
}

// Why is the reason of a decision as a sentence of its own, whose subject is "it" where the decision is
// meant.
func Why(j approval.Judged) string {
	switch verb, rest, _ := strings.Cut(j.Reason, " "); verb {
	case "is", "was", "names", "breaks", "takes", "says", "does":
		return "it " + j.Reason
	case "edited", "taken", "posted", "sent":
		return "it was " + j.Reason
	case "expired":
		return "it has expired"
	case "has":
		if strings.Contains(rest, " permission, ") {
			return "its author " + j.Reason
		}
		return "it " + j.Reason
	}
	return j.Reason
}

// Lines are the lines, from 1, at which the parts of a Policy's file begin, by the
// names that Explain gives them: its members, such as "approvals", and each rule of
// protected, such as "protected[0]". Of a file that is no Policy there are none.
func Lines(raw []byte) map[string]int {
	lines := map[string]int{}
	if _, err := policy.Parse(policy.Path, raw); err != nil {
		return lines
	}
	file, err := parser.ParseBytes(raw, 0)
	if err != nil {
		return lines
	}
	for _, doc := range file.Docs {
		root, _ := doc.Body.(*ast.MappingNode)
		if root == nil {
			continue
		}
		for _, member := range root.Values {
			key := member.Key.GetToken()
			lines[key.Value] = key.Position.Line
			if list, is := member.Value.(*ast.SequenceNode); is {
				for i, value := range list.Values {
					lines[fmt.Sprintf("%s[%d]", key.Value, i)] = lineOf(value)
				}
			}
		}
	}
	return lines
}

// lineOf is the line at which a value begins: a mapping in several lines, at its first key.
func lineOf(n ast.Node) int {
	if m, is := n.(*ast.MappingNode); is && !m.IsFlowStyle && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken().Position.Line
	}
	return n.GetToken().Position.Line
}

// AsWritten is a Policy's canonical form as people write one; a text that is none, or that the library
// panics on (T42), stays as it is.
func AsWritten(canonical string) (text string) {
	defer func() {
		if recover() != nil {
			text = canonical
		}
	}()
	if raw, err := yaml.JSONToYAML([]byte(canonical)); err == nil && json.Valid([]byte(canonical)) {
		return string(raw)
	}
	return canonical
}
