package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
)

// addTool makes a tool of what a call does with its arguments, the fields of P.
func addTool[P any](s *service, t sdk.Tool, do func(c *call, ctx context.Context, args P) (any, error)) {
	places := s.work
	if t.Name == waitTool {
		places = s.waits
	}
	s.server.AddTool(&t, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		p, doc, err := s.do(ctx, places, func(c *call, ctx context.Context) (any, error) {
			if token := req.Params.GetProgressToken(); token != nil {
				c.tell = func(message string, done, total float64) {
					_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Message: message, Progress: done, Total: total})
				}
			}
			var args P
			if err := decode(req.Params.Arguments, &args); err != nil {
				return nil, err
			}
			return do(c, ctx, args)
		})
		if err != nil {
			return failed(p, err)
		}
		return answer(doc), nil
	})
}

// answer is a document as data, and as text for clients that read no data.
func answer(doc json.RawMessage) *sdk.CallToolResult {
	return &sdk.CallToolResult{StructuredContent: doc, Content: []sdk.Content{&sdk.TextContent{Text: string(doc)}}}
}

// decode reads a tool's arguments. They are written again before they are decoded, as
// encoding/json takes a member in another letter case for the same, and the last of two; what
// is no text, it would replace.
func decode(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	doc, err := canon.Parse(raw)
	if err == nil && !isText(doc) {
		err = errors.New("arguments: half of a surrogate pair is no character")
	}
	if err == nil {
		raw, err = canon.Marshal(doc)
	}
	if err == nil {
		err = Decode("arguments", raw, into)
	}
	if err != nil {
		return &ArgumentError{err.Error()}
	}
	return nil
}

// isText reports whether all strings of a document are UTF-8.
func isText(doc any) bool {
	switch doc := doc.(type) {
	case string:
		return utf8.ValidString(doc)
	case []any:
		return !slices.ContainsFunc(doc, func(item any) bool { return !isText(item) })
	case map[string]any:
		for name, value := range doc {
			if !isText(name) || !isText(value) {
				return false
			}
		}
	}
	return true
}

// failed is an error as an agent sees it: a result that says what to mend.
func failed(p Program, err error) (*sdk.CallToolResult, error) {
	exit, hint, message := p.Failure(err)
	doc := map[string]any{"error": message.String(), "exit": exit}
	if hint != "" {
		doc["hint"] = hint
	}
	about(err, doc)
	if doc["rule"] == "uncommitted" {
		doc["hint"] = "propose_worktree proposes what the working tree has, with the changes that are there"
	}
	clean, err := p.Redacted(doc)
	if err != nil {
		return nil, err
	}
	result := answer(clean)
	result.IsError = true
	return result, nil
}

// about puts into doc which rule an error is of, and the path and the line that it is
// about, as far as it has them.
func about(err error, doc map[string]any) {
	var limit *pipeline.LimitError
	var found *redact.FoundError
	var denied *pipeline.DeniedError
	var dirty *effect.DirtyError
	var corrupt *ledger.CorruptError
	var unfit *patch.Error
	put := func(rule, path string, line int) {
		doc["rule"] = rule
		if path != "" {
			doc["path"] = path
		}
		if line > 0 {
			doc["line"] = line
		}
	}
	switch {
	case errors.As(err, new(*ArgumentError)), errors.Is(err, input.ErrFormat):
		put("arguments", "", 0)
	case errors.As(err, &limit):
		put("limits."+limit.What, "", 0)
	case errors.As(err, &found):
		put("secrets", found.Found[0].Path, found.Found[0].Line)
	case errors.As(err, &denied):
		put("denied", "", 0)
		if denied.In != "" {
			doc["transaction_id"] = denied.In
		}
	case errors.As(err, &dirty):
		put("uncommitted", dirty.Files[0], 0)
	case errors.As(err, new(policy.Problems)):
		put("policy", policy.Path, 0)
	case errors.As(err, &corrupt):
		put("record", "", 0)
		doc["transaction_id"] = corrupt.ID
	case errors.Is(err, patch.ErrUnchanged):
		put("unchanged", "", 0)
	case errors.As(err, &unfit):
		put("patch", unfit.Path, unfit.Line)
	case errors.Is(err, errBug):
		put("bug", "", 0)
	}
}
