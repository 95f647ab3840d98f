package githubtest

import (
	"fmt"
	"maps"
)

func (s *Server) runEvent(payload object, r *repository, e Event) *account {
	run := r.findRun(e.ID)
	if run == nil {
		misuse("no run %d", e.ID)
	}
	payload["workflow_run"] = s.run(run)
	api := s.at("/repos/%s/actions/workflows/%d", r.fullName(), 1)
	payload["workflow"] = object{
		"id": 1, "node_id": "W_1", "name": run.name, "path": run.path, "state": "active", "created_at": stamp(r.created), "updated_at": stamp(r.created),
		"url": api, "html_url": s.URL + "/" + r.fullName() + "/blob/main/" + run.path, "badge_url": s.URL + "/" + r.fullName() + "/badge.svg",
	}
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

// issue is a pull request as an issue, which is what a conversation is of.
func (s *Server) issue(p *pull) object {
	api, html := s.at("/repos/%s/issues/%d", p.repo.fullName(), p.number), s.pullURL(p)
	pull := s.at("/repos/%s/pulls/%d", p.repo.fullName(), p.number)
	o := object{
		"id": p.id + 1_000_000, "node_id": nodeID("I", p.id), "number": p.number, "title": p.title, "state": p.state(), "locked": false, "body": orNull(p.body),
		"user": s.user(p.author), "labels": []any{}, "assignee": nil, "assignees": []any{}, "milestone": nil, "comments": len(p.comments),
		"created_at": stamp(p.created), "updated_at": stamp(p.updated), "closed_at": maybe(p.closed), "author_association": s.association(p.repo, p.author),
		"active_lock_reason": nil, "draft": p.draft, "performed_via_github_app": nil, "state_reason": nil, "timeline_url": api + "/timeline",
		"url": api, "html_url": html, "repository_url": s.at("/repos/%s", p.repo.fullName()), "labels_url": api + "/labels{/name}",
		"pull_request": object{"url": pull, "html_url": html, "diff_url": html + ".diff", "patch_url": html + ".patch", "merged_at": maybe(p.merged)},
		"reactions":    s.reactions(api),
	}
	return addresses(o, api, "comments events")
}

func (s *Server) organization(a *account) object {
	base := s.at("/orgs/%s", a.login)
	o := object{"login": a.login, "id": a.id, "node_id": nodeID("O", a.id), "url": base, "description": nil, "avatar_url": s.URL + "/avatar"}
	return addresses(maps.Clone(o), base, "repos events hooks issues members public_members")
}
