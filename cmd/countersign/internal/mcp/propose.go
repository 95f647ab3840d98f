package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

type patchParams struct {
	Patch   string `json:"patch"`
	Format  string `json:"format,omitempty"`
	Summary string `json:"summary,omitempty"`

	PullRequest int      `json:"pull_request,omitempty"`
	RequestedBy []string `json:"requested_by,omitempty"`
}

func (c *call) proposePatch(ctx context.Context, p patchParams) (any, error) {
	return c.propose(ctx, p.PullRequest, p.RequestedBy, func() (input.Change, error) { return c.patch(ctx, p.Patch, p.Format, p.Summary) })
}

// patch reads a change in one of the formats that are files. Several diffs are one change,
// as one call proposes one.
func (c *call) patch(ctx context.Context, text, format, summary string) (input.Change, error) {
	if format == input.FormatGHAW {
		return input.Change{}, &ArgumentError{"arguments.format: gh-aw leaves a directory, which is proposed on the command line"}
	}
	rules, err := c.Rules(ctx)
	if err != nil {
		return input.Change{}, err
	}
	if have := int64(len(text)); have > rules.Policy.Limits.Bytes {
		return input.Change{}, &pipeline.LimitError{What: "bytes", Have: have, Max: rules.Policy.Limits.Bytes}
	}
	return input.From(cmp.Or(format, input.FormatAuto), []byte(text), c.Root(), true, summary)
}

type editsParams struct {
	Edits   editList `json:"edits"`
	Summary string   `json:"summary,omitempty"`

	PullRequest int      `json:"pull_request,omitempty"`
	RequestedBy []string `json:"requested_by,omitempty"`
}

// An editList is a list of edits. Some clients send it as a text that holds the list.
type editList []json.RawMessage

func (l *editList) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		doc, err := canon.Parse([]byte(text))
		if list, is := doc.([]any); err != nil || !is || !isText(list) {
			return errors.New("arguments.edits is a text, not a list of edits: propose_patch takes a change as text")
		}
		if raw, err = canon.Marshal(doc); err != nil {
			return err
		}
	}
	return json.Unmarshal(raw, (*[]json.RawMessage)(l))
}

// An editParam is one edit: a text that is in the file exactly once and what takes its
// place, or the whole file.
type editParam struct {
	Path    string  `json:"path"`
	OldText *string `json:"old_text,omitempty"`
	NewText *string `json:"new_text,omitempty"`
	Content *string `json:"content,omitempty"`
}

func (c *call) proposeEdits(ctx context.Context, p editsParams) (any, error) {
	return c.propose(ctx, p.PullRequest, p.RequestedBy, func() (input.Change, error) { return c.edits(ctx, p.Edits, p.Summary) })
}

// edits reads edits as the calls of an edit tool, which is one of the formats: so they are
// checked as those are, and recorded as what was given.
func (c *call) edits(ctx context.Context, given []json.RawMessage, summary string) (input.Change, error) {
	if len(given) == 0 {
		return input.Change{}, &ArgumentError{"arguments.edits is empty"}
	}
	calls := []editParam{}
	for i, raw := range given {
		var e editParam
		at := fmt.Sprintf("arguments.edits[%d]", i)
		err := Decode(at, raw, &e)
		if err == nil && ((e.OldText == nil) != (e.NewText == nil) || (e.OldText == nil) == (e.Content == nil)) {
			err = fmt.Errorf("%s has either old_text and new_text, or content", at)
		}
		if err != nil {
			return input.Change{}, &ArgumentError{err.Error()}
		}
		calls = append(calls, e)
	}
	line, err := canon.Marshal(calls)
	if err != nil {
		return input.Change{}, err
	}
	return c.patch(ctx, string(line), input.FormatEdits, summary)
}

type worktreeParams struct {
	Summary string `json:"summary,omitempty"`

	PullRequest int      `json:"pull_request,omitempty"`
	RequestedBy []string `json:"requested_by,omitempty"`
}

func (c *call) proposeWorktree(ctx context.Context, p worktreeParams) (any, error) {
	return c.propose(ctx, p.PullRequest, p.RequestedBy, func() (input.Change, error) { return c.WorktreeInput(ctx, p.Summary) })
}

// propose records a proposal, by the one way that all proposals go. One for a pull request is for the remote's ledger, which is
// opened before the change is read.
func (c *call) propose(ctx context.Context, pullRequest int, requestedBy []string, read func() (input.Change, error)) (any, error) {
	if pullRequest < 0 {
		return nil, &ArgumentError{"arguments.pull_request is no pull request's number"}
	}
	if pullRequest > 0 {
		if err := c.share(); err != nil {
			return nil, err
		}
	}
	in, err := read()
	if err == nil && pullRequest > 0 {
		in, err = c.ForPull(ctx, in, pullRequest)
	}
	if err != nil {
		return nil, err
	}
	in.Via = input.ViaMCP
	if in.RequestedBy, err = input.NamedAll(requestedBy, ledger.AskedByMCP); err != nil {
		return nil, &ArgumentError{"arguments.requested_by " + err.Error()}
	}
	done, err := c.Review(ctx, in, false)
	c.Learn(done.Learnt)
	if err != nil {
		return nil, err
	}
	doc, err := c.state(ctx, done.Ledger, done.ID)
	if err != nil {
		return nil, err
	}
	doc["known"], doc["supersedes"] = done.Known, append([]string{}, done.Supersedes...)
	if in.Format != "" {
		doc["format"] = in.Format
	}
	return doc, nil
}
