package main

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/report"
)

// A digest is posted to the webhook in the environment, and nowhere else: over https but to loopback, not where a redirect leads,
// and its address is never told.
func TestDigestWebhook(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, map[string]string{"greet.txt": "hello\n", ".github/countersign.yml": "approvals: {due: 2d}\n"})
	s.git("init", "-q", "-b", "main")
	s.git("config", "user.email", "tester")
	s.commit()
	s.run(0, "review", "--patch", s.newFile("a"), "--summary", "@here <!channel>")
	var got []string
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+string(body)); r.URL.Path {
		case "/moved/s3cret":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/refused/s3cret":
			http.Error(w, "no_service", http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	for _, c := range []struct {
		address, form string
		code          int
		says          string
	}{
		{server.URL + "/ok", "--slack", 0, "the digest was posted"}, {server.URL + "/ok", "--teams", 0, "the digest was posted"},
		{server.URL + "/moved/s3cret", "--slack", console.ExitIO, "leads elsewhere"}, {server.URL + "/refused/s3cret", "--slack", console.ExitIO, "status 403"},
		{"http://hooks.example.org/s3cret", "--slack", console.ExitRefused, "begins with https://"}, {"", "--slack", console.ExitRefused, "begins with https://"},
		{server.URL, "--mail", console.ExitRefused, "--post does not say where to"},
	} {
		cmd := s.command("digest", c.form, "--post")
		cmd.Env = append(cmd.Env, "COUNTERSIGN_WEBHOOK="+c.address)
		code, out, errs := runCode(cmd)
		if code != c.code || !strings.Contains(errs, c.says) || strings.Contains(out+errs, "s3cret") {
			t.Errorf("%s to %q: exit code %d\n%s%s", c.form, c.address, code, out, errs)
		}
	}
	if len(got) != 4 || elsewhere != 0 {
		t.Errorf("%d requests, and %d elsewhere: %q", len(got), elsewhere, got)
	}
	for i, form := range []string{`"type":"rich_text"`, `"type":"AdaptiveCard"`} {
		if !strings.HasPrefix(got[i], "POST /ok application/json {") || !strings.Contains(got[i], form) || strings.Contains(got[i], "@here") || strings.Contains(got[i], "<!") {
			t.Errorf("%q", got[i])
		}
	}
	for form, want := range map[string]string{"--markdown": "1 change waits", "--mail": "Subject: 1 change waits", "--github-issue": report.DigestMarker, "--json": `"due_at":"`} {
		if out, _ := s.run(0, "digest", form); !strings.Contains(out, want) {
			t.Errorf("%s: %s", form, out)
		}
	}
}

// The stage digest keeps one issue about what waits, of the remote's ledger: opened, brought up to date, and closed once nothing waits.
func TestActionDigest(t *testing.T) {
	long(t)
	t.Parallel()
	h := openHub(t, false)
	tells := func(issues int, open bool, says ...string) {
		t.Helper()
		h.clone()
		h.event("schedule", nil)
		h.env["INPUT_TOKEN"] = h.s.ActionsToken(site, "contents:read", "issues:write")
		code, _, printed := h.step("digest")
		all := h.s.Issues(site)
		if code != 0 || len(all) != issues || issues > 0 && all[issues-1].Open != open {
			t.Fatalf("exit code %d, issues %+v\n%s", code, all, printed)
		}
		for _, words := range says {
			if text := all[issues-1].Title + "\n" + all[issues-1].Body; !strings.Contains(text, words) || strings.Contains(text, "@ada") {
				t.Errorf("the issue lacks %q:\n%s", words, text)
			}
		}
	}
	writes := func(args ...string) string {
		t.Helper()
		h.env["INPUT_TOKEN"] = h.token
		code, out, errs := h.run(args...)
		if code != 0 && code != console.ExitPending {
			t.Fatalf("%v: exit code %d\n%s", args, code, errs)
		}
		return out
	}
	tells(0, false)
	writes("review", "--push", "--patch", h.write("fix.patch", greetFix), "--summary", "for @ada")
	tells(1, true, "countersign: 1 change waits for approval", report.DigestMarker)
	writes("review", "--push", "--patch", h.write("more.patch", addition("more.txt", "more\n")))
	tells(1, true, "2 changes wait")
	h.env["COUNTERSIGN_DIGEST"] = "slack --x"
	if code, _, printed := h.step("digest"); code != console.ExitRefused || !strings.Contains(printed, "COUNTERSIGN_DIGEST is") {
		t.Errorf("exit code %d: %s", code, printed)
	}
	delete(h.env, "COUNTERSIGN_DIGEST")
	for id := range strings.FieldsSeq(writes("list", "--push", "--open", "-q")) {
		writes("close", "--push", id)
	}
	tells(1, false, "nothing waits")
	tells(1, false)
	writes("review", "--push", "--patch", h.write("again.patch", addition("again.txt", "more\n")))
	tells(1, true, "1 change waits")
	header := "http.extraHeader=Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+h.token))
	h.git(h.dir, "-c", header, "push", "-q", "origin", ":refs/agent/ledger")
	tells(1, true, "1 change waits") // that the ledger is gone is no word that nothing waits
}
