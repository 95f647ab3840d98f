package teststand_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// git itself accepts the server as one.
func TestGitUsesServer(t *testing.T) {
	srv := teststand.NewServer(t, teststand.Options{})
	repo := srv.Bare("r.git")
	tip := repo.Commit("refs/heads/main", map[string]string{"a/b": strings.Repeat("x", 100)})
	dir := filepath.Join(t.TempDir(), "clone")
	git := func(args ...string) string { return teststand.Git(t, "", "", args...) }
	git("clone", "--quiet", "--filter=tree:0", srv.URL("r.git"), dir)
	git("-C", dir, "push", "--quiet", "origin", "HEAD:refs/agent/x")
	if got := repo.Ref("refs/agent/x"); got != tip {
		t.Errorf("pushed %s, want %s", got, tip)
	}
	if n := len(srv.Requests()); n < 4 {
		t.Errorf("%d requests", n)
	}
}

func TestPackLeavesRepositoryAlone(t *testing.T) {
	repo := teststand.Bare(t, filepath.Join(t.TempDir(), "r"))
	next, pack := repo.Pack(packfile.None, map[string]string{"a": "1"})
	if got := repo.Git("count-objects"); !strings.HasPrefix(got, "0 objects") {
		t.Error(got)
	}
	again, _ := repo.Pack(packfile.None, map[string]string{"a": "1"})
	if next != again || pack[11] != 3 {
		t.Errorf("%s, then %s, with %d objects", next, again, pack[11])
	}
}

// Faults are asked for by number, and the counts are right.
func TestFaultsAndCounts(t *testing.T) {
	srv := teststand.NewServer(t, teststand.Options{})
	srv.Bare("r.git")
	var seen []int
	srv.SetFault(func(n int, _ *http.Request) teststand.Fault {
		seen = append(seen, n)
		if n == 2 {
			return teststand.Fault{Kind: teststand.StatusBefore, Status: 503}
		}
		return teststand.Fault{}
	})
	for i := range 3 {
		resp, err := srv.Client().Get(srv.URL("r.git") + "/info/refs?service=git-upload-pack")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if want := map[bool]int{true: 503, false: 200}[i == 1]; resp.StatusCode != want {
			t.Errorf("request %d: %s", i, resp.Status)
		}
	}
	if len(seen) != 3 || seen[0] != 1 {
		t.Errorf("asked for %v", seen)
	}
	all := srv.Requests()
	if len(all) != 3 || all[0].Out == 0 || all[0].In != 0 || all[1].Out != 0 {
		t.Errorf("%+v", all)
	}
	srv.Reset()
	if len(srv.Requests()) != 0 {
		t.Error("not forgotten")
	}
}
