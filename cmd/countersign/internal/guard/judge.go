package guard

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
)

// A refusal is why a ref may not become what a push makes of it. Commits are those of a branch that nothing accounts for.
type refusal struct {
	update
	Why     string                `json:"why"`
	Hint    string                `json:"hint"`
	Commits []explain.Unexplained `json:"commits"`
}

// A push is a repository with what a push would make of it.
type push struct {
	names
	updates []update
	signers *sshsig.Allowed // of the ledger's commits; nil where nobody knows who writes it
	policy  policy.Policy
	was     map[string]string // the commits of the refs of names and updates
	view    *session.Session  // as it would be, but for the branches

	broken    []string // who broke the glass, for which branch, and why
	elsewhere bool     // whether the ledger is in another repository

	judge *session.BranchJudge // nil until a commit has to be accounted for
}

// open makes the view of a push in an empty directory; beside is where git keeps the objects of the push, "" for with the others.
func open(ctx context.Context, real *session.Session, dir, head string, updates []update, beside string, signers *sshsig.Allowed) (p *push, err error) {
	c := real.Console
	p = &push{updates: updates, signers: signers, names: names{head: head, ledger: c.Flags.LedgerRef}}
	if p.head == "" {
		if p.head, err = real.Repo.HeadRef(); err != nil {
			return nil, err
		}
	}
	wanted := append(p.beside(), p.head, p.ledger)
	for _, u := range updates {
		wanted = append(wanted, u.Ref)
	}
	if p.was, err = real.Repo.RefsAmong(wanted...); err != nil {
		return nil, err
	}
	if head != "" { // as if it were there
		p.was[head] = updates[0].Old
	}
	var objects []string
	if beside != "" {
		if err := within(beside, filepath.Join(real.Repo.Dir(), "objects")); err != nil {
			return nil, err
		}
		objects = append(objects, beside)
	}
	if elsewhere := real.Repo.Config.Habit(ledgerHabit); elsewhere != "" {
		of, err := p.readLedger(elsewhere)
		if err != nil {
			return nil, fmt.Errorf("the ledger in %s: %w", elsewhere, err)
		}
		objects = append(objects, of)
	}
	refs := map[string]string{}
	for name, commit := range map[string]string{p.head: p.was[p.head], p.ledger: p.now(p.ledger)} {
		if commit != "" {
			refs[name] = commit
		}
	}
	if err := real.Repo.View(dir, gitstore.View{Beside: objects, Head: p.head, Refs: refs}); err != nil {
		return nil, err
	}
	own := *c
	own.Flags.Dir, own.Flags.PolicyRef, own.Flags.KnownTip, own.AtEnd = dir, "", "", nil
	own.Getenv = func(name string) string {
		if name == "PATH" || name == "HOME" { // what else the environment says is the pusher's, for all that is known
			return c.Getenv(name)
		}
		return ""
	}
	p.view = &session.Session{Console: &own}
	if p.view.Repo, err = gitstore.Open(dir); err != nil {
		return nil, err
	}
	c.AtEnd = append(c.AtEnd, p.view.Repo.Close)
	if _, err = p.view.OpenLedger(); err != nil {
		return nil, err
	}
	return p, p.readPolicy(ctx)
}

// readLedger takes the ledger of another repository, and returns where that has its objects.
func (p *push) readLedger(dir string) (objects string, err error) {
	of, err := gitstore.Open(dir)
	if err != nil {
		return "", err
	}
	tip, err := of.Ref(context.Background(), p.ledger)
	if err == nil && tip == "" {
		err = gitstore.ErrNoLedger
	}
	p.was[p.ledger], p.elsewhere = tip, true
	return filepath.Join(of.Dir(), "objects"), errors.Join(err, of.Close())
}

// within refuses a directory that is not directly in another one.
func within(dir, parent string) error {
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if parent, err = filepath.EvalSymlinks(parent); err != nil {
		return err
	}
	if filepath.Dir(at) != parent {
		return fmt.Errorf("the objects of the push are said to be in %+q, which is not in %+q", dir, parent)
	}
	return nil
}

// now is what the push makes of a ref.
func (p *push) now(ref string) string {
	for _, u := range p.updates {
		if u.Ref == ref && (ref != p.ledger || !p.elsewhere) {
			return u.New
		}
	}
	return p.was[ref]
}

