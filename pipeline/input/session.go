package input

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// IsSession reports whether a trace is the log of a session that an agent's program keeps:
// Claude Code's or Codex's. Both are JSON Lines.
func IsSession(raw []byte) bool { return sessionOf(raw) != nil }

// A session turns the lines of a log into steps of a trace.
type session struct {
	read  func(s *session, line map[string]any)
	steps []any
	calls map[string]map[string]any // those that have no result yet, by their id
}

// sessionOf tells by the first lines whose log it is, nil for nobody's.
func sessionOf(raw []byte) *session {
	n := 0
	for line := range bytes.Lines(raw) {
		if n++; n > 20 {
			break
		}
		doc, _ := canon.Parse(line)
		object, _ := doc.(map[string]any)
		_, hasMessage := object["message"].(map[string]any)
		_, hasPayload := object["payload"].(map[string]any)
		switch kind := said(object, "type"); {
		case hasMessage && (kind == "user" || kind == "assistant"):
			return &session{read: (*session).claude, calls: map[string]map[string]any{}}
		case hasPayload && (kind == "session_meta" || kind == "response_item" || kind == "event_msg" || kind == "turn_context"):
			return &session{read: (*session).codex, calls: map[string]map[string]any{}}
		}
	}
	return nil
}

// all reads a whole log. Its last line may be cut off, as in a session that goes on.
func (s *session) all(raw []byte) ([]any, error) {
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		doc, err := canon.Parse(line)
		object, is := doc.(map[string]any)
		if (err != nil || !is) && !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		if err != nil || !is {
			return nil, &patch.Error{Line: n, Message: "not a JSON object"}
		}
		if s.read(s, object); len(s.steps) > maxSteps {
			return nil, &patch.Error{Line: n, Message: fmt.Sprintf("a trace has at most %d steps", maxSteps)}
		}
	}
	for _, step := range s.steps {
		if why := checkStep(step.(map[string]any)); why != "" {
			return nil, &patch.Error{Message: "the session: " + why}
		}
	}
	return s.steps, nil
}

// claude reads a line of Claude Code's (~/.claude/projects/*/*.jsonl): a message as the
// API has it, with blocks of text, thinking, tool_use and tool_result. What people typed
// is left out.
func (s *session) claude(line map[string]any) {
	message, _ := line["message"].(map[string]any)
	at := said(line, "timestamp")
	blocks, _ := message["content"].([]any)
	if text, is := message["content"].(string); is {
		blocks = []any{map[string]any{"type": "text", "text": text}}
	}
	own := said(line, "type") == "assistant"
	for _, b := range blocks {
		block, _ := b.(map[string]any)
		switch kind := said(block, "type"); {
		case own && kind == "text":
			s.say(stepMessage, "content", said(block, "text"))
		case own && kind == "thinking":
			s.say(stepReasoning, "summary", said(block, "thinking"))
		case own && kind == "tool_use":
			asked, _ := block["input"].(map[string]any)
			switch name := said(block, "name"); {
			case name == "TodoWrite":
				s.plan(asked["todos"], "content")
			case name == "Bash":
				s.call(said(block, "id"), name, asked["command"], at)
			default:
				s.call(said(block, "id"), name, block["input"], at)
			}
		case !own && kind == "tool_result":
			text := texts(block["content"])
			code, known := exitCode(text)
			if failed, _ := block["is_error"].(bool); !failed {
				code, known = 0, true
			}
			s.result(said(block, "tool_use_id"), text, at, code, known)
		}
	}
}

