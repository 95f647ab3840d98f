package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/sigstore"
	"github.com/countersign-dev/countersign/gitstore"
)

// TestT79HelperFails: only a program that says so makes a signature a bad one; one that was
// killed, is of another release or answers nothing leaves it open.
func TestT79HelperFails(t *testing.T) {
	t.Parallel()
	for code, bad := range map[int]bool{-1: false, sigstore.Refused: true, 2: false, sigstore.Unreachable: false, 127: false} {
		if err := unverified("bundle.json", &sigstore.FailedError{Code: code}); as[*unverifiedError](err) != bad {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// TestT79PublicLog: a statement is signed without a key only if GitHub says that everybody may
// read the repository of the workflow, which the clone has to be of.
func TestT79PublicLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range []string{"init -q", "remote add origin https://github.com/acme/app.git", "remote add other https://github.com/acme/other.git"} {
		out, err := exec.Command("git", append([]string{"-C", dir}, strings.Fields(args)...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body, _ := strings.Cut(answer, " ")
		if r.URL.Path != "/repos/acme/app" || status != "200" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	const public = `200 {"private":false,"visibility":"public"}`
	for name, c := range map[string]struct {
		answer string
		env    map[string]string
		remote string
		want   string
	}{
		"public":             {public, nil, "", ""},
		"private":            {`200 {"private":true,"visibility":"private"}`, nil, "", "not everybody may read it"},
		"internal":           {`200 {"private":true,"visibility":"internal"}`, nil, "", "not everybody may read it"},
		"half an answer":     {`200 {"visibility":"public"}`, nil, "", "not everybody may read it"},
		"no answer":          {"200 ", nil, "", "cannot be found out"},
		"half a document":    {`200 {"private":false`, nil, "", "cannot be found out"},
		"an error":           {"403 {}", nil, "", "cannot be found out"},
		"no token":           {public, map[string]string{"INPUT_TOKEN": ""}, "", "no token"},
		"no repository":      {public, map[string]string{"GITHUB_REPOSITORY": ""}, "", "the workflow is of"},
		"a ledger elsewhere": {public, map[string]string{"elsewhere": "true"}, "", "its ledger is in another repository"},
		"another repository": {public, map[string]string{"GITHUB_REPOSITORY": "acme/other"}, "", "the workflow is of"},
		"another remote":     {public, nil, "other", `the clone is of "acme/other"`},
		"no remote":          {public, nil, "none", `the clone is of ""`},
	} {
		answer = c.answer
		env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/app", "GITHUB_API_URL": server.URL, "GITHUB_SERVER_URL": "https://github.com", "INPUT_TOKEN": "t"}
		maps.Copy(env, c.env)
		a := &App{Getenv: func(name string) string { return env[name] }, Wait: func(context.Context, time.Duration) error { return errors.New("no") }}
		a.flags.dir, a.flags.remote, a.flags.ledgerRef, a.elsewhere = dir, defaultRemote, gitstore.LedgerRef, env["elsewhere"] != ""
		if c.remote != "" {
			a.flags.remote = c.remote
		}
		repo, settings, err := a.openRepo()
		check(t, err)
		a.repo, repo.Config = repo, settings
		err = a.isPublic(t.Context())
		var refused *publicError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
		check(t, repo.Close())
	}
}
