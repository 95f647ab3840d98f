package canon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A record has every kind of field that our records have.
type record struct {
	Text    string             `json:"text"`
	Named   word               `json:"named,omitempty"`
	Bool    bool               `json:"bool"`
	Maybe   bool               `json:"maybe,omitempty"`
	N       int                `json:"n"`
	Small   int8               `json:"small,omitempty"`
	Pointer *string            `json:"pointer"`
	Count   *int               `json:"count,omitempty"`
	List    []string           `json:"list"`
	Short   []part             `json:"short,omitempty"`
	Table   map[string]*string `json:"table"`
	Words   map[word]int       `json:"words,omitempty"`
	Part    part               `json:"part"`
	Part2   *part              `json:"part2,omitempty"`
	Raw     json.RawMessage    `json:"raw"`
	UPPER   string
	Skipped string `json:"-"`
	private string
}

type word string

type part struct {
	A int    `json:"a"`
	B string `json:"b,omitempty"`
	C *part2 `json:"c,omitempty"`
}

type part2 struct {
	D []int `json:"d"`
}

// odd types are not what records are made of.
type (
	floats   struct{ F float64 }
	unsigned struct{ U uint8 }
	bytesOf  struct{ B []byte }
	array    struct{ A [2]int }
)

type (
	numeral struct{ N json.Number }
	loud    struct{ S shout }
	louder  struct{ S []*shout }
	shout   string
	around  struct{ part }
	asText  struct {
		N int `json:"n,string"`
	}
	anything struct{ V any }
	again    struct {
		More []again `json:"more"`
	}
	folded struct {
		A int `json:"A"`
		B int `json:"a"`
	}
	zeroed struct {
		P part  `json:"p,omitzero"`
		L []int `json:"l,omitzero"`
	}
	whole struct {
		Q part `json:"q,omitempty"` // never left out
	}
)

// notRecords are written as no record is: nothing is read into them.
func notRecords() []any {
	return []any{&numeral{}, &loud{}, &louder{}, &asText{}}
}

// What linters would not let stand: two fields of one key, and one named "-".
var (
	twice = reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
		{Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
	})
	dash = reflect.StructOf([]reflect.StructField{{Name: "N", Type: reflect.TypeFor[int](), Tag: `json:"-,"`}})
)

func (s shout) MarshalText() ([]byte, error) { return []byte(strings.ToUpper(string(s))), nil }

func newRecords() []any {
	return []any{
		&around{}, &record{}, &part{}, &[]part{}, &map[string]int{}, new(string), new(int), new(*part), &json.RawMessage{},
		&anything{}, reflect.New(dash).Interface(), &again{}, &folded{}, &zeroed{}, &whole{}, new(any),
		&floats{}, reflect.New(twice).Interface(), &unsigned{}, &bytesOf{}, &array{},
	}
}

// records are canonical, and read by one of newRecords.
var records = []string{
	`{"UPPER":"","bool":true,"count":0,"list":["","a"],"maybe":true,"n":-12,"named":"x","part":{"a":1,"b":"x","c":{"d":[1,2]}},` +
		`"part2":{"a":0},"pointer":"p","raw":{"a":[15,"\u0001",{"é":null}]},"short":[{"a":1}],"small":-128,` +
		`"table":{"":null,"a/é":"x","a/漢":"y"},"text":"a\"\\\b\f\n\r\té漢😀` + "\x7f" + `","words":{"a":1,"b":2}}`,
	`{"UPPER":"","bool":false,"list":null,"n":999999999999999,"part":{"a":0},"pointer":null,"raw":[],"table":null,"text":""}`,
	`{"UPPER":"","bool":false,"list":[],"n":-999999999999999,"part":{"a":0},"pointer":null,"raw":"x","table":{},"text":""}`,
	`{"a":9007199254740993,"b":"\u001f"}`, `{"a":1,"b":"\ud800"}`, `[]`, `[{"a":1},{"a":2,"b":"b"}]`, `{"a":1,"b":2}`, `"x"`, `12`, `null`,
	`{"F":0.5}`, `{"V":[1,"x",null]}`, `{"N":12}`, `{"S":"A"}`, `{"n":"1"}`, `{"-":1}`, `{"more":[{"more":null}]}`, `{}`, `{"A":1,"a":2}`,
	`{"U":255}`, `{"B":"AAAA"}`, `{"A":[1,2]}`, `{"M":{"1":2}}`, `{"q":{"a":0}}`, `{"😀":1}`, `{"😀":1,"豈":2}`, `1e+21`, `-0`, `0`, `-1`, `true`, `false`,
	"{\"a\":{\"\ue000\":1,\"😀\":2}}", `[[[[]]],{},[{}]]`, `{"x":1}`, `[1.5,{"a":-0.25,"b":1e-7}]`, `1000000000000000`, `100000000000000000000`,
}

