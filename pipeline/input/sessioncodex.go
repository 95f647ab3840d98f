package input

import (
	"cmp"
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// isCodex reports whether an object is a line of a rollout, as Codex keeps of each session
// (~/.codex/sessions/**/rollout-*.jsonl).
func isCodex(object map[string]any) bool {
	_, hasPayload := object["payload"].(map[string]any)
	kinds := []string{"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
	return hasPayload && slices.Contains(kinds, said(object, "type"))
}

// codex reads a line: items of the Responses API, and of the events those that say more of
// a call than its item. What people typed, and what a compaction repeats, is left out.
func (s *session) codex(line map[string]any) error {
	item, _ := line["payload"].(map[string]any)
	switch said(line, "type") {
	case "session_meta", "turn_context":
		if cwd := said(item, "cwd"); cwd != "" {
			s.cwd = cwd
		}
	case "response_item":
		s.codexItem(item, said(line, "timestamp"))
	case "event_msg":
		s.codexEvent(item, said(line, "timestamp"))
	}
	return nil
}

func (s *session) codexItem(item map[string]any, at string) {
	id, name := said(item, "call_id"), said(item, "name")
	switch said(item, "type") {
	case "message":
		if said(item, "role") == "assistant" {
			s.sayOnce(texts(item["content"]))
		}
	case "reasoning":
		s.say(stepReasoning, "summary", texts(item["summary"]))
	case "local_shell_call":
		action, _ := item["action"].(map[string]any)
		s.call(id, "shell", words(action["command"]), at)
	case "web_search_call":
		action, _ := item["action"].(map[string]any)
		var asked any
		if action != nil {
			asked = action
		}
		s.call("", "web_search", asked, at)["status"] = cmp.Or(codexStatus(said(item, "status")), ledger.ItemInProgress)
	case "custom_tool_call":
		s.patched(s.call(id, name, item["input"], at))
	case "function_call":
		if object := parsed(said(item, "arguments")); name == "update_plan" {
			s.plan(object["plan"], "step")
		} else {
			s.patched(s.call(id, name, codexInput(name, item, object), at))
		}
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		s.codexOutput(id, item["output"], at)
	}
}

// codexInput is what a function was asked for: of a command its words.
func codexInput(name string, item, object map[string]any) any {
	switch {
	case object == nil:
		return item["arguments"]
	case commands[name] && object["command"] != nil:
		return words(object["command"])
	case commands[name] && object["cmd"] != nil:
		return words(object["cmd"])
	}
	return object
}

var patchedPath = canon.Regexp(`(?m)^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$`)

// patched adds the files that a call of apply_patch names.
func (s *session) patched(step map[string]any) {
	input := said(step, "input")
	if object, is := step["input"].(map[string]any); is {
		input = said(object, "input")
	}
	if step["tool"] != "apply_patch" {
		return
	}
	var paths []any
	for _, found := range patchedPath().FindAllStringSubmatch(input, -1) {
		paths = append(paths, s.below(found[1]))
	}
	if paths != nil {
		step["paths"] = paths
	}
}

// running is what the result of a command says that goes on, stopped what begins that of
// a call which a person broke off or did not let happen.
var (
	running = canon.Regexp(`(?m)^Process running with session ID `)
	stopped = canon.Regexp(`^(?:aborted$|(?:Wall time: [0-9.]+ seconds\n)?aborted by user|(?:exec command|patch) rejected by user)`)
)

func (s *session) codexOutput(id string, output any, at string) {
	text := texts(output)
	o := outcome{output: text, at: at, status: ledger.ItemCompleted, code: exitCode(text)}
	if inner := parsed(text); inner != nil {
		meta, _ := inner["metadata"].(map[string]any)
		if code := wholeCode(meta["exit_code"]); code != nil {
			o.code, o.output = code, said(inner, "output")
			if *code != 0 {
				o.status = ledger.ItemFailed
			}
		}
	}
	switch begin := text[:min(len(text), 400)]; {
	case o.code != nil:
	case stopped().MatchString(begin):
		o.status = ledger.ItemCancelled
	case running().MatchString(begin):
		o.status = ""
	}
	if object, is := output.(map[string]any); is && object["success"] == false && o.status == ledger.ItemCompleted {
		o.status = ledger.ItemFailed
	}
	s.end(s.calls[id], o)
}

// codexEvent reads an event: how a command, a patch or a call of an MCP server ended, and
// that a turn was broken off. The calls are known already, but for those without an item.
func (s *session) codexEvent(event map[string]any, at string) {
	id := said(event, "call_id")
	step := s.calls[id]
	o := outcome{at: at, status: codexStatus(said(event, "status"))}
	switch said(event, "type") {
	case "task_started", "turn_started":
		clear(s.said)
	case "agent_message":
		s.sayOnce(said(event, "message"))
	case "turn_aborted":
		s.cancel()
	case "exec_command_end":
		if said(event, "source") == "user_shell" {
			return // a person ran it
		}
		if step == nil {
			step = s.call(id, "shell", words(event["command"]), "")
		}
		o.output, o.code = said(event, "aggregated_output"), wholeCode(event["exit_code"])
		s.end(step, o)
	case "patch_apply_end":
		if step == nil {
			step = s.call(id, "apply_patch", nil, "")
		}
		if step["paths"] == nil {
			s.changed(step, event["changes"])
		}
		o.output = said(event, "stdout") + said(event, "stderr")
		if success, told := event["success"].(bool); told && o.status != ledger.ItemCancelled {
			o.status = map[bool]string{true: ledger.ItemCompleted, false: ledger.ItemFailed}[success]
		}
		s.end(step, o)
	case "mcp_tool_call_end":
		asked, _ := event["invocation"].(map[string]any)
		if step == nil {
			step = s.call(id, said(asked, "tool"), asked["arguments"], "")
		}
		s.on(step, said(asked, "server"), said(asked, "tool"))
		o.output, o.status = mcpResult(event["result"])
		s.end(step, o)
	}
}

// mcpResult is what a call of an MCP server came to, as Rust writes a result: {"Ok": …} or
// {"Err": "…"}.
func mcpResult(doc any) (output, status string) {
	result, _ := doc.(map[string]any)
	if failure, failed := result["Err"]; failed {
		return display(failure), ledger.ItemFailed
	}
	if inner, is := result["Ok"].(map[string]any); is {
		result = inner
	}
	if result["isError"] == true || result["is_error"] == true {
		return texts(result["content"]), ledger.ItemFailed
	}
	return texts(result["content"]), ledger.ItemCompleted
}

// changed adds the files that a patch changed: a table by path, or a list of objects.
func (s *session) changed(step map[string]any, doc any) {
	var paths []any
	if table, is := doc.(map[string]any); is {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			paths = append(paths, s.below(name))
		}
	}
	for _, change := range objects(doc) {
		if name := said(change, "path"); name != "" {
			paths = append(paths, s.below(name))
		}
	}
	if paths != nil {
		step["paths"] = paths
	}
}

// sayOnce adds what the agent said, unless it said the same in this turn: events repeat
// messages.
func (s *session) sayOnce(text string) {
	if !s.said[text] {
		s.said[text] = true
		s.say(stepMessage, "content", text)
	}
}

// codexStatus is the status of an item for a word of Codex's, "" for one that is not known.
func codexStatus(word string) string {
	return map[string]string{
		"in_progress": ledger.ItemInProgress, "completed": ledger.ItemCompleted, "failed": ledger.ItemFailed, "declined": ledger.ItemCancelled,
	}[word]
}
