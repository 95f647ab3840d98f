package wire_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

const ledger = "refs/agent/ledger"

// A side is a repository as one transport shows it.
type side struct {
	repo teststand.Repo
	url  string
	o    wire.Options
}

func (s side) open(t *testing.T) *wire.Server {
	t.Helper()
	return open(t, s.url, s.o)
}

func open(t *testing.T, url string, o wire.Options) *wire.Server {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	s, err := wire.Open(url, o)
	fatal(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// trust are options for a server of httptest with TLS.
func trust(s *teststand.Server) wire.Options {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return wire.Options{TLS: &tls.Config{RootCAs: roots}}
}

func sshSide(t *testing.T) (*teststand.SSH, side) {
	s := teststand.NewSSH(t)
	repo := teststand.Bare(t, filepath.Join(t.TempDir(), "it's r!.git"))
	return s, side{repo, s.URL(repo.Dir), wire.Options{SSH: wire.SSH{Program: s.Program, Batch: true}}}
}

// HEAD is what the default branch is at, and nothing where that has no commit.
func TestHead(t *testing.T) {
	_, side := httpSide(t, teststand.Options{})
	s := open(t, side.url, wire.Options{})
	mustTip(t, s, "HEAD", packfile.None)
	side.repo.Git("symbolic-ref", "HEAD", "refs/heads/trunk")
	tip := side.repo.Commit("refs/heads/main", map[string]string{"a": "1"})
	mustTip(t, s, "HEAD", packfile.None)
	if got, err := s.Branches(t.Context()); err != nil || !slices.Equal(got, []string{"refs/heads/main"}) {
		t.Errorf("branches %q, %v", got, err)
	}
	side.repo.Git("symbolic-ref", "HEAD", "refs/heads/main")
	side.repo.Commit("refs/heads/other", map[string]string{"a": "2"})
	mustTip(t, s, "HEAD", tip)
}

func httpSide(t *testing.T, o teststand.Options) (*teststand.Server, side) {
	s := teststand.NewServer(t, o)
	repo := s.Bare("r.git")
	if o.TLS {
		return s, side{repo, s.URL("r.git"), trust(s)}
	}
	return s, side{repo: repo, url: s.URL("r.git")}
}

func fileSide(t *testing.T) side {
	repo := teststand.Bare(t, filepath.Join(t.TempDir(), "r"))
	repo.Git("config", "uploadpack.allowFilter", "true")
	repo.Git("config", "uploadpack.allowAnySHA1InWant", "true")
	return side{repo: repo, url: repo.Dir}
}

// everySide runs a test on each transport.
func everySide(t *testing.T, f func(t *testing.T, s side)) {
	t.Run("http", func(t *testing.T) { _, s := httpSide(t, teststand.Options{}); f(t, s) })
	t.Run("https", func(t *testing.T) { _, s := httpSide(t, teststand.Options{TLS: true}); f(t, s) })
	t.Run("ssh", func(t *testing.T) { _, s := sshSide(t); f(t, s) })
	t.Run("file", func(t *testing.T) { f(t, fileSide(t)) })
}

func mustTip(t *testing.T, s *wire.Server, ref string, want packfile.ID) {
	t.Helper()
	got, err := s.Tip(t.Context(), ref)
	fatal(t, err)
	if got != want {
		t.Fatalf("%s is at %s, want %s", ref, got, want)
	}
}

func mustPush(t *testing.T, s *wire.Server, old, next packfile.ID, pack []byte) {
	t.Helper()
	fatal(t, s.Push(t.Context(), ledger, old, next, pack))
}

// unpack gives a pack to git and returns the repository that has it.
func unpack(t *testing.T, pack []byte) teststand.Repo {
	t.Helper()
	r := teststand.Bare(t, filepath.Join(t.TempDir(), "unpacked"))
	file := filepath.Join(r.Dir, "objects", "pack", "it.pack")
	fatal(t, os.WriteFile(file, pack, 0o600))
	r.Git("index-pack", file)
	return r
}

// TestSHA256: all that is asked and sent is so, too, where objects are named by SHA-256.
func TestSHA256(t *testing.T) {
	t.Setenv("GIT_DEFAULT_HASH", "sha256")
	t.Run("round", TestRound)
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		t.Run("fetch", TestFetchPart)
		t.Run("lease", TestStaleLease)
	}
}

// TestOtherFormat: a server whose objects are named otherwise than those here is refused before anything is sent.
func TestOtherFormat(t *testing.T) {
	everySide(t, func(t *testing.T, side side) {
		side.repo.Commit(ledger, map[string]string{"a": "1"})
		o := side.o
		o.Format = packfile.SHA256
		s := open(t, side.url, o)
		if _, err := s.Tip(t.Context(), ledger); err == nil || !strings.Contains(err.Error(), "named by SHA1,") {
			t.Errorf("%v", err)
		}
	})
}

func TestRound(t *testing.T) {
	everySide(t, func(t *testing.T, side side) {
		s := side.open(t)
		mustTip(t, s, ledger, packfile.None)
		first, pack := side.repo.Pack(packfile.None, map[string]string{"a/b/c": "1", "d": "2"})
		mustPush(t, s, packfile.None, first, pack)
		mustTip(t, s, ledger, first)
		mustTip(t, s, "refs/heads/main", packfile.None)
		second, pack := side.repo.Pack(first, map[string]string{"a/b/c": "3", "d": "2"})
		mustPush(t, s, first, second, pack)
		if got := side.repo.Ref(ledger); got != second {
			t.Fatalf("the ref is at %s, want %s", got, second)
		}

		all, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{second}})
		fatal(t, err)
		got := unpack(t, all)
		if log := got.Git("rev-list", "--objects", "--no-object-names", second.String()); len(strings.Fields(log)) != 11 {
			t.Errorf("fetched\n%s", log)
		}
	})
}

