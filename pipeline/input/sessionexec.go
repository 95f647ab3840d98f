package input

import (
	"cmp"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// isCodexExec reports whether an object is a line of what `codex exec --json` prints.
func isCodexExec(object map[string]any) bool {
	kind := said(object, "type")
	_, hasItem := object["item"].(map[string]any)
	return kind == "thread.started" && said(object, "thread_id") != "" || hasItem && strings.HasPrefix(kind, "item.")
}

// codexExec reads a line. An item is told when it begins, when it changes and when it
// ends, each time as a whole.
func (s *session) codexExec(line map[string]any) error {
	item, _ := line["item"].(map[string]any)
	if !strings.HasPrefix(said(line, "type"), "item.") {
		return nil
	}
	kind := cmp.Or(said(item, "type"), said(item, "item_type")) // the second before version 0.45
	id := kind + " " + said(item, "id")
	o := outcome{status: codexStatus(said(item, "status")), output: display(item["aggregated_output"]), code: wholeCode(item["exit_code"])}
	step := s.calls[id]
	begin := func(server, tool string, asked any) {
		if step == nil {
			step = s.callOn(server, id, tool, asked, "")
		}
	}
	switch kind {
	case "agent_message", "assistant_message":
		s.retell(id, map[string]any{"type": stepMessage}, "content", said(item, "text"))
		return nil
	case "reasoning":
		s.retell(id, map[string]any{"type": stepReasoning}, "summary", said(item, "text"))
		return nil
	case "todo_list":
		s.replan(id, item["items"])
		return nil
	case "command_execution":
		begin("", "shell", item["command"])
	case "file_change":
		begin("", "apply_patch", nil)
		s.changed(step, item["changes"])
	case "mcp_tool_call":
		begin(said(item, "server"), said(item, "tool"), item["arguments"])
		o.output, _ = mcpResult(item["result"])
		if failure, is := item["error"].(map[string]any); is {
			o.output = said(failure, "message")
		}
	case "web_search":
		begin("", "web_search", item["query"])
		o.status = ledger.ItemCompleted
	case "collab_tool_call":
		begin("", said(item, "tool"), item["prompt"])
	default:
		return nil
	}
	if said(line, "type") == "item.completed" && o.status != ledger.ItemInProgress {
		s.end(step, o)
	}
	return nil
}

// retell adds what the agent said, or replaces what it had said of it before.
func (s *session) retell(id string, step map[string]any, member, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if s.calls[id] == nil {
		s.calls[id] = step
		s.steps = append(s.steps, step)
	}
	s.put(s.calls[id], member, text)
}

// replan adds a list of things to do, or replaces what it was before.
func (s *session) replan(id string, items any) {
	before, n := s.calls[id], len(s.steps)
	if s.plan(items, "text"); len(s.steps) == n {
		return
	}
	step := s.steps[n].(map[string]any)
	if s.calls[id] = step; before != nil {
		s.steps = s.steps[:n]
		before["steps"] = step["steps"]
		s.calls[id] = before
	}
}
