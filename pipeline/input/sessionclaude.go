package input

import (
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// isClaude reports whether an object is from a log of Claude Code: a line of a session
// (~/.claude/projects/*/*.jsonl) or a message of its SDK, of which `claude -p
// --output-format stream-json` writes one a line, and claude-code-action an array
// (claude-execution-output.json).
func isClaude(object map[string]any) bool {
	_, hasMessage := object["message"].(map[string]any)
	kind := said(object, "type")
	return hasMessage && (kind == "user" || kind == "assistant") ||
		kind == "system" && said(object, "subtype") == "init" && said(object, "session_id") != ""
}

// claude reads a message as the API has it, with blocks of text, thinking, tool_use and
// tool_result. What people typed is left out.
func (s *session) claude(line map[string]any) error {
	if cwd := said(line, "cwd"); cwd != "" {
		s.cwd = cwd
	}
	if said(line, "type") == "result" {
		s.denied(line["permission_denials"])
		return nil
	}
	message, _ := line["message"].(map[string]any)
	at := said(line, "timestamp")
	blocks, _ := message["content"].([]any)
	if text, is := message["content"].(string); is {
		blocks = []any{map[string]any{"type": "text", "text": text}}
	}
	own := said(line, "type") == "assistant"
	result, _ := line["toolUseResult"].(map[string]any)
	for _, block := range objects(blocks) {
		switch kind := said(block, "type"); {
		case own && kind == "text":
			s.say(stepMessage, "content", said(block, "text"))
		case own && kind == "thinking":
			s.say(stepReasoning, "summary", said(block, "thinking"))
		case own && kind == "tool_use":
			s.claudeCall(block, at)
		case !own && kind == "tool_result":
			s.claudeResult(block, at, result["interrupted"] == true)
		case !own && kind == "text" && strings.HasPrefix(said(block, "text"), interruption):
			s.cancel()
		}
	}
	return nil
}

// interruption begins what Claude Code writes for the person who stops it.
const interruption = "[Request interrupted by user"

// rejections begin the results of calls that somebody, or a rule, did not let happen.
var rejections = []string{interruption, "The user doesn't want to proceed with this tool use", "The user doesn't want to take this action right now"}

func (s *session) claudeCall(block map[string]any, at string) {
	name := said(block, "name")
	if asked, _ := block["input"].(map[string]any); name == "TodoWrite" {
		s.plan(asked["todos"], "content")
		return
	}
	s.call(said(block, "id"), name, block["input"], at)
}

func (s *session) claudeResult(block map[string]any, at string, interrupted bool) {
	text := texts(block["content"])
	o := outcome{output: text, at: at, status: ledger.ItemCompleted, code: new(int)}
	if failed, _ := block["is_error"].(bool); failed {
		o.status, o.code = ledger.ItemFailed, exitCode(text)
		for _, begin := range rejections {
			interrupted = interrupted || strings.HasPrefix(text, begin)
		}
	}
	if interrupted {
		o.status, o.code = ledger.ItemCancelled, nil
	}
	s.end(s.calls[said(block, "tool_use_id")], o)
}

// denied marks the calls that the session's end names as not permitted: they were never
// made, and their results say only that.
func (s *session) denied(doc any) {
	for _, denial := range objects(doc) {
		if step := s.calls[said(denial, "tool_use_id")]; step != nil && step["status"] != ledger.ItemCompleted {
			step["status"] = ledger.ItemCancelled
			if _, isCommand := step["exit_code"]; isCommand {
				step["exit_code"] = nil
			}
		}
	}
}