// codex reads a line of Codex's (~/.codex/sessions/**/rollout-*.jsonl): items of the
// Responses API. Events repeat them and are left out, as is what people typed.
func (s *session) codex(line map[string]any) {
	item, _ := line["payload"].(map[string]any)
	at := said(line, "timestamp")
	if said(line, "type") != "response_item" {
		return
	}
	id, name := said(item, "call_id"), said(item, "name")
	switch said(item, "type") {
	case "message":
		if said(item, "role") == "assistant" {
			s.say(stepMessage, "content", texts(item["content"]))
		}
	case "reasoning":
		s.say(stepReasoning, "summary", texts(item["summary"]))
	case "local_shell_call":
		action, _ := item["action"].(map[string]any)
		s.call(id, "shell", words(action["command"]), at)
	case "custom_tool_call":
		s.call(id, name, item["input"], at)
	case "function_call":
		var asked any = said(item, "arguments")
		if doc, err := canon.Parse([]byte(said(item, "arguments"))); err == nil {
			asked = doc
		}
		object, _ := asked.(map[string]any)
		switch {
		case name == "update_plan":
			s.plan(object["plan"], "step")
			return
		case object["command"] != nil:
			asked = words(object["command"])
		case object["cmd"] != nil:
			asked = words(object["cmd"])
		}
		s.call(id, name, asked, at)
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		text := texts(item["output"])
		code, known := exitCode(text)
		var inner map[string]any
		if doc, err := canon.Parse([]byte(text)); err == nil {
			inner, _ = doc.(map[string]any)
		}
		if meta, is := inner["metadata"].(map[string]any); is && isWhole(meta["exit_code"]) {
			code, known, text = int(meta["exit_code"].(float64)), true, said(inner, "output")
		}
		s.result(id, text, at, code, known)
	}
}

// say adds a step that is words alone, if there are any.
func (s *session) say(kind, member, text string) {
	if strings.TrimSpace(text) != "" {
		s.steps = append(s.steps, map[string]any{"type": kind, member: clipped(text)})
	}
}

// plan adds a list of things to do. title is the member that has the words of each.
func (s *session) plan(doc any, title string) {
	all, _ := doc.([]any)
	steps := []any{}
	for _, one := range all {
		todo, _ := one.(map[string]any)
		steps = append(steps, map[string]any{"title": said(todo, title), "status": said(todo, "status")})
	}
	if len(steps) > 0 {
		s.steps = append(s.steps, map[string]any{"type": stepPlan, "steps": steps})
	}
}

// commands are the tools whose calls are commands.
var commands = map[string]bool{"Bash": true, "shell": true, "shell_command": true, "exec_command": true, "local_shell": true}

// call adds a call of a tool. One of an MCP server has its name in the tool's.
func (s *session) call(id, name string, asked any, at string) {
	step := map[string]any{"tool": ledger.OneLine(cmp.Or(name, "unnamed"), 200), "input": asked}
	if server, tool, is := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__"); is && strings.HasPrefix(name, "mcp__") && server != "" && tool != "" {
		step["server"], step["tool"] = ledger.OneLine(server, 200), ledger.OneLine(tool, 200)
	}
	if text, is := asked.(string); is {
		step["input"] = clipped(text)
	} else if text := display(asked); len(text) > maxClipped {
		step["input"] = clipped(text)
	}
	if isMoment(at) {
		step["started_at"] = at
	}
	s.steps = append(s.steps, step)
	if id != "" {
		s.calls[id] = step
	}
}

// result adds what came of a call. A command's has an exit code where it is told.
func (s *session) result(id, text, at string, code int, known bool) {
	step := s.calls[id]
	if step == nil {
		return
	}
	delete(s.calls, id)
	step["output"] = clipped(text)
	if began := moment(step["started_at"]); isMoment(at) && !began.IsZero() && !moment(at).Before(began) {
		step["ended_at"] = at
	}
	if known && commands[said(step, "tool")] && step["server"] == nil {
		step["exit_code"] = float64(code)
	}
}

// texts are the texts of a list of blocks, or a text as it is.
func texts(doc any) string {
	if text, is := doc.(string); is {
		return text
	}
	if object, is := doc.(map[string]any); is {
		return cmp.Or(said(object, "output"), said(object, "content"), said(object, "text"))
	}
	all, _ := doc.([]any)
	var out []string
	for _, one := range all {
		block, _ := one.(map[string]any)
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

var exitLine = lazyregexp.New(`(?m)^(?:Exit code:?|Process exited with code) (-?[0-9]{1,9})$`)

// exitCode is the one that the first lines of an output tell of.
func exitCode(text string) (code int, known bool) {
	found := exitLine().FindStringSubmatch(text[:min(len(text), 400)])
	if found == nil {
		return 0, false
	}
	code, err := strconv.Atoi(found[1])
	return code, err == nil
}

// maxClipped is how many bytes of a text of a session are kept.
const maxClipped = 4 << 10

// clipped is the beginning of a text, and how much more there was.
func clipped(text string) string {
	if len(text) <= maxClipped {
		return text
	}
	return strings.ToValidUTF8(text[:maxClipped], "") + fmt.Sprintf("\n… %d bytes more", len(text)-maxClipped)
}
