package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/secret"
)

// prepared is an approved change on the commit that it is about to be applied
// to.
type prepared struct {
	set     patch.Patchset
	base    string
	source  result.Source
	commit  string // the commit that was built, "" where none was needed
	checked checked
	known   Known // with what the patch and its checks have taught
}

// approvedPatch reads the approved bytes from the ledger, checks that they are
// those bytes, and puts them on the present base.
func (r *Runner) approvedPatch(ctx context.Context, to effect, g Gated, snap ledger.Snapshot) (prepared, error) {
	tx := g.Transaction()
	diff, err := r.rawPatch(ctx, snap.Tree, tx)
	if err != nil {
		return prepared{}, err
	}
	parsed, err := patch.Parse(diff)
	if err != nil {
		return prepared{}, &ledger.CorruptError{ID: tx.TransactionID, Err: err}
	}
	p := prepared{source: tx.Pointers.Proposal.Source(), known: r.known()}
	if open, resuming := g.log.OpenApply(); resuming {
		p.base = open.BaseCommit // finish on what it began on
	} else if p.base, err = to.base(ctx, tx); err != nil {
		return prepared{}, err
	}
	tree, err := r.Repo.Tree(ctx, p.base)
	if err != nil {
		return prepared{}, err
	}
	if err := unchanged(tree, tx); err != nil {
		return prepared{}, r.elsewhere(ctx, p.base, tx, err)
	}
	p.set, err = parsed.Resolve(tree)
	var unfit *patch.Error
	switch {
	case errors.As(err, &unfit): // the content is as it was: a mode, or a name beside it, changed
		return prepared{}, r.elsewhere(ctx, p.base, tx, &SupersededError{tx.TransactionID, []string{unfit.Path}})
	case err != nil:
		return prepared{}, fmt.Errorf("putting the approved patch on %s: %w", p.base, err)
	case p.set.ID() != tx.PatchID():
		return prepared{}, r.elsewhere(ctx, p.base, tx, &SupersededError{tx.TransactionID, tx.Pointers.Proposal.TargetFiles})
	}
	if p.known.Secrets, err = r.asReviewed(tx, p.set); err != nil {
		return p, err
	}
	return p, recompute(tree, *tx.Pointers.Proposal)
}

// asReviewed compares a patch with what its record tells about it: people were
// shown the record. Whoever can write the ledger could have named other files,
// or hidden some of the patch as if it were a secret. The Finder that it returns
// knows the patch's secrets.
func (r *Runner) asReviewed(tx ledger.Transaction, set patch.Patchset) (*secret.Finder, error) {
	p := tx.Pointers.Proposal
	before, after := set.Hashes()
	var files []string
	for _, f := range set.Files() {
		files = append(files, f.Path)
	}
	if !slices.Equal(files, p.TargetFiles) || !sameHashes(before, p.BaseSHA256) || !sameHashes(after, p.AfterSHA256) {
		return r.Secrets, &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New("the files that it names are not those of its patch")}
	}
	finder, found := r.Secrets.Learn(set)
	if len(found) > 0 && !p.ContainsSecrets {
		return finder, &SecretError{found, "the review did not find it, so nobody was asked about it"}
	}
	if p.PatchRedactedSHA256 != "" && canon.Sum(finder.Diff(set.Bytes())) != p.PatchRedactedSHA256 {
		return finder, &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New("what is stored of its patch is not that patch without secrets, by the rules of today")}
	}
	return finder, nil
}

func sameHashes(a, b map[string]*string) bool {
	return maps.EqualFunc(a, b, func(x, y *string) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) })
}

// elsewhere tells a base that has moved on, which supersedes a transaction for
// good, from a HEAD on another branch, where nothing is to be recorded.
func (r *Runner) elsewhere(ctx context.Context, base string, tx ledger.Transaction, err error) error {
	var superseded *SupersededError
	if !errors.As(err, &superseded) || tx.Pointers.Proposal.PullRequest > 0 {
		return err // a pull request's branch may have been rewritten
	}
	reviewed := tx.Pointers.Proposal.BaseCommit
	descends, ancestorErr := r.Repo.Descends(ctx, base, reviewed)
	if ancestorErr != nil {
		return ancestorErr
	}
	if !descends {
		return &ElsewhereError{tx.TransactionID, reviewed}
	}
	return err
}

// recompute runs a recipe again: what it makes of the base must be what was
// approved (seed: checkpoint 10, section 1).
func recompute(base fs.FS, p ledger.Proposal) error {
	if p.Kind != input.KindRecipe || strings.Contains(p.Needle, "<REDACTED:") {
		return nil // a needle that is a secret is not in the ledger; hashes tie the patch to the base as well
	}
	in, err := input.Recipe(p.Needle, p.TargetFiles, "")
	if err != nil {
		return err
	}
	set, err := in.Resolve(base)
	if err == nil && set.ID() != p.PatchID {
		err = &patch.Error{Message: "the recipe gives another patch now: " + set.ID()}
	}
	return err
}

// unchanged compares the base with what the review recorded.
func unchanged(base fs.FS, tx ledger.Transaction) error {
	e := &SupersededError{ID: tx.TransactionID}
	for _, file := range tx.Pointers.Proposal.TargetFiles {
		f, err := patch.Lookup(base, file)
		if _, unfit := err.(*patch.Error); err != nil && !unfit {
			return err
		}
		want := tx.Pointers.Proposal.BaseSHA256[file]
		if have := f.Sum(); err != nil || (have == nil) != (want == nil) || have != nil && *have != *want {
			e.Files = append(e.Files, file)
		}
	}
	if len(e.Files) > 0 {
		return e
	}
	return nil
}

// supersede records that the base of an approved change is gone. Where the
// transaction has gone on since that was found, it may be the change itself that
// was made: ErrMoved says to look again.
func (r *Runner) supersede(ctx context.Context, g Gated, why *SupersededError) error {
	_, _, err := update(ctx, r, transaction(why.ID), func(snap ledger.Snapshot) (try[none], error) {
		log, err := ledger.Read(snap.Tree, why.ID)
		if err != nil {
			return nothing(none{}, err)
		}
		if len(log.Events()) != len(g.log.Events()) {
			return nothing(none{}, ledger.ErrMoved)
		}
		s := r.stage(log)
		s.Status(ledger.Superseded, r.oneLine("the base changed: "+list(why.Files), 300))
		s.Close()
		return recording(none{}, s, ledger.Title{Stage: "apply", Outcome: string(ledger.Superseded), Subject: "superseded, the base changed: " + list(why.Files)})
	})
	if err != nil {
		return err
	}
	return why
}
