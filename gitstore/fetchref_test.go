package gitstore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

const pullHead = "refs/pull/7/head"

// An upstream is a repository on a server with a branch of eight commits, and a
// pull request of two that left it three commits ago.
type upstream struct {
	work  // where its commits are made
	repo  teststand.Repo
	url   string
	ssh   wire.SSH
	large string // what the first commit has; the pull request does not change it
}

func upstreamAt(t *testing.T, repo teststand.Repo, url string) *upstream {
	t.Helper()
	noise := make([]byte, 100_000)
	_, _ = rand.Read(noise)
	u := &upstream{repo: repo, url: url, large: hex.EncodeToString(noise)}
	u.work = initWork(t)
	var in strings.Builder
	marks := 0
	commit := func(branch, from string, files ...string) {
		marks++
		fmt.Fprintf(&in, "commit refs/heads/%s\nmark :%d\ncommitter A <a@example.org> 1700000000 +0000\ndata 2\nc\n%s", branch, marks, from)
		for i := 0; i < len(files); i += 2 {
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", files[i], len(files[i+1]), files[i+1])
		}
	}
	commit("main", "", "large", u.large, "dir/a", "base\n", "b", "b\n")
	for i := range 7 {
		commit("main", "", "dir/a", fmt.Sprint(i, "\n"))
	}
	commit("pr", "from :5\n", "b", "changed\n")
	commit("pr", "", "dir/new", "new\n")
	u.stdin(in.String(), "fast-import", "--quiet")
	u.git("checkout", "-q", "pr")
	u.push("main:refs/heads/main", "pr:"+pullHead)
	return u
}

func (u *upstream) commit(name, data string) string {
	u.t.Helper()
	u.write(name, data)
	u.git("add", "--all")
	u.git("commit", "-q", "-m", "commit")
	return u.git("rev-parse", "HEAD")
}

func (u *upstream) push(refs ...string) {
	u.t.Helper()
	u.git(append([]string{"push", "-q", "-f", u.repo.Dir}, refs...)...)
}

func newUpstream(t *testing.T, o teststand.Options) (*upstream, *teststand.Server) {
	t.Helper()
	server := teststand.NewServer(t, o)
	return upstreamAt(t, server.Bare("r"), server.URL("r")), server
}

// clone makes one with the real git, of the branch alone.
func (u *upstream) clone(options ...string) work {
	u.t.Helper()
	dir := filepath.Join(u.t.TempDir(), "clone")
	u.git(append(append([]string{"clone", "-q", "--single-branch", "--branch=main", "--no-tags"}, options...), "file://"+u.repo.Dir, dir)...)
	return work{u.t, dir}
}

func (u *upstream) server() *wire.Server {
	u.t.Helper()
	s, err := wire.Open(u.url, wire.Options{SSH: u.ssh})
	fatal(u.t, err)
	u.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (u *upstream) fetch(w work, ref string) (string, error) {
	u.t.Helper()
	return w.open().Fetch(context.Background(), u.server(), ref, true)
}

// whole fails the test unless all files of a commit can be read.
func whole(t *testing.T, repo *gitstore.Repo, commit string, files map[string]string) {
	t.Helper()
	tree, err := repo.Tree(context.Background(), commit)
	fatal(t, err)
	n := 0
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		data, err := fs.ReadFile(tree, name)
		if want, known := files[name]; err == nil && (!known || string(data) != want) {
			t.Errorf("%s of %s has %d other bytes", name, commit, len(data))
		}
		return err
	})
	if err != nil || n != len(files) {
		t.Errorf("%d files of %s: %v", n, commit, err)
	}
}

func (u *upstream) files() map[string]string {
	return map[string]string{"large": u.large, "dir/a": "3\n", "b": "changed\n", "dir/new": "new\n"}
}

// cleaned fails the test if git finds anything wrong, also after it cleaned up.
func (w work) cleaned() {
	w.t.Helper()
	for range 2 {
		w.fsck()
		w.git("gc", "--quiet", "--prune=now")
	}
}