// readPolicy finds out which branches are guarded, by the Policy from before the push: the default branch's, and each branch's own.
func (p *push) readPolicy(ctx context.Context) (err error) {
	p.branches = []string{p.head}
	if p.policy, err = policyOf(ctx, p.view.Repo, p.head, p.was[p.head]); err != nil || p.was[p.head] == "" {
		return err
	}
	for _, base := range p.policy.Gate.Bases {
		p.branches = append(p.branches, "refs/heads/"+base)
	}
	for _, u := range p.updates {
		base, is := strings.CutPrefix(u.Ref, "refs/heads/")
		if !is || p.was[u.Ref] == "" || slices.Contains(p.branches, u.Ref) {
			continue
		}
		if own, err := policyOf(ctx, p.view.Repo, u.Ref, p.was[u.Ref]); err != nil || slices.Contains(own.Gate.Bases, base) {
			p.branches = append(p.branches, u.Ref)
		}
	}
	return nil
}

// policyOf reads the Policy of a ref at a commit, "" for one that is not there yet.
func policyOf(ctx context.Context, repo *gitstore.Repo, ref, commit string) (own policy.Policy, err error) {
	if commit == "" {
		return policy.Default(), nil
	}
	tree, err := repo.Tree(ctx, commit)
	if err == nil {
		own, _, err = policy.Read(tree)
	}
	if err != nil {
		err = fmt.Errorf("the Policy of %s: %w", ref, err)
	}
	return own, err
}

// hold returns what of the push is refused.
func (p *push) hold(ctx context.Context) (refused []refusal, err error) {
	for _, u := range p.updates {
		r, err := p.holdOne(ctx, u)
		if err != nil {
			r = &refusal{Why: "it cannot be judged: " + err.Error()}
		}
		if r != nil {
			r.update = u
			if r.Commits == nil {
				r.Commits = []explain.Unexplained{}
			}
			refused = append(refused, *r)
		}
		if err := ctx.Err(); err != nil {
			return refused, err
		}
	}
	return refused, nil
}

func (p *push) holdOne(ctx context.Context, u update) (*refusal, error) {
	alike := p.alike(u.Ref)
	switch {
	case !strings.HasPrefix(u.Ref, "refs/"):
		return &refusal{Why: "is not below refs/"}, nil
	case u.Old != p.was[u.Ref]:
		return &refusal{Why: "has moved meanwhile", Hint: "git fetch"}, nil
	case alike != "":
		return &refusal{Why: "can be taken for " + alike + ", or be in its way"}, nil
	case strings.HasPrefix(u.Ref, "refs/replace/"):
		return &refusal{Why: "would have git show other objects than there are"}, nil
	case u.Ref == p.ledger && p.elsewhere:
		return &refusal{Why: "is in another repository, which this one's guard asks"}, nil
	case u.Ref == p.ledger:
		return p.holdLedger(ctx, u)
	case slices.Contains(p.beside(), u.Ref):
		return p.grows(ctx, u)
	case p.was[p.head] == "" && u.Ref == p.head:
		_, err := policyOf(ctx, p.view.Repo, u.Ref, u.New) // what the guard begins with, which it has to be able to read
		return nil, err
	case p.was[p.head] == "" && p.now(p.head) == "":
		return &refusal{Why: "comes before the default branch, " + p.head + ", which is not there yet", Hint: "push the default branch first; if it has another name, on the server: git symbolic-ref HEAD refs/heads/NAME"}, nil
	case slices.Contains(p.branches, u.Ref):
		return p.holdBranch(ctx, u)
	case strings.HasPrefix(u.Ref, "refs/tags/"):
		return p.holdTag(ctx, u)
	}
	return nil, nil
}

// grows refuses to delete a ref, and to move it to a commit that does not have those that it has.
func (p *push) grows(ctx context.Context, u update) (*refusal, error) {
	if u.New == "" {
		return &refusal{Why: "may not be deleted"}, nil
	}
	if u.Old == "" {
		return nil, nil
	}
	has, err := p.view.Repo.Descends(ctx, u.New, u.Old)
	if err != nil || has {
		return nil, err
	}
	return &refusal{Why: "may only grow: it would lose commits", Hint: "put what is new on top of what is there: git pull --rebase"}, nil
}

