package gitea_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// saying is a client of a server that has these answers, by path below /api/v1.
func saying(t *testing.T, answers map[string]string) *gitea.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, has := answers[strings.TrimPrefix(r.URL.Path, "/api/v1/")]
		if !has {
			w.WriteHeader(http.StatusForbidden)
			answer = "{}"
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return must(gitea.New(gitea.Options{Server: server.URL, Repository: "acme/site", Token: "t"}))
}

// T11, T82: an account is the one of that number, or there is none.
func TestT11AccountByNumber(t *testing.T) {
	const ada = `{"id":12,"login":"ada","restricted":false}`
	for _, row := range []struct {
		id, answer string
		is, hidden bool // or gone, which looks the same
	}{
		{"12", `{"ok":true,"data":[` + ada + `]}`, true, false},
		{"12", `{"ok":true,"data":[]}`, false, true},
		{"12", `{"ok":true,"data":null}`, false, false},
		{"12", `{"ok":true}`, false, false},
		{"12", `{"data":[]}`, false, false},
		{"12", `{"ok":false,"data":[` + ada + `]}`, false, false},
		{"12", `{"ok":true,"data":[` + ada + `,` + ada + `]}`, false, false},
		{"12", `{"ok":true,"data":[null]}`, false, false},
		{"13", `{"ok":true,"data":[` + ada + `]}`, false, false},
		{"-2", `{"ok":true,"data":[{"id":-2,"login":"gitea-actions"}]}`, false, false},
		{"ada", `{"ok":true,"data":[` + ada + `]}`, false, false},
	} {
		who, err := saying(t, map[string]string{"users/search": row.answer}).Account(t.Context(), row.id)
		if (err == nil) != row.is || (who.Login == "ada") != row.is || errors.Is(err, forge.ErrPermission) != row.hidden || errors.Is(err, forge.ErrNotFound) {
			t.Errorf("%s, %s: %+v, %v", row.id, row.answer, who, err)
		}
	}
	if _, err := saying(t, nil).Account(t.Context(), "12"); !errors.Is(err, forge.ErrPermission) {
		t.Errorf("not allowed: %v", err)
	}
}

// T67: the statuses that a branch's rule demands, where rules are told.
func TestT67RequiredStatuses(t *testing.T) {
	const rule = `[{"rule_name":"main","enable_status_check":true,"status_check_contexts":["gate"]}]`
	const rules, branch = "repos/acme/site/branch_protections", "repos/acme/site/branches/main"
	for _, row := range []struct {
		name    string
		answers map[string]string
		want    int
		fails   bool
	}{
		{"demanded", map[string]string{rules: rule, branch: `{"effective_branch_protection_name":"main"}`}, 1, false},
		{"and by a pattern", map[string]string{rules: strings.Replace(rule, `"gate"`, `"g*","gate"`, 1), branch: `{"effective_branch_protection_name":"main"}`}, 1, false},
		{"no rule for it", map[string]string{rules: rule, branch: `{"effective_branch_protection_name":"other"}`}, 0, false},
		{"switched off", map[string]string{rules: strings.Replace(rule, "true", "false", 1), branch: `{"effective_branch_protection_name":"main"}`}, 0, false},
		{"no rules", map[string]string{rules: "[]", branch: `{}`}, 0, false},
		{"rules are not told", map[string]string{branch: `{}`}, 0, true},
		{"the branch is not told", map[string]string{rules: rule}, 0, true},
	} {
		got, err := saying(t, row.answers).Required(t.Context(), "main")
		if len(got.Checks) != row.want || (err != nil) != row.fails || (got.Unread != "") != strings.Contains(row.name, "pattern") {
			t.Errorf("%s: %+v, %v", row.name, got, err)
		}
	}
}

// T67, T82: what protects a branch is all that its rule says, where rules are told.
func TestT67Protection(t *testing.T) {
	const rules, branch = "repos/acme/site/branch_protections", "repos/acme/site/branches/main"
	const rule = `[{"rule_name":"other","enable_push":true},{"rule_name":"main","created_at":"x","updated_at":"x","required_approvals":2,"push_whitelist_usernames":["ada"]}]`
	for _, row := range []struct {
		name    string
		answers map[string]string
		want    string
		fails   bool
	}{
		{"a rule", map[string]string{rules: rule, branch: `{"effective_branch_protection_name":"main"}`}, `push_whitelist_usernames: ["ada"]|required_approvals: 2|rule_name: "main"`, false},
		{"none for it", map[string]string{rules: rule, branch: `{"effective_branch_protection_name":""}`}, "", false},
		{"one that is not told", map[string]string{rules: "[]", branch: `{"effective_branch_protection_name":"main"}`}, "", true},
		{"rules are not told", map[string]string{branch: `{}`}, "", true},
		{"the branch is not told", map[string]string{rules: rule}, "", true},
	} {
		got, err := saying(t, row.answers).Protection(t.Context(), "main")
		if strings.Join(got.Rules, "|") != row.want || (err != nil) != row.fails || got.Unread != nil {
			t.Errorf("%s: %+v, %v", row.name, got, err)
		}
	}
}
