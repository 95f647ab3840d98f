package githubtest

import (
	"maps"
	"slices"
	"strings"
)

// pullsWhere are the pull requests of some states, with a head or base of that
// name. An app without the permission sees none in private.
func (g *graph) pullsWhere(r *repository, a map[string]any) any {
	if !g.may(g.token, r, "pull_requests", "read") {
		return fieldProblem{"FORBIDDEN", "Resource not accessible by integration"}
	}
	states, _ := a["states"].([]any)
	if one, ok := a["states"].(string); ok {
		states = []any{one}
	}
	head, base := word(a["headRefName"]), word(a["baseRefName"])
	var all []keyed
	for _, p := range r.pulls {
		if (states == nil || slices.Contains(states, any(p.stateWord()))) && (head == "" || head == p.head.ref) && (base == "" || base == p.base.ref) {
			all = append(all, keyed{int64(p.number), g.pullNode(p)})
		}
	}
	return connection("PullRequestConnection", all)(a)
}

// stateWord is the state as GraphQL tells it.
func (p *pull) stateWord() string {
	if p.merged != nil {
		return "MERGED"
	}
	return strings.ToUpper(p.state())
}

func (g *graph) pullNode(p *pull) *node {
	var head, merge any
	if !p.head.repo.deleted {
		head = g.repositoryNode(p.head.repo)
	}
	if p.merged != nil {
		merge = g.commitOf(p.repo, p.mergeCommit)
	}
	n := &node{"PullRequest", g.textFields(&p.text)}
	maps.Copy(n.fields, object{
		"id": nodeID("PR", p.id), "number": p.number, "title": p.title, "state": p.stateWord(), "isDraft": p.draft, "url": g.pullURL(p), "closed": p.closed != nil,
		"merged": p.merged != nil, "mergedAt": maybe(p.merged), "closedAt": maybe(p.closed), "mergeCommit": merge, "mergedBy": g.actor(p.mergedBy),
		"headRefName": p.head.ref, "headRefOid": p.head.sha, "baseRefName": p.base.ref, "baseRefOid": p.base.sha,
		"headRepository": head, "headRepositoryOwner": g.actor(p.head.repo.owner), "baseRepository": g.repositoryNode(p.repo), "repository": g.repositoryNode(p.repo),
		"isCrossRepository": p.fork(), "maintainerCanModify": p.edits, "locked": false,
		"authorAssociation": g.association(p.repo, p.author),
		// What takes git or many nodes is made when it is asked for.
		"reviews":       resolver(func(a map[string]any) any { return g.reviews(p)(a) }),
		"comments":      resolver(func(a map[string]any) any { return g.comments("IssueComment", p.comments)(a) }),
		"reviewThreads": resolver(func(a map[string]any) any { return g.threads(p)(a) }),
		"commits":       resolver(func(a map[string]any) any { return g.commits(p)(a) }),
		"files":         resolver(func(a map[string]any) any { return g.files(p)(a) }),
		"changedFiles":  resolver(func(map[string]any) any { return len(p.files()) }),
	})
	return n
}
