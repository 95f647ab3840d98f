//go:build browser

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/report/browsertest"
)

// T94: on a phone a person makes a passkey on the published site, and approves a change with it. The comment counts on the pull
// request as any signed one; from another page of the host it does not. Both verifiers take the record.
func TestT94BrowserPhone(t *testing.T) {
	_, public := sshKey(t)
	b := browsertest.Start(t)
	dir := filepath.Join(t.TempDir(), "site")
	serve := func() string {
		server := httptest.NewServer(http.FileServer(http.Dir(dir)))
		t.Cleanup(server.Close)
		return strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	}
	origin, elsewhere := serve(), serve()
	h := newHub(t)
	list := "bob " + public + "\n"
	trust := func() {
		h.s.Push(githubtest.NewCommit{Repository: site, Branch: "main", By: "bob", Message: "Policy", Files: map[string]string{
			".github/countersign.yml": "version: 1\napprovals: {keys: .github/allowed_signers, signed: require, passkeys: \"" + origin + "\"}\n", ".github/allowed_signers": list,
		}})
		h.clone()
	}
	publish := func() {
		t.Helper()
		for _, args := range [][]string{{"sync"}, {"site", "--out", dir}} {
			if code, _, stderr := h.run(args...); code != 0 {
				t.Fatalf("%q: %d %s", args, code, stderr)
			}
		}
	}
	value := func(p *browsertest.Page, id string) (text string) {
		t.Helper()
		p.Wait("document.getElementById('"+id+"').value !== ''", time.Minute)
		p.Eval("document.getElementById('"+id+"').value", &text)
		return text
	}

	trust()
	a := &attack{hub: h}
	a.proposes("hello, world")
	publish()
	phone := b.Open(t, origin+"/decide/", browsertest.Look{Width: 390, Height: 844})
	phone.Passkeys(true)
	phone.Wait("!document.getElementById('make').hidden", time.Minute)
	phone.Eval("document.getElementById('who').value = 'ada'", nil)
	phone.Click("#create")
	list += value(phone, "line") + "\n"
	trust()
	a.waits() // the Policy's list has moved on, and it asks again
	publish()

	approve := func(at string) string {
		t.Helper()
		phone.Go(at + "/tx/" + a.tx + ".html")
		if at == origin {
			phone.Wait("document.querySelector('a[href$=\"decide/index.html#"+a.tx+"\"]') !== null", time.Minute)
		}
		phone.Go(at + "/decide/index.html#" + a.tx)
		phone.Wait("document.getElementById('said').textContent + document.getElementById('page').src !== ''", time.Minute)
		return phone.Text()
	}
	if text := approve(elsewhere); !strings.Contains(text, "The Policy takes passkeys that "+origin+" asks") {
		t.Errorf("another page of the host says\n%s", text)
	}
	began := time.Now()
	text := approve(origin)
	if patch := strings.TrimPrefix(a.fingerprint, "patchset:"); !strings.Contains(text, patch) {
		t.Errorf("the page does not say %s:\n%s", patch, text)
	}
	phone.Wait("document.getElementById('page').contentDocument.body.textContent.includes('hello, world')", time.Minute)
	if found := phone.Violations(); len(found) > 0 {
		t.Errorf("axe: %q", found)
	}
	phone.Click("#sign")
	line := value(phone, "comment")
	var pull string
	phone.Eval("document.getElementById('pull').href", &pull)
	if !strings.HasSuffix(pull, "/"+site+"/pull/1#issuecomment-new") {
		t.Errorf("the pull request is at %s", pull)
	}
	t.Logf("from the page to the comment: %v", time.Since(began).Round(time.Millisecond))

	phone.Eval("document.getElementById('page').src = '../index.html'", nil)
	phone.Wait("document.getElementById('approve').hidden", time.Minute) // what is shown is something else

	// Whoever posts it has to be ada, and it is this change's alone.
	a.says("bob", line)
	a.waits("lists the key for ada")
	a.says("ada", strings.Replace(line, "/approve ", "/approve secret:", 1))
	a.waits()
	a.says("ada", line)
	a.settle(0, "--no-gate")
	if a.status(a.tx) != "completed" {
		t.Errorf("the transaction is %s", a.status(a.tx))
	}
	a.audits()
	bundle := filepath.Join(t.TempDir(), "ledger.bundle")
	h.git(h.dir, "bundle", "create", "-q", bundle, "refs/agent/ledger")
	second := exec.Command("python3", "../../docs/spec/verifier/verify.py", bundle)
	if out, err := second.CombinedOutput(); err != nil {
		t.Errorf("the second verifier: %v\n%s", err, out)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "decide", a.tx+".json")); err != nil || len(raw) > 4<<10 {
		t.Errorf("what is published of a change has %d bytes: %v", len(raw), err)
	}
	if left := b.Left(); len(left) > 0 {
		t.Errorf("requests left the machine: %q", left)
	}
}
