package forge

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// PolicyDoc is the artifact of a Policy.
func PolicyDoc(p policy.Policy, commit string, found bool) approval.PolicyDoc {
	return approval.PolicyDoc{Schema: approval.Schema(approval.KindPolicy), Commit: commit, Found: found, SHA256: p.Sum(), Policy: string(p.JSON())}
}

// SignatureDoc is the artifact of a signature that was found good.
func SignatureDoc(s approval.Signature) approval.SignatureDoc {
	return approval.SignatureDoc{Schema: approval.Schema(approval.KindSignature), Armored: s.Armored}
}

// KeyDoc is the artifact of the line that lists a key.
func KeyDoc(line string) approval.KeyDoc {
	return approval.KeyDoc{Schema: approval.Schema(approval.KindKey), Line: line}
}

// SignedBlock is approval.SignedLine with the signature and the statement below the line, where
// people can read them.
func SignedBlock(s approval.Signature) string {
	return approval.CommandOf(s.Statement) + "\n" + s.Block()
}

// MergedAs is that of a pull request. A forge that does not tell the commit or the time yet
// is an error.
func MergedAs(in ledger.Repository, number int, base, head, commit, at string) (approval.Merge, error) {
	m := approval.Merge{
		Schema: approval.Schema(approval.KindMerge), Repository: in, PullRequest: number, Base: base, HeadCommit: head, MergeCommit: commit, MergedAt: at,
	}
	return m, m.Check()
}

// StandingAt is one of a pull request, read at a time when head was the
// commit of its head.
func StandingAt(readAt time.Time, pullRequest int, head string) approval.Standing {
	return approval.Standing{
		Schema: approval.Schema(approval.KindStanding), ReadAt: ledger.FormatTime(readAt), PullRequest: pullRequest, HeadCommit: head,
		Decisions: []approval.StandingApproval{}, Teams: map[string][]string{}, Owners: map[string][]string{},
	}
}

// Stood is what became of a recorded approval: the reason of Transcript.Stands, and what its
// author may do now.
func Stood(d ledger.ApprovalDecision, reason string, a approval.Access) approval.StandingApproval {
	return approval.StandingApproval{ApprovalRequestID: d.ApprovalRequestID, Stands: reason == "", Reason: reason, Permission: a.Permission, Role: a.Role}
}

// AddID notes that the account of an id is in the team or owns the path that is the key.
func AddID(sets map[string][]string, key, id string) {
	if at, has := slices.BinarySearch(sets[key], id); !has && id != "" {
		sets[key] = slices.Insert(sets[key], at, id)
	}
}

// ReadStanding reads what an apply recorded of its approvals: the last before it.
func ReadStanding(tree fs.FS, log *ledger.Log) (*approval.Standing, error) {
	id := log.Transaction().TransactionID
	var s approval.Standing
	dir, err := fs.Sub(tree, ledger.Dir(id))
	all := log.Artifacts(approval.KindStanding)
	switch {
	case err == nil && len(all) == 0:
		err = errors.New("it is not recorded")
	case err == nil:
		err = approval.ReadArtifact(dir, all[len(all)-1], &s, &s.Schema)
	}
	if err != nil {
		return nil, &ledger.CorruptError{ID: id, Err: fmt.Errorf("what its approvals were when it was applied: %w", err)}
	}
	return &s, nil
}

// KindPosted is the kind of the artifact that says what we posted.
const KindPosted = "posted"

const postedSchema = "countersign/posted/1"

// A PostedDoc is that artifact.
type PostedDoc struct {
	Schema   string   `json:"schema"`
	Comments []Posted `json:"comments"`
}

// NewPostedDoc is the artifact of comments.
func NewPostedDoc(comments []Posted) PostedDoc {
	return PostedDoc{postedSchema, comments}
}

// ReadPosted reads the comments that were made for a transaction, in the order in which
// they were.
func ReadPosted(tree fs.FS, log *ledger.Log) ([]Posted, error) {
	var out []Posted
	tx := log.Transaction().TransactionID
	for _, a := range log.Artifacts(KindPosted) {
		var doc PostedDoc
		raw, err := ledger.ReadFile(tree, tx, a.Path)
		if err == nil {
			err = canon.UnmarshalDocument("what was posted", raw, &doc)
		}
		if err == nil && doc.Schema != postedSchema {
			err = errors.New("what was posted is recorded in an unknown schema")
		}
		if err != nil {
			return nil, &ledger.CorruptError{ID: tx, Err: err}
		}
		out = append(out, doc.Comments...)
	}
	return out, nil
}

// maxDriftNames is how many files a Drift names.
const maxDriftNames = 5

// DriftBetween is that of a change of touched files; changed are the files that
// differ.
func DriftBetween(from, to string, commits int, changed, touched []string) approval.Drift {
	d := approval.Drift{From: from, To: to, Commits: commits, Files: len(changed), Names: []string{}}
	dirs := map[string]bool{}
	for _, name := range touched {
		dirs[path.Dir(name)] = true
	}
	for _, name := range slices.Sorted(slices.Values(changed)) {
		if !dirs[path.Dir(name)] || slices.Contains(touched, name) {
			continue
		}
		if d.Beside++; d.Beside <= maxDriftNames {
			d.Names = append(d.Names, name)
		}
	}
	return d
}

// DriftDoc asks for the drift of every approval of a log.
func DriftDoc(log *ledger.Log, to string, drift func(from string) approval.Drift) approval.DriftDoc {
	doc := approval.DriftDoc{Schema: approval.Schema(approval.KindDrift), To: to, Since: []approval.Drift{}}
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		from := approval.MadeOn(log, *d)
		known := slices.ContainsFunc(doc.Since, func(s approval.Drift) bool { return s.From == from })
		if d.Decision == ledger.Approve && !known {
			doc.Since = append(doc.Since, drift(from))
		}
	}
	return doc
}

// ReadDrift reads what was recorded of drift before an event of a log.
func ReadDrift(tree fs.FS, log *ledger.Log, event int) (approval.DriftDoc, error) {
	id := log.Transaction().TransactionID
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return approval.DriftDoc{}, err
	}
	doc, err := approval.LastDrift(dir, log.Payloads()[:event])
	if err != nil {
		err = &ledger.CorruptError{ID: id, Err: err}
	}
	return doc, err
}
