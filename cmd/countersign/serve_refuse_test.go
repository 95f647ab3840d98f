package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// The codes of JSON-RPC.
const (
	codeParams   = -32602
	codeInternal = -32603
)

// seePatch is a Git diff of c.txt.
const seePatch = "diff --git a/c.txt b/c.txt\n--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-c\n+see\n"

// A denial holds for the request, the transaction, every later one of the same
// patch, and after a restart.
func TestServeDenySticks(t *testing.T) {
	t.Parallel()
	s := newServed(t, todoFiles)
	thread := s.thread()
	proposal := obj{"threadId": thread, "input": "see", "patch": seePatch}
	id := s.turn(proposal)
	request := askedFor(t, s.apply(id))
	if said := s.respond(id, request, "deny"); said["ok"] != true || said["verdict"] != "denied" {
		t.Errorf("respond: %v", said)
	}
	for range 2 {
		s.refused(codeInternal, "Apply failed: "+id+" was denied", "apply/execute", obj{"transactionId": id})
		s.refused(codeParams, "is closed: denied", "approval/respond", obj{"transactionId": id, "approvalRequestId": request, "decision": "approve"})
		s.refused(codeParams, "denied by Ada", "turn/start", proposal)
		if exit := s.ask("turn/start", proposal).Err.Data.Exit; exit != console.ExitDenied {
			t.Errorf("data.exit is %d", exit)
		}
		s.refused(codeParams, "is closed", "tx/close", obj{"transactionId": id})
		s.stop()
	}
	if s.read("c.txt") != "c\n" || s.validLedger() != 1 {
		t.Error("something was written")
	}
}

// Nothing is accepted after tx/close, and nothing is recorded.
func TestServeClosed(t *testing.T) {
	long(t)
	t.Parallel()
	s := newServed(t, todoFiles)
	id := s.turn(obj{"threadId": s.thread(), "input": "see", "patch": seePatch})
	request := askedFor(t, s.apply(id))
	s.refused(codeParams, "can only be interrupted", "tx/close", obj{"transactionId": id, "status": "completed"})
	if got := s.must("tx/close", obj{"transactionId": id}); got["status"] != "interrupted" {
		t.Errorf("closed as %v", got)
	}
	tip := s.tip()
	s.refused(codeInternal, "Apply failed: "+id+" is closed", "apply/execute", obj{"transactionId": id})
	s.refused(codeParams, "is closed", "approval/respond", obj{"transactionId": id, "approvalRequestId": request, "decision": "approve"})
	s.refused(codeParams, "is closed", "tx/close", obj{"transactionId": id})
	got := s.must("transaction/resume", obj{"transactionId": id})
	if fmt.Sprint(got["pendingApprovals"]) != "[]" || s.tip() != tip {
		t.Errorf("%v is pending, the ledger is at %s", got["pendingApprovals"], s.tip())
	}
	if again := s.turn(obj{"threadId": s.thread(), "input": "see", "patch": seePatch}); again == id {
		t.Error("the closed transaction was proposed again")
	}
}

// A decision answers the request that it names, and counts as what it is: a
// local one of the person who runs the server.
func TestServeDecision(t *testing.T) {
	t.Parallel()
	files := map[string]string{"c.txt": "c\n", ".github/countersign.yml": "version: 1\napprovals: {required: 2}\n"}
	s := newServed(t, files)
	id := s.turn(obj{"threadId": s.thread(), "input": "see", "patch": seePatch})
	if got := len(s.apply(id)["pendingApprovals"].([]any)); got != 2 {
		t.Fatalf("%d requests", got)
	}
	for _, name := range []string{"req_9", "req_1 ", id} {
		s.refused(codeParams, "has no open request", "approval/respond", obj{"transactionId": id, "approvalRequestId": name, "decision": "approve"})
	}
	own := s.must("transaction/get", obj{"transactionId": id})["pendingApprovals"].([]any)[0].(map[string]any)["fingerprint"].(string)
	for _, other := range []string{"patchset:" + strings.Repeat("0", 64), "secret", "protected", "secret:" + own, own[:20]} {
		s.refused(codeParams, "req_2 asks about "+own+", and not about", "approval/respond", obj{"transactionId": id, "approvalRequestId": "req_2", "decision": "approve", "fingerprint": other})
	}
	said := s.must("approval/respond", obj{"transactionId": id, "approvalRequestId": "req_2", "decision": "approve", "fingerprint": own})
	left := said["pendingApprovals"].([]any)
	if said["ok"] != true || said["verdict"] != "pending" || len(left) != 1 || left[0].(map[string]any)["approval_request_id"] != "req_1" {
		t.Errorf("respond: %v", said)
	}
	if said = s.respond(id, "req_1", "approve"); said["ok"] != false || said["verdict"] != "pending" {
		t.Errorf("the same person twice: %v", said)
	}
	s.stop()
	decision := `"approval_request_id":"req_2","decision":"approve"`
	if log := strings.Join(s.recorded(id), ""); strings.Count(log, `"type":"approval/decision"`) != 1 || !strings.Contains(log, decision) || !strings.Contains(log, `"kind":"rpc"`) {
		t.Error(log)
	}
}

