package proofs_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/proofs"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// sarifSample has every kind of result.
func sarifSample() map[string]any {
	found := audit.Result{Findings: []history.Finding{{RuleID: "L8", Commit: strings.Repeat("a", 40), Path: "x", Message: "was removed"}, {RuleID: "L14", Message: "was rewritten"}}}
	branch := &explain.Branch{Name: "main", Unexplained: []explain.Unexplained{
		{Commit: strings.Repeat("b", 40), Subject: "\x1b[2J", Reason: "no transaction proposes this change", Paths: []string{"a b/c%.go", "d"}},
		{Commit: strings.Repeat("c", 40), Reason: "is a merge", Paths: []string{"m"}, Lines: []explain.Lines{{Path: "m", From: 3, To: 2}, {Path: "m", From: 5, To: 7}, {Path: "n"}}},
		{Commit: strings.Repeat("d", 40), Reason: "changes no file"},
	}}
	return proofs.SARIF(found, branch, nil, "refs/agent/ledger", "1.0")
}

// TestT71SARIF: each finding and each commit is a result with a place, and a rule that is
// listed; nothing in it is a control.
func TestT71SARIF(t *testing.T) {
	raw, err := json.Marshal(sarifSample())
	teststand.Fatal(t, err)
	text := string(raw)
	for _, want := range []string{
		`"uri":"a%20b/c%25.go"`, `"region":{"endLine":3,"startLine":3}`, `"region":{"endLine":7,"startLine":5}`, `"uri":".github/countersign.yml"`,
		`"version":"2.1.0"`, `{"id":"L8",`, `{"id":"unexplained-commit",`, `"partialFingerprints":{"commit/v1":"` + strings.Repeat("b", 40),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	if strings.Contains(text, `\u001b`) || strings.Count(text, `"ruleId"`) != 5 || strings.Count(text, `"id"`) != 3 {
		t.Error(text)
	}
	for _, name := range regexp.MustCompile(`docs/[a-z.]+`).FindAllString(text, -1) {
		if _, err := os.Stat("../../../../" + name); err != nil {
			t.Error(err)
		}
	}
	empty, err := json.Marshal(proofs.SARIF(audit.Result{}, nil, nil, "refs/agent/ledger", "1.0"))
	if err != nil || !strings.Contains(string(empty), `"results":[]`) {
		t.Errorf("%s %v", empty, err)
	}
}

// T71: what a forge tells is text there, in one line each, and what contradicts the record is worse than what is not told.
func TestT71SARIFOnline(t *testing.T) {
	const evil = "eve\x1b[2J\n  same    all is well\u202e\x9b\x00"
	var r online.Result
	for _, v := range []online.Verdict{online.Gone, online.Unknown, online.Same} {
		r.Findings = append(r.Findings, online.Finding{TransactionID: evil, What: online.WhatComment, About: evil, Recorded: evil, Now: evil, Verdict: v, Reason: evil})
	}
	raw, err := json.Marshal(proofs.SARIF(audit.Result{}, nil, &r, "refs/agent/ledger", "1")["runs"])
	teststand.Fatal(t, err)
	var runs []struct {
		Tool    struct{ Driver struct{ Rules []any } }
		Results []struct {
			Level   string
			Message struct{ Text string }
		}
	}
	teststand.Fatal(t, json.Unmarshal(raw, &runs))
	results := runs[0].Results
	if len(results) != 2 || results[0].Level != "error" || results[1].Level != "warning" || len(runs[0].Tool.Driver.Rules) != 2 {
		t.Errorf("%+v", results)
	}
	if strings.ContainsFunc(results[0].Message.Text, func(r rune) bool { return unicode.IsControl(r) || !unicode.IsPrint(r) && r != ' ' }) {
		t.Errorf("%q", results[0].Message.Text)
	}
}
