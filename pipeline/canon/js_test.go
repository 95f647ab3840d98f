package canon_test

import (
	"math"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/canon"
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
		if got := canon.TypeOf(doc, present); got != c.typeOf {
			t.Errorf("TypeOf(%s) = %s, want %s", c.in, got, c.typeOf)
		}
		if got := canon.String(doc, present); got != c.text {
			t.Errorf("String(%s) = %q, want %q", c.in, got, c.text)
		}
	}
	for want, f := range map[string]float64{
		"Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "NaN": math.NaN(),
	} {
		if got := canon.String(f, true); got != want {
			t.Errorf("String(%v) = %s, want %s", f, got, want)
		}
	}
}

func TestTrim(t *testing.T) {
	const space = "\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
	if got := canon.Trim(space + "a b" + space); got != "a b" {
		t.Errorf("Trim = %q", got)
	}
	for _, kept := range []string{"\u0085", "\u180e", "\u200b", "\x00", "\xed\xa0\x80"} {
		if got := canon.Trim(kept); got != kept {
			t.Errorf("Trim(%q) = %q", kept, got)
		}
	}
}

func TestCompare(t *testing.T) {
	ordered := []string{"", "a", "a\x00", "aa", "b", "\u00e9", "\ud7ff", "\xed\xa0\x80", "\U00010000",
		"\U00010001", "\U0010ffff", "\xed\xbf\xbf", "\ue000", "\uffff"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := canon.Compare(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("Compare(%+q, %+q) = %d", a, b, got)
			}
		}
	}
}
