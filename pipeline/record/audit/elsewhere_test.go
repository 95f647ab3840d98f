package audit_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// TestT10ElsewhereAudited: L24 of a whole history, and of the part of one. Who approves a patch that they had proposed in
// another transaction, first or again, is named in the record before; what comes first is the order of the commits.
func TestT10ElsewhereAudited(t *testing.T) {
	const (
		proposes = iota // two proposes what one does
		again           // three proposes one's
		names           // two's record names who proposed one
		approves        // three approves two
		inShell         // two does so in a shell, as one and three do
		excuses         // three approves the secret of two
	)
	for name, c := range map[string]struct {
		order []int
		by    string // who proposes one
		want  bool
	}{
		"not named":            {[]int{proposes, approves}, "3", true},
		"named":                {[]int{proposes, names, approves}, "3", false},
		"named too late":       {[]int{proposes, approves, names}, "3", true},
		"again, not named":     {[]int{again, proposes, approves}, "1", true},
		"again, named":         {[]int{again, proposes, names, approves}, "1", false},
		"again, afterwards":    {[]int{proposes, approves, again}, "1", false},
		"somebody else did":    {[]int{proposes, approves}, "1", false},
		"again, then approves": {[]int{proposes, again, approves}, "1", true},
		"in a shell":           {[]int{inShell, approves}, "local:eve", false}, // where it counts in any case
		"a secret, in a shell": {[]int{inShell, excuses}, "local:eve", true},
		"a secret":             {[]int{proposes, excuses}, "3", true},
	} {
		var ids [2]string
		for i := range ids {
			var err error
			if ids[i], err = writing.NewID(at(i), bytes.NewReader(make([]byte, 10))); err != nil {
				t.Fatal(err)
			}
		}
		three := ledger.Actor{Kind: "user", ID: "3", Login: "eve"}
		if c.order[0] == inShell {
			three.ID = "local:eve"
		}
		one := proposed(at(0), ids[0], took{file: "a", by: c.by, kind: "patch", diff: "x"}, "")
		entries := []writing.Entry{entry(t, one, "review", true)}
		logs := [2]*ledger.Log{one.Log}
		for i, step := range c.order {
			in := 1
			if step == again {
				in = 0
			}
			s := writing.NewStage(logs[in], at(i+1), secret.Default())
			stage := "gate"
			switch step {
			case proposes, inShell:
				by := map[int]string{proposes: "2", inShell: "local:two"}[step]
				s, stage = proposed(at(i+1), ids[1], took{file: "a", by: by, kind: "patch", diff: "x"}, ""), "review"
				logs[1] = s.Log
			case again:
				s.Artifact(ledger.KindAgain, ledger.Provenance{
					Schema: ledger.AgainSchema, Tool: "x", Proposer: three, Input: ledger.Input{Kind: "patch"}, BaseCommit: strings.Repeat("a", 40), PatchID: s.Log.Transaction().PatchID(),
				})
			case names:
				s.Artifact(ledger.KindElsewhere, ledger.Elsewhere{
					Schema: ledger.ElsewhereSchema, PatchID: s.Log.Transaction().PatchID(), Proposals: []ledger.ProposedIn{{Proposer: three, TransactionID: ids[0]}},
				})
			case approves, excuses:
				kind := map[int]string{approves: policy.KindFileChange, excuses: policy.KindSecret}[step]
				fingerprint := policy.Fingerprint(kind, canon.Hex(patchOf("a", []byte("x"))))
				s.Event(&ledger.ApprovalRequest{TransactionID: ids[1], TurnID: "turn_1", ApprovalRequestID: "req_1", ItemID: "item_1", Kind: kind, Fingerprint: fingerprint})
				s.Event(&ledger.ApprovalDecision{TransactionID: ids[1], ApprovalRequestID: "req_1", Decision: ledger.Approve, Fingerprint: fingerprint, Source: ledger.Source{Kind: "local", Author: three}})
			}
			entries = append(entries, entry(t, s, stage, false))
		}
		for from := 0; from <= 1+slices.IndexFunc(c.order, func(step int) bool { return step == approves || step == excuses }); from++ {
			r, err := audit.Run(newWritten(slices.Clone(entries), from), audit.Options{})
			fatal(t, err)
			told := ""
			for _, f := range r.Findings {
				if f.RuleID == "L24" {
					told = f.Message
				}
			}
			if (told == "eve approves what they had proposed in "+ids[0]+", which the record does not say") != c.want || !c.want && told != "" {
				t.Errorf("%s, from commit %d: %q", name, from, told)
			}
		}
	}
}
