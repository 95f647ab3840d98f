package input

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// StoreTrace stores a trace as an artifact, and returns its path.
func (in Change) StoreTrace(s *writing.Stage) string {
	doc := map[string]any{"schema": "countersign/trace/1", "calls": in.Trace}
	if in.TraceFormat != "" {
		doc["format"] = in.TraceFormat
	}
	return s.Artifact(ledger.KindTrace, doc)
}

// RecordTrace records a trace: whole as an artifact, its first steps as items of
// the turn, each marked as the proposer's word. clean takes the secrets out of a
// text.
func (in Change) RecordTrace(s *writing.Stage, clean func(string) string) {
	r := teller{clean}
	file := in.StoreTrace(s)
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
			Source:   ledger.SourceTrace, Step: i + 1, Steps: len(in.Trace), Paths: r.paths(step["paths"]),
			StartedAt: said(step, "started_at"), EndedAt: said(step, "ended_at"),
		}
		if size, cut := step["output_bytes"].(float64); cut && size > 0 {
			item.Metadata.OutputBytes = int(size)
		}
		if kind := stepType(step); kind == stepClaim || kind == stepUnread {
			item.Metadata.Source = ledger.SourceClaimed
		}
		s.Event(&ledger.TraceItem{TransactionID: s.Log.Transaction().TransactionID, TurnID: "turn_1", Item: item})
	}
}

// stepItem is a step as it is shown. A tool call with an exit code, be it null, is a
// command.
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
	case stepClaim:
		content := r.claim(step)
		return ledger.TraceStep{Type: "agentMessage", Content: &content}
	case stepUnread:
		content := r.line(Unread([]any{step}), 500)
		return ledger.TraceStep{Type: "agentMessage", Content: &content}
	}
	value, isCommand := step["exit_code"]
	if !isCommand {
		server, tool := r.line(said(step, "server"), 200), r.line(said(step, "tool"), 200)
		return ledger.TraceStep{Type: "mcpToolCall", Status: callStatus(step), Server: &server, Tool: &tool}
	}
	command := r.line(cmp.Or(display(step["input"]), said(step, "tool")), 500)
	item := ledger.TraceStep{
		Type: ledger.CommandExecution, Status: cmp.Or(callStatus(step), ledger.ItemInProgress), Command: &command,
		CWD: r.line(said(step, "cwd"), 500), AggregatedOutput: r.cut(display(step["output"])), DurationMS: duration(step),
	}
	if code, known := value.(float64); known {
		exit := int(code)
		item.ExitCode = &exit
		switch {
		case exit == 0:
			item.Status = ledger.ItemCompleted
		case item.Status != ledger.ItemCancelled:
			item.Status = ledger.ItemFailed
		}
	}
	return item
}

// callStatus is the status of a tool call in its item, "" where the step has none that is
// known.
func callStatus(step map[string]any) string {
	switch status := stepStatus(said(step, "status")); status {
	case ledger.StepSkipped:
		return ledger.ItemCancelled
	case ledger.StepPending:
		return ""
	default:
		return status
	}
}

// claim puts a claim in words: the file, its lines, and who is said to have written them.
func (r teller) claim(step map[string]any) string {
	by := []string{cmp.Or(r.line(said(step, "contributor"), 40), "unknown")}
	for _, name := range []string{"model", "agent"} {
		if text := r.line(said(step, name), 250); text != "" {
			by = append(by, text)
		}
	}
	where := r.line(said(step, "path"), 500)
	switch lines := r.line(said(step, "lines"), 500); {
	case strings.ContainsAny(lines, "-,"):
		where += ", lines " + lines
	case lines != "":
		where += ", line " + lines
	}
	return where + ": " + strings.Join(by, ", ")
}

// maxPaths is how many of the files that a call changed an item names.
const maxPaths = 20

func (r teller) paths(v any) []string {
	paths, _ := v.([]any)
	var out []string
	for _, one := range paths[:min(maxPaths, len(paths))] {
		if name, _ := one.(string); name != "" {
			out = append(out, r.line(name, 500))
		}
	}
	return out
}

// maxPlan is how many steps of a plan an item holds.
const maxPlan = 100

func (r teller) planSteps(v any) []ledger.Step {
	steps := objects(v)
	var out []ledger.Step
	for i, doc := range steps[:min(maxPlan, len(steps))] {
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
func (r teller) cut(s string) string { return writing.Beginning(r.clean(s)) }

// line is a text in one line: what is cut first is not found.
func (r teller) line(s string, limit int) string { return ledger.OneLine(r.clean(s), limit) }

func said(doc map[string]any, name string) string {
	s, _ := doc[name].(string)
	return s
}

// objects are the objects of a list, nil for each element that is none.
func objects(list any) []map[string]any {
	all, _ := list.([]any)
	out := make([]map[string]any, len(all))
	for i, one := range all {
		out[i], _ = one.(map[string]any)
	}
	return out
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
