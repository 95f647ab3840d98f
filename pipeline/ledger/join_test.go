package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// TestT10JoinAgain: where two logs are joined, no further proposal is left out whose proposer has approved after it, or may.
func TestT10JoinAgain(t *testing.T) {
	again := func(n int) func(*ledger.Stage) {
		return func(s *ledger.Stage) {
			for i := range n {
				s.Artifact(ledger.KindAgain, map[string]any{"n": i})
			}
		}
	}
	proposeAndApprove := func(s *ledger.Stage) {
		s.Artifact(ledger.KindAgain, map[string]any{"by": "ada"})
		s.Event(request("req_1"))
		s.Status(ledger.Awaiting, "")
		s.Event(decision("req_1", ledger.Approve))
	}
	proposeAlone := func(s *ledger.Stage) { s.Artifact(ledger.KindAgain, map[string]any{"by": "ada"}) }
	for name, c := range map[string]struct {
		theirs, ours func(*ledger.Stage)
		want         string
		recorded     int
	}{
		"room":                        {again(3), proposeAndApprove, "", 4},
		"full":                        {again(ledger.MaxAgain), proposeAlone, "further proposals are recorded already", 0},
		"being applied":               {func(s *ledger.Stage) { s.Event(start(0)) }, proposeAlone, "", 0},
		"being applied, and approved": {func(s *ledger.Stage) { s.Event(start(0)) }, proposeAndApprove, "not recorded here", 0},
	} {
		t.Run(name, func(t *testing.T) {
			begin := func(more func(*ledger.Stage)) (*ledger.Log, int) {
				s := ledger.NewStage(&ledger.Log{}, moment, storetest.Plain{})
				s.Event(meta())
				s.Status(ledger.InProgress, "")
				s.Event(&ledger.TurnStart{TransactionID: txID, TurnID: "turn_1", Mode: "review"})
				s.Event(item(change()))
				s.Status(ledger.Proposed, "")
				common := len(s.Log.Events())
				more(s)
				if _, err := s.Entry(ledger.Title{}, false); err != nil {
					t.Fatal(err)
				}
				return s.Log, common
			}
			theirs, common := begin(c.theirs)
			ours, _ := begin(c.ours)
			j := ledger.NewJoin(theirs, common)
			_, err := j.Add(ours, common, len(ours.Events()))
			if told := fmt.Sprint(err); (err != nil) != (c.want != "") || !strings.Contains(told, c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if n := len(j.Log().Artifacts(ledger.KindAgain)); err == nil && n != c.recorded {
				t.Errorf("%d are recorded, want %d", n, c.recorded)
			}
		})
	}
}
