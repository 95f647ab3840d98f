package ledger_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

func traceStep(kind, source string) *ledger.TraceItem {
	id := strings.Repeat("a", 64)
	code, text := 0, "go test"
	return &ledger.TraceItem{TransactionID: txID, TurnID: "turn_1", Item: ledger.TraceStep{
		ID: "item_3", Type: kind, Op: "final", Status: "completed", ExitCode: &code,
		Command: &text, Server: &text, Tool: &text, Summary: &text, Content: &text, Steps: []ledger.Step{{ID: "step_1", Title: text, Status: "completed"}},
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
		{"agentMessage", "claimed", true}, {"commandExecution", "claimed", false}, {"mcpToolCall", "claimed", false}, {"plan", "claimed", false}, {"fileChange", "claimed", false},
		{"commandExecution", "", false}, {"commandExecution", "here", false}, {"fileChange", "trace", false}, {"turnDiff", "trace", false}, {"", "trace", false},
	} {
		payload, err := canon.Marshal(traceStep(c.kind, c.source))
		fatal(t, err)
		p, err := ledger.Event{Type: ledger.TypeTurnItem, Payload: payload}.Decode()
		if _, is := p.(*ledger.TraceItem); is != c.ok || (err == nil) != c.ok {
			t.Errorf("%s of %q: %T, %v", c.kind, c.source, p, err)
		}
	}
}

// An item with a status, or without a member, that turn item schema 0.1 does not
// have is neither written nor read.
func TestItemVocabulary(t *testing.T) {
	with := func(edit func(*ledger.TraceStep)) ledger.Payload {
		p := traceStep("plan", "trace")
		edit(&p.Item)
		return p
	}
	here := func(status string, steps ...ledger.Step) ledger.Payload {
		return &ledger.TurnItem{TransactionID: txID, TurnID: "turn_1", Item: ledger.Item{ID: "item_3", Type: "plan", Status: status, Steps: steps}}
	}
	for _, c := range []struct {
		why string
		p   ledger.Payload
		ok  bool
	}{
		{"as it is", traceStep("plan", "trace"), true},
		{"a step is done", with(func(s *ledger.TraceStep) { s.Steps[0].Status = "done" }), false},
		{"a step without a status", with(func(s *ledger.TraceStep) { s.Steps[0].Status = "" }), false},
		{"a plan without steps", with(func(s *ledger.TraceStep) { s.Steps = nil }), false},
		{"a message without content", with(func(s *ledger.TraceStep) { s.Type, s.Content = "agentMessage", nil }), false},
		{"a reasoning without a summary", with(func(s *ledger.TraceStep) { s.Type, s.Summary = "reasoning", nil }), false},
		{"a call without a server", with(func(s *ledger.TraceStep) { s.Type, s.Server = "mcpToolCall", nil }), false},
		{"a call without a tool", with(func(s *ledger.TraceStep) { s.Type, s.Tool = "mcpToolCall", nil }), false},
		{"no command", with(func(s *ledger.TraceStep) { s.Type, s.Command = "commandExecution", nil }), false},
		{"another status", with(func(s *ledger.TraceStep) { s.Status = "done" }), false},
		{"none", here(""), true},
		{"in progress", here("inProgress", ledger.Step{ID: "a", Status: "skipped"}), true},
		{"cancelled", here("cancelled"), true},
		{"proposed", here("proposed"), false},
		{"applied", here("applied"), false},
		{"in_progress", here("in_progress"), false},
		{"a step of a plan is done", here("", ledger.Step{ID: "a", Status: "done"}), false},
		{"a command is skipped", &ledger.CommandItem{TransactionID: txID, TurnID: "turn_1", Item: ledger.Command{ID: "i", Type: ledger.CommandExecution, Status: "skipped"}}, false},
		{"a command without a status (I12)", &ledger.CommandItem{TransactionID: txID, TurnID: "turn_1", Item: ledger.Command{ID: "i", Type: ledger.CommandExecution}}, false},
		{"a told command without one", with(func(s *ledger.TraceStep) { s.Type, s.Status = "commandExecution", "" }), false},
	} {
		s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
		reviewed(s)
		log, err := ledger.ReadLog(s.Log.Bytes())
		fatal(t, err)
		s.Event(c.p)
		if _, err := s.Entry(writing.Title{Stage: "test"}, false); (err == nil) != c.ok {
			t.Errorf("%s: written, %v", c.why, err)
		}
		if c.ok {
			continue
		}
		raw, err := canon.Line(map[string]any{"seq": len(log.Events()) + 1, "prev": canon.Sum(lastLine(log.Bytes())), "timestamp": ledger.FormatTime(moment), "type": "turn/item", "payload": c.p})
		fatal(t, err)
		if _, err := ledger.ReadLog(append(slices.Clone(log.Bytes()), raw...)); err == nil || !strings.Contains(err.Error(), "has no place") {
			t.Errorf("%s: read, %v", c.why, err)
		}
	}
}

func lastLine(raw []byte) []byte {
	raw = raw[:len(raw)-1]
	return append(slices.Clone(raw[bytes.LastIndexByte(raw, '\n')+1:]), '\n')
}

// A step has a turn, and a command that a trace tells of has its trace (I5, I12).
func TestTraceItemRules(t *testing.T) {
	s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	s.Event(meta())
	s.Event(traceStep("commandExecution", "trace"))
	if _, err := s.Entry(writing.Title{Stage: "test"}, false); err == nil {
		t.Error("a step before its turn")
	}
	s = writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	reviewed(s)
	s.Event(traceStep("commandExecution", "trace"))
	entry, err := s.Entry(writing.Title{Stage: "test"}, false)
	fatal(t, err)
	dir := fstest.MapFS{}
	for name, data := range entry.Files {
		dir[strings.TrimPrefix(name, ledger.Dir(txID)+"/")] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
	found := checkOwn(dir, txID)
	if len(found) != 1 || found[0].RuleID != "I12" {
		t.Errorf("found %+v", found)
	}
}
