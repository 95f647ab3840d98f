package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
)

// T93 Agents as their makers publish them (COUNTERSIGN_AGENTS is the directory of their programs) make a change, which is proposed,
// approved, applied and audited. Their model is a server here. Without countersign agent, what init --agents has written denies the
// same change, and the model is told why or has no tool for it.
func TestAgentsOfOthers(t *testing.T) {
	t.Parallel()
	programs := agentsOfOthers(t)
	for _, c := range []struct {
		args  []string
		alone []string // more arguments without countersign agent
		told  string   // what the model is told there
		trace string   // what its trace is read as
	}{
		{[]string{"claude", "-p", "make a file", "--permission-mode", "acceptEdits"}, nil, "A person approves each change", "claude-code"},
		{[]string{"codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "make a file"}, []string{"--dangerously-bypass-hook-trust"},
			"A person approves each change", "codex"}, // its own sandbox does not start in ours
		{[]string{"opencode", "run", "-m", "anthropic/claude-sonnet-4-5", "make a file"}, nil, "", ""},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(filepath.Join(programs, c.args[0])); err != nil {
				t.Skip(err)
			}
			s := agentRepo(t)
			var said strings.Builder
			env := append(agentsModel(t, s.dir, s.repo, &said), "PATH="+filepath.Join(s.dir, "tools")+":"+programs+":"+os.Getenv("PATH"))
			s.run(0, "init", "--agents")
			s.commit()
			alone := exec.Command(filepath.Join(programs, c.args[0]), append(c.args[1:len(c.args):len(c.args)], c.alone...)...)
			alone.Dir, alone.Env = s.repo, append(s.command("status").Env, env...)
			alone.Env = append(alone.Env, "HOME="+s.dir, "PWD="+s.repo)
			out, err := alone.CombinedOutput()
			if _, made := os.Stat(filepath.Join(s.repo, "made.txt")); made == nil || !strings.Contains(said.String(), c.told) {
				t.Errorf("without countersign agent: %v\n%s\nthe model heard\n%s", err, out, said.String())
			}
			cmd := s.agent(append([]string{"--detach", "--"}, c.args...)...)
			cmd.Env = append(cmd.Env, env...)
			said.Reset()
			s.runCmd(console.ExitPending, cmd)
			if !offered.MatchString(said.String()) {
				t.Error("the model was offered no propose_worktree")
			}
			id := s.newest()
			if trace := s.traceOf(id); (trace != "") != (c.trace != "") || !strings.Contains(trace, c.trace) || !strings.Contains(trace, "made by an agent") && c.trace != "" {
				t.Errorf("the trace is %q", trace)
			}
			s.run(0, "approve", id, "--reason", "read it")
			s.run(0, "run", id)
			if got := s.read("made.txt"); got != "made by an agent\n" {
				t.Errorf("made.txt is %q", got)
			}
			s.run(0, "audit")
		})
	}
}

// agentsOfOthers is the directory of their programs.
func agentsOfOthers(t *testing.T) string {
	t.Helper()
	programs := os.Getenv("COUNTERSIGN_AGENTS")
	if programs == "" {
		t.Skip("COUNTERSIGN_AGENTS names no agents")
	}
	return programs
}

// agentsModel starts a model that notes what it hears, and returns the variables by which agents find it. Those that have them in
// files find these in a home, in which a repository is trusted.
func agentsModel(t *testing.T, home, trusted string, said *strings.Builder) []string {
	t.Helper()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		said.Write(raw)
		answerAgent(w, r.URL.Path, raw)
	}))
	t.Cleanup(model.Close)
	for name, text := range map[string]string{
		".codex/config.toml": fmt.Sprintf("model = \"m\"\nmodel_provider = \"here\"\n[model_providers.here]\nname = \"here\"\n"+
			"base_url = %q\nenv_key = \"OPENAI_API_KEY\"\n[projects.%q]\ntrust_level = \"trusted\"\n", model.URL+"/v1", trusted),
		".config/opencode/opencode.json": fmt.Sprintf(`{"provider": {"anthropic": {"options": {"baseURL": %q}}}}`, model.URL+"/v1"),
	} {
		file := filepath.Join(home, name)
		check(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)))
	}
	return []string{"ANTHROPIC_BASE_URL=" + model.URL, "ANTHROPIC_API_KEY=none", "OPENAI_API_KEY=none"}
}

// offered is the tool of a scratch tree's server, as agents name it for their models.
var offered = regexp.MustCompile(`"name":"(mcp__countersign__|countersign_)?propose_worktree"`)

// workingDirectory is where Claude Code says that it works.
var workingDirectory = regexp.MustCompile(`orking directory: ([^\\"\n]+)`)

// answerAgent is a model, as Anthropic's Messages and OpenAI's Responses describe one over server-sent events, that has two files made
// with the tool that it is offered, and then is done.
func answerAgent(w http.ResponseWriter, path string, raw []byte) {
	type object = map[string]any
	var events []object
	add := func(kind string, more object) {
		more["type"] = kind
		events = append(events, more)
	}
	arguments := func(v object) string {
		text, _ := json.Marshal(v)
		return string(text)
	}
	switch {
	case path == "/v1/messages":
		add("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []any{}, "usage": object{"input_tokens": 1, "output_tokens": 1}}})
		blocks, reason := 0, "end_turn"
		says := func(block, delta object) {
			add("content_block_start", object{"index": blocks, "content_block": block})
			add("content_block_delta", object{"index": blocks, "delta": delta})
			add("content_block_stop", object{"index": blocks})
			blocks++
		}
		at := workingDirectory.FindSubmatch(raw)
		for tool, argument := range map[string]string{"Write": "file_path", "write": "filePath"} { // of Claude Code and of opencode
			if at != nil && strings.Contains(string(raw), `"name":"`+tool+`"`) && !strings.Contains(string(raw), `"tool_result"`) {
				reason = "tool_use"
				for _, name := range []string{"made.txt", "more.txt"} {
					says(object{"type": "tool_use", "id": "toolu_" + name[:4], "name": tool, "input": object{}}, object{"type": "input_json_delta",
						"partial_json": arguments(object{argument: filepath.Join(string(at[1]), name), "content": "made by an agent\n"})})
				}
			}
		}
		if blocks == 0 {
			says(object{"type": "text", "text": ""}, object{"type": "text_delta", "text": "done"})
		}
		add("message_delta", object{"delta": object{"stop_reason": reason}, "usage": object{"output_tokens": 1}})
		add("message_stop", object{})
	case path == "/v1/responses":
		item := object{"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": []any{object{"type": "output_text", "text": "done", "annotations": []any{}}}}
		if !strings.Contains(string(raw), `"function_call_output"`) {
			item = object{"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "exec_command", "arguments": arguments(object{"cmd": "echo made by an agent | tee made.txt > more.txt; : git commit"})}
		}
		add("response.created", object{"response": object{"id": "r1"}})
		add("response.output_item.done", object{"output_index": 0, "item": item})
		add("response.completed", object{"response": object{"id": "r1", "usage": object{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}})
	default:
		http.Error(w, "there is nothing here", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], arguments(event))
	}
}
