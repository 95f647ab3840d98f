package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// attestWorkflow is the workflow of init --attest, as a job's environment names it.
const attestWorkflow = site + "/.github/workflows/countersign-attest.yml@refs/heads/main"

// fakeSigner is a program in the place of countersign-sigstore, which makes bundles that no
// authority and no log stands behind; the certificate names this identity. Each has a number,
// as two of Sigstore's are never the same. It counts what it signs in the file that it returns, and
// fails at the number in the file of that name with .stop behind it.
func fakeSigner(t *testing.T, identity string) (program, count string) {
	t.Helper()
	who, err := url.Parse(identity)
	check(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{who}}
	certificate, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	check(t, err)
	dir := t.TempDir()
	program, count = filepath.Join(dir, "countersign-sigstore"), filepath.Join(dir, "count")
	check(t, teststand.WriteFile(program, fmt.Appendf(nil, `#!/bin/sh
[ "$1" = sign ] || exit 2
echo >>'%s'
payload=$(base64 | tr -d '\n')
number=$(wc -l <'%s' | tr -d ' ')
[ "$number" != "$(cat '%s.stop' 2>/dev/null)" ] || exit 3
printf '{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"certificate":{"rawBytes":"%s"},"tlogEntries":["%%s"]},' "$number"
printf '"dsseEnvelope":{"payload":"%%s","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AAAA"}]}}' "$payload"
`, count, count, count, base64.StdEncoding.EncodeToString(certificate))))
	return program, count
}

