package statements

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/fault"
)

// keylessFlags are for statements that are signed with the identity of a workflow's job.
type keylessFlags struct {
	asked, github       bool
	signingConfig, root string
}

func (f *keylessFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.asked, "keyless", false, "write a Sigstore bundle, signed with the identity of this workflow's job; a public log names it")
	cmd.Flags().BoolVar(&f.github, "github", false, "with --keyless: give the bundle to GitHub's attestations as well")
	cmd.Flags().StringVar(&f.signingConfig, "signing-config", "", "with --keyless: the authorities and logs that sign, as Sigstore's signing_config.json: `FILE`; those of the public instance where it is not given")
	cmd.Flags().StringVar(&f.root, "trusted-root", "", "with --keyless: hold what was signed to the trusted_root.json in `FILE`")
}

// notPublic refuses a statement that must not be named in a public log.
func notPublic(format string, args ...any) error {
	return fault.Refuse("--keyless names the repository in a public log for ever: "+fmt.Sprintf(format, args...), "sign with a key of your own: --sign-key FILE")
}

// keylessSealer signs with the identity of this workflow's job. Whether everybody may read the
// repository is asked of GitHub first, as the job's event could be of another time.
func keylessSealer(ctx context.Context, a *session.Session, f keylessFlags) (sealFunc, error) {
	if a.Getenv("GITHUB_ACTIONS") != "true" || console.OnGiteaRunner(a.Getenv) {
		return nil, &console.UsageError{Message: "--keyless signs with the identity of a workflow's job, and this is none of GitHub's", Hint: "--sign-key FILE signs with a key"}
	}
	if a.Getenv("ACTIONS_ID_TOKEN_REQUEST_URL") == "" || a.Getenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN") == "" {
		return nil, &console.UsageError{Message: "the job may not ask for a token of its identity", Hint: "give the job \"permissions: {id-token: write}\" (docs/attestations.md)"}
	}
	if err := isPublic(ctx, a); err != nil {
		return nil, err
	}
	program, err := findHelper(a.Getenv)
	if err != nil {
		return nil, err
	}
	config := helperConfig{}
	if config.SigningConfig, err = absolute(a.Console, f.signingConfig); err != nil {
		return nil, err
	}
	if config.TrustedRoot, err = absolute(a.Console, f.root); err != nil {
		return nil, err
	}
	return func(s attest.Statement) ([]byte, string, error) {
		raw, err := signKeyless(ctx, program, config, s)
		return raw, "", err
	}, nil
}

// signKeyless has a statement signed, and looks whether it is this one that was.
func signKeyless(ctx context.Context, program helper, config helperConfig, s attest.Statement) ([]byte, error) {
	payload, err := s.Bytes()
	if err != nil {
		return nil, err
	}
	raw, err := program.Sign(ctx, payload, config)
	if err != nil {
		return nil, err
	}
	switch made, err := attest.OpenBundle(raw); {
	case err != nil:
		return nil, fmt.Errorf("what countersign-sigstore made: %w", err)
	case made.KeyID != "" || !bytes.Equal(made.Payload, payload):
		return nil, errors.New("what countersign-sigstore made is no bundle of this statement with a certificate")
	}
	return raw, nil
}

// isPublic refuses a repository that not everybody may read, one of which that cannot be
// found out, and one whose ledger is in another. It must be the repository of the workflow, whose
// identity signs.
func isPublic(ctx context.Context, s *session.Session) error {
	address := s.Repo.Config.RemoteURL(s.Flags.Remote)
	if s.Elsewhere || s.Local.KeptElsewhere(address) {
		return notPublic("its ledger is in another repository, so that not everybody may read who decided what")
	}
	remote := github.RepositoryOf(address)
	if named := s.Getenv("GITHUB_REPOSITORY"); named == "" || !strings.EqualFold(remote, named) {
		return notPublic("the clone is of %+q, and the workflow is of %+q", remote, named)
	}
	client, err := session.GitHub(s.Console, s.Repo.Config)
	switch {
	case err != nil:
		return err
	case client == nil:
		return notPublic("there is no token to ask GitHub whether everybody may read it")
	}
	public, err := client.IsPublic(ctx)
	switch {
	case err != nil:
		return notPublic("whether everybody may read it cannot be found out: %v", err)
	case !public:
		return notPublic("not everybody may read it")
	}
	return nil
}

// giveToGitHub stores a bundle with GitHub's attestations, and returns its number there.
func giveToGitHub(ctx context.Context, s *session.Session, bundle []byte) (string, error) {
	client, err := session.GitHub(s.Console, s.Repo.Config)
	if err != nil {
		return "", err
	}
	if client == nil {
		return "", s.NoClient("GitHub's attestations need a token")
	}
	return client.StoreAttestation(ctx, json.RawMessage(bundle))
}
