package console

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Whatever somebody has written into a ledger is one inert line.
func TestDescribe(t *testing.T) {
	for notes, want := range map[string]string{
		"plain": "denied: plain", "": "denied: ", "über alles": "denied: über alles",
		"a\nb\tc\r": `denied: a_x0ab_x09c_x0d`, "\x1b[2J": "denied: _x1b[2J", "\u202e": "denied: _u202e", "\xff": "denied: _xff",
		"$(x) `x` \\ ! ' \" < > & | ; * ? ~ {a,b}": "denied: _(x) _x_ _ _ _ _ _ _ _ _ _ _ _ _ _a,b_",
	} {
		if got := describe(ledger.Transaction{Status: ledger.Denied, Closed: true, Notes: notes}); got != want {
			t.Errorf("%q is %q, want %q", notes, got, want)
		}
	}
	if got := describe(ledger.Transaction{Notes: strings.Repeat("é\n", 1000)}); utf8.RuneCountInString(got) != maxSummary || !strings.HasSuffix(got, "…") {
		t.Errorf("%q", got)
	}
}

// A large ledger is not read to its end, and what is damaged is left out.
func TestBounds(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 300 {
		id := fmt.Sprintf("tx_01KE5W5200041061050R3GG%03d", i)
		raw, err := canon.Line(ledger.Transaction{TransactionID: id, Status: ledger.Proposed, Closed: i%2 == 0})
		if err != nil {
			t.Fatal(err)
		}
		if i == 298 || i == 299 {
			raw = []byte("{")
		}
		tree[ledger.Dir(id)+"/"+ledger.TransactionFile] = &fstest.MapFile{Data: raw}
	}
	all, open := Transactions(tree, "", false), Transactions(tree, "tx_", true)
	if len(all) != maxOffered || !strings.HasPrefix(all[0], "tx_01KE5W5200041061050R3GG297\t") {
		t.Errorf("%d: %q", len(all), all[:min(len(all), 2)])
	}
	if len(open) != maxOffered || !strings.HasPrefix(open[1], "tx_01KE5W5200041061050R3GG295\t") {
		t.Errorf("%d: %q", len(open), open[:min(len(open), 2)])
	}
	if one := Transactions(tree, "tx_01KE5W5200041061050R3GG007", true); len(one) != 1 {
		t.Errorf("%q", one)
	}
	if none := Transactions(tree, "tx_01KE5W5200041061050R3GG008", true); len(none) != 0 {
		t.Errorf("%q", none)
	}
}
