package session

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
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A rememberedStore is a ledger that knows the last tip it saw, and which repository has one.
type rememberedStore interface {
	writing.Store
	Seen() string
	PushedTo(address, tip string) string
}

// Opened is the ledger that the flags mean, which is opened once.
func (s *Session) Opened() (rememberedStore, error) {
	if s.Store != nil {
		return s.Store, nil
	}
	err := s.openStore()
	return s.Store, err
}

// openStore opens the ledger that the flags mean: the clone's own, or the remote's.
func (s *Session) openStore() error {
	s.Store, s.Seen = s.Local, s.Local.Seen
	shared, err := s.shares()
	if err != nil || !shared {
		return err
	}
	if err := s.share(); err != nil {
		return err
	}
	if s.opening.HandsOver && s.Elsewhere {
		s.Shared = nil
		return nil
	}
	s.Store, s.Seen = s.Shared, s.Shared.Seen
	return nil
}

func localLedger(c *console.Console, repo *gitstore.Repo) (*gitstore.Ledger, error) {
	known, err := readTip(c)
	if err != nil {
		return nil, err
	}
	sign, err := c.Signer()
	if err != nil {
		return nil, err
	}
	return repo.Ledger(c.Flags.LedgerRef, gitstore.LedgerOptions{
		Pages:    page.Versions{},
		KnownTip: known, Sign: sign, Check: writing.CheckSchema,
		Verify: func(h history.Reader, tip string) ([]history.Finding, bool, error) { // holds what is new to the rules
			r, err := page.Audit(h, audit.Options{Tip: tip}, nil)
			return r.Findings, r.Complete, cmp.Or(err, r.Undecidable())
		},
	})
}

// shares reports whether the remote's ledger is meant: when asked for, and in CI,
// where the clone is gone when the job ends.
func (s *Session) shares() (bool, error) {
	switch {
	case s.Flags.Push && s.Flags.NoPush:
		return false, &console.UsageError{Message: "--push and --no-push exclude each other", Hint: ""}
	case s.Flags.NoPush:
		return false, nil
	case s.Flags.Push:
		return true, nil
	}
	return s.InCI() && s.Repo.Config.RemoteURL(s.Flags.Remote) != "", nil
}

// share connects the ledger with the remote's.
func (s *Session) share() error {
	s.Flags.Push = true // a hint is about the remote's ledger as well
	place, err := s.Place(context.Background())
	if err == nil {
		s.Elsewhere = s.Elsewhere || place.Elsewhere()
		s.Shared, err = s.Local.Share(place, Pause)
	}
	return err
}

// RemoteURL is the address of the remote that --remote names.
func (s *Session) RemoteURL() (string, error) {
	if address := s.Repo.Config.RemoteURL(s.Flags.Remote); address != "" {
		return address, nil
	}
	return "", &console.UsageError{Message: fmt.Sprintf("%q is no remote of this repository", s.Flags.Remote), Hint: "git remote -v"}
}

// Server opens a repository on a server, with the credentials that there are
// for it; token goes before these, where it may go there at all.
func (s *Session) Server(address, token string) (*wire.Server, error) {
	o, err := Credentials(s.Console, address, s.Repo.Config, token, s.helpers)
	if err != nil {
		return nil, err
	}
	return s.serverWith(address, o)
}

// serverWith opens it with these credentials.
func (s *Session) serverWith(address string, o wire.Options) (*wire.Server, error) {
	o.Format, o.Dir, o.UserAgent = s.Repo.Format(), cmp.Or(s.Repo.Worktree(), s.Repo.Dir()), "countersign/"+console.Version()
	server, err := wire.Open(address, o)
	if err != nil {
		return nil, &console.UsageError{Message: err.Error(), Hint: "an address is https://HOST/PATH, ssh://HOST/PATH, USER@HOST:PATH or a path"}
	}
	return server, nil
}

// TokenHost is the one host that a token goes to. One that was merely named on the
// command line gets none, nor does any without TLS, unless the workflow's server is so.
func TokenHost(c *console.Console, settings gitstore.Settings) string {
	named, server := c.Getenv("COUNTERSIGN_TOKEN_HOST"), github.HostOf(c.Getenv("GITHUB_SERVER_URL"))
	if c.Cloned == "" {
		return cmp.Or(named, server, github.HostOf(settings.RemoteURL(console.DefaultRemote)))
	}
	if host := github.HostOf(c.Cloned); !strings.HasPrefix(c.Cloned, "https://") && host != server {
		return ""
	}
	return cmp.Or(named, server, "github.com")
}

