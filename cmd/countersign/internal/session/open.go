// Package session opens what a command works on, once: the repository, the ledger of this clone or of the remote, the forge,
// and a Runner over them. What a token goes to, which Policy is in force and what runs commands is decided here.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/workspace"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Session is what a command has opened: the repository that -C names, the ledger, and what is needed to work on these.
type Session struct {
	*console.Console
	Repo   *gitstore.Repo   // its Config is what Git is set to
	Local  *gitstore.Ledger // this clone's
	Shared *gitstore.Shared // the remote's, nil where only this clone's is meant
	Store  rememberedStore  // the one that is worked on
	Client ForgeClient      // nil where there is no token
	Runner *pipeline.Runner

	OneKey bool      // whether a single key answers, as in a queue
	policy *policyAt // nil asks each time

	opening   Opening
	Elsewhere bool          // whether the remote's ledger is kept in another repository
	helpers   bool          // whether Git's credential helpers may be asked
	Seen      func() string // the ledger's last tip that held, nil before any did
}

// An Opening says how a session differs from the usual one.
type Opening struct {
	HandsOver bool // only a bundle is written, in a job that cannot reach the ledger where that is in another repository
}

// OpenRepo opens the repository that -C names, and nothing of it. Where flags are not given, Git's
// configuration has what is usual there: countersign.ledgerRef, countersign.remote,
// countersign.forge and countersign.signKey.
func OpenRepo(c *console.Console) (*Session, error) {
	repo, err := gitstore.Open(c.From(c.Flags.Dir))
	if err != nil {
		return nil, c.InDir(err)
	}
	s := &Session{Console: c, Repo: repo, Elsewhere: c.Elsewhere, policy: &policyAt{c: c, repo: repo}}
	c.AtEnd = append(c.AtEnd, s.Close)
	repo.Config, err = repo.Settings(c.Getenv)
	for name, flag := range c.Flags.Habits() {
		if value := repo.Config.Habit(name); value != "" && c.Flags.Habitual[name] {
			*flag = value
		}
	}
	return s, errors.Join(err, c.CheckForge("countersign.forge"))
}

// Close writes the tip that was seen, and closes the repository: `git gc` may have what was built for nothing.
func (s *Session) Close() error {
	_ = s.Repo.Close()
	return s.WriteTip()
}

// OpenLocal opens the repository and this clone's ledger.
func OpenLocal(c *console.Console) (*Session, error) {
	s, err := OpenRepo(c)
	if err == nil {
		_, err = s.OpenLedger()
	}
	return s, err
}

// OpenLedger is this clone's ledger, which is opened once.
func (s *Session) OpenLedger() (_ *gitstore.Ledger, err error) {
	if s.Local == nil {
		s.Local, err = localLedger(s.Console, s.Repo)
	}
	return s.Local, err
}

// OpenShared opens the remote's ledger, whatever --push says.
func OpenShared(c *console.Console) (*Session, error) {
	s, err := OpenLocal(c)
	if err != nil {
		return nil, err
	}
	s.helpers = !console.InWorkflow(c.Getenv) // jobs there are split by who holds a token
	if err := s.share(); err != nil {
		return nil, err
	}
	s.Seen = s.Shared.Seen
	return s, nil
}

// Open opens all that it takes to work on transactions.
func Open(c *console.Console) (*Session, error) { return OpenAs(c, Opening{}) }

