package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitcredential"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/terminal"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/pageaudit"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

const defaultRemote = "origin"

// A rememberedStore is a ledger that knows the last tip it saw, and which repository has one.
type rememberedStore interface {
	writing.Store
	Seen() string
	PushedTo(address, tip string) string
}

// store opens the ledger that the flags mean: the clone's own, or the remote's.
func (a *App) store(repo *gitstore.Repo, settings gitstore.Settings) (rememberedStore, error) {
	local, err := a.localLedger(repo)
	if err != nil {
		return nil, err
	}
	a.seen = local.Seen
	shared, err := a.shares(settings)
	if err != nil || !shared {
		return local, err
	}
	remote, err := a.share(local, repo, settings)
	if err != nil {
		return nil, err
	}
	if a.handsOver && a.elsewhere {
		return local, nil
	}
	a.seen = remote.Seen
	return remote, nil
}

func (a *App) localLedger(repo *gitstore.Repo) (*gitstore.Ledger, error) {
	known, err := a.readTip()
	if err != nil {
		return nil, err
	}
	sign, err := a.signer()
	if err != nil {
		return nil, err
	}
	l, err := repo.Ledger(a.flags.ledgerRef, gitstore.LedgerOptions{
		Pages:    page.Versions{},
		KnownTip: known, Sign: sign, Check: writing.CheckSchema,
		Verify: func(h history.Reader, tip string) ([]history.Finding, bool, error) { // holds what is new to the rules
			r, err := pageaudit.Run(h, audit.Options{Tip: tip}, nil)
			return r.Findings, r.Complete, cmp.Or(err, r.Undecidable())
		},
	})
	if err != nil {
		return nil, &cli.UsageError{Message: err.Error(), Hint: "a ledger ref looks like " + gitstore.LedgerRef}
	}
	return l, nil
}

// shares reports whether the remote's ledger is meant: when asked for, and in CI,
// where the clone is gone when the job ends.
func (a *App) shares(settings gitstore.Settings) (bool, error) {
	switch {
	case a.flags.push && a.flags.noPush:
		return false, &cli.UsageError{Message: "--push and --no-push exclude each other", Hint: ""}
	case a.flags.noPush:
		return false, nil
	case a.flags.push:
		return true, nil
	}
	return a.inCI() && settings.RemoteURL(a.flags.remote) != "", nil
}

// inCI reports whether no person waits.
func (a *App) inCI() bool { return a.Getenv("CI") == "true" || a.Getenv("CI") == "1" }

// shareLedger works on the remote's ledger unless that was declined: what is for
// a pull request is for everybody who looks at it.
func (a *App) shareLedger() { a.flags.push = !a.flags.noPush }

// share connects the ledger with the remote's.
func (a *App) share(local *gitstore.Ledger, repo *gitstore.Repo, settings gitstore.Settings) (*gitstore.Shared, error) {
	place, err := a.place(context.Background(), repo, settings)
	if err != nil {
		return nil, err
	}
	return local.Share(place, pause)
}

// remoteURL is the address of the remote that --remote names.
func (a *App) remoteURL(settings gitstore.Settings) (string, error) {
	if address := settings.RemoteURL(a.flags.remote); address != "" {
		return address, nil
	}
	return "", &cli.UsageError{Message: fmt.Sprintf("%q is no remote of this repository", a.flags.remote), Hint: "git remote -v"}
}

// openShared opens the remote's ledger, whatever --push says.
func (a *App) openShared() (*gitstore.Shared, gitstore.Settings, error) {
	var none gitstore.Settings
	repo, settings, err := a.openRepo()
	if err != nil {
		return nil, none, err
	}
	local, err := a.localLedger(repo)
	if err != nil {
		return nil, none, err
	}
	a.helpers = !inWorkflow(a.Getenv) // jobs there are split by who holds a token
	shared, err := a.share(local, repo, settings)
	if err != nil {
		return nil, none, err
	}
	a.seen = shared.Seen
	a.flags.push = true // a hint is about the remote's ledger as well
	return shared, settings, nil
}

