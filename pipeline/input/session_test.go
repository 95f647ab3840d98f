package input_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// claudeText is a line of Claude Code's in which the agent says something.
func claudeText(text string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"text","text":%q}]}}`+"\n", text)
}

// TestSessionCut: of a long text the beginning is kept, and its size.
func TestSessionCut(t *testing.T) {
	long := strings.Repeat("é", 500_000)
	log := claudeText(long) +
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"cat x"}},{"type":"tool_use","id":"u","name":"Write","input":{"file_path":"a","content":"` + long + `"}}]}}` + "\n" +
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"` + long + `"}]}}`
	steps, _, err := input.ReadTrace([]byte(log), plain)
	if err != nil || len(steps) != 3 {
		t.Fatal(len(steps), err)
	}
	for i, name := range []string{"content", "output", "input"} {
		step := steps[i].(map[string]any)
		text, _ := step[name].(string)
		if len(text) > 4096 || !strings.Contains(text, "\n… cut here, of 10000") {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		if size := step["output_bytes"]; (name == "output") != (size == 1_000_000.0) {
			t.Errorf("%s: output_bytes is %v", name, size)
		}
	}
	if items := recorded(t, steps, plain); !strings.Contains(items[1], `"output_bytes":1000000`) || strings.Contains(items[1], "artifact has more") {
		t.Errorf("the item is %s", items[1])
	}
	same(t, steps)
}

// TestT47TraceSecretsAtTheCut: a secret is taken out of a long text before it is cut: half
// of one is not recognised. It goes for what is behind the bytes that are looked through.
func TestT47TraceSecretsAtTheCut(t *testing.T) {
	finder, err := secret.New(nil)
	fatal(t, err)
	for i, sample := range teststand.Samples() {
		if i%4 > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		whole := sample.Text()
		for _, before := range []int{0, 3990 - len(whole)/2, 3999, 64<<10 - len(whole)/2} {
			text := strings.Repeat("x ", max(0, before)/2) + "\n" + whole + "\n" + strings.Repeat("y ", 40_000)
			steps, _, err := input.ReadTrace([]byte(claudeText(text)), finder.Text)
			if err != nil || len(steps) != 1 {
				t.Fatal(len(steps), err)
			}
			got := steps[0].(map[string]any)["content"].(string)
			if part := sample.Value[:min(len(sample.Value), 12)]; strings.Contains(got, part) && finder.Text(got) == got {
				t.Errorf("%d bytes before it: a part of the secret is left: …%q", before, got[max(0, len(got)-120):])
			}
		}
	}
}

// TestSessionLimits: as many steps as a trace may have, and not one more.
func TestSessionLimits(t *testing.T) {
	line := claudeText("x")
	if steps, format, err := input.ReadTrace([]byte(strings.Repeat(line, 10_000)), plain); err != nil || len(steps) != 10_000 || format != input.TraceClaude {
		t.Errorf("%d steps of %s: %v", len(steps), format, err)
	}
	record := `{"version":"0.1.0","id":"x","timestamp":"x","files":[{"path":"a","conversations":[` + strings.Repeat(`{"ranges":[{"start_line":1,"end_line":1}]},`, 10_000) + `{"ranges":[{"start_line":1,"end_line":1}]}]}]}`
	note := "a\n" + strings.Repeat("  k 1\n", 10_001) + "---\n" + `{"schema_version":"authorship/3.0.0"}`
	for name, log := range map[string]string{"lines": strings.Repeat(line, 10_001), "note": note, "a line that cannot be read": strings.Repeat(line, 10_000) + "{}\n{]\n" + line} {
		if _, _, err := input.ReadTrace([]byte(log), plain); err == nil || !saysOne(err, "at most 10000 steps") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if steps, _, err := input.ReadTrace([]byte(record), plain); err != nil || len(steps) != 1 || !strings.HasSuffix(input.Unread(steps), ": 1") {
		t.Errorf("a record of too many: %v, %v", steps, err)
	}
	if steps, _, err := input.ReadTrace([]byte(line+strings.Repeat("{]\n", 12)+line), plain); err != nil || len(steps) != 3 || !strings.HasSuffix(input.Unread(steps), ": 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 others") {
		t.Errorf("%v, %v", steps, err)
	}
	many := `{"version":"0.1.0","id":"x","timestamp":"x","files":[{"path":"a","conversations":[{"ranges":[` + strings.Repeat(`{"start_line":1,"end_line":1},`, 100_000) + `{"start_line":1,"end_line":1}]}]}]}`
	if steps, _, err := input.ReadTrace([]byte(many), plain); err != nil || len(steps) != 1 {
		t.Errorf("%d steps: %v", len(steps), err)
	}
}

// TestNotATrace: what begins with a step is one, whatever its further lines look like, and
// a log that breaks off in the middle of a line has that line only as its last.
func TestNotATrace(t *testing.T) {
	for text, want := range map[string]string{
		`{"tool":"x","message":{}}` + "\n" + claudeText("x"):                 "line 2: no step has the type",
		`{"tool":"x","version":"1.0.0","id":"x","timestamp":"x","files":[]}`: "",
		claudeText("x") + "{\n" + claudeText("x"):                            "could not be read: 2",
		claudeText("x") + `{"type":"user"`:                                   "",
		claudeText("x") + "text\n[]\n" + claudeText("x"):                     "",
		"[" + claudeText("x") + "] and more":                                 "could not be read: 2",
		"[1,2]":                                                              "line 1: not a JSON object", "[]": "line 1: not a JSON object", "text": "line 1: not a JSON object", "": "",
		"a\n  k 1\n---\n{}": "line 1: not a JSON object", "  k 1\n---\n" + `{"schema_version":"authorship/3.0.0"}`: "line 1: neither a file",
	} {
		steps, _, err := input.ReadTrace([]byte(text), plain)
		got := input.Unread(steps)
		if err != nil {
			got = err.Error()
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%.60q: %s, want %s", text, got, want)
		}
	}
}
