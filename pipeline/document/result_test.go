package document_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

func TestResultVectors(t *testing.T) {
	checkVectors(t, "testdata/apply_result.json", func(doc any) []canon.Violation { return document.VerifyResult(doc, nil) })
}

func TestResultRows(t *testing.T) {
	for _, r := range resultRows {
		t.Run(r.name, func(t *testing.T) {
			in := strings.Replace(valid, r.old, r.new, 1)
			if in == valid && r.new != "" {
				t.Fatal("the row changes nothing")
			}
			got := told(document.VerifyResult(parse(t, in), nil))
			if got != r.want {
				t.Errorf("\n got %s\nwant %s", got, r.want)
			}
			if err := record(in); err == nil && got != "" || err != nil && in == valid {
				t.Errorf("as a record: %v", err)
			}
		})
	}
}

// record reads what a record would hold: all that Verify finds is refused there as well.
func record(in string) error {
	line, err := canon.Parse([]byte(in))
	if err != nil {
		return err
	}
	raw, err := canon.Line(line)
	if err != nil {
		return err
	}
	r, err := ledger.ParseResult(raw)
	if err != nil {
		return err
	}
	return r.Check()
}

func TestWriteSet(t *testing.T) {
	refused, err := effect.ResultLine(effect.RefuseResult("w", false, "m", nil))
	fatal(t, err)
	none := "AS6 a: path in result but not in patch: a\nAS6 b: path in result but not in patch: b"
	for _, c := range []struct{ name, doc, patch, want string }{
		{"equal", valid, `{"operations":[{"path":"b"},{"path":"a"},{"path":"a"}]}`, ""},
		{"both ways", valid, `{"operations":[{"path":"c"},{"path":"a"}]}`,
			"AS6 b: path in result but not in patch: b\nAS6 c: path in patch but not in result: c"},
		{"refused", string(refused), `{"operations":[{"path":"a"}]}`, ""},
		{"no object", valid, `5`, none},
		{"no operations", valid, `{}`, none},
		{"no list", valid, `{"operations":{"path":"a"}}`, none},
		{"no paths", valid, `{"operations":[1,null,{},{"path":2}]}`, none},
		{"wrong type", strings.Replace(valid, `"dry_run":false`, `"dry_run":0`, 1), `5`,
			none + "\nSCHEMA $.dry_run: dry_run must be boolean, got number"},
		{"path of another type", strings.Replace(valid, `"path":"b"`, `"path":5`, 1), `{"operations":[{"path":"a"},{"path":"b"}]}`,
			"AS6 b: path in patch but not in result: b\nSCHEMA $.operation_results[1].path: path must be a string"},
		{"bad result", `{"operation_results":5}`, `{"operations":[{"path":"a"}]}`,
			told(document.VerifyResult(parse(t, `{"operation_results":5}`), nil))},
	} {
		if got := told(document.VerifyResult(parse(t, c.doc), parse(t, c.patch))); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// FuzzVerifyResult: no document panics, answers are sorted and repeatable, and what
// Parse accepts is written back to the same bytes.
func FuzzVerifyResult(f *testing.F) {
	patch := `{"operations":[{"path":"a"}]}`
	for _, r := range resultRows {
		f.Add([]byte(strings.Replace(valid, r.old, r.new, 1)), []byte(patch))
	}
	hash := canon.Sum(nil)
	line, _ := effect.ResultLine(effect.NewResult("w", ledger.PatchSource{}, false, []ledger.Operation{{Op: "create", Path: "a", Status: ledger.StatusSuccess, AfterHash: &hash, BytesWritten: 7}}))
	f.Add(line, []byte(patch))
	f.Fuzz(func(t *testing.T, data, other []byte) {
		doc, err := canon.Parse(data)
		if err != nil {
			return
		}
		patch, err := canon.Parse(other)
		if err != nil {
			patch = nil
		}
		got := told(document.VerifyResult(doc, patch))
		sorted := document.VerifyResult(doc, patch)
		canon.SortViolations(sorted)
		if got != told(sorted) {
			t.Errorf("not sorted or not repeatable: %s", got)
		}
		r, err := ledger.ParseResult(data)
		if err != nil {
			return
		}
		again, err := effect.ResultLine(r)
		if err != nil || strings.TrimSuffix(string(again), "\n") != strings.TrimSuffix(string(data), "\n") {
			t.Errorf("reads %s, writes %s, %v", data, again, err)
		}
	})
}
