package mcp

import (
	"context"
	"encoding/json"
	"io"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
)

const scratchInstructions = `You work in a scratch tree: edit files in place, run what you like. Nothing of it is written to the person's files until ` +
	`the person has approved it. propose_worktree proposes all that the tree has beyond its commit; then tell the person, and call wait. After a denial, ` +
	`which comes with its reason, change what is asked for and propose again: the new proposal takes the place of the last. No tool approves or applies.`

// standing has the members that say where the proposal of a scratch tree stands.
var standing = result(schema{
	"transaction_id": state["transaction_id"], "patch_id": state["patch_id"], "status": state["status"], "verdict": state["verdict"], "closed": state["closed"],
	"reason": state["reason"], "person": text("how a person decides: tell them"), "decided": flag("there is a decision, or the transaction has ended"),
}, "closed")

// ServeScratch answers a client in a scratch tree. It has no ledger: ask hands the name of a request to whoever made the tree, and
// returns their answer as it is.
func ServeScratch(ctx context.Context, version string, ask func(request string) (json.RawMessage, error), in io.Reader, out io.Writer) error {
	server := sdk.NewServer(&sdk.Implementation{Name: "countersign", Title: "Countersign", Version: version}, &sdk.ServerOptions{Instructions: scratchInstructions})
	answered := func(request string) func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return func(context.Context, json.RawMessage) (json.RawMessage, error) { return ask(request) }
	}
	add := func(t sdk.Tool, do func(context.Context, json.RawMessage) (json.RawMessage, error)) {
		t.OutputSchema = standing
		server.AddTool(&t, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			doc, err := do(ctx, req.Params.Arguments)
			if err != nil {
				if doc, err = json.Marshal(map[string]any{"error": err.Error(), "exit": 1}); err != nil {
					return nil, err
				}
			}
			var failure struct{ Error string }
			r := answer(doc)
			r.IsError = json.Unmarshal(doc, &failure) != nil || failure.Error != ""
			return r, nil
		})
	}
	add(sdk.Tool{
		Name: "propose_worktree", Annotations: proposes("Propose what the scratch tree has"), InputSchema: object(schema{}),
		Description: "Propose all that the scratch tree has beyond its commit: files changed, added (unless ignored) and deleted. " +
			"It takes the place of what was proposed of it before and still waits.",
	}, answered("propose"))
	add(sdk.Tool{
		Name: "status", Annotations: looks("Where the proposal stands"), InputSchema: object(schema{}),
		Description: "Say where the last proposal of this scratch tree stands; if it was denied, why.",
	}, answered("status"))
	add(sdk.Tool{
		Name: waitTool, Annotations: looks("Wait for a decision"),
		InputSchema: object(schema{
			"seconds": schema{"type": "number", "minimum": 0, "maximum": waitLongest.Seconds(), "description": "how long to wait; 50 if left out"},
		}),
		Description: `Wait until a person has decided about the last proposal, or the time is over: then "decided" is false, and you may wait again.`,
	}, func(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
		var p struct {
			Seconds *float64 `json:"seconds,omitempty"`
		}
		if err := decode(raw, &p); err != nil {
			return nil, err
		}
		return waitScratch(ctx, p.Seconds, answered("status"))
	})
	return server.Run(ctx, streams{in, out})
}

// waitScratch asks again and again until there is a decision, an error, or the time is over.
func waitScratch(ctx context.Context, seconds *float64, status func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	longest, err := patience(seconds)
	if err != nil {
		return nil, err
	}
	over, last := time.After(longest), false
	for {
		raw, err := status(ctx, nil)
		var doc map[string]any
		if err == nil {
			err = json.Unmarshal(raw, &doc)
		}
		if err != nil || doc["error"] != nil {
			return raw, err
		}
		decided := doc["closed"] == true || doc["verdict"] == string(approval.Approved) || doc["verdict"] == string(approval.Denied)
		if decided || last {
			doc["decided"] = decided
			return json.Marshal(doc)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-over:
			last = true
		case <-time.After(time.Second):
		}
	}
}
