package canon_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// The package comment's sample.
func Example() {
	doc, _ := canon.Parse([]byte(`{"b": 1.0, "a": "é"}`))
	line, _ := canon.Marshal(doc)
	fmt.Println(string(line))
	// Output: {"a":"é","b":1}
}

func TestVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/canonical.json")
	fatal(t, err)
	var cases []struct {
		Name, Canonical, SHA256 string
		Input                   string `json:"input_json"`
		ID                      string `json:"prop_id"`
	}
	fatal(t, json.Unmarshal(raw, &cases))
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			doc, err := canon.Parse([]byte(c.Input))
			fatal(t, err)
			got, err := canon.Marshal(doc)
			check(t, "Marshal", string(got), c.Canonical, err)
			line, err := canon.Line(doc)
			check(t, "Line", string(line), c.Canonical+"\n", err)
			hash, err := document.Hash(doc)
			check(t, "Hash", hash, c.SHA256, err)
			id, err := document.DeriveID("prop", doc)
			check(t, "DeriveID", id, c.ID, err)
		})
	}
}

func check(t *testing.T, what, got, want string, err error) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("%s = %q, %v; want %q", what, got, err, want)
	}
}

func TestMarshalGoValues(t *testing.T) {
	type record struct {
		Path string  `json:"path"`
		HTML string  `json:"html"`
		Hash *string `json:"hash"`
		Size int64   `json:"size"`
	}
	got, err := canon.Marshal(record{Path: "a/b", HTML: "<&>\u2028", Size: 10})
	check(t, "Marshal", string(got), `{"hash":null,"html":"<&>`+"\u2028"+`","path":"a/b","size":10}`, err)
}

func TestMarshalErrors(t *testing.T) {
	deep := any(nil)
	for range canon.MaxDepth + 1 {
		deep = []any{deep}
	}
	for name, v := range map[string]any{
		"infinity":        math.Inf(1),
		"negative":        []any{math.Inf(-1)},
		"not a number":    map[string]any{"a": math.NaN()},
		"inside a struct": struct{ F float64 }{math.NaN()},
		"channel":         make(chan int),
		"bad text":        "\xff",
		"bad key":         map[string]any{"\xc3": nil},
		"cut surrogate":   "\xed\xa0",
		"too deep":        deep,
	} {
		if got, err := canon.Marshal(v); err == nil {
			t.Errorf("%s: Marshal = %s, want an error", name, got)
		}
		if _, err := document.DeriveID("prop", v); err == nil {
			t.Errorf("%s: DeriveID gave no error", name)
		}
	}
}

func TestUnmarshal(t *testing.T) {
	type record struct {
		A int    `json:"a"`
		B string `json:"b,omitempty"`
	}
	for _, good := range []string{`{"a":1}`, `{"a":1}` + "\n", `{"a":1,"b":"é"}` + "\n"} {
		var r record
		if err := canon.Unmarshal([]byte(good), &r); err != nil || r.A != 1 {
			t.Errorf("Unmarshal(%q) = %v, %+v", good, err, r)
		}
	}
	for name, bad := range map[string]string{
		"empty":              "",
		"key order":          `{"b":"x","a":1}`,
		"white space":        `{"a": 1}`,
		"two newlines":       "{\"a\":1}\n\n",
		"leading newline":    "\n{\"a\":1}",
		"CRLF":               "{\"a\":1}\r\n",
		"duplicate":          `{"a":1,"a":1}`,
		"unknown":            `{"a":1,"c":2}`,
		"missing":            `{"b":"x"}`,
		"letter case":        `{"A":1}`,
		"null for a number":  `{"a":null}`,
		"empty when omitted": `{"a":1,"b":""}`,
		"needless escape":    `{"a":1,"b":"\u0041"}`,
		"upper-case escape":  `{"a":1,"b":"\uD800"}`,
		"lone surrogate":     `{"a":1,"b":"\ud800"}`,
		"number form":        `{"a":1.0}`,
		"wrong type":         `{"a":"1"}`,
		"trailing text":      `{"a":1}x`,
	} {
		var r record
		if err := canon.Unmarshal([]byte(bad), &r); err == nil {
			t.Errorf("%s: Unmarshal(%q) = %+v, want an error", name, bad, r)
		}
	}
}

func TestHashes(t *testing.T) {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	check(t, "Hex", canon.Hex(nil), empty, nil)
	check(t, "Sum", canon.Sum(nil), "sha256:"+empty, nil)
	for s, want := range map[string]bool{
		empty:                  true,
		strings.ToUpper(empty): false,
		empty[1:]:              false,
		empty + "0":            false,
		"g" + empty[1:]:        false,
		"":                     false,
	} {
		if canon.IsHex64(s) != want {
			t.Errorf("IsHex64(%q) = %v", s, !want)
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
