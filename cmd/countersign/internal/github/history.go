package github

import (
	"context"
	"slices"
)

const (
	maxIDs   = 100  // nodes that GitHub takes in one query
	maxEdits = 1000 // of one statement
)

// edits are a statement's versions, newest first. GitHub's schema calls diff a
// summary of the changes; what it holds is the whole text of that version (seen
// in the importers of several public projects), null where somebody deleted the
// version. The list is empty for what was never edited, and else begins, at its
// far end, with the first text.
type edits struct {
	ID    string `json:"id"`
	Edits *page[struct {
		Diff *string `json:"diff"`
	}] `json:"userContentEdits"`
}

// histories returns the earlier texts, oldest first, by node id, of what people
// wrote and was edited. What an app wrote counts in no version of it, and
// comments of ours have hundreds.
func (c *Client) histories(ctx context.Context, op string, all []said) (map[string][]string, error) {
	bodies := map[string]string{}
	var ids []string
	for _, s := range all {
		if s.edited() && s.Author.actor().Kind == "user" {
			bodies[s.ID] = s.Body
			ids = append(ids, s.ID)
		}
	}
	out := map[string][]string{}
	for some := range slices.Chunk(ids, maxIDs) {
		got, err := c.edits(ctx, op, some, nil)
		if err != nil {
			return nil, err
		}
		for i, id := range some {
			texts, err := c.versions(ctx, op, id, got[i])
			if err != nil {
				return nil, err
			}
			out[id] = earlier(texts, bodies[id])
		}
	}
	return out, nil
}

// edits reads one page of the history of each node, in the order of the ids.
func (c *Client) edits(ctx context.Context, op string, ids []string, after any) ([]*edits, error) {
	got, err := ask[struct{ Nodes []*edits }](ctx, c, op, queryHistories, map[string]any{"ids": ids, "after": after})
	if isKind(err, KindNotFound) {
		return nil, changed("the statements")
	}
	if err != nil {
		return nil, err
	}
	if len(got.Nodes) != len(ids) {
		return nil, unusable("the histories are not those that were asked for")
	}
	for i, n := range got.Nodes {
		if n == nil {
			return nil, changed("the statements")
		}
		if n.ID != ids[i] {
			return nil, unusable("the histories are not those that were asked for")
		}
	}
	return got.Nodes, nil
}

// versions reads the rest of one history and returns all texts, newest first.
func (c *Client) versions(ctx context.Context, op, id string, first *edits) ([]string, error) {
	var versions list[struct {
		Diff *string `json:"diff"`
	}]
	if err := versions.add(first.Edits); err != nil {
		return nil, err
	}
	for !versions.done {
		if len(versions.nodes) >= maxEdits {
			return nil, unusable("a statement was edited more than %d times", maxEdits)
		}
		got, err := c.edits(ctx, op, []string{id}, versions.cursor)
		if err != nil {
			return nil, err
		}
		if err := versions.add(got[0].Edits); err != nil {
			return nil, err
		}
	}
	if !versions.whole() {
		return nil, changed("the statements")
	}
	var texts []string
	for _, v := range versions.nodes {
		if v.Diff != nil {
			texts = append(texts, *v.Diff)
		}
	}
	return texts, nil
}

// earlier turns a history around and leaves out the text that stands now.
func earlier(newestFirst []string, body string) []string {
	if len(newestFirst) > 0 && newestFirst[0] == body {
		newestFirst = newestFirst[1:]
	}
	out := slices.Clone(newestFirst)
	slices.Reverse(out)
	return out
}
