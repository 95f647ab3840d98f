package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const killFiles = 300

// killed is an approved change of 300 files, its tree before and after, and how
// long an apply takes that is left alone.
type killed struct {
	playground
	tx            string
	before, after map[string]string
	events        []string // the types of its events
	whole         time.Duration
	writing       time.Duration // of that from the journal on
	placing       time.Duration // of that from the first file that goes
}

// T41 The process is killed at a random moment of a run. Each file is old or
// new, the ledger is sound, and running again ends as if nothing had happened.
// COUNTERSIGN_KILLS sets how often.
func TestT41Killed(t *testing.T) {
	long(t, "COUNTERSIGN_KILLS")
	t.Parallel()
	kills := 1
	if n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_KILLS")); err == nil {
		kills = n
	}
	k := newKilled(t)
	landed := map[string]int{}
	for n := range kills {
		landed[k.kill(n)]++
		if t.Failed() {
			t.Fatalf("kill %d", n)
		}
	}
	t.Logf("a run takes up to %v, at least %v of it to write and %v to put in place; %d kills landed: %v", k.whole, k.writing, k.placing, kills, landed)
	if hits := landed[staging] + landed[placing]; hits < kills/4 {
		t.Errorf("only %d of %d kills hit the write", hits, kills)
	}
}

func newKilled(t *testing.T) *killed {
	k := &killed{before: map[string]string{}, after: map[string]string{}}
	for i := range killFiles {
		name := fmt.Sprintf("d%d/e%02d/f%03d.txt", i%3, i%20, i)
		old := strings.Repeat(fmt.Sprintf("line of file %d\n", i), 20)
		if i%10 < 8 {
			k.before[name] = old
		}
		if i%10 != 7 {
			k.after[name] = "first\n" + old
		}
	}
	k.playground = newSandbox(t, k.before)
	k.git("init", "-q", "-b", "main")
	k.commit()
	k.become(k.after)
	k.git("add", "-A")
	patch := filepath.Join(k.dir, "p.patch")
	check(t, os.WriteFile(patch, []byte(k.git("diff", "--cached", "--no-renames")), 0o644))
	k.git("reset", "-q", "--hard")
	out, _ := k.run(0, "review", "--patch", patch, "--json")
	var report struct {
		TransactionID string `json:"transaction_id"`
	}
	check(t, json.Unmarshal([]byte(out), &report))
	k.tx = report.TransactionID
	k.run(0, "approve", k.tx)
	k.git("repack", "-a", "-d", "-q") // fewer files to copy
	k.measure()
	return k
}

func (k *killed) become(files map[string]string) {
	k.t.Helper()
	for i := range 3 {
		check(k.t, os.RemoveAll(filepath.Join(k.repo, fmt.Sprint("d", i))))
	}
	for name, content := range files {
		k.write(name, content)
	}
}

// copied is the same repository at another place.
func (k *killed) copied(name string) playground {
	k.t.Helper()
	s := k.playground
	s.repo = filepath.Join(k.dir, name)
	check(k.t, os.CopyFS(s.repo, os.DirFS(k.repo)))
	return s
}

// measure runs without a kill.
func (k *killed) measure() {
	k.t.Helper()
	k.writing, k.placing = time.Hour, time.Hour
	for n := range 3 {
		s := k.copied(fmt.Sprint("measure", n))
		began := time.Now()
		over := s.started(k.tx)
		await(over.end, s.recorded)
		writing := time.Now()
		await(over.end, k.begun(s))
		placing := time.Now()
		await(over.end, func() bool { return !s.recorded() })
		k.writing, k.placing = min(k.writing, time.Since(writing)), min(k.placing, time.Since(placing))
		check(k.t, <-over.end)
		k.whole = max(k.whole, time.Since(began))
		k.events = s.eventTypes(k.tx)
		check(k.t, os.RemoveAll(s.repo))
	}
}

// process is a run that was started; its end can be received once.
type process struct {
	*exec.Cmd
	end chan error
}

func (s playground) started(tx string) process {
	s.t.Helper()
	p := process{s.command("run", tx), make(chan error, 1)}
	check(s.t, p.Start())
	go func() { p.end <- p.Wait() }()
	return p
}

// await returns when something is so, or the process has ended.
func await(end chan error, so func() bool) {
	for !so() && len(end) == 0 {
		time.Sleep(100 * time.Microsecond)
	}
}

func (s playground) journals() []string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.repo, ".git/countersign/apply-*.json"))
	check(s.t, err)
	return found
}

// recorded reports whether a write is under way.
func (s playground) recorded() bool { return len(s.journals()) > 0 }

