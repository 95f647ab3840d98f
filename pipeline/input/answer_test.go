package input_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
)

// quoted is a text as a JSON string.
func quoted(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(text)
	fatal(t, err)
	return string(raw)
}

// The change of these tests, as agents write it.
const (
	ofCodex = "*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n*** End Patch"
	ofDiff  = "I did it:\n\n```diff\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n```\n\nAnything else?"
	ofBlock = "f\n<<<<<<< SEARCH\nb\n=======\nB\n>>>>>>> REPLACE\n"
	ofEdits = `[{"path": "f", "old_text": "b", "new_text": "B"}]`
)

// execution is what claude-code-action writes of a session: messages, and how it ended.
func execution(result string) string {
	return `[
  {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Edit"]},
  {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "Edit", "input": {"file_path": "g", "old_string": "x", "new_string": "y"}}]}},
  {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "done"}]}},
  {"type": "result", "num_turns": 2, "total_cost_usd": 0.0123, ` + result + `}
]`
}

// TestAnswers: the change in the last message of an agent's action, in an object of a form
// that the workflow's author chose, and in the messages of a session.
func TestAnswers(t *testing.T) {
	ok := `"subtype": "success", "is_error": false, `
	for _, c := range []struct {
		name, from, text, err, format string
	}{
		{"last message", "codex-action", ofCodex, "", ""},
		{"last message in a chat", "codex-action", ofDiff, "", ""},
		{"last message in blocks", "claude-code-action", ofBlock, "", ""},
		{"a list of edits", "codex-action", ofEdits, "", ""},
		{"output schema: edits", "codex-action", `{"edits": ` + ofEdits + `}`, "", ""},
		{"output schema: one call", "codex-action", `{"path": "f", "edits": [{"old_text": "b", "new_text": "B"}]}`, "", ""},
		{"output schema: a patch", "codex-action", `{"summary": "I did it", "risk": 0.2, "patch": ` + quoted(t, ofCodex) + `, "files": ["f"]}`, "", ""},
		{"structured output: edits and more", "claude-code-action", `{"summary": "S", "changes": ` + ofEdits + `, "ok": true, "none": null}`, "", ""},
		{"structured output: a fenced diff", "claude-code-action", `{"answer": ` + quoted(t, ofDiff) + `}`, "", ""},
		{"session", "claude-code-action", execution(ok + `"result": ` + quoted(t, ofDiff)), "", ""},
		{"session, found out", "auto", execution(ok + `"result": ` + quoted(t, ofCodex)), "", "claude-code-action"},
		{"session with structured output", "claude-code-action", execution(ok + `"result": "done", "structured_output": {"edits": ` + ofEdits + `}`), "", ""},
		{"last message, found out", "auto", ofDiff, "", "unified"},

		{"no change", "codex-action", "I changed f in place.", "no format that is known", ""},
		{"nothing", "codex-action", "", "no format that is known", ""},
		{"two changes", "codex-action", ofDiff + ofDiff, "2 fenced blocks hold a change", ""},
		{"no member", "codex-action", `{"summary": "S"}`, "no member of the object is a change", ""},
		{"two members", "claude-code-action", `{"a": ` + quoted(t, ofCodex) + `, "b\u001b": ` + ofEdits + `}`, `several members of the object hold a change: "a", "b`, ""},
		{"a member's member", "codex-action", `{"a": {"b": ` + quoted(t, ofCodex) + `}}`, "no member", ""},
		{"not JSON", "codex-action", `{"a": ` + quoted(t, ofCodex), "invalid JSON at byte", ""},
		{"a number", "codex-action", `7`, "it is not a JSON object", ""},
		{"edits in place alone", "claude-code-action", execution(ok + `"result": "I changed g."`), "no format that is known", ""},
		{"session that failed", "claude-code-action", execution(`"subtype": "error_max_turns", "is_error": true`), `its result is "error_max_turns"`, ""},
		{"session with an error", "claude-code-action", execution(`"subtype": "success", "is_error": true, "result": ` + quoted(t, ofDiff)), "did not succeed", ""},
		{"session that does not tell", "claude-code-action", execution(`"subtype": "success", "result": ` + quoted(t, ofDiff)), "did not succeed", ""},
		{"session without a result", "claude-code-action", execution(ok + `"result": 7`), "the session has no result", ""},
		{"session that goes on", "auto", `[{"type": "system"}, {"type": "assistant"}]`, "edit 1: ", ""},
		{"deep", "codex-action", strings.Repeat(`{"a":`, 1<<20), "nested deeper", ""},
		{"deep, and whole", "claude-code-action", strings.Repeat(`[`, 200_000) + strings.Repeat(`]`, 200_000), "nested deeper", ""},
	} {
		in, err := input.From(c.from, []byte(c.text), "", false, "")
		var got map[string]string
		if err == nil {
			got, err = after(map[string]string{"f": "a\nb\n", "g": "x\n"}, in)
		}
		format := c.format
		if format == "" {
			format = c.from
		}
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%s: %v, want %q", c.name, err, c.err)
			}
		case err != nil || got["f"] != "a\nB\n" || got["g"] != "x\n" || in.Format != format:
			t.Errorf("%s: %q, %v, %q", c.name, got, err, in.Format)
		}
	}
	in, err := input.From("claude-code-action", []byte(execution(ok+`"result": `+quoted(t, ofCodex))), "", false, "")
	if err != nil || string(in.Raw) != ofCodex {
		t.Errorf("%q, %v", in.Raw, err)
	}
}
