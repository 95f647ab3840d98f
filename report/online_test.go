package report

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
)

// T71: what a forge tells is shown as text, in one line each, and what contradicts the
// record comes first.
func TestT71OnlineHostile(t *testing.T) {
	const evil = "eve\x1b[2J\n  same    all is well\u202e\x9b\x00"
	r := online.Result{Repository: evil, Questions: 3, Asked: 2, Remaining: 1, Stopped: evil, Counts: map[online.Verdict]int{online.Gone: 1, online.Unknown: 1, online.Same: 1}}
	for _, v := range []online.Verdict{online.Gone, online.Unknown, online.Same} {
		r.Findings = append(r.Findings, online.Finding{TransactionID: evil, What: online.WhatComment, About: evil, Recorded: evil, Now: evil, Verdict: v, Reason: evil})
	}
	text := Online(r, Style{})
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "  gone ") || !strings.HasPrefix(lines[2], "  unknown ") || !strings.Contains(lines[3], "1 remaining") {
		t.Errorf("%q", lines)
	}
	raw, err := json.Marshal(SARIF(audit.Result{}, nil, &r, "refs/agent/ledger", "1")["runs"])
	if err != nil {
		t.Fatal(err)
	}
	var runs []struct {
		Tool    struct{ Driver struct{ Rules []any } }
		Results []struct {
			Level   string
			Message struct{ Text string }
		}
	}
	if err := json.Unmarshal(raw, &runs); err != nil {
		t.Fatal(err)
	}
	results := runs[0].Results
	if len(results) != 2 || results[0].Level != "error" || results[1].Level != "warning" || len(runs[0].Tool.Driver.Rules) != 2 {
		t.Errorf("%+v", results)
	}
	for _, shown := range append(lines, results[0].Message.Text) {
		if strings.ContainsFunc(shown, func(r rune) bool { return unicode.IsControl(r) || !unicode.IsPrint(r) && r != ' ' }) {
			t.Errorf("%q", shown)
		}
	}
}
