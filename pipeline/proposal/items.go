package proposal

import (
	"slices"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

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
				a.text("id"), canon.String(x, true), b.text("id"), canon.String(y, true))
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
