package github

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
)

// T82 Deployments are those of the commit, all of them, and each is what it came to: half of an answer is an error.
func TestT82Deployments(t *testing.T) {
	commit := strings.Repeat("a", 40)
	one := func(sha, env string, id int) string {
		return fmt.Sprintf(`{"id":%d,"sha":%q,"environment":%q,"created_at":"2026-01-05T12:00:00Z"}`, id, sha, env)
	}
	states := func(all ...string) step {
		for i, state := range all {
			all[i] = fmt.Sprintf(`{"state":%q,"created_at":"2026-01-05T13:0%d:00Z"}`, state, len(all)-i)
		}
		return step{body: "[" + strings.Join(all, ",") + "]"}
	}
	for _, row := range []struct {
		name  string
		steps []step
		want  string
		kind  rest.Kind
	}{
		{"none", []step{{body: "[]"}}, "", ""},
		{"one that succeeded, and was replaced", []step{{body: "[" + one(commit, "eu", 1) + "]"}, states("inactive", "success", "in_progress")}, "eu success 13:02", ""},
		{"one that failed", []step{{body: "[" + one(commit, "eu", 1) + "]"}, states("failure", "queued")}, "eu failure 13:02", ""},
		{"one of which nothing is told", []step{{body: "[" + one(commit, "eu", 1) + "]"}, states()}, "eu  12:00", ""},
		{"of another commit", []step{{body: "[" + one(strings.Repeat("b", 40), "eu", 1) + "]"}}, "", rest.KindAnswer},
		{"without a number", []step{{body: "[" + one(commit, "eu", 0) + "]"}}, "", rest.KindAnswer},
		{"without an environment", []step{{body: "[" + one(commit, "", 1) + "]"}}, "", rest.KindAnswer},
		{"a status without a state", []step{{body: "[" + one(commit, "eu", 1) + "]"}, states("")}, "", rest.KindAnswer},
		{"whose status is not told", []step{{body: "[" + one(commit, "eu", 1) + "]"}, {status: 403, body: "{}"}}, "", rest.KindPermission},
		{"not told", []step{{status: 404, body: "{}"}}, "", rest.KindNotFound},
		{"half of the answer", []step{{body: "[" + one(commit, "eu", 1)}}, "", rest.KindNetwork},
	} {
		server := newScript(t, row.steps...)
		all, err := newClient(t, server.URL, &pauses{}).Deployments(t.Context(), commit)
		checkKind(t, err, row.kind)
		var got []string
		for _, d := range all {
			got = append(got, d.Environment+" "+d.State+" "+d.At.Format("15:04"))
		}
		if text := strings.Join(got, ", "); row.kind == "" && text != row.want || row.kind != "" && err == nil {
			t.Errorf("%s: %q, %v", row.name, text, err)
		}
	}
	if _, err := newClient(t, newScript(t).URL, &pauses{}).Deployments(t.Context(), "main"); err == nil {
		t.Error("a branch was asked about")
	}
}
