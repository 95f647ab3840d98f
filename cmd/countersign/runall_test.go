package main

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// crowd is a repository with n open transactions, each for a file of its own,
// of which the first are approved.
func crowd(t testing.TB, n, approved int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must := func(err error) {
		t.Helper()
		check(t, err)
	}
	for i := range n {
		name := filepath.Join(dir, crowdFile(i))
		must(os.MkdirAll(filepath.Dir(name), 0o777))
		must(os.WriteFile(name, []byte(crowdText(i, "old")), 0o666))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.email", "tester"}, {"config", "core.autocrlf", "false"}, {"add", "-A"}, {"commit", "-q", "-m", "base"}} {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@localhost"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	clock := time.Now
	app := console.New(console.Process{Getenv: func(string) string { return "" }, Now: clock, Entropy: cryptorand.Reader})
	app.Flags.Dir, app.Flags.LedgerRef = dir, "refs/agent/ledger"
	s, err := session.Open(app)
	must(err)
	r := s.Runner
	for i := range n {
		in, err := input.Diff([]byte(crowdPatch(i)), fmt.Sprintf("change %d", i))
		must(err)
		made, err := review.Run(t.Context(), r, in, false)
		must(err)
		if i < approved {
			_, err = r.Decide(t.Context(), made.ID, pipeline.Ruling{Decision: ledger.Approve, Kind: "local"})
			must(err)
		}
	}
	return dir
}

func crowdFile(i int) string { return fmt.Sprintf("d%d/f%03d.txt", i%10, i) }

func crowdText(i int, last string) string {
	return strings.Repeat(fmt.Sprintf("line of file %d\n", i), 20) + last + "\n"
}

func crowdPatch(i int) string {
	name, line := crowdFile(i), fmt.Sprintf(" line of file %d\n", i)
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -18,4 +18,4 @@\n%[2]s-old\n+new\n", name, strings.Repeat(line, 3))
}

// T53 A record that somebody damaged is a line of its own, and keeps nobody from
// the others.
func TestT53RunAllDamaged(t *testing.T) {
	t.Parallel()
	const all = 4
	dir := crowd(t, all, all)
	repo, err := gitstore.Open(dir)
	check(t, err)
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	check(t, err)
	snap, err := l.Snapshot(t.Context())
	check(t, err)
	ids, err := lookup.IDs(snap.Tree)
	check(t, err)
	files := map[string][]byte{}
	for i, spoil := range []func(string) string{
		func(string) string { return "no JSON" },
		func(raw string) string {
			return regexp.MustCompile(`"proposal":\{.*\}\},`).ReplaceAllString(raw, `"proposal":null},`)
		},
	} {
		name := path.Join(ledger.Dir(ids[i]), ledger.TransactionFile)
		raw, err := fs.ReadFile(snap.Tree, name)
		check(t, err)
		files[name] = []byte(spoil(string(raw)))
		if string(files[name]) == string(raw) {
			t.Fatalf("nothing is spoiled in %s", raw)
		}
	}
	_, err = l.Append(t.Context(), snap.Tip, writing.Entry{Message: "spoil\n", When: time.Now(), Files: files})
	check(t, err)
	var out bytes.Buffer
	app := console.Process{Args: []string{"-C", dir, "run", "--all"}, Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }, Now: time.Now, Entropy: cryptorand.Reader}
	if code := Main(app); code != console.ExitFailed || !strings.Contains(out.String(), " 2 applied, 2 does not verify") {
		t.Errorf("exit code %d\n%s", code, &out)
	}
	for _, id := range ids[:2] {
		if !strings.Contains(out.String(), id) {
			t.Errorf("%s is not told of\n%s", id, &out)
		}
	}
}

// T41 A run of many is killed at a random moment. Run again, it ends as if
// nothing had happened: each file has its content, each approved change is
// applied once. COUNTERSIGN_REMOTE_KILLS sets how often.
func TestT41RunAllKilled(t *testing.T) {
	long(t, "COUNTERSIGN_REMOTE_KILLS")
	t.Parallel()
	kills := 2
	if n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_REMOTE_KILLS")); err == nil {
		kills = n / 5
	}
	const all, approved = 10, 7
	start := crowd(t, all, approved)
	s := newSandbox(t, nil)
	run := func() (*exec.Cmd, time.Time) {
		cmd := exec.Command(s.bin, "-C", s.repo, "run", "--all", "--to", "worktree", "--json")
		check(t, cmd.Start())
		return cmd, time.Now()
	}
	whole, landed := time.Duration(0), 0
	for n := range kills + 1 {
		check(t, os.RemoveAll(s.repo))
		check(t, os.CopyFS(s.repo, os.DirFS(start)))
		cmd, began := run()
		if n > 0 { // the first is only measured
			time.Sleep(time.Duration(rand.Int64N(int64(whole))))
			if cmd.Process.Kill() == nil {
				landed++
			}
		}
		_ = cmd.Wait()
		if n == 0 {
			whole = time.Since(began)
		}
		again, _ := run()
		_ = again.Wait()
		if code := again.ProcessState.ExitCode(); code != console.ExitPending {
			t.Fatalf("kill %d: run again ends with %d", n, code)
		}
		crowdIsDone(t, s, all, approved)
	}
	t.Logf("%d kills landed in runs of %v", landed, whole)
}

