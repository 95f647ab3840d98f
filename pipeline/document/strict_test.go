package document_test

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// seal derives the ids of the document and its actions anew.
func seal(t testing.TB, doc map[string]any) map[string]any {
	t.Helper()
	actions, _ := doc["actions"].([]any)
	for _, item := range actions {
		a := item.(map[string]any)
		content := map[string]any{"type": a["type"], "target": a["target"]}
		if c, present := a["content"]; present {
			content["content"] = c
		}
		a["id"] = derive(t, "act", content)
	}
	delete(doc, "id")
	doc["id"] = derive(t, "prop", doc)
	return doc
}

func derive(t testing.TB, prefix string, v any) string {
	t.Helper()
	id, err := document.DeriveID(prefix, v)
	fatal(t, err)
	return id
}

// missing is what VerifyStrict says of a field of an action or a test that Verify
// does not look for.
var missing = regexp.MustCompile("^(Action missing (target|required|description)|Test missing (id|name|target|expected|required)) field$")

func TestStrictKeepsVerify(t *testing.T) {
	for _, v := range vectors(t) {
		doc := parse(t, v.InputJSON)
		var seeds []canon.Violation
		for _, x := range document.VerifyStrict(doc, document.Strict{}) {
			if x.RuleID[:2] != "ID" && !missing.MatchString(x.Message) {
				seeds = append(seeds, x)
			}
		}
		if want := document.VerifyProposal(doc); !reflect.DeepEqual(seeds, want) {
			t.Errorf("%s: got %v, want %v", v.Name, seeds, want)
		}
	}
}

