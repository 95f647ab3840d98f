package github

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func TestAccess(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.CustomRole(site, "security", "write")
	for login, want := range map[string]approval.Access{
		"ada": {Permission: "write", Role: "write"}, "bob": {Permission: "maintain", Role: "maintain"}, "eve": {Permission: "triage", Role: "triage"},
		"carol": {Permission: "admin", Role: "admin"}, "dan": {Permission: "read", Role: "read"}, "fay": {Permission: "write", Role: "security"},
	} {
		if _, known := w.people[login]; !known {
			w.people[login] = ledger.Actor{Kind: "user", ID: fmt.Sprint(w.User(login).ID), Login: login}
			w.Role(site, login, want.Role)
		}
		if got, err := w.client.Access(ctx, w.people[login]); got != want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", login, got, err, want)
		}
	}
	w.ResetRequests()
	for _, who := range []ledger.Actor{{Kind: "bot", ID: "9", Login: "helper"}, {Kind: "bot", Login: "ghost"}, {}} {
		if got, err := w.client.Access(ctx, who); got.Permission != "none" || err != nil {
			t.Errorf("%+v: %+v, %v", who, got, err)
		}
	}
	if n := w.Count().API; n != 0 {
		t.Errorf("%d requests for accounts that are no person's", n)
	}
}

// T09: an answer is kept for one reading only.
func TestT09AccessIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	ask := func(c *Client) string {
		a, err := c.Access(context.Background(), w.people["ada"])
		teststand.Fatal(t, err)
		return a.Permission
	}
	before := ask(w.client)
	w.Role(site, "ada", "read")
	if again := ask(w.client); again != before || before != "write" {
		t.Errorf("within a reading: %s, then %s", before, again)
	}
	w.statements()
	if got := ask(w.client); got != "read" {
		t.Errorf("in the next reading: %s", got)
	}
}

func TestReduce(t *testing.T) {
	for _, row := range [][3]string{
		{"admin", "admin", "admin"}, {"write", "maintain", "maintain"}, {"write", "write", "write"}, {"read", "triage", "triage"}, {"read", "read", "read"},
		{"none", "", "none"}, {"write", "", "write"}, {"write", "security", "write"}, {"read", "admin", "read"}, {"read", "maintain", "read"}, {"write", "admin", "write"},
		{"none", "admin", "none"}, {"", "admin", "!"}, {"maintain", "maintain", "!"}, {"owner", "owner", "!"},
	} {
		got, err := reduce(row[0], row[1])
		if err != nil {
			got = "!"
		}
		if got != row[2] {
			t.Errorf("reduce(%q, %q) = %s, want %s", row[0], row[1], got, row[2])
		}
	}
}

// T61: no answer about an account is no permission of it, but an error.
func TestT61Access(t *testing.T) {
	w := newWorld(t)
	for _, f := range []githubtest.Fault{
		{Status: 500}, {Status: 403}, {Status: 401}, {Kind: githubtest.Cut}, {Kind: githubtest.Half}, {Kind: githubtest.Body, Text: "{}"},
		{Kind: githubtest.Body, Text: `{"permission":"admin","role_name":"admin"}`}, {Kind: githubtest.Body, Text: `{"permission":"","user":{"id":1}}`}, {Kind: githubtest.Body},
	} {
		f.Times, f.Path = -1, "/api/"
		w.Fail(f)
		got, err := w.client.Access(context.Background(), w.people["ada"])
		w.Heal()
		if err == nil || got.Permission != "" {
			t.Errorf("%+v: %+v, %v", f, got, err)
		}
	}
	got, err := w.client.Access(context.Background(), ledger.Actor{Kind: "user", ID: "1", Login: "../../../user"})
	if err != nil || got.Permission != "none" {
		t.Errorf("a login that is a path: %+v, %v", got, err)
	}
	_, err = w.client.Access(context.Background(), ledger.Actor{Kind: "user", ID: "1", Login: ".."})
	checkKind(t, err, rest.KindAnswer)
}

