package input

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// The types of a step of a trace. One without a type is a tool call.
const (
	stepTool      = "tool"
	stepPlan      = "plan"
	stepReasoning = "reasoning"
	stepMessage   = "message"
)

// stepNeeds is the member that a step of each type must have.
var stepNeeds = map[string]string{stepTool: "tool", stepPlan: "steps", stepReasoning: "summary", stepMessage: "content"}

// A member is what a known member of a step must be, in words and in code.
type member struct {
	must string
	is   func(any) bool
}

// stepMembers are the members that mean something. What else a step has is kept
// as it is: agents have more to tell than this format knows.
var stepMembers = map[string]member{
	"tool":       {"a name of at most 200 bytes", isName},
	"server":     {"a name of at most 200 bytes", isName},
	"cwd":        {"a text", isText},
	"exit_code":  {"a whole number", isWhole},
	"started_at": {"a time as in RFC 3339", isMoment},
	"ended_at":   {"a time as in RFC 3339", isMoment},
	"steps":      {"a list of objects, each with a title and perhaps a status", isPlan},
	"summary":    {"a text", isText},
	"content":    {"a text", isText},
}

// maxSteps is how many steps a trace may have, maxTold of how many of them there
// are items; the artifact has all.
const (
	maxSteps = 10_000
	maxTold  = 100
)

// ReadTrace reads a trace of what an agent did (docs/formats.md, Trace): JSON
// Lines, one step a line, or the log of a session. The error is a *patch.Error that
// names the line.
func ReadTrace(raw []byte) ([]any, error) {
	if s := sessionOf(raw); s != nil {
		return s.all(raw)
	}
	out := []any{}
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		doc, err := canon.Parse(line)
		step, object := doc.(map[string]any)
		if err != nil || !object {
			return nil, &patch.Error{Line: n, Message: "not a JSON object"}
		}
		if why := checkStep(step); why != "" {
			return nil, &patch.Error{Line: n, Message: why}
		}
		if out = append(out, doc); len(out) > maxSteps {
			return nil, &patch.Error{Line: n, Message: fmt.Sprintf("a trace has at most %d steps", maxSteps)}
		}
	}
	return out, nil
}

// WriteTrace writes steps as ReadTrace reads them.
func WriteTrace(steps []any) ([]byte, error) {
	var out []byte
	for _, step := range steps {
		line, err := canon.Line(step)
		if err != nil {
			return nil, err
		}
		out = append(out, line...)
	}
	return out, nil
}

// checkStep says what is wrong with a step, "" if nothing is.
func checkStep(step map[string]any) string {
	if t, given := step["type"]; given && stepNeeds[stepType(step)] == "" {
		return fmt.Sprintf("no step has the type %+q: it is tool, plan, reasoning or message", ledger.OneLine(canon.String(t, true), 40))
	}
	if need := stepNeeds[stepType(step)]; step[need] == nil {
		return fmt.Sprintf("a step of the type %s needs %q", stepType(step), need)
	}
	for _, name := range sortedKeys(step) {
		if m, known := stepMembers[name]; known && !m.is(step[name]) {
			return fmt.Sprintf("%q must be %s", name, m.must)
		}
	}
	if begin, end := moment(step["started_at"]), moment(step["ended_at"]); !begin.IsZero() && !end.IsZero() && end.Before(begin) {
		return `"ended_at" is before "started_at"`
	}
	return ""
}

func sortedKeys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// stepType is a step's type, "" for one that is not a text.
func stepType(step map[string]any) string {
	t, given := step["type"]
	if !given {
		return stepTool
	}
	text, _ := t.(string)
	return text
}

func isText(v any) bool { _, ok := v.(string); return ok }

func isName(v any) bool {
	s, ok := v.(string)
	return ok && s != "" && len(s) <= 200
}

func isWhole(v any) bool {
	f, ok := v.(float64)
	return ok && f == math.Trunc(f) && math.Abs(f) <= math.MaxInt32
}

func isMoment(v any) bool { return !moment(v).IsZero() }

// moment reads a time, the zero time from what is none.
func moment(v any) time.Time {
	s, _ := v.(string)
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return at
}

func isPlan(v any) bool {
	steps, ok := v.([]any)
	for _, step := range steps {
		doc, _ := step.(map[string]any)
		status, given := doc["status"]
		if !isText(doc["title"]) || given && !isText(status) {
			return false
		}
	}
	return ok
}

