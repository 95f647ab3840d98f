package look

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

var check = teststand.Fatal

// A world is a repository with a ledger, and the program that shows it.
type world struct {
	t    *testing.T
	dir  string
	tip  string
	said []byte // by Result
	// secret is what looks like one in a diff.
	secret string
	Program
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir()}
	check(t, exec.Command("git", "init", "-q", "-b", "main", w.dir).Run())
	w.Program = Program{
		Version: "1.0", Now: func() time.Time { return time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC) },
		Open: func() (Source, error) {
			repo, local, err := w.ledger()
			return Source{Repo: repo, Ledger: local, Ref: gitstore.LedgerRef}, err
		},
		Audit: func(_ context.Context, _ *gitstore.Repo, h *gitstore.History, o verdict.Options) (audit.Result, error) {
			return verdict.Of(h.History, o)
		},
		Masks: func() func([]byte) bool {
			return func(diff []byte) bool { return w.secret != "" && bytes.Contains(diff, []byte(w.secret)) }
		},
		Path: func(name string) string { return name }, Progress: func(string, int, int) {}, Say: t.Logf,
		Result: func(doc any, _ string) (err error) {
			w.said, err = json.Marshal(doc)
			return err
		},
	}
	return w
}

func (w *world) ledger() (*gitstore.Repo, *gitstore.Ledger, error) {
	repo, err := gitstore.Open(w.dir)
	if err != nil {
		return nil, nil, err
	}
	local, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	return repo, local, err
}

func (w *world) add(entries ...writing.Entry) {
	w.t.Helper()
	repo, local, err := w.ledger()
	check(w.t, err)
	defer repo.Close()
	w.tip, err = local.Append(w.t.Context(), w.tip, entries...)
	check(w.t, err)
}

// run runs site, and returns what it said.
func (w *world) run(args ...string) (map[string]any, error) {
	w.t.Helper()
	cmd := w.siteCommand()
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(w.t.Context())
	var said map[string]any
	check(w.t, json.Unmarshal(w.said, &said))
	return said, err
}

// files are all files of a site.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	check(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(raw)
		return err
	}))
	return out
}

// TestSiteLinks: every link of every page leads to a file of the site, and the page of a transaction leads to its patch
// and path where another one has them too.
func TestSiteLinks(t *testing.T) {
	w := newWorld(t)
	entries, err := storetest.Lives(storetest.Mixed(18)...)
	check(t, err)
	w.add(entries...)
	out := t.TempDir()
	_, err = w.run("--out", out)
	check(t, err)
	have := files(t, out)
	led := map[string]int{}
	for address, text := range have {
		if !strings.HasSuffix(address, ".html") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?:href|src)="([^"#]+)"`).FindAllStringSubmatch(text, -1) {
			to := path.Join(path.Dir(address), m[1])
			if _, ok := have[to]; !ok {
				t.Errorf("%s leads to %s, which is not there", address, m[1])
			}
			if kind, _, _ := strings.Cut(to, "/"); strings.HasPrefix(address, "tx/") {
				led[kind]++
			}
		}
	}
	if led["patch"] < 4 || led["path"] < 4 { // two are denied, each with another one
		t.Errorf("transactions lead to %v", led)
	}
}

// TestT77SiteTampered: once the ledger does not verify, the site that is written in the place of the one before has the finding.
func TestT77SiteTampered(t *testing.T) {
	w := newWorld(t)
	entries, err := storetest.Lives(storetest.Whole, storetest.Whole)
	check(t, err)
	w.add(entries...)
	out := t.TempDir()
	_, err = w.run("--out", out)
	check(t, err)
	forged := entries[len(entries)-1]
	for name, data := range forged.Files {
		if strings.HasSuffix(name, "/"+ledger.TransactionFile) {
			w.add(writing.Entry{Message: "nothing much\n", When: forged.When, Files: map[string][]byte{name: bytes.Replace(data, []byte("completed"), []byte("denied"), 1)}})
		}
	}
	for range 2 {
		said, err := w.run("--out", out)
		var code *console.ExitError
		if !errors.As(err, &code) || code.Code != console.ExitFailed || said["ok"] != false {
			t.Errorf("%v, %v", said, err)
		}
		if !strings.Contains(files(t, out)["index.html"], "not verify") {
			t.Error("the overview does not tell")
		}
	}
}

