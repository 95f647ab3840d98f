package github

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// T11, T82: an account is the one of that number, or there is none.
func TestT11AccountByNumber(t *testing.T) {
	for _, row := range []struct {
		id   string
		step step
		kind rest.Kind
	}{
		{"12", step{body: `{"id":12,"login":"ada","type":"User"}`}, ""},
		{"12", step{body: `{"id":13,"login":"ada","type":"User"}`}, rest.KindAnswer},
		{"12", step{body: `{"login":"ada","type":"User"}`}, rest.KindAnswer},
		{"12", step{body: `{"id":12,"type":"User"}`}, rest.KindAnswer},
		{"12", step{body: `{}`}, rest.KindAnswer},
		{"12", step{status: 404, body: `{}`}, rest.KindNotFound},
		{"12", step{status: 403, body: `{}`}, rest.KindPermission},
		{"", step{}, rest.KindAnswer}, {"0", step{}, rest.KindAnswer}, {"-1", step{}, rest.KindAnswer}, {"012", step{}, rest.KindAnswer}, {"ada", step{}, rest.KindAnswer},
		{"../repos/o/n", step{}, rest.KindAnswer}, {"local:ada@example.org", step{}, rest.KindAnswer},
	} {
		server := newScript(t, row.step)
		who, err := newClient(t, server.URL, &pauses{}).Account(t.Context(), row.id)
		checkKind(t, err, row.kind)
		if (err == nil) != (who.ID == "12" && who.Login == "ada" && who.Kind == "user") {
			t.Errorf("%s, %+v: %+v, %v", row.id, row.step, who, err)
		}
		if row.kind == rest.KindAnswer && row.step.body == "" && server.requests() != 0 {
			t.Errorf("%s was asked for", row.id)
		}
	}
}

// T67, T82: the checks that a branch demands are those that are enforced; what is not
// told is said to be so, and half of the answer is never all of it.
func TestT67RequiredChecks(t *testing.T) {
	const (
		protected = `{"protected":true,"protection":{"enabled":true,"required_status_checks":{"enforcement_level":"everyone","contexts":["gate","lint"],"checks":[{"context":"gate","app_id":15},{"context":"lint","app_id":-1}]}}}`
		open      = `{"protected":false,"protection":{"enabled":false,"required_status_checks":{"enforcement_level":"off","contexts":[],"checks":[]}}}`
		rules     = `[{"type":"deletion"},{"type":"required_status_checks","parameters":{"required_status_checks":[{"context":"gate","integration_id":16},{"context":"any"}]}}]`
		off       = `{"protected":true,"protection":{"enabled":true,"required_status_checks":{"enforcement_level":"off","contexts":["gate"],"checks":[]}}}`
	)
	no := step{status: 403, body: `{}`}
	for _, row := range []struct {
		name          string
		branch, rules step
		want          string
		unread        bool
		kind          rest.Kind
	}{
		{"a protection", step{body: protected}, step{body: "[]"}, "gate 15, lint 0", false, ""},
		{"a ruleset", step{body: open}, step{body: rules}, "gate 16, any 0", false, ""},
		{"both", step{body: protected}, step{body: rules}, "gate 15, lint 0, gate 16, any 0", false, ""},
		{"neither", step{body: open}, step{body: "[]"}, "", false, ""},
		{"no enforcement", step{body: off}, step{body: "[]"}, "", false, ""},
		{"rulesets are not told", step{body: protected}, no, "gate 15, lint 0", true, ""},
		{"the protection is not told", no, step{body: rules}, "gate 16, any 0", true, ""},
		{"nothing is told", no, no, "", false, rest.KindPermission},
		{"not whether it is protected", step{body: `{}`}, step{body: "[]"}, "", true, ""},
		{"not how it is protected", step{body: `{"protected":true}`}, step{body: "[]"}, "", true, ""},
		{"not whether that is on", step{body: `{"protected":true,"protection":{}}`}, step{body: "[]"}, "", true, ""},
		{"a protection that tells apps alone", step{body: strings.Replace(protected, `"contexts":["gate","lint"],`, "", 1)}, step{body: "[]"}, "gate 15, lint 0", false, ""},
		{"a protection that tells names alone", step{body: protected[:strings.Index(protected, `,"checks"`)] + "}}}"}, step{body: "[]"}, "gate 0, lint 0", false, ""},
		{"a protection without checks", step{body: `{"protected":true,"protection":{"enabled":true}}`}, step{body: "[]"}, "", true, ""},
		{"a protection whose checks are missing", step{body: `{"protected":true,"protection":{"enabled":true,"required_status_checks":{"enforcement_level":"everyone"}}}`}, step{body: "[]"}, "", true, ""},
		{"a rule without checks", step{body: open}, step{body: `[{"type":"required_status_checks"}]`}, "", true, ""},
		{"a rule whose checks are missing", step{body: open}, step{body: `[{"type":"required_status_checks","parameters":{}}]`}, "", true, ""},
		{"half of the rules", step{body: open}, step{body: rules[:40]}, "", true, ""},
	} {
		tried := 1
		if row.rules.body == rules[:40] {
			tried = 4
		}
		steps := append([]step{row.branch}, make([]step, tried)...)
		for i := range tried {
			steps[1+i] = row.rules
		}
		got, err := newClient(t, newScript(t, steps...).URL, &pauses{}).Required(t.Context(), "main")
		checkKind(t, err, row.kind)
		var names []string
		for _, check := range got.Checks {
			names = append(names, fmt.Sprint(check.Name, " ", check.AppID))
		}
		if told := strings.Join(names, ", "); told != row.want || (got.Unread != "") != row.unread {
			t.Errorf("%s: %q, unread %q", row.name, told, got.Unread)
		}
	}
}

