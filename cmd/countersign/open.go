package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/completion"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/workspace"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// open puts a Runner together for the repository that -C names.
func (a *App) open() (*pipeline.Runner, error) {
	repo, settings, err := a.openRepo()
	if err != nil {
		return nil, err
	}
	a.repo, repo.Config, a.pager, a.ownPager = repo, settings, settings.Pager, settings.OwnPager
	store, err := a.store(repo, settings)
	if err != nil {
		return nil, err
	}
	a.pushedTo = store.PushedTo
	if err := a.readSecretRules(repo); err != nil {
		return nil, err
	}
	a.clock = &rest.Clock{Now: a.Now}
	client, err := a.forge(settings)
	if err != nil {
		return nil, err
	}
	pulls := &pullCode{a: a, repo: repo, settings: settings, opened: map[string]*wire.Server{}, bases: map[string]string{}}
	login := cmp.Or(a.Getenv("USER"), a.Getenv("LOGNAME"), a.Getenv("USERNAME"), "unknown")
	r := &pipeline.Runner{
		Store: store, Repo: repo, Refs: repo, Code: pulls, Rules: a.rules(repo, pulls), Secrets: a.finder(), Diffs: gitpatch.Reader{},
		Actor: ledger.Actor{ // the Git identity, else the login name
			Kind: "user", ID: "local:" + strings.ToLower(cmp.Or(settings.Email, login)),
			Login: ledger.OneLine(cmp.Or(settings.Name, settings.Email, login), 100),
		},
		Tool: "countersign " + version(), Now: a.clock.Time, Entropy: a.Entropy, Pause: pause,
		Signer: a.signerIn, Identities: a.Getenv("COUNTERSIGN_AGE_IDENTITY"),
	}
	if settings.Email != "" {
		r.Decider = r.Actor
	}
	if r.Asked, err = startedBy(a.Getenv); err != nil {
		return nil, err
	}
	if client != nil { // there is a token to read pull requests with
		a.client, r.Forge = client, a.trustedForge(client)
	}
	if !a.holdsToken(settings) {
		r.Commands = commands{a: a}
	}
	if a.flags.verbose {
		head, err := repo.Head(context.Background())
		a.say("repository %s, HEAD %s, ledger %s, acting as %s", repo.Dir(), cmp.Or(head, fmt.Sprint(err)), a.flags.ledgerRef, r.Actor.Login)
	}
	return r, openWorktree(r, repo, settings)
}

// openRepo opens the repository that -C names. Where flags are not given, Git's
// configuration has what is usual there: countersign.ledgerRef, countersign.remote,
// countersign.forge and countersign.signKey.
func (a *App) openRepo() (*gitstore.Repo, gitstore.Settings, error) {
	repo, err := gitstore.Open(a.from(a.flags.dir))
	if err != nil {
		return nil, gitstore.Settings{}, a.inDir(err)
	}
	settings, err := repo.Settings(a.Getenv)
	for name, flag := range a.habitual {
		if value := settings.Habit(name); value != "" {
			*flag = value
		}
	}
	return repo, settings, errors.Join(err, a.checkForge("countersign.forge"))
}

// openLocal opens this clone for a completion, before which no flags were looked at.
func (a *App) openLocal(cmd *cobra.Command) (completion.Clone, error) {
	if err := a.habits(cmd); err != nil {
		return completion.Clone{}, err
	}
	repo, settings, err := a.openRepo()
	a.repo = repo // Main closes it
	return completion.Clone{Repo: repo, Remotes: settings.Remotes(), LedgerRef: a.flags.ledgerRef}, err
}

// habits finds out which flags Git's configuration may give a value.
func (a *App) habits(cmd *cobra.Command) error {
	a.habitual = map[string]*string{}
	for flag, of := range map[string]*string{"ledger-ref": &a.flags.ledgerRef, "remote": &a.flags.remote, "forge": &a.flags.forge, "sign-key": &a.flags.signKey} {
		if !cmd.Flags().Changed(flag) && (of != &a.flags.signKey || a.Getenv(signKeyName) == "") {
			a.habitual[strings.ReplaceAll(flag, "-", "")] = of
		}
	}
	if err := a.checkForge("--forge"); err != nil {
		return err
	}
	if !slices.Contains([]string{"auto", "always", "never"}, a.flags.color) {
		return &cli.UsageError{Message: fmt.Sprintf("--color %+q is not known", a.flags.color), Hint: "--color auto, always or never"}
	}
	return nil
}