// TestSiteBundle: Git reads the bundle, and one that is to be left out is removed.
func TestSiteBundle(t *testing.T) {
	w := newWorld(t)
	entries, err := storetest.Lives(storetest.Mixed(9)...)
	check(t, err)
	w.add(entries...)
	out := t.TempDir()
	file := filepath.Join(out, bundleAddress)
	for _, flag := range []string{"--no-bundle", "--redact"} {
		said, err := w.run("--out", out)
		check(t, err)
		if said["bundle"] != true {
			t.Error(said)
		}
		other := t.TempDir()
		for _, args := range [][]string{{"init", "-q", "--bare"}, {"fetch", "-q", file, "refs/agent/*:refs/agent/*"}, {"fsck", "--strict", "--full"}, {"cat-file", "-e", w.tip}} {
			if said, err := exec.Command("git", append([]string{"-C", other}, args...)...).CombinedOutput(); err != nil {
				t.Errorf("git %v: %s", args, said)
			}
		}
		if said, err := w.run("--out", out, flag); err != nil || said["bundle"] != false {
			t.Errorf("%s: %v, %v", flag, said, err)
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: there is a bundle", flag)
		}
	}
}

// TestSiteMasks: a diff that would be shown without a secret is not shown at all.
func TestSiteMasks(t *testing.T) {
	w := newWorld(t)
	w.secret = "hello, world 3\n"
	entries, err := storetest.Lives(storetest.Mixed(5)...)
	check(t, err)
	w.add(entries...)
	out := t.TempDir()
	said, err := w.run("--out", out)
	check(t, err)
	if said["bundle"] != false {
		t.Error("the bundle has what the page leaves out")
	}
	shown, left := 0, 0
	for name, text := range files(t, out) {
		text = strings.NewReplacer(`<b class="word">`, "", "</b>", "").Replace(text)
		if strings.HasPrefix(name, "tx/") {
			shown += strings.Count(text, "hello, world")
			left += strings.Count(text, "The diff is left out")
		}
		if strings.Contains(text, "hello, world 3<") {
			t.Errorf("%s has the diff", name)
		}
	}
	if shown == 0 || left == 0 {
		t.Errorf("%d diffs are shown, %d left out", shown, left)
	}

	// One that comes later takes the bundle away as well.
	w = newWorld(t)
	w.secret = "hello, world 4\n"
	out = t.TempDir()
	var had []any
	for _, some := range [][]writing.Entry{entries[:4], entries[4:]} {
		w.add(some...)
		said, err := w.run("--out", out)
		check(t, err)
		had = append(had, said["bundle"])
	}
	if had[0] != true || had[1] != false {
		t.Errorf("bundles: %v", had)
	}
}

// TestFindingOfNoPage: what was found against a transaction that has no page stands on all.
func TestFindingOfNoPage(t *testing.T) {
	one, other := "tx_01JAR4S0G0AAAAAAAAAAAAAAAA", "tx_01JAR4S0G0BBBBBBBBBBBBBBBB"
	b := &build{}
	b.of = map[string][]history.Finding{}
	b.result = audit.Result{Count: 2, Findings: []history.Finding{{RuleID: "OBJECT", Path: ledger.Dir(one) + "/events.jsonl"}, {RuleID: "OBJECT", Path: ledger.Dir(other)}}}
	b.ids = []string{one}
	b.assign()
	if len(b.of[one]) != 1 || len(b.of) != 1 || len(b.whole) != 1 || b.whole[0].Path != ledger.Dir(other) {
		t.Errorf("%v, and of all %v", b.of, b.whole)
	}
}

// TestSiteLink: a link that leads out of the directory is not followed; the error names it, and nothing is left behind.
func TestSiteLink(t *testing.T) {
	w := newWorld(t)
	entries, err := storetest.Lives(storetest.Whole)
	check(t, err)
	w.add(entries...)
	out, elsewhere := t.TempDir(), t.TempDir()
	_, err = w.run("--out", out)
	check(t, err)
	check(t, os.RemoveAll(filepath.Join(out, "verify")))
	if err := os.Symlink(elsewhere, filepath.Join(out, "verify")); err != nil {
		t.Skip(err)
	}
	_, err = w.run("--out", out)
	var code *console.ExitError
	if !errors.As(err, &code) || code.Code != console.ExitIO || !strings.Contains(err.Error(), ": verify/") || strings.Contains(err.Error(), ".new-") {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(out, markerFile+".new-*"))
	if there, err2 := os.ReadDir(elsewhere); err != nil || err2 != nil || len(left)+len(there) > 0 {
		t.Error(left, there, err, err2)
	}
}

// TestSiteTwice: two runs that write to one directory do not write into each other's pages.
func TestSiteTwice(t *testing.T) {
	at := t.TempDir()
	var group sync.WaitGroup
	for _, run := range []string{"a", "b"} {
		dir, err := openDir(at, "site")
		check(t, err)
		defer dir.Close()
		check(t, dir.place(markerFile, dir.whole([]byte(marker))))
		group.Go(func() {
			for i := range 500 {
				if err := dir.write(fmt.Sprintf("tx/%s%d", run, i), []byte(strings.Repeat(run, 5000))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	for name, text := range files(t, filepath.Join(at, "tx")) {
		if text != strings.Repeat(name[:1], 5000) {
			t.Errorf("%s is not what was written there", name)
		}
	}
}
