package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// clientFiles are the workspace of the demo below.
var clientFiles = map[string]string{
	"demo_workspace/example.js": "// TODO: remove\nexport const a = 1;\n",
	"demo_workspace/utils.js":   "export const b = 2; // TODO later\n",
	"demo_workspace/notes.md":   "# Notes\n- TODO: write\n- done\n",
	"other/TODO.md":             "TODO: not in the workspace\n",
}

// demoTurn is what the client that comes with review_apply_resume_v0.md sends to
// begin its demo, member for member.
func demoTurn(thread, root string) obj {
	return obj{
		"threadId": thread, "description": "demo review turn", "cwd": root, "approvalPolicy": "on-request",
		"sandboxPolicy": obj{"type": "workspace-write", "writable_roots": []string{root}, "network_access": false},
		"input":         []obj{{"type": "input_text", "text": "Remove TODO lines from the demo's files."}},
		"targetFiles":   []string{"example.js", "utils.js", "notes.md"}, "workspaceRoot": root, "needle": "TODO",
	}
}

// The demo of that client, with apply and its automatic approvals: a turn, its
// state, then apply/execute until it is done, with each approval/request of the
// events answered; then list and resume.
func TestServeDemoClient(t *testing.T) {
	t.Parallel()
	s := newServed(t, clientFiles)
	root := filepath.Join(s.repo, "demo_workspace")
	thread := s.must("thread/start", obj{"workspaceRoots": []string{root}, "cwd": root})["threadId"].(string)
	started := s.must("turn/start", demoTurn(thread, root))
	id := started["transactionId"].(string)
	turn := s.must("turn/get", obj{"turnId": started["turnId"]})
	if turn["status"] != "completed" || turn["transactionId"] != id || turn["turnId"] != started["turnId"] || turn["error"] != nil || len(turn["items"].([]any)) != 2 {
		t.Errorf("turn/get: %v", turn)
	}
	if diff, _ := turn["diff"].(string); !strings.Contains(diff, "\n-// TODO: remove\n") || strings.Contains(diff, "other/") {
		t.Errorf("the diff is %q", diff)
	}
	if got := turn["turn"].(obj)["input"]; got != "demo review turn: Remove TODO lines from the demo's files." {
		t.Errorf("the turn is for %q", got)
	}
	ok, told := false, len(s.events)
	for range 20 {
		if ok = s.apply(id)["ok"] == true; ok {
			break
		}
		for _, event := range s.events[told:] {
			if _, rest, asks := strings.Cut(event, `"approval_request_id":"`); asks && strings.Contains(event, `"type":"approval/request"`) {
				request, _, _ := strings.Cut(rest, `"`)
				s.respond(id, request, "approve")
			}
		}
		told = len(s.events)
	}
	files := s.read("demo_workspace/example.js") + s.read("demo_workspace/utils.js") + s.read("demo_workspace/notes.md")
	if want := "export const a = 1;\n# Notes\n- done\n"; !ok || files != want || s.read("other/TODO.md") != clientFiles["other/TODO.md"] {
		t.Errorf("ok %v, the files are %q, want %q", ok, files, want)
	}
	list := s.must("transaction/list", obj{"limit": 25})
	rows := list["data"].([]any)
	if len(rows) != 1 || rows[0].(obj)["transaction_id"] != id || rows[0].(obj)["status"] != "completed" || fmt.Sprint(list["transactions"]) != fmt.Sprint(rows) {
		t.Errorf("transaction/list: %v", list)
	}
	resumed := s.must("transaction/resume", obj{"transactionId": id})
	if resumed["transaction"].(obj)["status"] != "completed" || len(resumed["pendingApprovals"].([]any)) != 0 {
		t.Errorf("transaction/resume: %v", resumed)
	}
	tip := s.tip()
	if got := s.must("tx/close", obj{"transactionId": id, "status": "completed"}); got["ok"] != true || got["status"] != "completed" || s.tip() != tip {
		t.Errorf("tx/close: %v", got)
	}
	s.refused(codeParams, "can only be interrupted", "tx/close", obj{"transactionId": id, "status": "failed"})
	s.refused(codeParams, "is closed: applied", "turn/interrupt", obj{"turnId": started["turnId"]})
}

