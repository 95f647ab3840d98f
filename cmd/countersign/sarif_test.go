package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/proofs"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

// TestSARIFSchema holds what audit --sarif writes to the schema of SARIF 2.1.0, which a
// public library has within it.
func TestSARIFSchema(t *testing.T) {
	if testing.Short() {
		t.Skip("a module is downloaded")
	}
	source := download(t, "github.com/owenrumney/go-sarif/v3", "v3.3.1")["pkg/report/v210/sarif/schema.go"]
	_, text, _ := strings.Cut(source, "const schema = `")
	text = text[:strings.LastIndexByte(text, '`')]
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	check(t, err)
	c := jsonschema.NewCompiler()
	check(t, c.AddResource("sarif.json", doc))
	schema := c.MustCompile("sarif.json")
	id := strings.Repeat("b", 40)
	branch := &explain.Branch{Name: "main", Unexplained: []explain.Unexplained{
		{Commit: id, Subject: "<script>", Reason: "no transaction proposes this change", Paths: []string{"a b/c%.go", "\u202e"}},
		{Commit: id, Reason: "is a merge", Lines: []explain.Lines{{Path: "m", From: 3, To: 2}, {Path: "n"}}},
		{Commit: id, Reason: "changes no file"},
	}}
	found := audit.Result{Findings: []history.Finding{{RuleID: "L14", Message: "was rewritten"}}}
	valid := func(log map[string]any) error {
		raw, err := json.Marshal(log)
		check(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		check(t, err)
		return schema.Validate(doc)
	}
	check(t, valid(proofs.SARIF(found, branch, nil, "refs/agent/ledger", "1.0")))
	check(t, valid(proofs.SARIF(audit.Result{}, nil, nil, "refs/agent/ledger", "")))
	wrong := proofs.SARIF(found, branch, nil, "refs/agent/ledger", "1.0")
	if wrong["version"] = "2"; valid(wrong) == nil {
		t.Error("the schema takes another version")
	}
}
