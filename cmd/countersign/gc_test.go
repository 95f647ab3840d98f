package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// T80 Several processes write the ledger and branches while git deletes, without
// a pause, whatever no ref needs; one is killed again and again. Every command
// ends well, nothing is missing afterwards, and nothing is held any more.
// COUNTERSIGN_GC sets how many transactions there are.
func TestT80CollectedBesideWriters(t *testing.T) {
	long(t, "COUNTERSIGN_GC")
	t.Parallel()
	transactions, writers := 8, 4
	if n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_GC")); err == nil {
		transactions, writers = n, 8
	}
	s := newSandbox(t, map[string]string{"a": "1\n"})
	s.git("init", "-q", "-b", "main")
	s.commit()
	s.git("branch", "fixes")
	remote := filepath.Join(s.dir, "remote.git")
	s.git("clone", "-q", "--bare", s.repo, remote)
	s.git("remote", "add", "origin", remote)
	s.run(0, "review", "--push", "--patch", s.newFile("first"))
	shared := s // a clone with the ledger's own ref, whose writers share it
	shared.repo = filepath.Join(s.dir, "shared")
	s.git("clone", "-q", remote, shared.repo)
	shared.run(0, "sync")

	stop, collected := make(chan struct{}), make(chan int, 2)
	go s.collect(stop, collected)
	go shared.collect(stop, collected)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := w; n < transactions; n += writers {
				at := s
				if w%4 == 3 {
					at = shared
				}
				if err := at.wholeLife(n, w); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Go(func() { // one that never gets far
		for n := range transactions / 2 {
			cmd := s.command("review", "--no-push", "--patch", s.newFile(fmt.Sprint("killed", n)))
			check(t, cmd.Start())
			time.Sleep(rand.N(60 * time.Millisecond))
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	group.Wait()
	close(stop)
	t.Logf("%d transactions by %d processes at once, git collected %d times", transactions, writers, <-collected+<-collected)

	for _, at := range []playground{s, shared} {
		at.run(0, "review", "--no-push", "--patch", s.newFile("last of "+filepath.Base(at.repo)))
		held, err := filepath.Glob(filepath.Join(at.repo, ".git", "objects", "countersign-*"))
		keeps, err2 := filepath.Glob(filepath.Join(at.repo, ".git", "objects", "pack", "*.keep"))
		if len(held)+len(keeps) > 0 || err != nil || err2 != nil {
			t.Errorf("still held: %v %v %v %v", held, keeps, err, err2)
		}
		at.run(0, "sync")
	}
	s.run(0, "sync")
	s.git("gc", "-q", "--prune=now")
	s.git("fsck", "--strict", "--full")
	s.run(0, "audit")
	if out := s.git("ls-tree", "-r", "--name-only", "refs/agent/ledger", "transactions"); strings.Count(out, "/apply_result.json") != transactions {
		t.Errorf("%d results, want %d", strings.Count(out, "/apply_result.json"), transactions)
	}
	files := s.git("ls-tree", "--name-only", "fixes")
	for n := range transactions {
		if n%writers%4 == 0 && !strings.Contains(files, fmt.Sprintf("n%d\n", n)) {
			t.Errorf("n%d is not on the branch", n)
		}
	}
}

// collect lets git delete what no ref needs until stop is closed. That git loses
// a race is git's affair.
func (s playground) collect(stop <-chan struct{}, done chan<- int) {
	for n := 0; ; n++ {
		for _, args := range [][]string{{"gc", "-q", "--prune=now"}, {"repack", "-adq"}} {
			cmd := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
			cmd.Dir, cmd.Env = s.repo, s.env()
			_ = cmd.Run()
		}
		select {
		case <-stop:
			done <- n
			return
		default:
		}
	}
}

// newFile writes a patch that adds a file, and returns its name.
func (s playground) newFile(name string) string {
	file := filepath.Join(s.dir, name+".patch")
	text := fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+%[1]s\n", name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		panic(err)
	}
	return file
}

var transactionID = regexp.MustCompile(`tx_[0-9A-HJKMNP-TV-Z]{26}`)

// wholeLife takes one transaction to its end: on a branch that others move too,
// on a ref or a branch of its own, or with the ledger on the remote.
func (s playground) wholeLife(n, writer int) error {
	var tx string
	where := [][]string{{"--to", "branch", "--branch", "fixes"}, {"--to", "ref"}, {"--to", "branch"}, {"--to", "branch"}}[writer%4]
	for _, args := range [][]string{{"review", "-q", "--patch", s.newFile(fmt.Sprint("n", n))}, {"approve"}, append([]string{"apply"}, where...), {"validate"}} {
		args = append(args, map[bool]string{true: "--push", false: "--no-push"}[writer%4 == 3])
		if tx != "" {
			args = append(args, tx)
		}
		code, out, errs := runCode(s.command(args...))
		if code != 0 {
			return fmt.Errorf("%v: exit code %d\n%s%s", args, code, out, errs)
		}
		if tx == "" {
			tx = transactionID.FindString(out)
		}
	}
	return nil
}
