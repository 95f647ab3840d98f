package gitstore_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

var byAda = code.Commit{Author: "ada", Email: "ada@example.org", When: time.Unix(1_700_000_000, 0), Message: "change\n"}

func added(name, data string) []patch.Change {
	return []patch.Change{{Kind: patch.Add, Path: name, After: &patch.File{Mode: patch.Regular, Data: []byte(data)}}}
}

const branch = "refs/heads/main"

// build makes a commit on the remote's branch in a clone.
func (u *upstream) build(w work, files []patch.Change) (refs *gitstore.RemoteRefs, old, next string) {
	u.t.Helper()
	refs = &gitstore.RemoteRefs{Repo: w.open(), Server: u.server()}
	old, err := refs.Ref(u.t.Context(), branch)
	fatal(u.t, err)
	next, err = refs.BuildCommit(u.t.Context(), old, files, byAda)
	fatal(u.t, err)
	return refs, old, next
}

func TestRemoteRefs(t *testing.T) {
	for name, options := range map[string][]string{"whole": nil, "shallow": {"--depth=1"}, "partial": {"--filter=blob:none", "--no-checkout"}} {
		t.Run(name, func(t *testing.T) {
			u, server := newUpstream(t, teststand.Options{})
			u.repo.Git("config", "uploadpack.allowFilter", "true")
			w := u.clone(options...)
			u.git("checkout", "-q", "main")
			ours := u.commit("while/we/looked", "away\n") // the clone is behind
			u.push("main:" + branch)
			refs, old, next := u.build(w, []patch.Change{
				{Path: "b"},
				{Path: "c", After: &patch.File{Mode: patch.Executable, Data: []byte("b\n")}},
				{Path: "dir/again", After: &patch.File{Mode: patch.Regular, Data: []byte("changed\n")}}, // the pull request has it
			})
			if old != ours {
				t.Fatalf("the branch is at %s, not %s", old, ours)
			}
			server.Reset()
			fatal(t, refs.MoveRef(t.Context(), branch, old, next))
			if got := u.repo.Ref(branch).String(); got != next || len(server.Requests()) != 1 {
				t.Errorf("the branch is at %s, not %s, after %d requests", got, next, len(server.Requests()))
			}
			if got := u.repo.Git("ls-tree", "-r", "--name-only", next); got != "c\ndir/a\ndir/again\nlarge\nwhile/we/looked" {
				t.Errorf("it has %s", got)
			}
			work{t, u.repo.Dir}.git("fsck", "--strict", "--full")
			server.Reset()
			if err := refs.MoveRef(t.Context(), branch, old, next); err != nil {
				t.Errorf("again: %v", err)
			}
			if tip, err := refs.Ref(t.Context(), branch); tip != next || err != nil {
				t.Errorf("the branch is at %s, %v", tip, err)
			}
			if tip, err := refs.Ref(t.Context(), "refs/heads/none"); tip != "" || err != nil {
				t.Errorf("a branch that is not there is at %s, %v", tip, err)
			}
		})
	}
}

// TestRemoteSendsWhatIsNew: not more than the parent lacks, though the clone has
// much, and all of it, though the clone has it elsewhere.
func TestRemoteSendsWhatIsNew(t *testing.T) {
	u, server := newUpstream(t, teststand.Options{})
	u.repo.Git("config", "receive.unpackLimit", "1000")
	w := u.clone()
	before := u.repo.Git("count-objects")
	_, noise := u.large[:1000], u.large[1000:]
	w.write("elsewhere", noise) // the clone has the content, the remote does not
	w.git("add", "elsewhere")
	refs, old, next := u.build(w, append(added("dir/deep/noise", noise), patch.Change{Path: "large"}, added("moved", u.large)[0]))
	server.Reset()
	fatal(t, refs.MoveRef(t.Context(), branch, old, next))
	want := strings.Count(u.repo.Git("rev-list", "--objects", next, "--not", old), "\n") + 1
	t.Log(before, u.repo.Git("count-objects"), want)
	var had, has int
	scan(t, before, &had)
	scan(t, u.repo.Git("count-objects"), &has)
	if has-had != want || want != 5 { // commit, three trees, one file
		t.Errorf("%d objects came, %d are new", has-had, want)
	}
	if in := server.Requests()[0].In; in > 150_000 {
		t.Errorf("%d bytes were sent", in)
	}
}