func TestFetchPart(t *testing.T) {
	everySide(t, func(t *testing.T, side side) {
		s := side.open(t)
		first := side.repo.Commit(ledger, map[string]string{"a/b/c": "1", "d": "2"})
		tip := side.repo.Commit(ledger, map[string]string{"a/b/c": "3", "d": "2"})
		tree := packfile.ParseID(side.repo.Git("rev-parse", tip.String()+":a/b"))
		rows := []struct {
			name    string
			req     wire.FetchRequest
			objects int
		}{
			{"depth", wire.FetchRequest{Wants: []packfile.ID{tip}, Depth: 1}, 6},
			{"depth and filter", wire.FetchRequest{Wants: []packfile.ID{tip}, Depth: 1, Filter: "tree:2"}, 4}, // the blob d, too
			{"have", wire.FetchRequest{Wants: []packfile.ID{tip}, Haves: []packfile.ID{first}}, 5},
			{"descent", wire.FetchRequest{Wants: []packfile.ID{tip}, Haves: []packfile.ID{first}, Shallow: []packfile.ID{first}, Filter: "tree:0"}, 1},
			{"tree by hash", wire.FetchRequest{Wants: []packfile.ID{tree}, Filter: "tree:0"}, 1},
		}
		for _, row := range rows {
			pack, err := s.Fetch(t.Context(), row.req)
			if err != nil {
				t.Errorf("%s: %v", row.name, err)
				continue
			}
			if got := int(pack[11]); got != row.objects {
				t.Errorf("%s: %d objects, want %d", row.name, got, row.objects)
			}
		}
		if !s.CanFilter() {
			t.Error("CanFilter is false")
		}
	})
}

