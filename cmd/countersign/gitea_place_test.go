package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
)

// TestGiteaLedgerElsewhere: on a real server the ledger of a public project is in a private repository; a fork's pull
// request is settled, outsiders read nothing of the ledger, and the project has no trace of it.
func TestGiteaLedgerElsewhere(t *testing.T) {
	t.Parallel()
	h := newTeaHub(t, map[string]string{".github/countersign.yml": "version: 1\ngate: {bases: [main]}\nledger: {repository: vault/ledgers}\n"})
	eve, keeper := h.s.User("eve"), h.s.User("keeper")
	h.s.Org("vault", h.ada)
	vault := h.s.Repository(h.ada, "vault", "ledgers", map[string]string{"README.md": "# Ledgers\n"})
	vault.Edit(map[string]any{"private": true})
	vault.Collaborator(keeper, "write")
	token := h.s.Scoped(keeper, "write:repository").Token

	fork := h.r.Fork(eve)
	fork.Commit(eve, "idea", "idea", map[string]string{"idea.txt": "idea\n"})
	h.pr = h.r.PullRequest(eve, "eve:idea", "main", "Idea")
	head := fork.Ref("refs/heads/idea")
	ref := fmt.Sprintf("refs/agent/ledger-%d", h.r.ID)
	traces := func(r *forgetest.Repository) string {
		return r.Git("for-each-ref", "--format=%(refname) %(objectname)", "refs/agent", "refs/heads/countersign-ledger*")
	}

	// The robot's own token does not reach the ledger: nothing happens.
	h.clone()
	code, stdout, stderr := h.run("settle", "--pr", fmt.Sprint(h.pr))
	if code != console.ExitIO || !strings.Contains(stderr, "vault/ledgers") || !strings.Contains(stderr, "hint: set COUNTERSIGN_LEDGER_TOKEN to a token that may write") || traces(vault) != "" {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if s := h.statuses(head); s["countersign"] == "success" {
		t.Errorf("%+v", s)
	}

	settle := func(want int) settled {
		h.clone()
		h.env[console.LedgerTokenName] = token
		return h.settle(want)
	}
	settle(console.ExitPending)
	h.r.Review(h.ada, h.pr, "APPROVED", "", head)
	if done := settle(0); done.Transactions[0].Verdict.State != "approved" {
		t.Errorf("%+v", done)
	}
	if s := h.statuses(head); s["countersign"] != "success" {
		t.Errorf("%+v", s)
	}
	for _, command := range []string{"sync", "audit"} {
		if code, stdout, stderr := h.run(command); code != 0 {
			t.Errorf("%s: %d %s%s", command, code, stdout, stderr)
		}
	}
	tip := vault.Ref(ref)
	if tip == "" || strings.Contains(traces(vault), "\n") || traces(h.r) != "" || traces(fork) != "" {
		t.Errorf("the vault has %q, the project %q, the fork %q", traces(vault), traces(h.r), traces(fork))
	}
	if code, stdout, _ := h.run("list", "--json", "--all", "--push"); code != 0 || !strings.Contains(stdout, "tx_") {
		t.Errorf("%d %s", code, stdout)
	}

	if _, stdout, stderr := h.run("doctor"); !strings.Contains(stdout, "ok     the ledger is kept in vault/ledgers, on "+ref+", and can be read") || strings.Contains(stdout, "everybody may read the ledger") {
		t.Errorf("%s%s", stdout, stderr)
	}

	if _, stdout, _ := h.run("doctor"); !strings.Contains(stdout, "note   no rule reaches "+ref) || strings.Contains(stdout, "no rule reaches refs/agent/ledger:") || strings.Contains(stdout, "the token may not write to") {
		t.Error(stdout)
	}
	h.env[console.LedgerTokenName] = h.s.Scoped(keeper, "read:repository").Token
	if _, stdout, _ := h.run("doctor"); !strings.Contains(stdout, "fails  the token may not write to vault/ledgers") {
		t.Error(stdout)
	}

	// Outsiders: nobody, eve, and the project's own writers.
	for who, address := range map[string]string{"nobody": vault.Remote(), "eve": vault.RemoteAs(eve), "bob": vault.RemoteAs(h.bob), "robot": vault.RemoteAs(h.robot)} {
		cmd := exec.Command("git", "-c", "credential.helper=", "ls-remote", address)
		cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "HOME="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s reads the ledger: %s", who, out)
		}
	}
	patch := filepath.Join(t.TempDir(), "fix.patch")
	check(t, os.WriteFile(patch, []byte(greetFix), 0o600))
	fails := func(what, says string, commands ...[]string) {
		t.Helper()
		for _, args := range commands {
			code, stdout, stderr := h.run(args...)
			if code != console.ExitIO || !strings.Contains(stderr, says) {
				t.Errorf("%s: %q: %d %s%s", what, args, code, stdout, stderr)
			}
		}
		if vault.Ref(ref) != tip || traces(h.r) != "" || traces(fork) != "" {
			t.Errorf("%s: the vault has %q, the project %q, the fork %q", what, traces(vault), traces(h.r), traces(fork))
		}
	}
	stages := [][]string{{"review", "--push", "--patch", patch}, {"list", "--push"}, {"gate", "--push"}, {"apply", "--push"}, {"sync"}, {"settle", "--pr", fmt.Sprint(h.pr)}}
	h.clone()
	h.env["COUNTERSIGN_TOKEN"] = eve.Token
	fails("eve in the project", "vault/ledgers", stages...)
	h.clone()
	h.git("remote", "set-url", "origin", fork.Remote())
	h.env["COUNTERSIGN_TOKEN"] = eve.Token
	fails("eve in her fork", "vault/ledgers", stages[:5]...)

	// A repository that is archived takes nothing; one that was renamed is not followed; one that is gone is not replaced.
	h.clone()
	h.env[console.LedgerTokenName] = token
	vault.Edit(map[string]any{"archived": true})
	fails("archived", "vault/ledgers", stages[0])
	vault.Edit(map[string]any{"archived": false})
	h.s.Must(h.ada, http.MethodPatch, vault.Path(), map[string]any{"name": "moved"}, nil)
	vault.Name = "moved"
	h.clone()
	h.env[console.LedgerTokenName] = token
	fails("renamed", "vault/ledgers", stages...)
	h.s.Must(h.ada, http.MethodPatch, vault.Path(), map[string]any{"name": "ledgers"}, nil)
	vault.Name = "ledgers"
	settle(0)
}
