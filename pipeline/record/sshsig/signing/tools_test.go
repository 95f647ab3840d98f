package signing

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A keygen runs the real ssh-keygen on a fixture's key.
type keygen struct {
	t                 *testing.T
	dir, key, allowed string
}

func newKeygen(t *testing.T, f fixture) keygen {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	k := keygen{t: t, dir: t.TempDir()}
	k.key = k.write("key", f.section(t, "key"))
	k.write("key.pub", f.section(t, "key.pub"))
	k.allowed = k.write("allowed", "a@example.org "+f.section(t, "key.pub"))
	return k
}

func (k keygen) write(name, data string) string {
	k.t.Helper()
	file := filepath.Join(k.dir, name)
	fatal(k.t, os.WriteFile(file, []byte(data), 0o600))
	return file
}

func (k keygen) run(stdin string, args ...string) (string, error) {
	cmd := exec.Command("ssh-keygen", args...)
	cmd.Dir, cmd.Stdin = k.dir, strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s%s", err, out, stderr.String())
	}
	return string(out), err
}

func (k keygen) sign(text, namespace string, options ...string) string {
	k.t.Helper()
	args := append([]string{"-q", "-Y", "sign", "-n", namespace, "-f", k.key}, options...)
	out, err := k.run(text, args...)
	fatal(k.t, err)
	return out
}

func (k keygen) verify(text, signature string, options ...string) error {
	args := append([]string{"-Y", "verify", "-n", "git", "-f", k.allowed, "-I", "a@example.org", "-s", k.write("sig", signature)}, options...)
	_, err := k.run(text, args...)
	return err
}

func (k keygen) principals(signature string) string {
	out, err := k.run("", "-Y", "find-principals", "-f", k.allowed, "-s", k.write("sig", signature))
	if err != nil {
		k.t.Error(err)
	}
	return out
}

// TestKeygen: ssh-keygen verifies what we sign, and we what it signs.
func TestKeygen(t *testing.T) {
	for _, f := range some(t) {
		t.Run(f.name, func(t *testing.T) {
			k := newKeygen(t, f)
			s, allowed := f.signer(t), f.allowed(t)
			for _, text := range []string{"", "x", message, strings.Repeat("long\n", 10000), "\x00\xff"} {
				ours := sign(t, s, text)
				if err := k.verify(text, ours); err != nil {
					t.Errorf("ssh-keygen on ours: %v", err)
				}
				if err := k.verify(text+"x", ours); err == nil {
					t.Error("ssh-keygen verified another text")
				}
				for _, hash := range []string{"sha256", "sha512"} {
					theirs := k.sign(text, "git", "-O", "hashalg="+hash)
					principal, fingerprint, err := allowed.Verify(sshsig.ForGit, []byte(text), theirs, at)
					if err != nil || fingerprint != s.Fingerprint() || principal+"\n" != k.principals(theirs) {
						t.Errorf("ours on ssh-keygen's of %s: %q, %q, %v", hash, principal, fingerprint, err)
					}
					if strings.Count(ours, "\n") != strings.Count(theirs, "\n") && strings.HasPrefix(f.name, "rsa") {
						t.Errorf("ours:\n%stheirs:\n%s", ours, theirs)
					}
				}
			}
			_, _, err := allowed.Verify(sshsig.ForGit, []byte(message), k.sign(message, "file"), at)
			wantErr(t, "of another namespace", err, sshsig.ErrNamespace)
			listed, err := k.run("", "-l", "-f", k.key)
			if err != nil || strings.Fields(listed)[1] != s.Fingerprint() {
				t.Errorf("ssh-keygen -l: %s, %v; Fingerprint: %s", listed, err, s.Fingerprint())
			}
		})
	}
}

// A repo is a repository of the real git that signs with a fixture's key.
type repo struct{ keygen }

func newRepo(t *testing.T, f fixture) repo {
	t.Helper()
	r := repo{newKeygen(t, f)}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r.must("", "init", "--quiet", "--initial-branch=main")
	r.must("", "config", "gpg.format", "ssh")
	r.must("", "config", "gpg.ssh.allowedSignersFile", r.allowed)
	r.must("", "config", "user.signingKey", r.key)
	return r
}

