package main

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/lookup"
)

// sshKey makes a key with the real ssh-keygen, and returns its file and its public half.
func sshKey(t *testing.T) (file, public string) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("no ssh-keygen here")
	}
	file = filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a test", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	raw, err := os.ReadFile(file + ".pub")
	check(t, err)
	return file, strings.Join(strings.Fields(string(raw))[:2], " ")
}

// signer is what a person's own machine has, outside any workflow; with a token it can
// post for them.
func (a *attack) signer(login string) {
	env := map[string]string{"HOME": a.TempDir(), "GIT_CONFIG_NOSYSTEM": "1", "GITHUB_SERVER_URL": a.s.URL, "GITHUB_API_URL": a.s.API(), "GITHUB_GRAPHQL_URL": a.s.GraphQL()}
	if login != "" {
		env["COUNTERSIGN_TOKEN"] = a.s.Token(login)
	}
	a.env = env
}

// signed runs sign, and returns the line that it prints.
func (a *attack) signed(code int, args ...string) string {
	a.Helper()
	got, stdout, stderr := a.run(append([]string{"sign", "--pr", "1"}, args...)...)
	if got != code {
		a.Fatalf("sign %q: exit code %d, not %d: %s%s", args, got, code, stdout, stderr)
	}
	return strings.TrimSpace(stdout)
}

// T73: an agent that has a person's token, and so is that person to GitHub, gets nothing
// applied where the Policy demands signatures: it has not the key.
func TestT73TokenWithoutTheKey(t *testing.T) {
	long(t)
	t.Parallel()
	key, public := sshKey(t)
	stolen, _ := sshKey(t)
	h := newHub(t)
	h.s.Push(githubtest.NewCommit{Repository: site, Branch: "main", By: "ada", Message: "Policy", Files: map[string]string{
		".github/countersign.yml": "version: 1\napprovals: {keys: .github/allowed_signers, signed: require}\n", ".github/allowed_signers": "ada " + public + "\n",
	}})
	h.clone()
	a := &attack{hub: h}
	a.proposes("hello, world")
	job := a.env

	// The comment says what counts.
	asked := ""
	for _, c := range a.s.Comments(site, a.pr) {
		asked += c.Body
	}
	for _, c := range a.s.ReviewComments(site, a.pr) {
		asked += c.Body
	}
	if !strings.Contains(asked, "countersign sign --pr 1 --post") || strings.Contains(asked, "/approve patchset:") {
		t.Errorf("the request does not ask for a signature alone:\n%s", asked)
	}

	a.says("ada", "/approve "+a.fingerprint)
	a.answers("ada", "/approve")
	a.reviews("ada", "APPROVED", "/approve "+a.fingerprint)
	a.waits("countersign sign --pr 1")

	a.signer("ada")
	line := a.signed(0, a.tx, "--key", stolen)
	if !strings.HasPrefix(line, "/approve "+a.fingerprint+" sig:") {
		t.Fatalf("the line is %q", line)
	}
	a.env = job
	a.says("ada", line)
	a.waits("which the allowed signers do not list")

	// What the person signed counts for them alone, whole, and for this patch alone.
	a.signer("")
	line = a.signed(0, a.tx, "--key", key)
	a.env = job
	a.says("bob", line)
	a.waits("lists the key for ada")
	a.says("ada", "> "+line)
	a.says("ada", line[:len(line)-4])
	a.says("ada", line+"\nand so on")
	block := a.signed(0, a.tx, "--key", key, "--block")
	if !strings.HasPrefix(block, "/approve patchset:") || !strings.HasSuffix(block, "}\n```") {
		t.Errorf("--block printed %q", block)
	}
	a.says("ada", block+"\n"+block)
	a.waits()

	// From nothing but the number, the repository and a token; nobody is at a terminal.
	a.signer("ada")
	dir := a.dir
	a.dir = a.TempDir()
	refused := func(args ...string) string {
		a.Helper()
		code, _, stderr := a.run(append([]string{"sign"}, args...)...)
		if code != console.ExitRefused {
			t.Errorf("sign %q: %d %s", args, code, stderr)
		}
		return stderr
	}
	refused("--pr", "1", "--key", key) // no repository
	if text := refused("--pr", "1", "--repo", a.s.URL+"/"+site+".git", "--key", key); !strings.Contains(text, "countersign sign --pr 1 "+lookup.ShortID(a.tx)) {
		t.Errorf("the refusal names no transaction: %s", text)
	}
	if text := refused("--pr", "1", "--repo", a.s.URL+"/"+site+".git", "--key", key, "tx_01"); !strings.Contains(text, "countersign sign --pr 1 "+lookup.ShortID(a.tx)) {
		t.Errorf("a name that is too short: %s", text)
	}
	refused("--pr", "7", "--repo", a.s.URL+"/"+site+".git", "--key", key, a.tx)
	for _, args := range [][]string{
		{"--all", "--fingerprint", "patchset:" + strings.Repeat("0", 64), a.tx}, {"--fingerprint", "patchset:" + strings.Repeat("0", 64), a.tx}, {"--all"},
	} {
		refused(append([]string{"--pr", "1", "--repo", a.s.URL + "/" + site + ".git", "--key", key}, args...)...)
	}

	// A transaction of this repository in the ledger of another one.
	const toy = "acme/toy"
	a.s.Repository(githubtest.NewRepository{Name: toy, Files: map[string]string{"a.txt": "a\n"}})
	a.s.Role(toy, "ada", "admin")
	header := "http.extraHeader=Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+a.s.Token("ada")))
	a.git(dir, "-c", header, "fetch", "-q", "origin", "refs/agent/ledger")
	a.git(dir, "-c", header, "push", "-q", a.s.URL+"/"+toy+".git", a.s.Ref(site, "refs/agent/ledger")+":refs/agent/ledger")
	if text := refused("--pr", "1", "--repo", a.s.URL+"/"+toy+".git", "--key", key, a.tx); !strings.Contains(text, "is of another repository than "+toy) {
		t.Errorf("another repository's ledger: %s", text)
	}

	// A server that is merely named gets no token.
	told := make(chan string, 100)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told <- r.Header.Get("Authorization")
		cgi := a.s.URL + r.URL.RequestURI()
		http.Redirect(w, r, cgi, http.StatusFound)
	}))
	defer evil.Close()
	refusedBy, _, _ := a.run("sign", "--pr", "1", "--repo", evil.URL+"/"+site+".git", "--key", key, "--post", a.tx)
	close(told)
	for header := range told {
		if header != "" {
			t.Errorf("a server that was merely named was told %q", header)
		}
	}
	if refusedBy == 0 {
		t.Error("a decision was posted through a server that was merely named")
	}

	if out := a.signed(0, a.tx, "--repo", a.s.URL+"/"+site+".git", "--key", key, "--block", "--post"); !strings.HasPrefix(out, "posted: ") {
		t.Errorf("posting said %q", out)
	}
	a.dir, a.env = dir, job
	a.settle(0, "--no-gate")
	if a.status(a.tx) != "completed" {
		t.Errorf("the transaction is %s", a.status(a.tx))
	}
	a.audits()
}

