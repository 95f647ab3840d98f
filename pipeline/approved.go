package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// ApplyOptions say where an approved change goes.
type ApplyOptions struct {
	// To is "" for what the Policy says, which is policy.ToWorktree where it says
	// nothing. policy.ToBranch is a branch that is not checked out, policy.ToRef
	// refs/agent/applied/<transaction>.
	To policy.Target
	// Branch is the branch's short name for policy.ToBranch; "" makes one of the
	// transaction's own.
	Branch string
	// Checkout, where there is one, is where files that were written are committed.
	Checkout code.Checkout
	// DryRun writes nothing, neither files nor ledger, and predicts the result.
	DryRun bool
	// Place waits, of many that are applied side by side, until none is at the
	// same place, nor another process; nil locks the target.
	Place func(ctx context.Context, target string) (leave func(), err error)
}

// prepared is an approved change on the commit that it is about to be applied
// to.
type prepared struct {
	effect.Change
	source  ledger.PatchSource
	checked checks.Done
	known   Known // with what the patch and its checks have taught
}

// target returns the way to the place that the options name; an apply that was
// cut off is finished where it was begun.
func (r *Runner) target(ctx context.Context, g Judgement, o ApplyOptions, from *forge.PullReader) (effect.Effect, error) {
	if g.Transaction().PullRequest() > 0 && o.To != policy.ToWorktree {
		return r.pullTarget(ctx, g, o, from)
	}
	if open, resuming := g.log.OpenApply(); resuming && open.Target != effect.Worktree {
		return r.ref(open.Target), nil
	} else if resuming {
		o.To = policy.ToWorktree
	}
	tx := g.Transaction().TransactionID
	if o.To == "" {
		o.To = g.rules.Policy.Apply.To
	}
	switch o.To {
	case "", policy.ToWorktree:
		if r.Worktree == nil {
			return nil, ErrNoWorktree
		}
		to := r.Files()
		to.Checkout, to.Builder = o.Checkout, r.builder()
		return to, nil
	case policy.ToBranch:
		if err := r.keepableBranch(o.Branch); err != nil {
			return nil, err
		}
		if o.Branch == "" {
			o.Branch = "countersign/" + tx[len(tx)-8:]
		}
		return r.ref("refs/heads/" + o.Branch), nil
	case policy.ToRef:
		return r.ref(appliedRef(tx)), nil
	case policy.ToPullRequest:
		return nil, fault.Refuse(tx+" is not applied here: by the Policy it becomes a pull request", "countersign propose "+tx+" --to pull-request")
	}
	return nil, fmt.Errorf("pipeline: no target is called %q", o.To)
}

// pullTarget is the way to the head branch of a pull request, or to another ref
// on its repository; an apply that was cut off is finished where it was begun.
func (r *Runner) pullTarget(ctx context.Context, g Judgement, o ApplyOptions, from *forge.PullReader) (effect.Effect, error) {
	tx := g.Transaction()
	if r.Forge == nil { // a job without a token takes what was fetched
		return r.ref(fmt.Sprintf("refs/countersign/pull/%d/head", tx.PullRequest())), nil
	}
	pull := g.Pull()
	if pull == nil && r.Code == nil {
		return nil, forge.NoForge(tx.TransactionID, tx.PullRequest())
	}
	if pull == nil { // this stage has not read it
		read, err := from.Pull(ctx, tx)
		if err != nil {
			return nil, err
		}
		pull = &read
	}
	side, ref := pull.Head, "refs/heads/"+pull.Head.Branch
	open, resuming := g.log.OpenApply()
	switch {
	case cmp.Or(o.To, g.rules.Policy.Apply.To) == policy.ToRef:
		side, ref = pull.Base, appliedRef(tx.TransactionID)
	case o.Branch != "" && o.Branch != pull.Head.Branch:
		side, ref = pull.Base, "refs/heads/"+o.Branch
	}
	if resuming && open.Target != ref {
		side, ref = pull.Base, open.Target
		if open.Target == "refs/heads/"+pull.Head.Branch {
			side = pull.Head
		}
	}
	if side.Repository == nil {
		return nil, effect.NoHead(fmt.Sprintf("the repository that the head of pull request %d was in is gone", pull.Number))
	}
	if err := r.keepableBranch(ref); err != nil {
		return nil, err
	}
	refs, err := r.Code.Refs(ctx, side)
	if err != nil {
		return nil, err
	}
	to := r.ref(ref)
	to.Refs = refs
	if server, err := url.Parse(pull.Base.CloneURL); err == nil {
		to.Host = server.Hostname()
	}
	if ref == "refs/heads/"+pull.Head.Branch && side.Repository.ID == pull.Head.Repository.ID {
		to.HeadOf = pull.Number
	}
	return to, nil
}

