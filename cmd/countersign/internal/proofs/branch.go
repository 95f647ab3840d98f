package proofs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/witness"
	"github.com/countersign-dev/countersign/report"
)

// audited is what audit --json prints.
type audited struct {
	audit.Result
	Witnessed *witness.Witnessed `json:"witnessed,omitempty"` // if it was asked for
	Branch    *explain.Branch    `json:"branch,omitempty"`
	Online    *online.Result     `json:"online,omitempty"`
}

// text is it as a person reads it. first says that nothing was known of
// the ledger before, and signatures that they were verified.
func (d audited) text(ref string, first, signatures bool, s report.Style) string {
	text := report.Audit(report.Audited{Result: d.Result, Witnessed: d.Witnessed, Ref: ref, First: first, Signatures: signatures}, s)
	if d.Branch != nil {
		text += report.Branch(*d.Branch, s)
	}
	if d.Online != nil {
		text += report.Online(*d.Online, s)
	}
	return text
}

// ErrBranch is the cause of the error of a branch with commits that nothing accounts for.
var ErrBranch = errors.New("nothing accounts for commits of the branch")

// explainBranch says of each commit of a branch what accounts for it, by the ledger's tip:
// all that was judged, and what of it is listed. The audit read the ledger through the clock.
func explainBranch(ctx context.Context, s *session.Session, tip string, clock *explain.Clock, f AuditFlags) (r explain.Result, list *explain.Branch, err error) {
	snap, err := s.Local.At(ctx, tip)
	if err != nil {
		return r, nil, err
	}
	since, err := readSince(ctx, s.Console, s.Repo, f.Since)
	if err != nil {
		return r, nil, err
	}
	j, err := session.OpenJudge(ctx, s, snap.Tree, clock, f.atLeast)
	if err != nil {
		return r, nil, err
	}
	branch, err := s.Repo.BranchTip(ctx, f.Branch)
	if err != nil {
		return r, nil, err
	}
	r, all, err := j.Branch(ctx, branch, since.commit)
	if err != nil {
		return r, nil, err
	}
	listed, shown := r.After(0), j.Index.First
	switch {
	case since.commit != "":
		shown = since.commit
		listed, err = session.CommitsSince(ctx, s.Repo, branch, since.commit)
	case !since.at.IsZero():
		n := j.Index.Before(r.Chain, since.at)
		if listed = r.After(n); n > 0 {
			shown = r.Chain[n-1].ID
		}
	}
	if err != nil {
		return r, nil, err
	}
	b := r.List(f.Branch, shown, listed)
	source, err := j.Source(ctx, r, all)
	if err == nil {
		b.Exceptions, err = source.Exceptions()
		b.Exceptions = slices.DeleteFunc(b.Exceptions, func(e explain.Exception) bool { return !slices.ContainsFunc(e.Commits, listed) })
	}
	r.Forget()
	return r, &b, err
}

// since is what --since says: a commit, or a time; neither where it was not given.
type since struct {
	commit string
	at     time.Time
}

// readSince reads a commit, a day in UTC, a time of RFC 3339, or an age in days or weeks.
func readSince(ctx context.Context, c *console.Console, repo *gitstore.Repo, text string) (since, error) {
	if text == "" {
		return since{}, nil
	}
	if at, ok := c.ReadWhen(text); ok {
		return since{at: at}, nil
	}
	commit, err := session.CodeCommit(ctx, repo, text)
	return since{commit: commit}, err
}
