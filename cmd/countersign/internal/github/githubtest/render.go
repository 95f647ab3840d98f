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
		o["permissions"] = permissions(s.permission(r, t.account))
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
