package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/secret"
)

// rules returns where the Policy is read: at the tip of the ref that --policy-ref
// names, in a workflow of the default branch, else at HEAD; and at the tip of the
// branch that a pull request is to. The Policy of the same commits is read once.
func rules(s *Session, c *pullCode) func(context.Context, string) (pipeline.Rules, error) {
	var mu sync.Mutex
	known := map[[2]string]pipeline.Rules{}
	return func(ctx context.Context, branch string) (pipeline.Rules, error) {
		mu.Lock()
		defer mu.Unlock()
		commit, isHead, err := s.policyCommit(ctx)
		if err != nil {
			return pipeline.Rules{}, err
		}
		base := ""
		if branch != "" && !hasPolicy(s.Console, branch) {
			if base, err = c.base(ctx, branch); err != nil {
				return pipeline.Rules{}, err
			}
		}
		key := [2]string{commit, base}
		rules, ok := known[key]
		if !ok {
			if rules, err = pipeline.ReadRules(ctx, s.Repo, commit, base); err == nil {
				known[key] = rules
			}
		}
		if isHead {
			rules.Head = commit
		}
		return rules, err
	}
}

// hasPolicy reports whether a branch is the default one of a workflow's event,
// which has the Policy as it is.
func hasPolicy(c *console.Console, branch string) bool {
	ref, err := workflowPolicyRef(c.Getenv)
	return err == nil && c.Flags.PolicyRef == "" && ref == "refs/remotes/"+console.DefaultRemote+"/"+branch
}

// noPolicyAt is the error of a Policy that cannot be found: nothing else takes its place.
func noPolicyAt(ref string) error {
	e := &fault.Error{
		Kind: fault.Away, Message: fmt.Sprintf("the Policy is read from %s, and there is no such ref", ref), Try: "--policy-ref takes a full name, such as refs/heads/main",
	}
	if !isCodeRef(ref) {
		e.Message = fmt.Sprintf("the Policy is read from a branch, a tag or a remote's branch by its full name, which %s is not", escape.ShellQuote(ref))
	} else if branch, ok := strings.CutPrefix(ref, "refs/remotes/"+console.DefaultRemote+"/"); ok {
		e.Try = fmt.Sprintf("git fetch %s +refs/heads/%s:%s", console.DefaultRemote, escape.ShellQuote(branch), escape.ShellQuote(ref))
	}
	return e
}

// isCodeRef reports whether a name is a full one of a ref that may have a Policy. A ledger has none, and must not
// read as a repository without one; nor must a commit, which can be anybody's.
func isCodeRef(ref string) bool {
	return slices.ContainsFunc([]string{"refs/heads/", "refs/tags/", "refs/remotes/"}, func(root string) bool { return strings.HasPrefix(ref, root) })
}

// PolicyCommit is the commit that has the Policy.
func PolicyCommit(ctx context.Context, c *console.Console, repo *gitstore.Repo) (string, error) {
	commit, _, err := (&policyAt{c: c, repo: repo}).commit(ctx, repo.Head)
	return commit, err
}

// A policyAt tells which commit has the Policy. Each call asks anew, but in a workflow: its clone is
// of the job alone, whose steps come one after the other, so that nobody fetches while a command runs.
type policyAt struct {
	c    *console.Console
	repo *gitstore.Repo

	mu    sync.Mutex
	known string
}

// commit is that commit, and whether it is HEAD, which head tells.
func (p *policyAt) commit(ctx context.Context, head func(context.Context) (string, error)) (commit string, isHead bool, err error) {
	if ref := p.c.Flags.PolicyRef; ref != "" {
		commit, err = refCommit(ctx, p.repo, ref)
		return commit, false, err
	}
	ref, err := workflowPolicyRef(p.c.Getenv)
	if err != nil {
		return "", false, err
	}
	if ref == "" {
		commit, err = head(ctx)
		return commit, true, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == "" {
		p.known, err = refCommit(ctx, p.repo, ref)
	}
	return p.known, false, err
}

func (s *Session) policyCommit(ctx context.Context) (commit string, isHead bool, err error) {
	return s.policyFrom().commit(ctx, s.Repo.Head)
}

// Root is the commit that the history of the commit with the Policy began with.
func (s *Session) Root(ctx context.Context) (string, error) {
	commit, _, err := s.policyCommit(ctx)
	if err != nil {
		return "", err
	}
	return s.Repo.Root(ctx, commit)
}

func (s *Session) policyFrom() *policyAt {
	if s.policy == nil {
		return &policyAt{c: s.Console, repo: s.Repo}
	}
	return s.policy
}

func refCommit(ctx context.Context, repo *gitstore.Repo, ref string) (string, error) {
	if !isCodeRef(ref) {
		return "", noPolicyAt(ref)
	}
	return RefCommit(ctx, repo, ref)
}

// Policy is the tree that has the Policy, and the Policy.
func (s *Session) Policy(ctx context.Context) (fs.FS, policy.Policy, error) {
	commit, _, err := s.policyCommit(ctx)
	if err != nil {
		return nil, policy.Policy{}, err
	}
	tree, err := s.Repo.Tree(ctx, commit)
	if err != nil {
		return nil, policy.Policy{}, err
	}
	p, _, err := policy.Read(tree)
	return tree, p, err
}

// RefCommit is the commit that a ref with the Policy is on.
func RefCommit(ctx context.Context, repo *gitstore.Repo, ref string) (string, error) {
	commit, err := repo.Ref(ctx, ref)
	if err == nil && commit == "" || errors.As(err, new(*gitstore.RefError)) {
		err = noPolicyAt(ref)
	}
	return commit, err
}

// workflowPolicyRef is the ref of the default branch in the clone of a workflow,
// "" where there is no workflow.
func workflowPolicyRef(getenv func(string) string) (string, error) {
	if !console.InWorkflow(getenv) {
		return "", nil
	}
	e, err := ReadEvent(getenv)
	if err != nil {
		return "", err
	}
	branch, err := e.PolicyBranch()
	if err != nil {
		return "", err
	}
	return "refs/remotes/" + console.DefaultRemote + "/" + branch, nil
}

// secretRules is a repository's own configuration of the scanner.
const secretRules = ".gitleaks.toml"

// readSecretRules takes over the rules of the commit that has the Policy: what
// the scanner excuses is the owner's word as much. Where that commit cannot be
// found the default rules hold, and whatever needs a Policy fails by itself.
func (s *Session) readSecretRules() error {
	commit, _, err := s.policyFrom().commit(context.Background(), s.Repo.HeadOpened)
	if err != nil {
		return nil
	}
	tree, err := s.Repo.Tree(context.Background(), commit)
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
	s.Known.Secrets = finder.Knowing(s.Known.Tokens()...)
	return nil
}

// holdsToken reports whether this is a job of a workflow that has rights: it runs
// nobody's commands, as the jobs are split by trust. actions/checkout leaves a
// token in Git's configuration unless it is told not to.
func holdsToken(c *console.Console, settings gitstore.Settings) bool {
	if !console.InWorkflow(c.Getenv) {
		return false
	}
	return len(c.Known.Tokens()) > 0 || settings.ExtraHeader(settings.RemoteURL(c.Flags.Remote)) != ""
}
