package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
)

func init() { generators["json"] = jsonVectors }

func jsonVectors(g *generator) {
	doc := func(text string) m { return m{"document": Bytes(text)} }
	good := func(requires, note, text, canonical string) {
		g.t.Helper()
		g.good("document", requires, note, doc(text), m{"canonical": canonical})
	}
	bad := func(requires, note, twin, text string) {
		g.t.Helper()
		g.bad("document", requires, note, twin, doc(text))
	}
	g.in("document")
	good("J-1 V-1 V-2 V-5 V-6 V-7 V-8 V-9 V-10 V-11 V-12 V-13 V-14 V-15 V-16", "an empty object", `{}`, `{}`)
	good("J-1", "white space of all four kinds around tokens", " \t\r\n{ \"a\"\n:\t[ 1 ,\r2 ] }\n ", `{"a":[1,2]}`)
	good("J-1", "a text alone is a document", `"a"`, `"a"`)
	good("J-1", "null alone is a document", `null`, `null`)
	bad("J-1", "nothing", "an empty object", ``)
	bad("J-1", "white space alone", "an empty object", " \n")
	bad("J-1", "two documents", "an empty object", `{}{}`)
	bad("J-1", "a comma behind the document", "an empty object", `{},`)
	bad("J-1", "a byte order mark", "an empty object", "\ufeff{}")
	bad("J-1", "a form feed as white space", "white space of all four kinds around tokens", "\f{}")
	bad("J-1", "a no-break space as white space", "white space of all four kinds around tokens", "\u00a0{}")
	bad("J-1", "a NUL behind the document", "an empty object", "{}\x00")
	bad("J-1", "a comment", "an empty object", `{/**/}`)
	bad("J-1", "a comma at the end of an object", "an empty object", `{"a":1,}`)
	bad("J-1", "a comma at the end of an array", "white space of all four kinds around tokens", `[1,]`)
	bad("J-1", "a key without quotes", "an empty object", `{a:1}`)
	bad("J-1", "single quotes", "a text alone is a document", `'a'`)
	bad("J-1", "a literal in another case", "null alone is a document", `Null`)
	bad("J-1", "an object that is not closed", "an empty object", `{"a":1`)
	bad("J-1", "a text that is not closed", "a text alone is a document", `"a`)
	bad("J-1", "brackets that do not fit", "an empty object", `[1}`)
	good("J-2", "DEL and U+FFFD are allowed", "\"\x7f\ufffd\"", "\"\x7f\ufffd\"")
	good("J-2", "a character beyond the basic plane", `"😀"`, `"😀"`)
	good("J-2", "U+10FFFF", "\"\U0010ffff\"", "\"\U0010ffff\"")
	bad("J-2 V-7", "a byte that is not UTF-8", "DEL and U+FFFD are allowed", "\"\xff\"")
	bad("J-2", "an overlong form of a slash", "DEL and U+FFFD are allowed", "\"\xc0\xaf\"")
	bad("J-2", "a surrogate as UTF-8", "a character beyond the basic plane", "\"\xed\xa0\x80\"")
	bad("J-2", "a surrogate pair as UTF-8 (CESU-8)", "a character beyond the basic plane", "\"\xed\xa0\xbd\xed\xb8\x80\"")
	bad("J-2", "a code point above U+10FFFF", "U+10FFFF", "\"\xf4\x90\x80\x80\"")
	bad("J-2", "a sequence that is cut short", "a character beyond the basic plane", "\"\xf0\x9f\x98\"")
	bad("J-2", "a tab inside a text", "DEL and U+FFFD are allowed", "\"\t\"")
	bad("J-2", "a line feed inside a text", "DEL and U+FFFD are allowed", "\"\n\"")
	bad("J-2", "U+001F inside a text", "DEL and U+FFFD are allowed", "\"\x1f\"")
	bad("J-2", "a byte that is not UTF-8, in a key", "an empty object", "{\"\xff\":1}")
	good("J-3", "keys that differ in case alone", `{"A":1,"a":2}`, `{"A":1,"a":2}`)
	good("J-3", "keys that differ in their normal form alone", "{\"e\u0301\":1,\"\u00e9\":2}", "{\"e\u0301\":1,\"\u00e9\":2}")
	bad("J-3", "a key twice", "keys that differ in case alone", `{"a":1,"a":2}`)
	bad("J-3", "a key twice, once with an escape", "keys that differ in case alone", `{"a":1,"\u0061":2}`)
	bad("J-3", "a key twice with the same value", "keys that differ in case alone", `{"a":1,"b":2,"a":1}`)
	bad("J-3", "a key twice, deep inside", "keys that differ in case alone", `[{"x":{"a":1,"a":1}}]`)
	bad("J-3", "a key twice, as a lone surrogate in two cases", "keys that differ in case alone", `{"\ud800":1,"\uD800":2}`)
	bad("J-3", "the empty key twice", "keys that differ in case alone", `{"":1,"":2}`)
	nested := func(n int, open, inner, shut string) m {
		return m{"document": m{"join": []any{m{"repeat": open, "times": n}, inner, m{"repeat": shut, "times": n}}}}
	}
	g.good("document", "J-4 V-2", "a thousand arrays within each other", nested(1000, "[", "", "]"), nil)
	g.good("document", "J-4", "a thousand objects within each other", nested(1000, `{"a":`, "1", "}"), nil)
	g.bad("document", "J-4", "a thousand and one arrays within each other", "a thousand arrays within each other", nested(1001, "[", "", "]"))
	g.bad("document", "J-4", "a thousand and one objects within each other", "a thousand objects within each other", nested(1001, `{"a":`, "1", "}"))
	g.good("document", "J-4", "ten thousand arrays beside each other", m{"document": m{"join": []any{"[", m{"repeat": "[],", "times": 9999}, "[]]"}}}, nil)
	for _, n := range []struct{ note, text, canonical string }{
		{"zero", "0", "0"}, {"minus zero is zero", "-0", "0"}, {"minus zero with a fraction is zero", "-0.0e5", "0"}, {"a whole number with a fraction", "1.0", "1"},
		{"an exponent that is small", "1e2", "100"}, {"an exponent in upper case with plus", "1E+2", "100"}, {"the largest number without an exponent", "123456789012345678901", "123456789012345680000"},
		{"1e21 has an exponent", "1000000000000000000000", "1e+21"}, {"1e-6 has none", "0.000001", "0.000001"}, {"1e-7 has one", "0.0000001", "1e-7"},
		{"shortest digits", "0.1000000000000000055511151231257827", "0.1"}, {"ties go to even", "9007199254740993", "9007199254740992"}, {"2^53 + 3", "9007199254740995", "9007199254740996"},
		{"the greatest double", "1.7976931348623157e308", "1.7976931348623157e+308"}, {"what rounds to the greatest double", "1.7976931348623158e308", "1.7976931348623157e+308"},
		{"the least double", "5e-324", "5e-324"}, {"a denormal number", "2.2250738585072011e-308", "2.225073858507201e-308"}, {"what is too small is zero", "1e-400", "0"}, {"minus what is too small is zero", "-1e-400", "0"},
		{"what is nearly halfway to infinite", "1.797693134862315807e308", "1.7976931348623157e+308"}, {"zero with a large exponent", "0e999", "0"}, {"a negative number", "-1.5", "-1.5"}, {"2^63", "9223372036854775808", "9223372036854776000"}, {"thirds", "0.333333333333333333", "0.3333333333333333"}, {"4.35", "4.35", "4.35"}, {"1e23", "1e23", "1e+23"},
		{"an exponent with zeros before it", "1e0002", "100"}, {"half of the least double goes to zero", "2.4703282292062327e-324", "0"}, {"a little more than half of the least double", "2.4703282292062329e-324", "5e-324"},
	} {
		good("J-5 J-9", "number: "+n.note, n.text, n.canonical)
	}
	g.good("document", "J-5 J-9", "number: many digits", m{"document": m{"join": []any{"0.", m{"repeat": "3", "times": 2000}}}}, m{"canonical": "0.3333333333333333"})
	g.bad("document", "J-5", "no number: a whole one of 310 digits", "number: many digits", m{"document": m{"join": []any{"1", m{"repeat": "0", "times": 309}}}})
	for _, n := range []struct{ note, text string }{
		{"minus one that is infinite", "-1e309"}, {"a zero before", "01"}, {"minus and a zero before", "-01"}, {"plus", "+1"}, {"a bare point", ".5"}, {"a point at the end", "1."}, {"an exponent without digits", "1e"}, {"hexadecimal", "0x10"}, {"NaN", "NaN"},
		{"Infinity", "Infinity"}, {"minus alone", "-"}, {"one that is infinite", "1e309"}, {"what rounds to infinite", "1.797693134862315808e308"}, {"an underscore", "1_000"}, {"two points", "1.2.3"}, {"digits of another script", "١"},
	} {
		bad("J-5", "no number: "+n.note, "number: a negative number", n.text)
	}
	good("J-6", "an escaped pair is one character", `"\ud83d\ude00"`, `"😀"`)
	good("J-6", "an escaped pair in upper case", `"\uD83D\uDE00"`, `"😀"`)
	good("J-6 J-8", "a lone high surrogate is kept", `"\uD800"`, `"\ud800"`)
	good("J-6 J-8", "a lone low surrogate is kept", `"\uDFFFx"`, `"\udfffx"`)
	good("J-6", "a low one before a high one are two lone ones", `"\ude00\ud83d"`, `"\ude00\ud83d"`)
	good("J-6", "two high ones and a low one", `"\ud83d\ud83d\ude00"`, `"\ud83d😀"`)
	good("J-6", "an escaped high one and a character are not a pair", "\"\\ud83d\U0001f600\"", "\"\\ud83d\U0001f600\"")
	good("J-6", "escapes of what needs none", `"\u0061\/\u20ac"`, `"a/€"`)
	bad("J-6", "an unknown escape", "escapes of what needs none", `"\x61"`)
	bad("J-6", "an escape with three digits", "escapes of what needs none", `"\u006"`)
	bad("J-6", "an escape with a letter that is no digit", "escapes of what needs none", `"\u00g1"`)
	bad("J-6", "an escape in upper case", "escapes of what needs none", `"\U0061"`)
	good("J-7", "members are sorted", `{"b":1,"a":2,"":3,"aa":4,"B":5}`, `{"":3,"B":5,"a":2,"aa":4,"b":1}`)
	good("J-7", "UTF-16 order is not that of code points", "{\"\ufb00\":1,\"\U0001f600\":2}", "{\"\U0001f600\":2,\"\ufb00\":1}")
	good("J-7", "the example of RFC 8785", `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
		"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"\u00f6\":\"Latin Small Letter O With Diaeresis\",\"\u20ac\":\"Euro Sign\",\"\U0001f600\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}")
	good("J-7", "a lone surrogate sorts as its own code unit", `{"\ue000":1,"\udbff":2,"\ud800\udc00":3,"\ud800":4}`, "{\"\\ud800\":4,\"\U00010000\":3,\"\\udbff\":2,\"\ue000\":1}")
	good("J-7", "literals and nesting", `[true , false,null,{"x":[]}]`, `[true,false,null,{"x":[]}]`)
	good("J-8", "short escapes", `"\u0008\u0009\u000a\u000c\u000d\u0022\u005c"`, `"\b\t\n\f\r\"\\"`)
	good("J-8", "other control characters", `"\u0000\u000b\u001F\u007f"`, "\"\\u0000\\u000b\\u001f\x7f\"")
	good("J-8", "no escape of what HTML and scripts mind", "\"<>&'/\u2028\u2029\"", "\"<>&'/\u2028\u2029\"")
	r := rand.New(rand.NewPCG(1, 8785))
	var numbers []string
	for range 200 {
		numbers = append(numbers, strconv.FormatFloat(r.NormFloat64()*float64(r.Uint64N(1<<60)), 'e', 17, 64))
	}
	g.good("document", "J-9", "two hundred numbers", doc("["+strings.Join(numbers, ",")+"]"), nil)

	g.in("line")
	line := func(text string) m { return m{"line": Bytes(text)} }
	g.good("line", "J-10 J-11", "a line", line("{\"a\":1}\n"), nil)
	g.good("line", "J-10 J-11", "a line of the lone surrogate", line("\"\\ud800\"\n"), nil)
	for _, n := range []struct{ note, text string }{
		{"without its LF", `{"a":1}`}, {"with two LF", "{\"a\":1}\n\n"}, {"with CR LF", "{\"a\":1}\r\n"}, {"with a space", "{\"a\": 1}\n"}, {"with a space before", " {\"a\":1}\n"},
		{"with a number in another form", "{\"a\":1.0}\n"}, {"with an escape that is not needed", "{\"\\u0061\":1}\n"}, {"with members in another order", "{\"b\":1,\"a\":1}\n"}, {"with an escape in upper case", "\"\\uD800\"\n"},
		{"of a slash that is escaped", "\"\\/\"\n"}, {"with a byte order mark", "\ufeff{\"a\":1}\n"}, {"that is empty", "\n"}, {"that is two", "{\"a\":1}\n{\"a\":1}\n"}, {"of minus zero", "-0\n"},
	} {
		g.bad("line", "J-10", "a line "+n.note, "a line", line(n.text))
	}
	g.in("id")
	id := func(prefix, text string) m { return m{"document": Bytes(text), "prefix": prefix} }
	g.good("id", "J-11 J-12", "a derived id", id("prop", `{ "a" : 1.0 }`), m{"id": "prop_" + idOf(`{"a":1}`)})
	g.good("id", "J-12", "a derived id of the empty object", id("x", `{}`), m{"id": "x_" + idOf(`{}`)})
	g.bad("id", "J-12 J-3", "a derived id of no document", "a derived id", id("prop", `{"a":1,"a":1}`))
}

// idOf is what a derived id has behind its prefix, of a canonical document.
func idOf(canonical string) string {
	sum := sha256.Sum256([]byte(canonical + "\n"))
	return hex.EncodeToString(sum[:8])
}
