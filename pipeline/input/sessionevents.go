package input

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// isEvent reports whether an object is an event of a session as Copilot's command line
// keeps them (~/.copilot/session-state/*/events.jsonl), and gh-aw for all of its engines
// (agent-session.jsonl in the artifact agent, aw_session.jsonl in usage).
func isEvent(object map[string]any) bool {
	_, hasData := object["data"].(map[string]any)
	room, _, dotted := strings.Cut(said(object, "type"), ".")
	return hasData && dotted && slices.Contains([]string{"session", "user", "assistant", "tool"}, room)
}

// event reads one. What people typed is left out.
func (s *session) event(line map[string]any) error {
	data, _ := line["data"].(map[string]any)
	at, id := said(line, "timestamp"), said(data, "toolCallId")
	switch said(line, "type") {
	case "session.start", "session.init":
		context, _ := data["context"].(map[string]any)
		for _, cwd := range []string{said(data, "cwd"), said(context, "cwd")} {
			if cwd != "" {
				s.cwd = cwd
			}
		}
	case "assistant.message":
		s.say(stepReasoning, "summary", said(data, "reasoningText"))
		s.say(stepMessage, "content", said(data, "content"))
	case "assistant.reasoning":
		s.say(stepReasoning, "summary", said(data, "content"))
	case "abort":
		s.cancel()
	case "tool.execution_start":
		s.eventCall(id, data, at)
	case "tool.execution_complete":
		step := s.calls[id]
		if step == nil && said(data, "toolName") != "" {
			step = s.eventCall(id, data, "")
		}
		s.end(step, eventOutcome(data, at))
	}
	return nil
}

func (s *session) eventCall(id string, data map[string]any, at string) map[string]any {
	asked := data["arguments"]
	if asked == nil {
		asked = data["input"]
	}
	name := said(data, "toolName")
	if server := said(data, "mcpServerName"); server != "" {
		if own := said(data, "mcpToolName"); own != "" {
			name = own
		}
		return s.callOn(server, id, name, asked, at)
	}
	return s.call(id, name, asked, at)
}

func eventOutcome(data map[string]any, at string) outcome {
	result := data["result"]
	if result == nil {
		result = data["output"]
	}
	object, _ := result.(map[string]any)
	structured, _ := object["structuredContent"].(map[string]any)
	failure, _ := data["error"].(map[string]any)
	o := outcome{output: texts(result), at: at, status: ledger.ItemCompleted}
	if o.output == "" {
		o.output = said(failure, "message")
	}
	if o.output == "" {
		o.output = display(result)
	}
	for _, code := range []*int{wholeCode(data["exitCode"]), wholeCode(object["exitCode"]), wholeCode(structured["exit_code"]), markedCode(o.output)} {
		if o.code == nil {
			o.code = code
		}
	}
	switch code := said(failure, "code"); {
	case code == "rejected" || code == "denied":
		o.status = ledger.ItemCancelled
	case data["success"] == false || data["error"] != nil:
		o.status = ledger.ItemFailed
	}
	return o
}

// isGateway reports whether an object is from a log of gh-aw's MCP gateway, of messages
// (mcp-logs/rpc-messages.jsonl) or of calls (mcp-logs/gateway.jsonl).
func isGateway(object map[string]any) bool {
	_, hasPayload := object["payload"].(map[string]any)
	return hasPayload && said(object, "server_id") != "" && messageKind(object) != "" || isGatewayCall(object)
}

// messageKind is "request" or "response" of a message, "" of anything else.
func messageKind(object map[string]any) string {
	for _, word := range []string{said(object, "type"), said(object, "event")} { // the second since rpc-message/v2
		switch word {
		case "REQUEST", "rpc_request":
			return "request"
		case "RESPONSE", "rpc_response":
			return "response"
		}
	}
	return ""
}

func isGatewayCall(object map[string]any) bool {
	kinds := []string{"tool_call", "request", "rpc_call"}
	return slices.Contains(kinds, said(object, "event")) && said(object, "server_name") != "" && said(object, "tool_name") != ""
}

// gateway reads a message or a call. The gateway may log a message on both of its sides.
func (s *session) gateway(line map[string]any) error {
	at := said(line, "timestamp")
	if isGatewayCall(line) {
		step := s.callOn(said(line, "server_name"), "", said(line, "tool_name"), nil, "")
		o := outcome{output: said(line, "error"), status: ledger.ItemCompleted}
		if said(line, "status") == "error" || o.output != "" {
			o.status = ledger.ItemFailed
		}
		if s.end(step, o); isMoment(at) {
			step["ended_at"] = at
		}
		return nil
	}
	payload, _ := line["payload"].(map[string]any)
	server := said(line, "server_id")
	id := display([]any{server, payload["id"]})
	switch messageKind(line) {
	case "request":
		asked, _ := payload["params"].(map[string]any)
		before, name := s.calls[id], said(asked, "name")
		if said(payload, "method") == "tools/call" && (before == nil || before["status"] != ledger.ItemInProgress || before["tool"] != s.name(name)) {
			s.callOn(server, id, name, asked["arguments"], at)
		}
	case "response":
		o := outcome{at: at}
		if failure, is := payload["error"].(map[string]any); is {
			o.output, o.status = said(failure, "message"), ledger.ItemFailed
		} else {
			o.output, o.status = mcpResult(payload["result"])
		}
		s.end(s.calls[id], o)
	}
	return nil
}
