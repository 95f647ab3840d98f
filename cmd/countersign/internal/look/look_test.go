package look

import (
	"fmt"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestJudgeable: of many open transactions the newest are judged, and those that have ended cost nothing.
func TestJudgeable(t *testing.T) {
	var all []ledger.Transaction
	for i := range 2 * mostJudged {
		all = append(all, ledger.Transaction{Notes: fmt.Sprint(i)}, ledger.Transaction{Notes: "over", Closed: true})
	}
	kept, left := judgeable(all)
	if left != mostJudged || len(kept) != 3*mostJudged || kept[mostJudged].Notes != fmt.Sprint(mostJudged) || kept[len(kept)-2].Notes != fmt.Sprint(2*mostJudged-1) {
		t.Errorf("%d left out, %d kept, %q first", left, len(kept), kept[mostJudged].Notes)
	}
}