func (r repo) git(stdin string, args ...string) (string, error) {
	return teststand.TryGit(r.dir, stdin, args...)
}

func (r repo) must(stdin string, args ...string) string {
	r.t.Helper()
	out, err := r.git(stdin, args...)
	fatal(r.t, err)
	return out
}

// commit makes a signed commit and returns its bytes.
func (r repo) commit(text string, options ...string) string {
	r.t.Helper()
	r.must("", append(append([]string{}, options...), "commit", "--quiet", "--allow-empty", "-S", "--message="+text)...)
	return r.must("", "cat-file", "commit", "HEAD")
}

// verify asks git about a commit of these bytes.
func (r repo) verify(commit string) error {
	r.t.Helper()
	id := strings.TrimSpace(r.must(commit, "hash-object", "-t", "commit", "-w", "--stdin", "--literally"))
	_, err := r.git("", "verify-commit", id)
	return err
}

// TestGit: git verifies our commits, of every kind of header, and we git's.
func TestGit(t *testing.T) {
	for _, f := range some(t) {
		t.Run(f.name, func(t *testing.T) {
			r, s := newRepo(t, f), f.signer(t)
			commits := []string{r.commit("one"), r.commit("two\n\nwith a body\n"), r.commit("encoded", "-c", "i18n.commitEncoding=ISO-8859-1"), r.merge()}
			for _, commit := range commits {
				payload, signature, err := Split([]byte(commit))
				if err != nil {
					t.Fatalf("%v\n%s", err, commit)
				}
				principal, fingerprint, err := f.allowed(t).Verify(sshsig.ForGit, payload, signature, at)
				if err != nil || principal != "a@example.org" || fingerprint != s.Fingerprint() {
					t.Errorf("ours on git's: %q, %q, %v\n%s", principal, fingerprint, err, commit)
				}
				ours := string(Insert(payload, sign(t, s, string(payload))))
				if err := r.verify(ours); err != nil {
					t.Errorf("git on ours: %v\n%s", err, ours)
				}
				if !strings.HasPrefix(f.name, "ecdsa") && ours != commit {
					t.Errorf("ours:\n%s\ngit's:\n%s", ours, commit)
				}
				id := strings.TrimSpace(r.must(ours, "hash-object", "-t", "commit", "-w", "--stdin"))
				if got := r.must("", "log", "-1", "--format=%G? %GS %GF", id); got != "G "+principal+" "+fingerprint+"\n" {
					t.Errorf("git log: %q", got)
				}
			}
			r.must("", "fsck", "--strict")
		})
	}
}

// merge merges a signed tag: the commit holds the tag, with its signature.
func (r repo) merge() string {
	r.t.Helper()
	r.must("", "checkout", "--quiet", "-b", "side")
	r.commit("side")
	r.must("", "tag", "-s", "--message=tag", "signed")
	r.must("", "checkout", "--quiet", "main")
	r.must("", "merge", "--quiet", "--no-ff", "-S", "--message=merge", "signed")
	commit := r.must("", "cat-file", "commit", "HEAD")
	if !strings.Contains(commit, "\nmergetag ") {
		r.t.Errorf("no mergetag:\n%s", commit)
	}
	return commit
}

