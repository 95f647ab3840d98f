package githubtest

import (
	"fmt"
	"strings"
)

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
	if a := g.byEmail(by.email); a != nil && a.kind != "Organization" {
		n.fields["user"] = g.asUser(a)
	}
	return n
}
