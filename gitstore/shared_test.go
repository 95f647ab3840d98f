package gitstore_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A remote is a repository on a server, and the clones of it.
type remote struct {
	t    *testing.T
	repo teststand.Repo
	url  string
	full bool   // clones have the ledger themselves
	ref  string // "" is the default
	wire wire.Options
}

func newRemote(t *testing.T, full bool) (remote, *teststand.Server) {
	t.Helper()
	server := teststand.NewServer(t, teststand.Options{})
	return remote{t: t, repo: server.Bare("r"), url: server.URL("r"), full: full}, server
}

// share opens the remote's ledger from a clone.
func (r remote) share(w work, o gitstore.LedgerOptions) *gitstore.Shared {
	r.t.Helper()
	ref := cmp.Or(r.ref, gitstore.LedgerRef)
	l, err := w.open().Ledger(ref, o)
	fatal(r.t, err)
	server, err := wire.Open(r.url, r.wire)
	fatal(r.t, err)
	shared, err := l.Share(gitstore.Place{Server: server, Ref: ref, Of: server.Remote()}, func(context.Context, int) {})
	fatal(r.t, err)
	return shared
}

// clone makes another clone.
func (r remote) clone() work { return newWork(r.t, map[string]string{"a": "1\n"}) }

// Open opens the ledger from a new clone.
func (r remote) Open() writing.Store {
	s := r.share(r.clone(), gitstore.LedgerOptions{Pages: page.Versions{}})
	if r.full {
		if _, err := s.Sync(r.t.Context(), false, nil); err != nil {
			r.t.Fatal(err)
		}
	}
	return s
}

// sound fails the test unless the remote's ledger is a line of n commits.
func (r remote) sound(n int) {
	r.t.Helper()
	work{r.t, r.repo.Dir}.sound(n)
}

func TestT52SharedSuite(t *testing.T) {
	for name, full := range map[string]bool{"partial": false, "full": true} {
		if full && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			storetest.StoreSuite(t, func(t *testing.T) storetest.Ledger {
				r, _ := newRemote(t, full)
				return r
			})
		})
	}
}

func add(t *testing.T, s writing.Store, line string) {
	t.Helper()
	fatal(t, storetest.AppendLine(s, line))
}

// TestSharedLeavesTheCloneAlone: no ref, no FETCH_HEAD, no shallow file, and of
// a partial copy not even an object.
func TestSharedLeavesTheCloneAlone(t *testing.T) {
	r, _ := newRemote(t, false)
	w := r.clone()
	refs, objects := w.git("for-each-ref"), w.git("count-objects", "-v")
	s := r.share(w, gitstore.LedgerOptions{Pages: page.Versions{}})
	add(t, s, "one")
	add(t, r.Open(), "two")
	add(t, s, "three")
	if got := w.git("for-each-ref"); got != refs {
		t.Errorf("refs: %s", got)
	}
	if got := w.git("count-objects", "-v"); got != objects {
		t.Errorf("objects: %s", got)
	}
	for _, name := range []string{"shallow", "FETCH_HEAD"} {
		if _, err := os.Stat(w.path(".git/" + name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there", name)
		}
	}
	storetest.CheckLines(t, r.Open(), []string{"one", "two", "three"})
	r.sound(3)
}

// TestT10SharedList: the transactions of one patch, however many, are asked for and read in a few requests.
func TestT10SharedList(t *testing.T) {
	r, server := newRemote(t, false)
	patchID := canon.Hex([]byte("the patch"))
	entries := entriesOf(0, 30)
	paths := []string{ledger.ProposedDir(patchID)}
	for i, e := range entries {
		for name := range maps.Clone(e.Files) {
			if writing.IsListed(name) {
				id := strings.TrimSuffix(path.Base(name), ".json")
				e.Files[path.Join(paths[0], path.Base(name))] = fmt.Appendf(nil, `{"base_commit":"","transaction_id":"%s"}`+"\n", id)
			} else if path.Base(name) == ledger.EventsFile {
				paths = append(paths, path.Dir(name))
			}
		}
		entries[i] = e
	}
	here := r.Open()
	if _, err := here.Append(t.Context(), "", entries...); err != nil {
		t.Fatal(err)
	}
	server.Reset()
	snap, err := r.share(r.clone(), gitstore.LedgerOptions{Pages: page.Versions{}}).Snapshot(t.Context(), paths...)
	fatal(t, err)
	if all, err := lookup.Proposals(snap.Tree, patchID); err != nil || len(all) != 30 {
		t.Errorf("%d listed, %v", len(all), err)
	}
	for _, dir := range paths[1:] {
		if _, err := fs.ReadFile(snap.Tree, path.Join(dir, ledger.EventsFile)); err != nil {
			t.Error(err)
		}
	}
	if n := len(server.Requests()); n > 12 {
		t.Errorf("%d requests", n)
	}
}

// TestSharedHostSize: what is asked for and sent does not grow with what else
// the server's repository holds, nor with the ledger.
func TestSharedHostSize(t *testing.T) {
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		t.Skip("COUNTERSIGN_LONG=1 runs it")
	}
	r, server := newRemote(t, false)
	noise := make([]byte, 1<<20)
	_, _ = rand.Read(noise)
	r.repo.Commit("refs/heads/main", map[string]string{"large": hex.EncodeToString(noise)})
	bareLedgerAt(t, r.repo.Dir, 2000)
	server.Reset()
	day := ledger.Day(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))
	s := r.share(r.clone(), gitstore.LedgerOptions{Pages: page.Versions{}})
	snap, err := s.Snapshot(t.Context(), day, "denied/00", "proposed/00")
	fatal(t, err)
	if _, err := s.Append(t.Context(), snap.Tip, entryOf(30_000)); err != nil {
		t.Fatal(err)
	}
	var in, out int64
	requests := server.Requests()
	for _, q := range requests {
		in, out = in+q.In, out+q.Out
	}
	if len(requests) > 7 || in > 100_000 || out > 400_000 {
		t.Errorf("%d requests, %d bytes sent, %d received", len(requests), in, out)
	}
	t.Logf("%d requests, %d bytes sent, %d received", len(requests), in, out)
}

