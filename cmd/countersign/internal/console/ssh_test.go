package console_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

const namespace = "countersign-decision@v2"

// keygen makes a key with the real ssh-keygen.
func keygen(t *testing.T, kind string, more ...string) (file string) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("no ssh-keygen here")
	}
	file = filepath.Join(t.TempDir(), "key")
	args := append([]string{"-q", "-t", kind, "-N", "", "-C", "a test's key", "-f", file}, more...)
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	return file
}

func readOut(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	teststand.Fatal(t, err)
	return strings.TrimSpace(string(data))
}

// proves fails unless a signature is one of the key in a public file.
func proves(t *testing.T, armored, public string, message []byte) {
	t.Helper()
	allowed, err := sshsig.ParseAllowedSigners([]byte("ada " + public + "\n"))
	teststand.Fatal(t, err)
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	if _, err := allowed.Prove(namespace, message, armored, []string{"ada"}, now, now); err != nil {
		t.Errorf("the signature proves nothing: %v", err)
	}
}

// agent starts an agent for the test with these keys.
func agent(t *testing.T, files ...string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // a socket's path is short
	teststand.Fatal(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := cmd.Start(); err != nil {
		t.Skip("no ssh-agent here")
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if conn, err := net.Dial("unix", socket); err == nil { // the socket is there before anybody listens on it
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the agent does not start")
		}
	}
	t.Setenv("SSH_AUTH_SOCK", socket)
	for _, file := range files {
		if out, err := exec.Command("ssh-add", file).CombinedOutput(); err != nil {
			t.Fatalf("ssh-add: %v: %s", err, out)
		}
	}
}

func TestSignWithFile(t *testing.T) {
	message := []byte("a statement\n")
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		file := keygen(t, kind)
		armored, err := console.NamedKey(file, "").Sign(t.Context(), namespace, message, io.Discard)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		proves(t, armored, readOut(t, file+".pub"), message)
	}
}

func TestSignWithAgent(t *testing.T) {
	message := []byte("a statement\n")
	first, second := keygen(t, "ed25519"), keygen(t, "ecdsa")
	public := readOut(t, second+".pub")
	agent(t, first, second)
	keys, err := console.AgentKeys(t.Context())
	if err != nil || len(keys) != 2 || keys[1].Public != public {
		t.Fatalf("the agent has %v, %v", keys, err)
	}
	for _, file := range []string{first, second} { // what signs is the agent's
		teststand.Fatal(t, os.Remove(file))
	}
	for _, key := range []console.SigningKey{keys[1], console.NamedKey("key::"+public, ""), console.NamedKey(public, ""), console.NamedKey(second+".pub", "")} {
		armored, err := key.Sign(t.Context(), namespace, message, io.Discard)
		if err != nil {
			t.Fatalf("%+v: %v", key, err)
		}
		proves(t, armored, public, message)
	}
}

func TestSignFails(t *testing.T) {
	file := keygen(t, "ed25519")
	agent(t)
	if keys, err := console.AgentKeys(t.Context()); len(keys) > 0 || err != nil {
		t.Errorf("an empty agent has %v, %v", keys, err)
	}
	var told bytes.Buffer
	for _, text := range []string{file + ".none", "-Y", "", "key::" + readOut(t, file+".pub"), "key::ssh-ed25519 AAAA\nssh-ed25519 BBBB", "key::"} {
		if armored, err := console.NamedKey(text, "").Sign(t.Context(), namespace, []byte("x"), &told); err == nil {
			t.Errorf("%q signed: %s", text, armored)
		}
	}
	if !strings.Contains(told.String(), ".none") {
		t.Errorf("what ssh-keygen says is not told: %q", told.String())
	}
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(t.TempDir(), "none"))
	if keys, err := console.AgentKeys(t.Context()); len(keys) > 0 || err != nil {
		t.Errorf("no agent has %v, %v", keys, err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := console.NamedKey(file, "").Sign(t.Context(), namespace, []byte("x"), &told); !errors.Is(err, console.ErrNoOpenSSH) {
		t.Errorf("without OpenSSH: %v", err)
	}
}

func TestNamed(t *testing.T) {
	for text, want := range map[string]console.SigningKey{
		"~/.ssh/id_ed25519":               {File: filepath.Join("/home/ada", ".ssh/id_ed25519")},
		"/k/id.pub":                       {File: "/k/id.pub"},
		"key::ssh-ed25519 AAAA ada":       {Public: "ssh-ed25519 AAAA ada"},
		"ssh-ed25519 AAAA":                {Public: "ssh-ed25519 AAAA"},
		"sk-ssh-ed25519@openssh.com AAAA": {Public: "sk-ssh-ed25519@openssh.com AAAA"},
		"ecdsa-sha2-nistp256 AAAA":        {Public: "ecdsa-sha2-nistp256 AAAA"},
		"ssh-keys/a":                      {File: "ssh-keys/a"},
	} {
		if got := console.NamedKey(text, "/home/ada"); got != want {
			t.Errorf("%q is %+v, not %+v", text, got, want)
		}
	}
}
