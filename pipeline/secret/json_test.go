package secret_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	doc, err := json.Marshal(v)
	fatal(t, err)
	return doc
}

// T47: values, keys, diffs, and a secret that another string gives away.
func TestT47JSON(t *testing.T) {
	for _, s := range teststand.Samples() {
		before, after := positions["context"](s.Text())
		doc := asJSON(t, map[string]any{
			"summary": "uses " + s.Value, "list": []any{1.5, nil, true, map[string]any{"deep": s.Text()}},
			"unified_diff": string(change(t, before, after).Bytes()), "code": planted(s.Value)[1],
			"k " + s.Text(): 1,
		})
		out, err := secret.Default().JSON(doc, nil)
		fatal(t, err)
		var plain any
		fatal(t, json.Unmarshal(out, &plain))
		absent(t, out, s.Value)
		if !strings.Contains(string(out), `\n-line six\n+line 6\n line seven\n`) || !strings.Contains(string(out), `[1.5,null,true,`) {
			t.Errorf("too much is gone: %s", out)
		}
		again, err := secret.Default().JSON(out, nil)
		if err != nil || string(again) != string(out) {
			t.Errorf("not idempotent: %v\n%s\n%s", err, out, again)
		}
	}
}

// T48: typed values stay, as do documents without a secret.
func TestT48JSONTyped(t *testing.T) {
	token := teststand.Samples()[1].Value
	typed := func(key, value string) bool { return key == "files" && strings.HasPrefix(value, "ok/") }
	for in, want := range map[string]string{
		`{"files": ["ok/` + token + `", "no/` + token + `"], "n": 1.0}`: `{"files":["ok/` + token + `","no/<REDACTED:github-pat>"],"n":1}`,
		`{"files": {"a": "ok/` + token + `"}}`:                          `{"files":{"a":"ok/<REDACTED:github-pat>"}}`,
		`["ok/` + token + `"]`:                                          `["ok/<REDACTED:github-pat>"]`,
		` {"b":"\u00e9","a":[],"unified_diff":""} `:                     `{"a":[],"b":"é","unified_diff":""}`,
		`"\ud800 lone"`: `"\ud800 lone"`,
	} {
		out, err := secret.Default().JSON([]byte(in), typed)
		if err != nil || string(out) != want {
			t.Errorf("%s\n got %s, %v\nwant %s", in, out, err, want)
		}
	}
}

// T47: errors show nothing of the document.
func TestT47JSONErrors(t *testing.T) {
	one, two := teststand.SamplesFrom(7)[1].Value, teststand.SamplesFrom(8)[1].Value
	for _, doc := range []string{
		`{"` + one + `":1,"` + two + `":2}`, `{"` + one + `":1,"` + one + `":2}`, `{"` + one + `"`, one, `{"a":"` + one + "\x01\"}",
	} {
		_, err := secret.Default().JSON([]byte(doc), nil)
		if err == nil || strings.Contains(err.Error(), one[4:]) || strings.Contains(err.Error(), two[4:]) {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// A sink takes a Redacted, and there is no way around a Finder to one.
func TestT47Redacted(t *testing.T) {
	token := teststand.Samples()[1].Value
	r := secret.Default().Redact("see " + token)
	if text, err := r.MarshalText(); err != nil || string(text) != r.String() {
		t.Errorf("%q, %v", text, err)
	}
	doc, err := secret.Default().RedactJSON(asJSON(t, token), nil)
	if err != nil || doc.String() != `"<REDACTED:github-pat>"` {
		t.Errorf("%q, %v", doc, err)
	}
	if diff := secret.Default().RedactDiff([]byte("+" + token)); diff.String() != "+<REDACTED:github-pat>" {
		t.Errorf("%q", diff)
	}
}
