package forge

import (
	"strings"
	"testing"
)

// T68: which run hands over a bundle for pull request 2: a run of the events workflow that succeeded, and where the
// file has no folder (Gitea) one that ran for that pull request.
func TestT68HandsOver(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int64{
		".github/workflows/countersign-events.yml":                                  7,
		".github/workflows/countersign-events.yml@refs/heads/main":                  7,
		".github/workflows/other.yml":                                               0,
		"countersign-events.yml@refs/pull/2/head":                                   7,
		"countersign-events.yml@refs/pull/22/head":                                  0,
		"countersign-events.yml@refs/pull/1/head":                                   0,
		"countersign-events.yml@refs/pull/2/head@refs/heads/main":                   0,
		"countersign-events.yml@refs/heads/main":                                    0,
		"countersign-events.yml":                                                    0,
		"other.yml@refs/pull/2/head":                                                0,
		"x/countersign-events.yml@refs/pull/2/head":                                 0,
		".gitea/workflows/countersign-events.yml@refs/heads/pull/2":                 0,
		"countersign-events.yml@refs/heads/countersign-events.yml@refs/pull/2/head": 0,
	} {
		for change, now := range map[string]int64{"": want, `"success"→"failure"`: 0, `"completed"→"requested"`: 0, `"pull_request"→"schedule"`: 0} {
			raw := `{"action": "completed", "workflow_run": {"id": 7, "path": "` + path + `", "event": "pull_request", "conclusion": "success"}}`
			if from, to, is := strings.Cut(change, "→"); is {
				raw = strings.Replace(raw, from, to, 1)
			}
			e, err := ReadEvent("workflow_run", "refs/heads/main", strings.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			if got := e.HandsOver(2); got != now {
				t.Errorf("%s %s: %d, want %d", path, change, got, now)
			}
		}
	}
}

// TestCommented: only a new comment on an issue, which is no pull request, is one that may review an exception.
func TestCommented(t *testing.T) {
	for text, id := range map[string]string{
		`{"action":"created","issue":{"number":7},"comment":{"id":9}}`:                   "9",
		`{"action":"edited","issue":{"number":7},"comment":{"id":9}}`:                    "",
		`{"action":"created","issue":{"number":7,"pull_request":{}},"comment":{"id":9}}`: "",
		`{"action":"created","issue":{"number":7},"comment":{"id":-9}}`:                  "",
		`{"action":"created","issue":{"number":7}}`:                                      "",
		`{"action":"created","comment":{"id":9}}`:                                        "",
	} {
		for _, name := range []string{"issue_comment", "push"} {
			e, err := ReadEvent(name, "refs/heads/main", strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if issue, got := e.Commented(); name == "push" && got != "" || name != "push" && (got != id || (issue == 7) != (id != "")) {
				t.Errorf("%s %s: %d %q", name, text, issue, got)
			}
		}
	}
}

// TestT18Trusted: whose workflow file a pull request brings, or a branch of anybody's, is no event to read approvals on.
func TestT18Trusted(t *testing.T) {
	const main = "refs/heads/main"
	for _, c := range []struct {
		name, ref string
		trusted   bool
	}{
		{"issue_comment", main, true}, {"workflow_run", main, true}, {"pull_request_target", main, true}, {"merge_group", main, true}, {"schedule", main, true},
		{"pull_request", "refs/pull/1/merge", false}, {"pull_request_review", main, false}, {"pull_request_review_comment", main, false},
		{"push", main, false}, {"", main, false}, {"pull_request_target ", main, false}, {"workflow_call", main, false}, {"ISSUE_COMMENT", main, false},
		{"workflow_dispatch", main, true}, {"workflow_dispatch", "refs/heads/topic", false}, {"workflow_dispatch", "refs/tags/main", false},
		{"workflow_dispatch", "", false}, {"workflow_dispatch", "main", false}, {"workflow_dispatch", "refs/pull/1/merge", false}, {"workflow_dispatch", "refs/heads/main2", false},
	} {
		e, err := ReadEvent(c.name, c.ref, strings.NewReader(`{"repository":{"id":1,"default_branch":"main"}}`))
		if err != nil || (e.Trusted() == nil) != c.trusted {
			t.Errorf("%q on %q: %v, %v", c.name, c.ref, err, e.Trusted())
		}
	}
}
