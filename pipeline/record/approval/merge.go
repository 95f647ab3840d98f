package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// KindMerge is the kind of the artifact that tells as what a pull request was merged.
const KindMerge = "merge"

// A Merge is that artifact, as the forge told it. It stands before the
// end of the transaction of a pull request's own diff, whatever that end is.
type Merge struct {
	Schema      string            `json:"schema"`
	Repository  ledger.Repository `json:"repository"`
	PullRequest int               `json:"pull_request"`
	Base        string            `json:"base"`         // the branch that it was merged into
	HeadCommit  string            `json:"head_commit"`  // of the pull request
	MergeCommit string            `json:"merge_commit"` // the newest that the branch got
	MergedAt    string            `json:"merged_at"`    // RFC 3339, UTC, by the forge's clock
}

// Check is an error if the forge does not tell the commit or the time yet.
func (m Merge) Check() error {
	at, err := ledger.ParseTime(m.MergedAt)
	switch {
	case m.MergeCommit == "":
		return errors.New("it is merged, and the forge does not tell yet as which commit")
	case !canon.IsGitID(m.MergeCommit) || !canon.IsGitID(m.HeadCommit) || m.Base == "":
		return errors.New("the commits or the branch of its merge are missing")
	case err != nil || at.Location() != time.UTC:
		return errors.New("the time of its merge cannot be read")
	}
	return nil
}

// ReadMerge reads from a transaction's directory as what its pull request was merged, nil where
// that is not recorded. What is of another pull request, or tells two merges, is an error.
func ReadMerge(dir fs.FS, log *ledger.Log) (*Merge, error) {
	var found *Merge
	p := log.Transaction().Pointers.Proposal
	for _, a := range log.Artifacts(KindMerge) {
		var m Merge
		err := ReadArtifact(dir, a, &m, &m.Schema)
		if err == nil {
			err = m.Check()
		}
		switch tx := log.Transaction(); {
		case err != nil:
		case !tx.GateOnly() || p.PullRequest != m.PullRequest || p.Repository == nil || p.Repository.ID != m.Repository.ID:
			err = fmt.Errorf("it is about another pull request than the transaction, %d", m.PullRequest)
		case found != nil && *found != m:
			err = errors.New("another merge of the pull request is recorded before")
		}
		if err != nil {
			return nil, fmt.Errorf("as what it was merged: %w", err)
		}
		found = &m
	}
	return found, nil
}
