package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// The addresses of what can be read.
const (
	transactionsURI = "countersign://transactions"
	policyURI       = "countersign://policy"
	tipURI          = "countersign://ledger/tip"
)

// addResources are the documents that a client can read, each made when it is read.
func (s *service) addResources() {
	for _, r := range []struct {
		sdk.Resource
		read func(c *call, ctx context.Context) (any, error)
	}{
		{sdk.Resource{URI: transactionsURI, Name: "transactions", Title: "Transactions", Description: "The newest transactions of the ledger, oldest first"}, func(c *call, ctx context.Context) (any, error) {
			return c.list(ctx, func(ledger.Transaction) bool { return true })
		}},
		{sdk.Resource{URI: policyURI, Name: "policy", Title: "The Policy", Description: "Who must approve what, as the Policy has it now"}, (*call).policy},
		{sdk.Resource{URI: tipURI, Name: "ledger-tip", Title: "The ledger's tip", Description: "The newest commit of the ledger: whoever keeps it can tell later whether the ledger only grew"}, (*call).tip},
	} {
		r.MIMEType = "application/json"
		s.server.AddResource(&r.Resource, s.resource(func(c *call, ctx context.Context, _ string) (any, error) { return r.read(c, ctx) }))
	}
	s.server.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: transactionsURI + "/{id}", Name: "transaction", Title: "A transaction", Description: "All that the ledger has of a transaction, with its diff", MIMEType: "application/json",
	}, s.resource(func(c *call, ctx context.Context, uri string) (any, error) {
		return c.get(ctx, getParams{Transaction: strings.TrimPrefix(uri, transactionsURI+"/"), Diff: true})
	}))
}

// resource reads a document. What there is not is said in the protocol's way.
func (s *service) resource(read func(c *call, ctx context.Context, uri string) (any, error)) sdk.ResourceHandler {
	return func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		p, doc, err := s.do(ctx, s.work, func(c *call, ctx context.Context) (any, error) { return read(c, ctx, req.Params.URI) })
		switch {
		case errors.Is(err, lookup.ErrNotFound):
			return nil, sdk.ResourceNotFoundError(req.Params.URI)
		case err != nil:
			return nil, protocolError(p, err)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json", Text: string(doc)}}}, nil
	}
}

// protocolError is an error of what is no tool.
func protocolError(p Program, err error) error {
	exit, _, message := p.Failure(err)
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message.String(), Data: json.RawMessage(fmt.Sprintf(`{"exit":%d}`, exit))}
}

// policy is the one in force, as "policy check --json" prints it.
func (c *call) policy(ctx context.Context) (any, error) {
	rules, err := c.Rules(ctx)
	if err != nil {
		return nil, err
	}
	file := policy.Path
	if !rules.Found {
		file = ""
	}
	p := rules.Policy
	return map[string]any{"file": file, "commit": rules.Commit, "sha256": p.Sum(), "policy": json.RawMessage(p.JSON()), "warnings": append([]string{}, risk.Warnings(p)...)}, nil
}

func (c *call) tip(ctx context.Context) (any, error) {
	snap, err := c.Ledger(ctx)
	return map[string]any{"ledger_ref": c.LedgerRef(), "ledger_commit": snap.Tip}, err
}

// addPrompt is the one thing that a person asks of their agent here.
func (s *service) addPrompt() {
	s.server.AddPrompt(&sdk.Prompt{
		Name: "propose_what_you_changed", Title: "Propose what you changed", Description: "Propose what the working tree has beyond HEAD, and say how a person decides",
		Arguments: []*sdk.PromptArgument{
			{Name: "summary", Description: "what the change is for"}, {Name: "pull_request", Description: "the number of the pull request that it is for"},
		},
	}, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		ask := "Propose what you changed: call the tool propose_worktree"
		if number := req.Params.Arguments["pull_request"]; number != "" {
			ask += fmt.Sprintf(" with pull_request %+q", ledger.OneLine(number, 20))
		}
		if summary := req.Params.Arguments["summary"]; summary != "" {
			ask += fmt.Sprintf(" and the summary %q", ledger.OneLine(summary, 500))
		} else {
			ask += " and, as the summary, one line that says what the change is for"
		}
		ask += `. If it is refused, mend what "path", "line", "rule" and "hint" of the error name, and propose again. Then tell me what "person" in the result says, word for word, and call wait. Do not decide for me, and do not run the commands that decide.`
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: ask}}}}, nil
	})
}
