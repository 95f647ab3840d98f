package document

import (
	"math"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

var (
	proposalID = canon.Regexp(`^prop_[a-f0-9]{16}$`)
	actionID   = canon.Regexp(`^act_[a-f0-9]{16}$`)
)

// VerifyProposal checks a parsed document against SCHEMA and PR1 to PR12, listed at
// [Proposal]. It returns the violations in the order of a canon.Report, none
// for a sound document.
func VerifyProposal(doc any) []canon.Violation {
	v := verifier{}
	v.proposal(doc)
	return v.Sorted()
}

// A verifier collects violations in the order of the rules' checks.
type verifier struct{ Checker }

// fields is a JSON object; what is not one has no fields.
type fields map[string]any

func fieldsOf(v any) fields {
	m, _ := v.(map[string]any)
	return m
}

// id is the path of violations in an action or a test.
func (f fields) id() string {
	s, _ := f["id"].(string)
	return s
}

// list are the objects of a list.
func (f fields) list(name string) (out []fields) {
	items, _ := f[name].([]any)
	for _, item := range items {
		if one := fieldsOf(item); one != nil {
			out = append(out, one)
		}
	}
	return out
}

// word and text are typeof and String of a field.
func (f fields) word(name string) string {
	v, present := f[name]
	return TypeOf(v, present)
}

func (f fields) text(name string) string {
	v, present := f[name]
	return String(v, present)
}

func (v *verifier) proposal(doc any) {
	if _, ok := doc.(map[string]any); !ok {
		v.Add("SCHEMA", "", "Proposal must be a non-null object")
		return
	}
	p := fieldsOf(doc)
	switch id := p["id"].(type) {
	case nil:
		v.Add("SCHEMA", "", "Missing proposal id field")
	case string:
		if !proposalID().MatchString(id) {
			v.Add("SCHEMA", "", "Proposal ID does not match pattern prop_{hash16}: %s", id)
		}
	default:
		v.Add("SCHEMA", "", "Proposal id must be string, got %s", p.word("id"))
	}
	v.filled(p, "PR1", "schema_version")
	v.filled(p, "PR2", "source_bundle_id")
	if s, ok := v.string(p, "PR2", "source_bundle_hash"); ok && !strings.HasPrefix(s, "sha256:") {
		v.Add("PR2", "", `source_bundle_hash must start with "sha256:"`)
	}
	v.actions(v.array(p, "PR3", "actions"))
	v.tests(v.array(p, "SCHEMA", "acceptance_tests"))
	v.filled(p, "PR10", "summary")
	if v.present(p, "SCHEMA", "requires_approval") && p.word("requires_approval") != "boolean" {
		v.Add("SCHEMA", "", "requires_approval must be boolean, got %s", p.word("requires_approval"))
	}
	if !v.present(p, "PR9", "confidence") {
		return
	}
	n, ok := p["confidence"].(float64)
	switch {
	case !ok:
		v.Add("PR9", "", "confidence must be number, got %s", p.word("confidence"))
	case n != math.Trunc(n):
		v.Add("PR9", "", "confidence must be integer, got %s", p.text("confidence"))
	case n < 0 || n > 100:
		v.Add("PR9", "", "confidence must be 0-100, got %s", p.text("confidence"))
	}
}

func (v *verifier) present(p fields, id, name string) bool {
	if p[name] == nil {
		v.Add(id, "", "Missing %s field", name)
		return false
	}
	return true
}

func (v *verifier) string(p fields, id, name string) (string, bool) {
	if !v.present(p, id, name) {
		return "", false
	}
	s, ok := p[name].(string)
	if !ok {
		v.Add(id, "", "%s must be string, got %s", name, p.word(name))
	}
	return s, ok
}

// filled checks for a string that is not blank.
func (v *verifier) filled(p fields, id, name string) {
	if s, ok := v.string(p, id, name); ok && Trim(s) == "" {
		v.Add(id, "", "%s must be non-empty", name)
	}
}

func (v *verifier) array(p fields, id, name string) []any {
	if !v.present(p, id, name) {
		return nil
	}
	list, ok := p[name].([]any)
	if !ok {
		v.Add(id, "", "%s must be array, got %s", name, p.word(name))
	}
	return list
}

var (
	actionTypes = []string{CreateFile, ModifyFile, DeleteFile, ExecuteCommand, Validate, RunTest}
	testTypes   = []string{HashMatch, CommandSuccess, FileExists, ContentMatch}
)

// A typed field of an action or a test must have its type where it is there. A
// missing one is reported where it is needed, by VerifyStrict. The fields with a
// rule of their own are not among these.
type typed struct {
	name, word string
	needed     bool
}

var (
	actionFields = []typed{
		{"target", "string", true},
		{"content", "string", false},
		{"expected_hash", "string", false},
		{"required", "boolean", true},
		{"description", "string", true},
	}
	testFields = []typed{
		{"id", "string", true},
		{"name", "string", true},
		{"target", "string", true},
		{"expected", "string", true},
		{"required", "boolean", true},
	}
)

func (v *verifier) types(f fields, want []typed) {
	for _, t := range want {
		if f[t.name] != nil && f.word(t.name) != t.word {
			v.Add("SCHEMA", f.id(), "%s must be %s, got %s", t.name, t.word, f.word(t.name))
		}
	}
}

func (v *verifier) actions(list []any) {
	for _, item := range list {
		if v.object(item, "Action") {
			v.action(fieldsOf(item))
		}
	}
	v.duplicates(list, "PR4", "Duplicate action ID: %s")
	v.actionOrder(list)
}

// object checks what is in a list; what is no object has no fields to report.
func (v *verifier) object(item any, what string) bool {
	_, ok := item.(map[string]any)
	if !ok {
		v.Add("SCHEMA", "", "%s must be a non-null object", what)
	}
	return ok
}

func (v *verifier) action(a fields) {
	v.types(a, actionFields)
	if a["order"] == nil { // PR11 cannot be judged without
		v.Add("SCHEMA", a.id(), "Action missing order field")
	} else if _, ok := a.order(); !ok {
		v.Add("SCHEMA", a.id(), "order must be number, got %s", a.word("order"))
	}
	v.kind(a, "PR5", "Action missing type field", "Invalid action type: %s", actionTypes)
	if a["id"] == nil {
		v.Add("PR6", "", "Action missing id field")
	} else if !actionID().MatchString(a.id()) {
		v.Add("PR6", a.id(), "Action ID does not match pattern act_{hash16}: %s", a.text("id"))
	}
	content, present := a["content"]
	switch t := a["type"]; {
	case (t == CreateFile || t == ModifyFile) && content == nil:
		v.Add("PR12", a.id(), "%s action must have content", t)
	case t == DeleteFile && present:
		v.Add("PR12", a.id(), "delete_file action must not have content")
	}
}

// kind checks the type field of an action or a test.
func (v *verifier) kind(f fields, id, missing, invalid string, types []string) {
	if f["type"] == nil {
		v.Add(id, f.id(), "%s", missing)
		return
	}
	if s, ok := f["type"].(string); !ok || !slices.Contains(types, s) {
		v.Add(id, f.id(), invalid, f.text("type"))
	}
}

// duplicates reports every later use of an id. What is not a string is no id.
func (v *verifier) duplicates(list []any, id, message string) {
	seen := make(map[string]bool)
	for _, item := range list {
		s, ok := fieldsOf(item)["id"].(string)
		if !ok {
			continue
		}
		if seen[s] {
			v.Add(id, s, message, s)
		}
		seen[s] = true
	}
}

func (v *verifier) tests(list []any) {
	for _, item := range list {
		if v.object(item, "Test") {
			t := fieldsOf(item)
			v.types(t, testFields)
			v.kind(t, "PR8", "Test missing type field", "Invalid test type: %s", testTypes)
		}
	}
	v.duplicates(list, "PR7", "Duplicate test ID: %s")
	for i := 1; i < len(list); i++ {
		a, b := fieldsOf(list[i-1]), fieldsOf(list[i])
		if idAfter(a, b) {
			v.Add("PR11", b.id(), "Tests not sorted by id: %s before %s", a.id(), b.id())
			return
		}
	}
}

// actionOrder reports the first action that is out of order. An action without an
// order is reported for that, and is compared with none.
func (v *verifier) actionOrder(list []any) {
	for i := 1; i < len(list); i++ {
		a, b := fieldsOf(list[i-1]), fieldsOf(list[i])
		x, sorted := a.order()
		y, also := b.order()
		if !sorted || !also {
			continue
		}
		if x > y {
			v.Add("PR11", b.id(), "Actions not sorted by order: %s (order=%s) before %s (order=%s)",
				a.text("id"), String(x, true), b.text("id"), String(y, true))
			return
		}
		if x == y && idAfter(a, b) {
			v.Add("PR11", b.id(), "Actions with same order not sorted by id: %s before %s", a.id(), b.id())
			return
		}
	}
}

func (f fields) order() (float64, bool) {
	n, ok := f["order"].(float64)
	return n, ok
}

// idAfter reports whether a's id sorts after b's. Only strings can be compared.
func idAfter(a, b fields) bool {
	x, ok := a["id"].(string)
	y, also := b["id"].(string)
	return ok && also && canon.Compare(x, y) > 0
}
