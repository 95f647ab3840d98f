package document_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// vector is a recorded answer of the public reference.
type vector struct {
	Name      string
	InputJSON string `json:"input_json"`
}

func vectors(t testing.TB) []vector {
	t.Helper()
	raw, err := os.ReadFile("testdata/vectors.json")
	fatal(t, err)
	var vs []vector
	fatal(t, json.Unmarshal(raw, &vs))
	return vs
}

func parse(t testing.TB, text string) any {
	t.Helper()
	doc, err := canon.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return doc
}

func TestVectors(t *testing.T) { checkVectors(t, "testdata/vectors.json", document.VerifyProposal) }

// sound is a proposal that breaks no rule, not even the strict ones.
const sound = `{"acceptance_tests":[{"id":"t1","name":"n","type":"command_success","target":"make","expected":"0","required":true}],` +
	`"actions":[{"content":"hello\n","description":"Say hello.","id":"act_cd8da12f774313b8","order":0,"required":true,` +
	`"target":"hello.txt","type":"create_file"}],"confidence":90,"id":"prop_0d48957b60e21ec1","requires_approval":true,` +
	`"schema_version":"1.0.0","source_bundle_hash":"sha256:d7c0d128c186bb3ec7961400a98115fea6bd8b15aaee60ddc78d68c56012b1ee",` +
	`"source_bundle_id":"bun_0123456789abcdef","summary":"Add a greeting."}`

// with is the sound proposal with one field set to a JSON text, or without it.
func with(t testing.TB, field, value string) map[string]any {
	t.Helper()
	doc := parse(t, sound).(map[string]any)
	if value == "" {
		delete(doc, field)
	} else {
		doc[field] = parse(t, value)
	}
	return doc
}

// lines writes violations as "rule|path|message".
func lines(vs []canon.Violation) []string {
	var out []string
	for _, v := range vs {
		out = append(out, strings.Join([]string{v.RuleID, v.Path, v.Message}, "|"))
	}
	return out
}

// row sets one field and lists what is then reported.
type row struct {
	field, value string
	want         []string
}

func check(t *testing.T, rows []row, verify func(any) []canon.Violation) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.field+" "+r.value, func(t *testing.T) {
			if got := lines(verify(with(t, r.field, r.value))); !reflect.DeepEqual(got, r.want) {
				t.Errorf("got  %q\nwant %q", got, r.want)
			}
		})
	}
}

func TestVerifyDocument(t *testing.T) {
	for _, text := range []string{"null", "1", "true", `"x"`, "[]", "[1]", "[{}]"} {
		got := lines(document.VerifyProposal(parse(t, text)))
		if want := []string{"SCHEMA||Proposal must be a non-null object"}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q", text, got)
		}
	}
	got := lines(document.VerifyProposal(parse(t, "{}")))
	want := []string{
		"PR1||Missing schema_version field",
		"PR10||Missing summary field",
		"PR2||Missing source_bundle_id field",
		"PR2||Missing source_bundle_hash field",
		"PR3||Missing actions field",
		"PR9||Missing confidence field",
		"SCHEMA||Missing proposal id field",
		"SCHEMA||Missing acceptance_tests field",
		"SCHEMA||Missing requires_approval field",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("{}: got %q", got)
	}
}

func TestVerifyFields(t *testing.T) {
	check(t, []row{
		{"id", ``, []string{"SCHEMA||Missing proposal id field"}},
		{"id", `null`, []string{"SCHEMA||Missing proposal id field"}},
		{"id", `7`, []string{"SCHEMA||Proposal id must be string, got number"}},
		{"id", `{}`, []string{"SCHEMA||Proposal id must be string, got object"}},
		{"id", `""`, []string{"SCHEMA||Proposal ID does not match pattern prop_{hash16}: "}},
		{"id", `"prop_0123456789ABCDEF"`, []string{"SCHEMA||Proposal ID does not match pattern prop_{hash16}: prop_0123456789ABCDEF"}},
		{"id", `"prop_0123456789abcdef\n"`, []string{"SCHEMA||Proposal ID does not match pattern prop_{hash16}: prop_0123456789abcdef\n"}},
		{"id", `"prop_0123456789abcdef0"`, []string{"SCHEMA||Proposal ID does not match pattern prop_{hash16}: prop_0123456789abcdef0"}},
		{"schema_version", ``, []string{"PR1||Missing schema_version field"}},
		{"schema_version", `1`, []string{"PR1||schema_version must be string, got number"}},
		{"schema_version", `""`, []string{"PR1||schema_version must be non-empty"}},
		{"schema_version", `"\ufeff\u00a0"`, []string{"PR1||schema_version must be non-empty"}},
		{"schema_version", `"9"`, nil},
		{"source_bundle_id", `null`, []string{"PR2||Missing source_bundle_id field"}},
		{"source_bundle_id", `[]`, []string{"PR2||source_bundle_id must be string, got object"}},
		{"source_bundle_id", `" "`, []string{"PR2||source_bundle_id must be non-empty"}},
		{"source_bundle_id", `"anything"`, nil},
		{"source_bundle_hash", ``, []string{"PR2||Missing source_bundle_hash field"}},
		{"source_bundle_hash", `false`, []string{"PR2||source_bundle_hash must be string, got boolean"}},
		{"source_bundle_hash", `""`, []string{`PR2||source_bundle_hash must start with "sha256:"`}},
		{"source_bundle_hash", `"SHA256:x"`, []string{`PR2||source_bundle_hash must start with "sha256:"`}},
		{"source_bundle_hash", `"sha256:"`, nil},
		{"actions", ``, []string{"PR3||Missing actions field"}},
		{"actions", `null`, []string{"PR3||Missing actions field"}},
		{"actions", `{}`, []string{"PR3||actions must be array, got object"}},
		{"actions", `[]`, nil},
		{"acceptance_tests", ``, []string{"SCHEMA||Missing acceptance_tests field"}},
		{"acceptance_tests", `"x"`, []string{"SCHEMA||acceptance_tests must be array, got string"}},
		{"acceptance_tests", `[]`, nil},
		{"requires_approval", ``, []string{"SCHEMA||Missing requires_approval field"}},
		{"requires_approval", `1`, []string{"SCHEMA||requires_approval must be boolean, got number"}},
		{"summary", ``, []string{"PR10||Missing summary field"}},
		{"summary", `true`, []string{"PR10||summary must be string, got boolean"}},
		{"summary", `""`, []string{"PR10||summary must be non-empty"}},
		{"summary", `"\u2028\t"`, []string{"PR10||summary must be non-empty"}},
		{"summary", `"\u0085"`, nil},
		{"confidence", ``, []string{"PR9||Missing confidence field"}},
		{"confidence", `null`, []string{"PR9||Missing confidence field"}},
		{"confidence", `true`, []string{"PR9||confidence must be number, got boolean"}},
		{"confidence", `85.5`, []string{"PR9||confidence must be integer, got 85.5"}},
		{"confidence", `-0.5`, []string{"PR9||confidence must be integer, got -0.5"}},
		{"confidence", `100.5`, []string{"PR9||confidence must be integer, got 100.5"}},
		{"confidence", `101`, []string{"PR9||confidence must be 0-100, got 101"}},
		{"confidence", `1e21`, []string{"PR9||confidence must be 0-100, got 1e+21"}},
		{"confidence", `100`, nil},
		{"confidence", `-0`, nil},
		{"extra", `1`, nil},
	}, document.VerifyProposal)
}
