package effect_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestReferenceResults rebuilds what a reference program wrote from its parts.
func TestReferenceResults(t *testing.T) {
	raw, err := os.ReadFile("testdata/applied.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		r, err := ledger.ParseResult(line)
		if err != nil {
			t.Errorf("%v\n%s", err, line)
			continue
		}
		slices.Reverse(r.Operations)
		slices.Reverse(r.Violations)
		again := effect.NewResult(r.TargetRoot, r.Source, r.DryRun, r.Operations)
		if r.Outcome == ledger.OutcomeRefused {
			again = effect.RefuseResult(r.TargetRoot, r.DryRun, r.Error, reorder(r.Violations))
		}
		got, err := effect.ResultLine(again)
		if err != nil || string(got) != string(line) {
			t.Errorf("rebuilt:\n got %s%v\nwant %s", got, err, line)
		}
		if vs := document.VerifyResult(parse(t, string(line)), nil); len(vs) > 0 {
			t.Errorf("%v\n%s", vs, line)
		}
	}
}

// reorder undoes a reversal where violations tie, as the sort is stable.
func reorder(vs []canon.Violation) []canon.Violation {
	slices.Reverse(vs)
	slices.SortStableFunc(vs, func(a, b canon.Violation) int { return -strings.Compare(a.Path, b.Path) })
	return vs
}

func parse(t *testing.T, in string) any {
	t.Helper()
	doc, err := canon.Parse([]byte(in))
	if err != nil {
		t.Fatalf("%v in %s", err, in)
	}
	return doc
}

// operations has one operation for each path and status, "a:error".
func operations(words ...string) []ledger.Operation {
	var ops []ledger.Operation
	for _, w := range words {
		path, status, _ := strings.Cut(w, ":")
		o := ledger.Operation{Op: "create", Path: path, Status: ledger.OperationStatus(status)}
		switch o.Status {
		case ledger.StatusError:
			o.Error = "file already exists: " + path
		case ledger.StatusSuccess:
			hash := canon.Sum(nil)
			o.AfterHash, o.BytesWritten = &hash, 7
		}
		ops = append(ops, o)
	}
	return ops
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		ops     []string
		outcome ledger.Outcome
		summary ledger.ApplySummary
		err     string
		exit    int
	}{
		{nil, ledger.OutcomeSuccess, ledger.ApplySummary{}, "", 0},
		{[]string{"b:success", "a:success"}, ledger.OutcomeSuccess,
			ledger.ApplySummary{Total: 2, Succeeded: 2, Bytes: 14}, "", 0},
		{[]string{"a:skipped"}, ledger.OutcomeSuccess, ledger.ApplySummary{Total: 1, Skipped: 1}, "", 0},
		{[]string{"a:success", "b:error", "c:skipped"}, ledger.OutcomePartial,
			ledger.ApplySummary{Total: 3, Succeeded: 1, Skipped: 1, Failed: 1, Bytes: 7}, "1 operations failed", 1},
		{[]string{"b:error", "a:error"}, ledger.OutcomeFailed,
			ledger.ApplySummary{Total: 2, Failed: 2}, "2 operations failed", 1},
		{[]string{"a:skipped", "b:error", "c:skipped"}, ledger.OutcomeFailed,
			ledger.ApplySummary{Total: 3, Skipped: 2, Failed: 1}, "1 operations failed", 1},
	} {
		r := effect.NewResult("w", ledger.PatchSource{ProposalID: "p", ProposalHash: "h"}, true, operations(c.ops...))
		if r.Outcome != c.outcome || r.Summary != c.summary || r.Error != c.err || effect.ExitCode(r.Outcome) != c.exit {
			t.Errorf("%v: %+v, exit %d", c.ops, r, effect.ExitCode(r.Outcome))
		}
		line, err := effect.ResultLine(r)
		if err != nil {
			t.Fatal(err)
		}
		if vs := document.VerifyResult(parse(t, string(line)), nil); len(vs) > 0 {
			t.Errorf("%v: %v", c.ops, vs)
		}
	}
}

func TestNewSortsACopy(t *testing.T) {
	ops := operations("\ue000:success", "😀:success", "b:success", "a:success", "a:skipped")
	r := effect.NewResult(".", ledger.PatchSource{}, false, ops)
	var got []string
	for _, o := range r.Operations {
		got = append(got, o.Path+":"+string(o.Status))
	}
	want := []string{"a:success", "a:skipped", "b:success", "😀:success", "\ue000:success"}
	if !slices.Equal(got, want) {
		t.Errorf("order is %q", got)
	}
	if ops[0].Path != "\ue000" {
		t.Error("New sorted the caller's slice")
	}
}