// T73: the signing keys of an account are all of them or an error, and those of this
// account alone.
func TestT73SigningKeys(t *testing.T) {
	w := newWorld(t)
	ada := w.people["ada"]
	for n := range 250 { // three pages
		w.SigningKey("ada", fmt.Sprintf("ssh-ed25519 AAAA%d ada@laptop", n))
	}
	got, err := w.client.SigningKeys(context.Background(), ada)
	if err != nil || len(got) != 250 || got[0].Key != "ssh-ed25519 AAAA0" || got[249].Key != "ssh-ed25519 AAAA249" || got[0].Since.IsZero() {
		t.Errorf("%d keys, %v", len(got), err)
	}
	for _, f := range []githubtest.Fault{
		{Status: 500}, {Status: 403}, {Status: 401}, {Kind: githubtest.Cut}, {Kind: githubtest.Half}, {Kind: githubtest.Body, Text: "{}"},
		{Kind: githubtest.Body, Text: `[{"key":7}]`}, {Kind: githubtest.Body},
	} {
		for skip := range 3 {
			f.Times, f.Skip, f.Path = -1, skip, "/api/v3/users/"
			w.Fail(f)
			got, err := w.client.SigningKeys(context.Background(), ada)
			w.Heal()
			if err == nil || len(got) > 0 && skip == 0 {
				t.Errorf("%+v: %d keys, %v", f, len(got), err)
			}
		}
	}
	w.Fail(githubtest.Fault{Path: "/api/v3/users/", Times: -1, Status: 404}) // as of an account that is hidden
	if got, err := w.client.SigningKeys(context.Background(), ada); err != nil || len(got) > 0 {
		t.Errorf("404: %d keys, %v", len(got), err)
	}
	w.Heal()
	renamed := ada
	renamed.ID = w.people["bob"].ID
	if got, err := w.client.SigningKeys(context.Background(), renamed); err == nil || len(got) > 0 {
		t.Errorf("a login of another account: %d keys, %v", len(got), err)
	}
	for _, who := range []ledger.Actor{{}, {Kind: "bot", ID: ada.ID, Login: "ada"}, {Kind: "user", ID: "1", Login: "../../user"}, {Kind: "user", ID: "1", Login: "nobody"}} {
		if got, _ := w.client.SigningKeys(context.Background(), who); len(got) > 0 {
			t.Errorf("%+v: %d keys", who, len(got))
		}
	}
}

func TestMember(t *testing.T) {
	for _, row := range []struct {
		membership, team string // "status body"
		is               bool
		kind             rest.Kind
	}{
		{`200 {"state":"active","role":"member"}`, "404 {}", true, ""},
		{`200 {"state":"pending","role":"member"}`, "404 {}", false, ""},
		{`200 {}`, "404 {}", false, ""},
		{"404 {}", `200 {"slug":"sec"}`, false, ""},
		{"404 {}", "404 {}", false, rest.KindPermission},
		{"404 {}", "403 {}", false, rest.KindPermission},
		{"403 {}", `200 {"slug":"sec"}`, false, rest.KindPermission},
		{"404 {}", "422 {}", false, rest.KindRefused},
		{"422 {}", `200 {"slug":"sec"}`, false, rest.KindRefused},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := map[string]string{
				"/repos/o/n/collaborators/ada/permission": `200 {"permission":"write","role_name":"write","user":{"id":1}}`,
				"/orgs/acme/teams/sec/memberships/ada":    row.membership, "/orgs/acme/teams/sec": row.team,
			}[r.URL.Path]
			status, body, _ := strings.Cut(answer, " ")
			var code int
			_, _ = fmt.Sscan(status, &code)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}))
		c := newClient(t, server.URL, &pauses{})
		is, err := c.Member(context.Background(), "acme/sec", ledger.Actor{Kind: "user", ID: "1", Login: "ada"})
		checkKind(t, err, row.kind)
		if is != row.is {
			t.Errorf("%+v: %v", row, is)
		}
		if row.kind == rest.KindPermission && !strings.Contains(err.Error(), "members: read") {
			t.Errorf("error %v", err)
		}
		server.Close()
	}
}