// What is interrupted is never applied; another server knows the turn by its id.
func TestServeInterrupt(t *testing.T) {
	long(t)
	t.Parallel()
	s := newServed(t, clientFiles)
	s.restart = true
	root := filepath.Join(s.repo, "demo_workspace")
	started := s.must("turn/start", demoTurn(s.thread(), root))
	for range 2 { // the second changes nothing
		if got := s.must("turn/interrupt", obj{"turnId": started["turnId"]}); got["ok"] != true || got["status"] != "interrupted" {
			t.Errorf("turn/interrupt: %v", got)
		}
	}
	if got := s.must("turn/get", obj{"turnId": started["turnId"]}); got["status"] != "interrupted" {
		t.Errorf("turn/get: %v", got)
	}
	s.refused(codeInternal, "is closed", "apply/execute", obj{"transactionId": started["transactionId"]})
}

// The parameters of that client loosen nothing.
func TestServeClientRefused(t *testing.T) {
	long(t)
	t.Parallel()
	s := newServed(t, clientFiles)
	root, other := filepath.Join(s.repo, "demo_workspace"), filepath.Join(s.repo, "other")
	thread := s.must("thread/start", obj{"workspaceRoots": []string{root}})["threadId"].(string)
	for _, c := range []struct {
		message string
		more    obj
	}{
		{"is in none of the thread's workspace roots", obj{"workspaceRoot": other}},
		{"is in none of the thread's workspace roots", obj{"cwd": other}},
		{"is not in the repository", obj{"workspaceRoot": "/"}},
		{"the Policy's to say", obj{"approvalPolicy": "never"}},
		{"the Policy's to say", obj{"approvalPolicy": "on-failure"}},
		{"the Policy's to say", obj{"approvalPolicy": ""}},
		{"the Policy's to say", obj{"approvalPolicy": []string{}}},
		{"params.input is a text, or a list", obj{"input": []any{"text"}}},
		{"params.input is a text, or a list", obj{"input": []any{obj{"type": "input_image", "text": "x"}}}},
		{"params.input is a text, or a list", obj{"input": []any{obj{"type": "input_text", "text": 1}}}},
		{"params.input is a text, or a list", obj{"input": []any{obj{"type": "input_text", "text": "x", "also": "y"}}}},
		{"params.input is a text, or a list", obj{"input": obj{"type": "input_text", "text": "x"}}},
		{"params.input is missing", obj{"input": nil}},
		{"network_access", obj{"sandboxPolicy": obj{"type": "workspace-write", "networkAccess": true}}},
		{"has both writable_roots and writableRoots", obj{"sandboxPolicy": obj{"type": "workspace-write", "writable_roots": []string{root}, "writableRoots": []string{s.repo}}}},
		{"is not in the repository", obj{"sandboxPolicy": obj{"type": "workspace-write", "writableRoots": []string{"/"}}}},
		{`type is "full/danger"`, obj{"sandboxPolicy": obj{"type": "full/danger"}}},
		{"other/TODO.md", obj{"targetFiles": []string{"../other/TODO.md"}}},
	} {
		params := demoTurn(thread, root)
		for name, value := range c.more {
			params[name] = value
		}
		s.refused(codeParams, c.message, "turn/start", params)
	}
	started := s.must("turn/start", demoTurn(thread, root))
	s.refused(codeParams, "params.transactionId is no transaction's id", "turn/interrupt", obj{"turnId": "turn_1"})
	s.refused(codeParams, "a turn of another transaction", "turn/get", obj{"turnId": started["turnId"], "transactionId": "tx_01KE6Z0000000000000000000G"})
	s.refused(codeParams, "has no turn turn_2", "turn/get", obj{"turnId": started["transactionId"].(string) + "/turn_2"})
	s.refused(codeParams, "limit is less than 1", "transaction/list", obj{"limit": 0})
	s.refused(codeParams, "params.limit is of the wrong type", "transaction/list", obj{"limit": 1.5})
	if s.validLedger() != 1 {
		t.Error("what was refused is in the ledger")
	}
}
