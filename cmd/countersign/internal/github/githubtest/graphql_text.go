package githubtest

import (
	"maps"
	"slices"
	"strconv"
)

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
