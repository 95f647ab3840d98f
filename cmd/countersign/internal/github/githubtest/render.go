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
	return object{"login": a.login, "id": a.id, "node_id": nodeID("U", a.id), "type": a.kind, "html_url": s.URL + "/" + a.login}
}

// repository is a repository as other things tell it.
func (s *Server) repository(r *repository) object {
	html := s.URL + "/" + r.fullName()
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	return object{
		"id": r.id, "node_id": nodeID("R", r.id), "name": r.name, "full_name": r.fullName(), "owner": s.user(r.owner), "private": r.private,
		"visibility": visibility, "fork": r.parent != nil, "html_url": html, "clone_url": html + ".git", "default_branch": "main",
		"created_at": stamp(r.created), "updated_at": stamp(r.created), "pushed_at": stamp(r.created),
	}
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
	if s.may(t, r, "contents", "write") {
		o["allow_merge_commit"], o["allow_squash_merge"], o["allow_rebase_merge"] = !r.settings.NoMerge, !r.settings.NoSquash, !r.settings.NoRebase
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

func (s *Server) issueURL(p *pull) string {
	if p.number < firstIssue {
		return s.pullURL(p)
	}
	return fmt.Sprintf("%s/%s/issues/%d", s.URL, p.repo.fullName(), p.number)
}

func (s *Server) commentURL(c *comment) string {
	anchor := "#issuecomment-"
	if c.thread != nil {
		anchor = "#discussion_r"
	}
	return fmt.Sprint(s.issueURL(c.pull), anchor, c.id)
}

func (s *Server) reviewURL(v *review) string {
	return fmt.Sprint(s.pullURL(v.pull), "#pullrequestreview-", v.id)
}

// simplePull is a pull request of a list.
func (s *Server) simplePull(p *pull) object {
	return object{
		"id": p.id, "node_id": nodeID("PR", p.id), "number": p.number, "state": p.state(), "title": p.title, "body": orNull(p.body),
		"user": s.user(p.author), "draft": p.draft, "author_association": s.association(p.repo, p.author),
		"created_at": stamp(p.created), "updated_at": stamp(p.updated), "closed_at": maybe(p.closed), "merged_at": maybe(p.merged),
		"merge_commit_sha": orNull(p.mergeCommit), "head": s.side(p.head), "base": s.side(p.base), "html_url": s.pullURL(p),
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
	maps.Copy(o, object{
		"merged": p.merged != nil, "mergeable_state": "unknown", "maintainer_can_modify": p.edits,
		"comments": len(p.comments), "review_comments": len(p.reviewComments()), "commits": len(p.commits()),
		"changed_files": len(p.files()),
	})
	return o
}

// minimalPull is a pull request as check runs and workflow runs tell it.
func (s *Server) minimalPull(p *pull) object {
	end := func(d side) object {
		return object{"ref": d.ref, "sha": d.sha, "repo": object{"id": d.repo.id, "name": d.repo.name}}
	}
	return object{"id": p.id, "number": p.number, "head": end(p.head), "base": end(p.base)}
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
	return object{
		"id": c.id, "node_id": nodeID("IC", c.id), "html_url": s.commentURL(c), "issue_url": s.at("/repos/%s/issues/%d", c.pull.repo.fullName(), c.pull.number),
		"user": s.user(c.author), "body": c.body, "created_at": stamp(c.created), "updated_at": stamp(c.updated),
		"author_association": s.association(c.pull.repo, c.author), "performed_via_github_app": s.appOf(&c.text),
	}
}

// appOf is the app that posted a text for its author, or null.
func (s *Server) appOf(t *text) any {
	if t.app == nil {
		return nil
	}
	return s.app(t.app)
}

// app is the app of a bot's account.
func (s *Server) app(bot *account) object {
	slug := strings.TrimSuffix(bot.login, "[bot]")
	return object{
		"id": appID(bot), "slug": slug, "node_id": nodeID("A", appID(bot)), "name": slug, "owner": s.user(bot), "html_url": s.URL + "/apps/" + slug,
		"created_at": stamp(bot.created), "updated_at": stamp(bot.created),
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
	o := object{
		"id": c.id, "node_id": nodeID("PRRC", c.id), "html_url": s.commentURL(c), "pull_request_url": s.at("/repos/%s/pulls/%d", c.pull.repo.fullName(), c.pull.number),
		"pull_request_review_id": c.review.id, "path": c.path, "commit_id": c.pull.head.sha, "original_commit_id": c.commit,
		"user": s.user(c.author), "body": c.body, "created_at": stamp(c.created), "updated_at": stamp(c.updated),
		"author_association": s.association(c.pull.repo, c.author), "subject_type": c.subject, "side": sideOf(c.left),
	}
	if c.line != 0 {
		o["original_line"] = c.line
		if !c.outdated {
			o["line"] = c.line
		}
	}
	if c.start != 0 {
		o["original_start_line"], o["start_side"] = c.start, sideOf(c.left)
		if !c.outdated {
			o["start_line"] = c.start
		}
	}
	if c.replyTo != nil {
		o["in_reply_to_id"] = c.replyTo.id
	}
	return o
}

// sideOf is the side of a diff that shows the base, or the head.
func sideOf(left bool) string {
	if left {
		return "LEFT"
	}
	return "RIGHT"
}

// pullReview is a review. One that is pending was not submitted yet.
func (s *Server) pullReview(v *review) object {
	o := object{
		"id": v.id, "node_id": nodeID("PRR", v.id), "user": s.user(v.author), "body": v.body, "state": v.state, "html_url": s.reviewURL(v),
		"commit_id": v.commit, "author_association": s.association(v.pull.repo, v.author),
	}
	if v.state != "PENDING" {
		o["submitted_at"] = stamp(v.created)
	}
	return o
}

func (s *Server) commit(r *repository, c commitInfo) object {
	who := func(g signature) object { return object{"name": g.name, "email": g.email, "date": g.date} }
	parents := []object{}
	for _, p := range c.parents {
		parents = append(parents, object{"sha": p})
	}
	return object{
		"sha": c.sha, "node_id": "C_" + c.sha, "html_url": fmt.Sprintf("%s/%s/commit/%s", s.URL, r.fullName(), c.sha),
		"author": s.accountOf(c.author), "committer": s.accountOf(c.committer), "parents": parents,
		"commit": object{"message": c.message, "author": who(c.author), "committer": who(c.committer), "tree": object{"sha": c.tree}},
	}
}

// accountOf is the account of a commit's address, or null.
func (s *Server) accountOf(g signature) any {
	if a := s.byEmail(g.email); a != nil {
		return s.user(a)
	}
	return nil
}