// TestSharedCacheGone: where the objects that were fetched are gone, as when they
// begin anew, all that is needed of the last tip seen is fetched again, also from
// a server that gives nothing by its hash.
func TestSharedCacheGone(t *testing.T) {
	verify := func(h history.Reader, _ string) (found []history.Finding, complete bool, err error) {
		var mu sync.Mutex
		err = h.Commits(func(c history.Commit) {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, c.Problems...)
		})
		return found, true, err
	}
	for _, o := range []teststand.Options{{}, {NoFilter: true, NoAnyWant: true}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			server := teststand.NewServer(t, o)
			r := remote{t: t, repo: server.Bare("r"), url: server.URL("r")}
			for i := range 3 {
				add(t, r.Open(), fmt.Sprint("line", i))
			}
			w := r.clone()
			look := func() *gitstore.Shared {
				t.Helper()
				s := r.share(w, gitstore.LedgerOptions{Pages: page.Versions{}, Verify: verify})
				if _, err := s.Snapshot(t.Context()); err != nil {
					t.Error(err)
				}
				return s
			}
			look()
			for i := range 3 {
				add(t, r.Open(), fmt.Sprint("later", i))
			}
			fatal(t, os.RemoveAll(w.path(".git/countersign/ledgers")))
			storetest.CheckLines(t, look(), []string{"line0", "line1", "line2", "later0", "later1", "later2"})
		})
	}
}

// TestT52WritersAtOnce: more writers than the suite has, each a clone of its own, over http.
func TestT52WritersAtOnce(t *testing.T) {
	writers, err := strconv.Atoi(os.Getenv("COUNTERSIGN_WRITERS"))
	if err != nil {
		t.Skip("COUNTERSIGN_WRITERS is how many")
	}
	r, _ := newRemote(t, false)
	storetest.Writers(t, r, writers, 10)
	r.sound(10 * writers)
}

// TestT61Faults: whatever happens between here and the server, an append is
// done once or is an error, and running it again ends as if nothing had been.
// COUNTERSIGN_FAULTS is for every fault at every request.
func TestT61Faults(t *testing.T) {
	tried := append(faults(), teststand.Fault{Kind: teststand.Slow, Delay: 20 * time.Millisecond})
	all := os.Getenv("COUNTERSIGN_FAULTS") != ""
	for i, fault := range tried {
		requests := []int{1, 2, 3, 4}
		if !all {
			requests = []int{1 + i%4}
		}
		for _, full := range []bool{false, true} {
			// The nth request fails; then that and all after it.
			for _, forever := range []bool{false, true} {
				if !all && (full || forever) {
					continue
				}
				t.Run(fmt.Sprintf("%s/full=%v/forever=%v", fault, full, forever), func(t *testing.T) {
					t.Parallel()
					r, server := newRemote(t, full)
					add(t, r.Open(), "before")
					total := 1
					for _, n := range requests {
						s := r.Open()
						count := 0
						var mu sync.Mutex
						server.SetFault(func(_ int, _ *http.Request) teststand.Fault {
							mu.Lock()
							defer mu.Unlock()
							if count++; count == n || forever && count > n {
								return fault
							}
							return teststand.Fault{}
						})
						line := fmt.Sprint("line", n)
						err := storetest.AppendLine(s, line)
						server.SetFault(nil)
						lines := r.lines()
						there := slices.Contains(lines, line)
						if err == nil && !there {
							t.Fatalf("request %d: done, but it is not there", n)
						}
						if err != nil && !there {
							add(t, s, line) // the same clone goes on
						}
						total++
						if got := r.lines(); len(got) != total {
							t.Fatalf("request %d: %v", n, got)
						}
					}
					r.sound(total)
				})
			}
		}
	}
}