func scan(t *testing.T, text string, n *int) {
	t.Helper()
	word, _, _ := strings.Cut(text, " ")
	for _, c := range word {
		*n = *n*10 + int(c-'0')
	}
}

func TestRemoteNewRef(t *testing.T) {
	u, _ := newUpstream(t, teststand.Options{})
	refs, old, next := u.build(u.clone(), added("z", "z\n"))
	const name = "refs/agent/applied/x"
	if err := refs.MoveRef(t.Context(), name, "", next); err != nil || u.repo.Ref(name).String() != next {
		t.Errorf("%v", err)
	}
	_, _, other := u.build(u.clone(), added("z", "other\n"))
	if err := refs.MoveRef(t.Context(), name, "", other); err == nil {
		t.Error("a commit that the clone has not was pushed")
	}
	refs, _, other = u.build(u.clone(), added("z", "other\n"))
	if err := refs.MoveRef(t.Context(), name, "", other); !errors.Is(err, writing.ErrMoved) {
		t.Errorf("a ref that is there was made: %v", err)
	}
	for from, to := range map[string]string{u.git("rev-parse", "main~1"): other, other: other, old: old} {
		if err := refs.MoveRef(t.Context(), branch, from, to); err == nil || errors.Is(err, writing.ErrMoved) {
			t.Errorf("%s to %s, which is not one commit on it: %v", from, to, err)
		}
	}
	var no *gitstore.RefError
	if err := refs.MoveRef(t.Context(), "refs/tags/v1", "", other); !errors.As(err, &no) {
		t.Errorf("a tag: %v", err)
	}
	if u.repo.Ref(name).String() != next || u.repo.Ref(branch).String() != old || !u.repo.Ref("refs/tags/v1").IsZero() {
		t.Error("a ref has moved")
	}
}

