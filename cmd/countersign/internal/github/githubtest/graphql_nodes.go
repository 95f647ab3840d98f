package githubtest

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// A graph is what GraphQL shows to a token.
type graph struct {
	*Server
	token *token
}

func (g *graph) query() *node {
	return &node{"Query", object{
		"repository": resolver(g.repositoryNamed), "viewer": g.viewer(),
		"user": resolver(func(a map[string]any) any { return g.accountNamed(word(a["login"]), "User") }),
		"organization": resolver(func(a map[string]any) any {
			return g.accountNamed(word(a["login"]), "Organization")
		}),
		"node":      resolver(func(a map[string]any) any { return g.byNodeID(word(a["id"])) }),
		"nodes":     resolver(g.byNodeIDs),
		"rateLimit": &node{"RateLimit", object{"limit": 5000, "cost": 1, "remaining": 4999, "used": 1, "nodeCount": 1, "resetAt": stamp(g.time().Add(time.Hour))}},
	}}
}

// viewer is who asks. An app's installation is shown as a User with the bot's
// number and its login with the suffix, here alone.
func (g *graph) viewer() *node {
	return g.asUser(g.token.account)
}

// asUser is an account where the schema has a User: the login of a bot keeps its
// suffix there.
func (g *graph) asUser(a *account) *node {
	n := &node{"User", maps.Clone(g.accountNode(a).fields)}
	n.fields["login"] = a.login
	return n
}

func (g *graph) accountNamed(login, kind string) any {
	a := g.find(login)
	if a == nil || a.kind != kind {
		return fieldProblem{"NOT_FOUND", fmt.Sprintf("Could not resolve to a %s with the login of '%s'.", kind, login)}
	}
	return g.accountNode(a)
}

func (g *graph) repositoryNamed(a map[string]any) any {
	name := word(a["owner"]) + "/" + word(a["name"])
	r := g.findRepository(name)
	if r == nil || !g.sees(g.token, r) {
		return fieldProblem{"NOT_FOUND", fmt.Sprintf("Could not resolve to a Repository with the name '%s'.", name)}
	}
	return g.repositoryNode(r)
}

// actor is an account as an author, null once it is deleted.
func (g *graph) actor(a *account) any {
	if a == nil || a.deleted {
		return nil
	}
	return g.accountNode(a)
}

// accountNode is an account. The login of a bot has no suffix here.
func (g *graph) accountNode(a *account) *node {
	login := strings.TrimSuffix(a.login, "[bot]")
	return &node{a.kind, object{
		"login": login, "databaseId": a.id, "id": nodeID("U", a.id), "url": g.URL + "/" + login, "resourcePath": "/" + login,
		"avatarUrl": g.URL + "/avatar", "name": nil, "email": "", "createdAt": stamp(a.created), "isSiteAdmin": false,
	}}
}

func (g *graph) repositoryNode(r *repository) *node {
	return &node{"Repository", object{
		"databaseId": r.id, "id": nodeID("R", r.id), "name": r.name, "nameWithOwner": r.fullName(), "owner": g.accountNode(r.owner),
		"url": g.URL + "/" + r.fullName(), "isPrivate": r.private, "isFork": r.parent != nil, "isArchived": false,
		"defaultBranchRef": resolver(func(map[string]any) any { return g.refNode(r, "main") }),
		"pullRequest":      resolver(func(a map[string]any) any { return g.pullNumbered(r, a) }),
		"pullRequests":     resolver(func(a map[string]any) any { return g.pullsWhere(r, a) }),
		"ref": resolver(func(a map[string]any) any {
			return g.refNode(r, strings.TrimPrefix(word(a["qualifiedName"]), "refs/heads/"))
		}),
	}}
}

func (g *graph) refNode(r *repository, branch string) *node {
	tip := r.ref("refs/heads/" + branch)
	if tip == "" {
		return nil
	}
	return &node{"Ref", object{"name": branch, "prefix": "refs/heads/", "id": "REF_" + branch, "target": g.commitOf(r, tip)}}
}

func (g *graph) pullNumbered(r *repository, a map[string]any) any {
	n, _ := number(a["number"])
	p := r.findPull(n)
	switch {
	case p == nil:
		return fieldProblem{"NOT_FOUND", fmt.Sprintf("Could not resolve to a PullRequest with the number of %d.", n)}
	case !g.may(g.token, r, "pull_requests", "read"):
		return fieldProblem{"FORBIDDEN", "Resource not accessible by integration"}
	}
	return g.pullNode(p)
}
