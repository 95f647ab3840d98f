package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/report"
)

// initCheck says what will not work, and exits with 1 if anything will not.
func (a *App) initCheck(ctx context.Context, f initFlags) error {
	repo, err := gitstore.Open(a.flags.dir)
	if err != nil {
		return a.inDir(err)
	}
	settings, err := repo.Settings(a.Getenv)
	if err != nil {
		return err
	}
	client, err := a.forge(settings)
	if err != nil {
		return err
	}
	facts := initFacts{LedgerRef: a.flags.ledgerRef, Asked: client != nil, Branch: f.branch}
	if err := a.probe(ctx, repo, client, &facts); err != nil {
		return err
	}
	return a.showFindings(facts)
}

// probe finds the facts out: the files in this clone's copy of the default
// branch, the rest from GitHub.
func (a *App) probe(ctx context.Context, repo *gitstore.Repo, client *github.Client, f *initFacts) error {
	branch, _ := strings.CutPrefix(f.LedgerRef, "refs/heads/")
	if branch == f.LedgerRef {
		branch = ""
	}
	if client == nil && f.Branch == "" {
		var err error
		if f.Branch, err = repo.DefaultBranch(a.flags.remote); err != nil {
			return err
		}
		if f.Branch == "" {
			return &usageError{
				"this clone does not know which branch of " + report.Clean(a.flags.remote) + " is the default one",
				"--branch NAME, or git remote set-head " + shellQuote(a.flags.remote) + " --auto; with COUNTERSIGN_TOKEN, GitHub says it",
			}
		}
	}
	if client == nil {
		return a.readBranch(ctx, repo, f)
	}
	seen, err := client.Probe(ctx, branch)
	if err != nil {
		return err
	}
	f.Branch = seen.DefaultBranch
	if err := a.readBranch(ctx, repo, f); err != nil {
		return err
	}
	f.GitHub = seen
	f.GitHub.Teams = client.ReadableTeams(ctx, f.teams())
	return nil
}

// readBranch reads the files of init as the default branch has them here.
func (a *App) readBranch(ctx context.Context, repo *gitstore.Repo, f *initFacts) error {
	ref := "refs/remotes/" + a.flags.remote + "/" + f.Branch
	commit, err := repo.Ref(ctx, ref)
	if err == nil && commit == "" || errors.As(err, new(*gitstore.RefError)) {
		return &policyRefError{ref}
	}
	if err != nil {
		return err
	}
	tree, err := repo.Tree(ctx, commit)
	if err != nil {
		return err
	}
	f.Commit = commit
	files := map[string][]byte{}
	for _, file := range initList {
		raw, err := fs.ReadFile(tree, file.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", file.path, plain(err))
		}
		if err == nil {
			files[file.path] = append([]byte{}, raw...)
		}
	}
	f.read(files)
	return nil
}

// read takes over what files say; one that is missing is not in the map.
func (f *initFacts) read(files map[string][]byte) {
	f.Files = map[string]string{}
	for _, file := range initList {
		have, found := files[file.path]
		f.Files[file.path] = file.state(have, found, scaffoldOf(have))
		if uses := usesIn(have); uses != "" && !slices.Contains(f.Uses, uses) {
			f.Uses = append(f.Uses, uses)
		}
	}
	settle := scaffoldOf(files[workflows+"settle.yml"])
	f.Gated, f.WorkflowRef = settle.Gate, firstOf(settle.LedgerRef, gitstore.LedgerRef)
	f.Policy = policy.Default()
	if raw, found := files[policy.Path]; found {
		f.Policy, f.PolicyErr = policy.Parse(policy.Path, raw)
	}
}

// teams are those that the Policy names.
func (f initFacts) teams() []string {
	var out []string
	for _, rule := range f.Policy.Protected {
		out = append(out, rule.Teams...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (a *App) showFindings(f initFacts) error {
	found := f.findings()
	failing, text := 0, ""
	list := make([]any, len(found))
	for i, one := range found {
		if one.Level == levelFails {
			failing++
		}
		text += fmt.Sprintf("%-6s %s\n", one.Level, report.Clean(one.Text))
		if one.Hint != "" && !a.flags.quiet {
			text += "       " + one.Hint + "\n"
		}
		list[i] = document{"level": one.Level, "text": one.Text, "hint": one.Hint}
	}
	var err error
	if a.flags.json {
		err = a.printJSON(document{"findings": list, "commit": f.Commit})
	} else {
		err = a.print(text)
	}
	if err == nil && failing > 0 {
		err = &exitError{exitFailed, fmt.Errorf("%s will not work", counted(failing, "thing"))}
	}
	return err
}
