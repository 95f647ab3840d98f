package document_test

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// The sample of the package comment, whose bundle is
// {"files":[],"id":"bun_0123456789abcdef"}.
func ExampleVerifyStrict() {
	doc, err := canon.Parse([]byte(`
		{"acceptance_tests":[],
		 "actions":[{"content":"hello\n","description":"Say hello.",
		   "id":"act_cd8da12f774313b8","order":0,"required":true,
		   "target":"hello.txt","type":"create_file"}],
		 "confidence":90,"id":"prop_bc4cd7dd71f288f2","requires_approval":true,
		 "schema_version":"1.0.0","source_bundle_hash":
		   "sha256:d7c0d128c186bb3ec7961400a98115fea6bd8b15aaee60ddc78d68c56012b1ee",
		 "source_bundle_id":"bun_0123456789abcdef","summary":"Add a greeting."}`))
	if err != nil {
		panic(err)
	}
	bundle := map[string]any{"files": []any{}, "id": "bun_0123456789abcdef"}
	fmt.Println(canon.NewReport(document.VerifyStrict(doc, document.Strict{Bundle: bundle, HasBundle: true})).OK)
	// Output: true
}

func ExampleVerifyProposal() {
	doc := map[string]any{"schema_version": "1.0.0", "actions": "none"}
	for _, v := range document.VerifyProposal(doc)[:3] {
		fmt.Println(v.RuleID, v.Message)
	}
	// Output:
	// PR10 Missing summary field
	// PR2 Missing source_bundle_id field
	// PR2 Missing source_bundle_hash field
}
