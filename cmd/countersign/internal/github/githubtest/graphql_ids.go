package githubtest

import "fmt"

func (g *graph) mutation() *node {
	return &node{"Mutation", object{
		"resolveReviewThread":   resolver(func(a map[string]any) any { return g.resolve("ResolveReviewThreadPayload", a, g.token.account) }),
		"unresolveReviewThread": resolver(func(a map[string]any) any { return g.resolve("UnresolveReviewThreadPayload", a, nil) }),
	}}
}

// resolve resolves a thread. An app needs contents: write beside pull_requests:
// write for that.
func (g *graph) resolve(kind string, a map[string]any, by *account) any {
	input, _ := a["input"].(map[string]any)
	t := g.thread(word(input["threadId"]))
	switch {
	case t == nil || !g.sees(g.token, t.pull.repo):
		return fieldProblem{"NOT_FOUND", "Could not resolve to a node with the global id of '" + word(input["threadId"]) + "'"}
	case !g.may(g.token, t.pull.repo, "pull_requests", "write") || !g.may(g.token, t.pull.repo, "contents", "write"):
		return fieldProblem{"FORBIDDEN", "Resource not accessible by integration"}
	}
	t.resolved = by
	return &node{kind, object{"thread": g.threadNode(t), "clientMutationId": input["clientMutationId"]}}
}

func (g *graph) thread(id string) *thread {
	for _, p := range g.pulls() {
		for _, t := range p.threads {
			if nodeID("PRRT", t.id) == id {
				return t
			}
		}
	}
	return nil
}

// maxIDs is how many ids one request for nodes may have.
const maxIDs = 100

func (g *graph) byNodeIDs(a map[string]any) any {
	ids, _ := a["ids"].([]any)
	if len(ids) > maxIDs {
		return fieldProblem{"ARGUMENT_LIMIT", fmt.Sprintf("You may not provide more than %d node ids; you provided %d.", maxIDs, len(ids))}
	}
	var all []any
	for _, id := range ids {
		all = append(all, g.byNodeID(word(id)))
	}
	return all
}

// byNodeID is a thread or what stands in one, a comment, a review or a pull
// request, where the token sees it.
func (g *graph) byNodeID(id string) any {
	for _, p := range g.pulls() {
		if !g.sees(g.token, p.repo) {
			continue
		}
		if n := g.nodeOf(p, id); n != nil {
			return n
		}
	}
	return fieldProblem{"NOT_FOUND", "Could not resolve to a node with the global id of '" + id + "'"}
}

func (g *graph) nodeOf(p *pull, id string) *node {
	if nodeID("PR", p.id) == id {
		return g.pullNode(p)
	}
	for _, t := range p.threads {
		if nodeID("PRRT", t.id) == id {
			return g.threadNode(t)
		}
	}
	for _, c := range p.allComments() {
		if nodeID("IC", c.id) == id && c.thread == nil || nodeID("PRRC", c.id) == id && c.thread != nil {
			return g.commentNode(c)
		}
	}
	for _, v := range p.reviewsFor(g.token) {
		if nodeID("PRR", v.id) == id {
			return g.reviewNode(v)
		}
	}
	return nil
}
