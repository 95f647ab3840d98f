package ledger_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

func TestLedgerEvents(t *testing.T) {
	accept := &ledger.AcceptTip{
		AcceptedTip: strings.Repeat("a", 40), RememberedTip: strings.Repeat("b", 40),
		Author: ledger.Actor{Kind: "user", ID: "local:ada@example.org", Login: "Ada"}, Reason: "the server was restored from a backup",
	}
	tree := fstest.MapFS{ledger.SchemaFile: {Data: writing.Schema("2026-01-05T00:00:00.000Z", "1.0")}}
	for range 3 {
		e, err := writing.OwnEntry(tree, moment, accept)
		fatal(t, err)
		if !strings.Contains(e.Message, "Ada accepted aaaaaaaaaaaa: the server") {
			t.Errorf("%q", e.Message)
		}
		tree[ledger.LedgerEventsFile] = &fstest.MapFile{Data: e.Files[ledger.LedgerEventsFile]}
	}
	raw := tree[ledger.LedgerEventsFile].Data
	all, err := ledger.ReadLedgerEvents(raw, "1.0")
	if err != nil || len(all) != 3 || *all[2].(*ledger.AcceptTip) != *accept {
		t.Fatalf("%v, %v", all, err)
	}
	// T54: not a byte before the last line can be changed, no line dropped,
	// doubled or swapped.
	lines := bytes.SplitAfter(raw, []byte("\n"))
	for i := range len(lines[0]) + len(lines[1]) {
		bad := bytes.Clone(raw)
		bad[i] ^= 1
		if got, err := ledger.ReadLedgerEvents(bad, "1.0"); err == nil {
			t.Errorf("byte %d: %v", i, got)
		}
	}
	for name, bad := range map[string][]byte{
		"first dropped": raw[len(lines[0]):], "last doubled": append(bytes.Clone(raw), lines[2]...),
		"swapped": append(append(bytes.Clone(lines[1]), lines[0]...), lines[2]...), "cut": raw[:len(raw)-1],
	} {
		if _, err := ledger.ReadLedgerEvents(bad, "1.0"); err == nil {
			t.Error(name)
		}
	}
	tree[ledger.LedgerEventsFile] = &fstest.MapFile{Data: raw[:len(raw)-1]}
	if _, err := writing.OwnEntry(tree, moment, accept); err == nil {
		t.Error("appended to what is cut off")
	}
}