// T82: what became of a pull request is told in full, or not at all.
func TestT82Ends(t *testing.T) {
	const one = `"p4":{"number":4,"state":"MERGED","headRefOid":"` + theCommit + `"}`
	answer := func(members string) step { return step{body: `{"data":{"repository":{` + members + `}}}`} }
	missing := step{body: `{"data":{"repository":{"p4":null}},"errors":[{"type":"NOT_FOUND","message":"no"}]}`}
	want := forge.End{Repository: "5", State: forge.PullRequestMerged, Head: theCommit}
	for _, row := range []struct {
		name  string
		steps []step
		kind  rest.Kind
	}{
		{"whole", []step{answer(`"databaseId":5,` + one + `,` + strings.ReplaceAll(strings.ReplaceAll(one, "p4", "p9"), ":4", ":9"))}, ""},
		{"the other one is not found", []step{missing, answer(`"databaseId":5,` + one)}, ""},
		{"none is found", []step{missing}, rest.KindNotFound},
		{"the other one is missing", []step{answer(`"databaseId":5,` + one)}, rest.KindAnswer},
		{"no number of the repository", []step{answer(one)}, rest.KindAnswer},
		{"another number", []step{answer(`"databaseId":5,` + strings.Replace(one, ":4", ":5", 1))}, rest.KindAnswer},
		{"no state", []step{answer(`"databaseId":5,` + strings.Replace(one, "state", "x", 1))}, rest.KindAnswer},
		{"no head", []step{answer(`"databaseId":5,` + strings.Replace(one, "headRefOid", "x", 1))}, rest.KindAnswer},
		{"null", []step{answer(`"databaseId":5,"p4":null`)}, rest.KindAnswer},
		{"no repository", []step{{body: `{"data":{"repository":null}}`}}, rest.KindAnswer},
	} {
		got, err := newClient(t, newScript(t, row.steps...).URL, &pauses{}).Ends(t.Context(), []int{4, 9})
		checkKind(t, err, row.kind)
		if (err == nil) != (got[4] == want) {
			t.Errorf("%s: %+v, %v", row.name, got, err)
		}
	}
	if _, err := newClient(t, newScript(t, step{}).URL, &pauses{}).Ends(t.Context(), []int{-1}); err == nil {
		t.Error("no number")
	}
}

// T61: a budget counts each attempt, and nothing is sent beyond it.
func TestT61Budget(t *testing.T) {
	server := newScript(t, step{body: `{"id":12,"login":"ada","type":"User"}`}, step{status: 502}, step{status: 502}, step{body: `{"id":12,"login":"ada"}`})
	c := newClient(t, server.URL, &pauses{})
	ctx := rest.WithBudget(context.Background(), 2)
	_, first := c.Account(ctx, "12")
	_, second := c.Account(ctx, "12")
	_, third := c.Account(ctx, "12")
	if first != nil || !errors.Is(second, forge.ErrSpent) || !errors.Is(third, forge.ErrSpent) || server.requests() != 2 {
		t.Errorf("%v; %v; %v; %d requests", first, second, third, server.requests())
	}
	if _, err := c.Account(context.Background(), "12"); err != nil || server.requests() != 4 {
		t.Errorf("without a budget: %v, %d requests", err, server.requests())
	}
	limited := newScript(t, step{status: 429, header: "Retry-After: 3600", body: `{}`})
	if _, err := newClient(t, limited.URL, &pauses{}).Account(t.Context(), "12"); !errors.Is(err, forge.ErrSpent) {
		t.Errorf("a limit of the forge: %v", err)
	}
}