// holdLedger refuses what is new in the ledger unless it verifies.
func (p *push) holdLedger(ctx context.Context, u update) (*refusal, error) {
	if r, err := p.grows(ctx, u); r != nil || err != nil {
		return r, err
	}
	h, err := p.view.Local.History(ctx, gitstore.HistoryOptions{From: u.Old, Signers: p.signers})
	if err != nil {
		return nil, err
	}
	found, err := session.AuditRules(ctx, p.view, h, verdict.Options{Signatures: p.signers != nil})
	switch newer := found.Undecidable(); {
	case err != nil:
		return nil, err
	case newer != nil:
		return nil, newer
	case !found.OK:
		why := "what is new in it does not verify"
		for _, one := range found.Findings[:min(3, len(found.Findings))] {
			why += fmt.Sprintf("; %s %s: %s", one.RuleID, one.Path, one.Message)
		}
		return &refusal{Why: why, Hint: "countersign sync"}, nil
	case !found.Pages.OK:
		return &refusal{Why: "a page in it says something else than the record", Hint: "countersign audit"}, nil
	}
	return nil, nil
}

// holdTag refuses to move or delete a tag, and one of a commit that no guarded branch has.
func (p *push) holdTag(ctx context.Context, u update) (*refusal, error) {
	if p.policy.Gate.AllowTags {
		return nil, nil
	}
	if u.Old != "" {
		return &refusal{Why: "is there, and a tag may neither be moved nor deleted"}, nil
	}
	commit, err := p.view.Repo.Peeled(u.New)
	if err != nil {
		return nil, err
	}
	for _, branch := range p.branches {
		if tip := p.now(branch); commit != "" && tip != "" {
			if has, err := p.view.Repo.Descends(ctx, tip, commit); err != nil || has {
				return nil, err
			}
		}
	}
	return &refusal{Why: "is a tag of what no guarded branch has", Hint: "have it approved on " + short(p.head) + ", and tag it there"}, nil
}

