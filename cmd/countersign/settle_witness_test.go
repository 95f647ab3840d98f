package main

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/proofs"
	"github.com/countersign-dev/countersign/pipeline/witness"
)

// A noteParty is a log or a witness: its key for notes, and its private key as SSH has it.
type noteParty struct {
	witness.Key
	private ed25519.PrivateKey
	pem     string
}

func newNoteParty(t *testing.T, name string, cosigns bool) noteParty {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	check(t, err)
	k, err := witness.NewKey(name, public, cosigns)
	check(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	check(t, err)
	return noteParty{k, private, string(pem.EncodeToMemory(block))}
}

// serve is a witness of ours that knows a log, and the line of it for the file.
func (p noteParty) serve(t *testing.T, log noteParty) string {
	t.Helper()
	sign := func(message []byte) ([]byte, error) { return ed25519.Sign(p.private, message), nil }
	s, err := proofs.OpenWitness(filepath.Join(t.TempDir(), "state.json"), true, p.Key, sign, []witness.Key{log.Key}, time.Now)
	check(t, err)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() { server.Close(); check(t, s.Close()) })
	return fmt.Sprintf("witness %s %s %s/\n", p.Name(), p.Key, server.URL)
}

// TestT79SettleWitnesses: every settle shows the tip to the Policy's witnesses. One that is down is a note, and too few an error where
// the Policy demands them, whatever it is that fails.
func TestT79SettleWitnesses(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	log, north, south := newNoteParty(t, "github.com/acme/site", false), newNoteParty(t, "north.example", true), newNoteParty(t, "south.example", true)
	file := fmt.Sprintf("log %s\n%switness south.example %s http://127.0.0.1:9/\n", log, north.serve(t, log), south)
	policy := func(rule, names string) {
		h.s.Push(githubtest.NewCommit{Repository: site, Branch: "main", By: "ada", Message: "policy", Files: map[string]string{
			".github/countersign.yml": "witnesses: " + rule + "\n", ".github/witnesses": names,
		}})
		h.clone()
		h.env["COUNTERSIGN_SIGN_KEY"] = log.pem
	}
	told := func(s settled, what string) bool { return strings.Contains(strings.Join(s.Notes, "\n"), what) }
	const ref = "refs/agent/ledger-checkpoints"

	policy("{file: .github/witnesses}", file)
	_, fingerprint := h.propose(greetFix)
	one := h.s.Ref(site, ref)
	if one == "" {
		t.Fatal("no checkpoint is kept")
	}
	s := h.settle(console.ExitPending)
	if !told(s, "witness south.example did not sign: it cannot be reached") || told(s, "north.example") {
		t.Errorf("%q", s.Notes)
	}
	// A fresh reader, with the one witness that there is.
	h.git(h.dir, "fetch", "-q", h.s.URL+"/"+site+".git", "refs/agent/ledger:refs/agent/ledger", ref+":"+ref)
	names := h.write("witnesses.txt", file)
	if code, out, errs := h.run("audit", "--no-push", "--witnesses", names, "--quorum", "1"); code != 0 || !strings.Contains(out, "all there are") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, _ := h.run("audit", "--no-push", "--witnesses", names, "--quorum", "2"); code != console.ExitFailed {
		t.Errorf("%d %s", code, out)
	}

	h.says("ada", "/approve "+fingerprint)
	policy("{file: .github/witnesses, required: 1}", file)
	h.settle(0)
	for name, broken := range map[string]func(){
		"too few":        func() { policy("{file: .github/witnesses, required: 2}", file) },
		"no file":        func() { policy("{file: .github/none, required: 1}", file) },
		"a damaged file": func() { policy("{file: .github/witnesses, required: 1}", "log x\n") },
		"no witness":     func() { policy("{file: .github/witnesses, required: 1}", fmt.Sprintf("log %s\n", log)) },
		"no key":         func() { policy("{file: .github/witnesses, required: 1}", file); delete(h.env, "COUNTERSIGN_SIGN_KEY") },
		"another key": func() {
			policy("{file: .github/witnesses, required: 1}", file)
			h.env["COUNTERSIGN_SIGN_KEY"] = south.pem
		},
		"nobody is up": func() { policy("{file: .github/witnesses, required: 1}", unsigned(file)) },
		"another log's key": func() {
			policy("{file: .github/witnesses, required: 1}", strings.Replace(file, log.String(), south.Key.String(), 1))
		},
	} {
		broken()
		if code, _, _ := h.run("settle", "--json", "--pr", fmt.Sprint(h.pr)); code == 0 || code == console.ExitPending {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
	// Where none is required, each of these is a note.
	policy("{file: .github/none}", file)
	if s := h.settle(0); !told(s, "was not shown to witnesses") {
		t.Errorf("%q", s.Notes)
	}
	policy("{file: .github/witnesses}", file)
	delete(h.env, "COUNTERSIGN_SIGN_KEY")
	if s := h.settle(0); !told(s, "there is no key to sign with") {
		t.Errorf("%q", s.Notes)
	}
	// The sweep shows a tip that was missed, once the witness is up.
	file = fmt.Sprintf("log %s\n%s%s", log, strings.SplitAfter(file, "\n")[1], south.serve(t, log))
	policy("{file: .github/witnesses, required: 2}", file)
	h.does("settle", "--all", "--json")
	h.git(h.dir, "fetch", "-q", h.s.URL+"/"+site+".git", "refs/agent/ledger:refs/agent/ledger", ref+":"+ref)
	if code, out, errs := h.run("audit", "--no-push", "--witnesses", h.write("witnesses.txt", file), "--quorum", "2"); code != 0 || !strings.Contains(out, "all there are") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// unsigned is a file whose witnesses all have an address that nobody listens at, and keys that signed nothing.
func unsigned(file string) string {
	lines := strings.SplitAfter(file, "\n")
	return lines[0] + strings.Split(lines[2], " http")[0] + " http://127.0.0.1:9/\n"
}
