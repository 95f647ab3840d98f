package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCountersign: both programs together, as a release has them, on a real repository: a
// transaction is attested in a job without a key, given to the forge, kept beside the ledger,
// and verified for this identity, and for no other.
func TestCountersign(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds two programs")
	}
	a := newAuthority(t)
	var stored []byte
	visibility := `{"id":1,"private":false,"visibility":"public"}`
	forge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /repos/acme/app":
			_, _ = w.Write([]byte(visibility))
		case "POST /repos/acme/app/attestations":
			var body struct{ Bundle json.RawMessage }
			check(t, json.NewDecoder(r.Body).Decode(&body))
			stored = body.Bundle
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"id":7}`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer forge.Close()

	bin, dir, home := t.TempDir(), filepath.Join(t.TempDir(), "r"), t.TempDir()
	build := func(name, in, pkg string) {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, name), pkg)
		cmd.Dir = in
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	build("countersign", "../..", "./cmd/countersign")
	build("countersign-sigstore", ".", ".")
	job := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GITHUB_ACTIONS=true", "GITHUB_REPOSITORY=acme/app", "GITHUB_API_URL=" + forge.URL,
		"GITHUB_SERVER_URL=" + forge.URL, "INPUT_TOKEN=t", "ACTIONS_ID_TOKEN_REQUEST_URL=" + a.job("ACTIONS_ID_TOKEN_REQUEST_URL"), "ACTIONS_ID_TOKEN_REQUEST_TOKEN=secret",
		"GITHUB_EVENT_NAME=push", "GITHUB_EVENT_PATH=" + a.write("event.json", []byte(`{"ref":"refs/heads/main","repository":{"id":1,"full_name":"acme/app","default_branch":"main"}}`)),
	}
	run := func(want int, env []string, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Fatalf("%s %q: exit code %d, %v\n%s", name, args, code, err, out)
		}
		return string(out)
	}
	person, program := job[:3], filepath.Join(bin, "countersign")
	check(t, os.Mkdir(dir, 0o777))
	check(t, os.WriteFile(filepath.Join(dir, "list.txt"), []byte("one\ntwo\n"), 0o666))
	for _, line := range []string{
		"init -q -b main", "config user.name Ada", "config user.email ada@localhost", "remote add origin https://github.com/acme/app.git", "add -A", "commit -q -m base", "commit -q --allow-empty -m next", "update-ref refs/remotes/origin/main HEAD",
	} {
		run(0, person, "git", strings.Fields(line)...)
	}
	fix := a.write("fix.patch", []byte("diff --git a/list.txt b/list.txt\n--- a/list.txt\n+++ b/list.txt\n@@ -1,2 +1,2 @@\n-one\n+first\n two\n"))
	out := run(0, person, program, "review", "--patch", fix, "--json")
	id := regexp.MustCompile(`tx_[0-9A-Z]{26}`).FindString(out)
	run(0, person, program, "approve", id)
	run(0, person, program, "apply", "--to", "branch", "--branch", "fixes")
	run(0, person, program, "validate", id)

	attest := []string{"attest", id, "--keyless", "--signing-config", a.signing, "--trusted-root", a.trusted, "--github", "--keep", "--no-push", "--json"}
	if out := run(0, job, program, attest...); !strings.Contains(out, `"github_id":"7"`) || strings.Contains(out, "secret") {
		t.Errorf("%s", out)
	}
	again := append(job[:len(job):len(job)], "GITHUB_SERVER_URL=https://github.com", "GITHUB_WORKFLOW_REF="+workflow)
	all := append([]string{"attest", "--all"}, attest[2:]...)
	if out := run(0, again, program, all...); !strings.Contains(out, `"attestations":[],"kept_before":1,"skipped":[]`) {
		t.Errorf("what the same workflow has attested: %s", out)
	}
	file := a.write("stored.json", stored)
	verify := func(want int, file []string, more ...string) string {
		t.Helper()
		args := append(append([]string{"verify"}, file...), "--commit", "fixes", "--trusted-root", a.trusted, "--certificate-identity", identity, "--certificate-oidc-issuer", issuer)
		return run(want, person, program, append(args, more...)...)
	}
	for _, from := range [][]string{{file}, nil} {
		if out := verify(0, from); !strings.Contains(out, "signature good    "+identity+" signed it at ") || !strings.Contains(out, "record    good") {
			t.Errorf("%q: %s", from, out)
		}
		verify(1, from, "--certificate-identity", identity+"2")
		verify(1, from, "--certificate-oidc-issuer", issuer+"/")
		verify(1, from, "--trusted-root", newAuthority(t).trusted)
		verify(1, from, "--commit", "main")
		verify(3, from, "--trusted-root", a.signing)
	}
	patch := run(0, person, program, "diff", id)
	if code, out, said := a.program(stored, verifying(a, "--digest=sha256:"+digestOf(patch))...); code != 0 {
		t.Errorf("the patch is no artifact of the bundle: %s %s", out, said)
	}
	if cosign := os.Getenv("COUNTERSIGN_COSIGN"); cosign != "" {
		run(0, person, cosign, "verify-blob-attestation", "--bundle", file, "--trusted-root", a.trusted, "--certificate-identity", identity, "--certificate-oidc-issuer", issuer,
			"--type", "pkg:golang/github.com/countersign-dev/countersign#attestation/approval/v1", a.write("change.diff", []byte(patch)))
	}

	t.Run("in-toto", func(t *testing.T) {
		checkLayouts(t, func(key, out string) {
			run(0, person, program, "attest", id, "--link", "--sign-key", key, "--out", out)
		}, patch)
	})

	// T79 What is not known to be public is not named, and no log is asked.
	a.server.Close()
	for _, visibility = range []string{`{"id":1,"private":true,"visibility":"private"}`, `{"id":1,"private":false,"visibility":"internal"}`, `{}`, "", "[]"} {
		if out := run(2, job, program, attest...); !strings.Contains(out, "names the repository in a public log for ever") {
			t.Errorf("%s: %s", visibility, out)
		}
	}
	visibility = `{"id":1,"private":false}`
	if out := run(3, job, program, attest...); !strings.Contains(out, "countersign-sigstore: asking for the job's identity") {
		t.Errorf("%s", out)
	}
	check(t, os.Remove(filepath.Join(bin, "countersign-sigstore")))
	if out := run(2, job, program, attest...); !strings.Contains(out, "no such file") {
		t.Errorf("%s", out)
	}
	if out := verify(2, []string{file}); !strings.Contains(out, "COUNTERSIGN_SIGSTORE") {
		t.Errorf("%s", out)
	}
	if bytes.Contains([]byte(out), []byte("secret")) {
		t.Error("the job's secret is printed")
	}
}