// server opens a repository on a server, with the credentials that there are
// for it; token goes before these, where it may go there at all.
func (a *App) server(repo *gitstore.Repo, settings gitstore.Settings, address, token string) (*wire.Server, error) {
	o, err := a.credentials(address, settings, token)
	if err != nil {
		return nil, err
	}
	return a.serverWith(repo, address, o)
}

// serverWith opens it with these credentials.
func (a *App) serverWith(repo *gitstore.Repo, address string, o wire.Options) (*wire.Server, error) {
	root, err := repo.Worktree()
	if err != nil {
		return nil, err
	}
	o.Dir, o.UserAgent = cmp.Or(root, repo.Dir()), "countersign/"+version()
	server, err := wire.Open(address, o)
	if err != nil {
		return nil, &cli.UsageError{Message: err.Error(), Hint: "an address is https://HOST/PATH, ssh://HOST/PATH, USER@HOST:PATH or a path"}
	}
	return server, nil
}

// tokenHost is the one host that a token goes to. One that was merely named on the
// command line gets none, nor does any without TLS, unless the workflow's server is so.
func (a *App) tokenHost(settings gitstore.Settings) string {
	named, server := a.Getenv("COUNTERSIGN_TOKEN_HOST"), github.HostOf(a.Getenv("GITHUB_SERVER_URL"))
	if a.cloned == "" {
		return cmp.Or(named, server, github.HostOf(settings.RemoteURL(defaultRemote)))
	}
	if host := github.HostOf(a.cloned); !strings.HasPrefix(a.cloned, "https://") && host != server {
		return ""
	}
	return cmp.Or(named, server, "github.com")
}

// credentials are what the environment and Git's configuration have for a remote, and,
// where nothing is recorded that could hold them, its credential helpers. A token goes to one host alone: that of the workflow's server, else
// the one that COUNTERSIGN_TOKEN_HOST or the remote "origin" names.
func (a *App) credentials(address string, settings gitstore.Settings, first string) (wire.Options, error) {
	o := wire.Options{SSH: wire.SSH{
		Command: cmp.Or(a.Getenv("GIT_SSH_COMMAND"), settings.SSHCommand),
		Program: a.Getenv("GIT_SSH"),
		Variant: cmp.Or(a.Getenv("GIT_SSH_VARIANT"), settings.SSHVariant),
		KeyFile: a.Getenv("COUNTERSIGN_SSH_KEY"),
		Batch:   !terminal.Is(a.Stdin),
	}}
	if a.inCI() { // a person is told at once
		o.Wait = a.pause
	}
	if file := a.Getenv("SSH_KNOWN_HOSTS"); file != "" {
		o.SSH.KnownHosts = []string{file}
	}
	host := github.HostOf(address)
	if host == "" {
		if !o.SSH.Batch {
			a.line.Still()
		}
		return o, nil
	}
	forge := github.HostOf(a.Getenv("GITHUB_SERVER_URL"))
	token := ""
	if host == forge {
		token = first
	}
	if token == "" && host == a.tokenHost(settings) {
		token = a.Getenv("COUNTERSIGN_TOKEN")
	}
	if token == "" && host == forge {
		token = cmp.Or(a.Getenv("INPUT_TOKEN"), a.Getenv("GITHUB_TOKEN"))
	}
	header := settings.ExtraHeader(address)
	if token == "" && header == "" {
		token = a.askGH(host)
	}
	switch {
	case token != "":
		o.Authorization = wire.Basic("x-access-token", token)
	case header != "":
		var err error
		o.Authorization, err = wire.ExtraHeader(header)
		return o, err
	case a.helpers:
		o.Credentials = func(ctx context.Context, address *url.URL) (string, func(bool)) {
			defer a.line.Hold()()
			c, err := gitcredential.Fill(ctx, address, a.person() != nil)
			if err != nil {
				return "", nil
			}
			a.secrets = a.finder().Knowing(c.Password)
			if c.Password == "x-oauth-basic" || c.Password == "" { // then the user is the token
				a.secrets = a.finder().Knowing(c.User)
			}
			return wire.Basic(c.User, c.Password), func(took bool) { c.Settle(ctx, took) }
		}
	}
	return o, nil
}