// OpenAs is Open for a session that differs from the usual one.
func OpenAs(c *console.Console, o Opening) (*Session, error) {
	s, err := OpenLocal(c)
	if err == nil {
		s.opening = o
		err = s.openStore()
	}
	if err == nil {
		err = s.openRunner()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openRunner opens the forge, and what works on transactions.
func (s *Session) openRunner() (err error) {
	c, repo, settings, clock := s.Console, s.Repo, s.Repo.Config, &rest.Clock{Now: s.Now}
	if err := s.readSecretRules(); err != nil {
		return err
	}
	if s.Client, err = forgeBy(c, settings, clock); err != nil {
		return err
	}
	pulls := &pullCode{s: s, opened: map[string]*wire.Server{}, bases: map[string]string{}}
	login := cmp.Or(c.Getenv("USER"), c.Getenv("LOGNAME"), c.Getenv("USERNAME"), "unknown")
	r := &pipeline.Runner{
		Store: s.Store, Repo: repo, Refs: repo, Code: pulls, Rules: rules(s, pulls), Secrets: c.Finder(), Diffs: gitpatch.Reader{},
		Actor: ledger.Actor{ // the Git identity, else the login name
			Kind: "user", ID: "local:" + strings.ToLower(cmp.Or(settings.Email, login)),
			Login: ledger.OneLine(cmp.Or(settings.Name, settings.Email, login), 100),
		},
		Tool: "countersign " + console.Version(), Now: clock.Time, Entropy: c.Entropy, Pause: Pause,
		Signer: c.SignerIn, Identities: c.Getenv("COUNTERSIGN_AGE_IDENTITY"),
	}
	if settings.Email != "" {
		r.Decider = r.Actor
	}
	if r.Asked, err = startedBy(c.Getenv); err != nil {
		return err
	}
	if s.Client != nil { // there is a token to read pull requests with
		r.Forge = trustedForge(c, s.Client)
	}
	if !holdsToken(c, settings) {
		r.Commands = commands{a: c}
	}
	if c.Flags.Verbose {
		head, err := repo.Head(context.Background())
		c.Say("repository %s, HEAD %s, ledger %s, acting as %s", repo.Dir(), cmp.Or(head, fmt.Sprint(err)), c.Flags.LedgerRef, r.Actor.Login)
	}
	s.Runner = r
	return openWorktree(r, repo, settings)
}

// WorkShared has the session work on the remote's ledger from now on, unless that was declined: what is for a pull request
// is for everybody who looks at it.
func (s *Session) WorkShared() error {
	if s.Flags.NoPush {
		return nil
	}
	s.Flags.Push = true
	if s.Shared != nil {
		return nil
	}
	err := s.openStore()
	r := *s.Runner
	r.Store, s.Runner = s.Store, &r
	return err
}

// With is the session with another Runner, which has learnt something or was given it.
func (s *Session) With(r *pipeline.Runner) *Session {
	other := *s
	other.Runner = r
	return &other
}

// WithHelpers is the session in which Git's credential helpers may be asked, but in workflows, where jobs are split by
// who holds a token.
func (s *Session) WithHelpers() *Session {
	other := *s
	other.helpers = !console.InWorkflow(s.Getenv)
	return &other
}

func openWorktree(r *pipeline.Runner, repo *gitstore.Repo, settings gitstore.Settings) error {
	if repo.Worktree() == "" {
		return nil
	}
	tree, err := workspace.Open(repo.Worktree(), repo.StateDir(), settings.IgnoreMode)
	if err != nil {
		return err
	}
	tree.Attributes, r.Worktree = settings.Attributes, tree
	return nil
}

// Pause waits longer after each lost race, with jitter so that two writers do
// not meet again.
func Pause(ctx context.Context, attempt int) {
	most := time.Duration(min(attempt, 20)) * 10 * time.Millisecond
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(most)):
	}
}

// OpenOne opens the repository, and finds the one transaction that the arguments
// mean.
func OpenOne(ctx context.Context, c *console.Console, args []string, look bool) (*Session, writing.Snapshot, string, error) {
	s, err := Open(c)
	if err != nil {
		return nil, writing.Snapshot{}, "", err
	}
	snap, id, err := s.Find(ctx, args, look)
	return s, snap, id, err
}

// Find returns the one transaction that the arguments mean, and the ledger that it
// was found in.
func (s *Session) Find(ctx context.Context, args []string, look bool) (writing.Snapshot, string, error) {
	name := ""
	if len(args) > 0 {
		if name = args[0]; name == "" {
			return writing.Snapshot{}, "", &console.UsageError{Message: "the transaction's name is empty", Hint: "leave it out to take the open transaction"}
		}
	}
	snap, id, err := s.Runner.Find(ctx, name, look)
	switch none := IsNone(err); {
	case none && name != "" && s.IsFile(name):
		err = s.FileNamed(name)
	case none && strings.ContainsAny(name, "./"):
		err = &console.UsageError{Message: escape.Clean(name) + " is no transaction, and no file", Hint: "countersign list"}
	case none || errors.Is(err, lookup.ErrNoneOpen):
		err = s.Lacks(snap, err)
	}
	return snap, id, err
}

// Lacks is the error of what a ledger does not have, with the hint to bring the remote's where none is here.
func (s *Session) Lacks(in writing.Snapshot, err error) error {
	if in.Tip != "" || s.Shared != nil {
		return err
	}
	return &fault.Error{Kind: fault.Refused, Message: err.Error(), Try: s.Repo.Config.SyncOr(s.Flags.Remote, "countersign review FILE"), Cause: err}
}
