package githubtest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A graph is what GraphQL shows to a token.
type graph struct {
	*Server
	token *token
}

func (g *graph) query() *node {
	return &node{"Query", object{
		"repository": resolver(g.repositoryNamed), "viewer": g.asUser(g.token.account),
		"node":  resolver(func(a map[string]any) any { return g.byNodeID(word(a["id"])) }),
		"nodes": resolver(g.byNodeIDs),
	}}
}

func (g *graph) mutation() *node {
	return &node{"Mutation", object{"resolveReviewThread": resolver(g.resolveThread)}}
}

// resolveThread resolves a thread. An app needs contents: write beside
// pull_requests: write for that.
func (g *graph) resolveThread(a map[string]any) any {
	input, _ := a["input"].(map[string]any)
	id := word(input["threadId"])
	for _, p := range g.pulls() {
		for _, t := range p.threads {
			switch {
			case nodeID("PRRT", t.id) != id || !g.sees(g.token, p.repo):
			case !g.may(g.token, p.repo, "pull_requests", "write") || !g.may(g.token, p.repo, "contents", "write"):
				return forbiddenField
			default:
				t.resolved = true
				return &node{"ResolveReviewThreadPayload", object{"thread": g.threadNode(t)}}
			}
		}
	}
	return noNode("node with the global id of '%s'", id)
}

var forbiddenField = fieldProblem{"FORBIDDEN", "Resource not accessible by integration"}

// noNode is the answer to who asks for what is not there, or what the token does
// not see.
func noNode(format string, a ...any) fieldProblem {
	return fieldProblem{"NOT_FOUND", "Could not resolve to a " + fmt.Sprintf(format, a...)}
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
	for _, p := range g.conversations() {
		if !g.sees(g.token, p.repo) {
			continue
		}
		if nodeID("PR", p.id) == id {
			return g.pullNode(p)
		}
		for _, t := range p.threads {
			if nodeID("PRRT", t.id) == id {
				return g.threadNode(t)
			}
		}
		for _, c := range p.allComments() {
			if c.nodeID() == id {
				return g.commentNode(c)
			}
		}
		for _, v := range p.reviewsFor(g.token) {
			if nodeID("PRR", v.id) == id {
				return g.reviewNode(v)
			}
		}
	}
	return noNode("node with the global id of '%s'", id)
}

// connection pages through what all returns. A cursor is the number of an entry,
// which rises: of what is written its own, else its place.
func connection[T any](kind string, all func() []T, render func(T) *node) resolver {
	key := func(i int, one T) int64 {
		if numbered, ok := any(one).(interface{ cursor() int64 }); ok {
			return numbered.cursor()
		}
		return int64(i + 1)
	}
	return func(arguments map[string]any) any {
		list := all()
		// place is the index of the first entry from a number on.
		place := func(from int64) int {
			for i, one := range list {
				if key(i, one) >= from {
					return i
				}
			}
			return len(list)
		}
		from, to := 0, len(list)
		if after, ok := fromCursor(arguments["after"]); ok {
			from = place(after + 1)
		} else if text := word(arguments["after"]); text != "" {
			return fieldProblem{"INVALID_CURSOR_ARGUMENTS", "`" + text + "` does not appear to be a valid cursor."}
		}
		if before, ok := fromCursor(arguments["before"]); ok {
			to = place(before)
		}
		if first, ok := number(arguments["first"]); ok {
			to = min(to, from+first)
		} else if last, ok := number(arguments["last"]); ok {
			from = max(from, to-last)
		}
		to = max(from, to)
		nodes := []any{}
		for _, one := range list[from:to] {
			nodes = append(nodes, render(one))
		}
		info := &node{"PageInfo", object{"hasNextPage": to < len(list), "endCursor": nil}}
		if from < to {
			info.fields["endCursor"] = toCursor(key(to-1, list[to-1]))
		}
		return &node{kind + "Connection", object{"totalCount": len(list), "nodes": nodes, "pageInfo": info}}
	}
}

func toCursor(key int64) string {
	return base64.StdEncoding.EncodeToString([]byte("cursor:" + strconv.FormatInt(key, 10)))
}