// TestActionAttest: the stage attest signs each settled transaction once, keeps that beside the
// ledger and gives it to GitHub, with a token that has the rights of the workflow and no more; without
// one of them, without the program or in a repository that is not public, it fails.
func TestActionAttest(t *testing.T) {
	long(t)
	t.Parallel()
	h := openHub(t, false)
	program, count := fakeSigner(t, h.s.URL+"/"+attestWorkflow)
	const ref = "refs/agent/ledger-attestations"
	rights := []string{"contents:write", "attestations:write"}
	job := func(rights ...string) {
		h.clone()
		h.event("workflow_run", nil)
		h.env["INPUT_TOKEN"] = h.s.ActionsToken(site, rights...)
		h.env["ACTIONS_ID_TOKEN_REQUEST_URL"], h.env["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] = "https://token.invalid", "of-this-job"
		h.env["GITHUB_WORKFLOW_REF"], h.env["COUNTERSIGN_SIGSTORE"] = attestWorkflow, program
	}
	signed := func() int {
		raw, _ := os.ReadFile(count)
		return len(raw)
	}
	patchID := ""
	run := func(what string, want, all, keptNow int, says string) {
		t.Helper()
		code, _, printed := h.step("attest")
		kept := 0
		if h.s.Ref(site, ref) != "" {
			kept = len(strings.Fields(h.s.Git(site, "ls-tree", "-r", "--name-only", ref)))
		}
		if code != want || signed() != all || kept != keptNow || !strings.Contains(printed, says) || strings.Contains(printed, "of-this-job") {
			t.Errorf("%s: exit code %d, %d signed, %d kept\n%s", what, code, signed(), kept, printed)
		}
	}
	job(rights...)
	run("no ledger", 0, 0, 0, "there is no ledger yet")

	settle := func(diff string) {
		t.Helper()
		h.clone()
		_, fingerprint := h.propose(diff)
		patchID = strings.TrimPrefix(fingerprint, "patchset:")
		h.says("ada", "/approve "+fingerprint)
		h.clone()
		h.settle(0, "--no-gate")
	}
	settle(greetFix)
	for what, c := range map[string]struct {
		spoil func()
		code  int
		says  string
	}{
		"no identity": {func() { delete(h.env, "ACTIONS_ID_TOKEN_REQUEST_URL") }, console.ExitRefused, "the job may not ask for a token of its identity"},
		"no program":  {func() { h.env["COUNTERSIGN_SIGSTORE"] = program + "2" }, console.ExitRefused, "hint: put countersign-sigstore of the same release beside countersign"},
		"no token":    {func() { h.env["INPUT_TOKEN"] = "" }, console.ExitRefused, "names the repository in a public log for ever"},
	} {
		job(rights...)
		c.spoil()
		run(what, c.code, 0, 0, c.says)
	}

	job("contents:write") // signed once in vain: what GitHub does not take is not kept, and made again
	run("no right to give it to GitHub", console.ExitIO, 1, 0, "storing an attestation")
	job("contents:read", "attestations:write")
	run("no right to keep it", console.ExitIO, 2, 0, "")
	job(rights...)
	run("one", 0, 3, 1, "given to GitHub")
	if got := len(h.s.Attestations(site, patchID)); got != 2 {
		t.Errorf("GitHub has %d", got)
	}
	run("the same job again", 0, 3, 1, "1 statement kept before")
	job(rights...)
	run("another job", 0, 3, 1, "1 statement kept before")
	settle("diff --git a/other.txt b/other.txt\n--- a/other.txt\n+++ b/other.txt\n@@ -1 +1 @@\n-other\n+another\n")
	job(rights...)
	run("two", 0, 4, 2, "1 statement kept before")

	// T79 A file that is about another commit, is of another workflow or has another content than its name says keeps nothing from being made.
	h.git(h.dir, "fetch", "-q", "-f", h.s.URL+"/"+site+".git", ref+":"+ref)
	both := h.s.Ref(site, ref)
	names := strings.Fields(h.git(h.dir, "ls-tree", "-r", "--name-only", both))
	spoilt := func(change func(dir string)) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "spoilt")
		h.git(h.dir, "worktree", "add", "-q", "--detach", dir, both)
		change(dir)
		h.git(dir, "-c", "user.name=Eve", "-c", "user.email=eve@localhost", "commit", "-q", "-a", "-m", "spoilt")
		commit := h.git(dir, "rev-parse", "HEAD")
		h.git(h.dir, "push", "-q", "-f", strings.Replace(h.s.URL, "://", "://x:"+h.token+"@", 1)+"/"+site+".git", commit+":"+ref)
	}
	for i, change := range []func(dir string){
		func(dir string) {
			raw, err := os.ReadFile(filepath.Join(dir, names[0]))
			check(t, err)
			check(t, os.WriteFile(filepath.Join(dir, names[0]), bytes.Replace(raw, []byte(`"tlogEntries":["`), []byte(`"tlogEntries":["9`), 1), 0o600))
		},
		func(dir string) {
			parts := strings.Split(names[0], ".")
			parts[len(parts)-3] = strings.Repeat("a", 40)
			h.git(dir, "mv", names[0], strings.Join(parts, "."))
		},
	} {
		spoilt(change)
		job(rights...)
		run(fmt.Sprint("spoilt ", i), 0, 5+i, 3, "1 statement kept before")
		h.s.Git(site, "update-ref", ref, both)
	}
	job(rights...)
	h.env["GITHUB_WORKFLOW_REF"] = strings.Replace(attestWorkflow, "attest.yml", "other.yml", 1)
	check(t, os.WriteFile(count+".stop", []byte("8\n"), 0o600))
	run("another workflow, cut off", console.ExitIO, 8, 3, "countersign-sigstore")
	h.env["COUNTERSIGN_SIGSTORE"], count = fakeSigner(t, h.s.URL+"/"+h.env["GITHUB_WORKFLOW_REF"])
	run("another workflow that says it is this one", 0, 2, 5, "given to GitHub")
	run("another workflow again", 0, 2, 5, "2 statements kept before")
	h.s.Git(site, "update-ref", ref, both)

	h.s.Repository(githubtest.NewRepository{Name: "acme/ledgers", Private: true})
	h.s.Push(githubtest.NewCommit{Repository: site, Branch: "main", By: "ada", Message: "policy", Files: map[string]string{".github/countersign.yml": "ledger: {repository: acme/ledgers}\n"}})
	h.s.Git("acme/ledgers", "fetch", "-q", h.git(h.dir, "rev-parse", "--absolute-git-dir"), fmt.Sprintf("refs/agent/ledger:refs/agent/ledger-%d", h.id))
	job(rights...)
	h.env["COUNTERSIGN_LEDGER_TOKEN"] = h.s.ActionsToken("acme/ledgers", "contents:write")
	run("a ledger elsewhere", console.ExitRefused, 2, 2, "its ledger is in another repository")

	private := openHub(t, true)
	h.s, h.id, h.pr, h.token = private.s, private.id, private.pr, private.token
	settle(greetFix)
	job(rights...)
	run("private", console.ExitRefused, 2, 0, "not everybody may read it")
}

// TestInitAttest: init --attest says that a log is public, and is refused where GitHub does not say
// that everybody may read the repository.
func TestInitAttest(t *testing.T) {
	t.Parallel()
	const file = ".github/workflows/countersign-attest.yml"
	for _, private := range []bool{false, true} {
		h := openHub(t, private)
		h.env["GITHUB_SERVER_URL"] = "https://github.com"
		written := func() bool { _, err := os.Stat(filepath.Join(h.dir, file)); return err == nil }
		for _, token := range []string{h.token, "", "another"} {
			h.env["INPUT_TOKEN"] = token
			h.env["COUNTERSIGN_ACTIONS_TOKEN"] = ""
			check(t, os.RemoveAll(filepath.Join(h.dir, ".github")))
			code, out, errs := h.run("init", "--attest", "--uses", actUses)
			want := 0
			switch {
			case token == "another": // whom GitHub does not answer
				want = console.ExitIO
			case token != "" && private:
				want = console.ExitRefused
			}
			if code != want || written() != (want == 0) || !strings.Contains(errs, "in Sigstore's public log, for ever") {
				t.Errorf("private %t, token %q: exit code %d\n%s%s", private, token, code, out, errs)
			}
			if want == console.ExitRefused && !strings.Contains(errs, "not everybody may read it") {
				t.Error(errs)
			}
		}
	}
}
