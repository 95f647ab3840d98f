package document_test

import (
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/document"
)

const (
	act1 = "act_0000000000000001"
	act2 = "act_0000000000000002"
)

func TestVerifyActions(t *testing.T) {
	check(t, []row{
		{"actions", `[5,null,"x",[],true]`, slices.Repeat([]string{"SCHEMA||Action must be a non-null object"}, 5)},
		{"actions", `[{}]`, []string{"PR5||Action missing type field", "PR6||Action missing id field", "SCHEMA||Action missing order field"}},
		{"actions", `[{"order":0,"type":"test"}]`, []string{"PR6||Action missing id field"}},
		{"actions", `[{"order":0,"id":null,"type":"test"}]`, []string{"PR6||Action missing id field"}},
		{"actions", `[{"order":0,"id":5,"type":"test"}]`, []string{"PR6||Action ID does not match pattern act_{hash16}: 5"}},
		{"actions", `[{"order":0,"id":["` + act1 + `"],"type":"test"}]`, []string{"PR6||Action ID does not match pattern act_{hash16}: " + act1}},
		{"actions", `[{"order":0,"id":"","type":"test"}]`, []string{"PR6||Action ID does not match pattern act_{hash16}: "}},
		{"actions", `[{"order":0,"id":"` + act1 + `x","type":"test"}]`, []string{"PR6|" + act1 + "x|Action ID does not match pattern act_{hash16}: " + act1 + "x"}},
		{"actions", `[{"order":0,"id":"` + act1 + `"}]`, []string{"PR5|" + act1 + "|Action missing type field"}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":null}]`, []string{"PR5|" + act1 + "|Action missing type field"}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":5}]`, []string{"PR5|" + act1 + "|Invalid action type: 5"}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":{}}]`, []string{"PR5|" + act1 + "|Invalid action type: [object Object]"}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":["test"]}]`, []string{"PR5|" + act1 + "|Invalid action type: test"}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":""}]`, []string{"PR5|" + act1 + "|Invalid action type: "}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":"Test"}]`, []string{"PR5|" + act1 + "|Invalid action type: Test"}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":"test"},{"order":0,"id":"` + act1 + `","type":"test"},{"order":0,"id":"` + act1 + `","type":"test"}]`, []string{
			"PR4|" + act1 + "|Duplicate action ID: " + act1, "PR4|" + act1 + "|Duplicate action ID: " + act1,
		}},
		{"actions", `[{"order":0,"id":5,"type":"test"},{"order":0,"id":5,"type":"test"}]`, []string{
			"PR6||Action ID does not match pattern act_{hash16}: 5", "PR6||Action ID does not match pattern act_{hash16}: 5",
		}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":"create_file","content":""}]`, nil},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":"create_file"}]`, []string{"PR12|" + act1 + "|create_file action must have content"}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":"modify_file","content":null}]`, []string{"PR12|" + act1 + "|modify_file action must have content"}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":"delete_file","content":""}]`, []string{"PR12|" + act1 + "|delete_file action must not have content"}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":"delete_file","content":null}]`, []string{"PR12|" + act1 + "|delete_file action must not have content"}},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":"delete_file"}]`, nil},
		{"actions", `[{"order":0,"id":"` + act1 + `","type":"execute_command","content":"x"}]`, nil},
		{"actions", `[{"id":"` + act1 + `","type":"create_file","target":1,"content":2,"expected_hash":true,"required":"yes","description":[],"order":"0"}]`, []string{
			"SCHEMA|" + act1 + "|target must be string, got number",
			"SCHEMA|" + act1 + "|content must be string, got number",
			"SCHEMA|" + act1 + "|expected_hash must be string, got boolean",
			"SCHEMA|" + act1 + "|required must be boolean, got string",
			"SCHEMA|" + act1 + "|description must be string, got object",
			"SCHEMA|" + act1 + "|order must be number, got string",
		}},
	}, document.VerifyProposal)
}

func TestVerifyOrder(t *testing.T) {
	check(t, []row{
		{"actions", `[{"id":"` + act1 + `","type":"test","order":1},{"id":"` + act2 + `","type":"test","order":0.5},{"id":"act_0000000000000000","type":"test","order":0}]`, []string{
			"PR11|" + act2 + "|Actions not sorted by order: " + act1 + " (order=1) before " + act2 + " (order=0.5)",
		}},
		{"actions", `[{"id":"` + act1 + `","type":"test","order":1},{"id":"` + act2 + `","type":"test"},{"id":"act_0000000000000000","type":"test","order":0}]`, []string{
			"SCHEMA|" + act2 + "|Action missing order field", // and it is compared with none
		}},
		{"actions", `[{"id":"` + act1 + `","type":"test","order":1},{"id":"` + act2 + `","type":"test","order":"0"}]`, []string{
			"SCHEMA|" + act2 + "|order must be number, got string",
		}},
		{"actions", `[{"id":"` + act2 + `","type":"test","order":0},{"id":"` + act1 + `","type":"test","order":0}]`, []string{
			"PR11|" + act1 + "|Actions with same order not sorted by id: " + act2 + " before " + act1,
		}},
		{"actions", `[{"id":"` + act2 + `","type":"test","order":-1},{"id":"` + act1 + `","type":"test","order":10}]`, nil},
		{"actions", `[{"type":"test","order":1},{"id":"` + act1 + `","type":"test","order":0}]`, []string{
			"PR11|" + act1 + "|Actions not sorted by order: undefined (order=1) before " + act1 + " (order=0)",
			"PR6||Action missing id field",
		}},
		{"acceptance_tests", `[{"id":"b","type":"hash_match"},{"id":"a","type":"hash_match"},{"id":"0","type":"hash_match"}]`, []string{
			"PR11|a|Tests not sorted by id: b before a",
		}},
		{"acceptance_tests", `[{"id":"\uffff","type":"hash_match"},{"id":"\ud83d\ude00","type":"hash_match"}]`, []string{
			"PR11|\U0001F600|Tests not sorted by id: \uffff before \U0001F600", // by UTF-16 code unit
		}},
	}, document.VerifyProposal)
}

func TestVerifyTests(t *testing.T) {
	check(t, []row{
		{"acceptance_tests", `[5,null,"x",[]]`, slices.Repeat([]string{"SCHEMA||Test must be a non-null object"}, 4)},
		{"acceptance_tests", `[{"id":"a","type":"hash_match"},{"id":"a","type":"file_exists"}]`, []string{"PR7|a|Duplicate test ID: a"}},
		{"acceptance_tests", `[{"id":"a"}]`, []string{"PR8|a|Test missing type field"}},
		{"acceptance_tests", `[{"id":"a","type":"nope"}]`, []string{"PR8|a|Invalid test type: nope"}},
		{"acceptance_tests", `[{"id":"a","type":false}]`, []string{"PR8|a|Invalid test type: false"}},
		{"acceptance_tests", `[{"type":"content_match"},{"type":"command_success"}]`, nil},
		{"acceptance_tests", `[{"id":1,"type":"hash_match"},{"id":1,"type":"hash_match"}]`, []string{
			"SCHEMA||id must be string, got number", "SCHEMA||id must be string, got number",
		}},
		{"acceptance_tests", `[{"id":"a","type":"hash_match","name":1,"target":2,"expected":3,"required":4}]`, []string{
			"SCHEMA|a|name must be string, got number",
			"SCHEMA|a|target must be string, got number",
			"SCHEMA|a|expected must be string, got number",
			"SCHEMA|a|required must be boolean, got number",
		}},
	}, document.VerifyProposal)
}
