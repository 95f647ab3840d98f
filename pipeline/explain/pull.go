package explain

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Pull is a merged pull request as the forge told it at the time ReadAt. Access is what those who
// approved it might do by then, by the id of the account; who is not there was not asked about.
type Pull struct {
	forge.PullRequest
	MergedAt   time.Time
	ReadAt     time.Time
	Statements []approval.Statement
	Access     map[string]approval.Access
}

// A PullDiff is what a pull request changed, by the commits that Git has: from where its head
// left the base to its head. Same has the commits of reviews that changed the same;
// Unread those that are not here.
type PullDiff struct {
	PatchID string
	Paths   []string // both of a rename
	Files   int
	Bytes   int64
	Secrets bool
	Same    map[string]bool
	Unread  map[string]bool
}

// PullUnknown is a pull request of which something cannot be read.
func PullUnknown(number int, title string, mergedAt time.Time, why error) Case {
	return Case{
		PullRequest: number, Summary: ledger.OneLine(title, 200), At: ledger.FormatTime(mergedAt), Then: Merged, Now: UnknownVerdict, AtBest: UnknownVerdict,
		Difference: DifferenceUnknown, Why: []string{ledger.OneLine(why.Error(), 300)},
	}
}

// SimulatePull says what a Policy would have made of a merged pull request without a
// transaction, had its own diff been the patch: whether the reviews and comments that
// were there when it was merged are enough in number, of whom that is known. What
// somebody was allowed to do at that time is not known, so that it is never approved: at best it is.
func SimulatePull(pull Pull, diff PullDiff, p policy.Policy) Case {
	change := policyChange{files: diff.Files, bytes: diff.Bytes, secrets: diff.Secrets}
	anything := policy.Policy{Limits: policy.Limits{Files: diff.Files + 1, Bytes: diff.Bytes + 1}} // that took it
	blocked, untold := change.refused(p, anything, anything)
	r, err := replayPull(pull, diff, p)
	if err != nil {
		return PullUnknown(pull.Number, pull.Title, pull.MergedAt, err)
	}
	c := Case{PullRequest: pull.Number, Summary: ledger.OneLine(pull.Title, 200), At: ledger.FormatTime(pull.MergedAt), Why: []string{}}
	c.settle(r, nil, p.Needs(diff.Paths, diff.Secrets), blocked, untold)
	return c
}

// replayPull is the verdict by what was said, where all that is not known is in favour,
// and where none of it is.
func replayPull(pull Pull, diff PullDiff, p policy.Policy) (Rejudged, error) {
	r := Rejudged{At: pull.MergedAt, Then: approval.Verdict{State: Merged}}
	if pull.Author.ID == "" {
		r.Untold = append(r.Untold, "whose pull request it is")
	}
	for _, favour := range []bool{false, true} {
		c, err := pullCase(pull, diff, p, favour, func(format string, args ...any) {
			if why := fmt.Sprintf(format, args...); !slices.Contains(r.Untold, why) {
				r.Untold = append(r.Untold, why)
			}
		})
		if err != nil {
			return r, err
		}
		v := c.Decide()
		if favour {
			r.Best = v
		} else {
			r.Least = v
		}
	}
	if r.State() != UnknownVerdict {
		r.Untold = nil
	}
	return r, nil
}

func pullCase(pull Pull, diff PullDiff, p policy.Policy, favour bool, note func(format string, args ...any)) (approval.Case, error) {
	log, err := pullLog(pull, diff)
	if err != nil {
		return approval.Case{}, err
	}
	heads := map[string]bool{pull.Head.Commit: true}
	for commit := range diff.Same {
		heads[commit] = true
	}
	for commit := range diff.Unread {
		heads[commit] = favour
		note("whether %s, which was reviewed and is not here, changed the same", cmp.Or(ledger.OneLine(commit[:min(12, len(commit))], 12), "a commit"))
	}
	talk := forge.Transcript{Statements: pull.beforeMerge(favour, note), PatchID: diff.PatchID, GateOnly: true, Heads: heads}
	if err := pull.record(log, talk, favour, note); err != nil {
		return approval.Case{}, err
	}
	c := approval.Case{
		Policy: p, Needs: p.Needs(diff.Paths, diff.Secrets), Log: log, Now: pull.MergedAt, Head: pull.Head.Commit, PullRequest: true, Authors: pull.Committers,
		Stands: func(d ledger.ApprovalDecision) string {
			who := d.Source.Author
			note("whether %s had %s permission then (%s)", who.Login, p.Approvals.Permission, pull.access(who))
			if pull.Strangers {
				note("whether %s wrote a commit of it, as some are of no account", who.Login)
			}
			if favour {
				return ""
			}
			return "what its author was allowed to do then is not known"
		},
		Teams: func(team string, who ledger.Actor) (bool, error) {
			note("whether %s was in %s", who.Login, team)
			return favour, nil
		},
		Owners: func(path string, who ledger.Actor) (bool, error) {
			note("whether %s owned %s", who.Login, path)
			return favour, nil
		},
		Signed: func(d ledger.ApprovalDecision) (time.Time, error) {
			note("whether the signature of %s is good", d.Source.Author.Login)
			if favour {
				return pull.MergedAt, nil
			}
			return time.Time{}, errors.New("it was not verified")
		},
	}
	if p.Approvals.Drift != nil {
		c.Drift = func(from string) approval.Drift {
			note("how far the base had moved since an approval")
			if favour {
				return approval.Drift{From: from, To: from}
			}
			return approval.UnknownDrift(from, "", "it is not known")
		}
	}
	return c, nil
}

