package approval

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// KindStanding is the kind of the artifact that tells what became of recorded
// approvals when the forge was asked again, before an apply.
const KindStanding = "standing"

const standingSchema = "countersign/standing/1"

// A Standing is that artifact, countersign/standing/1. Teams and Owners have the
// ids of the accounts that are in a team, or own a path; who is not there is in
// none, and owns nothing.
type Standing struct {
	Schema      string              `json:"schema"`
	ReadAt      string              `json:"read_at"`
	PullRequest int                 `json:"pull_request"`
	HeadCommit  string              `json:"head_commit"`
	Decisions   []Stood             `json:"decisions"`
	Teams       map[string][]string `json:"teams"`
	Owners      map[string][]string `json:"owners"`
	Policy      ledger.PolicyRef    `json:"policy"` // that the decisions were judged by
}

// Stood is what became of one approval: whether its statement still says so, why
// not, and what its author may do by now.
type Stood struct {
	ApprovalRequestID string `json:"approval_request_id"`
	Stands            bool   `json:"stands"`
	Reason            string `json:"reason"` // "" where it stands
	Permission        string `json:"permission"`
	Role              string `json:"role"`
}

// NewStanding is a Standing of a pull request, read at a time when head was the
// commit of its head.
func NewStanding(readAt time.Time, pullRequest int, head string) Standing {
	return Standing{
		Schema: standingSchema, ReadAt: ledger.FormatTime(readAt), PullRequest: pullRequest, HeadCommit: head,
		Decisions: []Stood{}, Teams: map[string][]string{}, Owners: map[string][]string{},
	}
}

// Add notes a recorded approval: the reason of Conversation.Stands, and what its
// author may do now.
func (s *Standing) Add(d ledger.ApprovalDecision, reason string, a Access) {
	s.Decisions = append(s.Decisions, Stood{d.ApprovalRequestID, reason == "", reason, a.Permission, a.Role})
}

// AddMember notes that the account of an id is in "org/team".
func (s *Standing) AddMember(team, id string) { addID(s.Teams, team, id) }

// AddOwner notes that the account of an id owns a path.
func (s *Standing) AddOwner(path, id string) { addID(s.Owners, path, id) }

func addID(sets map[string][]string, key, id string) {
	if at, has := slices.BinarySearch(sets[key], id); !has && id != "" {
		sets[key] = slices.Insert(sets[key], at, id)
	}
}

// On is the case of a pull request with what a Standing tells and nothing else:
// the head, whether approvals stand, and who is in a team or owns a path. A stage
// that decides so decides as an auditor will.
func (c Case) On(s Standing) Case {
	c.PullRequest, c.Head = true, s.HeadCommit
	c.Stands = func(d ledger.ApprovalDecision) string {
		for _, stood := range s.Decisions {
			if stood.ApprovalRequestID != d.ApprovalRequestID {
				continue
			}
			if !stood.Stands {
				return cmp.Or(stood.Reason, "does not stand any more")
			}
			return Refused(c.Policy, Access{Permission: stood.Permission})
		}
		return "its comment was not read again"
	}
	c.Teams = func(team string, who ledger.Actor) (bool, error) { return slices.Contains(s.Teams[team], who.ID), nil }
	c.Owners = func(path string, who ledger.Actor) (bool, error) { return slices.Contains(s.Owners[path], who.ID), nil }
	return c
}

// lastStanding reads the last Standing of a log, which has to be of the apply
// that follows and not of one before.
func lastStanding(dir fs.FS, log *ledger.Log) (Standing, error) {
	var s Standing
	at, applied := -1, -1
	for i, p := range log.Payloads() {
		switch p := p.(type) {
		case *ledger.ArtifactStored:
			if p.Kind == KindStanding {
				at = i
			}
		case *ledger.ApplyStart:
			applied = i
		}
	}
	if at < 0 {
		return s, errors.New("what stood of the approvals when the change was applied is not recorded")
	}
	if at < applied { // by their order: two machines' clocks may differ (T56)
		return s, errors.New("what stood of the approvals was not asked again for this apply")
	}
	if err := readArtifact(dir, log.Payloads()[at].(*ledger.ArtifactStored), &s); err != nil {
		return s, err
	}
	if s.Schema != standingSchema {
		return s, errors.New("what stood of the approvals is recorded in an unknown schema")
	}
	return s, nil
}