func TestFetch(t *testing.T) {
	for name, at := range map[string]func(t *testing.T) *upstream{
		"http": func(t *testing.T) *upstream { u, _ := newUpstream(t, teststand.Options{}); return u },
		"path": func(t *testing.T) *upstream {
			repo := teststand.Bare(t, filepath.Join(t.TempDir(), "r"))
			return upstreamAt(t, repo, repo.Dir)
		},
		"ssh": func(t *testing.T) *upstream {
			s, repo := teststand.NewSSH(t), teststand.Bare(t, filepath.Join(t.TempDir(), "r"))
			u := upstreamAt(t, repo, s.URL(repo.Dir))
			u.ssh = wire.SSH{Program: s.Program, Batch: true}
			return u
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := at(t)
			want := u.git("rev-parse", "pr")
			w := u.clone()
			refs, config := w.git("for-each-ref"), w.git("config", "--list", "--local")
			got, err := u.fetch(w, pullHead)
			if err != nil || got != want {
				t.Fatalf("%s, %v; want %s", got, err, want)
			}
			ours := want + " commit\trefs/countersign/pull/7/head\n"
			if got := w.git("for-each-ref"); got != ours+refs {
				t.Errorf("refs: %s", got)
			}
			if got := w.git("config", "--list", "--local"); got != config || w.git("status", "--porcelain") != "" {
				t.Errorf("the clone is changed: %s", got)
			}
			for _, name := range []string{"shallow", "FETCH_HEAD", "countersign/objects"} {
				if _, err := os.Stat(w.path(".git/" + name)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is there", name)
				}
			}
			w.cleaned()
			repo := w.open()
			whole(t, repo, want, u.files())
			base, err := repo.FetchMergeBase(context.Background(), u.server(), w.git("rev-parse", "HEAD"), want)
			if err != nil || base != u.git("merge-base", "main", "pr") {
				t.Errorf("the merge base is %s, %v", base, err)
			}
		})
	}
}

// posts counts the packs that were asked for, and their bytes.
func posts(server *teststand.Server) (n int, bytes int64) {
	for _, q := range server.Requests() {
		if q.Method == http.MethodPost {
			n, bytes = n+1, bytes+q.Out
		}
	}
	return n, bytes
}

// TestFetchAsksForLittle: what the clone has is not sent, and what is all here
// is not asked for.
func TestFetchAsksForLittle(t *testing.T) {
	u, server := newUpstream(t, teststand.Options{})
	w := u.clone()
	ask := func(ref string, packs int) {
		t.Helper()
		server.Reset()
		if _, err := u.fetch(w, ref); err != nil {
			t.Fatal(err)
		}
		if n, bytes := posts(server); n != packs || bytes > 3000 {
			t.Errorf("%s: %d packs of %d bytes", ref, n, bytes)
		}
	}
	ask(pullHead, 1)
	ask(pullHead, 0)
	ask("refs/heads/main", 0)
	u.push("main~2:refs/heads/old", "pr:refs/heads/same")
	ask("refs/heads/old", 0)
	ask("refs/heads/same", 0)
	u.commit("b", "changed again\n")
	u.push("pr:" + pullHead)
	ask(pullHead, 1)
	w.git("fetch", "-q", u.repo.Dir, "main") // nothing new: FETCH_HEAD alone
	w.cleaned()
}

// TestFetchIntoNothing: a repository without a commit, and one with another
// history.
func TestFetchIntoNothing(t *testing.T) {
	u, _ := newUpstream(t, teststand.Options{})
	for _, w := range []work{initWork(t), newWork(t, map[string]string{"other": "x"})} {
		got, err := u.fetch(w, pullHead)
		fatal(t, err)
		whole(t, w.open(), got, u.files())
		w.git("fsck", "--strict", "--full")
	}
}

