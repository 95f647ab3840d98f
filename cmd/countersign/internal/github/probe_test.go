package github

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// probed is a server that answers each request by a table: "METHOD path" → status
// and body. What is not in the table is 404.
func probed(t *testing.T, answers map[string]string) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/repos/") {
			var doc map[string]string
			if err := json.Unmarshal(body, &doc); err != nil || doc["head"] != doc["base"] || strings.Trim(doc["sha"]+doc["head_sha"], "0") != "" {
				t.Errorf("%s might be carried out: %s", r.URL.Path, body)
			}
		}
		status, text, _ := strings.Cut(answers[r.Method+" "+r.URL.Path], " ")
		w.Header().Set("X-GitHub-Enterprise-Version", "3.21.0")
		switch status {
		case "":
			w.WriteHeader(http.StatusNotFound)
		case "403":
			w.WriteHeader(http.StatusForbidden)
		case "422":
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	c, err := New(Options{APIURL: server.URL, Repository: "o/n", Token: "t", Wait: func(context.Context, time.Duration) error { return nil }})
	teststand.Fatal(t, err)
	return c
}

func TestProbe(t *testing.T) {
	answers := map[string]string{
		"GET /repos/o/n":                            `200 {"default_branch":"main"}`,
		"POST /graphql":                             `200 {"data":{"viewer":{"__typename":"Bot","login":"app","databaseId":7}}}`,
		"POST /repos/o/n/git/refs":                  `422 {"message":"Object does not exist"}`,
		"POST /repos/o/n/check-runs":                `403 {"message":"Resource not accessible by integration"}`,
		"GET /repos/o/n/actions/runs":               `200 {"total_count":0}`,
		"GET /repos/o/n/rulesets":                   `200 [{"id":1,"name":"paths","target":"push","enforcement":"active"},{"id":2,"name":"off","target":"push","enforcement":"disabled"},{"id":3,"name":"b","target":"branch","enforcement":"active"},{"id":4,"name":"hidden","target":"push","enforcement":"active"}]`,
		"GET /repos/o/n/rulesets/1":                 `200 {"rules":[{"type":"file_path_restriction"}]}`,
		"GET /repos/o/n/rules/branches/team/ledger": `200 [{"type":"deletion"}]`,
		"GET /orgs/acme/teams/security":             `200 {"id":1}`,
		"GET /repos/o/n/branches/main":              `200 {"protection":{"required_status_checks":{"contexts":["build"]}}}`,
		"GET /repos/o/n/rules/branches/main":        `200 [{"type":"deletion"},{"type":"required_status_checks","parameters":{"required_status_checks":[{"context":"countersign"}]}}]`,
		"GET /repos/o/n/actions/workflows/a.yml":    `200 {"state":"disabled_inactivity"}`,
		"GET /repos/o/n/actions/workflows/b.yml":    `200 {"state":"active"}`,
	}
	f, err := probed(t, answers).Probe(context.Background(), "team/ledger")
	teststand.Fatal(t, err)
	want := Facts{
		Version: "3.21.0", DefaultBranch: "main", Account: f.Account,
		Rights:    map[string]bool{"contents: write": true, "checks: write": false, "pull-requests: write": false, "actions: read": true},
		PushRules: []Rules{{"paths", []string{"file_path_restriction"}}, {"hidden", nil}}, BranchRules: []string{"deletion"},
		Checks: []string{"build", "countersign"},
	}
	if !reflect.DeepEqual(f, want) || f.Account.Login != "app" {
		t.Errorf("facts %+v", f)
	}
	probed(t, answers).ProbeNamed(context.Background(), &f, []string{"acme/security", "acme/secret"}, []string{"a.yml", "b.yml", "c.yml"})
	if !f.Teams["acme/security"] || f.Teams["acme/secret"] || len(f.Teams) != 2 {
		t.Errorf("teams %v", f.Teams)
	}
	if !f.Disabled["a.yml"] || f.Disabled["b.yml"] || f.Disabled["c.yml"] {
		t.Errorf("disabled %v", f.Disabled)
	}
}