// T73: a key that is registered with an account counts where the Policy says so, if it
// was there before the change was: who has the account for a while cannot add one for it.
func TestT73KeyAddedForTheChange(t *testing.T) {
	long(t)
	t.Parallel()
	key, public := sshKey(t)
	added, addedPublic := sshKey(t)
	h := newHub(t)
	h.s.Push(githubtest.NewCommit{Repository: site, Branch: "main", By: "ada", Message: "Policy", Files: map[string]string{
		".github/countersign.yml": "version: 1\napprovals: {forge_keys: true, signed: require}\n",
	}})
	h.clone()
	h.s.SigningKey("ada", public)
	a := &attack{hub: h}
	a.proposes("hello, world")
	job := a.env
	time.Sleep(1100 * time.Millisecond) // the forge's times are of whole seconds
	a.s.SigningKey("ada", addedPublic)
	says := func(who, with string) {
		a.signer("")
		line := a.signed(0, a.tx, "--key", with)
		a.env = job
		a.says(who, line)
	}
	says("ada", added)
	a.waits("had not registered for the account when the change was proposed")
	says("bob", key)
	a.waits("had not registered for the account")
	says("ada", key)
	a.s.Fail(githubtest.Fault{Path: "/api/v3/users/", Times: -1, Status: 500})
	a.settle(console.ExitIO)
	a.s.Heal()
	a.settle(0, "--no-gate")
	if a.status(a.tx) != "completed" {
		t.Errorf("the transaction is %s", a.status(a.tx))
	}
	a.audits()
}

// T51: who signs without a clone remembers the ledger as a clone does, and files that are
// named are where the person is.
func TestT51SignWithoutAClone(t *testing.T) {
	long(t)
	t.Parallel()
	key, _ := sshKey(t)
	a := &attack{hub: newHub(t)}
	a.policy("approvals: {required: 2}\n")
	a.proposes("hello, world")
	before := a.s.Ref(site, ledgerRef)
	a.says("ada", "/approve "+a.fingerprint)
	a.settle(console.ExitPending, "--no-gate")
	dir, tip := a.dir, a.s.Ref(site, ledgerRef)
	header := "http.extraHeader=Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+a.s.Token("ada")))
	a.git(dir, "-c", header, "fetch", "-q", "origin", ledgerRef)
	if tip == before {
		t.Fatal("the ledger has not moved")
	}
	a.signer("ada")
	home := a.env["HOME"]
	a.dir = a.TempDir()
	sign := []string{a.tx, "--repo", a.s.URL + "/" + site + ".git", "--key", key}
	kept := func(name string) {
		t.Helper()
		if raw, err := os.ReadFile(name); err != nil || strings.TrimSpace(string(raw)) != tip {
			t.Errorf("%s: %q %v, want %s", name, raw, err, tip)
		}
	}
	a.signed(0, append(sign, "--tip-file", "tip")...)
	kept(filepath.Join(a.dir, "tip"))
	a.signed(0, sign...)
	states, err := filepath.Glob(filepath.Join(home, ".local/state/countersign/tips/*"))
	if err != nil || len(states) != 1 {
		t.Fatalf("%v %v", states, err)
	}
	kept(states[0])

	// Somebody sets the ledger back, and what was said there is gone.
	a.git(dir, "-c", header, "push", "-q", "--force", a.s.URL+"/"+site+".git", before+":"+ledgerRef)
	for _, args := range [][]string{sign, append(sign, "--tip-file", "tip")} {
		code, stdout, stderr := a.run(append([]string{"sign", "--pr", "1"}, args...)...)
		if code != console.ExitFailed || strings.Contains(stdout, "sig:") || !strings.Contains(stderr, tip[:12]) {
			t.Errorf("the ledger was set back: %d %s%s", code, stdout, stderr)
		}
	}
	kept(states[0])
	a.env["HOME"] = "" // nothing to remember it by, which is said
	if _, _, stderr := a.run(append([]string{"sign", "--pr", "1"}, sign...)...); !strings.Contains(stderr, "the ledger's tip is not remembered") {
		t.Errorf("nothing remembers, and nobody was told: %s", stderr)
	}
}