// lines are what the remote's ledger has, by git alone.
func (r remote) lines() []string {
	r.t.Helper()
	return strings.Fields(work{r.t, r.repo.Dir}.git("show", gitstore.LedgerRef+":lines"))
}

// TestT61HookRefuses: the server's own rules are an error, and say why.
func TestT61HookRefuses(t *testing.T) {
	r, _ := newRemote(t, false)
	add(t, r.Open(), "one")
	r.repo.Refuse("the ledger is frozen until Monday")
	err := storetest.AppendLine(r.Open(), "two")
	if err == nil || !strings.Contains(err.Error(), "frozen until Monday") {
		t.Errorf("%v", err)
	}
	if got := r.lines(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// TestT51Rewritten: a tip that does not descend from the one seen is refused by
// readers and writers, until a person accepts it, which is on record.
func TestT51Rewritten(t *testing.T) {
	for name, full := range map[string]bool{"partial": false, "full": true} {
		if full && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r, _ := newRemote(t, full)
			w := r.clone()
			open := func() *gitstore.Shared {
				s := r.share(w, gitstore.LedgerOptions{Pages: page.Versions{}})
				if full {
					if _, err := s.Sync(t.Context(), false, nil); err != nil {
						t.Log(err)
					}
				}
				return s
			}
			for _, line := range []string{"one", "two", "three"} {
				add(t, open(), line)
			}
			bare := work{t, r.repo.Dir}
			old := bare.git("rev-parse", gitstore.LedgerRef)
			bare.git("update-ref", gitstore.LedgerRef, gitstore.LedgerRef+"~2")
			add(t, r.Open(), "somebody else's")
			now := bare.git("rev-parse", gitstore.LedgerRef)

			var rollback *gitstore.RollbackError
			_, err := open().Snapshot(t.Context())
			if !errors.As(err, &rollback) || rollback.Tip != now || rollback.Seen != old {
				t.Errorf("read: %v", err)
			}
			if err := storetest.AppendLine(open(), "four"); !errors.As(err, &rollback) {
				t.Errorf("append: %v", err)
			}
			// Somebody who has seen nothing, but was told.
			if _, err := r.share(r.clone(), gitstore.LedgerOptions{Pages: page.Versions{}, KnownTip: old}).Snapshot(t.Context()); !errors.As(err, &rollback) {
				t.Errorf("known tip: %v", err)
			}
			if _, err := r.share(r.clone(), gitstore.LedgerOptions{Pages: page.Versions{}, KnownTip: now}).Snapshot(t.Context()); err != nil {
				t.Errorf("known tip: %v", err)
			}

			record := func(tree fs.FS, remembered string) (writing.Entry, error) {
				files := fstest.MapFS{ledger.SchemaFile: {Data: writing.Schema("2026-01-02T03:04:05.000Z", "1.0")}}
				if raw, err := fs.ReadFile(tree, ledger.LedgerEventsFile); err == nil {
					files[ledger.LedgerEventsFile] = &fstest.MapFile{Data: raw}
				}
				return writing.OwnEntry(files, time.Unix(1795000000, 0), &ledger.AcceptTip{AcceptedTip: now, RememberedTip: remembered, Reason: "a backup"})
			}
			if _, err := open().AcceptTip(t.Context(), old, record); !errors.Is(err, fault.Refused) {
				t.Errorf("accepted what is not the tip: %v", err)
			}
			if _, err := open().AcceptTip(t.Context(), now, record); err != nil {
				t.Fatal(err)
			}
			if _, err := open().AcceptTip(t.Context(), bare.git("rev-parse", gitstore.LedgerRef), record); !errors.Is(err, fault.Refused) {
				t.Errorf("accepted twice: %v", err)
			}
			add(t, open(), "four")
			events, err := ledger.ReadLedgerEvents([]byte(bare.git("show", gitstore.LedgerRef+":events.jsonl")+"\n"), "1.0")
			if tip := events[0].(*ledger.AcceptTip); err != nil || len(events) != 1 || tip.AcceptedTip != now || tip.RememberedTip != old {
				t.Errorf("%+v %v", events, err)
			}
			if got := r.lines(); !slices.Equal(got, []string{"one", "somebody", "else's", "four"}) {
				t.Errorf("%v", got)
			}
			if full && w.git("for-each-ref", "--format=%(objectname)", "refs/agent/set-aside/") != old {
				t.Error("what the clone had is not kept")
			}
			// Gone is worse than rewritten.
			bare.git("update-ref", "-d", gitstore.LedgerRef)
			if _, err := open().Snapshot(t.Context()); !errors.As(err, &rollback) || rollback.Tip != "" {
				t.Errorf("gone: %v", err)
			}
		})
	}
}

