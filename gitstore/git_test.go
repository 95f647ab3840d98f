package gitstore_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// The test binary is its own helper: with this in the environment it appends
// to a ledger, as another process would, and ends.
const (
	appendTo  = "COUNTERSIGN_TEST_APPEND_TO"
	appendOne = "COUNTERSIGN_TEST_APPEND_ONE" // one transaction, for the benchmarks
	pushOne   = "COUNTERSIGN_TEST_PUSH_ONE"   // likewise, to the remote at
	pushURL   = "COUNTERSIGN_TEST_PUSH_URL"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(appendTo); dir != "" {
		exit(appendLines(dir, os.Args[1], 5))
	}
	if dir := os.Getenv(appendOne); dir != "" {
		exit(appendEntry(dir, os.Args[1]))
	}
	if dir := os.Getenv(pushOne); dir != "" {
		exit(pushEntry(dir, os.Getenv(pushURL), os.Args[1]))
	}
	remove := storetest.FilesInMemory(os.Getenv, os.Setenv)
	debug.SetGCPercent(400)
	dir, err := os.MkdirTemp("", "countersign-made-")
	if err != nil {
		exit(err)
	}
	made.parent = dir
	code := m.Run()
	os.RemoveAll(dir)
	remove()
	os.Exit(code)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func appendEntry(dir, number string) error {
	repo, err := gitstore.Open(dir)
	if err != nil {
		return err
	}
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	if err != nil {
		return err
	}
	snap, err := l.Snapshot(context.Background())
	if err != nil {
		return err
	}
	i, err := strconv.Atoi(number)
	if err == nil {
		_, err = l.Append(context.Background(), snap.Tip, entryOf(i))
	}
	return err
}

func appendLines(dir, name string, n int) error {
	repo, err := gitstore.Open(dir)
	if err != nil {
		return err
	}
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	for i := range n {
		if err == nil {
			err = storetest.AppendLine(l, fmt.Sprintf("%s-%d", name, i))
		}
	}
	return err
}

// A work is a repository that the real git made.
type work struct {
	t   *testing.T
	dir string
}

// made are the directories of repositories that newWork copies, by what is in them. Its parent is removed in the end.
var made = struct {
	sync.Mutex
	parent string
	of     map[string]string
}{of: map[string]string{}}

// newWork makes a repository with one commit that holds files.
func newWork(t *testing.T, files map[string]string) work {
	t.Helper()
	key := fmt.Sprint(os.Getenv("GIT_DEFAULT_HASH"), files)
	made.Lock()
	from := made.of[key]
	made.Unlock()
	if from == "" {
		w := commitWork(t, files)
		made.Lock()
		defer made.Unlock()
		if made.of[key] != "" { // another test made it meanwhile
			return w
		}
		from = filepath.Join(made.parent, fmt.Sprint(len(made.of)))
		fatal(t, os.CopyFS(from, os.DirFS(w.dir)))
		made.of[key] = from
		return w
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(from))
	}
	fatal(t, err)
	return work{t, dir}
}

func commitWork(t *testing.T, files map[string]string) work {
	t.Helper()
	w := initWork(t)
	for name, data := range files {
		w.write(name, data)
	}
	w.git("add", "--all")
	w.git("commit", "--quiet", "--allow-empty", "--message=base")
	return w
}

func initWork(t *testing.T, options ...string) work {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir()) // git tells such paths
	fatal(t, err)
	w := work{t, dir}
	w.git(append([]string{"init", "--quiet", "--template=", "--initial-branch=main"}, options...)...)
	return w
}

func (w work) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func (w work) write(name, data string) {
	w.t.Helper()
	fatal(w.t, os.MkdirAll(filepath.Dir(w.path(name)), 0o777))
	fatal(w.t, os.WriteFile(w.path(name), []byte(data), 0o666))
}

// try runs git with nothing of this machine's configuration.
func (w work) try(args ...string) (string, error) {
	out, err := teststand.TryGit(w.dir, "", args...)
	return strings.TrimSuffix(out, "\n"), err
}

func (w work) git(args ...string) string {
	w.t.Helper()
	return strings.TrimSuffix(teststand.Git(w.t, w.dir, "", args...), "\n")
}

func (w work) open() *gitstore.Repo {
	w.t.Helper()
	repo, err := gitstore.Open(w.dir)
	fatal(w.t, err)
	return repo
}

// Open opens the repository anew and returns its ledger.
func (w work) Open() writing.Store {
	w.t.Helper()
	return ledgerAt(w.t, w.dir)
}

// fsck fails the test if git finds anything wrong, or warns of anything.
func (w work) fsck() {
	w.t.Helper()
	cmd := exec.Command("git", "-C", w.dir, "fsck", "--strict", "--no-dangling", "--full")
	out, err := cmd.CombinedOutput()
	if said := strings.TrimSpace(string(out)); err != nil || said != "" && said != "notice: HEAD points to an unborn branch (main)" {
		w.t.Errorf("git fsck: %v: %s", err, said)
	}
}

// sound fails the test unless git finds nothing to complain of, and the ledger
// to be a line of n commits with one root.
func (w work) sound(n int) {
	w.t.Helper()
	w.fsck()
	for options, want := range map[string]int{"--all": n, "--first-parent": n, "--max-parents=0": min(n, 1), "--min-parents=2": 0} {
		if got := w.git("rev-list", "--count", options, gitstore.LedgerRef, "--not", "--branches"); got != fmt.Sprint(want) {
			w.t.Errorf("git rev-list %s counts %s commits, want %d", options, got, want)
		}
	}
}

// object is the file of a loose object.
func (w work) object(rev string) string {
	w.t.Helper()
	id := w.git("rev-parse", rev)
	return w.path(".git/objects/" + id[:2] + "/" + id[2:])
}
