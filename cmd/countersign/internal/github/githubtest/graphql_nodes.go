package githubtest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	n := g.accountNode(g.token.account)
	viewer := &node{"User", maps.Clone(n.fields)}
	viewer.fields["login"] = g.token.account.login
	return viewer
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

// textFields are the fields of everything that somebody wrote.
func (g *graph) textFields(t *text) object {
	return object{
		"databaseId": t.id, "fullDatabaseId": strconv.FormatInt(t.id, 10), "author": g.actor(t.author), "body": t.body, "bodyText": t.body,
		"createdAt": stamp(t.created), "publishedAt": stamp(t.created), "updatedAt": stamp(t.updated), "lastEditedAt": maybe(t.edited),
		"editor": g.actor(t.editor), "createdViaEmail": t.email, "includesCreatedEdit": len(t.history) > 0, "isMinimized": false,
		"userContentEdits": g.edits(t),
	}
}

// edits are the edits of a text, the newest first; the last is the first text,
// once there was an edit at all. What was erased is null.
func (g *graph) edits(t *text) resolver {
	var all []*node
	for i, e := range slices.Backward(t.history) {
		n := &node{"UserContentEdit", object{
			"id": fmt.Sprintf("UCE_%d_%d", t.id, i), "createdAt": stamp(e.at), "editedAt": stamp(e.at), "updatedAt": stamp(e.at), "editor": g.actor(e.editor),
			"diff": e.body, "deletedAt": nil, "deletedBy": nil,
		}}
		if e.erased {
			n.fields["diff"], n.fields["deletedAt"], n.fields["deletedBy"] = nil, stamp(e.at), g.actor(e.editor)
		}
		all = append(all, n)
	}
	return connection("UserContentEditConnection", inOrder(all))
}

func (g *graph) reviews(p *pull) resolver {
	var all []keyed
	for _, v := range p.reviewsFor(g.token) {
		all = append(all, keyed{v.id, g.reviewNode(v)})
	}
	return connection("PullRequestReviewConnection", all)
}

func (g *graph) reviewNode(v *review) *node {
	n := &node{"PullRequestReview", g.textFields(&v.text)}
	maps.Copy(n.fields, object{
		"id": nodeID("PRR", v.id), "url": g.reviewURL(v), "state": v.state, "commit": g.commitOf(v.pull.repo, v.commit), "submittedAt": stamp(v.created),
		"authorAssociation": g.association(v.pull.repo, v.author),
	})
	if v.state == "PENDING" {
		n.fields["submittedAt"] = nil
	}
	return n
}

// commitOf is a commit, or null if git does not have it.
func (g *graph) commitOf(r *repository, id string) any {
	c, ok := r.info(id)
	if !ok {
		return nil
	}
	return g.commitNode(r, c)
}

func (g *graph) threads(p *pull) resolver {
	var all []keyed
	for _, t := range p.threads {
		all = append(all, keyed{t.id, g.threadNode(t)})
	}
	return connection("PullRequestReviewThreadConnection", all)
}

func (g *graph) threadNode(t *thread) *node {
	first := t.comments[0]
	return &node{"PullRequestReviewThread", object{
		"id": nodeID("PRRT", t.id), "isResolved": t.resolved != nil, "resolvedBy": g.actor(t.resolved), "path": first.path,
		"subjectType": strings.ToUpper(first.subject), "isOutdated": first.commit != t.pull.head.sha, "isCollapsed": t.resolved != nil,
		"comments": g.comments("PullRequestReviewComment", t.comments),
	}}
}

func (g *graph) comments(kind string, comments []*comment) resolver {
	var all []keyed
	for _, c := range comments {
		all = append(all, keyed{c.id, g.commentNode(c)})
	}
	return connection(kind+"Connection", all)
}

