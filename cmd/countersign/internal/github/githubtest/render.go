package githubtest

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// rest is an address in the REST API.
func (s *Server) at(format string, a ...any) string { return s.API() + fmt.Sprintf(format, a...) }

func nodeID(kind string, id int64) string { return fmt.Sprintf("%s_%d", kind, id) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// maybe is a time, or null.
func maybe(t *time.Time) any {
	if t == nil {
		return nil
	}
	return stamp(*t)
}

// orNull is a string, or null for "".
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// addresses adds an address below base for each name, under name + "_url".
func addresses(o object, base, names string) object {
	for name := range strings.FieldsSeq(names) {
		o[name+"_url"] = base + "/" + name
	}
	return o
}

// ghost is who the texts of a deleted account are of.
var ghost = &account{id: 10137, login: "ghost", kind: "User"}

// alive is the account, or the ghost if it was deleted.
func (a *account) alive() *account {
	if a.deleted {
		return ghost
	}
	return a
}

func (s *Server) user(a *account) object {
	a = a.alive()
	u := object{
		"login": a.login, "id": a.id, "node_id": nodeID("U", a.id), "type": a.kind, "site_admin": false, "gravatar_id": "",
		"url": s.at("/users/%s", a.login), "html_url": s.URL + "/" + a.login, "user_view_type": "public",
	}
	return addresses(u, s.at("/users/%s", a.login), "avatar events followers following gists organizations received_events repos starred subscriptions")
}

const repositoryAddresses = "archive assignees blobs branches collaborators comments commits compare contents contributors deployments downloads events forks " +
	"git_commits git_refs git_tags hooks issue_comment issue_events issues keys labels languages merges milestones notifications pulls releases " +
	"stargazers statuses subscribers subscription tags teams trees"

// minimalRepository is a repository as other things tell it.
func (s *Server) minimalRepository(r *repository) object {
	base := s.at("/repos/%s", r.fullName())
	o := object{
		"id": r.id, "node_id": nodeID("R", r.id), "name": r.name, "full_name": r.fullName(), "owner": s.user(r.owner), "private": r.private,
		"html_url": s.URL + "/" + r.fullName(), "description": nil, "fork": r.parent != nil, "url": base,
	}
	return addresses(o, base, repositoryAddresses)
}

// repository is a repository in full.
func (s *Server) repository(r *repository) object {
	o := s.minimalRepository(r)
	open := 0
	for _, p := range r.pulls {
		if p.closed == nil {
			open++
		}
	}
	clone := s.URL + "/" + r.fullName() + ".git"
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	maps.Copy(o, object{
		"clone_url": clone, "git_url": clone, "ssh_url": clone, "svn_url": clone, "mirror_url": nil, "default_branch": "main", "homepage": nil, "language": nil,
		"forks": 0, "forks_count": 0, "stargazers_count": 0, "watchers": 0, "watchers_count": 0, "network_count": 0, "subscribers_count": 0, "size": 1,
		"open_issues": open, "open_issues_count": open, "license": nil, "archived": false, "disabled": false, "has_issues": true, "has_projects": false,
		"has_wiki": false, "has_pages": false, "has_downloads": false, "has_discussions": false, "visibility": visibility, "topics": []string{},
		"pushed_at": stamp(r.created), "created_at": stamp(r.created), "updated_at": stamp(r.created), "web_commit_signoff_required": false,
		"allow_forking": true, "is_template": false,
	})
	return o
}

// fullRepository is a repository when it is asked for.
func (s *Server) fullRepository(r *repository, t *token) object {
	o := s.repository(r)
	if r.parent != nil && !r.parent.deleted {
		o["parent"], o["source"] = s.repository(r.parent), s.repository(r.parent)
	}
	if t.account != nil && !t.app {
		o["permissions"] = permissions(r.permission(t.account))
	}
	if r.owner.kind == "Organization" {
		o["organization"] = s.user(r.owner)
	}
	return o
}

func permissions(role string) object {
	return object{
		"pull": atLeast(role, "read"), "triage": atLeast(role, "triage"), "push": atLeast(role, "write"),
		"maintain": atLeast(role, "maintain"), "admin": role == "admin",
	}
}

// association is the author_association of an account, which is no permission.
func (s *Server) association(r *repository, a *account) string {
	switch _, listed := r.roles[a.id]; {
	case a == r.owner:
		return "OWNER"
	case listed:
		return "COLLABORATOR"
	}
	return "NONE"
}

func (s *Server) pullURL(p *pull) string {
	return fmt.Sprintf("%s/%s/pull/%d", s.URL, p.repo.fullName(), p.number)
}

func (s *Server) commentURL(c *comment) string {
	anchor := "#issuecomment-"
	if c.thread != nil {
		anchor = "#discussion_r"
	}
	return fmt.Sprint(s.pullURL(c.pull), anchor, c.id)
}

func (s *Server) reviewURL(v *review) string {
	return fmt.Sprint(s.pullURL(v.pull), "#pullrequestreview-", v.id)
}

// simplePull is a pull request of a list.
func (s *Server) simplePull(p *pull) object {
	api := s.at("/repos/%s/pulls/%d", p.repo.fullName(), p.number)
	issue := s.at("/repos/%s/issues/%d", p.repo.fullName(), p.number)
	statuses := s.at("/repos/%s/statuses/%s", p.repo.fullName(), p.head.sha)
	html := s.pullURL(p)
	link := func(address string) object { return object{"href": address} }
	return object{
		"id": p.id, "node_id": nodeID("PR", p.id), "number": p.number, "state": p.state(), "locked": false, "title": p.title, "body": orNull(p.body),
		"user": s.user(p.author), "draft": p.draft, "labels": []any{}, "milestone": nil, "assignee": nil, "assignees": []any{}, "auto_merge": nil,
		"requested_reviewers": []any{}, "requested_teams": []any{}, "author_association": s.association(p.repo, p.author), "active_lock_reason": nil,
		"created_at": stamp(p.created), "updated_at": stamp(p.updated), "closed_at": maybe(p.closed), "merged_at": maybe(p.merged),
		"merge_commit_sha": orNull(p.mergeCommit), "head": s.side(p.head), "base": s.side(p.base),
		"url": api, "html_url": html, "diff_url": html + ".diff", "patch_url": html + ".patch", "issue_url": issue, "comments_url": issue + "/comments",
		"commits_url": api + "/commits", "review_comments_url": api + "/comments", "review_comment_url": s.at("/repos/%s/pulls/comments{/number}", p.repo.fullName()),
		"statuses_url": statuses,
		"_links": object{
			"self": link(api), "html": link(html), "issue": link(issue), "comments": link(issue + "/comments"), "commits": link(api + "/commits"),
			"review_comments": link(api + "/comments"), "review_comment": link(api + "/comments{/number}"), "statuses": link(statuses),
		},
	}
}

// side is one end of a pull request; its repository is null once it is deleted.
func (s *Server) side(d side) object {
	o := object{"ref": d.ref, "sha": d.sha, "label": d.repo.owner.login + ":" + d.ref, "user": s.user(d.repo.owner), "repo": nil}
	if !d.repo.deleted {
		o["repo"] = s.repository(d.repo)
	}
	return o
}

// fullPull is a pull request that is asked for.
func (s *Server) fullPull(p *pull) object {
	o := s.simplePull(p)
	added, deleted := 0, 0
	files := p.files()
	for _, f := range files {
		added += f.added
		deleted += f.deleted
	}
	maps.Copy(o, object{
		"merged": p.merged != nil, "mergeable": nil, "mergeable_state": "unknown", "rebaseable": nil, "merged_by": nil, "maintainer_can_modify": p.edits,
		"comments": len(p.comments), "review_comments": len(p.reviewComments()), "commits": len(p.commits()), "additions": added, "deletions": deleted,
		"changed_files": len(files),
	})
	if p.mergedBy != nil {
		o["merged_by"] = s.user(p.mergedBy)
	}
	return o
}

// minimalPull is a pull request as check runs and workflow runs tell it.
func (s *Server) minimalPull(p *pull) object {
	end := func(d side) object {
		return object{"ref": d.ref, "sha": d.sha, "repo": object{"id": d.repo.id, "name": d.repo.name, "url": s.at("/repos/%s", d.repo.fullName())}}
	}
	return object{
		"id": p.id, "number": p.number, "url": s.at("/repos/%s/pulls/%d", p.repo.fullName(), p.number), "head": end(p.head), "base": end(p.base),
	}
}

// pullsOf are the pull requests that GitHub names beside a commit: open ones of
// this head, and none from forks.
func (s *Server) pullsOf(r *repository, sha string) []object {
	all := []object{}
	for _, p := range r.pulls {
		if p.head.sha == sha && p.closed == nil && !p.fork() {
			all = append(all, s.minimalPull(p))
		}
	}
	return all
}

// issueComment is a comment of a conversation.
func (s *Server) issueComment(c *comment) object {
	repo := c.pull.repo.fullName()
	o := object{
		"id": c.id, "node_id": nodeID("IC", c.id), "url": s.at("/repos/%s/issues/comments/%d", repo, c.id), "html_url": s.commentURL(c),
		"issue_url": s.at("/repos/%s/issues/%d", repo, c.pull.number), "user": s.user(c.author), "body": c.body, "created_at": stamp(c.created),
		"updated_at": stamp(c.updated), "author_association": s.association(c.pull.repo, c.author), "performed_via_github_app": nil,
		"reactions": s.reactions(s.at("/repos/%s/issues/comments/%d", repo, c.id)),
	}
	if c.app != nil {
		o["performed_via_github_app"] = s.app(c.app, nil)
	}
	return o
}

func (s *Server) reactions(of string) object {
	o := object{"url": of + "/reactions", "total_count": 0}
	for name := range strings.FieldsSeq("+1 -1 laugh confused heart hooray eyes rocket") {
		o[name] = 0
	}
	return o
}

// app is the app of a bot's account.
func (s *Server) app(bot *account, granted map[string]string) object {
	slug := strings.TrimSuffix(bot.login, "[bot]")
	if granted == nil {
		granted = map[string]string{}
	}
	return object{
		"id": appID(bot), "slug": slug, "node_id": nodeID("A", appID(bot)), "name": slug, "owner": s.user(bot), "description": nil,
		"external_url": s.URL + "/apps/" + slug, "html_url": s.URL + "/apps/" + slug, "created_at": stamp(bot.created), "updated_at": stamp(bot.created),
		"permissions": granted, "events": []string{},
	}
}

// appID is the number of an app, which is not the number of its account;
// that of GitHub Actions is as on github.com.
func appID(bot *account) int64 {
	if bot.id == actionsID {
		return 15368
	}
	return bot.id + 500_000
}

// pullComment is a review comment.
func (s *Server) pullComment(c *comment) object {
	repo, api := c.pull.repo.fullName(), s.at("/repos/%s/pulls/comments/%d", c.pull.repo.fullName(), c.id)
	pull := s.at("/repos/%s/pulls/%d", repo, c.pull.number)
	link := func(address string) object { return object{"href": address} }
	o := object{
		"id": c.id, "node_id": nodeID("PRRC", c.id), "url": api, "html_url": s.commentURL(c), "pull_request_url": pull, "pull_request_review_id": c.review.id,
		"diff_hunk": c.diffHunk, "path": c.path, "commit_id": c.pull.head.sha, "original_commit_id": c.commit, "user": s.user(c.author), "body": c.body,
		"created_at": stamp(c.created), "updated_at": stamp(c.updated), "author_association": s.association(c.pull.repo, c.author),
		"subject_type": c.subject, "reactions": s.reactions(api), "side": "RIGHT", "position": 1, "original_position": 1,
		"_links": object{"self": link(api), "html": link(s.commentURL(c)), "pull_request": link(pull)},
	}
	if c.line != 0 {
		o["line"], o["original_line"] = c.line, c.line
	}
	if c.replyTo != nil {
		o["in_reply_to_id"] = c.replyTo.id
	}
	return o
}

// pullReview is a review. One that is pending was not submitted yet.
func (s *Server) pullReview(v *review) object {
	pull := s.at("/repos/%s/pulls/%d", v.pull.repo.fullName(), v.pull.number)
	o := object{
		"id": v.id, "node_id": nodeID("PRR", v.id), "user": s.user(v.author), "body": v.body, "state": v.state, "html_url": s.reviewURL(v),
		"pull_request_url": pull, "commit_id": v.commit, "author_association": s.association(v.pull.repo, v.author),
		"_links": object{"html": object{"href": s.reviewURL(v)}, "pull_request": object{"href": pull}},
	}
	if v.state != "PENDING" {
		o["submitted_at"] = stamp(v.created)
	}
	return o
}

func (s *Server) commit(r *repository, c commitInfo) object {
	api := s.at("/repos/%s/commits/%s", r.fullName(), c.sha)
	who := func(g signature) object { return object{"name": g.name, "email": g.email, "date": g.date} }
	parents := []object{}
	for _, p := range c.parents {
		parents = append(parents, object{"sha": p, "url": s.at("/repos/%s/commits/%s", r.fullName(), p)})
	}
	return object{
		"sha": c.sha, "node_id": "C_" + c.sha, "url": api, "html_url": fmt.Sprintf("%s/%s/commit/%s", s.URL, r.fullName(), c.sha), "comments_url": api + "/comments",
		"author": s.accountOf(c.author), "committer": s.accountOf(c.committer), "parents": parents,
		"commit": object{
			"url": api, "message": c.message, "comment_count": 0, "author": who(c.author), "committer": who(c.committer),
			"tree": object{"sha": c.tree, "url": s.at("/repos/%s/git/trees/%s", r.fullName(), c.tree)},
		},
	}
}

// accountOf is the account of a commit's address, or null.
func (s *Server) accountOf(g signature) any {
	if a := s.byEmail(g.email); a != nil {
		return s.user(a)
	}
	return nil
}