// Credentials are what the environment and Git's configuration have for a remote, and,
// where nothing is recorded that could hold them, its credential helpers. A token goes to one host alone: that of the workflow's server, else
// the one that COUNTERSIGN_TOKEN_HOST or the remote "origin" names.
func Credentials(a *console.Console, address string, settings gitstore.Settings, first string, helpers bool) (wire.Options, error) {
	o := wire.Options{SSH: wire.SSH{
		Command: cmp.Or(a.Getenv("GIT_SSH_COMMAND"), settings.SSHCommand),
		Program: a.Getenv("GIT_SSH"),
		Variant: cmp.Or(a.Getenv("GIT_SSH_VARIANT"), settings.SSHVariant),
		KeyFile: a.Getenv("COUNTERSIGN_SSH_KEY"),
		Batch:   !console.IsTerminal(a.Stdin),
	}}
	if a.InCI() { // a person is told at once
		o.Wait = a.Pause
	}
	if file := a.Getenv("SSH_KNOWN_HOSTS"); file != "" {
		o.SSH.KnownHosts = []string{file}
	}
	host := github.HostOf(address)
	if host == "" {
		if !o.SSH.Batch {
			a.Line.Still()
		}
		return o, nil
	}
	forge := github.HostOf(a.Getenv("GITHUB_SERVER_URL"))
	token := ""
	if host == forge {
		token = first
	}
	if token == "" && host == TokenHost(a, settings) {
		token = a.Getenv("COUNTERSIGN_TOKEN")
	}
	if token == "" && host == forge {
		token = cmp.Or(a.Getenv("INPUT_TOKEN"), a.Getenv("GITHUB_TOKEN"))
	}
	header := settings.ExtraHeader(address)
	if token == "" && header == "" {
		token = askGH(a, host)
	}
	switch {
	case token != "":
		o.Authorization = wire.Basic("x-access-token", token)
	case header != "":
		var err error
		o.Authorization, err = wire.ExtraHeader(header)
		return o, err
	case helpers:
		o.Credentials = func(ctx context.Context, address *url.URL) (string, func(bool)) {
			defer a.Line.Hold()()
			c, err := console.FillCredential(ctx, address, a.Person() != nil)
			if err != nil {
				return "", nil
			}
			a.Known.Hear(c.Password)
			if c.Password == "x-oauth-basic" || c.Password == "" { // then the user is the token
				a.Known.Hear(c.User)
			}
			return wire.Basic(c.User, c.Password), func(took bool) { c.Settle(ctx, took) }
		}
	}
	return o, nil
}

// readTip is the tip that the ledger must descend from, as the flags tell.
func readTip(c *console.Console) (string, error) {
	if c.Flags.TipFile == "" || c.Flags.KnownTip != "" {
		return c.Flags.KnownTip, nil
	}
	raw, err := os.ReadFile(c.Path(c.Flags.TipFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // the first time
	}
	if err != nil {
		return "", console.FileError(c.Flags.TipFile, err)
	}
	tip := strings.TrimSpace(string(raw))
	if !canon.IsGitID(tip) {
		return "", &console.UsageError{Message: c.Flags.TipFile + " does not hold a commit id", Hint: "delete the file only if you know why it is damaged"}
	}
	return tip, nil
}

// TipFileFor is the file in the person's own directory for state (XDG_STATE_HOME) that
// keeps the tip of the ledger at an address, as a clone would.
func TipFileFor(c *console.Console, address string) (string, error) {
	dir := c.Own("XDG_STATE_HOME", ".local/state")
	if dir == "" {
		return "", errors.New("HOME is not set")
	}
	dir = filepath.Join(dir, "tips")
	return filepath.Join(dir, canon.Hex([]byte(address+" "+c.Flags.LedgerRef))), os.MkdirAll(dir, 0o700)
}

// WriteTip keeps the last tip seen, for the next run on another machine.
func (s *Session) WriteTip() error {
	if s == nil || s.Flags.TipFile == "" || s.Seen == nil {
		return nil
	}
	if tip := s.Seen(); tip != "" { // something was seen that held
		return atomicfile.Write(s.Path(s.Flags.TipFile), []byte(tip+"\n"))
	}
	return nil
}

// A BesideStore is a ledger with what is kept on refs beside it.
type BesideStore interface {
	Kept(ctx context.Context, b gitstore.Beside, want func(name string) bool) (gitstore.Kept, error)
	Keep(ctx context.Context, b gitstore.Beside, before gitstore.Kept, files map[string][]byte, when time.Time) error
}
