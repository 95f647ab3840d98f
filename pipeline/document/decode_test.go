package document_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

func TestDecode(t *testing.T) {
	got, err := document.DecodeProposal(parse(t, sound))
	if err != nil {
		t.Fatal(err)
	}
	content := "hello\n"
	want := document.Proposal{
		ID: got.ID, SchemaVersion: "1.0.0",
		SourceBundleID: "bun_0123456789abcdef", SourceBundleHash: got.SourceBundleHash,
		Actions: []document.Action{{
			ID: "act_cd8da12f774313b8", Type: document.CreateFile, Target: "hello.txt", Content: &content,
			Required: true, Description: "Say hello.",
		}},
		AcceptanceTests: []document.Test{{ID: "t1", Name: "n", Type: document.CommandSuccess, Target: "make", Expected: "0", Required: true}},
		Summary:         "Add a greeting.", RequiresApproval: true, Confidence: 90,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct{ field, value, want string }{
		{"id", `5`, "proposal: id cannot be number"},
		{"actions", `{}`, "proposal: actions cannot be object"},
		{"actions", `[7,null]`, "actions[0] is no object"},
		{"actions", `[{"id":"a","type":"test","target":"t","content":5},{"order":"x"}]`, "actions[0]: content cannot be number"},
		{"acceptance_tests", `[{"id":"a","name":"n","type":"t","target":"t","expected":"","required":"x"}]`, "acceptance_tests[0]: required cannot be string"},
	} {
		_, err := document.DecodeProposal(with(t, c.field, c.value))
		if want := "decoding proposal: " + c.want; err == nil || err.Error() != want {
			t.Errorf("%s %s: got %v, want %s", c.field, c.value, err, want)
		}
	}
	if _, err := document.DecodeProposal([]any{}); err == nil {
		t.Error("an array is decoded")
	}
}

func TestKindsOfAction(t *testing.T) {
	var items []string
	for i, kind := range []string{"test", "modify_file", "execute_command", "delete_file", "validate", "create_file"} {
		items = append(items, fmt.Sprintf(`{"id":"a","type":%q,"target":"%d","required":true,"description":"","order":0}`, kind, i))
	}
	p, err := document.DecodeProposal(with(t, "actions", "["+strings.Join(items, ",")+"]"))
	if err != nil {
		t.Fatal(err)
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
// finds sound can be decoded.
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
		_, err = document.DecodeProposal(doc)
		if err != nil && !slices.ContainsFunc(strict, func(v canon.Violation) bool { return !strings.HasPrefix(v.RuleID, "ID") }) {
			t.Fatal(err)
		}
	})
}