func TestFetchRefuses(t *testing.T) {
	srv, side := httpSide(t, teststand.Options{NoFilter: true, NoAnyWant: true})
	tip := side.repo.Commit(ledger, map[string]string{"a": strings.Repeat("x", 1000)})
	s := side.open(t)
	mustTip(t, s, ledger, tip)
	if s.CanFilter() {
		t.Error("CanFilter is true")
	}
	srv.Reset()
	want := []packfile.ID{tip}
	if _, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: want, Filter: "tree:4"}); !errors.Is(err, wire.ErrNoFilter) {
		t.Errorf("a filter: %v", err)
	}
	for _, req := range []wire.FetchRequest{{}, {Wants: []packfile.ID{{}}}, {Wants: want, Haves: want}, {Wants: want, Depth: -1}} {
		if _, err := s.Fetch(t.Context(), req); err == nil {
			t.Errorf("%+v was sent", req)
		}
	}
	if n := len(srv.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
	if _, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: want, Limit: 100}); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("a limit: %v", err)
	}
	none := packfile.ParseID("1234567890123456789012345678901234567890")
	if _, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{none}}); err == nil {
		t.Error("an object that is not there was fetched")
	}
}

// FetchTo writes the same bytes, and ends when its writer does.
func TestFetchTo(t *testing.T) {
	everySide(t, func(t *testing.T, side side) {
		tip := side.repo.Commit(ledger, map[string]string{"a": random(t, 1<<20)})
		s := side.open(t)
		req := wire.FetchRequest{Wants: []packfile.ID{tip}}
		var out strings.Builder
		fatal(t, s.FetchTo(t.Context(), req, &out))
		unpack(t, []byte(out.String()))
		if err := s.FetchTo(t.Context(), req, full{}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a writer that fails: %v", err)
		}
		mustTip(t, s, ledger, tip)
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestFetchLimitEverywhere(t *testing.T) {
	everySide(t, func(t *testing.T, side side) {
		tip := side.repo.Commit(ledger, map[string]string{"a": random(t, 300<<10)})
		s := side.open(t)
		if _, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{tip}, Limit: 200 << 10}); !errors.Is(err, wire.ErrTooLarge) {
			t.Errorf("a limit: %v", err)
		}
		pack, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{tip}, Limit: 400 << 10})
		if err != nil || len(pack) < 300<<10 {
			t.Errorf("%d bytes, %v", len(pack), err)
		}
	})
}

// A push is one request, and a session is one connection.
func TestRequestsAndConnections(t *testing.T) {
	for _, o := range []teststand.Options{{}, {TLS: true}} {
		srv, side := httpSide(t, o)
		s := side.open(t)
		first, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
		mustPush(t, s, packfile.None, first, pack)
		mustTip(t, s, ledger, first)
		for range 2 {
			if _, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{first}, Depth: 1}); err != nil {
				t.Fatal(err)
			}
		}
		srv.FailPush(teststand.Fault{Kind: teststand.StatusBefore, Status: 500})
		if err := s.Push(t.Context(), ledger, first, first, pack); err == nil {
			t.Error("a 500 was success")
		}
		mustTip(t, s, ledger, first)
		all := srv.Requests()
		if len(all) != 6 {
			t.Fatalf("%d requests: %+v", len(all), all)
		}
		if all[0].Method != "POST" || all[0].URI != "/r.git/git-receive-pack" || all[1].URI != "/r.git/info/refs?service=git-upload-pack" {
			t.Errorf("requests %+v", all)
		}
		for _, r := range all {
			if r.Remote != all[0].Remote {
				t.Errorf("TLS %v: a second connection for %s", o.TLS, r.URI)
			}
			if r.UserAgent != wire.DefaultUserAgent || r.Authorization != "" {
				t.Errorf("user agent %q, authorization %q", r.UserAgent, r.Authorization)
			}
			if (r.Protocol == "HTTP/2.0") != o.TLS {
				t.Errorf("TLS %v, and %s", o.TLS, r.Protocol)
			}
		}
	}
}

func TestManyRefs(t *testing.T) {
	everySide(t, func(t *testing.T, side side) {
		tip := side.repo.Commit(ledger, map[string]string{"a": "1"})
		var packed strings.Builder
		packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
		for i := range 20000 {
			packed.WriteString(tip.String() + " refs/heads/" + padded(i) + "\n")
		}
		fatal(t, os.WriteFile(filepath.Join(side.repo.Dir, "packed-refs"), []byte(packed.String()), 0o600))
		mustTip(t, side.open(t), ledger, tip)
	})
}

