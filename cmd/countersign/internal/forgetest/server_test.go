package forgetest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestGiteaServer: what the tests of others build on.
func TestGiteaServer(t *testing.T) {
	s := forgetest.Start(t)
	var version struct{ Version string }
	s.Must(forgetest.User{}, http.MethodGet, "/version", nil, &version)
	if _, number, _ := strings.Cut(s.Version, "v"); !strings.HasPrefix(version.Version, number) {
		t.Errorf("version %s, not %s", version.Version, s.Version)
	}
	ada, bob := s.User("ada"), s.User("bob")
	s.Org("acme", ada)
	s.Team("acme", "writers", "write", bob)
	r := s.Repository(ada, "acme", "site", map[string]string{"a.txt": "a\n"})
	r.Protect("main", map[string]any{"enable_push": false})
	if out, err := r.TryPush(bob, r.Commit(bob, "topic", "work", map[string]string{"b.txt": "b\n"})+":refs/heads/main"); err == nil || !strings.Contains(out, "protected branch") {
		t.Errorf("pushed to a protected branch: %v\n%s", err, out)
	}
	pull := r.PullRequest(bob, "topic", "main", "Work")
	comment := r.Comment(bob, pull, "hello")
	r.Review(ada, pull, "APPROVED", "good", "")

	s.Restart()
	var said []struct {
		ID   int64
		Body string
		User struct{ ID int64 }
	}
	s.Must(ada, http.MethodGet, r.Path("issues", pull, "comments"), nil, &said)
	if len(said) != 1 || said[0].ID != comment || said[0].User.ID != bob.ID {
		t.Errorf("comments after a restart: %+v", said)
	}
	var reviews []struct{ State string }
	s.Must(ada, http.MethodGet, r.Path("pulls", pull, "reviews"), nil, &reviews)
	if len(reviews) != 1 || reviews[0].State != "APPROVED" {
		t.Errorf("reviews: %+v", reviews)
	}
}

// TestGiteaFaults: requests from outside fail on demand, those of the test's own arrangements do not, and
// neither does the server's address end with it.
func TestGiteaFaults(t *testing.T) {
	s := forgetest.Start(t)
	ada := s.User("ada")
	r := s.Repository(ada, "ada", "site", map[string]string{"a.txt": "a\n"})
	s.Reset()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // else it asks again of itself
	get := func() int {
		t.Helper()
		answer, err := client.Get(s.URL + "/api/v1/version")
		if err != nil {
			return 0
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	s.SetFault(func(n int, _ *http.Request) teststand.Fault {
		return []teststand.Fault{{}, {Kind: teststand.StatusBefore, Status: 500}, {Kind: teststand.CutAfter}}[n%3]
	})
	got := []int{get(), get(), get()}
	r.Commit(ada, "main", "more", map[string]string{"b.txt": "b\n"})
	s.SetFault(nil)
	s.Kill()
	got = append(got, get())
	s.Restart()
	got = append(got, get())
	if !slices.Equal(got, []int{500, 0, 200, 502, 200}) {
		t.Error(got)
	}
	var told []int
	for _, request := range s.Requests() {
		told = append(told, request.Status)
	}
	if !slices.Equal(told, []int{500, 0, 200, 502, 200}) {
		t.Errorf("noted: %v", told)
	}
}
