package input

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// maxClipped is how many bytes of a text of a session are kept, and maxRead how many are
// looked through for secrets before it is cut.
const (
	maxClipped = 4000
	maxRead    = 64 << 10
)

// put gives a step a text, or its beginning: secrets are taken out before it is cut, and
// of what is cut it has the size.
func (s *session) put(step map[string]any, member, text string) {
	if len(text) <= maxClipped {
		step[member] = text
		return
	}
	kept := maxClipped
	clean := s.clean(strings.ToValidUTF8(text[:min(maxRead, len(text))], ""))
	if len(text) > maxRead {
		kept = min(kept, len(clean)/2) // half a secret may be at its end
	}
	step[member] = strings.ToValidUTF8(clean[:min(kept, len(clean))], "") + fmt.Sprintf("\n… cut here, of %d bytes", len(text))
	if member == "output" {
		step["output_bytes"] = float64(len(text))
	}
}

// texts are the texts of a list of blocks, or a text as it is.
func texts(doc any) string {
	if text, is := doc.(string); is {
		return text
	}
	if object, is := doc.(map[string]any); is {
		text := cmp.Or(said(object, "output"), said(object, "content"), said(object, "text"))
		if list, is := object["content"].([]any); is && text == "" {
			return texts(list)
		}
		return text
	}
	var out []string
	for _, block := range objects(doc) {
		if text := said(block, "text"); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}

// words are a command: of a list of a shell and its script the script, of another list its words.
func words(doc any) any {
	all, is := doc.([]any)
	if !is {
		return doc
	}
	var out []string
	for _, one := range all {
		word, _ := one.(string)
		out = append(out, word)
	}
	if len(out) == 3 && (out[1] == "-lc" || out[1] == "-c") {
		return out[2]
	}
	return strings.Join(out, " ")
}

var (
	exitLine = canon.Regexp(`(?m)^(?:Exit code:?|Process exited with code) (-?[0-9]{1,9})$`)
	exitMark = canon.Regexp(`<exited with exit code (-?[0-9]{1,9})>\s*$`)
)

// exitCode is the one that the first lines of an output tell of, nil if they tell of none.
func exitCode(text string) *int { return codeIn(exitLine(), text[:min(len(text), 400)]) }

// markedCode is the one that stands at the end of an output.
func markedCode(text string) *int { return codeIn(exitMark(), text[max(0, len(text)-100):]) }

func codeIn(rx *regexp.Regexp, text string) *int {
	found := rx.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	code, err := strconv.Atoi(found[1])
	if err != nil {
		return nil
	}
	return &code
}

// wholeCode is an exit code that a log has as a number, nil for anything else.
func wholeCode(v any) *int {
	if !isWhole(v) {
		return nil
	}
	code := int(v.(float64))
	return &code
}

// parsed is the object that a text is as JSON, nil if it is none.
func parsed(text string) map[string]any {
	doc, err := canon.Parse([]byte(text))
	if err != nil {
		return nil
	}
	object, _ := doc.(map[string]any)
	return object
}

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