// Where the Policy does not allow local decisions, those over RPC are refused,
// and nothing is recorded.
func TestServeNoLocal(t *testing.T) {
	t.Parallel()
	s := newServed(t, map[string]string{"c.txt": "c\n", ".github/countersign.yml": "version: 1\napprovals: {local: false}\n"})
	id := s.turn(obj{"threadId": s.thread(), "input": "see", "patch": seePatch})
	request := askedFor(t, s.apply(id))
	tip := s.tip()
	for _, decision := range []string{"approve", "deny"} {
		s.refused(codeParams, "the Policy does not allow local decisions", "approval/respond", obj{"transactionId": id, "approvalRequestId": request, "decision": decision})
	}
	if s.tip() != tip {
		t.Error("something was recorded")
	}
}

// A sandbox that is read-only lets a change be proposed, and never applied: not
// here, not by the command line, and nobody is asked for an approval.
func TestServeReadOnly(t *testing.T) {
	t.Parallel()
	s := newServed(t, todoFiles)
	proposal := obj{"threadId": s.thread(), "input": "see", "patch": seePatch, "sandboxPolicy": obj{"type": "read-only"}}
	id := s.turn(proposal)
	s.refused(codeInternal, "Apply failed: the sandbox is read-only", "apply/execute", obj{"transactionId": id})
	if said := s.must("transaction/get", obj{"transactionId": id}); fmt.Sprint(said["pendingApprovals"]) != "[]" {
		t.Errorf("it asks for %v", said["pendingApprovals"])
	}
	if s.turn(proposal) != id {
		t.Error("the same proposal is another transaction")
	}
	delete(proposal, "sandboxPolicy")
	other := s.turn(proposal)
	if other == id {
		t.Error("what may be applied is the transaction that may not")
	}
	s.stop()
	s.run(0, "approve", id)
	s.run(2, "run", id)
	if s.read("c.txt") != "c\n" {
		t.Error("it was applied")
	}
	s.run(0, "approve", other)
	s.run(0, "run", other)
}

// Every path of a client is checked, whatever leads to it.
func TestServePaths(t *testing.T) {
	t.Parallel()
	s := newServed(t, todoFiles)
	link := filepath.Join(s.dir, "link")
	check(t, os.Symlink(s.repo, link))
	check(t, os.Symlink(s.dir, filepath.Join(s.repo, "out")))
	for _, bad := range []obj{
		{"workspaceRoots": []string{}}, {"workspaceRoots": []string{s.dir}}, {"workspaceRoots": []string{s.repo, "/"}}, {"workspaceRoots": []string{"."}},
		{"workspaceRoots": []string{""}}, {"workspaceRoots": []string{s.repo + "/../.."}}, {"workspaceRoots": []string{s.repo + "/missing"}},
		{"workspaceRoots": []string{s.repo + "/a.go"}}, {"workspaceRoots": []string{s.repo + "/.git"}}, {"workspaceRoots": []string{s.repo + "/out"}},
		{"workspaceRoots": []string{s.repo + "\x00"}}, {"workspaceRoots": []string{s.repo}, "cwd": s.dir}, {"workspaceRoots": []string{s.repo + "/sub"}, "cwd": s.repo},
	} {
		s.refused(codeParams, "", "thread/start", bad)
	}
	s.refused(codeParams, "is not in the repository", "thread/start", obj{"workspaceRoots": []string{s.dir}})
	for _, id := range []string{
		"", "thread_1", "thread?", "thread?cwd=.", "thread?root=.", "thread?root=.&cwd=.", "thread?cwd=.&root=..", "thread?cwd=.&root=.git", "thread?cwd=..&root=.",
		"thread?cwd=out&root=out", "thread?cwd=.&root=.&x=1", "thread?cwd=%2e&root=.", "thread?cwd=.&root=.&root=.", "thread?cwd=.&root=%2Ftmp", "thread?%zz",
	} {
		s.refused(codeParams, "", "turn/start", obj{"threadId": id, "input": "see", "patch": seePatch})
	}
	if got := s.must("thread/start", obj{"workspaceRoots": []string{link, s.repo}}); got["threadId"] != "thread?cwd=.&root=." || got["cwd"] != s.top() {
		t.Errorf("through a link: %v", got)
	}
	sub := s.must("thread/start", obj{"workspaceRoots": []string{s.repo + "/sub"}})["threadId"].(string)
	if got := s.must("thread/list", obj{})["threads"].([]any); len(got) != 2 || got[1].(map[string]any)["threadId"] != sub {
		t.Errorf("the threads are %v", got)
	}
	s.stop() // the id says it all
	s.refused(codeParams, "is outside of where this turn may write", "turn/start", obj{"threadId": sub, "input": "see", "patch": seePatch})
	s.refused(codeParams, "is outside of where this turn may write", "turn/start", obj{"threadId": sub, "input": "see", "needle": "TODO"})
	s.refused(codeParams, "", "turn/start", obj{"threadId": sub, "input": "see", "needle": "TODO", "targetFiles": []string{"../../x"}})
	s.refused(codeParams, "absolute path", "turn/start", obj{"threadId": "thread?cwd=.&root=.", "input": "see", "needle": "TODO", "targetFiles": []string{"/a.go"}})
	s.turn(obj{"threadId": sub, "input": "see", "needle": "TODO", "targetFiles": []string{"b.go"}})
}

