package statements

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestT79HelperFails: only a program that says so makes a signature a bad one; one that was
// killed, is of another release or answers nothing leaves it open.
func TestT79HelperFails(t *testing.T) {
	t.Parallel()
	for code, bad := range map[helperCode]bool{helperBroken: false, helperMissing: false, helperRefused: true, 2: false, helperUnreachable: false, 127: false} {
		if err := unverified("bundle.json", failed(code, "no")); errors.Is(err, fault.Failed) != bad {
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
	const public = `200 {"id":1,"private":false,"visibility":"public"}`
	for name, c := range map[string]struct {
		answer string
		env    map[string]string
		remote string
		want   string
	}{
		"public":             {public, nil, "", ""},
		"private":            {`200 {"id":1,"private":true,"visibility":"private"}`, nil, "", "not everybody may read it"},
		"internal":           {`200 {"id":1,"private":true,"visibility":"internal"}`, nil, "", "not everybody may read it"},
		"half an answer":     {`200 {"id":1,"visibility":"public"}`, nil, "", "not everybody may read it"},
		"of no repository":   {`200 {"private":false,"visibility":"public"}`, nil, "", "cannot be found out"},
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
		a := console.New(console.Process{Getenv: func(name string) string { return env[name] }, Wait: func(context.Context, time.Duration) error { return errors.New("no") }})
		a.Flags.Dir, a.Flags.Remote, a.Flags.LedgerRef, a.Elsewhere = dir, console.DefaultRemote, gitstore.LedgerRef, env["elsewhere"] != ""
		if c.remote != "" {
			a.Flags.Remote = c.remote
		}
		s, err := session.OpenLocal(a)
		check(t, err)
		err = isPublic(t.Context(), s)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
		check(t, s.Close())
	}
}

// TestT79ApprovedTree: a statement names a tree as approved only if it is what the approved
// patch makes of the reviewed commit, whatever commit a record names.
func TestT79ApprovedTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir)
		out, err := cmd.CombinedOutput()
		check(t, err)
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	commit := func(files map[string]string) string {
		t.Helper()
		for name, text := range files {
			check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		git("add", "-A")
		git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "x")
		return git("rev-parse", "HEAD")
	}
	base := commit(map[string]string{"a": "a\n"})
	approved := commit(map[string]string{"a": "b\n"})
	more := commit(map[string]string{"evil": "e\n"})
	repo, err := gitstore.Open(dir)
	check(t, err)
	set, err := repo.Diff(t.Context(), base, approved)
	check(t, err)
	for commit, want := range map[string]string{approved: git("rev-parse", approved+"^{tree}"), more: "", base: "", "0123456789012345678901234567890123456789": ""} {
		if got := approvedTree(repo, base, commit, set.ID()); got != want {
			t.Errorf("%s: %q, want %q", commit, got, want)
		}
	}
}

var check = teststand.Fatal
