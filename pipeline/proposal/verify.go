package proposal

import (
	"math"
	"strings"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

var (
	proposalID = lazyregexp.New(`^prop_[a-f0-9]{16}$`)
	actionID   = lazyregexp.New(`^act_[a-f0-9]{16}$`)
)

// Verify checks a parsed document against SCHEMA and PR1 to PR12, listed in the
// package comment. It returns the violations in the order of a rule.Report, none
// for a sound document.
func Verify(doc any) []rule.Violation {
	v := verifier{}
	v.proposal(doc)
	return v.Sorted()
}

// A verifier collects violations in the order of the rules' checks.
type verifier struct{ rule.Finder }

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

// word and text are typeof and String of a field.
func (f fields) word(name string) string {
	v, present := f[name]
	return canon.TypeOf(v, present)
}

func (f fields) text(name string) string {
	v, present := f[name]
	return canon.String(v, present)
}

func (v *verifier) proposal(doc any) {
	if _, ok := doc.(map[string]any); !ok {
		v.Add("SCHEMA", "", "Proposal must be a non-null object")
		return
	}
	p := fieldsOf(doc)
	v.id(p)
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
	v.confidence(p)
}

func (v *verifier) id(p fields) {
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
	if s, ok := v.string(p, id, name); ok && canon.Trim(s) == "" {
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

func (v *verifier) confidence(p fields) {
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
