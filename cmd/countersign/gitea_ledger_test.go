package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A member is somebody's clone of a repository on a real Gitea, who has a token.
type member struct {
	playground
	r     *forgetest.Repository
	token string
}

func join(t *testing.T, r *forgetest.Repository, u forgetest.User) member {
	t.Helper()
	m := member{newSandbox(t, nil), r, u.Token}
	m.git("clone", "-q", r.RemoteAs(u), m.repo)
	m.git("remote", "set-url", "origin", r.Remote())
	m.git("config", "user.email", u.Name+"@example.com")
	return m
}

// does runs the program with the token, and wants an exit code.
func (m member) does(want int, args ...string) (stdout, stderr string) {
	m.t.Helper()
	return m.runCmd(want, m.process(args...))
}

func (m member) process(args ...string) *exec.Cmd {
	cmd := m.command(args...)
	cmd.Env = append(cmd.Env, "COUNTERSIGN_TOKEN="+m.token)
	return cmd
}

// reviews records a patch in the ledger on the server.
func (m member) reviews(want int, name string) (stdout, stderr string) {
	m.t.Helper()
	return m.does(want, "review", "--push", "--patch", m.newFile(name))
}

// wantRefused wants a review to end with an error that has the server's words, its hint, and no trace.
func (m member) wantRefused(name, words, hint string) {
	m.t.Helper()
	before := m.r.Ref("refs/agent/ledger")
	stdout, stderr := m.reviews(console.ExitIO, name)
	if stdout != "" || !strings.Contains(stderr, words) || !strings.Contains(stderr, "countersign: hint: "+hint) {
		m.t.Errorf("%s: want the words %q and the hint %q: %s%s", name, words, hint, stdout, stderr)
	}
	if after := m.r.Ref("refs/agent/ledger"); after != before {
		m.t.Errorf("%s was refused, and moved the ledger from %q to %q", name, before, after)
	}
}

// wantSound wants n transactions in a ledger that a new clone finds sound, and the server's repository as well.
func (m member) wantSound(n int) {
	m.t.Helper()
	fresh := join(m.t, m.r, forgetest.User{Name: "x-access-token", Token: m.token})
	fresh.does(0, "sync")
	fresh.does(0, "audit")
	if got := fresh.validLedger(); got != n {
		m.t.Errorf("%d transactions, want %d", got, n)
	}
	m.r.Git("fsck", "--strict", "--no-dangling")
}

