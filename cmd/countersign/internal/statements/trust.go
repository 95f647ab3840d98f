package statements

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// trustFlags say whose statements are believed.
type trustFlags struct{ signers, key, identity, issuer, root string }

func (f *trustFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.signers, "allowed-signers", "", "whose SSH signature counts: `FILE` (ssh-keygen's ALLOWED SIGNERS)")
	cmd.Flags().StringVar(&f.key, "key", "", "the public key of a Sigstore bundle, in PEM: `FILE`")
	cmd.Flags().StringVar(&f.identity, "certificate-identity", "", "who signed a Sigstore bundle without a key: the `IDENTITY` that its certificate must have")
	cmd.Flags().StringVar(&f.issuer, "certificate-oidc-issuer", "", "who vouches for that identity: the `URL` of the OIDC issuer")
	cmd.Flags().StringVar(&f.root, "trusted-root", "", "the authorities and logs that are trusted, as Sigstore's trusted_root.json: `FILE`; those of the public instance where it is not given")
}

// A trust is whose statements are believed.
type trust struct {
	signers *sshsig.Allowed
	at      time.Time
	key     []byte // DER; nil for none
	keyless expected
	getenv  func(string) string
}

func trustOf(c *console.Console, f trustFlags) (trust, error) {
	t := trust{at: c.Now(), keyless: expected{Identity: f.identity, Issuer: f.issuer}, getenv: c.Getenv}
	switch {
	case f.signers == "" && f.key == "" && f.identity == "" && f.issuer == "":
		return t, &console.UsageError{Message: "no allowed signers given", Hint: "--allowed-signers FILE lists whose statements you believe"}
	case (f.identity == "") != (f.issuer == ""):
		return t, &console.UsageError{Message: "an identity is one of an issuer's, and only one of the two is given", Hint: "--certificate-identity and --certificate-oidc-issuer belong together"}
	case f.root != "" && f.identity == "":
		return t, &console.UsageError{Message: "--trusted-root says nothing of who signed", Hint: "--certificate-identity and --certificate-oidc-issuer belong together"}
	}
	var err error
	if f.signers != "" {
		if t.signers, err = session.AllowedSigners(c, f.signers); err != nil {
			return t, err
		}
	}
	if f.key != "" {
		raw, err := c.ReadFile(f.key)
		if err != nil {
			return t, err
		}
		block, rest := pem.Decode(raw)
		if block == nil || block.Type != "PUBLIC KEY" || len(bytes.TrimSpace(rest)) > 0 {
			return t, &console.UsageError{Message: fmt.Sprintf("%s is not one public key in PEM", f.key), Hint: "ssh-keygen -e -m PKCS8 -f KEY.pub"}
		}
		t.key = block.Bytes
	}
	t.keyless.TrustedRoot, err = absolute(c, f.root)
	return t, err
}

// A signedStatement is a statement with a signature that counts.
type signedStatement struct {
	attest.Statement
	signer  string // who signed it, in the words of what is trusted; "" for a key that has no name
	key     string // its fingerprint; "" for a certificate
	message string // for people
}

// An unreadableError is a file that holds no statement.
type unreadableError struct{ err error }

func (e *unreadableError) Error() string { return e.err.Error() }

func (e *unreadableError) Unwrap() error { return e.err }

// open reads a signed statement, and demands that somebody who is believed has signed it.
func (t trust) open(ctx context.Context, raw []byte) (signedStatement, error) {
	if attest.IsBundle(raw) {
		return t.openBundle(ctx, raw)
	}
	opened, err := attest.Open(raw)
	if err != nil {
		return signedStatement{}, &unreadableError{err}
	}
	if t.signers == nil {
		return signedStatement{}, &console.UsageError{Message: "it is signed with an SSH key, and no allowed signers are given", Hint: "--allowed-signers FILE lists whose statements you believe"}
	}
	principal, err := opened.Verify(*t.signers, t.at)
	if err != nil {
		return signedStatement{}, err
	}
	return signedStatement{opened.Statement, principal, opened.Fingerprint, principal + " signed it with " + opened.Fingerprint}, nil
}

func (t trust) openBundle(ctx context.Context, raw []byte) (signedStatement, error) {
	opened, err := attest.OpenBundle(raw)
	switch {
	case err != nil:
		return signedStatement{}, &unreadableError{err}
	case opened.KeyID != "" && t.key == nil:
		return signedStatement{}, &console.UsageError{Message: "it is a bundle that a key signed, and no public key is given", Hint: "--key FILE names the public key, in PEM"}
	case opened.KeyID != "":
		id := canon.Sum(t.key)
		return signedStatement{opened.Statement, "", id, "the key of --key signed it (" + id + ")"}, opened.VerifyKey(t.key)
	case t.keyless.Identity == "":
		return signedStatement{}, &console.UsageError{Message: "it is a bundle that was signed without a key, and nothing says who may sign it", Hint: "--certificate-identity and --certificate-oidc-issuer belong together"}
	}
	program, err := findHelper(t.getenv)
	if err != nil {
		return signedStatement{}, err
	}
	expected := t.keyless
	expected.Digest = opened.Statement.Digest()
	at, err := program.Verify(ctx, raw, opened.Payload, expected)
	if err != nil {
		return signedStatement{}, err
	}
	return signedStatement{opened.Statement, t.keyless.Identity, "", t.keyless.Identity + " signed it at " + at + ", by the word of " + t.keyless.Issuer}, nil
}

// absolute is the path of a file that another program is to read, from the root; "" for none.
func absolute(c *console.Console, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if _, err := c.ReadFile(name); err != nil {
		return "", err
	}
	return filepath.Abs(c.Path(name))
}