func TestStrictIDs(t *testing.T) {
	doc := with(t, "summary", `"Another one."`)
	was := doc["id"].(string)
	seal(t, doc)
	want := []string{"ID1||Proposal ID does not match derived id " + doc["id"].(string) + ": " + was}
	doc["id"] = was
	if got := lines(document.VerifyStrict(doc, document.Strict{})); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	doc = parse(t, sound).(map[string]any)
	action := doc["actions"].([]any)[0].(map[string]any)
	is := action["id"].(string)
	action["id"] = act1
	delete(doc, "id")
	doc["id"] = derive(t, "prop", doc)
	want = []string{"ID1|" + act1 + "|Action ID does not match derived id " + is + ": " + act1}
	if got := lines(document.VerifyStrict(doc, document.Strict{})); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStrictRules(t *testing.T) {
	const (
		sumX  = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
		bareX = "9e1f1b8c0a0d6a2f"
	)
	file := func(content, hash string) string {
		return `[{"type":"create_file","target":"a","content":` + content + `,"expected_hash":"` + hash + `"}]`
	}
	check(t, []row{
		{"actions", `[{"type":"create_file","target":"a","content":"a\u0000b"}]`, []string{"ID2|A|content is not valid UTF-8 or contains null bytes"}},
		{"actions", `[{"type":"create_file","target":"a","content":"\ud800"}]`, []string{"ID2|A|content is not valid UTF-8 or contains null bytes"}},
		{"actions", file(`"x"`, sumX), nil},
		{"actions", file(`"x"`, hashOf(t, "x")), nil},
		{"actions", file(`"x"`, sumX[7:]), []string{"ID3|A|expected_hash does not match content: " + sumX[7:]}},
		{"actions", file(`"x"`, "sha256:"+hashOf(t, "x")), []string{"ID3|A|expected_hash does not match content: sha256:" + hashOf(t, "x")}},
		{"actions", file(`"x"`, bareX), []string{"ID3|A|expected_hash does not match content: " + bareX}},
		{"actions", file(`"y"`, sumX), []string{"ID3|A|expected_hash does not match content: " + sumX}},
		{"actions", `[{"type":"delete_file","target":"a","expected_hash":"` + sumX + `"}]`, []string{"ID3|A|expected_hash has no content to match: " + sumX}},
		{"source_bundle_id", `"bundle_0123456789abcdef"`, nil},
		{"source_bundle_id", `"bun_0123456789ABCDEF"`, []string{"ID5||source_bundle_id does not match pattern bun_{hash16} or bundle_{hash16}: bun_0123456789ABCDEF"}},
		{"source_bundle_id", `"x_bun_0123456789abcdef"`, []string{"ID5||source_bundle_id does not match pattern bun_{hash16} or bundle_{hash16}: x_bun_0123456789abcdef"}},
		{"source_bundle_id", `" "`, []string{"PR2||source_bundle_id must be non-empty"}},
		{"actions", `[{"type":"validate","target":"t1"}]`, nil},
		{"actions", `[{"type":"test","target":"go test ./..."}]`, nil},
		{"actions", `[{"type":"test","target":"go test"}]`, []string{"ID6|A|test action names no acceptance test or allowed command: go test"}},
		{"actions", `[{"type":"validate","target":""}]`, []string{"ID6|A|validate action names no acceptance test or allowed command: "}},
		{"actions", `[{"type":"execute_command","target":"make"}]`, nil},
		{"acceptance_tests", `[5,{"id":7,"name":"n","type":"hash_match","target":"a","expected":"","required":true}]`, []string{
			"SCHEMA||Test must be a non-null object", "SCHEMA||id must be string, got number",
		}},
		{"acceptance_tests", `[{"id":"","name":"n","type":"file_exists","target":"a","expected":"true","required":true}]`, []string{"SCHEMA||Test id must be non-empty"}},
	}, func(doc any) []canon.Violation {
		p := doc.(map[string]any)
		for _, item := range p["actions"].([]any) {
			maps.Copy(item.(map[string]any), map[string]any{"required": true, "description": "d", "order": 0.0})
		}
		seal(t, p)
		vs := document.VerifyStrict(p, document.Strict{Commands: []string{"go test ./..."}})
		for i := range vs {
			if actions := p["actions"].([]any); vs[i].Path == actions[0].(map[string]any)["id"] {
				vs[i].Path = "A"
			}
		}
		return vs
	})
}

// T82: a field that is missing, or of another type, is a violation and never a
// default. A test without "required" would be one that may fail.
func TestT82MissingFields(t *testing.T) {
	whole := with(t, "actions", `[{"id":"","type":"test","target":"t1","required":true,"description":"d","order":0}]`)
	for list, fields := range map[string][]string{
		"actions":          {"type", "target", "required", "description", "order"},
		"acceptance_tests": {"id", "name", "type", "target", "expected", "required"},
	} {
		for _, field := range fields {
			for _, value := range []string{"", "null", "[]", "{}"} {
				doc := parse(t, string(canonical(t, whole))).(map[string]any)
				item := doc[list].([]any)[0].(map[string]any)
				if value == "" {
					delete(item, field)
				} else {
					item[field] = parse(t, value)
				}
				if list == "acceptance_tests" && field == "id" {
					doc["actions"] = []any{} // names it
				}
				seal(t, doc)
				if found := document.VerifyStrict(doc, document.Strict{}); !slices.ContainsFunc(found, func(v canon.Violation) bool {
					return (v.RuleID == "SCHEMA" || field == "type") && strings.Contains(v.Message, field)
				}) {
					t.Errorf("%s %s %q: %q", list, field, value, lines(found))
				}
			}
		}
	}
	if found := document.VerifyStrict(seal(t, whole), document.Strict{}); found != nil {
		t.Errorf("the whole one: %q", lines(found))
	}
}

func canonical(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := canon.Line(v)
	fatal(t, err)
	return raw
}

// hashOf is the bare canonicalHash.
func hashOf(t testing.TB, v any) string {
	t.Helper()
	h, err := document.Hash(v)
	fatal(t, err)
	return h
}

func TestStrictBundle(t *testing.T) {
	bundle := parse(t, `{"id":"bun_0123456789abcdef","files":[]}`)
	sum, err := document.HashProposal(bundle)
	fatal(t, err)
	doc := seal(t, with(t, "source_bundle_hash", `"`+sum+`"`))
	if got := lines(document.VerifyStrict(doc, document.Strict{Bundle: bundle, HasBundle: true})); got != nil {
		t.Errorf("matching bundle: %q", got)
	}
	null := "sha256:" + hashOf(t, nil)
	want := []string{"ID4||source_bundle_hash does not match bundle " + null + ": " + sum}
	if got := lines(document.VerifyStrict(doc, document.Strict{HasBundle: true})); !reflect.DeepEqual(got, want) {
		t.Errorf("null bundle: got %q, want %q", got, want)
	}
	if got := document.VerifyStrict(doc, document.Strict{Bundle: struct{}{}, HasBundle: true}); len(got) != 1 {
		t.Errorf("bundle that is no document: %v", got)
	}
}