// What a turn asks for is given, or refused: never taken for something else.
func TestServeTurns(t *testing.T) {
	long(t)
	t.Parallel()
	s := newServed(t, todoFiles)
	thread := s.thread()
	for message, more := range map[string]obj{
		"either what params.needle":          {},
		"either what params.needle or":       {"needle": "x", "patch": seePatch},
		"belong to params.needle":            {"patch": seePatch, "targetFiles": []string{"c.txt"}},
		"the patch is empty":                 {"patch": "\n"},
		"does not apply":                     {"patch": strings.Replace(seePatch, "-c\n", "-d\n", 1)},
		`type is "read-write"`:               {"patch": seePatch, "sandboxPolicy": obj{"type": "read-write"}},
		`type is "danger-full-access"`:       {"patch": seePatch, "sandboxPolicy": obj{"type": "danger-full-access"}},
		`type is ""`:                         {"patch": seePatch, "sandboxPolicy": obj{"type": ""}},
		"sandboxPolicy must be an object":    {"patch": seePatch, "sandboxPolicy": "read-only"},
		"sandboxPolicy.type is missing":      {"patch": seePatch, "sandboxPolicy": obj{}},
		"network_access":                     {"patch": seePatch, "sandboxPolicy": obj{"type": "workspace-write", "network_access": true}},
		"is not in the repository":           {"patch": seePatch, "sandboxPolicy": obj{"type": "workspace-write", "writable_roots": []string{"/"}}},
		"outside of where this turn":         {"patch": seePatch, "sandboxPolicy": obj{"type": "workspace-write", "writable_roots": []string{"sub"}}},
		"it says required 1, local true":     {"patch": seePatch, "approvalPolicy": obj{"required": 0}},
		"the Policy's to say":                {"patch": seePatch, "approvalPolicy": obj{"required": 2}},
		"is the Policy's to say":             {"patch": seePatch, "approvalPolicy": obj{"local": false}},
		`has no member "type"`:               {"patch": seePatch, "approvalPolicy": obj{"type": "never"}},
		`params has no member "Patch"`:       {"Patch": seePatch},
		"params.trace: line 2: not a JSON":   {"patch": seePatch, "trace": "{\"tool\":\"x\"}\n[]\n"},
		`params.trace: line 1: a step of th`: {"patch": seePatch, "trace": "{}"},
	} {
		params := obj{"threadId": thread, "input": "see"}
		for name, value := range more {
			params[name] = value
		}
		s.refused(codeParams, message, "turn/start", params)
	}
	s.turn(obj{
		"threadId": thread, "input": "see", "patch": seePatch, "approvalPolicy": obj{"required": 1, "local": true}, "targetFiles": nil,
		"sandboxPolicy": obj{"type": "workspace-write", "writable_roots": []string{"."}, "network_access": false},
	})
	if s.validLedger() != 1 {
		t.Error("what was refused is in the ledger")
	}
}