// crowdIsDone checks a crowd of which the approved have been applied.
func crowdIsDone(t *testing.T, s playground, all, approved int) {
	t.Helper()
	for i := range all {
		want := crowdText(i, "old")
		if i < approved {
			want = crowdText(i, "new")
		}
		if got, err := os.ReadFile(filepath.Join(s.repo, crowdFile(i))); err != nil || string(got) != want {
			t.Errorf("%s has %q (%v)", crowdFile(i), got, err)
		}
	}
	events := s.git("grep", "-h", "-o", `"type":"[a-z/]*"`, "refs/agent/ledger", "--", "*/events.jsonl")
	for kind, want := range map[string]int{"apply/start": approved, "apply/complete": approved, "validate/complete": approved, "tx/close": approved, "approval/request": all} {
		if got := strings.Count(events, `"type":"`+kind+`"`); got != want {
			t.Errorf("%d events %s, want %d", got, kind, want)
		}
	}
	if out, err := exec.Command(s.bin, "-C", s.repo, "audit").CombinedOutput(); err != nil {
		t.Errorf("audit: %v\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(s.repo, ".git/countersign/applying-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// BenchmarkRunAll compares run --all over 500 open transactions, of which 200
// are approved, with git log -p of the ledger that comes of it; they take turns.
// The limit is five times as long.
func BenchmarkRunAll(b *testing.B) {
	const all, approved = 500, 200
	start, program := crowd(b, all, approved), filepath.Join(b.TempDir(), "countersign")
	self, err := os.ReadFile(os.Args[0])
	check(b, err)
	check(b, teststand.WriteFile(program, self))
	for _, to := range []string{"worktree", "ref"} {
		b.Run(to, func(b *testing.B) {
			var ours, theirs time.Duration
			for b.Loop() {
				b.StopTimer()
				dir := filepath.Join(b.TempDir(), "repo")
				check(b, os.CopyFS(dir, os.DirFS(start)))
				exec.Command("sync").Run()
				b.StartTimer()
				began := time.Now()
				cmd := exec.Command(program, "-C", dir, "run", "--all", "--to", to, "--json")
				out, err := cmd.Output()
				ours += time.Since(began)
				if cmd.ProcessState.ExitCode() != console.ExitPending {
					b.Fatalf("%v\n%.2000s", err, out)
				}
				if n := strings.Count(string(out), `"status":"completed"`); n != approved {
					b.Fatalf("%d completed", n)
				}
				began = time.Now()
				log := exec.Command("git", "-C", dir, "log", "-p", "refs/agent/ledger")
				check(b, log.Run())
				theirs += time.Since(began)
			}
			b.ReportMetric(ours.Seconds()/float64(b.N), "ours-s")
			b.ReportMetric(theirs.Seconds()/float64(b.N), "git-log-p-s")
			b.ReportMetric(float64(ours)/float64(theirs), "ratio")
		})
	}
}

// A countedStore counts the rounds of a batch: its appends, each a push of a shared
// ledger. One in some fails as if another writer had been faster.
type countedStore struct {
	writing.Store
	appends, entries, lose int
}

func (c *countedStore) Append(ctx context.Context, tip string, entries ...writing.Entry) (string, error) {
	c.appends++
	c.entries += len(entries)
	if c.lose > 0 && c.appends%c.lose == 1 {
		return "", writing.ErrMoved
	}
	return c.Store.Append(ctx, tip, entries...)
}

// However many transactions there are, the ledger is written a few times, and
// what comes of them does not depend on who was faster.
func TestRunAllRounds(t *testing.T) {
	long(t)
	t.Parallel()
	for _, c := range []struct{ lose, most int }{{0, 4}, {2, 8}} {
		const all, approved = 12, 8
		dir := crowd(t, all, approved)
		app := console.New(console.Process{Getenv: func(string) string { return "" }, Now: time.Now, Entropy: cryptorand.Reader, Stderr: io.Discard})
		app.Flags.Dir, app.Flags.LedgerRef = dir, "refs/agent/ledger"
		s, err := session.Open(app)
		check(t, err)
		r := s.Runner
		store := &countedStore{Store: r.Store, lose: c.lose}
		r.Store = store
		open, _, err := r.Open(t.Context())
		check(t, err)
		rows := make([]pipeline.Outcome, all)
		check(t, pipeline.AdvanceAll(t.Context(), r, open, pipeline.Ahead{Until: pipeline.StageValidate}, 3, func(i int, out pipeline.Outcome, _ error) { rows[i] = out }))
		for i, row := range rows {
			want := ledger.Awaiting
			if i < approved {
				want = ledger.Completed
			}
			if row.Status() != want || row.Transaction().TransactionID != open[i].TransactionID {
				t.Errorf("%d: %s, want it %s", i, row.Status(), want)
			}
		}
		if store.appends > c.most || store.entries < all-approved+3*approved {
			t.Errorf("%d appends of %d entries, want at most %d", store.appends, store.entries, c.most)
		}
		var out bytes.Buffer
		audit := console.Process{Args: []string{"-C", dir, "audit"}, Stdout: &out, Stderr: &out, Getenv: app.Getenv, Now: time.Now, Entropy: cryptorand.Reader}
		if code := Main(audit); code != 0 {
			t.Errorf("audit ends with %d\n%s", code, &out)
		}
	}
}
