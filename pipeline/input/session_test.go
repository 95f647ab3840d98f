package input_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
)

// TestSessions: the logs that agents' programs keep become steps: what was called and
// what came of it, what was planned and said; nothing of what people typed.
func TestSessions(t *testing.T) {
	for _, c := range []struct {
		name string
		log  []string
		want []string
	}{
		{"Claude Code", []string{
			`{"type":"permission-mode","permissionMode":"default","sessionId":"s"}`,
			`{"type":"user","uuid":"u1","timestamp":"2026-11-24T10:00:00.000Z","sessionId":"s","cwd":"/home/x","message":{"role":"user","content":"please, password hunter2"}}`,
			`{"type":"assistant","uuid":"a1","timestamp":"2026-11-24T10:00:01.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"go test ./...","description":"Test"}}]}}`,
			`{"type":"user","timestamp":"2026-11-24T10:00:03.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"Exit code 2\nFAIL","is_error":true}]}}`,
			`{"type":"assistant","timestamp":"2026-11-24T10:00:04.000Z","message":{"content":[{"type":"tool_use","id":"t2","name":"mcp__docs__search","input":{"query":"x"}},{"type":"tool_use","id":"t3","name":"TodoWrite","input":{"todos":[{"content":"mend it","status":"in_progress"}]}},{"type":"tool_use","id":"t4","name":"Bash","input":{"command":"ls"}}]}}`,
			`{"type":"user","timestamp":"2026-11-24T10:00:02.000Z","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"one"},{"type":"image"},{"type":"text","text":"two"}]},{"type":"tool_result","tool_use_id":"t4","content":"a.go"},{"type":"tool_result","tool_use_id":"nobody","content":"?"}]}}`,
			`{"type":"file-history-snapshot","snapshot":{}}`,
			`{"type":"assistant","message":{"content":[{"type":"text","text":"cut of`,
		}, []string{
			`{"summary":"hm","type":"reasoning"}`,
			`{"content":"I look.","type":"message"}`,
			`{"ended_at":"2026-11-24T10:00:03.000Z","exit_code":2,"input":"go test ./...","output":"Exit code 2\nFAIL","started_at":"2026-11-24T10:00:01.000Z","tool":"Bash"}`,
			`{"input":{"query":"x"},"output":"one\ntwo","server":"docs","started_at":"2026-11-24T10:00:04.000Z","tool":"search"}`,
			`{"steps":[{"status":"in_progress","title":"mend it"}],"type":"plan"}`,
			`{"exit_code":0,"input":"ls","output":"a.go","started_at":"2026-11-24T10:00:04.000Z","tool":"Bash"}`,
		}},
		{"Codex", []string{
			`{"timestamp":"2026-11-24T10:00:00Z","type":"session_meta","payload":{"id":"s","cwd":"/home/x"}}`,
			`{"timestamp":"2026-11-24T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"please"}]}}`,
			`{"timestamp":"2026-11-24T10:00:01Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}}`,
			`{"timestamp":"2026-11-24T10:00:01Z","type":"event_msg","payload":{"type":"agent_message","message":"I look."}}`,
			`{"timestamp":"2026-11-24T10:00:01Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]}}`,
			`{"timestamp":"2026-11-24T10:00:02Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"ls\"]}","call_id":"c1"}}`,
			`{"timestamp":"2026-11-24T10:00:03Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"a.go\\n\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.1}}"}}`,
			`{"timestamp":"2026-11-24T10:00:04Z","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch","call_id":"c2"}}`,
			`{"timestamp":"2026-11-24T10:00:05Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c2","output":"Success"}}`,
			`{"timestamp":"2026-11-24T10:00:06Z","type":"response_item","payload":{"type":"function_call","name":"update_plan","arguments":"{\"plan\":[{\"step\":\"mend it\",\"status\":\"completed\"}]}","call_id":"c3"}}`,
			`{"timestamp":"2026-11-24T10:00:07Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"true\"}","call_id":"c4"}}`,
			`{"timestamp":"2026-11-24T10:00:08Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c4","output":"Chunk ID: 1\nProcess exited with code 0\nOutput:\n"}}`,
		}, []string{
			`{"summary":"hm","type":"reasoning"}`,
			`{"content":"I look.","type":"message"}`,
			`{"ended_at":"2026-11-24T10:00:03Z","exit_code":1,"input":"ls","output":"a.go\n","started_at":"2026-11-24T10:00:02Z","tool":"shell"}`,
			`{"ended_at":"2026-11-24T10:00:05Z","input":"*** Begin Patch","output":"Success","started_at":"2026-11-24T10:00:04Z","tool":"apply_patch"}`,
			`{"steps":[{"status":"completed","title":"mend it"}],"type":"plan"}`,
			`{"ended_at":"2026-11-24T10:00:08Z","exit_code":0,"input":"true","output":"Chunk ID: 1\nProcess exited with code 0\nOutput:\n","started_at":"2026-11-24T10:00:07Z","tool":"exec_command"}`,
		}},
	} {
		raw := []byte(strings.Join(c.log, "\n"))
		if !input.IsSession(raw) {
			t.Errorf("%s: is no session", c.name)
		}
		steps, err := input.ReadTrace(raw)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := input.WriteTrace(steps)
		if want := strings.Join(c.want, "\n") + "\n"; err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, want)
		}
		if again, err := input.ReadTrace(got); err != nil || len(again) != len(steps) {
			t.Errorf("%s, again: %v", c.name, err)
		}
		if _, err := input.ReadTrace([]byte(c.log[1] + "\n{\n" + c.log[1])); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s, with a broken line: %v", c.name, err)
		}
	}
	long := `{"type":"assistant","message":{"content":[{"type":"text","text":"` + strings.Repeat("é", 5000) + `"}]}}`
	if steps, err := input.ReadTrace([]byte(long)); err != nil || len(steps) != 1 {
		t.Fatal(steps, err)
	} else if text := steps[0].(map[string]any)["content"].(string); len(text) > 4200 || !strings.HasSuffix(text, "\n… 5904 bytes more") {
		t.Errorf("%d bytes, %q", len(text), text[4000:])
	}
	for _, own := range []string{`{"tool":"x","message":{}}`, `{"type":"message","content":"user"}`, ""} {
		if input.IsSession([]byte(own)) {
			t.Errorf("a session: %s", own)
		}
	}
}

func FuzzSession(f *testing.F) {
	f.Add(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"x"}}]}}` + "\n" + `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}`)
	f.Add(`{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c"}}` + "\n" + `{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"x"}}`)
	f.Fuzz(func(t *testing.T, log string) {
		steps, err := input.ReadTrace([]byte(log))
		if err != nil {
			return
		}
		written, err := input.WriteTrace(steps)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := input.ReadTrace(written); err != nil || len(again) != len(steps) {
			t.Errorf("%d steps, again %d: %v\n%s", len(steps), len(again), err, written)
		}
	})
}