// signer returns what signs the ledger's commits, nil if nothing does. The key
// is in a file, or itself in the environment.
func (a *App) signer() (func([]byte) (string, error), error) {
	if a.flags.signKey == "" {
		return a.signerIn(signKeyName)
	}
	key, err := a.ledgerKey()
	if err != nil {
		return nil, err
	}
	return key.Sign, nil
}

// errNoSignKey is a key to sign with that nobody gave.
var errNoSignKey = &cli.UsageError{Message: "there is no key to sign with", Hint: "give the key: --sign-key FILE"}

// ledgerKey is the key itself that signer signs with.
func (a *App) ledgerKey() (signing.Signer, error) {
	if a.flags.signKey == "" {
		raw := a.Getenv(signKeyName)
		if raw == "" {
			return signing.Signer{}, errNoSignKey
		}
		return a.parseKey(signKeyName, []byte(raw))
	}
	raw, err := a.readFile(a.flags.signKey)
	if err != nil {
		return signing.Signer{}, err
	}
	return a.parseKey(a.flags.signKey, raw)
}

const signKeyName = "COUNTERSIGN_SIGN_KEY"

// signerIn returns what signs with the key in a variable of the environment,
// nil where it is not set.
func (a *App) signerIn(name string) (func([]byte) (string, error), error) {
	raw := a.Getenv(name)
	if raw == "" {
		return nil, nil
	}
	key, err := a.parseKey(name, []byte(raw))
	if err != nil {
		return nil, err
	}
	return key.Sign, nil
}

// parseKey reads a private key out of a file, or a variable of the environment.
func (a *App) parseKey(name string, raw []byte) (signing.Signer, error) {
	key, err := signing.ParseKey(raw, []byte(a.Getenv("COUNTERSIGN_SIGN_PASSPHRASE")))
	if err != nil {
		return key, &cli.UsageError{Message: fmt.Sprintf("%s: %v", name, err), Hint: "ssh-keygen -t ed25519"}
	}
	return key, nil
}

// readTip is the tip that the ledger must descend from, as the flags tell.
func (a *App) readTip() (string, error) {
	if a.flags.tipFile == "" || a.flags.knownTip != "" {
		return a.flags.knownTip, nil
	}
	raw, err := os.ReadFile(a.path(a.flags.tipFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // the first time
	}
	if err != nil {
		return "", fileError(a.flags.tipFile, err)
	}
	tip := strings.TrimSpace(string(raw))
	if !canon.IsHex(tip, 40) {
		return "", &cli.UsageError{Message: a.flags.tipFile + " does not hold a commit id", Hint: "delete the file only if you know why it is damaged"}
	}
	return tip, nil
}

// tipFileFor is the file in the person's own directory for state (XDG_STATE_HOME) that
// keeps the tip of the ledger at an address, as a clone would.
func (a *App) tipFileFor(address string) (string, error) {
	state := a.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home := a.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", errors.New("HOME is not set")
		}
		state = filepath.Join(home, ".local", "state")
	}
	dir := filepath.Join(state, "countersign", "tips")
	return filepath.Join(dir, canon.Hex([]byte(address+" "+a.flags.ledgerRef))), os.MkdirAll(dir, 0o700)
}

// writeTip keeps the last tip seen, for the next run on another machine.
func (a *App) writeTip() error {
	if a.flags.tipFile == "" || a.seen == nil {
		return nil
	}
	if tip := a.seen(); tip != "" { // something was seen that held
		return writeFile(a.path(a.flags.tipFile), []byte(tip+"\n"))
	}
	return nil
}
