package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPReadOnly: in a clone that nobody may write to, everything can be looked at, and a
// proposal says what is wrong.
func TestMCPReadOnly(t *testing.T) {
	long(t)
	t.Parallel()
	usualUmask()
	s := newServed(t, todoFiles)
	s.write("../change.diff", seePatch)
	s.run(0, "review", "--patch", "../change.diff")
	id := s.newest()
	cmd := s.command("mcp")
	if os.Geteuid() == 0 { // who may write anyhow
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else {
		check(t, exec.Command("chmod", "-R", "a-w", s.repo).Run())
		t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", s.repo).Run() })
	}
	cmd.Env = append(cmd.Env, "USER=nobody", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	c := s.connect(&sdk.CommandTransport{Command: cmd}, cmd)
	for _, look := range []struct {
		tool string
		args obj
	}{
		{"status", obj{}}, {"status", obj{"transaction": id}}, {"get_transaction", obj{"transaction": id, "diff": true}}, {"verify", obj{}}, {"explain_policy", obj{"patch": seePatch}},
		{"wait", obj{"transaction": id, "seconds": 0}},
	} {
		c.answers(look.tool, look.args)
	}
	for _, proposal := range []struct {
		tool string
		args obj
	}{
		{"propose_edits", obj{"edits": []obj{{"path": "new.txt", "content": "x\n"}}}},
		{"propose_patch", obj{"patch": seePatch}}, // which is there, but that it was proposed again is recorded
	} {
		doc, failed := c.call(proposal.tool, proposal.args)
		if !failed || doc["exit"] != 3.0 || !strings.Contains(doc["error"].(string), "permission denied") {
			t.Errorf("%s: %v", proposal.tool, doc)
		}
	}
	c.answers("status", obj{})
}
