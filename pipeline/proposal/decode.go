package proposal

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// Decode turns a parsed document that VerifyStrict found sound into a Proposal. It
// fails where a field has another type, is missing or is null, which VerifyStrict
// reports too; only an action's content and expected_hash may be left out.
func Decode(doc any) (Proposal, error) {
	if _, ok := doc.(map[string]any); !ok {
		return Proposal{}, fmt.Errorf("decoding proposal: document is no object")
	}
	d := decoder{f: fieldsOf(doc), where: "proposal"}
	p := Proposal{
		ID:               field[string](&d, "id"),
		SchemaVersion:    field[string](&d, "schema_version"),
		SourceBundleID:   field[string](&d, "source_bundle_id"),
		SourceBundleHash: field[string](&d, "source_bundle_hash"),
		Summary:          field[string](&d, "summary"),
		RequiresApproval: field[bool](&d, "requires_approval"),
		Confidence:       int(field[float64](&d, "confidence")),
	}
	for i, item := range field[[]any](&d, "actions") {
		p.Actions = append(p.Actions, d.action(item, i))
	}
	for i, item := range field[[]any](&d, "acceptance_tests") {
		p.AcceptanceTests = append(p.AcceptanceTests, d.test(item, i))
	}
	if d.err != nil {
		return Proposal{}, fmt.Errorf("decoding proposal: %w", d.err)
	}
	return p, nil
}

// A decoder reads the fields of one object and keeps the first error.
type decoder struct {
	f     fields
	where string
	err   error
}

func field[T any](d *decoder, name string) T {
	raw := d.f[name]
	v, ok := raw.(T)
	switch {
	case ok || d.err != nil:
	case raw == nil:
		d.err = fmt.Errorf("%s: %s is missing", d.where, name)
	default:
		d.err = fmt.Errorf("%s: %s cannot be %s", d.where, name, canon.TypeOf(raw, true))
	}
	return v
}

// optional is a text that may be left out.
func (d *decoder) optional(name string) *string {
	if d.f[name] == nil {
		return nil
	}
	s := field[string](d, name)
	return &s
}

// item begins an element of a list.
func (d *decoder) item(v any, list string, i int) decoder {
	where := fmt.Sprintf("%s[%d]", list, i)
	if _, ok := v.(map[string]any); !ok && d.err == nil {
		d.err = fmt.Errorf("%s is no object", where)
	}
	return decoder{f: fieldsOf(v), where: where, err: d.err}
}

func (d *decoder) action(v any, i int) Action {
	a := d.item(v, "actions", i)
	out := Action{
		ID:          field[string](&a, "id"),
		Type:        field[string](&a, "type"),
		Target:      field[string](&a, "target"),
		Content:     a.optional("content"),
		Required:    field[bool](&a, "required"),
		Description: field[string](&a, "description"),
		Order:       field[float64](&a, "order"),
	}
	if hash := a.optional("expected_hash"); hash != nil {
		out.ExpectedHash = *hash
	}
	d.err = a.err
	return out
}

func (d *decoder) test(v any, i int) Test {
	t := d.item(v, "acceptance_tests", i)
	out := Test{
		ID:       field[string](&t, "id"),
		Name:     field[string](&t, "name"),
		Type:     field[string](&t, "type"),
		Target:   field[string](&t, "target"),
		Expected: field[string](&t, "expected"),
		Required: field[bool](&t, "required"),
	}
	d.err = t.err
	return out
}
