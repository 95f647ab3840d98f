package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Validation is what Validate found. Completed says that it closed the
// transaction.
type Validation struct {
	Report    canon.Report
	ID        string
	Status    ledger.Status
	Ledger    writing.Snapshot // as it left it
	Completed bool
}

// Validate proves a transaction: the record by itself (I1–I12, L1–L7, L9–L11, L20),
// its ApplyResult, and, where it was just applied, the files on disk against
// the approved after-hashes. With no finding an applied transaction is
// completed and closed. What is found of the record itself is not recorded; that the
// files are not as approved, or a check fails, is, once, and the transaction stays applied.
func (r *Runner) Validate(ctx context.Context, id string) (Validation, error) {
	known := r.Known() // a command runs once, however often the ledger moves
	v, after, err := Update(ctx, r, Paths(id), func(snap writing.Snapshot) (Try[Validation], error) {
		v := Validation{ID: id}
		log, found, err := observation.CheckRecord(snap.Tree, id)
		if err != nil {
			return Nothing(v, err)
		}
		if v.Report = canon.NewReport(found); !v.Report.OK {
			return Nothing(v, nil)
		}
		v.Status = log.Transaction().Status
		if v.Status != ledger.Applied {
			return Nothing(v, nil)
		}
		set := sync.OnceValues(func() (patch.Patchset, error) {
			return r.Source().On(ctx, snap.Tree, log.Transaction(), ledger.Last[*ledger.ApplyStart](log).BaseCommit)
		})
		read, err := r.applied(ctx, snap, log, set)
		if err != nil {
			return Nothing(v, err)
		}
		if found, err = readBack(log, set, read); err != nil {
			return Nothing(v, err)
		}
		done, err := r.With(known).checkApplied(ctx, snap, log, read)
		if err != nil {
			return Nothing(v, err)
		}
		known.ran = done.Ran
		found = append(found, checks.Failures(done.Results)...)
		if v.Report = canon.NewReport(found); !v.Report.OK {
			return r.unproven(v, log, done)
		}
		v.Completed, v.Status = true, ledger.Completed
		return Recording(v, r.complete(log, done), writing.Title{Stage: "validate", Outcome: string(ledger.Completed), Subject: "completed, the record and the files are as approved"})
	})
	v.ID, v.Ledger = id, after
	return v, err
}

// applied returns a reader of the files where the last apply put them: the
// working tree, or the commit that was made.
func (r *Runner) applied(ctx context.Context, snap writing.Snapshot, log *ledger.Log, set func() (patch.Patchset, error)) (checks.ReadFile, error) {
	done, tx := ledger.Last[*ledger.ApplyComplete](log), log.Transaction()
	if done.Target == effect.Worktree {
		if r.Worktree == nil {
			return nil, ErrNoWorktree
		}
		changes, err := set()
		if err != nil && !errors.As(err, new(*RedactedError)) {
			return nil, err
		}
		read, err := r.Files().Stored(ctx, ledger.Last[*ledger.ApplyStart](log).BaseCommit, changes.Files())
		return checks.ReadFile(read), err
	}
	tree, err := r.Repo.Tree(ctx, done.CommitAfter)
	if err != nil && done.CommitAfter != "" {
		if err := r.bring(ctx, snap, tx, *done); err != nil {
			return nil, err
		}
		tree, err = r.Repo.Tree(ctx, done.CommitAfter)
	}
	if err != nil {
		return nil, err
	}
	return func(path string, _ *patch.File) (*patch.File, error) { return patch.Lookup(tree, path) }, nil
}

// bring brings a commit that was made in another clone: with the pull request, or
// by making it again, since the same approved change on the same parent is the
// same commit.
func (r *Runner) bring(ctx context.Context, snap writing.Snapshot, tx ledger.Transaction, done ledger.ApplyComplete) error {
	switch number := tx.PullRequest(); {
	case number > 0 && r.Code == nil:
		return nil
	case number > 0:
		_, err := r.Code.Head(ctx, number)
		return err
	}
	made, err := r.buildAgain(ctx, snap, tx, done.CommitBefore)
	if err != nil || made != done.CommitAfter {
		text := fmt.Sprintf("commit %.12s, which %s was applied as, is not in this clone", done.CommitAfter, tx.TransactionID)
		if err != nil {
			text += ": " + err.Error()
		}
		return &fault.Error{Kind: fault.Away, Message: text, Try: "run it in the clone where it was applied", Cause: err}
	}
	return nil
}

func (r *Runner) buildAgain(ctx context.Context, snap writing.Snapshot, tx ledger.Transaction, base string) (string, error) {
	g, err := r.judge(ctx, snap, tx.TransactionID, nil)
	if err != nil {
		return "", err
	}
	set, err := r.Source().On(ctx, snap.Tree, tx, base)
	if err != nil {
		return "", err
	}
	change := effect.Change{Log: g.log, Verdict: g.Verdict, Set: set, Base: base}
	return r.builder().Build(ctx, change, "", g.rules.Policy.Apply.Sign)
}

// readBack compares the files with what was approved.
func readBack(log *ledger.Log, set func() (patch.Patchset, error), read checks.ReadFile) ([]canon.Violation, error) {
	approved, err := set()
	if errors.As(err, new(*RedactedError)) {
		return ReadBackHashes(*log.Transaction().Pointers.Proposal, read)
	}
	if err != nil {
		return nil, err
	}
	return ReadBack(approved, read)
}

// A validationDoc is the artifact countersign/validation/1.
type validationDoc struct {
	Schema string              `json:"schema"`
	Tool   string              `json:"tool"`
	Checks []checks.TestResult `json:"checks"`
}

// complete ends a transaction that is proved.
func (r *Runner) complete(log *ledger.Log, done checks.Done) *writing.Stage {
	tx := log.Transaction()
	s := r.Stage(log)
	start := writing.NextValidate(log)
	s.Event(start)
	done.Record(s, r.Secrets, "after")
	if done.Results != nil {
		s.Artifact("validation", validationDoc{"countersign/validation/1", r.Tool, done.Results})
	}
	s.Event(&ledger.ValidateComplete{TransactionID: tx.TransactionID, ValidateID: start.ValidateID, Success: true})
	s.Status(ledger.Completed, "the record and the files on disk are as approved")
	s.Close()
	return s
}

// unproven records what was found of an applied change, unless the last validate found the same.
func (r *Runner) unproven(v Validation, log *ledger.Log, done checks.Done) (Try[Validation], error) {
	found := v.Report.Violations
	doc := ledger.Findings{Schema: ledger.FindingsSchema, Violations: found[:min(len(found), ledger.MaxFindings)]}
	doc.More = len(found) - len(doc.Violations)
	last := ledger.Last[*ledger.ValidateComplete](log)
	s, start := r.Stage(log), writing.NextValidate(log)
	file := s.Artifact(ledger.KindFindings, doc)
	if last != nil && last.Findings == file {
		return Nothing(v, nil)
	}
	s.Event(start)
	done.Record(s, r.Secrets, "after")
	s.Event(&ledger.ValidateComplete{TransactionID: v.ID, ValidateID: start.ValidateID, Findings: file})
	return Recording(v, s, writing.Title{Stage: "validate", Outcome: string(v.Status), Subject: "not as approved: " + ledger.Plural(len(found), "finding", "findings")})
}