func (r *Runner) Files() effect.Files { return effect.Files{Tree: r.Worktree, Repo: r.Repo} }

func (r *Runner) ref(name string) *effect.Ref {
	return &effect.Ref{Name: name, Refs: r.Refs, Repo: r.Repo, Builder: r.builder()}
}

func (r *Runner) builder() effect.Builder { return effect.Builder{Refs: r.Refs, Signer: r.Signer} }

// appliedRef is where a change goes that goes to no branch.
func appliedRef(tx string) string { return "refs/agent/applied/" + tx }

// keepableBranch refuses a branch whose name is what looks like a secret.
func (r *Runner) keepableBranch(name string) error {
	return r.Secrets.Refuse(name, name, "a branch's name cannot be kept out of the ledger")
}

// approvedPatch reads the approved bytes from the ledger, checks that they are
// those bytes, and puts them on the present base.
func (r *Runner) approvedPatch(ctx context.Context, to effect.Effect, g Judgement, snap writing.Snapshot) (prepared, error) {
	tx := g.Transaction()
	diff, err := r.Source().Bytes(ctx, snap.Tree, tx)
	if err != nil {
		return prepared{}, err
	}
	parsed, err := patch.Parse(diff)
	if err != nil {
		return prepared{}, &ledger.CorruptError{ID: tx.TransactionID, Err: err}
	}
	p := prepared{Change: effect.Change{Log: g.log, Verdict: g.Verdict}, source: tx.Pointers.Proposal.Source(), known: r.Known()}
	open, resuming := g.log.OpenApply()
	if p.Base, err = to.Base(ctx, tx); resuming { // finish on what it began on, which asking for the tip has brought here
		p.Base, err = open.BaseCommit, nil
	} else if err != nil {
		return prepared{}, err
	}
	tree, err := r.Repo.Tree(ctx, p.Base)
	if err != nil {
		return prepared{}, err
	}
	set, changed, err := FitPatch(tree, parsed, tx)
	if err != nil {
		return prepared{}, fmt.Errorf("putting the approved patch on %s: %w", p.Base, err)
	}
	if len(changed) > 0 {
		return prepared{}, r.elsewhere(ctx, p.Base, tx, changed)
	}
	p.Set = set
	if p.known.Secrets, err = ComparePatch(tx, p.Set, r.Secrets); err != nil {
		return p, err
	}
	return p, code.MakeAgain(tree, *tx.Pointers.Proposal)
}

// elsewhere tells a base that has moved on, which supersedes a transaction for
// good, from a HEAD on another branch, where nothing is to be recorded.
func (r *Runner) elsewhere(ctx context.Context, base string, tx ledger.Transaction, changed []string) error {
	superseded := &SupersededError{tx.TransactionID, changed, tx.PullRequest()}
	if tx.PullRequest() > 0 {
		return superseded // a pull request's branch may have been rewritten
	}
	descends, err := r.Repo.Descends(ctx, base, tx.Pointers.Proposal.BaseCommit)
	if err != nil {
		return err
	}
	if !descends {
		reviewed := tx.Pointers.Proposal.BaseCommit
		return fault.Refuse(fmt.Sprintf("%s was reviewed on commit %.12s, which HEAD does not contain", tx.TransactionID, reviewed), "git checkout --detach "+reviewed)
	}
	return superseded
}
