package document_test

import (
	"math"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

func TestJavaScript(t *testing.T) {
	for _, c := range []struct{ in, typeOf, text string }{
		{"", "undefined", "undefined"},
		{`null`, "object", "null"},
		{`true`, "boolean", "true"},
		{`false`, "boolean", "false"},
		{`""`, "string", ""},
		{`"a\ud800"`, "string", "a\xed\xa0\x80"},
		{`-0`, "number", "0"},
		{`1e21`, "number", "1e+21"},
		{`{"a":1}`, "object", "[object Object]"},
		{`[]`, "object", ""},
		{`[1,null,"b",[true,[]],{}]`, "object", "1,,b,true,,[object Object]"},
	} {
		doc, err := canon.Parse([]byte(c.in))
		present := err == nil
		if got := document.TypeOf(doc, present); got != c.typeOf {
			t.Errorf("TypeOf(%s) = %s, want %s", c.in, got, c.typeOf)
		}
		if got := document.String(doc, present); got != c.text {
			t.Errorf("String(%s) = %q, want %q", c.in, got, c.text)
		}
	}
	for want, f := range map[string]float64{
		"Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "NaN": math.NaN(),
	} {
		if got := document.String(f, true); got != want {
			t.Errorf("String(%v) = %s, want %s", f, got, want)
		}
	}
}

func TestTrim(t *testing.T) {
	const space = "\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
	if got := document.Trim(space + "a b" + space); got != "a b" {
		t.Errorf("Trim = %q", got)
	}
	for _, kept := range []string{"\u0085", "\u180e", "\u200b", "\x00", "\xed\xa0\x80"} {
		if got := document.Trim(kept); got != kept {
			t.Errorf("Trim(%q) = %q", kept, got)
		}
	}
}
