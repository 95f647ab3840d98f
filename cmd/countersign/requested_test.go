package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestRequestedByClients: a client of JSON-RPC, and of MCP, says who asked for a change. It is recorded with that word's
// source, also of a change that is known, and a name that is none is refused.
func TestRequestedByClients(t *testing.T) {
	t.Parallel()
	s := newServed(t, todoFiles)
	id := s.turn(obj{"threadId": s.thread(), "input": "add", "patch": seePatch, "requestedBy": []string{"@Zoe", "ada@example.org"}})
	s.refused(codeParams, "params.requestedBy names nobody", "turn/start", obj{"threadId": s.thread(), "input": "add", "patch": seePatch, "requestedBy": []string{"@"}})
	c := s.mcp()
	if again := c.answers("propose_patch", obj{"patch": seePatch, "requested_by": []string{"Kim"}})["transaction_id"]; again != id {
		t.Errorf("%v is not %s", again, id)
	}
	if _, refused := c.call("propose_patch", obj{"patch": seePatch, "requested_by": []string{"@"}}); !refused {
		t.Error("nobody is taken for a name")
	}
	out, err := exec.Command("git", "-C", s.repo, "grep", "-h", "requested_by", "refs/agent/ledger", "--").Output()
	check(t, err)
	for _, want := range []string{
		`{"actor":{"id":"","kind":"user","login":"Zoe"},"source":"rpc"}`, `{"actor":{"id":"local:ada@example.org","kind":"user","login":"ada@example.org"},"source":"rpc"}`,
		`{"actor":{"id":"","kind":"user","login":"Kim"},"source":"mcp"}`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not recorded", want)
		}
	}
}
