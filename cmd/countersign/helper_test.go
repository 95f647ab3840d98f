package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
)

// TestSyncByHelper: who can git push can sync, by Git's credential helpers; what records a
// patch does not ask them, as their password would then not be kept out of the record (T47),
// and neither does a workflow, whose jobs are split by who holds a token.
func TestSyncByHelper(t *testing.T) {
	h := newHub(t)
	h.clone()
	home := t.TempDir()
	helper := "!f() { test $1 = get && echo username=ada && echo password=" + h.s.Token("ada") + "; }; f"
	check(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[credential]\n\thelper = \""+helper+"\"\n[user]\n\temail = ada@localhost\n"), 0o600))
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	h.env = map[string]string{"HOME": home, "GIT_CONFIG_NOSYSTEM": "1"}
	file := filepath.Join(home, "a.patch")
	check(t, os.WriteFile(file, []byte(addition("new.txt", "new\n")), 0o600))
	run := func(want int, args ...string) {
		t.Helper()
		if code, stdout, stderr := h.run(args...); code != want {
			t.Errorf("%v: exit code %d, not %d: %s%s", args, code, want, stdout, stderr)
		}
	}
	run(console.ExitIO, "review", "--push", "--patch", file)
	run(0, "review", "--patch", file)
	h.env["GITHUB_ACTIONS"] = "true"
	run(console.ExitIO, "sync")
	delete(h.env, "GITHUB_ACTIONS")
	run(0, "sync")
	if h.s.Ref(site, "refs/agent/ledger") == "" {
		t.Error("nothing was sent")
	}
}
