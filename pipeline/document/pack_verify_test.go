package document_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// packDocument has good fields around operations.
func packDocument(operations string, total any) string {
	return fmt.Sprintf(`{"patch_schema_version":"1.0.0","source_proposal_id":"p","source_proposal_hash":"h",`+
		`"operations":%s,"total_bytes":%v}`, operations, total)
}

func TestPackVectors(t *testing.T) {
	checkVectors(t, "testdata/patch.json", func(doc any) []canon.Violation { return document.VerifyPack(doc, document.MaxPack) })
}

// checkVectors holds a verifier to what is recorded of it in a file.
func checkVectors(t *testing.T, file string, verify func(doc any) []canon.Violation) {
	raw, err := os.ReadFile(file)
	fatal(t, err)
	var cases []struct {
		Name     string
		Input    string `json:"input_json"`
		Expected any
	}
	fatal(t, json.Unmarshal(raw, &cases))
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			want, err := canon.Marshal(c.Expected)
			fatal(t, err)
			got, err := canon.Marshal(canon.NewReport(verify(parse(t, c.Input))))
			if err != nil || string(got) != string(want) {
				t.Errorf("\n got %s, %v\nwant %s", got, err, want)
			}
		})
	}
}

// told writes violations as "RULE path: message", a line each.
func told(vs []canon.Violation) string {
	var out []string
	for _, v := range vs {
		out = append(out, v.RuleID+" "+v.Path+": "+v.Message)
	}
	return strings.Join(out, "\n")
}

func TestRows(t *testing.T) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := told(document.VerifyPack(parse(t, r.in), 10)); got != r.want {
				t.Errorf("%s\n got %s\nwant %s", r.in, got, r.want)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	const (
		absolute  = "PS3 $.operations[0].path: absolute path not allowed: "
		traversal = "PS4 $.operations[0].path: path traversal or backslash not allowed: "
		forbidden = "PS4 $.operations[0].path: forbidden characters in path: "
		untidy    = "PS4 $.operations[0].path: path not normalized: "
	)
	for _, c := range []struct {
		path string
		want []string
	}{
		{"a/b", nil},
		{"a/./b", nil},
		{".git/config", nil},
		{"a\tb", nil},
		{"a b", nil},
		{"1:a", nil},
		{"ab:c", nil},
		{"é\u200b", nil},
		{"/", []string{absolute, untidy}},
		{"/a", []string{absolute}},
		{"z:", []string{absolute}},
		{".", []string{untidy}},
		{"./", []string{untidy}},
		{"...", []string{traversal}},
		{"../", []string{traversal, untidy}},
		{"/..\\ ", []string{absolute, traversal, forbidden}},
		{" ", []string{forbidden}},
		{"a\n", []string{forbidden}},
		{"a\rb", []string{forbidden}},
		{"a\x00b", []string{forbidden}},
		{"a\x1f", []string{forbidden}},
		{"a\u00a0", []string{forbidden}},
		{"\u2028a", []string{forbidden}},
		{"\u3000a/", []string{forbidden, untidy}},
		{"a\u0085", nil},
	} {
		quoted, err := canon.Marshal(c.path)
		fatal(t, err)
		var want []string
		for _, message := range c.want {
			want = append(want, message+c.path)
		}
		doc := parse(t, packDocument(`[{"op":"delete","path":`+string(quoted)+`}]`, 0))
		if got := told(document.VerifyPack(doc, 0)); got != strings.Join(want, "\n") {
			t.Errorf("%q:\n got %q\nwant %q", c.path, got, want)
		}
	}
}

// FuzzVerify: no document panics, answers are sorted and repeatable, and what
// is valid is read, and written in one stable, valid form.
func FuzzVerifyPack(f *testing.F) {
	for _, r := range rows {
		f.Add([]byte(r.in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := canon.Parse(data)
		if err != nil {
			return
		}
		got := document.VerifyPack(doc, document.MaxPack)
		sorted := document.VerifyPack(doc, document.MaxPack)
		canon.SortViolations(sorted)
		if told(got) != told(sorted) {
			t.Errorf("not sorted or not repeatable: %s", told(got))
		}
		p, found := document.ReadPack(doc)
		if told(found) != told(got) {
			t.Fatalf("reading finds %s, verifying %s", told(found), told(got))
		}
		if len(got) > 0 {
			return
		}
		once := line(t, p)
		again, found := document.ReadPack(parse(t, once))
		if len(found) > 0 {
			t.Fatalf("%s is not valid: %v", once, found)
		}
		if line(t, again) != once {
			t.Errorf("read again: %+v", again)
		}
	})
}

func line(t *testing.T, p document.Pack) string {
	t.Helper()
	b, err := p.Line()
	fatal(t, err)
	return string(b)
}