// almost are one step from canonical, or from what a record is written as.
var almost = []string{
	`{"a":1,"a":1}`, `{"a":1,"a":2}`, `{"":1,"":1}`, `{"b":1,"a":2}`, `{"B":1,"\n":2}`, `{"\n":1,"B":2}`, `{"a":1,"\u0062":2}`, "{\"\ue000\":1,\"😀\":2}", "{\"😀\":1,\"\ue000\":2}",
	`"\u0008"`, `"\u0009"`, `"\u000a"`, `"\u000c"`, `"\u000d"`, `"\u000B"`, `"\u0020"`, `"\u0022"`, `"\u005c"`, `"\/"`, `"\u00"`, `"\`, `"`, "\"\x00\"", "\"1234567\x1f\"", "\"\xff\"",
	`"\ud800"`, `"\uD800"`, `"\ud83d\ude00"`, `01`, `-0`, `-`, `1.0`, `1e2`, `1.5`, `12345678901234567`, `9007199254740993`, `1x`, `1 `, ` 1`, `1,`, ``, `tru`, `nulll`,
	`[1,]`, `[,1]`, `[1 ]`, `{"a":1,}`, `{,"a":1}`, `{"a"1}`, `{"a":}`, `{"A":1}`, `{"a":1,"b":""}`, `{"a":1,"c":null}`, `{"b":"x"}`, `{"a":null}`, `{"a":1,"d":1}`, `{"a":"1"}`, `{"a":1}}`, `{"a":1} `,
}

func TestFastOnAlmost(t *testing.T) {
	for _, s := range almost {
		sameCanonical(t, []byte(s))
		sameCanonical(t, []byte(s+"\n"))
		sameUnmarshal(t, []byte(s))
		sameUnmarshal(t, []byte(s+"\n"))
	}
	for _, s := range []string{`"words":{"a":1,"a":2}`, `"words":{"b":1,"a":2}`, `"words":{}`, `"words":null`, `"small":128`, `"small":0`, `"maybe":false`, `"count":null`, `"short":[]`, `"raw":null`} {
		key, _, _ := strings.Cut(s, ":")
		at := strings.Index(records[0], key+":")
		end := at + strings.IndexAny(records[0][at:], "}]") + 1
		if !strings.ContainsAny(records[0][at+len(key)+1:at+len(key)+2], "{[") {
			end = at + strings.IndexAny(records[0][at:], ",")
		}
		sameUnmarshal(t, []byte(records[0][:at]+s+records[0][end:]))
	}
}

// sameCanonical compares IsCanonical and IsLine with their definition.
func sameCanonical(t *testing.T, data []byte) {
	t.Helper()
	doc, err := canon.Parse(data)
	var body, line []byte
	if err == nil {
		body, _ = canon.Marshal(doc)
		line, _ = canon.Line(doc)
	}
	if want := err == nil && bytes.Equal(body, data); canon.IsCanonical(data) != want {
		t.Errorf("IsCanonical(%q) = %v, want %v", data, !want, want)
	}
	if want := err == nil && bytes.Equal(line, data); canon.IsLine(data) != want {
		t.Errorf("IsLine(%q) = %v", data, !want)
	}
}

// sameUnmarshal compares Unmarshal with its definition, and writes what was
// read. Of types that records are not made of, nothing may be taken.
func sameUnmarshal(t *testing.T, data []byte) {
	t.Helper()
	for i, slow := range newRecords() {
		fast := newRecords()[i]
		errFast, errSlow := canon.Unmarshal(data, fast), canon.UnmarshalSlowly(data, slow)
		if isOdd := i >= len(newRecords())-5; isOdd && errFast != nil {
			continue
		}
		if fmt.Sprint(errFast) != fmt.Sprint(errSlow) || errFast == nil && !reflect.DeepEqual(fast, slow) {
			t.Errorf("Unmarshal(%q): %v, %+v; want %v, %+v", data, errFast, fast, errSlow, slow)
		}
		if errFast == nil {
			marshalAgrees(t, fast)
		}
	}
}

