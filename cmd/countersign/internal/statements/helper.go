package statements

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// helperVariable names the program where it is not beside this one: an absolute path.
const helperVariable = "COUNTERSIGN_SIGSTORE"

// A helperCode is the cause of an error of the program: its exit code, or one of ours where it
// has none.
type helperCode int

func (c helperCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

const (
	helperRefused     helperCode = 1 // the bundle does not verify
	helperUnreachable helperCode = 3 // what had to be asked or read could not be
	helperBroken      helperCode = -1
	helperMissing     helperCode = -2
)

// missing is the error of a program that is not there.
func missing(path, why string) error {
	return &fault.Error{
		Kind:    fault.Refused,
		Message: fmt.Sprintf("%s, which signs and verifies without keys, cannot be run: %s", path, why),
		Try:     "put countersign-sigstore of the same release beside countersign, or set COUNTERSIGN_SIGSTORE to its path",
		Cause:   helperMissing,
	}
}

// failed is the error of a program that did not do what it was asked for: said is what it says
// of that, in one line.
func failed(code helperCode, said string) error {
	return &fault.Error{
		Kind:    fault.Away,
		Message: "countersign-sigstore: " + said,
		Try:     "try again, and see that countersign-sigstore is of the same release",
		Cause:   code,
	}
}

// A helper is countersign-sigstore, the program beside this one that signs and verifies Sigstore
// bundles of workflows: an absolute path, and the variables of this process that it may need. Its
// libraries are larger than all of this program,
// so that they are in a module of their own (cmd/sigstore), and two programs speak over
// standard input and output:
//
//	countersign-sigstore sign   < statement > bundle
//	countersign-sigstore verify --certificate-identity I --certificate-oidc-issuer U --digest sha256:HEX < bundle > answer
//
// An answer is one line of canonical JSON, and names the payload that was verified:
//
//	{"identity":"https://github.com/…","issuer":"https://token.actions.githubusercontent.com","payload":"<64 hex>","time":"2026-01-02T15:04:05Z"}
//
// The program is believed in what it says of signatures and identities, and in nothing else:
// which bytes those are is compared here.
type helper struct {
	Path   string
	Getenv func(string) string
}

// findHelper finds the program that the variable names, else the one beside this program. PATH has no
// say, and neither has the repository.
func findHelper(getenv func(string) string) (helper, error) {
	path := getenv(helperVariable)
	switch {
	case path == "":
		own, err := os.Executable()
		if err == nil {
			own, err = filepath.EvalSymlinks(own)
		}
		if err != nil {
			return helper{}, missing("countersign-sigstore", err.Error())
		}
		path = filepath.Join(filepath.Dir(own), "countersign-sigstore")
		if runtime.GOOS == "windows" {
			path += ".exe"
		}
	case !filepath.IsAbs(path):
		return helper{}, missing(path, helperVariable+" has to be an absolute path")
	}
	if info, err := os.Stat(path); err != nil {
		var reason *os.PathError
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return helper{}, missing(path, err.Error())
	} else if !info.Mode().IsRegular() {
		return helper{}, missing(path, "it is no file")
	}
	return helper{path, getenv}, nil
}

// expected is what a bundle's certificate has to say. TrustedRoot and Digest are arguments of
// the program: a file, "" for the public instance's, and a subject of the statement.
type expected struct{ Identity, Issuer, TrustedRoot, Digest string }

// answer is what the program says of a bundle that verifies.
type answer struct {
	Identity string `json:"identity"`
	Issuer   string `json:"issuer"`
	Payload  string `json:"payload"`
	Time     string `json:"time"`
}

// Verify returns when a bundle's payload was signed by the identity that is expected, in RFC
// 3339. Anything else that the program answers is an error.
func (p helper) Verify(ctx context.Context, bundle, payload []byte, e expected) (at string, err error) {
	args := []string{"verify", "--certificate-identity=" + e.Identity, "--certificate-oidc-issuer=" + e.Issuer, "--digest=" + e.Digest}
	if e.TrustedRoot != "" {
		args = append(args, "--trusted-root="+e.TrustedRoot)
	}
	out, err := p.run(ctx, bundle, nil, args...)
	if err != nil {
		return "", err
	}
	var said answer
	if err := canon.Unmarshal(out, &said); err != nil {
		return "", failed(helperBroken, "its answer is not one: "+ledger.OneLine(err.Error(), 200))
	}
	when, err := time.Parse(time.RFC3339, said.Time)
	switch {
	case said.Payload != canon.Hex(payload):
		return "", failed(helperBroken, "it speaks of another payload")
	case said.Identity != e.Identity || said.Issuer != e.Issuer:
		return "", failed(helperBroken, "it speaks of another identity")
	case err != nil:
		return "", failed(helperBroken, "it does not say when the statement was signed")
	}
	return when.UTC().Format(time.RFC3339), nil
}

// helperConfig are the files that name another instance of Sigstore than the public one: "" for that.
type helperConfig struct{ SigningConfig, TrustedRoot string }

// token are the variables with which a job of a workflow asks for a token of its identity. Only
// the program that signs gets them.
var token = []string{"ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"}

// Sign returns a bundle of a statement, signed with the identity of this workflow's job: in
// canonical JSON, with one LF. Whether it is of this statement is for the caller to see.
func (p helper) Sign(ctx context.Context, statement []byte, c helperConfig) ([]byte, error) {
	args := []string{"sign"}
	if c.SigningConfig != "" {
		args = append(args, "--signing-config="+c.SigningConfig)
	}
	if c.TrustedRoot != "" {
		args = append(args, "--trusted-root="+c.TrustedRoot)
	}
	out, err := p.run(ctx, statement, token, args...)
	if err != nil {
		return nil, err
	}
	doc, err := canon.Parse(out)
	if err != nil {
		return nil, failed(helperBroken, "what it made is no JSON")
	}
	return canon.Line(doc)
}

// What the program may take and say.
const (
	helperTimeout = 3 * time.Minute
	mostOut       = 1 << 20
	mostErr       = 16 << 10
)

// inherited are the variables that the program always gets: how to reach a server, and what
// Windows needs to start anything.
var inherited = []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "SystemRoot", "TMPDIR", "TEMP", "TMP"}

func (p helper) run(ctx context.Context, input []byte, variables []string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	out, said := &limited{most: mostOut, stop: cancel}, &limited{most: mostErr}
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = os.TempDir(), bytes.NewReader(input), out, said, time.Second
	cmd.Env = []string{}
	for _, name := range append(variables[:len(variables):len(variables)], inherited...) {
		if value := p.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case out.full:
		return nil, failed(helperBroken, "it says more than it can have to say")
	case ctx.Err() != nil:
		return nil, failed(helperBroken, fmt.Sprintf("it did not end within %v", helperTimeout))
	case errors.As(err, &exit):
		return nil, failed(helperCode(exit.ExitCode()), ledger.OneLine(strings.TrimPrefix(string(said.kept), "countersign-sigstore: "), 500))
	case err != nil:
		return nil, missing(p.Path, ledger.OneLine(err.Error(), 200))
	}
	return out.kept, nil
}

// limited keeps the first bytes of what is written, and stops who writes more.
type limited struct {
	kept []byte
	most int
	stop func()
	full bool
}

func (l *limited) Write(p []byte) (int, error) {
	room := l.most - len(l.kept)
	if len(p) > room {
		if l.full = true; l.stop != nil {
			l.stop()
		}
	}
	l.kept = append(l.kept, p[:min(room, len(p))]...)
	return len(p), nil
}
