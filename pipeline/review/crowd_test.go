package review

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestT42CrowdDamaged: what cannot be read may be anybody's, and counts.
func TestT42CrowdDamaged(t *testing.T) {
	const id = "tx_01M82YFRMRC61F83E0W3CJ76HE"
	tree := fstest.MapFS{ledger.Dir(id) + "/transaction.json": {Data: []byte("{}\n")}}
	var p gathered
	for most, refused := range []bool{false, true, false} {
		p.rules.Policy.Limits.Open = most
		if err := p.refuseCrowd(tree, nil); (err != nil) != refused || refused && !strings.Contains(err.Error(), id) {
			t.Errorf("%d may be open: %v", most, err)
		}
	}
}