// RecordTrace records a trace: whole as an artifact, its first steps as items of
// the turn, each marked as the proposer's word. clean takes the secrets out of a
// text.
func (in Change) RecordTrace(s *ledger.Stage, clean func(string) string) {
	r := teller{clean}
	file := s.Artifact("trace", map[string]any{"schema": "countersign/trace/1", "calls": in.Trace})
	next := 3 // item_1 is the fileChange, item_2 the turnDiff
	if in.Proposal != nil {
		next++ // and item_3 the Proposal's plan
	}
	for i, doc := range in.Trace[:min(maxTold, len(in.Trace))] {
		step, _ := doc.(map[string]any)
		item := r.stepItem(step)
		if item.Type == "plan" && len(item.Steps) == 0 {
			continue // says nothing, and is no item of the schema
		}
		item.ID, item.Op = fmt.Sprintf("item_%d", next), "final"
		next++
		item.Metadata = ledger.TraceMetadata{
			Artifact: ledger.ArtifactRef{ArtifactID: strings.TrimSuffix(path.Base(file), ".json"), Path: file},
			Source:   ledger.SourceTrace, Step: i + 1, Steps: len(in.Trace),
			StartedAt: said(step, "started_at"), EndedAt: said(step, "ended_at"),
		}
		s.Event(&ledger.TraceItem{TransactionID: s.Log.Transaction().TransactionID, TurnID: "turn_1", Item: item})
	}
}

// stepItem is a step as it is shown. A tool call with an exit code is a command.
func (r teller) stepItem(step map[string]any) ledger.TraceStep {
	switch stepType(step) {
	case stepPlan:
		return ledger.TraceStep{Type: "plan", Steps: r.planSteps(step["steps"])}
	case stepReasoning:
		summary := r.cut(said(step, "summary"))
		return ledger.TraceStep{Type: "reasoning", Summary: &summary}
	case stepMessage:
		content := r.cut(said(step, "content"))
		return ledger.TraceStep{Type: "agentMessage", Content: &content}
	}
	code, isCommand := step["exit_code"].(float64)
	if !isCommand {
		server, tool := r.line(said(step, "server"), 200), r.line(said(step, "tool"), 200)
		return ledger.TraceStep{Type: "mcpToolCall", Server: &server, Tool: &tool}
	}
	exit, command := int(code), r.line(cmp.Or(display(step["input"]), said(step, "tool")), 500)
	item := ledger.TraceStep{
		Type: ledger.CommandExecution, Status: ledger.ItemCompleted, Command: &command,
		CWD: r.line(said(step, "cwd"), 500), AggregatedOutput: r.cut(display(step["output"])), ExitCode: &exit, DurationMS: duration(step),
	}
	if exit != 0 {
		item.Status = ledger.ItemFailed
	}
	return item
}

// maxPlan is how many steps of a plan an item holds.
const maxPlan = 100

func (r teller) planSteps(v any) []ledger.Step {
	steps, _ := v.([]any)
	var out []ledger.Step
	for i, step := range steps[:min(maxPlan, len(steps))] {
		doc, _ := step.(map[string]any)
		out = append(out, ledger.Step{ID: fmt.Sprintf("step_%d", i+1), Title: r.line(said(doc, "title"), 200), Status: stepStatus(said(doc, "status"))})
	}
	return out
}

// stepStatus is the word that a plan's step has in an item for one that an agent
// uses. What is left out, or is no word known here, is not done yet, as far as
// the item says; the artifact has the agent's own.
func stepStatus(said string) string {
	switch strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(said)) {
	case "inprogress", "active", "doing":
		return ledger.ItemInProgress
	case "completed", "complete", "done":
		return ledger.ItemCompleted
	case "skipped", "cancelled", "canceled":
		return ledger.StepSkipped
	case "failed":
		return ledger.ItemFailed
	}
	return ledger.StepPending
}

// A teller keeps secrets out of what is shown of a trace.
type teller struct{ clean func(string) string }

// cut is the beginning of a text.
func (r teller) cut(s string) string { return ledger.Beginning(r.clean(s)) }

// line is a text in one line: what is cut first is not found.
func (r teller) line(s string, limit int) string { return ledger.OneLine(r.clean(s), limit) }

func said(doc map[string]any, name string) string {
	s, _ := doc[name].(string)
	return s
}

// display is a text as it is, and anything else as JSON.
func display(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	raw, err := canon.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw)
}

// duration is how long a step took in milliseconds, nil where it does not say.
func duration(step map[string]any) *int {
	begin, end := moment(step["started_at"]), moment(step["ended_at"])
	if begin.IsZero() || end.IsZero() {
		return nil
	}
	took := int(end.Sub(begin).Milliseconds())
	return &took
}
