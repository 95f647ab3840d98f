// Command countersign-sigstore signs in-toto statements with the identity of a job of a
// workflow, and verifies the Sigstore bundles that it makes. countersign runs it; it has no
// other use for it, and shares no code with it, so that Sigstore's library is in this program
// alone.
//
//	countersign-sigstore sign [--signing-config FILE --trusted-root FILE] < statement > bundle
//	countersign-sigstore verify --certificate-identity I --certificate-oidc-issuer U --digest ALG:HEX [--trusted-root FILE] < bundle > answer
//
// sign asks for the job's token as the variables ACTIONS_ID_TOKEN_REQUEST_URL and
// ACTIONS_ID_TOKEN_REQUEST_TOKEN say. Without files, what signs and what is trusted is that of
// Sigstore's public instance, fetched by TUF. The answer of verify is one line of JSON, with the
// SHA-256 of the payload that was verified:
//
//	{"identity":"https://github.com/…","issuer":"https://token.actions.githubusercontent.com","payload":"<64 hex>","time":"2026-01-02T15:04:05Z"}
//
// Exit code 0 means that it is done; 1, that a bundle does not verify; 2, that the command is
// wrong; 3, that a file or a server could not be read or did not do what it was asked for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// The exit codes.
const (
	exitRefused = 1
	exitUsage   = 2
	exitIO      = 3
)

// mostInput is the size of the largest statement or bundle that is read.
const mostInput = 16 << 20

// mostTime is how long the whole program takes.
const mostTime = 2 * time.Minute

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), mostTime)
	defer cancel()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// A codeError is an error with the exit code that it ends with.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &codeError{exitUsage, fmt.Errorf(format, args...)}
}
func refused(err error) error { return &codeError{exitRefused, err} }

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	out, err := command(ctx, args, stdin, getenv)
	if err == nil {
		_, err = stdout.Write(out)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "countersign-sigstore: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	var coded *codeError
	if errors.As(err, &coded) {
		return coded.code
	}
	return exitIO
}

func command(ctx context.Context, args []string, stdin io.Reader, getenv func(string) string) ([]byte, error) {
	if len(args) == 0 || args[0] != "sign" && args[0] != "verify" {
		return nil, usage("the command is sign or verify")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var instance instance
	var want expected
	flags.StringVar(&instance.trustedRoot, "trusted-root", "", "")
	if args[0] == "sign" {
		flags.StringVar(&instance.signingConfig, "signing-config", "", "")
	} else {
		flags.StringVar(&want.identity, "certificate-identity", "", "")
		flags.StringVar(&want.issuer, "certificate-oidc-issuer", "", "")
		flags.StringVar(&want.digest, "digest", "", "")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return nil, usage("%w", err)
	}
	if flags.NArg() > 0 {
		return nil, usage("%q is one argument too many", flags.Arg(0))
	}
	raw, err := io.ReadAll(io.LimitReader(stdin, mostInput+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading standard input: %w", err)
	case len(raw) > mostInput:
		return nil, usage("standard input has more than %d bytes", mostInput)
	case args[0] == "sign":
		return signStatement(ctx, raw, instance, getenv)
	}
	return verifyBundle(raw, want, instance)
}
