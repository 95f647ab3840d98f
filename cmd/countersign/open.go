package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/workspace"
	"github.com/countersign-dev/countersign/report"
)

// open puts a Runner together for the repository that -C names.
func (a *App) open() (*pipeline.Runner, error) {
	repo, err := gitstore.Open(a.flags.dir)
	if err != nil {
		return nil, a.inDir(err)
	}
	a.repo = repo
	settings, err := repo.Settings(a.Getenv)
	if err != nil {
		return nil, err
	}
	repo.Config = settings
	store, err := a.store(repo, settings)
	if err != nil {
		return nil, err
	}
	if err := a.readSecretRules(repo); err != nil {
		return nil, err
	}
	pulls := &pullCode{a: a, repo: repo, settings: settings, opened: map[string]*wire.Server{}, bases: map[string]string{}}
	r := &pipeline.Runner{
		Store: store, Repo: repo, Refs: repo, Code: pulls, Rules: a.rules(repo, pulls), Secrets: a.finder(),
		Actor: a.actor(settings), Tool: "countersign " + version(), Now: a.Now, Entropy: a.Entropy, Pause: pause,
		Signer: a.signerIn, Identities: a.Getenv("COUNTERSIGN_AGE_IDENTITY"),
	}
	if err := a.openForge(r, settings); err != nil {
		return nil, err
	}
	if !a.holdsToken(settings) {
		r.Commands = commands{a: a}
	}
	if a.flags.verbose {
		head, err := repo.Head(context.Background())
		a.say("repository %s, HEAD %s, ledger %s, acting as %s", repo.Dir(), firstOf(head, fmt.Sprint(err)), a.flags.ledgerRef, r.Actor.Login)
	}
	return r, openWorktree(r, repo, settings)
}

// openForge lets the runner read pull requests, where there is a token.
func (a *App) openForge(r *pipeline.Runner, settings gitstore.Settings) error {
	client, err := a.forge(settings)
	if client != nil {
		a.client, r.Forge = client, a.trustedForge(client)
	}
	return err
}

func (a *App) inDir(err error) error {
	if _, statErr := os.Stat(a.flags.dir); statErr != nil {
		return &exitError{exitIO, fmt.Errorf("%s: %w", a.flags.dir, plain(statErr))}
	}
	abs, absErr := filepath.Abs(a.flags.dir)
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
	if settings.Worktree != "" {
		return &gitstore.UnsupportedError{Err: errors.New("core.worktree is set")}
	}
	tree, err := workspace.Open(dir, repo.StateDir(), settings.IgnoreMode)
	if err != nil {
		return err
	}
	r.Worktree = tree
	return nil
}

// actor is who runs the program: the Git identity, else the login name.
func (a *App) actor(s gitstore.Settings) ledger.Actor {
	login := firstOf(a.Getenv("USER"), a.Getenv("LOGNAME"), a.Getenv("USERNAME"), "unknown")
	return ledger.Actor{Kind: "user", ID: "local:" + strings.ToLower(firstOf(s.Email, login)), Login: ledger.OneLine(firstOf(s.Name, s.Email, login), 100)}
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
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

// find returns the one transaction that the arguments mean, and the ledger that it
// was found in.
func (a *App) find(ctx context.Context, r *pipeline.Runner, args []string, look bool) (ledger.Snapshot, string, error) {
	name := ""
	if len(args) > 0 {
		if name = args[0]; name == "" {
			return ledger.Snapshot{}, "", &usageError{"the transaction's name is empty", "leave it out to take the open one"}
		}
	}
	snap, id, err := r.Find(ctx, name, look)
	a.transaction = id
	return snap, id, err
}

// path is where a file named on the command line is: below -C, if it is given.
func (a *App) path(name string) string {
	if filepath.IsAbs(name) || a.flags.dir == "." {
		return name
	}
	return filepath.Join(a.flags.dir, name)
}

// readInput reads a file, or stdin for "-", up to a limit.
func (a *App) readInput(name string, limit int64) ([]byte, error) {
	in := a.Stdin
	if name != "-" {
		f, err := os.Open(a.path(name))
		if err != nil {
			return nil, &exitError{exitIO, fmt.Errorf("%s: %w", name, plain(err))}
		}
		defer f.Close()
		in = f
	}
	// One byte more than the limit is enough for the limit to be reported.
	raw, err := io.ReadAll(bufio.NewReader(io.LimitReader(in, limit+1)))
	if err != nil {
		return nil, &exitError{exitIO, fmt.Errorf("%s: %w", name, plain(err))}
	}
	return raw, nil
}

// plain drops the operation and path from a file error; the caller names it.
func plain(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// report describes a transaction as a stage left it.
func (a *App) report(g pipeline.Gated) (report.Report, error) {
	diff, err := g.Diff()
	if err != nil {
		return report.Report{}, err
	}
	rep := report.New(g.Log(), diff)
	rep.Verdict, rep.LedgerRef, rep.LedgerCommit = &g.Verdict, a.flags.ledgerRef, g.Ledger.Tip
	return rep, nil
}

// reportRun is report with what a run came to.
func (a *App) reportRun(o pipeline.Outcome) (report.Report, error) {
	rep, err := a.report(o.Gated)
	if done := o.Applied; done != nil && done.Result.Outcome != "" {
		rep.ApplyResult, rep.AppliedCommit = &done.Result, done.Commit
	}
	if o.Validated != nil {
		rep.Validation = &o.Validated.Report
	}
	return rep, err
}

// show prints a report as text or JSON.
func (a *App) show(rep report.Report) error {
	a.shown = &rep
	if a.flags.json {
		return a.printJSON(rep)
	}
	text, err := a.reportText(rep, a.style())
	if err != nil {
		return err
	}
	return emit(a.Stdout, text)
}

// reportText is a report for a person, made of its redacted fields.
func (a *App) reportText(rep report.Report, s report.Style) (secret.Redacted, error) {
	line, clean, err := a.cleanly(rep)
	return line.Show(func(string) string { return clean.Text(s) }), err
}

// cleanReport is a report without secrets, for a forge.
func (a *App) cleanReport(rep report.Report) (report.Report, error) {
	_, clean, err := a.cleanly(rep)
	return clean, err
}

func (a *App) cleanly(rep report.Report) (line secret.Redacted, clean report.Report, err error) {
	if line, err = a.redactJSON(rep); err == nil {
		err = json.Unmarshal([]byte(line.String()), &clean)
	}
	return line, clean, err
}
