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
	"github.com/countersign-dev/countersign/report/pagetest"
)

// A phone is a window of its size at the site that a hub publishes, for which the Policy takes passkeys.
type phone struct {
	*pagetest.Page
	h           *hub
	dir, origin string
	key         string // bob's, a file
	list        string // of keys
}

// newPhone has the Policy of a hub take passkeys. bob has a key there, and nobody a passkey yet.
func newPhone(h *hub, b *pagetest.Browser) *phone {
	h.Helper()
	key, public := sshKey(h.T)
	p := &phone{h: h, key: key, dir: filepath.Join(h.TempDir(), "site"), list: "bob " + public + "\n"}
	p.origin = p.serve()
	p.trusts("")
	p.Page = b.Open(h.T, "about:blank", pagetest.Look{Width: 390, Height: 844})
	p.Passkeys(true)
	return p
}

// serve serves the site from another origin than before.
func (p *phone) serve() (origin string) {
	server := httptest.NewServer(http.FileServer(http.Dir(p.dir)))
	p.h.Cleanup(server.Close)
	return strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
}

// trusts puts the Policy and a longer list of keys onto the default branch.
func (p *phone) trusts(line string) {
	p.list += line
	p.h.s.Push(githubtest.NewCommit{Repository: site, Branch: "main", By: "bob", Message: "Policy", Files: map[string]string{
		".github/countersign.yml": "version: 1\napprovals: {keys: .github/allowed_signers, signed: require, passkeys: \"" + p.origin + "\"}\n", ".github/allowed_signers": p.list,
	}})
	p.h.clone()
}

func (p *phone) publish() {
	p.h.Helper()
	for _, args := range [][]string{{"sync"}, {"site", "--out", p.dir}} {
		if code, _, stderr := p.h.run(args...); code != 0 {
			p.h.Fatalf("%q: %d %s", args, code, stderr)
		}
	}
}

// value is what the page hands over.
func (p *phone) value(id string) (text string) {
	p.h.Helper()
	p.Wait("document.getElementById('"+id+"').value !== ''", time.Minute)
	p.Eval("document.getElementById('"+id+"').value", &text)
	return text
}

// makes publishes the site, and has somebody make a passkey there, and its line trusted.
func (p *phone) makes(login string) {
	p.h.Helper()
	p.publish()
	p.Go(p.origin + "/decide/")
	p.Wait("!document.getElementById('make').hidden", time.Minute)
	p.Eval("document.getElementById('who').value = '"+login+"'", nil)
	p.Click("#create")
	p.trusts(p.value("line") + "\n")
}

// loads goes to where a transaction is approved, and returns what it says there.
func (p *phone) loads(origin, tx string) string {
	p.h.Helper()
	p.Go(origin + "/tx/" + tx + ".html")
	if origin == p.origin {
		p.Wait("document.querySelector('a[href$=\"decide/index.html#"+tx+"\"]') !== null", time.Minute)
	}
	p.Go(origin + "/decide/index.html#" + tx)
	p.Wait("document.getElementById('said').textContent + document.getElementById('page').src !== ''", time.Minute)
	return p.Text()
}

// signs approves what was loaded, and returns the comment to post.
func (p *phone) signs() string {
	p.h.Helper()
	p.Click("#sign")
	return p.value("comment")
}

// audits has both verifiers read the ledger.
func (p *phone) audits() {
	p.h.Helper()
	p.h.audits()
	bundle := filepath.Join(p.h.TempDir(), "ledger.bundle")
	p.h.git(p.h.dir, "bundle", "create", "-q", bundle, "refs/agent/ledger")
	if out, err := exec.Command("python3", "../../docs/spec/verifier/verify.py", bundle).CombinedOutput(); err != nil {
		p.h.Errorf("the second verifier: %v\n%s", err, out)
	}
}

// T94: on a phone a person makes a passkey on the published site, and approves a change with it. The comment counts on the pull
// request as any signed one; from another page of the host it does not. Both verifiers take the record.
func TestT94BrowserPhone(t *testing.T) {
	t.Parallel()
	b := pagetest.Start(t)
	a := &attack{hub: newHub(t)}
	h := a.hub
	phone := newPhone(h, b)
	dir, origin := phone.dir, phone.origin
	a.proposes("hello, world")
	phone.makes("ada")
	a.waits() // the Policy's list has moved on, and it asks again
	phone.publish()

	if text := phone.loads(phone.serve(), a.tx); !strings.Contains(text, "The Policy takes passkeys that "+origin+" asks") {
		t.Errorf("another page of the host says\n%s", text)
	}
	began := time.Now()
	text := phone.loads(origin, a.tx)
	if patch := strings.TrimPrefix(a.fingerprint, "patchset:"); !strings.Contains(text, patch) {
		t.Errorf("the page does not say %s:\n%s", patch, text)
	}
	phone.Wait("document.getElementById('page').contentDocument.body.textContent.includes('hello, world')", time.Minute)
	if found := phone.Violations(); len(found) > 0 {
		t.Errorf("axe: %q", found)
	}
	line := phone.signs()
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
	phone.audits()
	if raw, err := os.ReadFile(filepath.Join(dir, "decide", a.tx+".json")); err != nil || len(raw) > 4<<10 {
		t.Errorf("what is published of a change has %d bytes: %v", len(raw), err)
	}
	if left := b.Left(); len(left) > 0 {
		t.Errorf("requests left the machine: %q", left)
	}
}