func TestServeUnknown(t *testing.T) {
	long(t)
	t.Parallel()
	s := newServed(t, todoFiles)
	const none = "tx_01KE6Z0000000000000000000G"
	for method, more := range map[string]obj{
		"transaction/get": {}, "transaction/resume": {}, "turn/get": {}, "apply/execute": {}, "tx/close": {}, "approval/respond": {"approvalRequestId": "req_1", "decision": "deny"},
	} {
		for id, message := range map[string]string{none: "there is no transaction " + none, "../../x": "is no transaction's id", "": "is no transaction's id", "tx_01": "is no transaction's id"} {
			more["transactionId"] = id
			s.refused(codeParams, message, method, more)
		}
	}
	id := s.turn(obj{"threadId": s.thread(), "input": "see", "patch": seePatch})
	s.refused(codeParams, "has no turn turn_2", "turn/get", obj{"transactionId": id, "turnId": "turn_2"})
	s.refused(codeParams, `params.decision is "yes"`, "approval/respond", obj{"transactionId": id, "approvalRequestId": "req_1", "decision": "yes"})
	s.refused(-32601, "Method not found: apply/now", "apply/now", obj{"transactionId": id})
}

// A secret that a client sends comes back nowhere, and a patch with one is
// applied once the client gives it again.
func TestServeSecrets(t *testing.T) {
	t.Parallel()
	s := newServed(t, todoFiles)
	var out strings.Builder
	sample := teststand.Samples()[0]
	text := sample.Text()
	hear := func(a answer) answer {
		fmt.Fprintf(&out, "%v\n", a)
		return a
	}
	thread := s.thread()
	patch := addition("new.txt", strings.TrimSuffix(text, "\n")+"\n")
	hear(s.ask(text, obj{}))
	hear(s.ask("thread/start", obj{"workspaceRoots": []string{"/" + text}}))
	hear(s.ask("turn/start", obj{"threadId": thread, "input": "x", "patch": "garbage " + text}))
	hear(s.ask("turn/start", obj{"threadId": thread, "input": "x", "patch": patch, text: text}))
	id := hear(s.ask("turn/start", obj{"threadId": thread, "input": "about " + text, "patch": patch, "trace": `{"type":"reasoning","summary":"x"}`})).Result["transactionId"].(string)
	hear(s.ask("turn/get", obj{"transactionId": id}))
	s.git("config", "user.email", "bob@localhost") // who proposes a secret cannot excuse it
	for _, q := range s.apply(id)["pendingApprovals"].([]any) {
		s.respond(id, q.(map[string]any)["approval_request_id"].(string), "approve")
	}
	hear(s.ask("apply/execute", obj{"transactionId": id}))
	if s.refused(codeInternal, "only without its secrets", "apply/execute", obj{"transactionId": id}); s.ask("apply/execute", obj{"transactionId": id, "patch": patch}).Err != nil {
		t.Error("it was not applied")
	}
	out.WriteString(strings.Join(s.events, ""))
	for _, form := range teststand.Encodings(sample.Value) {
		if strings.Contains(out.String(), string(form)) {
			t.Errorf("the client was told %q", form)
		}
	}
	if s.read("new.txt") != strings.TrimSuffix(text, "\n")+"\n" {
		t.Error("another text was applied")
	}
}

// The rules of the repository hold from the call after they changed.
func TestServeNewRules(t *testing.T) {
	t.Parallel()
	s := newServed(t, todoFiles)
	proposal := obj{"threadId": s.thread(), "input": "see", "patch": addition("new.txt", "BADGE-123456\n")}
	kinds := func() string {
		var out []string
		for _, q := range s.apply(s.turn(proposal))["pendingApprovals"].([]any) {
			out = append(out, q.(map[string]any)["kind"].(string))
		}
		return strings.Join(out, " ")
	}
	if got := kinds(); got != "fileChange" {
		t.Errorf("asked for %s", got)
	}
	s.write(".gitleaks.toml", "[[rules]]\nid = \"badge\"\nregex = '''BADGE-[0-9]{6}'''\nkeywords = [\"badge\"]\n")
	s.write(".github/countersign.yml", "version: 1\napprovals: {required: 2}\n")
	s.commit()
	if got := kinds(); strings.Count(got, "fileChange") != 2 || !strings.Contains(got, "secrets_override") {
		t.Errorf("asked for %s", got)
	}
}
