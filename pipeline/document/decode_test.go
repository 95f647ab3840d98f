package document_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

func TestRead(t *testing.T) {
	got, found := document.ReadProposal(parse(t, sound), document.Strict{})
	content := "hello\n"
	want := document.Proposal{
		ID: got.ID,
		Actions: []document.Action{{
			ID: "act_cd8da12f774313b8", Type: document.CreateFile, Target: "hello.txt", Content: &content,
			Required: true, Description: "Say hello.",
		}},
		AcceptanceTests: []document.Test{{ID: "t1", Name: "n", Type: document.CommandSuccess, Target: "make", Expected: "0", Required: true}},
		Summary:         "Add a greeting.", RequiresApproval: true, Confidence: 90,
	}
	if len(found) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, found, want)
	}
}

func TestUnsoundIsNotRead(t *testing.T) {
	for _, doc := range []any{[]any{}, with(t, "id", `5`), with(t, "actions", `[7]`), with(t, "summary", `"another one"`)} {
		if p, found := document.ReadProposal(doc, document.Strict{}); len(found) == 0 || !reflect.DeepEqual(p, document.Proposal{}) {
			t.Errorf("%v is read as %+v", doc, p)
		}
	}
}

func TestKindsOfAction(t *testing.T) {
	var p document.Proposal
	for i, kind := range []string{"test", "modify_file", "execute_command", "delete_file", "validate", "create_file"} {
		p.Actions = append(p.Actions, document.Action{Type: kind, Target: fmt.Sprint(i)})
	}
	for _, c := range []struct {
		name    string
		actions []document.Action
		want    string
	}{
		{"Files", p.Files(), "135"}, {"Commands", p.Commands(), "2"}, {"Checks", p.Checks(), "04"},
	} {
		var got string
		for _, a := range c.actions {
			got += a.Target
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// FuzzVerify: no document panics, strict adds to Verify, and what VerifyStrict
// finds sound is read whole.
func FuzzVerify(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.InputJSON))
	}
	f.Add([]byte(sound))
	f.Add([]byte(`{"actions":[null,1,{"id":[],"order":{}}],"acceptance_tests":[[],{"id":{}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := canon.Parse(data)
		if err != nil {
			t.Skip()
		}
		found := document.VerifyProposal(doc)
		strict := document.VerifyStrict(doc, document.Strict{Bundle: doc, HasBundle: true})
		if len(strict) < len(found) {
			t.Fatalf("strict %v, plain %v", strict, found)
		}
		p, found := document.ReadProposal(doc, document.Strict{})
		if m, _ := doc.(map[string]any); len(found) == 0 && (len(p.Actions) != len(m["actions"].([]any)) || len(p.AcceptanceTests) != len(m["acceptance_tests"].([]any))) {
			t.Fatalf("%s is read as %+v", data, p)
		}
	})
}
