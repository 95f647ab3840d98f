package githubtest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func (t *text) cursor() int64   { return t.id }
func (t *thread) cursor() int64 { return t.id }

// textFields are the fields of everything that somebody wrote.
func (g *graph) textFields(t *text) object {
	return object{
		"databaseId": t.id, "fullDatabaseId": strconv.FormatInt(t.id, 10), "author": g.actor(t.author), "body": t.body, "bodyText": t.body,
		"createdAt": stamp(t.created), "publishedAt": stamp(t.created), "updatedAt": stamp(t.updated), "lastEditedAt": maybe(t.edited),
		"editor": g.actor(t.editor), "createdViaEmail": t.email, "includesCreatedEdit": len(t.history) > 0, "isMinimized": t.hidden,
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
		n := &node{"UserContentEdit", object{
			"id": fmt.Sprintf("UCE_%d_%d", t.id, i), "createdAt": stamp(e.at), "editedAt": stamp(e.at), "updatedAt": stamp(e.at),
			"editor": g.actor(e.editor), "diff": e.body, "deletedAt": nil, "deletedBy": nil,
		}}
		if e.erased {
			n.fields["diff"], n.fields["deletedAt"], n.fields["deletedBy"] = nil, stamp(e.at), g.actor(e.editor)
		}
		return n
	})
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

func (g *graph) threadNode(t *thread) *node {
	first := t.comments[0]
	return &node{"PullRequestReviewThread", object{
		"id": nodeID("PRRT", t.id), "isResolved": t.resolved != nil, "resolvedBy": g.actor(t.resolved), "path": first.path,
		"subjectType": strings.ToUpper(first.subject), "isOutdated": first.commit != t.pull.head.sha, "isCollapsed": t.resolved != nil,
		"comments": connection("PullRequestReviewComment", func() []*comment { return t.comments }, g.commentNode),
	}}
}

// commentNode is a comment of a conversation, or of a thread.
func (g *graph) commentNode(c *comment) *node {
	n := &node{"IssueComment", g.textFields(&c.text)}
	n.fields["id"], n.fields["url"], n.fields["authorAssociation"] = c.nodeID(), g.commentURL(c), g.association(c.pull.repo, c.author)
	if c.thread == nil {
		return n
	}
	n.kind = "PullRequestReviewComment"
	maps.Copy(n.fields, object{
		"path": c.path, "replyTo": nil, "originalCommit": g.commitOf(c.pull.repo, c.commit),
		"commit": g.commitOf(c.pull.repo, c.pull.head.sha), "subjectType": strings.ToUpper(c.subject), "diffHunk": c.diffHunk,
		"outdated": c.commit != c.pull.head.sha, "state": "SUBMITTED",
		"pullRequestReview": &node{"PullRequestReview", object{
			"databaseId": c.review.id, "fullDatabaseId": strconv.FormatInt(c.review.id, 10), "id": nodeID("PRR", c.review.id), "state": c.review.state,
		}},
	})
	if to := c.replyTo; to != nil {
		n.fields["replyTo"] = &node{"PullRequestReviewComment", object{
			"databaseId": to.id, "fullDatabaseId": strconv.FormatInt(to.id, 10), "id": to.nodeID(), "url": g.commentURL(to), "body": to.body,
			"author": g.actor(to.author),
		}}
	}
	return n
}