func (g *graph) commentNode(c *comment) *node {
	n := &node{"IssueComment", g.textFields(&c.text)}
	n.fields["id"], n.fields["url"], n.fields["authorAssociation"] = nodeID("IC", c.id), g.commentURL(c), g.association(c.pull.repo, c.author)
	if c.thread != nil {
		n.kind = "PullRequestReviewComment"
		maps.Copy(n.fields, g.threadFields(c))
	}
	return n
}

// threadFields are the fields that only review comments have.
func (g *graph) threadFields(c *comment) object {
	fields := object{
		"id": nodeID("PRRC", c.id), "path": c.path, "replyTo": nil, "originalCommit": g.commitOf(c.pull.repo, c.commit),
		"commit": g.commitOf(c.pull.repo, c.pull.head.sha), "subjectType": strings.ToUpper(c.subject), "diffHunk": c.diffHunk,
		"outdated": c.commit != c.pull.head.sha, "state": "SUBMITTED",
		"pullRequestReview": &node{"PullRequestReview", object{
			"databaseId": c.review.id, "fullDatabaseId": strconv.FormatInt(c.review.id, 10), "id": nodeID("PRR", c.review.id), "state": c.review.state,
		}},
	}
	if to := c.replyTo; to != nil {
		fields["replyTo"] = &node{"PullRequestReviewComment", object{
			"databaseId": to.id, "fullDatabaseId": strconv.FormatInt(to.id, 10), "id": nodeID("PRRC", to.id), "url": g.commentURL(to), "body": to.body,
			"author": g.actor(to.author),
		}}
	}
	return fields
}

func (g *graph) commits(p *pull) resolver {
	var all []*node
	for _, c := range p.commits() {
		all = append(all, &node{"PullRequestCommit", object{"id": "PRC_" + c.sha, "commit": g.commitNode(p.repo, c)}})
	}
	return connection("PullRequestCommitConnection", inOrder(all))
}

func (g *graph) files(p *pull) resolver {
	var all []*node
	for _, f := range p.files() {
		all = append(all, &node{"PullRequestChangedFile", object{
			"path": f.path, "additions": f.added, "deletions": f.deleted, "changeType": changeTypes[f.status], "viewerViewedState": "UNVIEWED",
		}})
	}
	return connection("PullRequestChangedFileConnection", inOrder(all))
}

var changeTypes = map[string]string{
	"added": "ADDED", "modified": "MODIFIED", "removed": "DELETED", "renamed": "RENAMED", "changed": "CHANGED", "copied": "COPIED",
}

func (g *graph) commitNode(r *repository, c commitInfo) *node {
	headline, _, _ := strings.Cut(c.message, "\n")
	url := fmt.Sprintf("%s/%s/commit/%s", g.URL, r.fullName(), c.sha)
	authors := []*node{g.gitActor(c.author)}
	for line := range strings.Lines(c.message) {
		if name, email, ok := coAuthor(line); ok {
			authors = append(authors, g.gitActor(signature{name, email, c.author.date}))
		}
	}
	return &node{"Commit", object{
		"id": "C_" + c.sha, "oid": c.sha, "abbreviatedOid": c.sha[:7], "message": c.message, "messageHeadline": headline, "url": url,
		"author": g.gitActor(c.author), "committer": g.gitActor(c.committer), "authoredDate": c.author.date, "committedDate": c.committer.date,
		"authors": connection("GitActorConnection", inOrder(authors)),
	}}
}

// coAuthor reads a line "Co-authored-by: name <email>".
func coAuthor(line string) (name, email string, ok bool) {
	const label = "co-authored-by: "
	line = strings.TrimSpace(line)
	if len(line) < len(label) || !strings.EqualFold(line[:len(label)], label) {
		return "", "", false
	}
	name, email, ok = strings.Cut(line[len(label):], " <")
	return name, strings.TrimSuffix(email, ">"), ok
}

func (g *graph) gitActor(by signature) *node {
	n := &node{"GitActor", object{"name": by.name, "email": by.email, "date": by.date, "user": nil}}
	if a := g.byEmail(by.email); a != nil && a.kind == "User" {
		n.fields["user"] = g.accountNode(a)
	}
	return n
}

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
