package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A keyFile is a key that ssh-keygen made and signs with.
type keyFile struct {
	t    *testing.T
	name string
}

func newKeyFile(t *testing.T) keyFile {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	k := keyFile{t, filepath.Join(t.TempDir(), "key")}
	check(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", k.name).Run())
	return k
}

func (k keyFile) public() string {
	k.t.Helper()
	raw, err := os.ReadFile(k.name + ".pub")
	check(k.t, err)
	return strings.TrimSpace(string(raw))
}

func (k keyFile) signs(statement []byte) string {
	k.t.Helper()
	cmd := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-n", approval.Namespace, "-f", k.name)
	cmd.Stdin = bytes.NewReader(statement)
	armored, err := cmd.Output()
	check(k.t, err)
	return string(armored)
}

// approveSigned approves the change of a transaction as somebody with a key does.
func (s playground) approveSigned(id, mail string, key keyFile) {
	s.t.Helper()
	r, statement, err := aboutToSign(s.repo, func(name string) string {
		return map[string]string{"GIT_AUTHOR_EMAIL": mail, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, "HOME": s.dir}[name]
	}, id, ledger.Approve)
	check(s.t, err)
	_, err = r.Decide(s.t.Context(), id, pipeline.Ruling{
		Kind: "local", Signature: &approval.Signature{Statement: statement, Armored: key.signs(statement.Bytes())},
	})
	check(s.t, err)
}

// aboutToSign is what somebody signs who decides on all that a transaction asks about,
// and the program with which they record it.
func aboutToSign(dir string, getenv func(string) string, id string, decision ledger.Decision) (*pipeline.Runner, approval.SignedDecision, error) {
	a := console.New(console.Process{Stdout: io.Discard, Stderr: io.Discard, Now: time.Now, Entropy: rand.Reader, Getenv: getenv})
	a.Flags.Dir, a.Flags.LedgerRef, a.Flags.Remote, a.Flags.Push = dir, gitstore.LedgerRef, console.DefaultRemote, getenv("CI") == "true"
	s, err := session.Open(a)
	if err != nil {
		return nil, approval.SignedDecision{}, err
	}
	r := s.Runner
	g, err := r.Judge(context.Background(), id)
	if err != nil {
		return nil, approval.SignedDecision{}, err
	}
	var about []string
	for _, n := range g.Verdict.Needs {
		about = append(about, n.Fingerprint)
	}
	statement, err := g.Statement(decision, about, "read it", a.Now())
	return r, statement, err
}

// signsCommand is "signs VAR approve|deny TX": a key of teststand signs a decision on
// all that a transaction asks about. VAR is the line to post; with - it is recorded here.
func signsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: signs VAR approve|deny TX")
	}
	r, statement, err := aboutToSign(ts.MkAbs("."), ts.Getenv, args[2], ledger.Decision(args[1]))
	ts.Check(err)
	signature := teststand.Ed25519(1).Signs(statement)
	if args[0] != "-" {
		ts.Setenv(args[0], approval.SignedLine(signature))
		return
	}
	_, err = r.Decide(context.Background(), args[2], pipeline.Ruling{Kind: "local", Signature: &signature})
	ts.Check(err)
}