func TestRemoteCheckRef(t *testing.T) {
	refs := &gitstore.RemoteRefs{}
	for name, good := range map[string]bool{
		"refs/heads/main": true, "refs/heads/a/b": true, "refs/agent/applied/tx": true, "refs/heads/ö": true,
		"main": false, "HEAD": false, "": false, "refs/heads/": false, "refs/heads": false, "refs/heads/HEAD": false,
		"refs/heads/refs/heads/main": false, "refs/tags/v1": false, "refs/pull/7/head": false, "refs/agent/ledger": false,
		"refs/agent/applied": false, "refs/countersign/pull/7/head": false, "refs/heads/a..b": false, "refs/heads/a b": false,
		"refs/heads/x.lock": false, "refs/heads/-x": false, "refs/replace/x": false, "refs/remotes/origin/main": false,
	} {
		var no *gitstore.RefError
		if err := refs.CheckRef(context.Background(), name); good != (err == nil) || err != nil && !errors.As(err, &no) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestT40RemoteLostRace(t *testing.T) {
	for name, after := range map[string]func(u *upstream){
		"moved":   func(u *upstream) { u.commit("x", "theirs\n"); u.push("main:" + branch) },
		"rewound": func(u *upstream) { u.push("main~2:" + branch) },
		"deleted": func(u *upstream) { u.repo.Git("update-ref", "-d", branch) },
	} {
		t.Run(name, func(t *testing.T) {
			u, _ := newUpstream(t, teststand.Options{})
			u.git("checkout", "-q", "main")
			refs, old, next := u.build(u.clone(), added("z", "z\n"))
			after(u)
			theirs := u.repo.Ref(branch)
			if err := refs.MoveRef(t.Context(), branch, old, next); !errors.Is(err, writing.ErrMoved) {
				t.Errorf("%v", err)
			}
			if got := u.repo.Ref(branch); got != theirs {
				t.Errorf("it was overwritten with %s", got)
			}
		})
	}
}

// TestRemoteRefused: what the server says comes in one harmless line.
func TestRemoteRefused(t *testing.T) {
	for name, c := range map[string]struct {
		refuse func(u *upstream, s *teststand.Server)
		want   string
	}{
		"hook": {func(u *upstream, _ *teststand.Server) {
			u.repo.Hook("update", `printf 'refusing to allow a GitHub App\033[31m to create or update\nworkflow\342\200\256\n' >&2; exit 1`)
		}, "hook declined: refusing to allow a GitHub App[31m to create or update workflow"},
		"long": {func(u *upstream, _ *teststand.Server) {
			u.repo.Refuse(strings.Repeat("GH006: Protected branch. ", 100))
		}, "pre-receive hook declined: GH006: Protected branch. GH006"},
		"config": {func(u *upstream, _ *teststand.Server) {
			u.repo.Git("config", "receive.shallowUpdate", "false")
			u.repo.Git("config", "transfer.hideRefs", branch)
		}, "deny updating a hidden ref"},
		"403": {func(_ *upstream, s *teststand.Server) {
			s.SetFault(func(_ int, r *http.Request) teststand.Fault {
				if r.Method == http.MethodPost {
					return teststand.Fault{Kind: teststand.StatusBefore, Status: 403, Body: "Write access\nnot granted.\x1b[0m"}
				}
				return teststand.Fault{}
			})
		}, "status 403"},
	} {
		t.Run(name, func(t *testing.T) {
			u, server := newUpstream(t, teststand.Options{})
			refs, old, next := u.build(u.clone(), added("z", "z\n"))
			c.refuse(u, server)
			err := refs.MoveRef(t.Context(), branch, old, next)
			if name == "config" { // it reads as deleted, and is not ours
				if !errors.Is(err, writing.ErrMoved) {
					t.Errorf("%v", err)
				}
				return
			}
			var no *fault.Error
			if !errors.As(err, &no) || !strings.Contains(no.Message, c.want) || !strings.Contains(no.Message, branch) {
				t.Fatalf("%v", err)
			}
			if len([]rune(no.Message)) > 650 || strings.ContainsAny(no.Error(), "\n\r\x1b\u202e") {
				t.Errorf("%q", no.Message)
			}
			if u.repo.Ref(branch).String() != old {
				t.Error("the branch has moved")
			}
		})
	}
}

// faults are one of each kind, and all with COUNTERSIGN_LONG.
func faults() []teststand.Fault {
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		return teststand.All()
	}
	return teststand.Some()
}

// TestT61RemoteFaults: whatever happens to one push, the branch is where
// MoveRef says that it is.
func TestT61RemoteFaults(t *testing.T) {
	for i, fault := range faults() {
		if i%2 > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			u, server := newUpstream(t, teststand.Options{})
			w := u.clone()
			refs, old, next := u.build(w, added("z", "z\n"))
			paused := 0
			refs.Pause = func(context.Context, int) { paused++ }
			server.FailPush(fault)
			err := refs.MoveRef(t.Context(), branch, old, next)
			server.SetFault(nil)
			moved := u.repo.Ref(branch).String() == next
			refused := slices.Contains([]int{401, 403}, fault.Status)
			if moved != (err == nil) || refused == moved {
				t.Fatalf("moved: %v; %v", moved, err)
			}
			if err := refs.MoveRef(t.Context(), branch, old, next); err != nil || u.repo.Ref(branch).String() != next {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// TestRemoteOvertaken: the answer to our push is lost, and then somebody goes
// on from our commit.
func TestRemoteOvertaken(t *testing.T) {
	u, server := newUpstream(t, teststand.Options{})
	refs, old, next := u.build(u.clone(), added("z", "z\n"))
	var pushed, moved sync.Once
	server.SetFault(func(_ int, r *http.Request) (f teststand.Fault) {
		if r.Method == http.MethodPost {
			pushed.Do(func() { f.Kind = teststand.CutAfter })
			return f
		}
		moved.Do(func() {
			u.git("fetch", "-q", u.repo.Dir, "main")
			u.git("checkout", "-q", "FETCH_HEAD")
			u.commit("theirs", "x\n")
			u.push("HEAD:" + branch)
		})
		return f
	})
	if err := refs.MoveRef(t.Context(), branch, old, next); err != nil {
		t.Error(err)
	}
	if got := u.repo.Git("rev-parse", branch+"~1"); got != next {
		t.Errorf("%s is before the tip, not %s", got, next)
	}
}
