package canon_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// documents are inputs and their canonical form. jcs agrees but where a lone
// surrogate makes it refuse.
var documents = []struct{ name, in, want string }{
	{"white space", " \t\r\n{ \"a\" : [ 1 , 2 ] }\n", `{"a":[1,2]}`},
	{"minus zero", "-0", "0"},
	{"minus zero point", "-0.0e7", "0"},
	{"whole number", "1.0", "1"},
	{"exponent away", "1e2", "100"},
	{"last plain", "100000000000000000000", "100000000000000000000"},
	{"first exponent", "1000000000000000000000", "1e+21"},
	{"1e21", "1E21", "1e+21"},
	{"smallest plain", "0.000001", "0.000001"},
	{"small exponent", "0.0000001", "1e-7"},
	{"smallest", "5e-324", "5e-324"},
	{"underflow", "1e-400", "0"},
	{"largest", "1.7976931348623157e308", "1.7976931348623157e+308"},
	{"rounds to even", "9007199254740993", "9007199254740992"},
	{"RFC 8785 numbers", "[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001]",
		"[333333333.3333333,1e+30,4.5,0.002,1e-27]"},
	{"RFC 8785 string", `"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`, `"€$\u000f\nA'B\"\\\\\"/"`},
	{"controls", `"\u0000\u0001\u001f\u007f"`, "\"\\u0000\\u0001\\u001f\x7f\""},
	{"short escapes", `"\u0008\u0009\u000a\u000c\u000d"`, `"\b\t\n\f\r"`},
	{"no HTML escapes", `"<>&\u2028\u2029"`, "\"<>&\u2028\u2029\""},
	{"no normalisation", `["\u00e9","e\u0301","\u212b"]`, "[\"\u00e9\",\"e\u0301\",\"\u212b\"]"},
	{"pair", `"\ud83d\ude00\uD83D\uDE00"`, `"😀😀"`},
	{"RFC 8785 keys", `{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`,
		"{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}"},
	{"pair before U+E000", `{"\uffff":1,"\ue000":2,"😀":3,"\ud7ff":4}`,
		"{\"\ud7ff\":4,\"😀\":3,\"\ue000\":2,\"\uffff\":1}"},
	{"prefix first", `{"aa":1,"a":2,"":3,"a\u0000":4}`, `{"":3,"a":2,"a\u0000":4,"aa":1}`},
	{"nested keys", `[{"b":{"d":1,"c":2},"a":[]}]`, `[{"a":[],"b":{"c":2,"d":1}}]`},
	{"odd keys", `{"__proto__":1,"10":2,"9":3}`, `{"10":2,"9":3,"__proto__":1}`},
}

var loneSurrogates = []struct{ name, in, want string }{
	{"high", `"\uD800"`, `"\ud800"`},
	{"low", `"a\uDFFFb"`, `"a\udfffb"`},
	{"wrong order", `"\udc00\ud800"`, `"\udc00\ud800"`},
	{"two high, then low", `"\ud800\ud801\udc00"`, "\"\\ud800\U00010400\""},
	{"high, then text", `"\ud800A\ud800\n"`, `"\ud800A\ud800\n"`},
	{"high, then an escape that is no half", `"\ud800\u0041"`, `"\ud800A"`},
	{"keys by code unit", `{"\ue000":1,"\udfff":2,"\ud800":3,"\ud800\udc00":4,"\ud7ff":5}`,
		"{\"\ud7ff\":5,\"\\ud800\":3,\"\U00010000\":4,\"\\udfff\":2,\"\ue000\":1}"},
}

func TestParseAndMarshal(t *testing.T) {
	for _, d := range append(documents, loneSurrogates...) {
		t.Run(d.name, func(t *testing.T) {
			doc, err := canon.Parse([]byte(d.in))
			fatal(t, err)
			got, err := canon.Marshal(doc)
			check(t, "Marshal", string(got), d.want, err)
		})
	}
}

