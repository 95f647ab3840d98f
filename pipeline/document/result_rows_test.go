package document_test

import "strings"

const hashA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// valid is the document that each row changes.
const valid = `{"apply_schema_version":"1.0.0","outcome":"SUCCESS","dry_run":false,"target_root":"w",` +
	`"patch_source":{"proposal_id":"p","proposal_hash":"h"},"operation_results":[` +
	`{"op":"modify","path":"a","status":"success","before_hash":"` + hashA + `","after_hash":"` + hashA + `","bytes_written":1},` +
	`{"op":"delete","path":"b","status":"success","before_hash":"` + hashA + `","after_hash":null,"bytes_written":0}],` +
	`"summary":{"total_operations":2,"succeeded":2,"skipped":0,"failed":0,"total_bytes_written":1}}`

// A row replaces old by new in valid; want is "RULE path: message" a line.
var resultRows = []struct{ name, old, new, want string }{
	{"unchanged", "", "", ""},
	{"unknown keys", `"dry_run"`, `"x":{},"dry_run"`, ""},
	{"null", valid, `null`, "SCHEMA $: result must be object, got null"},
	{"array", valid, `[]`, "SCHEMA $: result must be object, got object"},
	{"number", valid, `1`, "SCHEMA $: result must be object, got number"},
	{"boolean", valid, `true`, "SCHEMA $: result must be object, got boolean"},

	{"version null", `"1.0.0"`, `null`, "AS1 $.apply_schema_version: apply_schema_version is missing"},
	{"version number", `"1.0.0"`, `1`, "AS1 $.apply_schema_version: apply_schema_version must be string, got number"},
	{"version array", `"1.0.0"`, `[]`, "AS1 $.apply_schema_version: apply_schema_version must be string, got object"},
	{"version other", `"1.0.0"`, `"9"`, ""},
	{"version empty, shape good", `"1.0.0","outcome":"SUCCESS"`, `"","outcome":"FAILED"`,
		"AS1 $.apply_schema_version: apply_schema_version cannot be empty\n" +
			"AS9 : outcome is FAILED but no error message provided"},
	{"version empty, shape bad", `"1.0.0","outcome":"SUCCESS"`, `"","outcome":"OK"`,
		"AS1 $.apply_schema_version: apply_schema_version cannot be empty\n" +
			"SCHEMA $.outcome: invalid outcome: OK"},
	{"missing field and wrong type", `"outcome":"SUCCESS","dry_run":false`, `"dry_run":1`,
		"SCHEMA $.dry_run: dry_run must be boolean, got number\n" +
			"SCHEMA $.outcome: required field outcome is missing"},

	{"outcome case", `"SUCCESS"`, `"success"`, "SCHEMA $.outcome: invalid outcome: success"},
	{"outcome null", `"SUCCESS"`, `null`, "SCHEMA $.outcome: invalid outcome: null"},
	{"outcome object", `"SUCCESS"`, `{}`, "SCHEMA $.outcome: invalid outcome: [object Object]"},
	{"outcome in an array", `"SUCCESS"`, `["SUCCESS"]`, "SCHEMA $.outcome: invalid outcome: SUCCESS"},
	{"dry_run null", `false`, `null`, "SCHEMA $.dry_run: dry_run must be boolean, got object"},
	{"target_root number", `"target_root":"w"`, `"target_root":1`, "SCHEMA $.target_root: target_root must be a string"},
	{"patch_source null", `{"proposal_id":"p","proposal_hash":"h"}`, `null`, "SCHEMA $.patch_source: patch_source must be an object"},
	{"patch_source empty", `{"proposal_id":"p","proposal_hash":"h"}`, `{}`,
		"SCHEMA $.patch_source.proposal_hash: patch_source.proposal_hash must be a string\n" +
			"SCHEMA $.patch_source.proposal_id: patch_source.proposal_id must be a string"},
	{"proposal_id null", `"p"`, `null`, "SCHEMA $.patch_source.proposal_id: patch_source.proposal_id must be a string"},
	{"proposal_hash number", `"h"`, `5`, "SCHEMA $.patch_source.proposal_hash: patch_source.proposal_hash must be a string"},
	{"proposal ids empty", `{"proposal_id":"p","proposal_hash":"h"}`, `{"proposal_id":"","proposal_hash":""}`, ""},

	{"operations null", valid[strings.Index(valid, `[{`) : strings.Index(valid, `}]`)+2], `null`,
		"SCHEMA $.operation_results: operation_results must be an array"},
	{"operation null", `{"op":"modify"`, `null,{"op":"modify"`, "SCHEMA $.operation_results[0]: operation result must be an object\n" +
		"SCHEMA $.summary.total_operations: total_operations (2) does not match operation_results length (3)"},
	{"operation array", `{"op":"modify"`, `[],{"op":"modify"`, "SCHEMA $.operation_results[0]: operation result must be an object\n" +
		"SCHEMA $.summary.total_operations: total_operations (2) does not match operation_results length (3)"},
	{"operation empty", `{"op":"modify"`, `{},{"op":"modify"`,
		"AS7 $.operation_results[0].after_hash: invalid hash format: undefined\n" +
			"AS7 $.operation_results[0].before_hash: invalid hash format: undefined\n" +
			"SCHEMA $.operation_results[0].bytes_written: bytes_written must be a number\n" +
			"SCHEMA $.operation_results[0].op: invalid op: undefined\n" +
			"SCHEMA $.operation_results[0].path: path must be a string\n" +
			"SCHEMA $.operation_results[0].status: invalid status: undefined\n" +
			"SCHEMA $.summary.total_operations: total_operations (2) does not match operation_results length (3)"},
	{"op rename", `"op":"delete"`, `"op":"rename"`, "SCHEMA $.operation_results[1].op: invalid op: rename"},
	{"op number", `"op":"delete"`, `"op":1e21`, "SCHEMA $.operation_results[1].op: invalid op: 1e+21"},
	{"path number", `"path":"b"`, `"path":5`, "SCHEMA $.operation_results[1].path: path must be a string"},
	{"status done", `"status":"success"`, `"status":"done"`, "SCHEMA $.operation_results[0].status: invalid status: done\n" +
		"SCHEMA $.summary.succeeded: succeeded count (2) does not match actual (1)"},
	{"status null", `"status":"success"`, `"status":null`, "SCHEMA $.operation_results[0].status: invalid status: null\n" +
		"SCHEMA $.summary.succeeded: succeeded count (2) does not match actual (1)"},
	{"bytes text", `"bytes_written":1`, `"bytes_written":"1"`,
		"SCHEMA $.operation_results[0].bytes_written: bytes_written must be a number"},
	{"operation error number", `"path":"b"`, `"error":1,"path":"b"`, "SCHEMA $.operation_results[1].error: error must be a string"},
	{"operation error null", `"path":"b"`, `"error":null,"path":"b"`, ""},

	{"summary null", valid[strings.Index(valid, `{"total`) : len(valid)-1], `null`, "SCHEMA $.summary: summary must be an object"},
	{"summary array", valid[strings.Index(valid, `{"total`) : len(valid)-1], `[]`, "SCHEMA $.summary: summary must be an object"},
	{"summary text", valid[strings.Index(valid, `{"total`) : len(valid)-1], `{"total_operations":"2","succeeded":null}`,
		"SCHEMA $.summary.failed: summary.failed must be a number\n" +
			"SCHEMA $.summary.skipped: summary.skipped must be a number\n" +
			"SCHEMA $.summary.succeeded: summary.succeeded must be a number\n" +
			"SCHEMA $.summary.total_bytes_written: summary.total_bytes_written must be a number\n" +
			"SCHEMA $.summary.total_operations: summary.total_operations must be a number"},
	{"total", `"total_operations":2`, `"total_operations":3`,
		"SCHEMA $.summary.total_operations: total_operations (3) does not match operation_results length (2)"},
	{"counts", `"succeeded":2,"skipped":0,"failed":0`, `"succeeded":1.5,"skipped":-1,"failed":1e300`,
		"SCHEMA $.summary.failed: failed count (1e+300) does not match actual (0)\n" +
			"SCHEMA $.summary.skipped: skipped count (-1) does not match actual (0)\n" +
			"SCHEMA $.summary.succeeded: succeeded count (1.5) does not match actual (2)"},
	{"bytes", `"total_bytes_written":1`, `"total_bytes_written":0`,
		"SCHEMA $.summary.total_bytes_written: total_bytes_written (0) does not match actual (1)"},
	{"bytes past a double", `"bytes_written":1},{"op":"delete"`,
		`"bytes_written":1.7e308},{"op":"create","path":"a","status":"success","before_hash":null,"after_hash":null,"bytes_written":1.7e308},{"op":"delete"`,
		"SCHEMA $.summary.succeeded: succeeded count (2) does not match actual (3)\n" +
			"SCHEMA $.summary.total_bytes_written: total_bytes_written (1) does not match actual (Infinity)\n" +
			"SCHEMA $.summary.total_operations: total_operations (2) does not match operation_results length (3)"},
	{"count and hash", `"after_hash":null,"bytes_written":0`, `"after_hash":"x","bytes_written":4`,
		"AS7 $.operation_results[1].after_hash: invalid hash format: x\n" +
			"SCHEMA $.summary.total_bytes_written: total_bytes_written (1) does not match actual (5)"},

	{"equal paths", `"path":"b"`, `"path":"a"`, ""},
	{"code unit order", `"path":"a"`, `"path":"\uffff"`, "AS2 $.operation_results[1]: operation_results not sorted by path: \uffff > b"},
	{"pair before U+FFFF", `"path":"a"`, `"path":"B"`, ""},
	{"violations null", `"dry_run"`, `"violations":null,"dry_run"`, ""},
	{"violations empty", `"dry_run"`, `"violations":[],"dry_run"`, ""},
	{"violations object", `"dry_run"`, `"violations":{},"dry_run"`, "SCHEMA $.violations: violations must be an array"},
	{"violation number", `"dry_run"`, `"violations":[1,null],"dry_run"`,
		"SCHEMA $.violations[0]: violation must be an object\nSCHEMA $.violations[1]: violation must be an object"},
	{"violation fields", `"dry_run"`, `"violations":[{"rule_id":1,"path":2}],"dry_run"`,
		"SCHEMA $.violations[0].message: message must be a string\n" +
			"SCHEMA $.violations[0].path: path must be a string\n" +
			"SCHEMA $.violations[0].rule_id: rule_id must be a string"},
	{"violations sorted", `"dry_run"`, `"violations":[{"rule_id":"AS4","message":"m"},{"rule_id":"AS4","path":"a","message":""}],"dry_run"`, ""},

	{"hash absent", `"after_hash":null,`, ``, "AS7 $.operation_results[1].after_hash: invalid hash format: undefined"},
	{"hash short", `"after_hash":null`, `"after_hash":"sha256:ab"`, "AS7 $.operation_results[1].after_hash: invalid hash format: sha256:ab"},
	{"hash empty", `"after_hash":null`, `"after_hash":""`, "AS7 $.operation_results[1].after_hash: invalid hash format: "},
	{"hash number", `"after_hash":null`, `"after_hash":0`, "AS7 $.operation_results[1].after_hash: invalid hash format: 0"},
	{"hash with a newline", `"after_hash":null`, `"after_hash":"` + hashA + `\n"`,
		"AS7 $.operation_results[1].after_hash: invalid hash format: " + hashA + "\n"},
	{"before hash", `"before_hash":"sha256:`, `"before_hash":"sha512:`,
		"AS7 $.operation_results[0].before_hash: invalid hash format: sha512:" + hashA[7:]},

	{"refused, no error", `"SUCCESS"`, `"REFUSED"`, "AS9 : outcome is REFUSED but no error message provided"},
	{"failed, empty error", `"SUCCESS"`, `"FAILED","error":""`, "AS9 : outcome is FAILED but no error message provided"},
	{"failed, null error", `"SUCCESS"`, `"FAILED","error":null`, "AS9 : outcome is FAILED but no error message provided"},
	{"partial needs none", `"SUCCESS"`, `"PARTIAL"`, ""},
	{"error number", `"SUCCESS"`, `"FAILED","error":5`, "SCHEMA $.error: error must be a string"},
	{"operation without error", `"success","before_hash":"` + hashA + `","after_hash":null`, `"error","before_hash":null,"after_hash":null`,
		"AS9 $.operation_results[1]: operation status is error but no error message provided\n" +
			"SCHEMA $.summary.failed: failed count (0) does not match actual (1)\n" +
			"SCHEMA $.summary.succeeded: succeeded count (2) does not match actual (1)"},

	{"wrong type and AS2", `"dry_run":false,"target_root":"w","patch_source":{"proposal_id":"p","proposal_hash":"h"},"operation_results":[{"op":"modify","path":"a"`,
		`"dry_run":0,"target_root":"w","patch_source":{"proposal_id":"p","proposal_hash":"h"},"operation_results":[{"op":"modify","path":"c"`,
		"AS2 $.operation_results[1]: operation_results not sorted by path: c > b\nSCHEMA $.dry_run: dry_run must be boolean, got number"},
	{"wrong type and AS7", `"path":"b","status":"success","before_hash":"`, `"path":5,"status":"success","before_hash":"x`,
		"AS7 $.operation_results[1].before_hash: invalid hash format: x" + hashA + "\nSCHEMA $.operation_results[1].path: path must be a string"},
	{"wrong type and AS9", `"SUCCESS","dry_run":false`, `"FAILED","dry_run":null`,
		"AS9 : outcome is FAILED but no error message provided\nSCHEMA $.dry_run: dry_run must be boolean, got object"},
	{"wrong type and AS12", `"target_root":"w","patch_source":{"proposal_id":"p"`, `"target_root":"/w","patch_source":{"proposal_id":1`,
		"AS12 $.target_root: absolute path in target_root: /w\nSCHEMA $.patch_source.proposal_id: patch_source.proposal_id must be a string"},
	{"a missing field hides AS12", `"dry_run":false,"target_root":"w"`, `"target_root":"/w"`, "SCHEMA $.dry_run: required field dry_run is missing"},

	{"root drive", `"target_root":"w"`, `"target_root":"z:w"`, "AS12 $.target_root: absolute path in target_root: z:w"},
	{"root no drive", `"target_root":"w"`, `"target_root":"1:/"`, ""},
	{"root empty", `"target_root":"w"`, `"target_root":""`, ""},
	{"operation slash", `"path":"a"`, `"path":"/a"`, "AS12 $.operation_results[0].path: absolute path in operation: /a"},
}
