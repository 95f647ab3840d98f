package gitstore_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// pushEntry appends one transaction to a remote's ledger, as a process of its
// own does.
func pushEntry(clone, url, number string) error {
	repo, err := gitstore.Open(clone)
	if err != nil {
		return err
	}
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	if err != nil {
		return err
	}
	server, err := wire.Open(url, wire.Options{})
	if err != nil {
		return err
	}
	s, err := l.Share(gitstore.Place{Server: server, Ref: gitstore.LedgerRef, Of: server.Remote()}, func(context.Context, int) {})
	if err != nil {
		return err
	}
	var i, stage int
	if _, err := fmt.Sscanf(number, "%d/%d", &i, &stage); err != nil {
		return err
	}
	e, paths := entryOf(i), []string{ledger.Day(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))}
	var dir string
	for name := range e.Files {
		if strings.HasPrefix(name, "proposed/") {
			paths = append(paths, path.Dir(name))
		} else if path.Base(name) == ledger.EventsFile {
			dir = path.Dir(name)
		}
	}
	if stage > 1 {
		paths = []string{dir}
	}
	snap, err := s.Snapshot(context.Background(), paths...)
	if err != nil {
		return err
	}
	if stage > 1 {
		events, err := fs.ReadFile(snap.Tree, dir+"/"+ledger.EventsFile)
		if err != nil {
			return err
		}
		e.Files = map[string][]byte{
			dir + "/" + ledger.EventsFile:      append(events, events[:200]...),
			dir + "/" + ledger.TransactionFile: fmt.Appendf(nil, "{\"stage\":%d}\n", stage),
		}
	}
	_, err = s.Append(context.Background(), snap.Tip, e)
	return err
}

// A pushBench is a bare repository with a ledger of 10,000 transactions, and
// perhaps much else, behind a server.
type pushBench struct {
	b      *testing.B
	server *teststand.Server
	repo   teststand.Repo
	url    string
	tip    string
	clone  string // of the host, without the ledger; made anew from this
	next   int
}

func newPushBench(b *testing.B, hostCommits int) *pushBench {
	p := &pushBench{b: b, server: teststand.NewServer(b, teststand.Options{}), next: 20_000}
	p.repo, p.url = p.server.Bare("r"), p.server.URL("r")
	var host bytes.Buffer
	for i := range hostCommits {
		fmt.Fprintf(&host, "commit refs/heads/main\ncommitter a <a@localhost> %d +0000\ndata 1\nx\nM 100644 inline d%02d/f%d.txt\ndata 8\n%08d", 1_700_000_000+i, i%100, i%1000, i)
		host.WriteByte('\n')
	}
	gitRun(b, p.repo.Dir, host.Bytes(), "fast-import", "--quiet")
	_, tip := bareLedgerAt(b, p.repo.Dir, 10_000)
	p.tip = tip
	gitRun(b, p.repo.Dir, nil, "gc", "--quiet")
	p.clone = filepath.Join(b.TempDir(), "clone")
	gitRun(b, b.TempDir(), nil, "clone", "-q", "--shared", "--no-checkout", "--single-branch", p.repo.Dir, p.clone)
	gitRun(b, p.clone, nil, "remote", "set-url", "origin", p.url)
	// What the clone borrows from is the host's history alone.
	fatal(b, os.Remove(filepath.Join(p.clone, ".git/objects/info/alternates")))
	gitRun(b, p.clone, nil, "fetch", "-q", p.repo.Dir, "main")
	return p
}

func (p *pushBench) reset() { gitRun(p.b, p.repo.Dir, nil, "update-ref", gitstore.LedgerRef, p.tip) }

func (p *pushBench) fresh() string {
	p.b.Helper()
	dir := filepath.Join(p.b.TempDir(), "w")
	fatal(p.b, os.CopyFS(dir, os.DirFS(p.clone)))
	return dir
}

// ours pushes a stage of a transaction: the first of a new one, or the next.
func (p *pushBench) ours(dir string, stage int) time.Duration {
	p.b.Helper()
	self, err := os.Executable()
	fatal(p.b, err)
	if stage == 1 {
		p.next++
	}
	cmd := exec.Command(self, fmt.Sprintf("%d/%d", p.next, stage))
	cmd.Env = append(os.Environ(), pushOne+"="+dir, pushURL+"="+p.url)
	cmd.Stderr = os.Stderr
	start := time.Now()
	fatal(p.b, cmd.Run())
	return time.Since(start)
}

// git fetches and pushes; making the commit in between is not counted.
func (p *pushBench) git(dir string) (both, push time.Duration) {
	p.b.Helper()
	start := time.Now()
	gitRun(p.b, dir, nil, "fetch", "-q", "--depth", "1", "origin", gitstore.LedgerRef)
	both = time.Since(start)
	made := strings.TrimSpace(string(gitRun(p.b, dir, nil, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit-tree", "-p", "FETCH_HEAD", "-m", "x", "FETCH_HEAD^{tree}")))
	start = time.Now()
	gitRun(p.b, dir, nil, "push", "-q", "origin", made+":"+gitstore.LedgerRef)
	push = time.Since(start)
	return both + push, push
}

// BenchmarkPush is one more stage pushed over http to a ledger of 10,000
// transactions: the first of a new transaction with nothing of the ledger here,
// beside git fetch --depth 1 and git push; then the next of that transaction,
// beside git push alone.
func BenchmarkPush(b *testing.B) {
	for _, commits := range []int{10, 50_000} {
		p := newPushBench(b, commits)
		for _, delay := range []time.Duration{0, 50 * time.Millisecond} {
			b.Run(fmt.Sprintf("host=%d/delay=%v", commits, delay), func(b *testing.B) {
				p.b = b
				p.server.SetFault(func(int, *http.Request) teststand.Fault {
					if delay == 0 {
						return teststand.Fault{}
					}
					return teststand.Fault{Kind: teststand.Slow, Delay: delay}
				})
				var cold, warm, fetchPush, push []time.Duration
				for range max(b.N, 7) {
					p.reset()
					dir := p.fresh()
					cold = append(cold, p.ours(dir, 1))
					warm = append(warm, p.ours(dir, 2))
					p.reset()
					both, alone := p.git(p.fresh())
					fetchPush, push = append(fetchPush, both), append(push, alone)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(cold), "ms-cold")
				b.ReportMetric(median(fetchPush), "ms-git-fetch+push")
				b.ReportMetric(median(cold)/median(fetchPush), "x-cold")
				b.ReportMetric(median(warm), "ms-warm")
				b.ReportMetric(median(push), "ms-git-push")
				b.ReportMetric(median(warm)/median(push), "x-warm")
			})
		}
	}
}