// TestBothRefuse: what git refuses we refuse, and for the right reason.
func TestBothRefuse(t *testing.T) {
	f, other := load(t, "ed25519"), load(t, "ecdsa-256")
	r := newRepo(t, f)
	commit := r.commit("text")
	payload, signature, err := Split([]byte(commit))
	fatal(t, err)
	with := func(signature string) string { return string(Insert(payload, signature)) }
	key := f.section(t, "key.pub")
	list := "a@example.org " + key
	r.write("allowed", `a@example.org valid-after="20250101Z" `+key)
	old := r.verify(commit) != nil
	for _, c := range []struct {
		name, list, commit string
		want               error
		gitTakes           bool // here we are stricter
	}{
		{name: "as it is", list: list, commit: commit, gitTakes: true},
		{"no signature", list, string(payload), sshsig.ErrNoSignature, false},
		{"wrong key", list, with(sign(t, other.signer(t), string(payload))), sshsig.ErrUnknownKey, false},
		{"empty list", "# nobody\n", commit, sshsig.ErrUnknownKey, false},
		{"wrong namespace", list, with(r.sign(string(payload), "file")), sshsig.ErrNamespace, false},
		{"key for another namespace", `a@example.org namespaces="file" ` + key, commit, sshsig.ErrNamespace, false},
		{"key for every namespace but git", `a@example.org namespaces="*,!g?t" ` + key, commit, sshsig.ErrNamespace, false},
		{"changed message", list, strings.Replace(commit, "text", "test", 1), sshsig.ErrBadSignature, false},
		{"changed author", list, strings.Replace(commit, "author A", "author B", 1), sshsig.ErrBadSignature, false},
		{"message without its newline", list, strings.TrimSuffix(commit, "\n"), sshsig.ErrBadSignature, false},
		{"cut armor", list, with(signature[:len(signature)-60]), sshsig.ErrMalformed, false},
		{"cut inside", list, with(strings.Replace(signature, "U1NIU0lH", "", 1)), sshsig.ErrMalformed, false},
		{"expired", `a@example.org valid-before="20260104Z" ` + key, commit, sshsig.ErrExpired, false},
		{"one second too late", `a@example.org valid-before="20260104235959Z" ` + key, commit, sshsig.ErrExpired, false},
		{name: "at the last second", list: `a@example.org valid-before="20260105Z" ` + key, commit: commit, gitTakes: true},
		{"not yet valid", `a@example.org valid-after="20260105000001Z" ` + key, commit, sshsig.ErrExpired, false},
		{name: "at the first second", list: `a@example.org valid-after="202601050000Z" ` + key, commit: commit, gitTakes: true},
		{name: "again on a later line", list: `b@example.org valid-before="20250101Z" ` + key + "a@example.org " + key, commit: commit, gitTakes: true},
		{name: "beside lines that cannot be read", list: "x\n" + `"a@example.org ` + key + "b@example.org namespaces=git " + key + list, commit: commit, gitTakes: true},
		{"on a line that cannot be read", "b@example.org " + other.section(t, "key.pub") + "a@example.org namespaces= " + key, commit, sshsig.ErrUnknownKey, false},
		{"other line lengths", list, with(rewrap(signature, 64)), sshsig.ErrMalformed, true},
		{"a blank line after the armor", list, with(signature + "\n"), sshsig.ErrMalformed, true},
		{"text after the armor", list, with(signature + "more\n"), sshsig.ErrMalformed, true},
		{"gpgsig not the last", list, strings.Replace(string(payload), "\ncommitter", "\n"+header(signature)+"committer", 1), sshsig.ErrMalformed, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if old && strings.Contains(c.list, "valid-") {
				t.Skip("ssh-keygen is older than 9.1, and does not know times in UTC")
			}
			r.write("allowed", c.list)
			if err := r.verify(c.commit); (err == nil) != c.gitTakes {
				t.Errorf("git: %v", err)
			}
			principal, _, err := verifyCommit(allow(t, c.list), c.commit)
			wantErr(t, "ours", err, c.want)
			if c.want == nil && principal != "a@example.org" {
				t.Errorf("principal %q", principal)
			}
		})
	}
}

func verifyCommit(a sshsig.Allowed, commit string) (principal, fingerprint string, err error) {
	payload, signature, err := Split([]byte(commit))
	if err != nil {
		return "", "", err
	}
	return a.Verify(sshsig.ForGit, payload, signature, at)
}

// header is the gpgsig header of a signature.
func header(signature string) string {
	return "gpgsig " + strings.ReplaceAll(strings.TrimSuffix(signature, "\n"), "\n", "\n ") + "\n"
}

// rewrap puts other lines into an armor.
func rewrap(signature string, columns int) string {
	text := strings.TrimSuffix(strings.TrimPrefix(signature, sshsig.Begin), sshsig.End)
	text = strings.ReplaceAll(text, "\n", "")
	out := sshsig.Begin
	for len(text) > columns {
		out, text = out+text[:columns]+"\n", text[columns:]
	}
	return out + text + "\n" + sshsig.End
}