// TestT52TwoProcessesOfOneClone: what another process of the clone remembers
// while this one asks the server is no reason to call the ledger rewritten.
func TestT52TwoProcessesOfOneClone(t *testing.T) {
	r, server := newRemote(t, false)
	w := r.clone()
	first, second := r.share(w, gitstore.LedgerOptions{Pages: page.Versions{}}), r.share(w, gitstore.LedgerOptions{Pages: page.Versions{}})
	add(t, first, "one")
	add(t, r.Open(), "somebody-else")
	var once sync.Once
	server.SetFault(func(n int, q *http.Request) teststand.Fault {
		if q.Method == http.MethodPost {
			once.Do(func() {
				server.SetFault(nil)
				add(t, first, "two")
			})
		}
		return teststand.Fault{}
	})
	if _, err := second.Snapshot(t.Context()); err != nil {
		t.Error(err)
	}
	add(t, second, "three")
	storetest.CheckLines(t, r.Open(), []string{"one", "somebody-else", "two", "three"})
}

// TestBranchLedger: the ledger can be a branch, which a forge's rules protect.
func TestBranchLedger(t *testing.T) {
	r, _ := newRemote(t, false)
	r.ref = "refs/heads/countersign-ledger"
	for i := range 2 {
		add(t, r.share(r.clone(), gitstore.LedgerOptions{Pages: page.Versions{}}), fmt.Sprint(i))
	}
	if n := (work{t, r.repo.Dir}).git("rev-list", "--count", r.ref); n != "2" {
		t.Errorf("%s commits", n)
	}
}

// TestSharedTransports: the same over ssh, and on a path.
func TestSharedTransports(t *testing.T) {
	repo := teststand.Bare(t, filepath.Join(t.TempDir(), "r.git"))
	ssh := teststand.NewSSH(t)
	for url, o := range map[string]wire.Options{
		repo.Dir:          {},
		ssh.URL(repo.Dir): {SSH: wire.SSH{Program: ssh.Program, Batch: true}},
	} {
		for range 2 {
			w := newWork(t, nil)
			s := remote{t: t, repo: repo, url: url, wire: o}.share(w, gitstore.LedgerOptions{Pages: page.Versions{}})
			add(t, s, "line"+shortOf(w.dir))
			if done, err := s.Sync(t.Context(), false, nil); err != nil || done.Tip != w.tip() {
				t.Errorf("%s: %+v %v", url, done, err)
			}
		}
	}
	work{t, repo.Dir}.sound(4)
}

func shortOf(dir string) string { return filepath.Base(filepath.Dir(dir)) + filepath.Base(dir) }

// TestSharedPages: who adds a first stage to a ledger, from a clone that has nothing of it, asks no more often
// because of its pages.
func TestSharedPages(t *testing.T) {
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		t.Skip("COUNTERSIGN_LONG=1 runs it")
	}
	entries := lives(t, make([]storetest.Life, 60)...)
	last := len(entries) - 1
	for !strings.HasPrefix(entries[last].Message, "review: ") {
		last--
	}
	r, server := newRemote(t, false)
	if _, err := ledgerAt(t, r.repo.Dir).Append(t.Context(), "", entries[:last]...); err != nil {
		t.Fatal(err)
	}
	server.Reset()
	s := r.share(r.clone(), gitstore.LedgerOptions{Pages: page.Versions{}})
	paths := []string{ledger.Day(entries[last].When)}
	for name := range entries[last].Files {
		if strings.HasPrefix(name, "proposed/") {
			paths = append(paths, path.Dir(name), ledger.DeniedDir(path.Base(path.Dir(name))))
		}
	}
	snap, err := s.Snapshot(t.Context(), paths...)
	fatal(t, err)
	if _, err := s.Append(t.Context(), snap.Tip, entries[last]); err != nil {
		t.Fatal(err)
	}
	for _, q := range server.Requests() {
		t.Logf("%d bytes sent, %d received", q.In, q.Out)
	}
	if n := len(server.Requests()); n > 5 {
		t.Errorf("%d requests", n)
	}
	if report, err := auditOf(t, r.repo.Dir, "", nil); err != nil || !report.OK || report.Count != 0 {
		t.Errorf("%v %+v", err, report.Findings)
	}
}