func TestTooManyRefs(t *testing.T) {
	srv, http := httpSide(t, teststand.Options{})
	sshd, ssh := sshSide(t)
	endless := pkt("1234567890123456789012345678901234567890 refs/heads/a\x00agent=x\n") + uniqueRefs(65<<20)
	srv.SetFault(fault(teststand.Fault{Kind: teststand.BodyBefore, Body: pkt("# service=git-upload-pack\n") + "0000" + endless}))
	sshd.SetAnswer(endless)
	for name, s := range map[string]side{"http": http, "ssh": ssh} {
		if _, err := s.open(t).Tip(t.Context(), ledger); !errors.Is(err, wire.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func fault(f teststand.Fault) func(int, *http.Request) teststand.Fault {
	return func(int, *http.Request) teststand.Fault { return f }
}

func TestNames(t *testing.T) {
	srv, side := httpSide(t, teststand.Options{})
	s := side.open(t)
	one, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
	for _, ref := range []string{"", "HEAD", "main", "refs/heads/a b", "refs/heads/a\x00report-status", "refs/heads/a\n", "refs/heads/../x", "refs/heads/\x7f", "/refs/heads/x", "refs//x"} {
		if ref == "HEAD" { // which may be asked for, and not written
		} else if _, err := s.Tip(t.Context(), ref); err == nil {
			t.Errorf("asked for %q", ref)
		}
		if err := s.Push(t.Context(), ref, packfile.None, one, pack); err == nil {
			t.Errorf("pushed %q", ref)
		}
	}
	if err := s.Push(t.Context(), ledger, one, packfile.None, pack); err == nil {
		t.Error("a deletion was sent")
	}
	if err := s.Push(t.Context(), ledger, packfile.None, one, nil); err == nil {
		t.Error("a push without a pack was sent")
	}
	if n := len(srv.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestNotFound(t *testing.T) {
	srv, _ := httpSide(t, teststand.Options{})
	sshd, side := sshSide(t)
	for _, url := range []string{srv.URL("none"), filepath.Join(t.TempDir(), "none")} {
		_, err := open(t, url, wire.Options{}).Tip(t.Context(), ledger)
		if !errors.Is(err, wire.ErrNotFound) {
			t.Errorf("%s: %v", url, err)
		}
	}
	_, err := open(t, sshd.URL("/none"), side.o).Tip(t.Context(), ledger)
	var e *wire.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, "/none") {
		t.Errorf("ssh: %v", err)
	}
	if _, err := open(t, t.TempDir(), wire.Options{}).Tip(t.Context(), ledger); err == nil {
		t.Error("a directory that is no repository has refs")
	}
}

func TestCancelled(t *testing.T) {
	everySide(t, func(t *testing.T, side side) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := side.open(t)
		var network *wire.NetworkError
		if _, err := s.Tip(ctx, ledger); !errors.Is(err, context.Canceled) || !errors.As(err, &network) || network.Timeout() {
			t.Errorf("%v", err)
		}
		mustTip(t, s, ledger, packfile.None) // and it is usable after
	})
}

// TestFetchAfterPush: what a server says that it can do with a push is not taken for what it can do with a fetch.
func TestFetchAfterPush(t *testing.T) {
	everySide(t, func(t *testing.T, side side) {
		s := side.open(t)
		first := side.repo.Commit(ledger, map[string]string{"a": "1", "d/b": "2"})
		next, pack := side.repo.Pack(first, map[string]string{"a": "3"})
		mustTip(t, s, ledger, first)
		mustPush(t, s, first, next, pack)
		if _, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{next}, Depth: 1, Filter: "tree:1"}); err != nil || !s.CanFilter() {
			t.Errorf("%v, filters: %t", err, s.CanFilter())
		}
	})
}