func TestAgreesWithJCS(t *testing.T) {
	for _, d := range documents {
		got, err := jcs.Transform([]byte(d.in))
		check(t, d.name+": jcs.Transform", string(got), d.want, err)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		in     string
		offset int
		want   string
	}{
		{"", 0, "unexpected end"},
		{" ", 1, "unexpected end"},
		{"\ufeff{}", 0, "unexpected character"},
		{"{} {}", 3, "text after the document"},
		{"{}\x00", 2, "text after the document"},
		{"\x00", 0, "unexpected character"},
		{"nul", 0, "unexpected character"},
		{"True", 0, "unexpected character"},
		{"NaN", 0, "unexpected character"},
		{"-Infinity", 0, "invalid number"},
		{"01", 0, "invalid number"},
		{"+1", 0, "unexpected character"},
		{".5", 0, "unexpected character"},
		{"1.", 0, "invalid number"},
		{"1e", 0, "invalid number"},
		{"0x1", 1, "text after the document"},
		{"[1e309]", 1, "number out of range"},
		{"-1e999", 0, "number out of range"},
		{"[1,]", 3, "unexpected character"},
		{"[1 2]", 3, "expected ',' or ']'"},
		{"[", 1, "unexpected end"},
		{`{"a":1,}`, 7, "expected a key"},
		{`{"a" 1}`, 5, "expected ':'"},
		{`{"a":1 "b":2}`, 7, "expected ',' or '}'"},
		{`{a:1}`, 1, "expected a key"},
		{`{"a":1,"a":2}`, 7, `duplicate key "a"`},
		{`{"b":1,"a":2,"b":3}`, 13, `duplicate key "b"`},
		{`{"b":1,"a":2,"a":3}`, 13, `duplicate key "a"`},
		{`{"a":1,"\u0061":2}`, 7, `duplicate key "a"`},
		{`{"😀":1,"\ud83d\ude00":2}`, 10, "duplicate key"},
		{`[{"\ud800":1,"\uD800":2}]`, 13, "duplicate key"},
		{"'a'", 0, "unexpected character"},
		{`"a`, 2, "unexpected end"},
		{`"a\`, 3, "unexpected end"},
		{`"\n`, 3, "unexpected end"},
		{"\"a\nb\"", 2, "control character"},
		{"\"\\t\t\"", 3, "control character"},
		{`"\x41"`, 2, "invalid escape"},
		{`"\u00g0"`, 2, "invalid escape"},
		{`"\u12`, 2, "invalid escape"},
		{`"\u+123"`, 2, "invalid escape"},
		{"\"\xff\"", 1, "not valid UTF-8"},
		{"\"\xed\xa0\x80\"", 1, "not valid UTF-8"},
		{"\"\xc0\xaf\"", 1, "not valid UTF-8"},
		{"\"\xff\\n\"", 1, "not valid UTF-8"},
		{"\"\\n\xff\"", 3, "not valid UTF-8"},
		{"/**/1", 0, "unexpected character"},
	} {
		doc, err := canon.Parse([]byte(c.in))
		var syntax *canon.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("Parse(%q) = %v, %v; want a SyntaxError", c.in, doc, err)
			continue
		}
		if syntax.Offset != c.offset || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Parse(%q): %v; want %q at byte %d", c.in, err, c.want, c.offset)
		}
	}
}

func TestDepth(t *testing.T) {
	nest := func(open, shut string, n int) []byte {
		return []byte(strings.Repeat(open, n) + "1" + strings.Repeat(shut, n))
	}
	for _, c := range []struct{ open, shut string }{{"[", "]"}, {`{"a":`, "}"}} {
		doc, err := canon.Parse(nest(c.open, c.shut, canon.MaxDepth))
		if err != nil {
			t.Errorf("%d levels of %s: %v", canon.MaxDepth, c.open, err)
		}
		if _, err := canon.Marshal(doc); err != nil {
			t.Errorf("writing %d levels of %s: %v", canon.MaxDepth, c.open, err)
		}
		for _, n := range []int{canon.MaxDepth + 1, 1e6} {
			if _, err := canon.Parse(nest(c.open, c.shut, n)); err == nil {
				t.Errorf("%d levels of %s: no error", n, c.open)
			}
		}
	}
	empty := strings.Repeat("[", canon.MaxDepth+1) + strings.Repeat("]", canon.MaxDepth+1)
	if _, err := canon.Parse([]byte(empty)); err == nil {
		t.Errorf("%d empty arrays: no error", canon.MaxDepth+1)
	}
}

// FuzzParse: accepted input has one canonical form, which reads back to
// itself, and jcs writes the same where it accepts the input.
func FuzzParse(f *testing.F) {
	for _, d := range append(documents, loneSurrogates...) {
		f.Add([]byte(d.in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := canon.Parse(data)
		if err != nil {
			return
		}
		once, err := canon.Marshal(doc)
		if err != nil {
			t.Fatalf("parsed, but cannot be written: %v", err)
		}
		doc, err = canon.Parse(once)
		if err != nil {
			t.Fatalf("%s does not parse: %v", once, err)
		}
		twice, err := canon.Marshal(doc)
		check(t, "second Marshal", string(twice), string(once), err)
		if other, err := jcs.Transform(data); err == nil && string(other) != string(once) {
			t.Errorf("jcs writes %s, canon %s", other, once)
		}
	})
}
