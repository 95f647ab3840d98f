package document_test

// rows are documents and what breaks in them, "RULE path: message" a line,
// under a limit of 10 bytes.
var rows = []struct{ name, in, want string }{
	{"good", packDocument(`[{"op":"create","path":"a","content":"0123456789"},{"op":"delete","path":"b"}]`, 10), ""},
	{"empty", packDocument(`[]`, 0), ""},
	{"minus zero", packDocument(`[]`, "-0"), ""},
	{"unknown keys", packDocument(`[{"op":"delete","path":"a","x":1}]`, `0,"y":[]`), ""},

	{"array", `[]`, "SCHEMA $: patch must be object, got object"},
	{"number", `1`, "SCHEMA $: patch must be object, got number"},
	{"boolean", `true`, "SCHEMA $: patch must be object, got boolean"},
	{"operations null", packDocument(`null`, 0), "SCHEMA $.operations: operations must be an array"},
	{"operations text", packDocument(`"x"`, 0), "SCHEMA $.operations: operations must be an array"},
	{"shape stops there", `{"patch_schema_version":"","source_proposal_id":1,"operations":{},"total_bytes":"x"}`,
		"PS1 $.patch_schema_version: patch_schema_version cannot be empty\n" +
			"SCHEMA $.operations: operations must be an array\n" +
			"SCHEMA $.source_proposal_hash: required field source_proposal_hash is missing"},
	{"operation shapes", packDocument(`[null,[],"x",{},{"op":"create","path":null,"content":1},{"op":"zap","path":"/a","content":null}]`, 0),
		"SCHEMA $.operations[0]: operation must be an object\n" +
			"SCHEMA $.operations[1]: operation must be an object\n" +
			"SCHEMA $.operations[2]: operation must be an object\n" +
			"SCHEMA $.operations[3].path: path must be a string\n" +
			"SCHEMA $.operations[4].content: content must be a string\n" +
			"SCHEMA $.operations[4].path: path must be a string\n" +
			"SCHEMA $.operations[5].content: content must be a string"},

	{"version null", `{"patch_schema_version":null,"source_proposal_id":1,"source_proposal_hash":2,"operations":[],"total_bytes":0}`,
		"PS1 $.patch_schema_version: patch_schema_version is missing"},
	{"version array", `{"patch_schema_version":[],"source_proposal_id":1,"source_proposal_hash":2,"operations":[],"total_bytes":0}`,
		"PS1 $.patch_schema_version: patch_schema_version must be string, got object"},
	{"version false", `{"patch_schema_version":false,"source_proposal_id":1,"source_proposal_hash":2,"operations":[],"total_bytes":0}`,
		"PS1 $.patch_schema_version: patch_schema_version must be string, got boolean"},
	{"version empty", `{"patch_schema_version":"","source_proposal_id":1,"source_proposal_hash":2,"operations":[],"total_bytes":1}`,
		"PS1 $.patch_schema_version: patch_schema_version cannot be empty\n" +
			"PS7 $.total_bytes: total_bytes (1) does not match actual content size (0)"},

	{"op absent", packDocument(`[{"path":"a"}]`, 0), "PS2 $.operations[0].op: invalid operation type: undefined"},
	{"op null", packDocument(`[{"op":null,"path":"a"}]`, 0), "PS2 $.operations[0].op: invalid operation type: null"},
	{"op true", packDocument(`[{"op":true,"path":"a"}]`, 0), "PS2 $.operations[0].op: invalid operation type: true"},
	{"op number", packDocument(`[{"op":1e21,"path":"a"}]`, 0), "PS2 $.operations[0].op: invalid operation type: 1e+21"},
	{"op object", packDocument(`[{"op":{},"path":"a"}]`, 0), "PS2 $.operations[0].op: invalid operation type: [object Object]"},
	{"op array", packDocument(`[{"op":["create",null,"x"],"path":"a"}]`, 0), "PS2 $.operations[0].op: invalid operation type: create,,x"},
	{"op in an array", packDocument(`[{"op":["symlink"],"path":"a"}]`, 0), "PS2 $.operations[0].op: invalid operation type: symlink"},
	{"op empty", packDocument(`[{"op":"","path":"a"}]`, 0), "PS2 $.operations[0].op: invalid operation type: "},
	{"op case", packDocument(`[{"op":"Create","path":"a","content":"x"}]`, 1), "PS2 $.operations[0].op: invalid operation type: Create"},
	{"symlink", packDocument(`[{"op":"symlink","path":"a"}]`, 0),
		"PS2 $.operations[0].op: invalid operation type: symlink\nPS9 $.operations[0].op: symlink operations are not allowed"},

	{"same path thrice", packDocument(`[{"op":"delete","path":"0"},{"op":"delete","path":"a"},{"op":"modify","path":"a","content":""},{"op":"delete","path":"a"}]`, 0),
		"PS5 $.operations[2].path: duplicate target path: a (also at index 1)\n" +
			"PS5 $.operations[3].path: duplicate target path: a (also at index 1)"},
	{"case differs", packDocument(`[{"op":"delete","path":"A"},{"op":"delete","path":"a"}]`, 0), ""},

	{"null byte", packDocument(`[{"op":"modify","path":"a","content":"\u0000"}]`, 1),
		"PS6 $.operations[0].content: content is not valid UTF-8 or contains null bytes"},
	{"lone surrogate", packDocument(`[{"op":"create","path":"a","content":"\ud800"}]`, 3),
		"PS6 $.operations[0].content: content is not valid UTF-8 or contains null bytes"},
	{"replacement character", packDocument(`[{"op":"create","path":"a","content":"\ufffd"}]`, 3), ""},
	{"delete with a null byte", packDocument(`[{"op":"delete","path":"a","content":"\u0000"}]`, 1),
		"PS6 $.operations[0].content: content is not valid UTF-8 or contains null bytes\n" +
			"PS6 $.operations[0].content: delete operation must not have content"},
	{"other op with a null byte", packDocument(`[{"op":"x","path":"a","content":"\u0000"}]`, 1),
		"PS2 $.operations[0].op: invalid operation type: x\n" +
			"PS6 $.operations[0].content: content is not valid UTF-8 or contains null bytes"},
	{"modify without content", packDocument(`[{"op":"modify","path":"a"}]`, 0), "PS6 $.operations[0].content: modify operation must have content"},

	{"total null", packDocument(`[]`, "null"), "PS7 $.total_bytes: total_bytes is missing or not a number"},
	{"total too high", packDocument(`[]`, 11),
		"PS7 $.total_bytes: total_bytes (11) exceeds limit (10)\n" +
			"PS7 $.total_bytes: total_bytes (11) does not match actual content size (0)"},
	{"total huge", packDocument(`[]`, "1e300"),
		"PS7 $.total_bytes: total_bytes (1e+300) exceeds limit (10)\n" +
			"PS7 $.total_bytes: total_bytes (1e+300) does not match actual content size (0)"},
	{"total fraction", packDocument(`[]`, 0.5), "PS7 $.total_bytes: total_bytes (0.5) does not match actual content size (0)"},
	{"content too long", packDocument(`[{"op":"create","path":"a","content":"01234567890"}]`, 11), "PS7 $.total_bytes: total_bytes (11) exceeds limit (10)"},
	{"delete's content counts", packDocument(`[{"op":"delete","path":"a","content":"xy"}]`, 0),
		"PS6 $.operations[0].content: delete operation must not have content\n" +
			"PS7 $.total_bytes: total_bytes (0) does not match actual content size (2)"},

	{"order before path", packDocument(`[{"op":"delete","path":"b","order":-1},{"op":"delete","path":"a"},{"op":"delete","path":"0","order":0.5}]`, 0), ""},
	{"order missing is 0", packDocument(`[{"op":"delete","path":"a","order":1e21},{"op":"delete","path":"b"}]`, 0),
		"PS8 $.operations[1]: operations not sorted by order: 1e+21 > 0"},
	{"order no number", packDocument(`[{"op":"delete","path":"a","order":"2"},{"op":"delete","path":"b","order":null}]`, 0),
		"SCHEMA $.operations[0].order: order must be a number\nSCHEMA $.operations[1].order: order must be a number"},
	{"same order, path down", packDocument(`[{"op":"delete","path":"b","order":3},{"op":"delete","path":"a","order":3}]`, 0),
		"PS8 $.operations[1]: operations not sorted by path: b > a"},
	{"neighbours only", packDocument(`[{"op":"delete","path":"c"},{"op":"delete","path":"a"},{"op":"delete","path":"b"}]`, 0),
		"PS8 $.operations[1]: operations not sorted by path: c > a"},
	{"code units", packDocument(`[{"op":"delete","path":"😀"},{"op":"delete","path":"\uffee"}]`, 0), ""},
	{"not code points", packDocument(`[{"op":"delete","path":"\uffee"},{"op":"delete","path":"😀"}]`, 0),
		"PS8 $.operations[1]: operations not sorted by path: \uffee > 😀"},
}
