package githubtest

import (
	"maps"
	"net/http"
)

var peopleOperations = []operation{
	{"GET", "/user", "", (*Server).getSelf},
	{"GET", "/users/{username}", "", (*Server).getUser},
	{"GET", "/rate_limit", "", (*Server).getRateLimit},
	{"GET", "/orgs/{org}/teams/{team_slug}", "", (*Server).getTeam},
	{"GET", "/orgs/{org}/teams/{team_slug}/memberships/{username}", "", (*Server).getMembership},
	{"GET", "/repos/{owner}/{repo}/collaborators/{username}/permission", "", (*Server).getPermission},
}

func (s *Server) getSelf(c *call) answer {
	if c.token.app || c.token.account == nil {
		return c.forbidden()
	}
	return ok(s.publicUser(c.token.account))
}

func (s *Server) getUser(c *call) answer {
	a := s.find(c.PathValue("username"))
	if a == nil {
		return notFound
	}
	return ok(s.publicUser(a))
}

func (s *Server) publicUser(a *account) object {
	u := s.user(a)
	for _, name := range []string{"name", "company", "location", "email", "hireable", "bio"} {
		u[name] = nil
	}
	for _, name := range []string{"public_repos", "public_gists", "followers", "following"} {
		u[name] = 0
	}
	u["blog"], u["created_at"], u["updated_at"] = "", stamp(a.created), stamp(a.created)
	return u
}

func (s *Server) getRateLimit(*call) answer {
	rate := func() object {
		return object{"limit": 5000, "remaining": 4999, "used": 1, "reset": s.time().Unix() + 3600}
	}
	return ok(object{"rate": rate(), "resources": object{"core": rate(), "search": rate(), "graphql": rate()}})
}

// seenOrganization is the organization of a path, or why the token does not see
// its teams: an app needs "members", others are members; for the rest there is
// no such team.
func (s *Server) seenOrganization(c *call) (*account, *answer) {
	org := s.find(c.PathValue("org"))
	no := notFound
	switch {
	case org == nil || s.orgs[org.id] == nil:
		return nil, &no
	case c.token.app && !c.token.has("members", "read"):
		no = c.forbidden()
		return nil, &no
	case !c.token.app && !s.belongs(c.token.account, s.orgs[org.id]):
		return nil, &no
	}
	return org, nil
}

func (s *Server) getMembership(c *call) answer {
	org, no := s.seenOrganization(c)
	if no != nil {
		return *no
	}
	slug := c.PathValue("team_slug")
	a := s.find(c.PathValue("username"))
	if a == nil || s.orgs[org.id].teams[slug][a.id] == "" {
		return notFound
	}
	return ok(object{
		"url": s.at("/orgs/%s/teams/%s/memberships/%s", org.login, slug, a.login), "role": "member", "state": s.orgs[org.id].teams[slug][a.id],
	})
}

func (s *Server) getTeam(c *call) answer {
	org, no := s.seenOrganization(c)
	if no != nil {
		return *no
	}
	slug := c.PathValue("team_slug")
	members, known := s.orgs[org.id].teams[slug]
	if !known {
		return notFound
	}
	self := s.at("/orgs/%s/teams/%s", org.login, slug)
	about := s.organization(org)
	for _, name := range []string{"public_repos", "public_gists", "followers", "following"} {
		about[name] = 0
	}
	maps.Copy(about, object{
		"html_url": s.URL + "/" + org.login, "type": "Organization", "has_organization_projects": false, "has_repository_projects": false,
		"created_at": stamp(org.created), "updated_at": stamp(org.created), "archived_at": nil,
	})
	return ok(object{
		"id": org.id + 1_000_000, "node_id": nodeID("T", org.id), "name": slug, "slug": slug, "description": nil, "privacy": "closed", "permission": "pull",
		"url": self, "html_url": s.URL + "/orgs/" + org.login + "/teams/" + slug, "members_url": self + "/members{/member}", "repositories_url": self + "/repos",
		"type": "organization", "created_at": stamp(org.created), "updated_at": stamp(org.created), "members_count": len(members), "repos_count": 0,
		"organization": about, "parent": nil,
	})
}

func (s *Server) belongs(a *account, o *organization) bool {
	if a == nil {
		return false
	}
	for _, members := range o.teams {
		if members[a.id] == "active" {
			return true
		}
	}
	return false
}

// getPermission answers 404 for who is no human: "x is not a user".
func (s *Server) getPermission(c *call) answer {
	if !c.token.app && (c.token.account == nil || !atLeast(s.permission(c.repo, c.token.account), "write")) {
		return refuse(http.StatusForbidden, "Must have push access to view collaborator permission.")
	}
	a := s.find(c.PathValue("username"))
	if a == nil || a.kind != "User" {
		return refuse(http.StatusNotFound, c.PathValue("username")+" is not a user")
	}
	role, base := s.roleName(c.repo, a), s.permission(c.repo, a)
	u := s.user(a)
	u["permissions"], u["role_name"] = permissions(base), role
	return ok(object{"permission": legacy(base), "role_name": role, "user": u})
}
