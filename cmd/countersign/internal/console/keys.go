package console

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
)

const DefaultRemote = "origin"

// InCI reports whether no person waits.
func (c *Console) InCI() bool { return c.Getenv("CI") == "true" || c.Getenv("CI") == "1" }

// Signer returns what signs the ledger's commits, nil if nothing does. The key
// is in a file, or itself in the environment.
func (c *Console) Signer() (func([]byte) (string, error), error) {
	if c.Flags.SignKey == "" {
		return c.SignerIn(SignKeyName)
	}
	key, err := c.LedgerKey()
	if err != nil {
		return nil, err
	}
	return key.Sign, nil
}

// ErrNoSignKey is a key to sign with that nobody gave.
var ErrNoSignKey = &UsageError{Message: "there is no key to sign with", Hint: "give the key: --sign-key FILE"}

// LedgerKey is the key itself that signer signs with.
func (c *Console) LedgerKey() (signing.Signer, error) {
	if c.Flags.SignKey == "" {
		raw := c.Getenv(SignKeyName)
		if raw == "" {
			return signing.Signer{}, ErrNoSignKey
		}
		return c.ParseKey(SignKeyName, []byte(raw))
	}
	raw, err := c.ReadFile(c.Flags.SignKey)
	if err != nil {
		return signing.Signer{}, err
	}
	return c.ParseKey(c.Flags.SignKey, raw)
}

const SignKeyName = "COUNTERSIGN_SIGN_KEY"

// SignerIn returns what signs with the key in a variable of the environment,
// nil where it is not set.
func (c *Console) SignerIn(name string) (func([]byte) (string, error), error) {
	raw := c.Getenv(name)
	if raw == "" {
		return nil, nil
	}
	key, err := c.ParseKey(name, []byte(raw))
	if err != nil {
		return nil, err
	}
	return key.Sign, nil
}

// ParseKey reads a private key out of a file, or a variable of the environment.
func (c *Console) ParseKey(name string, raw []byte) (signing.Signer, error) {
	key, err := signing.ParseKey(raw, []byte(c.Getenv("COUNTERSIGN_SIGN_PASSPHRASE")))
	if err != nil {
		return key, &UsageError{Message: fmt.Sprintf("%s: %v", name, err), Hint: "ssh-keygen -t ed25519"}
	}
	return key, nil
}

// McpTokenName is the variable with the token of who may talk over HTTP.
const McpTokenName = "COUNTERSIGN_MCP_TOKEN"

// LedgerTokenName is the variable with the token for the repository that keeps other
// repositories' ledgers. It goes to no other.
const LedgerTokenName = "COUNTERSIGN_LEDGER_TOKEN"

// tokenNames are the variables whose values this program is given to use, and
// that never appear in what it writes.
var tokenNames = []string{
	"COUNTERSIGN_TOKEN", LedgerTokenName, "COUNTERSIGN_SIGN_KEY", "COUNTERSIGN_SIGN_PASSPHRASE", "COUNTERSIGN_AGE_IDENTITY", McpTokenName, "COUNTERSIGN_WEBHOOK",
	"GITHUB_TOKEN", "GH_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN", "INPUT_TOKEN", "INPUT_PUSH-TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
}