func fromCursor(v any) (int64, bool) {
	data, err := base64.StdEncoding.DecodeString(word(v))
	if err != nil {
		return 0, false
	}
	key, err := strconv.ParseInt(strings.TrimPrefix(string(data), "cursor:"), 10, 64)
	return key, err == nil
}

// asUser is an account where the schema has a User, as the viewer and the author
// of a commit: an app is shown as one with the bot's number and its login with
// the suffix, there alone.
func (g *graph) asUser(a *account) *node {
	n := &node{"User", maps.Clone(g.accountNode(a).fields)}
	n.fields["login"] = a.login
	return n
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
	return &node{a.kind, object{"login": strings.TrimSuffix(a.login, "[bot]"), "databaseId": a.id, "id": nodeID("U", a.id)}}
}

func (g *graph) repositoryNamed(a map[string]any) any {
	name := word(a["owner"]) + "/" + word(a["name"])
	r := g.findRepository(name)
	if r == nil || !g.sees(g.token, r) {
		return noNode("Repository with the name '%s'.", name)
	}
	return g.repositoryNode(r)
}

func (g *graph) repositoryNode(r *repository) *node {
	return &node{"Repository", object{
		"databaseId": r.id, "id": nodeID("R", r.id), "name": r.name, "nameWithOwner": r.fullName(), "owner": g.accountNode(r.owner), "url": g.URL + "/" + r.fullName(),
		"object": resolver(func(a map[string]any) any { return g.commitOf(r, word(a["oid"])) }),
		"pullRequest": resolver(func(a map[string]any) any {
			n, _ := number(a["number"])
			p := r.findPull(n)
			switch {
			case p == nil:
				return noNode("PullRequest with the number of %d.", n)
			case !g.may(g.token, r, "pull_requests", "read"):
				return forbiddenField
			}
			return g.pullNode(p)
		}),
		"pullRequests": resolver(func(a map[string]any) any {
			if !g.may(g.token, r, "pull_requests", "read") {
				return forbiddenField
			}
			return connection("PullRequest", func() []*pull { return r.pullsWhere(a) }, g.pullNode)(a)
		}),
	}}
}

// pullsWhere are the pull requests of some states, with a head or base of that
// name.
func (r *repository) pullsWhere(a map[string]any) []*pull {
	states, _ := a["states"].([]any)
	if one, ok := a["states"].(string); ok {
		states = []any{one}
	}
	head, base := word(a["headRefName"]), word(a["baseRefName"])
	return slices.DeleteFunc(slices.Clone(r.pulls), func(p *pull) bool {
		return states != nil && !slices.Contains(states, any(p.stateWord())) || head != "" && head != p.head.ref || base != "" && base != p.base.ref
	})
}

// stateWord is the state as GraphQL tells it.
func (p *pull) stateWord() string {
	if p.merged != nil {
		return "MERGED"
	}
	return strings.ToUpper(p.state())
}

func (g *graph) pullNode(p *pull) *node {
	var head, merge, mergedAt any
	if !p.head.repo.deleted {
		head = g.repositoryNode(p.head.repo)
	}
	if p.merged != nil {
		merge, mergedAt = g.commitOf(p.repo, p.mergeCommit), stamp(*p.merged)
	}
	n := &node{"PullRequest", g.textFields(&p.text)}
	maps.Copy(n.fields, object{
		"id": nodeID("PR", p.id), "number": p.number, "title": p.title, "state": p.stateWord(), "isDraft": p.draft, "url": g.pullURL(p),
		"merged": p.merged != nil, "mergedAt": mergedAt, "mergeCommit": merge, "headRefName": p.head.ref, "headRefOid": p.head.sha, "baseRefName": p.base.ref, "baseRefOid": p.base.sha,
		"headRepository": head, "headRepositoryOwner": g.actor(p.head.repo.owner), "repository": g.repositoryNode(p.repo), "maintainerCanModify": p.edits,
		"reviews":       connection("PullRequestReview", func() []*review { return p.reviewsFor(g.token) }, g.reviewNode),
		"comments":      connection("IssueComment", func() []*comment { return p.comments }, g.commentNode),
		"reviewThreads": connection("PullRequestReviewThread", func() []*thread { return p.threads }, g.threadNode),
		"commits": connection("PullRequestCommit", p.commits, func(c commitInfo) *node {
			return &node{"PullRequestCommit", object{"id": "PRC_" + c.sha, "commit": g.commitNode(c)}}
		}),
		"files": connection("PullRequestChangedFile", p.files, func(path string) *node { return &node{"PullRequestChangedFile", object{"path": path}} }),
	})
	return n
}

