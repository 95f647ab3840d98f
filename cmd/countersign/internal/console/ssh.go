package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoOpenSSH says that OpenSSH's programs are not installed.
var ErrNoOpenSSH = errors.New("ssh-keygen was not found")

// A SigningKey is a person's own SSH key to sign with, one that ssh-keygen or the person's agent knows, also on a
// security key, which asks for a touch or a PIN: a file, or a public key whose private half the agent has.
type SigningKey struct {
	// File is the file of a private key; that of a public key means the agent's.
	File string
	// Public is "<type> <base64>", as authorized_keys has it, where there is no file.
	Public string
}

// NamedKey returns the key that text means, as git reads user.signingKey
// (git-config(1)): "key::" and a public key, a public key, or a file's path, in which
// "~/" is home.
func NamedKey(text, home string) SigningKey {
	public, literal := strings.CutPrefix(text, "key::")
	switch {
	case literal || isPublic(text):
		return SigningKey{Public: public}
	case strings.HasPrefix(text, "~/"):
		return SigningKey{File: filepath.Join(home, text[2:])}
	}
	return SigningKey{File: text}
}

func isPublic(text string) bool {
	kind, _, more := strings.Cut(text, " ")
	return more && (strings.HasPrefix(kind, "ssh-") || strings.HasPrefix(kind, "ecdsa-sha2-") || strings.HasPrefix(kind, "sk-"))
}

// AgentKeys returns the public keys that the agent holds, as ssh-add lists them; none
// where no agent runs.
func AgentKeys(ctx context.Context) ([]SigningKey, error) {
	out, err := exec.CommandContext(ctx, "ssh-add", "-L").Output()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, ErrNoOpenSSH
	case errors.As(err, &exit): // 1: it has no keys; 2: there is no agent
		return nil, nil
	case err != nil:
		return nil, err
	}
	var keys []SigningKey
	for line := range strings.Lines(string(out)) {
		if isPublic(line) {
			keys = append(keys, SigningKey{Public: strings.TrimSpace(line)})
		}
	}
	return keys, nil
}

// Sign returns the SSHSIG of a message in a namespace, as `ssh-keygen -Y sign` writes
// it. What ssh-keygen asks of the person (a touch, a PIN, a passphrase) it asks on
// their terminal; what it says goes to told.
func (k SigningKey) Sign(ctx context.Context, namespace string, message []byte, told io.Writer) (armored string, err error) {
	args := []string{"-Y", "sign", "-q", "-n", namespace}
	if k.File != "" {
		args = append(args, "-f", k.File)
	} else {
		file, remove, err := k.publicFile()
		if err != nil {
			return "", err
		}
		defer remove()
		args = append(args, "-U", "-f", file)
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, "ssh-keygen", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(message), &out, io.MultiWriter(told, &said)
	if err := cmd.Run(); errors.Is(err, exec.ErrNotFound) {
		return "", ErrNoOpenSSH
	} else if err != nil {
		return "", fmt.Errorf("ssh-keygen did not sign with %s: %w: %s", k, err, lastLine(said.String()))
	}
	return out.String(), nil
}

// publicFile writes the public key where ssh-keygen can read it.
func (k SigningKey) publicFile() (name string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "countersign-key-")
	if err != nil {
		return "", nil, err
	}
	name = filepath.Join(dir, "key.pub")
	if err := os.WriteFile(name, []byte(k.Public+"\n"), 0o600); err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return name, func() { os.RemoveAll(dir) }, nil
}

// String names a key for people: its file, or its type and comment.
func (k SigningKey) String() string {
	if k.File != "" {
		return k.File
	}
	fields := strings.Fields(k.Public)
	if len(fields) < 3 {
		return "the agent's key"
	}
	return "the agent's " + fields[0] + " " + strings.Join(fields[2:], " ")
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
