package githubtest

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

var update = flag.Bool("update", false, "write testdata/events anew")

// The payload of each event that a workflow listens to is as GitHub describes
// it, and stands in testdata/events, where the client's tests may read it.
func TestEvents(t *testing.T) {
	s := New(t)
	second := int64(1767225600)
	s.SetNow(func() time.Time { second++; return time.Unix(second, 0) })
	s.Organization("acme")
	for _, login := range []string{"ada", "bob", "carol"} {
		s.User(login)
	}
	s.Bot("helper[bot]")
	s.Repository(NewRepository{Name: "acme/site", Files: map[string]string{"a.txt": "1\n"}})
	s.Role("acme/site", "ada", "write")
	s.Push(NewCommit{Repository: "acme/site", Branch: "fix", By: "helper[bot]", Files: map[string]string{"a.txt": "2\n"}})
	s.PullRequest(NewPullRequest{Repository: "acme/site", By: "helper[bot]", Head: "fix", Title: "Fix the site"})
	s.Fork("acme/site", "carol/site")
	s.Push(NewCommit{Repository: "carol/site", Branch: "idea", By: "carol", Files: map[string]string{"c.txt": "c\n"}})
	s.PullRequest(NewPullRequest{Repository: "acme/site", By: "carol", Head: "idea", HeadRepository: "carol/site", Body: "An idea."})
	comment := s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "bob", Body: "/deny all of it"})
	asked := s.ReviewComment(NewComment{Repository: "acme/site", Number: 1, By: "helper[bot]", Body: "Please decide.", Path: "a.txt"})
	reply := s.ReviewComment(NewComment{Repository: "acme/site", Number: 1, By: "ada", Body: "/approve", ReplyTo: asked.ID})
	review := s.Review(NewComment{Repository: "acme/site", Number: 1, By: "ada", State: "APPROVED", Body: "fine"})
	relay := s.WorkflowRun(NewWorkflowRun{Repository: "acme/site", Name: "relay", Path: ".github/workflows/relay.yml", Event: "pull_request_review", HeadBranch: "fix", By: "ada"})
	propose := s.WorkflowRun(NewWorkflowRun{
		Repository: "acme/site", HeadRepository: "carol/site", Name: "propose", Path: ".github/workflows/propose.yml", Event: "pull_request",
		HeadBranch: "idea", By: "carol", Conclusion: "action_required",
	})
	site := func(e Event) Event { e.Repository = "acme/site"; return e }
	check := func(e Event, name string) {
		t.Helper()
		golden(t, name, trimmed(t, bytes.ReplaceAll(s.Event(site(e)), []byte(s.URL), []byte("https://github.test"))))
	}

	check(Event{Name: "issue_comment", Action: "created", ID: comment.ID}, "issue_comment.created")
	s.Edit(comment.ID, "ada", "/approve")
	check(Event{Name: "issue_comment", Action: "edited", ID: comment.ID}, "issue_comment.edited")
	s.Delete(comment.ID)
	check(Event{Name: "issue_comment", Action: "deleted", ID: comment.ID, By: "ada"}, "issue_comment.deleted")
	check(Event{Name: "pull_request_review", Action: "submitted", ID: review.ID}, "pull_request_review.submitted")
	s.Dismiss(review.ID)
	check(Event{Name: "pull_request_review", Action: "dismissed", ID: review.ID, By: "bob"}, "pull_request_review.dismissed")
	check(Event{Name: "pull_request_review_comment", Action: "created", ID: reply.ID}, "pull_request_review_comment.created")
	check(Event{Name: "workflow_run", Action: "requested", ID: propose}, "workflow_run.requested")
	check(Event{Name: "workflow_run", Action: "completed", ID: relay}, "workflow_run.completed")
	check(Event{Name: "pull_request_target", Action: "opened", Number: 2}, "pull_request_target.opened")
	s.Push(NewCommit{Repository: "carol/site", Branch: "idea", By: "carol", Files: map[string]string{"c.txt": "d\n"}})
	check(Event{Name: "pull_request_target", Action: "synchronize", Number: 2}, "pull_request_target.synchronize")
	s.Push(NewCommit{Repository: "acme/site", Branch: "next", By: "ada"})
	s.Retarget("acme/site", 2, "next")
	check(Event{Name: "pull_request_target", Action: "edited", Number: 2, By: "ada"}, "pull_request_target.edited")
	check(Event{Name: "merge_group", Action: "checks_requested", Number: 1, Commit: "fix"}, "merge_group.checks_requested")
	s.Merge("acme/site", 1, "ada", "merge")
	check(Event{Name: "pull_request_target", Action: "closed", Number: 1, By: "ada"}, "pull_request_target.closed")
	s.ClosePull("acme/site", 2)
	s.ReopenPull("acme/site", 2)
	check(Event{Name: "pull_request_target", Action: "reopened", Number: 2}, "pull_request_target.reopened")
	check(Event{Name: "workflow_dispatch", Inputs: map[string]string{"pr": "1"}, By: "ada"}, "workflow_dispatch")
	check(Event{Name: "schedule"}, "schedule")
}

// trimmed is a payload without most of its addresses, which nobody reads.
func trimmed(t *testing.T, payload []byte) []byte {
	t.Helper()
	var v map[string]any
	teststand.Fatal(t, json.Unmarshal(payload, &v))
	withoutAddresses(v)
	out, err := json.MarshalIndent(v, "", "  ")
	teststand.Fatal(t, err)
	return out
}

func withoutAddresses(v any) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(name string, _ any) bool {
			return name == "_links" || strings.HasSuffix(name, "_url") && name != "html_url" && name != "clone_url"
		})
		for _, inner := range v {
			withoutAddresses(inner)
		}
	case []any:
		for _, inner := range v {
			withoutAddresses(inner)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "events", name+".json")
	got = append(got, '\n')
	if *update {
		teststand.Fatal(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	teststand.Fatal(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the server renders; -update writes it anew", file)
	}
}

func TestEventThatGitHubWouldNotSend(t *testing.T) {
	s, _ := site(t)
	e := Event{Name: "pull_request_target", Action: "opened", Repository: "acme/site", Number: 1}
	payload := s.Event(e)
	for _, test := range []struct{ from, to, says string }{
		{`"number": 1`, `"number": "1"`, "number"},
		{`"action": "opened"`, `"action": "closed"`, "/action"},
		{`"sender"`, `"sent_by"`, "sender"},
		{`"maintainer_can_modify": false`, `"maintainer_can_modify": null`, "/pull_request"},
	} {
		changed := bytes.Replace(payload, []byte(test.from), []byte(test.to), 1)
		if bytes.Equal(changed, payload) {
			t.Fatalf("no %s in the payload", test.from)
		}
		if err := checkEvent(e, changed); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.to, err)
		}
	}
}