func TestRefuse(t *testing.T) {
	vs := []canon.Violation{{RuleID: "AS5", Path: "l", Message: "m"}, {RuleID: "AS5", Message: "n"}}
	r := effect.RefuseResult("w", true, "m", vs)
	if effect.ExitCode(r.Outcome) != 2 || vs[0].Path != "l" {
		t.Errorf("exit %d, caller's violations %v", effect.ExitCode(r.Outcome), vs)
	}
	line, err := effect.ResultLine(r)
	want := `{"apply_schema_version":"1.0.0","dry_run":true,"error":"m","operation_results":[],"outcome":"REFUSED",` +
		`"patch_source":{"proposal_hash":"","proposal_id":""},"summary":{"failed":0,"skipped":0,"succeeded":0,` +
		`"total_bytes_written":0,"total_operations":0},"target_root":"w","violations":[` +
		`{"message":"n","rule_id":"AS5"},{"message":"m","path":"l","rule_id":"AS5"}]}` + "\n"
	if err != nil || string(line) != want {
		t.Errorf("got %s, %v\nwant %s", line, err, want)
	}
}

// The struct tags say the same as Line.
func TestTags(t *testing.T) {
	for _, r := range []ledger.ApplyResult{
		{Operations: []ledger.Operation{}},
		effect.NewResult("w", ledger.PatchSource{ProposalID: "p"}, true, operations("a:error", "b:success", "c:skipped")),
		effect.RefuseResult("w", false, "m", []canon.Violation{{RuleID: "AS3", Message: "m"}, {RuleID: "AS5", Path: "l"}}),
	} {
		line, err := effect.ResultLine(r)
		tagged, err2 := canon.Line(r)
		if err != nil || err2 != nil || string(line) != string(tagged) {
			t.Errorf("Line %s, %v\ntags %s, %v", line, err, tagged, err2)
		}
	}
}

func TestLoneSurrogateIsWritten(t *testing.T) {
	r := effect.NewResult("w", ledger.PatchSource{}, false, operations("a\xed\xa0\x80:skipped"))
	line, err := effect.ResultLine(r)
	if err != nil || !strings.Contains(string(line), `"path":"a\ud800"`) {
		t.Errorf("Line = %s, %v", line, err)
	}
	if _, err := ledger.ParseResult(line); err == nil {
		t.Error("Parse took a lone surrogate")
	}
	if _, err := effect.ResultLine(effect.NewResult("\xff", ledger.PatchSource{}, false, nil)); err == nil {
		t.Error("Line took a string that is not UTF-8")
	}
}

func TestParse(t *testing.T) {
	line, err := effect.ResultLine(effect.NewResult("w", ledger.PatchSource{}, false, operations("a:success", "b:error")))
	if err != nil {
		t.Fatal(err)
	}
	good := string(line)
	for _, in := range []string{good, strings.TrimSuffix(good, "\n")} {
		if _, err := ledger.ParseResult([]byte(in)); err != nil {
			t.Error(err)
		}
	}
	for name, change := range map[string][2]string{
		"unknown key":       {`"dry_run":`, `"a":1,"dry_run":`},
		"missing key":       {`"dry_run":false,`, ``},
		"missing hash":      {`"before_hash":null,`, ``},
		"letter case":       {`"outcome"`, `"Outcome"`},
		"white space":       {`:false`, `: false`},
		"empty error":       {`"error":"1 operations failed"`, `"error":""`},
		"null error":        {`"error":"1 operations failed"`, `"error":null`},
		"fraction":          {`"bytes_written":7`, `"bytes_written":7.5`},
		"wrong type":        {`"dry_run":false`, `"dry_run":"false"`},
		"second line":       {"}\n", "}\n{}\n"},
		"null source":       {`{"proposal_hash":"","proposal_id":""}`, `null`},
		"other order":       {`"dry_run":false,"error":"1 operations failed"`, `"error":"1 operations failed","dry_run":false`},
		"not in an order":   {"\n", "\n\n"},
		"not JSON":          {`{`, ``},
		"byte order mark":   {`{"apply`, "\ufeff{\"apply"},
		"duplicate":         {`"dry_run":false`, `"dry_run":false,"dry_run":false`},
		"escaped character": {`"target_root":"w"`, `"target_root":"\u0077"`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s changes nothing", name)
		}
		if _, err := ledger.ParseResult([]byte(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	null := strings.Replace(`{"apply_schema_version":"","dry_run":false,"operation_results":[],"outcome":"",`+
		`"patch_source":{"proposal_hash":"","proposal_id":""},"summary":{"failed":0,"skipped":0,"succeeded":0,`+
		`"total_bytes_written":0,"total_operations":0},"target_root":""}`, "[]", "null", 1)
	if _, err := ledger.ParseResult([]byte(null)); err == nil {
		t.Error("null operations: no error")
	}
}
