package githubtest

import (
	"encoding/json"
	"strings"
)

// An Event names a payload to render. Name is that of the event that starts a
// workflow: issue_comment, pull_request_review, pull_request_review_comment,
// pull_request_target, workflow_run, merge_group, workflow_dispatch, schedule.
type Event struct {
	Name       string
	Action     string // created, edited, deleted, submitted, ... as GitHub has it
	Repository string
	Number     int    // of the pull request
	ID         int64  // of the comment, review or run; a deleted comment is still known
	By         string // the sender; the author if it is ""
	Inputs     map[string]string
	Commit     string // the head of a merge group
}

// Event returns the payload of an event as it would be sent now: the file at
// GITHUB_EVENT_PATH. It is held against GitHub's description.
func (s *Server) Event(e Event) []byte {
	payload := s.payload(e)
	data, err := json.MarshalIndent(payload, "", "  ")
	if err != nil {
		misuse("%v", err)
	}
	if err := checkEvent(e, data); err != nil {
		s.violation("event %s %s: %v", e.Name, e.Action, err)
	}
	return data
}

func (s *Server) payload(e Event) object {
	defer s.lock()()
	r := s.repo(e.Repository)
	payload := object{"repository": s.repository(r)}
	if e.Action != "" {
		payload["action"] = e.Action
	}
	if r.owner.kind == "Organization" {
		payload["organization"] = s.organization(r.owner)
	}
	sender := s.fill(payload, r, e)
	if e.By != "" {
		sender = s.account(e.By)
	}
	payload["sender"] = s.user(sender)
	return payload
}

// fill adds what an event is about, and returns whose doing it is.
func (s *Server) fill(payload object, r *repository, e Event) *account {
	switch e.Name {
	case "issue_comment", "pull_request_review_comment":
		return s.commentEvent(payload, r.pullOf(e.ID), e)
	case "pull_request_review":
		return s.reviewEvent(payload, r.pullOf(e.ID), e)
	case "pull_request_target", "pull_request":
		return s.pullEvent(payload, s.pull(e.Repository, e.Number), e)
	case "workflow_run":
		return s.runEvent(payload, r, e)
	case "merge_group":
		payload["merge_group"] = s.mergeGroup(r, e)
	case "workflow_dispatch":
		payload["inputs"], payload["ref"], payload["workflow"] = e.Inputs, "refs/heads/main", ".github/workflows/settle.yml"
	case "schedule":
		payload["schedule"], payload["workflow"] = "17 3 * * *", ".github/workflows/sweep.yml"
	default:
		misuse("no event %q", e.Name)
	}
	return s.account("github-actions[bot]")
}

// pullOf is the pull request of a comment or review, also of a deleted one.
func (r *repository) pullOf(id int64) *pull {
	for _, p := range r.pulls {
		if p.find(id) != nil {
			return p
		}
		for _, c := range p.gone {
			if c.id == id {
				return p
			}
		}
	}
	misuse("no comment or review %d in %s", id, r.fullName())
	return nil
}

func (s *Server) commentEvent(payload object, p *pull, e Event) *account {
	var about *comment
	for _, c := range append(p.allComments(), p.gone...) {
		if c.id == e.ID {
			about = c
		}
	}
	if about == nil {
		misuse("%d is no comment", e.ID)
	}
	told := s.anyComment(about)
	payload["comment"] = told
	if about.thread != nil {
		payload["pull_request"] = s.simplePull(p)
		nulls(told, "line original_line start_line original_start_line start_side")
	} else {
		payload["issue"] = s.issue(p)
	}
	if n := len(about.history); e.Action == "edited" && n > 1 {
		payload["changes"] = object{"body": object{"from": about.history[n-2].body}}
		return about.editor
	}
	return about.author
}

// nulls adds what an object does not have as null, which events do where the API
// leaves it out.
func nulls(o object, names string) {
	for name := range strings.FieldsSeq(names) {
		if o[name] == nil {
			o[name] = nil
		}
	}
}

func (s *Server) reviewEvent(payload object, p *pull, e Event) *account {
	for _, v := range p.reviews {
		if v.id != e.ID {
			continue
		}
		review := s.pullReview(v)
		review["state"] = strings.ToLower(v.state)
		review["submitted_at"], review["updated_at"] = stamp(v.created), stamp(v.updated)
		payload["review"], payload["pull_request"] = review, s.simplePull(p)
		return v.author
	}
	misuse("%d is no review", e.ID)
	return nil
}

func (s *Server) pullEvent(payload object, p *pull, e Event) *account {
	payload["number"], payload["pull_request"] = p.number, s.fullPull(p)
	switch e.Action {
	case "synchronize":
		payload["before"], payload["after"] = p.before, p.head.sha
	case "edited":
		if p.changes == nil {
			misuse("pull request %d was not edited", p.number)
		}
		payload["changes"] = p.changes
	}
	return p.author
}