// commitOf is a commit, or null if git does not have it.
func (g *graph) commitOf(r *repository, id string) any {
	c, ok := r.info(id)
	if !ok {
		return nil
	}
	return g.commitNode(c)
}

func (g *graph) commitNode(c commitInfo) *node {
	authors := func() []signature {
		all := []signature{c.author}
		for line := range strings.Lines(c.message) {
			if name, address, ok := strings.Cut(strings.TrimSpace(line), " <"); ok && strings.HasPrefix(strings.ToLower(name), "co-authored-by:") {
				all = append(all, signature{email: strings.TrimSuffix(address, ">")})
			}
		}
		return all
	}
	return &node{"Commit", object{
		"id": "C_" + c.sha, "oid": c.sha, "author": g.gitActor(c.author), "committer": g.gitActor(c.committer),
		"authors": connection("GitActor", authors, g.gitActor),
	}}
}

func (g *graph) gitActor(by signature) *node {
	n := &node{"GitActor", object{"user": nil}}
	if a := g.byEmail(by.email); a != nil && a.kind != "Organization" {
		n.fields["user"] = g.asUser(a)
	}
	return n
}

func (t *text) cursor() int64   { return t.id }
func (t *thread) cursor() int64 { return t.id }

// textFields are the fields of everything that somebody wrote.
func (g *graph) textFields(t *text) object {
	return object{
		"fullDatabaseId": strconv.FormatInt(t.id, 10), "author": g.actor(t.author), "body": t.body, "createdAt": stamp(t.created),
		"lastEditedAt": maybe(t.edited), "editor": g.actor(t.editor), "createdViaEmail": t.email, "includesCreatedEdit": len(t.history) > 0, "isMinimized": t.hidden,
		"userContentEdits": g.edits(t),
	}
}

// edits are the edits of a text, the newest first; the last is the first text,
// once there was an edit at all. What was erased is null.
func (g *graph) edits(t *text) resolver {
	newestFirst := func() []int {
		var all []int
		for i := range slices.Backward(t.history) {
			all = append(all, i)
		}
		return all
	}
	return connection("UserContentEdit", newestFirst, func(i int) *node {
		e := t.history[i]
		n := &node{"UserContentEdit", object{"editedAt": stamp(e.at), "editor": g.actor(e.editor), "diff": e.body}}
		if e.erased {
			n.fields["diff"] = nil
		}
		return n
	})
}

func (g *graph) reviewNode(v *review) *node {
	n := &node{"PullRequestReview", g.textFields(&v.text)}
	maps.Copy(n.fields, object{
		"id": nodeID("PRR", v.id), "url": g.reviewURL(v), "state": v.state, "commit": g.commitOf(v.pull.repo, v.commit), "submittedAt": stamp(v.created),
	})
	if v.state == "PENDING" {
		n.fields["submittedAt"] = nil
	}
	return n
}

func (g *graph) threadNode(t *thread) *node {
	return &node{"PullRequestReviewThread", object{
		"id": nodeID("PRRT", t.id), "isResolved": t.resolved,
		"comments": connection("PullRequestReviewComment", func() []*comment { return t.comments }, g.commentNode),
	}}
}

// commentNode is a comment of a conversation, or of a thread.
func (g *graph) commentNode(c *comment) *node {
	n := &node{"IssueComment", g.textFields(&c.text)}
	n.fields["id"], n.fields["url"] = c.nodeID(), g.commentURL(c)
	if c.thread == nil {
		return n
	}
	n.kind = "PullRequestReviewComment"
	maps.Copy(n.fields, object{
		"replyTo": nil, "originalCommit": g.commitOf(c.pull.repo, c.commit),
		"pullRequestReview": &node{"PullRequestReview", object{"id": nodeID("PRR", c.review.id), "state": c.review.state}},
	})
	if to := c.replyTo; to != nil {
		n.fields["replyTo"] = &node{"PullRequestReviewComment", object{"fullDatabaseId": strconv.FormatInt(to.id, 10), "id": to.nodeID()}}
	}
	return n
}