// marshalAgrees holds Marshal of a Go value to what jcs makes of the document
// that encoding/json makes of it, where jcs takes that.
func marshalAgrees(t *testing.T, v any) {
	t.Helper()
	got, err := canon.Marshal(v)
	raw, errJSON := json.Marshal(v)
	if errJSON != nil {
		if err == nil {
			t.Errorf("Marshal(%+v) = %q; want %v", v, got, errJSON)
		}
		return
	}
	if err != nil {
		if _, errParse := canon.Parse(raw); errParse == nil {
			t.Errorf("Marshal(%+v): %v", v, err)
		}
		return
	}
	if want, err := jcs.Transform(raw); err == nil && !bytes.Equal(got, want) {
		t.Errorf("Marshal(%+v) = %q; want %q", v, got, want)
	}
}

func TestNotRecords(t *testing.T) {
	for _, v := range notRecords() {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a %T is taken for a record", v)
				}
			}()
			_ = canon.Unmarshal([]byte(`{"S":"A"}`), v)
		}()
	}
}

// TestFastOnMutants changes a few bytes of what is canonical, so that many
// mutants almost are.
func TestFastOnMutants(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	snippets := []string{
		`"`, `\`, `,`, `:`, `{`, `}`, `[`, `]`, ` `, `0`, `1`, `-`, `.`, `e`, `9`, "\n", "\x00", "\x7f", "\x80", "é", "😀", "\ufffd", "\ue000", "\xed\xa0\x80",
		`\u0000`, `\u0008`, `\u000b`, `\u001F`, `\u001f`, `\u0020`, `\/`, `\n`, `\ud800`, `\ud83d\ude00`, `null`, `true`, `"a":1`, `""`,
	}
	for i, s := range records {
		data := []byte(s)
		sameCanonical(t, data)
		sameCanonical(t, append(data[:len(s):len(s)], '\n'))
		sameUnmarshal(t, data)
		for range 6000 / len(records) {
			m := mutant(r, s, records[r.IntN(len(records))], snippets)
			sameCanonical(t, m)
			if i%2 == 0 {
				sameUnmarshal(t, m)
			}
		}
	}
}

func mutant(r *rand.Rand, s, other string, snippets []string) []byte {
	for range 1 + r.IntN(2) {
		at, end := r.IntN(len(s)+1), 0
		end = min(len(s), at+r.IntN(4))
		switch r.IntN(5) {
		case 0: // out
			s = s[:at] + s[end:]
		case 1: // twice
			s = s[:end] + s[at:]
		case 2: // replaced
			s = s[:at] + snippets[r.IntN(len(snippets))] + s[end:]
		case 3: // inserted
			s = s[:at] + snippets[r.IntN(len(snippets))] + s[at:]
		case 4: // crossed
			s = s[:at] + other[r.IntN(len(other)):]
		}
	}
	return []byte(s)
}

func TestFastDepth(t *testing.T) {
	for _, n := range []int{canon.MaxDepth - 1, canon.MaxDepth, canon.MaxDepth + 1} {
		for _, s := range []string{
			strings.Repeat("[", n) + strings.Repeat("]", n),
			strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n),
		} {
			sameCanonical(t, []byte(s))
			raw := &struct{ R json.RawMessage }{json.RawMessage(s)}
			marshalAgrees(t, raw)
			for depth, v := 1, any(raw); depth <= 3; depth, v = depth+1, []any{v} {
				if _, err := canon.Marshal(v); (err == nil) != (n+depth <= canon.MaxDepth) {
					t.Errorf("%d levels below %d: %v", n, depth, err)
				}
			}
			slow := &struct{ R json.RawMessage }{}
			fast := &struct{ R json.RawMessage }{}
			data := []byte(`{"R":` + s + `}`)
			errFast, errSlow := canon.Unmarshal(data, fast), canon.UnmarshalSlowly(data, slow)
			if fmt.Sprint(errFast) != fmt.Sprint(errSlow) || errFast == nil && !reflect.DeepEqual(fast, slow) {
				t.Errorf("%d levels: %v, want %v", n, errFast, errSlow)
			}
		}
	}
}

func TestMarshalText(t *testing.T) {
	one := 1
	for _, text := range []string{"", "a", "<&>\u2028", "\xff", "\xed\xa0\x80", "a\xed", "\ufffd", "\x00\x1f\x7f", "\U0010ffff", "\"\\/"} {
		for _, v := range []any{
			record{Text: text}, &record{Named: word(text), Raw: json.RawMessage("{}")}, record{Table: map[string]*string{text: &text, "b": nil, "\ue000": nil, "😀": nil}},
			[]string{text}, map[word]string{"k": word2(text)}, map[string]string{"a" + text: text, text + "a": text}, word(text), []record{{List: []string{text, text}}},
			struct{ R json.RawMessage }{json.RawMessage(text)}, struct{ R json.RawMessage }{json.RawMessage(`"` + text + `"`)},
			map[string]any{"r": record{Text: text, Count: &one}}, numeral{json.Number(text)}, loud{shout(text)},
		} {
			marshalAgrees(t, v)
		}
	}
	for _, n := range []int64{0, -1, 999999999999999, 1e15, -1e15, 1e15 + 1, 1<<53 + 1, 1<<63 - 1, -1 << 63} {
		marshalAgrees(t, struct{ N int64 }{n})
		marshalAgrees(t, map[string]any{"n": float64(n), "half": float64(n) + 0.5})
	}
}

func word2(s string) string { return s }

// TestUnmarshalNotEmpty: what v holds already is lost.
func TestUnmarshalNotEmpty(t *testing.T) {
	for _, s := range records[:3] {
		full, empty := &record{Text: "old", Skipped: "s", private: "p", List: []string{"x"}}, &record{}
		errFull, errEmpty := canon.Unmarshal([]byte(s), full), canon.Unmarshal([]byte(s), empty)
		if errFull != nil || errEmpty != nil || !reflect.DeepEqual(full, empty) {
			t.Errorf("%v, %+v; want %v, %+v", errFull, full, errEmpty, empty)
		}
	}
	for _, v := range []any{nil, record{}, (*record)(nil), 1} {
		if err := canon.Unmarshal([]byte(records[0]), v); err == nil {
			t.Errorf("Unmarshal into %T: no error", v)
		}
	}
}

// TestUnmarshalCutOff: a document that ends anywhere is refused as by the definition.
func TestUnmarshalCutOff(t *testing.T) {
	for _, s := range records {
		for n := range len(s) {
			sameUnmarshal(t, []byte(s[:n]))
		}
	}
}

// FuzzFast: the fast ways and their definitions agree.
func FuzzFast(f *testing.F) {
	for _, s := range records {
		f.Add([]byte(s))
	}
	for _, d := range append(documents, loneSurrogates...) {
		f.Add([]byte(d.in))
		f.Add([]byte(d.want))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sameCanonical(t, data)
		sameUnmarshal(t, data)
		var lax record
		_ = json.Unmarshal(data, &lax)
		marshalAgrees(t, lax)
		marshalAgrees(t, record{Text: string(data), Table: map[string]*string{string(data): nil}, Raw: data})
	})
}

// FuzzCompare: the order is that of UTF-16 code units, of whatever Marshal writes.
func FuzzCompare(f *testing.F) {
	for _, a := range []string{"", "a", "\xc3", "\xc3a", "\xc3\xa9", "\xe2\x82", "\xed\xa0\x80", "\ue000", "😀", "\xff"} {
		f.Add(a, a)
		f.Add(a, "b")
		f.Add("\xc3", a)
		f.Add("😀", a)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if _, err := canon.Marshal(a + "," + b); err != nil {
			return
		}
		for _, pair := range [][2]string{{a, b}, {b, a}, {a + b, a}, {a + "a", a + "b"}, {a + b, b + a}} {
			if got, want := canon.Compare(pair[0], pair[1]), canon.CompareSlowly(pair[0], pair[1]); got != want {
				t.Errorf("Compare(%+q, %+q) = %d, want %d", pair[0], pair[1], got, want)
			}
		}
	})
}
