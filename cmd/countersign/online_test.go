package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/online"
)

// TestT51OnlineRemoteLedger: where the remote's ledger is now, held to the tip that was
// audited and the one that was seen there.
func TestT51OnlineRemoteLedger(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, map[string]string{"greet.txt": "hello\n"})
	s.git("init", "-q", "-b", "main")
	s.commit()
	remote := filepath.Join(s.dir, "remote.git")
	s.git("init", "-q", "-b", "main", "--bare", remote)
	s.git("remote", "add", "origin", remote)
	s.git("push", "-q", "origin", "main")
	propose := func(what string) string {
		patch := filepath.Join(s.dir, what+".patch")
		check(t, os.WriteFile(patch, fmt.Appendf(nil, greetPatch, what), 0o644))
		s.run(0, "review", "--patch", patch)
		return strings.TrimSpace(s.git("rev-parse", gitstore.LedgerRef))
	}
	there := func(args ...string) string {
		return strings.TrimSpace(s.git(append([]string{"--git-dir", remote, "-c", "user.name=e", "-c", "user.email=e@localhost"}, args...)...))
	}
	now := func(tip string) online.Finding {
		a := console.New(console.Process{Stdout: io.Discard, Stderr: io.Discard, Now: time.Now, Getenv: func(name string) string {
			return map[string]string{"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, "HOME": s.dir}[name]
		}})
		a.Flags.Dir, a.Flags.LedgerRef, a.Flags.Remote = s.repo, gitstore.LedgerRef, console.DefaultRemote
		of, err := session.OpenLocal(a)
		check(t, err)
		defer of.Close()
		return session.RemoteLedger(context.Background(), of, tip)
	}
	is := func(what, tip string, want online.Verdict, text string) {
		t.Helper()
		if f := now(tip); f.Verdict != want || !strings.Contains(f.Reason, text) {
			t.Errorf("%s: %+v, want %s, %q", what, f, want, text)
		}
	}
	first := propose("world")
	is("nothing there", first, online.Note, "was never seen")
	there("fetch", "-q", s.repo, gitstore.LedgerRef+":"+gitstore.LedgerRef)
	is("the same", first, online.Same, "")
	other := there("commit-tree", "-m", "another", gitstore.LedgerRef+"^{tree}")
	there("update-ref", gitstore.LedgerRef, other)
	is("another one, and nothing was seen", first, online.Changed, "another history")
	there("update-ref", gitstore.LedgerRef, first)
	s.run(0, "sync")
	second := propose("moon")
	is("not sent yet", second, online.Note, "does not have all")
	more := there("commit-tree", "-m", "more", "-p", first, first+"^{tree}")
	there("update-ref", gitstore.LedgerRef, more)
	is("it went on", first, online.Note, "goes on after")
	is("both went on", second, online.Note, "both went on")
	there("update-ref", gitstore.LedgerRef, other)
	is("made anew", second, online.Changed, "does not descend")
	there("update-ref", gitstore.LedgerRef, first)
	s.run(0, "sync")
	there("update-ref", gitstore.LedgerRef, first)
	is("set back", second, online.Changed, "does not descend")
	there("update-ref", "-d", gitstore.LedgerRef)
	is("deleted", second, online.Gone, "no ledger any more")
	if now := strings.TrimSpace(s.git("rev-parse", gitstore.LedgerRef)); now != second {
		t.Errorf("the clone's ledger was moved to %s", now)
	}
	check(t, os.RemoveAll(remote))
	is("no remote", second, online.Unknown, "")
	memory, err := filepath.Glob(filepath.Join(s.repo, ".git", "countersign", "tips", "*.json"))
	check(t, err)
	s.git("init", "-q", "-b", "main", "--bare", remote)
	s.git("push", "-q", "origin", "main", gitstore.LedgerRef)
	is("back again", second, online.Same, "")
	for _, name := range memory {
		check(t, os.WriteFile(name, []byte("{}"), 0o644))
	}
	is("the memory is damaged", second, online.Unknown, "reading the last tip seen")
}