func (a *App) inDir(err error) error {
	if _, statErr := os.Stat(a.from(a.flags.dir)); statErr != nil {
		return fileError(a.flags.dir, statErr)
	}
	abs, absErr := filepath.Abs(a.from(a.flags.dir))
	if absErr != nil {
		return err
	}
	return fmt.Errorf("%s: %w", abs, err)
}

func openWorktree(r *pipeline.Runner, repo *gitstore.Repo, settings gitstore.Settings) error {
	dir, err := repo.Worktree()
	if err != nil || dir == "" {
		return err
	}
	tree, err := workspace.Open(dir, repo.StateDir(), settings.IgnoreMode)
	if err != nil {
		return err
	}
	tree.Attributes, r.Worktree = settings.Attributes, tree
	return nil
}

// pause waits longer after each lost race, with jitter so that two writers do
// not meet again.
func pause(ctx context.Context, attempt int) {
	most := time.Duration(min(attempt, 20)) * 10 * time.Millisecond
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(most)):
	}
}

// openOne opens the repository, and finds the one transaction that the arguments
// mean.
func (a *App) openOne(ctx context.Context, args []string, look bool) (*pipeline.Runner, writing.Snapshot, string, error) {
	r, err := a.open()
	if err != nil {
		return nil, writing.Snapshot{}, "", err
	}
	snap, id, err := a.find(ctx, r, args, look)
	return r, snap, id, err
}

// find returns the one transaction that the arguments mean, and the ledger that it
// was found in.
func (a *App) find(ctx context.Context, r *pipeline.Runner, args []string, look bool) (writing.Snapshot, string, error) {
	name := ""
	if len(args) > 0 {
		if name = args[0]; name == "" {
			return writing.Snapshot{}, "", &cli.UsageError{Message: "the transaction's name is empty", Hint: "leave it out to take the open transaction"}
		}
	}
	snap, id, err := r.Find(ctx, name, look)
	if isNone(err) && name != "" && a.isFile(name) {
		err = a.fileNamed(name)
	}
	a.transaction = id
	return snap, id, err
}

// path is where a file named on the command line is: below -C, if it is given.
func (a *App) path(name string) string {
	if dir := cmp.Or(a.beside, a.flags.dir); !filepath.IsAbs(name) && dir != "." {
		name = filepath.Join(dir, name)
	}
	return a.from(name)
}

// from is where a path leads that begins in the directory where the run began. The system takes the steps
// up of that path, and not filepath.Join, as links may be on it.
func (a *App) from(name string) string {
	if a.Dir == "" || filepath.IsAbs(name) || name != "" && os.IsPathSeparator(name[0]) {
		return name
	}
	return a.Dir + string(filepath.Separator) + name
}

// readInput reads a file, or stdin for "-", up to a limit.
func (a *App) readInput(name string, limit int64) ([]byte, error) {
	in := a.Stdin
	if name != "-" {
		f, err := os.Open(a.path(name))
		if err != nil {
			return nil, fileError(name, err)
		}
		defer f.Close()
		in = f
	}
	return readUpTo(in, name, limit)
}

func readUpTo(in io.Reader, name string, limit int64) ([]byte, error) {
	// One byte more than the limit is enough for the limit to be reported.
	raw, err := io.ReadAll(bufio.NewReader(io.LimitReader(in, limit+1)))
	if err != nil {
		return nil, fileError(name, err)
	}
	return raw, nil
}

// writeFile puts a file in place whole, or not at all.
func writeFile(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".countersign-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	err = cmp.Or(err, f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// readFile reads a file that a flag names.
func (a *App) readFile(name string) ([]byte, error) {
	raw, err := os.ReadFile(a.path(name))
	if err != nil {
		return nil, fileError(name, err)
	}
	return raw, nil
}

// fileError is the error of a file that cannot be read or written.
func fileError(name string, err error) error {
	return &cli.ExitError{Code: cli.ExitIO, Err: fmt.Errorf("%s: %w", name, plainText(err))}
}

// plainText drops the operation and path from a file error; the caller names it.
func plainText(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