// access is what is known of a permission, in words.
func (pull Pull) access(who ledger.Actor) string {
	if a, asked := pull.Access[who.ID]; asked {
		return fmt.Sprintf("%s permission on %s", cmp.Or(a.Permission, "no"), pull.ReadAt.UTC().Format(time.DateOnly))
	}
	return "not asked about since"
}

// record appends the decisions of a conversation to a log, as a gate would have: in favour,
// approvals were of the head, and nobody heard a denial.
func (pull Pull) record(log *ledger.Log, talk forge.Transcript, favour bool, note func(format string, args ...any)) error {
	for i, said := range talk.Said() {
		decision, decides := said.Command.Decision()
		if !decides || said.Void != "" {
			continue
		}
		if decision == ledger.Deny {
			note("whether the denial of %s was heard (%s)", said.Author.Login, pull.access(said.Author))
			if favour {
				continue
			}
		}
		on := "" // a comment names no commit: it may have been made on the head, or before
		if favour {
			on = pull.Head.Commit
		}
		source := said.Source(approval.Access{Permission: string(policy.CanAdmin)}, on, "")
		d := ledger.ApprovalDecision{ApprovalRequestID: fmt.Sprintf("req_%d", i+1), Decision: decision, Source: source}
		if err := answer(log, pull.MergedAt, said.Command, d); err != nil {
			return err
		}
	}
	return nil
}

// beforeMerge are the statements from before the merge. When a review was dismissed, and what it
// said before, is not told: in favour, it approved.
func (pull Pull) beforeMerge(favour bool, note func(format string, args ...any)) []approval.Statement {
	var out []approval.Statement
	for _, s := range pull.Statements {
		if at, err := time.Parse(time.RFC3339, s.CreatedAt); err == nil && at.After(pull.MergedAt) {
			continue
		}
		if s.Kind == approval.KindReview && s.State == approval.ReviewDismissed {
			note("whether the review of %s approved, and was dismissed before the merge", s.Author.Login)
			if favour {
				s.State = approval.ReviewApproved
			}
		}
		out = append(out, s)
	}
	return out
}

// pullLog is a transaction of a pull request's own diff, as a review would begin one.
func pullLog(pull Pull, diff PullDiff) (*ledger.Log, error) {
	id, err := writing.NewID(pull.MergedAt, bytes.NewReader(make([]byte, 16)))
	if err != nil {
		return nil, err
	}
	repository := pull.Repository
	log := &ledger.Log{}
	for _, p := range []ledger.Payload{
		&ledger.Meta{TransactionID: id, Proposer: pull.Author, BaseCommit: pull.Base.Commit, Summary: pull.Title},
		&ledger.TurnStart{TransactionID: id, TurnID: "turn_1"},
		&ledger.TurnItem{TransactionID: id, TurnID: "turn_1", Item: ledger.Item{ID: "item_1", Type: ledger.FileChange, Metadata: &ledger.Proposal{
			Kind: ledger.KindPullRequest, PatchID: diff.PatchID, TargetFiles: diff.Paths, ContainsSecrets: diff.Secrets, Repository: &repository,
			PullRequest: pull.Number, HeadCommit: pull.Head.Commit, Authors: pull.Committers,
		}}},
	} {
		if err := log.Append(pull.MergedAt, p); err != nil {
			return nil, err
		}
	}
	return log, nil
}

// Reviewed are the commits, beside the head, on which somebody approved, or may have; "" where
// it is not told which.
func (pull Pull) Reviewed() []string {
	var out []string
	for _, s := range pull.Statements {
		reviewed := s.Kind == approval.KindReview && (s.State == approval.ReviewApproved || s.State == approval.ReviewDismissed)
		if reviewed && s.Commit != pull.Head.Commit && !slices.Contains(out, s.Commit) {
			out = append(out, s.Commit)
		}
	}
	return out
}
