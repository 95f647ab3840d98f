package report

import (
	"strings"
	"testing"
	"unicode"

	"github.com/countersign-dev/countersign/pipeline/online"
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
	for _, shown := range lines {
		if strings.ContainsFunc(shown, func(r rune) bool { return unicode.IsControl(r) || !unicode.IsPrint(r) && r != ' ' }) {
			t.Errorf("%q", shown)
		}
	}
}
