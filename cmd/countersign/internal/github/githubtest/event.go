package githubtest

import (
	"encoding/json"
	"fmt"
	"slices"
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
	var payload any = s.payload(e)
	if schema := eventSchema(e); schema != nil {
		payload = completed(schema, payload)
	}
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
	sender := s.account("github-actions[bot]")
	switch e.Name {
	case "issue_comment", "pull_request_review_comment":
		sender = s.commentEvent(payload, r.pullOf(e.ID), e)
	case "pull_request_review":
		sender = s.reviewEvent(payload, r.pullOf(e.ID), e)
	case "pull_request_target", "pull_request":
		sender = s.pullEvent(payload, s.pull(e.Repository, e.Number), e)
	case "workflow_run":
		sender = s.runEvent(payload, r, e)
	case "merge_group":
		payload["merge_group"] = s.mergeGroup(r, e)
	case "workflow_dispatch":
		payload["inputs"], payload["ref"], payload["workflow"] = e.Inputs, "refs/heads/main", ".github/workflows/settle.yml"
	case "schedule":
		payload["schedule"], payload["workflow"] = "17 3 * * *", ".github/workflows/sweep.yml"
	default:
		misuse("no event %q", e.Name)
	}
	if e.By != "" {
		sender = s.account(e.By)
	}
	payload["sender"] = s.user(sender)
	return payload
}

// pullOf is the pull request, or the issue, of a comment or review, also of a deleted one.
func (r *repository) pullOf(id int64) *pull {
	p := first(slices.Concat(r.pulls, r.issues), func(p *pull) bool {
		return p.find(id) != nil || slices.ContainsFunc(p.gone, func(c *comment) bool { return c.id == id })
	})
	if p == nil {
		misuse("no comment or review %d in %s", id, r.fullName())
	}
	return p
}

func (s *Server) commentEvent(payload object, p *pull, e Event) *account {
	about := first(append(p.allComments(), p.gone...), func(c *comment) bool { return c.id == e.ID })
	if about == nil {
		misuse("%d is no comment", e.ID)
	}
	if about.thread != nil {
		payload["comment"], payload["pull_request"] = s.pullComment(about), s.simplePull(p)
	} else {
		payload["comment"], payload["issue"] = s.issueComment(about), s.issue(p)
	}
	if n := len(about.history); e.Action == "edited" && n > 1 {
		payload["changes"] = object{"body": object{"from": about.history[n-2].body}}
		return about.editor
	}
	return about.author
}

func (s *Server) reviewEvent(payload object, p *pull, e Event) *account {
	v := p.review(e.ID)
	if v == nil {
		misuse("%d is no review", e.ID)
	}
	review := s.pullReview(v)
	review["state"] = strings.ToLower(v.state)
	review["submitted_at"], review["updated_at"] = stamp(v.created), stamp(v.updated)
	payload["review"], payload["pull_request"] = review, s.simplePull(p)
	return v.author
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

func (s *Server) runEvent(payload object, r *repository, e Event) *account {
	run := r.findRun(e.ID)
	if run == nil {
		misuse("no run %d", e.ID)
	}
	payload["workflow_run"] = s.run(run)
	payload["workflow"] = object{"id": 1, "name": run.name, "path": run.path, "state": "active", "created_at": stamp(r.created), "updated_at": stamp(r.created)}
	return run.by
}

func (s *Server) mergeGroup(r *repository, e Event) object {
	base := r.ref("refs/heads/main")
	commit := r.resolve(e.Commit)
	if commit == "" {
		misuse("no commit %q", e.Commit)
	}
	about := &workflowRun{head: r, sha: commit}
	return object{
		"head_sha": commit, "head_ref": fmt.Sprintf("refs/heads/gh-readonly-queue/main/pr-%d-%s", e.Number, base), "base_sha": base,
		"base_ref": "refs/heads/main", "head_commit": s.runCommit(about),
	}
}

func (s *Server) organization(a *account) object {
	return object{"login": a.login, "id": a.id, "node_id": nodeID("O", a.id)}
}