// TestT52Gitea: the ledger on a real server that refuses, moves, cleans up, restarts and is written to by many.
func TestT52Gitea(t *testing.T) {
	t.Parallel()
	server := forgetest.Start(t)
	ada, bob, eve := server.User("ada"), server.User("bob"), server.User("eve")
	begin := func(t *testing.T, name string) (*forgetest.Repository, member) {
		t.Helper()
		r := server.For(t).Repository(ada, ada.Name, name, map[string]string{"a.txt": "a\n"})
		r.Collaborator(bob, "write")
		return r, join(t, r, bob)
	}

	t.Run("writers", func(t *testing.T) {
		many := 4
		if n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_WRITERS")); err == nil {
			many = n
		}
		_, m := begin(t, "writers")
		m.reviews(0, "first")
		var group sync.WaitGroup
		var collected atomic.Int64
		for i := range many {
			w := join(t, m.r, bob)
			group.Go(func() {
				if code, out, errs := runCode(w.process("review", "--push", "--patch", w.newFile(fmt.Sprint("w", i)))); code != 0 {
					t.Errorf("writer %d: exit code %d\n%s%s", i, code, out, errs)
				}
				for _, args := range [][]string{{"gc", "-q"}, {"repack", "-adq"}} { // as a schedule of the server does
					if _, err := m.r.TryGit(args...); err == nil { // else another one was at it
						collected.Add(1)
					}
				}
			})
		}
		group.Wait()
		if collected.Load() == 0 {
			t.Error("the server did not collect garbage")
		}
		m.wantSound(many + 1)
	})
	t.Run("hook", func(t *testing.T) {
		r, m := begin(t, "hook")
		r.Hook("pre-receive", "echo no ledger today; exit 1")
		m.wantRefused("n", "no ledger today", "the error says why the remote refuses the ledger")
		r.Hook("pre-receive", "exit 0")
		m.reviews(0, "n")
		m.wantSound(1)
	})
	t.Run("limit", func(t *testing.T) { // Gitea has no quota; this is how Git itself limits
		r, m := begin(t, "limit")
		m.reviews(0, "before")
		r.Git("config", "receive.maxInputSize", "500")
		m.wantRefused("n", "pack exceeds maximum allowed size", "the error says why the remote refuses the ledger")
		r.Git("config", "--unset", "receive.maxInputSize")
		m.reviews(0, "n")
		m.wantSound(2)
	})
	t.Run("protected branch", func(t *testing.T) {
		r, m := begin(t, "protected")
		r.Protect("countersign-ledger", map[string]any{"enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": []string{"ada"}})
		ref := []string{"--ledger-ref", "refs/heads/countersign-ledger", "review", "--push", "--patch", m.newFile("n")}
		_, stderr := m.does(console.ExitIO, ref...)
		if !strings.Contains(stderr, "Not allowed to push to protected branch countersign-ledger") {
			t.Error(stderr)
		}
		join(t, r, ada).does(0, ref...)
		// Nobody rewrites or deletes it, its writer included.
		for _, refspec := range []string{"+" + r.Ref("refs/heads/main") + ":refs/heads/countersign-ledger", ":refs/heads/countersign-ledger"} {
			if out, err := r.TryPush(ada, refspec); err == nil {
				t.Errorf("%s was pushed: %s", refspec, out)
			}
		}
	})
	t.Run("rewritten", func(t *testing.T) { // what no rule of the server prevents on a ref of another kind
		r, m := begin(t, "rewritten")
		m.reviews(0, "n1")
		m.does(0, "sync")
		r.Push(bob, ":refs/agent/ledger")
		m.does(console.ExitFailed, "sync")
		m.reviews(console.ExitFailed, "n2")
	})
	t.Run("rights", func(t *testing.T) {
		r, m := begin(t, "rights")
		reader := join(t, r, eve)
		reader.wantRefused("n", "permission denied for writing", "the error says why the remote refuses the ledger")
		m.token = server.For(t).Scoped(bob, "read:repository").Token
		m.wantRefused("n", "status 403", "use a token that may write to it")
		m.token = "0123456789012345678901234567890123456789"
		m.wantRefused("n", "status 401", "set COUNTERSIGN_TOKEN")
		r.Edit(map[string]any{"private": true})
		reader.wantRefused("n", "no such repository", "use a token that may read it")
	})
	t.Run("renamed", func(t *testing.T) {
		r, m := begin(t, "old-name")
		m.reviews(0, "n1")
		m.does(0, "sync")
		r.Edit(map[string]any{"name": "new-name"})
		m.reviews(0, "n2")
		m.does(0, "sync")
		m.wantSound(2)
	})
	t.Run("archived", func(t *testing.T) {
		r, m := begin(t, "archived")
		m.reviews(0, "n1")
		r.Edit(map[string]any{"archived": true})
		m.wantRefused("n2", "archived", "use a token that may write to it")
		m.does(0, "sync")
		r.Edit(map[string]any{"archived": false})
		m.reviews(0, "n2")
		m.wantSound(2)
	})
	t.Run("mirror", func(t *testing.T) {
		r, m := begin(t, "source")
		m.reviews(0, "n1")
		mirror := *r
		mirror.Name = "mirror"
		r.Must(ada, http.MethodPost, "/repos/migrate", map[string]any{"clone_addr": r.RemoteAs(ada), "repo_name": mirror.Name, "mirror": true, "service": "git"}, nil)
		of := join(t, &mirror, ada)
		of.wantRefused("n2", "mirror repository is read-only", "use a token that may write to it")
		of.does(0, "sync")
		of.wantSound(1)
	})
	t.Run("large files", func(t *testing.T) {
		r, _ := begin(t, "lfs")
		pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 1\n"
		r.Commit(bob, "main", "large", map[string]string{".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "a.bin": pointer})
		m := join(t, r, bob)
		if err := m.pushesLife("n"); err != nil {
			t.Error(err)
		}
		m.wantSound(1)
	})
	t.Run("down", func(t *testing.T) {
		_, m := begin(t, "down")
		m.reviews(0, "n1")
		server.Kill()
		_, stderr := m.reviews(console.ExitIO, "n2")
		if !strings.Contains(stderr, "502") || !strings.Contains(stderr, "hint: run it again once the server answers") {
			t.Error(stderr)
		}
		server.For(t).Restart()
		m.reviews(0, "n2")
		for i, fault := range []teststand.Fault{{Kind: teststand.StatusAfter, Status: 500}, {Kind: teststand.CutAfter}, {Kind: teststand.StatusBefore, Status: 500}, {Kind: teststand.CutAnswer}} {
			failed := false
			server.SetFault(func(_ int, r *http.Request) teststand.Fault {
				if failed || !strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
					return teststand.Fault{}
				}
				failed = true
				return fault
			})
			m.reviews(0, fmt.Sprint("fault", i))
			server.SetFault(nil)
			if !failed {
				t.Errorf("%s did not come to pass", fault)
			}
		}
		m.wantSound(6)
	})
}

// pushesLife takes one transaction to its end, with the ledger on the server.
func (m member) pushesLife(name string) error {
	tx := ""
	for _, args := range [][]string{{"review", "-q", "--patch", m.newFile(name)}, {"approve"}, {"apply", "--to", "branch"}, {"validate"}} {
		args = append(args, "--push")
		if tx != "" {
			args = append(args, tx)
		}
		code, out, errs := runCode(m.process(args...))
		if code != 0 {
			return fmt.Errorf("%v: exit code %d\n%s%s", args, code, out, errs)
		}
		if tx == "" {
			tx = transactionID.FindString(out)
		}
	}
	return nil
}
