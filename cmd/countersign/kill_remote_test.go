package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// remoteKilled is a change on its way through the pipeline in a clone, with the
// ledger on a remote: what there is before the steps that are killed.
type remoteKilled struct {
	playground
	server *teststand.Server
	way    remoteWay
	steps  []remoteStep
	want   remoteEnd // what is there after steps that are left alone
	n      int       // copies so far
}

// A remoteWay is what is run. Anywhere says that another clone may go on.
type remoteWay struct {
	name     string
	anywhere bool
	steps    func(tx, patch string) []remoteStep
}

// A remoteStep is one command of the program, which is run until it ends with
// this exit code. It takes so long when it is left alone, and moves the remote's
// ledger so often; one that is spared is not killed.
type remoteStep struct {
	args   []string
	exit   int
	spared bool

	took  time.Duration
	moves int
}

var remoteWays = []remoteWay{
	{"worktree", false, func(tx, _ string) []remoteStep { return []remoteStep{{args: []string{"run", tx}}} }},
	{"branch", true, func(tx, _ string) []remoteStep { return []remoteStep{{args: []string{"run", tx, "--to", "branch"}}} }},
	{"patch", false, func(patchID, patch string) []remoteStep {
		return []remoteStep{{args: []string{"run", "--patch", patch}, exit: console.ExitPending}, {args: []string{"approve", patchID}, spared: true}, {args: []string{"run", "--patch", patch}}}
	}},
}

// T41 The process is killed at a random moment of a run whose ledger is on a
// remote, and the run is made again, there or in another clone: it ends as if
// nothing had happened. COUNTERSIGN_REMOTE_KILLS sets how often.
func TestT41RemoteKilled(t *testing.T) {
	long(t, "COUNTERSIGN_REMOTE_KILLS")
	t.Parallel()
	kills := remoteKills(3)
	for i, way := range remoteWays {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			k := newRemoteKilled(t, way)
			landed, part := map[string]int{}, (kills+i)/len(remoteWays)
			for killed := 0; killed < part && landed[survived] < part+10; {
				where := k.kill(float64(killed)/float64(part), 1/float64(part))
				for _, w := range where {
					landed[w]++
					if w != survived {
						killed++
					}
				}
				if t.Failed() {
					t.Fatalf("killed: %q", where)
				}
			}
			if way.anywhere {
				k.atOnce()
			}
			t.Logf("the steps take %v; the kills landed: %v", k.steps, landed)
			if landed[survived] >= part+10 {
				t.Error("most were over before they were killed")
			}
		})
	}
}

// remoteKills is how many kills a test makes.
func remoteKills(few int) int {
	if n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_REMOTE_KILLS")); err == nil {
		return n
	}
	return few
}

var remoteFiles = map[string]string{"changed.txt": "old\n", "dir/gone.txt": "gone\n", "kept.txt": "kept\n"}

const remotePatch = `diff --git a/added.txt b/added.txt
new file mode 100644
--- /dev/null
+++ b/added.txt
@@ -0,0 +1 @@
+added
diff --git a/changed.txt b/changed.txt
--- a/changed.txt
+++ b/changed.txt
@@ -1 +1 @@
-old
+new
diff --git a/dir/gone.txt b/dir/gone.txt
deleted file mode 100644
--- a/dir/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
`

func newRemoteKilled(t *testing.T, way remoteWay) *remoteKilled {
	k := &remoteKilled{playground: newSandbox(t, remoteFiles), server: teststand.NewServer(t, teststand.Options{}), way: way}
	bare := k.server.Bare("before.git")
	check(t, os.RemoveAll(filepath.Join(bare.Dir, "hooks"))) // fewer files to copy
	k.git("init", "-q", "-b", "main", "--template=")
	k.git("config", "user.name", "Ada")
	k.git("config", "user.email", "ada@localhost")
	k.commit()
	k.git("remote", "add", "origin", k.server.URL("before.git"))
	k.git("push", "-q", "origin", "main")
	patch := filepath.Join(k.dir, "p.patch")
	check(t, os.WriteFile(patch, []byte(remotePatch), 0o644))
	out, _ := k.run(0, "review", "--patch", patch, "--dry-run", "--json")
	var dry struct {
		PatchID string `json:"patch_id"`
	}
	check(t, json.Unmarshal([]byte(out), &dry))
	tx := dry.PatchID
	if way.name != "patch" {
		out, _ := k.run(0, "review", "--push", "--patch", patch, "--json")
		var report struct {
			TransactionID string `json:"transaction_id"`
		}
		check(t, json.Unmarshal([]byte(out), &report))
		tx = report.TransactionID
		k.run(0, "approve", "--push", tx)
	}
	k.steps = way.steps(tx, patch)
	k.measure()
	return k
}