// begun reports whether the first of the files that go is gone.
func (k *killed) begun(s playground) func() bool {
	var going []string
	for name := range k.before {
		if _, stays := k.after[name]; !stays {
			going = append(going, name)
		}
	}
	first := filepath.Join(s.repo, slices.Min(going))
	return func() bool {
		_, err := os.Lstat(first)
		return errors.Is(err, fs.ErrNotExist)
	}
}

// kill kills one run and says where it was: anywhere, while it writes, or
// while it puts files in place.
func (k *killed) kill(n int) (where string) {
	k.t.Helper()
	s := k.copied(fmt.Sprint("kill", n))
	p := s.started(k.tx)
	wait := k.whole
	switch n % 4 {
	case 1, 2:
		await(p.end, s.recorded)
		wait = k.writing
	case 3:
		await(p.end, k.begun(s))
		wait = k.placing
	}
	select {
	case <-time.After(rand.N(wait)):
		_ = p.Process.Kill() // it may be over
		<-p.end
	case err := <-p.end:
		check(k.t, err)
	}
	where = k.where(s)
	if out := s.git("fsck", "--strict", "--no-dangling"); out != "" {
		k.t.Errorf("%s: git fsck: %s", where, out)
	}
	s.run(0, "run", k.tx)
	k.finished(s, where)
	check(k.t, os.RemoveAll(s.repo))
	return where
}

// Where a kill may land.
const (
	early    = "before the intent is recorded"
	intended = "before the write"
	staging  = "while new content is written"
	placing  = "while files are put in place"
	written  = "before the outcome is recorded"
	complete = "after that"
)

// where tells how far a run came, and checks that each file is old or new.
func (k *killed) where(s playground) string {
	k.t.Helper()
	old, fresh := 0, 0
	for name := range maps.Keys(k.all()) {
		data, err := os.ReadFile(filepath.Join(s.repo, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.t.Error(err)
		}
		before, was := k.before[name]
		after, will := k.after[name]
		switch {
		case err == nil == will && string(data) == after:
			fresh++
		case err == nil == was && string(data) == before:
			old++
		default:
			k.t.Errorf("%s is neither old nor new: %q", name, data)
		}
	}
	types := s.eventTypes(k.tx)
	switch {
	case slices.Contains(types, "apply/complete"):
		return complete
	case !slices.Contains(types, "apply/start"):
		return early
	case fresh == 0 && len(s.journals()) == 0:
		return intended
	case fresh == 0:
		return staging
	case old > 0 || len(s.journals()) > 0:
		return placing
	}
	return written
}

func (k *killed) all() map[string]string {
	all := maps.Clone(k.before)
	maps.Copy(all, k.after)
	return all
}

// finished checks what an undisturbed run leaves: the new files and nothing
// else, and the same events, each once.
func (k *killed) finished(s playground, where string) {
	k.t.Helper()
	got := map[string]string{}
	check(k.t, filepath.WalkDir(s.repo, func(p string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(s.repo, p)
		switch {
		case err != nil:
			return err
		case name == ".git":
			return fs.SkipDir
		case !d.IsDir():
			got[filepath.ToSlash(name)] = s.read(name)
		}
		return nil
	}))
	if !maps.Equal(got, k.after) {
		k.t.Errorf("%s: the tree has %d files, or other ones: %v", where, len(got), slices.Sorted(maps.Keys(got)))
	}
	if left := s.journals(); len(left) > 0 {
		k.t.Errorf("%s: %v is left", where, left)
	}
	if got := s.eventTypes(k.tx); !slices.Equal(got, k.events) {
		k.t.Errorf("%s: the events are %v, want %v", where, got, k.events)
	}
	if out := s.git("log", "--format=%s", "refs/agent/ledger"); strings.Count(out, "apply: SUCCESS") != 1 {
		k.t.Errorf("%s: the ledger's commits are\n%s", where, out)
	}
	s.run(0, "validate", k.tx)
}

// eventTypes reads the events with plain git.
func (s playground) eventTypes(tx string) []string {
	s.t.Helper()
	var types []string
	for line := range strings.Lines(s.git("ls-tree", "-r", "--name-only", "refs/agent/ledger", "transactions")) {
		name := strings.TrimSpace(line)
		if !strings.HasSuffix(name, "/"+tx+"/events.jsonl") {
			continue
		}
		for event := range strings.Lines(s.git("show", "refs/agent/ledger:"+name)) {
			var e struct{ Type string }
			check(s.t, json.Unmarshal([]byte(event), &e))
			types = append(types, e.Type)
		}
	}
	return types
}