// How Pages are published is asked where a workflow publishes them; GitHub tells of none
// by 404, and says nothing to a token that may not know.
func TestProbePages(t *testing.T) {
	for answer, want := range map[string]*Pages{
		`200 {"build_type":"workflow","public":true}`: {"workflow", true},
		`200 {"build_type":"legacy","public":false}`:  {"legacy", false},
		``:       {},
		`403 {}`: nil,
	} {
		var f, unasked Facts
		c := probed(t, map[string]string{"GET /repos/o/n/pages": answer})
		c.ProbeNamed(context.Background(), &f, nil, []string{"countersign.yml", PagesWorkflow})
		c.ProbeNamed(context.Background(), &unasked, nil, []string{"countersign.yml"})
		if !reflect.DeepEqual(f.Pages, want) || unasked.Pages != nil {
			t.Errorf("%q: %+v, not asked %+v", answer, f.Pages, unasked.Pages)
		}
	}
}

// IsPublic takes a repository of which GitHub does not say it for one that is not.
func TestIsPublic(t *testing.T) {
	for answer, want := range map[string]bool{`200 {"id":1,"private":false}`: true, `200 {"id":1,"private":true}`: false, `200 {"id":1}`: false,
		`200 {"id":1,"private":false,"visibility":"public"}`: true, `200 {"id":1,"private":false,"visibility":"internal"}`: false,
		`200 {"id":1,"private":null,"visibility":"public"}`: false, `200 {"id":1,"visibility":"public"}`: false} {
		public, err := probed(t, map[string]string{"GET /repos/o/n": answer}).IsPublic(context.Background())
		if err != nil || public != want {
			t.Errorf("%s: %t, %v", answer, public, err)
		}
	}
	if public, err := probed(t, nil).IsPublic(context.Background()); err == nil || public {
		t.Errorf("a repository that is not there: %t, %v", public, err)
	}
}

// Whether workflows may open pull requests is told to an administrator, and by
// the refusal where they may not.
func TestProbeOpensPulls(t *testing.T) {
	for answer, want := range map[string]string{
		`GET /repos/o/n/actions/permissions/workflow 200 {"can_approve_pull_request_reviews":true}`:                   "true",
		`GET /repos/o/n/actions/permissions/workflow 200 {"can_approve_pull_request_reviews":false}`:                  "false",
		`GET /repos/o/n/actions/permissions/workflow 403 {}`:                                                          "not told",
		`POST /repos/o/n/pulls 403 {"message":"GitHub Actions is not permitted to create or approve pull requests."}`: "false",
	} {
		method, rest, _ := strings.Cut(answer, " ")
		path, said, _ := strings.Cut(rest, " ")
		f, err := probed(t, map[string]string{"GET /repos/o/n": `200 {"default_branch":"main"}`, method + " " + path: said}).Probe(context.Background(), "")
		got := "not told"
		if f.OpensPulls != nil {
			got = strconv.FormatBool(*f.OpensPulls)
		}
		if err != nil || got != want || !f.ChecksUnread || method == "POST" && !f.Rights["pull-requests: write"] {
			t.Errorf("%s: %s, %+v, %v", answer, got, f, err)
		}
	}
}

// A repository that cannot be read is an error, and rules that cannot are not
// taken for none.
func TestProbeFails(t *testing.T) {
	if _, err := probed(t, nil).Probe(context.Background(), ""); err == nil {
		t.Error("no repository is no error")
	}
	answers := map[string]string{"GET /repos/o/n": `200 {"default_branch":"main"}`, "GET /repos/o/n/rulesets": `403 {"message":"Upgrade"}`}
	if f, err := probed(t, answers).Probe(context.Background(), ""); err != nil || !f.RulesUnread {
		t.Errorf("rules that cannot be read: %+v, %v", f, err)
	}
	answers["GET /repos/o/n/rulesets"] = "200 [{"
	if _, err := probed(t, answers).Probe(context.Background(), ""); err == nil {
		t.Error("half an answer is no error")
	}
}