func short(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// holdBranch refuses what a guarded branch gets that nothing accounts for.
func (p *push) holdBranch(ctx context.Context, u update) (*refusal, error) {
	switch {
	case u.New == "" && p.policy.Gate.AllowDelete && u.Ref != p.head:
		return nil, nil
	case u.New == "":
		return &refusal{Why: "is guarded, and may not be deleted"}, nil
	case u.Old == "":
		has, err := p.view.Repo.Descends(ctx, p.now(p.head), u.New)
		if err != nil || has {
			return nil, err
		}
		return &refusal{Why: "is guarded, and may only begin at a commit of " + short(p.head), Hint: fmt.Sprintf("git push origin origin/%s:%s", short(p.head), u.Ref)}, nil
	}
	all, line, grows, err := p.view.Repo.Newer(ctx, u.Old, u.New, maxCommits+1)
	n := len(all)
	if err == nil && !grows && n <= maxCommits {
		grows, err = p.view.Repo.Descends(ctx, u.New, u.Old)
	}
	switch {
	case err != nil:
		return nil, err
	case n > maxCommits:
		return &refusal{Why: fmt.Sprintf("would get more than %d commits at once", maxCommits), Hint: "push them in several steps"}, nil
	case !grows && !p.policy.Gate.AllowForce:
		return &refusal{Why: "is guarded, and would lose commits", Hint: "git pull --rebase"}, nil
	case n == 0:
		return nil, nil
	}
	r, err := p.account(ctx, u, all, line)
	if r == nil || err != nil {
		return r, err
	}
	who, why, err := p.breaksGlass(ctx, u)
	switch {
	case err != nil:
		r.Why += "; and nobody may break the glass for it: " + err.Error()
	case who != "":
		p.broken = append(p.broken, fmt.Sprintf("%s: %s broke the glass: %s", u.Ref, who, why))
		return nil, nil
	}
	return r, nil
}

// glass is the trailer of a commit that gets in unapproved, in an emergency: the branch, and why.
const glass = "Countersign-Break-Glass: "

// breaksGlass says who signed the last commit of a push as one that has to get into this branch, and why; "" for nobody. It takes a key that the Policy
// from before the push lists, of somebody whom it lets break the glass.
func (p *push) breaksGlass(ctx context.Context, u update) (who, why string, err error) {
	raw, err := p.view.Repo.RawCommit(ctx, u.New)
	if err != nil {
		return "", "", err
	}
	_, message, _ := strings.Cut(string(raw), "\n\n")
	for line := range strings.Lines(message) {
		if said, is := strings.CutPrefix(line, glass+short(u.Ref)+" "); is {
			why = strings.TrimSpace(said)
		}
	}
	if why == "" {
		return "", "", nil
	}
	tree, err := p.view.Repo.Tree(ctx, p.was[p.head])
	if err != nil {
		return "", "", err
	}
	text, err := p.policy.ReadKeys(tree)
	if err != nil {
		return "", "", err
	}
	keys, err := sshsig.ParseAllowedSigners(text)
	if err != nil {
		return "", "", err
	}
	payload, signature, err := signing.Split(raw)
	if err == nil {
		who, _, err = keys.Verify(sshsig.ForGit, payload, signature, p.view.Now())
	}
	if err == nil && !p.policy.BreaksGlass(who, who) {
		err = fmt.Errorf("%s is not listed under approvals.break_glass", who)
	}
	return who, why, err
}

// maxCommits is how many commits a push may bring to a branch.
const maxCommits = 10_000

// account refuses commits that nothing accounts for. Of many, the first are judged first: with those
// that may be in a row with them, what comes later changes nothing for them.
func (p *push) account(ctx context.Context, u update, commits, line []string) (*refusal, error) {
	var tree fs.FS = embed.FS{} // of no ledger
	if tip := p.now(p.ledger); tip != "" {
		var err error
		if tree, err = p.view.Repo.Tree(ctx, tip); err != nil {
			return nil, err
		}
	}
	if u.Ref == p.head {
		if quick, err := session.Quick(ctx, p.view, tree, p.atLeast(), u.Old, commits); err == nil && quick {
			return nil, nil
		}
	}
	j, err := p.opened(ctx, tree, u.Ref)
	if err != nil {
		return nil, err
	}
	if len(line) > 2*explain.MaxRow {
		first, err := j.Added(ctx, u.Ref, u.Old, line[2*explain.MaxRow-1])
		if err != nil {
			return nil, err
		}
		early := slices.DeleteFunc(first.Unexplained, func(one explain.Unexplained) bool { return !slices.Contains(line[:explain.MaxRow], one.Commit) })
		if len(early) > 0 {
			return unaccounted(u, early, len(commits)), nil
		}
	}
	all, err := j.Added(ctx, u.Ref, u.Old, u.New)
	switch {
	case err != nil:
		return nil, err
	case all.Commits != len(commits):
		return nil, fmt.Errorf("%d of %d commits were judged", all.Commits, len(commits))
	case len(all.Unexplained) == 0:
		return nil, nil
	}
	return unaccounted(u, all.Unexplained, len(commits)), nil
}

// atLeast is how strong decisions have to be: signed, where whoever may push may have written the record.
func (p *push) atLeast() string {
	if p.signers != nil {
		return ""
	}
	return string(explain.Signed)
}

func unaccounted(u update, commits []explain.Unexplained, of int) *refusal {
	return &refusal{
		Why: fmt.Sprintf("nothing accounts for %d of its %d new commits", len(commits), of), Commits: commits,
		Hint: fmt.Sprintf("git switch --detach %.12s && git diff HEAD %.12s | countersign review - --to branch --push  # and have it approved", u.Old, u.New),
	}
}

// opened is the judge of branches, by all of the ledger as it would be.
func (p *push) opened(ctx context.Context, tree fs.FS, ref string) (_ session.BranchJudge, err error) {
	if p.judge == nil {
		if p.view.SetGCPercent != nil { // as in an audit
			p.view.SetGCPercent(30)
		}
		clock := explain.NewClock(nil)
		if p.now(p.ledger) != "" {
			if clock, err = session.WholeClock(ctx, p.view.Local); err != nil {
				return session.BranchJudge{}, err
			}
		}
		j, err := session.JudgeBy(p.was[p.head], p.view, tree, clock, p.atLeast())
		if err != nil {
			return j, err
		}
		p.judge = &j
	}
	j := *p.judge
	j.Coming = ref
	return j, nil
}