// TestT73VerifySignedWithGit: what docs/verify-with-git.md says to run takes a decision
// that was signed, with the real ssh-keygen, and none of which anything was exchanged
// and every hash made to fit.
func TestT73VerifySignedWithGit(t *testing.T) {
	long(t)
	t.Parallel()
	script := verifyScript(t)
	key, other := newKeyFile(t), newKeyFile(t)
	s := newSandbox(t, map[string]string{
		"greet.txt": "hello\n", ".github/countersign.yml": "approvals: {keys: .github/allowed_signers, signed: require}\n",
		".github/allowed_signers": `ada@example.org namespaces="countersign-decision@v2" ` + key.public() + " laptop\n",
	})
	s.git("init", "-q", "-b", "main")
	s.commit()
	patch := filepath.Join(s.dir, "fix.patch")
	check(t, os.WriteFile(patch, fmt.Appendf(nil, greetPatch, "world"), 0o644))
	s.run(0, "review", "--patch", patch)
	id := s.newest()
	if _, errs := s.run(4, "gate", id); strings.Contains(errs, "approved") {
		t.Error(errs)
	}
	s.approveSigned(id, "ada@example.org", key)
	s.run(0, "gate", id)
	s.run(0, "apply", id)
	s.run(0, "validate", id)
	s.run(0, "audit")
	verify := func(ref string) (string, error) {
		cmd := exec.Command("sh", script, id, ref)
		cmd.Dir, cmd.Env = s.repo, append(s.env(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := verify(gitstore.LedgerRef); err != nil || !strings.Contains(out, ", signed by SHA256:") {
		t.Errorf("%v\n%s", err, out)
	}
	again := func(change func(*approval.SignedDecision)) func(raw []byte) []byte {
		return func(raw []byte) []byte {
			statement, err := approval.ParseDecision(raw)
			check(t, err)
			change(&statement)
			return statement.Bytes()
		}
	}
	line := func(text string) func([]byte) []byte {
		return func([]byte) []byte { return mustLine(t, forge.KeyDoc(text)) }
	}
	var all sync.WaitGroup
	const notGood, notThis = "a signature is not good", "is not on this decision"
	for i, c := range []struct {
		name, kind string
		change     func(raw []byte) []byte
		events     [2]string
		want       string
	}{
		{name: "the time of the statement", kind: approval.KindDecision, change: again(func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05T00:00:00Z" }), want: notGood},
		{name: "the transaction", kind: approval.KindDecision, change: again(func(s *approval.SignedDecision) { s.TransactionID = "tx_01KE5W5200041061050R3GG28A" }), want: notThis},
		{name: "what was shown", kind: approval.KindDecision, change: again(func(s *approval.SignedDecision) { s.Shown = canon.Sum(nil) }), want: notThis},
		{name: "the decision", kind: approval.KindDecision, change: again(func(s *approval.SignedDecision) { s.Decision = ledger.Deny }), want: notThis},
		{name: "the patch", kind: approval.KindDecision, change: again(func(s *approval.SignedDecision) { s.Fingerprints = []string{"patchset:" + canon.Hex(nil)} }), want: notThis},
		{name: "the signature", kind: approval.KindSignature, change: func([]byte) []byte {
			return mustLine(t, forge.SignatureDoc(approval.Signature{Armored: other.signs([]byte("x"))}))
		}, want: notGood},
		{name: "the key", kind: approval.KindKey, change: line("ada@example.org " + other.public()), want: notGood},
		{name: "the name of the key", kind: approval.KindKey, change: line("eve@example.org " + key.public()), want: notGood},
		{name: "what the key is for", kind: approval.KindKey, change: line(`ada@example.org namespaces="git" ` + key.public()), want: notGood},
		{name: "when the key was good", kind: approval.KindKey, change: line(`ada@example.org valid-before="20200101" ` + key.public()), want: notGood},
		{name: "a second key", kind: approval.KindKey, change: line("ada@example.org " + key.public() + "\nada@example.org " + other.public()), want: "is not one line"},
		{name: "the principal", events: [2]string{`"principal":"ada@example.org"`, `"principal":"eve@example.org"`}, want: notThis},
		{name: "the fingerprint of the key", events: [2]string{`"key_fingerprint":"SHA256:`, `"key_fingerprint":"SHA256:x`}, want: "is by another key"},
		{name: "who decided", events: [2]string{"local:ada@example.org", "local:bob@example.org"}, want: notThis},
	} {
		ref := fmt.Sprintf("refs/agent/forged/%d", i)
		s.exchange(id, ref, c.kind, c.change, c.events)
		all.Go(func() {
			if out, err := verify(ref); err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%s: %v, want %q\n%s", c.name, err, c.want, out)
			}
		})
	}
	all.Wait()
}

func mustLine(t *testing.T, doc any) []byte {
	t.Helper()
	line, err := canon.Line(doc)
	check(t, err)
	return line
}

var prevHash = regexp.MustCompile(`"prev":"sha256:[0-9a-f]{64}"`)

// exchange writes a transaction anew, as a history of its own: with another artifact of
// a kind, or other words in its events, and every name and hash of these made to fit.
func (s playground) exchange(id, ref, kind string, change func([]byte) []byte, words [2]string) {
	s.t.Helper()
	tx := ledger.Dir(id)
	read := func(name string) string { return s.git("cat-file", "blob", gitstore.LedgerRef+":"+tx+"/"+name) }
	events := read(ledger.EventsFile)
	log, err := ledger.ReadLog([]byte(events))
	check(s.t, err)
	files := map[string]string{}
	if change != nil {
		was := log.Artifacts(kind)[0]
		made := change([]byte(read(was.Path)))
		files[ledger.ArtifactFile(canon.Hex(made))] = string(made)
		files[was.Path] = ""
		events = strings.ReplaceAll(events, was.ArtifactID, canon.Hex(made))
	} else {
		events = strings.ReplaceAll(events, words[0], words[1])
	}
	chained, prev := "", ""
	for line := range strings.Lines(events) {
		if prev != "" {
			line = prevHash.ReplaceAllString(line, `"prev":"`+prev+`"`)
		}
		chained, prev = chained+line, canon.Sum([]byte(line))
	}
	files[ledger.EventsFile] = chained
	index := filepath.Join(s.t.TempDir(), "index")
	git := func(stdin string, args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
		cmd.Dir, cmd.Stdin = s.repo, strings.NewReader(stdin)
		cmd.Env = append(s.env(), "GIT_INDEX_FILE="+index, "GIT_COMMITTER_NAME=e", "GIT_COMMITTER_EMAIL=e@localhost", "GIT_AUTHOR_NAME=e")
		out, err := cmd.Output()
		if err != nil {
			s.t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	git("", "read-tree", gitstore.LedgerRef)
	for name, content := range files {
		if content == "" {
			git("", "update-index", "--force-remove", tx+"/"+name)
			continue
		}
		git("", "update-index", "--add", "--cacheinfo", "100644,"+git(content, "hash-object", "-w", "--stdin")+","+tx+"/"+name)
	}
	git("", "update-ref", ref, git("", "commit-tree", "-m", "forged", git("", "write-tree")))
}

// TestAuditKeepsCollecting: what follows an audit, such as the judging of a branch, does
// not go back to the late collections with which the program began.
func TestAuditKeepsCollecting(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, map[string]string{"greet.txt": "hello\n"})
	s.git("init", "-q", "-b", "main")
	s.commit()
	patch := filepath.Join(s.dir, "fix.patch")
	check(t, os.WriteFile(patch, fmt.Appendf(nil, greetPatch, "world"), 0o644))
	s.run(0, "review", "--patch", patch)
	percent := 800
	a := console.Process{Args: []string{"-C", s.repo, "audit", "--branch", "main"}, Stdout: io.Discard, Stderr: io.Discard, Now: time.Now, Getenv: func(name string) string {
		return map[string]string{"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, "HOME": s.dir}[name]
	}, SetGCPercent: func(next int) (was int) {
		was, percent = percent, next
		return was
	}}
	if code := Main(a); code != 0 || percent != 30 {
		t.Errorf("exit code %d, and garbage is collected at %d%%", code, percent)
	}
}