// TestFetchNames: no name from a forge becomes a path of ours, and none is
// above another.
func TestFetchNames(t *testing.T) {
	u, _ := newUpstream(t, teststand.Options{})
	w := u.clone()
	for _, name := range []string{"refs/heads/a", "refs/heads/A", "refs/heads/é", "refs/heads/aux.txt", "refs/heads/x/y/z", "refs/pull/8/merge", "refs/pull/8/other", "refs/pull/08/head"} {
		u.push("pr:" + name)
		if got, err := u.fetch(w, name); err != nil || got != u.git("rev-parse", "pr") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	u.repo.Git("update-ref", "-d", "refs/heads/a")
	u.push("pr:refs/heads/a/below")
	if _, err := u.fetch(w, "refs/heads/a/below"); err != nil {
		t.Error(err)
	}
	names := w.git("for-each-ref", "--format=%(refname)", "refs/countersign")
	for _, name := range strings.Fields(names) {
		rest, hashed := strings.CutPrefix(name, "refs/countersign/ref/")
		if _, err := hex.DecodeString(rest); name != "refs/countersign/pull/8/merge" && (!hashed || err != nil) {
			t.Errorf("a ref of ours is %s", name)
		}
	}
	if n := len(strings.Fields(names)); n != 9 {
		t.Errorf("%d refs of ours:\n%s", n, names)
	}
	if out := w.git("for-each-ref", "refs/heads", "refs/tags"); strings.Count(out, "\n") != 0 {
		t.Errorf("refs of the user's: %s", out)
	}
	var bad *gitstore.RefError
	for _, name := range []string{"", "main", "FETCH_HEAD", "refs/heads", "refs/heads/../../config", "refs/heads/a..b", "refs/heads/a\nb", "refs/heads/a b", "refs/heads/.x", "refs/heads/x.lock", "refs//heads/x", "/refs/heads/x", "refs/heads/x/", "refs/heads/@{1}", `refs/heads/a\b`, "refs/heads/a\x00b"} {
		if _, err := u.fetch(w, name); !errors.As(err, &bad) {
			t.Errorf("%q: %v", name, err)
		}
	}
	var none *gitstore.NoRefError
	if _, err := u.fetch(w, "refs/pull/9/head"); !errors.As(err, &none) {
		t.Errorf("a ref that is not there: %v", err)
	}
	u.git("tag", "-a", "-m", "tag", "v1")
	u.push("v1:refs/tags/v1")
	if _, err := u.fetch(w, "refs/tags/v1"); err == nil {
		t.Error("a tag is no commit")
	}
}

// TestFetchLimit: too much is refused, and nothing of it is kept.
func TestFetchLimit(t *testing.T) {
	for _, options := range [][]string{nil, {"--depth=1"}} {
		u, _ := newUpstream(t, teststand.Options{})
		w := u.clone(options...)
		noise := make([]byte, 50_000)
		_, _ = rand.Read(noise)
		u.commit("noise", string(noise))
		u.push("pr:" + pullHead)
		repo := w.open()
		again := gitstore.LimitFetches(40_000)
		refs := w.git("for-each-ref")
		if _, err := repo.Fetch(context.Background(), u.server(), pullHead, true); !errors.Is(err, wire.ErrTooLarge) {
			t.Errorf("%v: %v", options, err)
		}
		if got := w.git("for-each-ref"); got != refs {
			t.Errorf("refs: %s", got)
		}
		again()
		if _, err := repo.Fetch(context.Background(), u.server(), pullHead, true); err != nil {
			t.Error(err)
		}
	}
}

// answer is what a server says when it sends a pack of just these objects.
func (u *upstream) answer(objects ...string) string {
	u.t.Helper()
	cmd := exec.Command("git", "pack-objects", "--stdout", "-q")
	cmd.Dir, cmd.Stdin = u.dir, strings.NewReader(strings.Join(objects, "\n")+"\n")
	pack, err := cmd.Output()
	fatal(u.t, err)
	var b bytes.Buffer
	b.WriteString("0008NAK\n")
	for ; len(pack) > 0; pack = pack[min(len(pack), 1000):] {
		part := pack[:min(len(pack), 1000)]
		fmt.Fprintf(&b, "%04x\x01%s", len(part)+5, part)
	}
	b.WriteString("0000")
	return b.String()
}

// TestFetchIncomplete: a server that leaves out something gets nothing into the
// clone.
func TestFetchIncomplete(t *testing.T) {
	u, server := newUpstream(t, teststand.Options{})
	commits := []string{u.git("rev-parse", "pr"), u.git("rev-parse", "pr~1")}
	var all []string
	for _, line := range strings.Split(u.git("rev-list", "--objects", "pr", "--not", "main"), "\n") {
		id, _, _ := strings.Cut(line, " ")
		all = append(all, id)
	}
	if len(all) < 6 {
		t.Fatal(all)
	}
	send := func(w work, objects []string) error {
		body := u.answer(objects...)
		server.SetFault(func(_ int, r *http.Request) teststand.Fault {
			if r.Method != http.MethodPost {
				return teststand.Fault{}
			}
			return teststand.Fault{Kind: teststand.BodyBefore, Body: body}
		})
		defer server.SetFault(nil)
		_, err := u.fetch(w, pullHead)
		return err
	}
	if err := send(u.clone(), all); err != nil {
		t.Fatalf("a pack that is complete: %v", err)
	}
	for i, left := range all {
		if i%3 > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		w := u.clone()
		refs, objects := w.git("for-each-ref"), w.git("count-objects", "-v")
		err := send(w, append(append([]string{}, all[:i]...), all[i+1:]...))
		if !errors.Is(err, packfile.ErrMissing) {
			t.Errorf("without %s: %v", left, err)
		}
		if w.git("for-each-ref") != refs || w.git("count-objects", "-v") != objects {
			t.Errorf("without %s: something was kept", left)
		}
	}
	if err := send(u.clone(), commits[1:]); err == nil {
		t.Error("a pack without the commit was accepted")
	}
	// What is cut off never is a shorter history.
	files := []string{commits[0], u.git("rev-parse", "pr^{tree}")}
	for _, line := range strings.Split(u.git("ls-tree", "-r", "-t", "pr"), "\n") {
		files = append(files, strings.Fields(line)[2])
	}
	for _, objects := range [][]string{commits, files} {
		if err := send(u.clone("--depth=1"), objects); !errors.Is(err, packfile.ErrMissing) {
			t.Errorf("a shallow clone took a commit without what is before it: %v", err)
		}
	}
}

// TestFetchApart: a clone that has less than its history, and servers that can
// do less than GitHub. COUNTERSIGN_LONG is for each such clone of each such server.
func TestFetchApart(t *testing.T) {
	for _, o := range []teststand.Options{{}, {NoFilter: true}, {NoAnyWant: true}, {NoFilter: true, NoAnyWant: true}} {
		for name, options := range map[string][]string{
			"shallow": {"--depth=1"}, "shallow to the merge base": {"--depth=4"}, "partial": {"--filter=blob:none", "--no-checkout"},
			"both": {"--filter=tree:0", "--no-checkout", "--depth=2"},
		} {
			if o != (teststand.Options{}) && (name != "both" || o.NoFilter != o.NoAnyWant) && os.Getenv("COUNTERSIGN_LONG") == "" {
				continue
			}
			t.Run(fmt.Sprintf("%s/filter=%v/any=%v", name, !o.NoFilter, !o.NoAnyWant), func(t *testing.T) {
				t.Parallel()
				u, _ := newUpstream(t, o)
				u.repo.Git("config", "uploadpack.allowFilter", "true")
				w := u.clone(options...)
				u.repo.Git("config", "--unset", "uploadpack.allowFilter")
				u.testApart(w)
			})
		}
	}
}

// TestFetchApartByPath: git gives nothing by its hash there.
func TestFetchApartByPath(t *testing.T) {
	for _, filter := range []string{"true", "false"} {
		repo := teststand.Bare(t, filepath.Join(t.TempDir(), "r"))
		repo.Git("config", "uploadpack.allowFilter", filter)
		u := upstreamAt(t, repo, repo.Dir)
		u.testApart(u.clone("--depth=1"))
	}
}

func (u *upstream) testApart(w work) {
	t := u.t
	refs := w.git("for-each-ref")
	before, _ := os.ReadFile(w.path(".git/shallow"))
	packs, _ := filepath.Glob(w.path(".git/objects/*/*"))
	repo, ctx := w.open(), context.Background()
	head, err := repo.Fetch(ctx, u.server(), pullHead, true)
	if err != nil || head != u.git("rev-parse", "pr") {
		t.Fatalf("%s, %v", head, err)
	}
	tip, err := repo.Fetch(ctx, u.server(), "refs/heads/main", true)
	if err != nil || tip != u.git("rev-parse", "main") {
		t.Fatalf("%s, %v", tip, err)
	}
	base, err := repo.FetchMergeBase(ctx, u.server(), tip, head)
	if err != nil || base != u.git("merge-base", "main", "pr") {
		t.Fatalf("the merge base is %s, %v", base, err)
	}
	again := w.open()
	whole(t, again, head, u.files())
	whole(t, again, base, map[string]string{"large": u.large, "dir/a": "3\n", "b": "b\n"})
	whole(t, again, tip, map[string]string{"large": u.large, "dir/a": "6\n", "b": "b\n"})
	if _, err := again.Diff(ctx, base, head); err != nil {
		t.Error(err)
	}
	after, _ := os.ReadFile(w.path(".git/shallow"))
	packsAfter, _ := filepath.Glob(w.path(".git/objects/*/*"))
	if string(after) != string(before) || w.git("for-each-ref") != refs || len(packsAfter) != len(packs) {
		t.Errorf("git sees another clone: %s, %s, %s", after, w.git("for-each-ref"), packsAfter)
	}
	w.git("fsck", "--strict")
	w.git("log", "--oneline")
}

// TestFetchApartAsksOnce: what was fetched is not asked for again, and a later
// head costs what is new in it.
func TestFetchApartAsksOnce(t *testing.T) {
	u, server := newUpstream(t, teststand.Options{})
	w := u.clone("--depth=1")
	for i, most := range []int64{3000, 0} {
		server.Reset()
		if _, err := u.fetch(w, pullHead); err != nil {
			t.Fatal(err)
		}
		if n, bytes := posts(server); bytes > most || i == 1 && n != 0 {
			t.Errorf("time %d: %d packs of %d bytes", i, n, bytes)
		}
	}
}

// TestFetchMoving: the ref moves between the two questions.
func TestFetchMoving(t *testing.T) {
	for _, options := range [][]string{nil, {"--depth=1"}} {
		u, server := newUpstream(t, teststand.Options{NoAnyWant: true})
		w := u.clone(options...)
		var once sync.Once
		server.SetFault(func(_ int, r *http.Request) teststand.Fault {
			if r.Method == http.MethodPost {
				once.Do(func() {
					u.git("commit", "-q", "--amend", "-m", "another")
					u.push("pr:" + pullHead)
				})
			}
			return teststand.Fault{}
		})
		got, err := u.fetch(w, pullHead)
		if err != nil || got != u.git("rev-parse", "pr") {
			t.Errorf("%v: %s, %v", options, got, err)
		}
	}
}

// TestLocalRefOnFetched: git must not find a branch broken.
func TestLocalRefOnFetched(t *testing.T) {
	u, _ := newUpstream(t, teststand.Options{})
	w := u.clone("--depth=1")
	repo, ctx := w.open(), context.Background()
	head, err := repo.Fetch(ctx, u.server(), pullHead, true)
	fatal(t, err)
	for parent, good := range map[string]bool{head: false, w.git("rev-parse", "HEAD"): true} {
		made, err := repo.BuildCommit(ctx, parent, added("z", "z\n"), byAda)
		fatal(t, err)
		var no *gitstore.UnsupportedError
		err = repo.MoveRef(ctx, "refs/heads/made"+parent, "", made)
		if good && err != nil || !good && !errors.As(err, &no) {
			t.Errorf("on %s: %v", parent, err)
		}
	}
	w.git("fsck", "--strict")
}

// TestFetchTip: a shallow clone gets the files of the commits that are asked for
// and no history, and refuses a merge base that is none.
func TestFetchTip(t *testing.T) {
	u, server := newUpstream(t, teststand.Options{})
	for _, options := range [][]string{{"--depth=1"}, {"--depth=1", "--filter=blob:none"}} {
		w := u.clone(options...)
		refs, ctx, repo := w.git("for-each-ref"), context.Background(), w.open()
		head, err := repo.Fetch(ctx, u.server(), pullHead, false)
		if err != nil || head != u.git("rev-parse", "pr") {
			t.Fatalf("%s, %v", head, err)
		}
		tip, err := repo.Fetch(ctx, u.server(), "refs/heads/main", false)
		fatal(t, err)
		whole(t, repo, head, u.files())
		var off *gitstore.CutOffError
		if base, err := repo.FetchMergeBase(ctx, u.server(), tip, head); !errors.As(err, &off) {
			t.Fatalf("the merge base is %s, %v, without any history", base, err)
		}
		base, between := u.git("merge-base", "main", "pr"), u.git("rev-parse", "main~1")
		for _, id := range []string{base, between} {
			fatal(t, repo.FetchFiles(ctx, u.server(), id, head))
		}
		whole(t, repo, base, map[string]string{"large": u.large, "dir/a": "3\n", "b": "b\n"})
		if err := repo.CheckMergeBase(ctx, base, tip, head); err != nil {
			t.Error(err)
		}
		if _, err := repo.Diff(ctx, base, head); err != nil {
			t.Error(err)
		}
		server.Reset()
		if _, err := repo.Fetch(ctx, u.server(), pullHead, true); err != nil {
			t.Error(err)
		}
		if n, _ := posts(server); n == 0 {
			t.Error("Fetch takes a commit without its history for all of it")
		}
		if err := repo.CheckMergeBase(ctx, between, tip, head); err == nil {
			t.Error("a commit that is not before the head is taken for a merge base")
		}
		if got, err := repo.FetchMergeBase(ctx, u.server(), tip, head); err != nil && !errors.As(err, &off) || err == nil && got != base {
			t.Errorf("the merge base is %s, %v", got, err)
		}
		if w.git("for-each-ref") != refs {
			t.Error("git sees another clone")
		}
		w.git("fsck", "--strict")
	}
}