// measure makes the steps without a kill, for how long they take and for what
// they leave.
func (k *remoteKilled) measure() {
	k.t.Helper()
	s := k.copied()
	for i := range k.steps {
		step, before, began := &k.steps[i], s.moves(), time.Now()
		s.run(step.exit, step.pushed()...)
		step.took, step.moves = time.Since(began), s.moves()-before
	}
	k.want = s.end()
	s.remove()
	for what, n := range map[string]int{"apply/start": 1, "apply/complete": 1, "validate/complete": 1, "tx/close": 1} {
		if got := strings.Count(strings.Join(k.want.types, " "), what); got != n {
			k.t.Fatalf("left alone, there are %d of %s", got, what)
		}
	}
}

func (s remoteStep) pushed() []string { return append([]string{"--push"}, s.args...) }

func (s remoteStep) String() string { return fmt.Sprintf("%v in %d moves", s.took, s.moves) }

// kill makes the steps at a new place, each killed once, or more often, before
// it is left alone. At and width say which part of a step's time is meant. It
// returns where the kills landed.
func (k *remoteKilled) kill(at, width float64) (where []string) {
	k.t.Helper()
	s := k.copied()
	for i := range k.steps {
		step := &k.steps[i]
		for more := !step.spared; more; more = rand.N(4) == 0 {
			where = append(where, s.killed(step, at+width*rand.Float64()))
			if k.way.anywhere && rand.N(3) == 0 {
				s.anotherClone()
			}
		}
		if code, _, errs := runCode(s.command(step.pushed()...)); code != step.exit {
			k.t.Fatalf("after %q: %v ended with %d, want %d\n%s", where, step.args, code, step.exit, errs)
		}
	}
	s.finished(k.want, fmt.Sprintf("%q", where))
	s.remove()
	return where
}

// atOnce makes a step in several clones at the same time: all end well, and
// together they leave what one leaves.
func (k *remoteKilled) atOnce() {
	k.t.Helper()
	s, step := k.copied(), k.steps[0]
	var runs []process
	for range 3 {
		runs = append(runs, s.begun(step.pushed()...))
		s.anotherClone()
	}
	runs = append(runs, s.begun(step.pushed()...))
	for _, run := range runs {
		if err := <-run.end; err != nil {
			k.t.Errorf("at once: %v\n%s", err, run.Stderr)
		}
	}
	s.finished(k.want, "at once")
	s.remove()
}

// survived is where a kill landed that came too late.
const survived = "after its end"

// killed begins a step and kills it: at a part of its time, or soon after the
// remote's ledger was moved, or after the change was made.
func (s *killSite) killed(step *remoteStep, at float64) (where string) {
	s.t.Helper()
	began := time.Now()
	p := s.begun(step.pushed()...)
	wait := time.Duration(at * float64(step.took))
	short := rand.N(step.took / time.Duration(2*step.moves))
	switch rand.N(4) {
	case 0:
		before, n := s.remoteTip(), 1+rand.N(step.moves)
		await(p.end, func() bool {
			if tip := s.remoteTip(); tip != before {
				before, n = tip, n-1
			}
			return n == 0
		})
		wait = short
	case 1:
		await(p.end, s.changed)
		wait = short
	}
	select {
	case <-time.After(wait):
		_ = p.Process.Kill() // it may be over
		<-p.end
	case <-p.end:
	}
	if p.ProcessState.Exited() {
		step.took = min(step.took, time.Since(began)) // sooner next time
		return survived
	}
	return s.lastStage()
}
