package pages

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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

func same(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if name == bundleAddress { // the same objects, in another order; the hash of their names is in the state
			text = got[name]
		}
		if got[name] != text || text == "" {
			t.Errorf("%s: %s is not as it is when all is made anew", what, name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s is left over", what, name)
		}
	}
}

// TestT77SiteIncremental: whatever the ledger grows by, the pages are the same bytes as those that are made
// anew, and so is what is kept beside them.
func TestT77SiteIncremental(t *testing.T) {
	w := newWorld(t)
	entries, err := storetest.Lives(append(storetest.Mixed(9), storetest.Signed)...)
	check(t, err)
	grown := t.TempDir()
	for i, n := 0, 0; n < len(entries); i++ {
		more := min(1+i%3, len(entries)-n)
		w.add(entries[n : n+more]...)
		n += more
		said, err := w.run("--out", grown, "--incremental")
		check(t, err)
		if said["incremental"] != (i > 0) {
			t.Fatalf("after %d commits: %v", n, said)
		}
		anew := t.TempDir()
		_, err = w.run("--out", anew)
		check(t, err)
		same(t, fmt.Sprintf("after %d commits", n), files(t, grown), files(t, anew))
	}
	if said, err := w.run("--out", grown, "--incremental"); err != nil || said["written"].(float64) > 10 {
		t.Errorf("nothing new: %v, %v", said, err)
	}
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

// TestSiteState: a state that does not fit is none.
func TestSiteState(t *testing.T) {
	w := newWorld(t)
	entries, err := storetest.Lives(storetest.Mixed(5)...)
	check(t, err)
	w.add(entries[:8]...)
	out := t.TempDir()
	state := filepath.Join(out, stateFile)
	_, err = w.run("--out", out)
	check(t, err)
	want := files(t, out)
	for name, change := range map[string]func() []string{
		"missing":        func() []string { check(t, os.Remove(state)); return nil },
		"empty":          func() []string { check(t, os.WriteFile(state, nil, 0o666)); return nil },
		"another tip":    func() []string { w.edit(state, w.tip, strings.Repeat("a", 40)); return nil },
		"edited":         func() []string { w.recompress(state, "greet the world", "greet the moon"); return nil },
		"cut":            func() []string { check(t, os.Truncate(state, 1000)); return nil },
		"another flag":   func() []string { return []string{"--redact"} },
		"another bundle": func() []string { return []string{"--no-bundle"} },
		"another format": func() []string { w.edit(state, "format 2", "format 1"); return nil },
		"by another":     func() []string { w.Version = "2.0"; return nil },
	} {
		args := change()
		said, err := w.run(append(args, "--out", out, "--incremental")...)
		if w.Version = "1.0"; err != nil || said["incremental"] != false {
			t.Errorf("%s: %v, %v", name, said, err)
		}
		_, err = w.run("--out", out, "--incremental")
		check(t, err)
		same(t, name, files(t, out), want)
	}
}

func (w *world) edit(file, from, to string) {
	raw, err := os.ReadFile(file)
	check(w.t, err)
	if !bytes.Contains(raw, []byte(from)) {
		w.t.Fatalf("%s has no %q", file, from)
	}
	check(w.t, os.WriteFile(file, bytes.Replace(raw, []byte(from), []byte(to), 1), 0o666))
}

// recompress is edit of the records of a state.
func (w *world) recompress(file, from, to string) {
	raw, err := os.ReadFile(file)
	check(w.t, err)
	head, packed, _ := bytes.Cut(raw, []byte("\n"))
	z, err := gzip.NewReader(bytes.NewReader(packed))
	check(w.t, err)
	records, err := io.ReadAll(z)
	check(w.t, err)
	if !bytes.Contains(records, []byte(from)) {
		w.t.Fatalf("the records have no %q", from)
	}
	out := bytes.NewBuffer(append(head, '\n'))
	packer := gzip.NewWriter(out)
	_, err = packer.Write(bytes.Replace(records, []byte(from), []byte(to), 1))
	check(w.t, errors.Join(err, packer.Close(), os.WriteFile(file, out.Bytes(), 0o666)))
}

// TestT77SiteTampered: once the ledger does not verify, a site that grows is made anew, with the finding; so is the
// one after that, and nothing is kept to go on from.
func TestT77SiteTampered(t *testing.T) {
	w := newWorld(t)
	entries, err := storetest.Lives(storetest.Whole, storetest.Whole)
	check(t, err)
	w.add(entries...)
	out := t.TempDir()
	_, err = w.run("--out", out, "--incremental")
	check(t, err)
	forged := entries[len(entries)-1]
	for name, data := range forged.Files {
		if strings.HasSuffix(name, "/"+ledger.TransactionFile) {
			w.add(writing.Entry{Message: "nothing much\n", When: forged.When, Files: map[string][]byte{name: bytes.Replace(data, []byte("completed"), []byte("denied"), 1)}})
		}
	}
	for range 2 {
		said, err := w.run("--out", out, "--incremental")
		var code *cli.ExitError
		if !errors.As(err, &code) || code.Code != cli.ExitFailed || said["ok"] != false || said["incremental"] != false {
			t.Errorf("%v, %v", said, err)
		}
		have := files(t, out)
		if _, kept := have[stateFile]; kept || !strings.Contains(have["index.html"], "not verify") {
			t.Error("a state is kept, or the overview does not tell")
		}
	}
}

// TestSiteBundle: a bundle that is not what was written beside the pages is written anew, and one that is, grows.
func TestSiteBundle(t *testing.T) {
	w := newWorld(t)
	entries, err := storetest.Lives(storetest.Mixed(9)...)
	check(t, err)
	w.add(entries[:8]...)
	out := t.TempDir()
	_, err = w.run("--out", out)
	check(t, err)
	file := filepath.Join(out, bundleAddress)
	for i, change := range []func(){
		func() {}, func() { check(t, os.Remove(file)) }, func() { check(t, os.Truncate(file, 1000)) }, func() { w.edit(file, "PACK", "KCAP") },
		func() { w.edit(filepath.Join(out, objectsFile), "\x00", "\x01") }, func() { check(t, os.Remove(filepath.Join(out, objectsFile))) }, func() {},
	} {
		change()
		w.add(entries[8+i])
		said, err := w.run("--out", out, "--incremental")
		check(t, err)
		if said["incremental"] != true || said["bundle"] != true {
			t.Errorf("%d: %v", i, said)
		}
		other := t.TempDir()
		for _, args := range [][]string{{"init", "-q", "--bare"}, {"fetch", "-q", file, "refs/agent/*:refs/agent/*"}, {"fsck", "--strict", "--full"}, {"cat-file", "-e", w.tip}} {
			if said, err := exec.Command("git", append([]string{"-C", other}, args...)...).CombinedOutput(); err != nil {
				t.Errorf("%d: git %v: %s", i, args, said)
			}
		}
	}
	for _, flag := range []string{"--no-bundle", "--redact"} {
		if said, err := w.run("--out", out, flag); err != nil || said["bundle"] != false {
			t.Errorf("%s: %v, %v", flag, said, err)
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: there is a bundle", flag)
		}
		_, err = w.run("--out", out)
		check(t, err)
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

	// One that comes later takes the bundle away as well, and it stays away.
	w = newWorld(t)
	w.secret = "hello, world 4\n"
	out = t.TempDir()
	had := false
	for some := range slices.Chunk(entries, 2) {
		w.add(some...)
		said, err := w.run("--out", out, "--incremental")
		check(t, err)
		anew, err := w.run("--out", t.TempDir())
		check(t, err)
		if said["bundle"] != anew["bundle"] {
			t.Errorf("%v, and anew %v", said, anew)
		}
		had = had || said["bundle"] == true
	}
	if !had {
		t.Error("there was never a bundle")
	}
}

// TestFindingOfNoPage: what was found against a transaction that has no page stands on all.
func TestFindingOfNoPage(t *testing.T) {
	one, other := "tx_01JAR4S0G0AAAAAAAAAAAAAAAA", "tx_01JAR4S0G0BBBBBBBBBBBBBBBB"
	b := &build{}
	b.begin("")
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
	var code *cli.ExitError
	if !errors.As(err, &code) || code.Code != cli.ExitIO || !strings.Contains(err.Error(), ": verify/") || strings.Contains(err.Error(), ".new-") {
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
		check(t, dir.begin())
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
