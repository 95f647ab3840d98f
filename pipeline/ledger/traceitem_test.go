package ledger_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

func traceStep(kind, source string) *ledger.TraceItem {
	id := strings.Repeat("a", 64)
	code := 0
	return &ledger.TraceItem{TransactionID: txID, TurnID: "turn_1", Item: ledger.TraceStep{
		ID: "item_3", Type: kind, Op: "final", Status: "completed", Command: "go test", ExitCode: &code,
		Metadata: ledger.TraceMetadata{Artifact: ledger.ArtifactRef{ArtifactID: id, Path: ledger.ArtifactFile(id)}, Source: source, Step: 1, Steps: 1},
	}}
}

// An item that a proposer tells of says so, and is of a type that a trace can
// tell of: it is never taken for a command that ran here, nor for a change.
func TestTraceItemDecode(t *testing.T) {
	for _, c := range []struct {
		kind, source string
		ok           bool
	}{
		{"commandExecution", "trace", true}, {"mcpToolCall", "trace", true}, {"plan", "trace", true}, {"reasoning", "trace", true}, {"agentMessage", "trace", true},
		{"commandExecution", "", false}, {"commandExecution", "here", false}, {"fileChange", "trace", false}, {"turnDiff", "trace", false}, {"", "trace", false},
	} {
		payload, err := canon.Marshal(traceStep(c.kind, c.source))
		if err != nil {
			t.Fatal(err)
		}
		p, err := ledger.Event{Type: ledger.TypeTurnItem, Payload: payload}.Decode()
		if _, is := p.(*ledger.TraceItem); is != c.ok || (err == nil) != c.ok {
			t.Errorf("%s of %q: %T, %v", c.kind, c.source, p, err)
		}
	}
}

// A step has a turn, and a command that a trace tells of has its trace (I5, I12).
func TestTraceItemRules(t *testing.T) {
	s := ledger.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	s.Event(meta())
	s.Event(traceStep("commandExecution", "trace"))
	if _, err := s.Entry(ledger.Title{Stage: "test"}, false); err == nil {
		t.Error("a step before its turn")
	}
	s = ledger.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	reviewed(s)
	s.Event(traceStep("commandExecution", "trace"))
	entry, err := s.Entry(ledger.Title{Stage: "test"}, false)
	if err != nil {
		t.Fatal(err)
	}
	dir := fstest.MapFS{}
	for name, data := range entry.Files {
		dir[strings.TrimPrefix(name, ledger.Dir(txID)+"/")] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
	found := ledger.CheckOwn(dir, txID)
	if len(found) != 1 || found[0].RuleID != "I12" {
		t.Errorf("found %+v", found)
	}
}
