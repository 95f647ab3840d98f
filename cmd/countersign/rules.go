package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/report"
)

// rules returns where the Policy is read: at the tip of the ref that --policy-ref
// names, in a workflow of the default branch, else at HEAD; and at the tip of the
// branch that a pull request is to. The Policy of the same commits is read once.
func (a *App) rules(repo *gitstore.Repo, c *pullCode) func(context.Context, string) (pipeline.Rules, error) {
	var mu sync.Mutex
	known := map[[2]string]pipeline.Rules{}
	return func(ctx context.Context, branch string) (pipeline.Rules, error) {
		mu.Lock()
		defer mu.Unlock()
		commit, err := a.policyCommit(ctx, repo)
		if err != nil {
			return pipeline.Rules{}, err
		}
		base := ""
		if branch != "" && !a.hasPolicy(branch) {
			if base, err = c.base(ctx, branch); err != nil {
				return pipeline.Rules{}, err
			}
		}
		key := [2]string{commit, base}
		rules, ok := known[key]
		if !ok {
			if rules, err = pipeline.ReadRules(ctx, repo, commit, base); err == nil {
				known[key] = rules
			}
		}
		return rules, err
	}
}

// hasPolicy reports whether a branch is the default one of a workflow's event,
// which has the Policy as it is.
func (a *App) hasPolicy(branch string) bool {
	ref, err := workflowPolicyRef(a.Getenv)
	return err == nil && a.flags.policyRef == "" && ref == "refs/remotes/"+defaultRemote+"/"+branch
}

// A policyRefError is a Policy that cannot be found: nothing else takes its
// place.
type policyRefError struct{ ref string }

func (e *policyRefError) Error() string {
	if !isCodeRef(e.ref) {
		return fmt.Sprintf("the Policy is read from a branch, a tag or a remote's branch by its full name, which %s is not", report.ShellQuote(e.ref))
	}
	return fmt.Sprintf("the Policy is read from %s, and there is no such ref", e.ref)
}

func (e *policyRefError) Hint() string {
	if branch, ok := strings.CutPrefix(e.ref, "refs/remotes/"+defaultRemote+"/"); ok {
		return fmt.Sprintf("git fetch %s +refs/heads/%s:%s", defaultRemote, report.ShellQuote(branch), report.ShellQuote(e.ref))
	}
	return "--policy-ref takes a full name, such as refs/heads/main"
}

// isCodeRef reports whether a name is a full one of a ref that may have a Policy. A ledger has none, and must not
// read as a repository without one; nor must a commit, which can be anybody's.
func isCodeRef(ref string) bool {
	return slices.ContainsFunc([]string{"refs/heads/", "refs/tags/", "refs/remotes/"}, func(root string) bool { return strings.HasPrefix(ref, root) })
}

func (a *App) policyCommit(ctx context.Context, repo *gitstore.Repo) (string, error) {
	ref := a.flags.policyRef
	if ref == "" {
		var err error
		if ref, err = workflowPolicyRef(a.Getenv); err != nil {
			return "", err
		}
	}
	if ref == "" {
		return repo.Head(ctx)
	}
	if !isCodeRef(ref) {
		return "", &policyRefError{ref}
	}
	return refCommit(ctx, repo, ref)
}

// refCommit is the commit that a ref with the Policy is on.
func refCommit(ctx context.Context, repo *gitstore.Repo, ref string) (string, error) {
	commit, err := repo.Ref(ctx, ref)
	if err == nil && commit == "" || errors.As(err, new(*gitstore.RefError)) {
		err = &policyRefError{ref}
	}
	return commit, err
}

// workflowPolicyRef is the ref of the default branch in the clone of a workflow,
// "" where there is no workflow.
func workflowPolicyRef(getenv func(string) string) (string, error) {
	if !inWorkflow(getenv) {
		return "", nil
	}
	e, err := readEvent(getenv)
	if err != nil {
		return "", err
	}
	branch, err := e.PolicyBranch()
	if err != nil {
		return "", err
	}
	return "refs/remotes/" + defaultRemote + "/" + branch, nil
}

// secretRules is a repository's own configuration of the scanner.
const secretRules = ".gitleaks.toml"

// readSecretRules takes over the rules of the commit that has the Policy: what
// the scanner excuses is the owner's word as much. Where that commit cannot be
// found the default rules hold, and whatever needs a Policy fails by itself.
func (a *App) readSecretRules(repo *gitstore.Repo) error {
	commit, err := a.policyCommit(context.Background(), repo)
	if err != nil {
		return nil
	}
	tree, err := repo.Tree(context.Background(), commit)
	if err != nil {
		return err
	}
	raw, err := fs.ReadFile(tree, secretRules)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", secretRules, err)
	}
	finder, err := secret.New(raw)
	if err != nil {
		return fmt.Errorf("%s of commit %.12s: %w", secretRules, commit, err)
	}
	a.secrets = finder.Knowing(a.tokens()...)
	return nil
}

// tokenNames are the variables whose values this program is given to use, and
// that never appear in what it writes.
var tokenNames = []string{
	"COUNTERSIGN_TOKEN", ledgerTokenName, "COUNTERSIGN_SIGN_KEY", "COUNTERSIGN_SIGN_PASSPHRASE", "COUNTERSIGN_AGE_IDENTITY", mcpTokenName,
	"GITHUB_TOKEN", "GH_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN", "INPUT_TOKEN", "INPUT_PUSH-TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
}

func (a *App) tokens() []string {
	out := slices.Clone(a.ghTokens)
	for _, name := range tokenNames {
		if v := a.Getenv(name); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// holdsToken reports whether this is a job of a workflow that has rights: it runs
// nobody's commands, as the jobs are split by trust. actions/checkout leaves a
// token in Git's configuration unless it is told not to.
func (a *App) holdsToken(settings gitstore.Settings) bool {
	if !inWorkflow(a.Getenv) {
		return false
	}
	return len(a.tokens()) > 0 || settings.ExtraHeader(settings.RemoteURL(a.flags.remote)) != ""
}
