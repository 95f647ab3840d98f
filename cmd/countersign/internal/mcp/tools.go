package mcp

import (
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/pipeline/input"
)

// formats are those that a text can have: gh-aw leaves a directory.
func formats() []string {
	return slices.DeleteFunc(slices.Clone(input.Formats), func(name string) bool { return name == input.FormatGHAW })
}

// refusals tell an agent what is refused, so that it mends its change.
const refusals = ` Refused, with "path" and "line": a path outside of the repository or in .git, links and submodules, a change that does not fit the commit exactly or in one place, one that changes nothing (rule patch or unchanged); more bytes or files than the Policy's limits (limits.bytes, limits.files): split the change; what looks like a secret, where the Policy refuses it (secrets): take it out; files with other uncommitted changes (uncommitted): propose_worktree proposes what is there; bytes that a person denied (denied): that is final, make another change. Proposing the same change again is the same transaction. Nothing is changed but the ledger.`

var (
	summary     = text("what the change is for, one line, shown to the person who decides")
	requestedBy = list("who asked for it, if you know: their account at the forge, or the address of their Git identity; they are then not the only one to approve it, where the Policy says so", schema{"type": "string"})
	pullRequest = number("the open pull request that it is for: it goes on its head; leave it out for this clone's HEAD", 1)
	transaction = text("the transaction: its id, a part of it that no other has, or its patch_id")
	proposed    = result(with(state, schema{
		"known": flag("it was proposed before: nothing was recorded"), "format": text("the format that it was read as"),
		"supersedes": list("the transactions whose place it took", text("an id")),
	}), stateRequired...)
)

// proposes and looks are the hints of tools that add to the ledger, and of those that change nothing.
func proposes(title string) *sdk.ToolAnnotations {
	no := false
	return &sdk.ToolAnnotations{Title: title, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no}
}

func looks(title string) *sdk.ToolAnnotations {
	no := false
	return &sdk.ToolAnnotations{Title: title, ReadOnlyHint: true, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no}
}

// addTools are all tools that there are. None decides, applies or closes (T74).
func (s *service) addTools() {
	addTool(s, sdk.Tool{
		Name: "propose_patch", Annotations: proposes("Propose a patch"),
		Description: "Propose a change as a patch: what git diff prints, a unified diff, Codex's apply_patch, search and replace blocks, calls of an edit tool as JSON, or one fenced block of these in a text." + refusals,
		InputSchema: object(schema{
			"patch":  text("the patch, as it is"),
			"format": schema{"type": "string", "enum": formats(), "description": "what it is: " + strings.Join(formats(), ", ") + "; auto, which finds it out, if left out"}, "summary": summary, "pull_request": pullRequest, "requested_by": requestedBy,
		}, "patch"),
		OutputSchema: proposed,
	}, (*call).proposePatch)
	addTool(s, sdk.Tool{
		Name: "propose_edits", Annotations: proposes("Propose edits"),
		Description: "Propose a change as edits of files as the commit has them, not as they are on disk. old_text must be in the file exactly once, with its white space: give more of what is around it where the error names several lines. Each edit goes on what those before it left. To delete or rename a file use propose_patch (\"*** Delete File: PATH\", or \"*** Update File: PATH\" with \"*** Move to: PATH\", between \"*** Begin Patch\" and \"*** End Patch\"), or propose_worktree." + refusals,
		InputSchema: object(schema{
			"edits": schema{"type": "array", "minItems": 1, "description": "the edits, in order", "items": object(schema{
				"path": text("the file, from the top of the repository"), "old_text": text("the text to replace; empty for a file that is not there yet"),
				"new_text": text("what takes its place"), "content": text("in place of both: the whole file, new or not; it cannot be empty for a file that has content"),
			}, "path")},
			"summary": summary, "pull_request": pullRequest, "requested_by": requestedBy,
		}, "edits"),
		OutputSchema: proposed,
	}, (*call).proposeEdits)
	addTool(s, sdk.Tool{
		Name: "propose_worktree", Annotations: proposes("Propose what the working tree has"),
		Description:  "Propose all that the working tree has beyond HEAD: files changed, added (unless ignored) and deleted. Use it once you have edited files in place." + refusals,
		InputSchema:  object(schema{"summary": summary, "pull_request": pullRequest, "requested_by": requestedBy}),
		OutputSchema: proposed,
	}, (*call).proposeWorktree)
	addTool(s, sdk.Tool{
		Name: "status", Annotations: looks("Where a transaction stands"),
		Description: "Say where a transaction stands, and what a person does next; without a transaction, list those that are open.",
		InputSchema: object(schema{"transaction": transaction}),
		OutputSchema: schema{"type": "object", "properties": with(with(failure, state), schema{
			"transactions": list("those that are open, oldest first", schema{"type": "object"}), "more": flag("there are older ones"),
		}), "anyOf": []schema{{"required": stateRequired}, {"required": []string{"transactions", "more"}}, {"required": []string{"error", "exit"}}}},
	}, (*call).status)
	addTool(s, sdk.Tool{
		Name: waitTool, Annotations: looks("Wait for a decision"),
		Description:  `Wait until a person has decided, or the transaction has ended, or the time is over: then "decided" is false, and you may wait again. Tell the person first what "person" in the last result says. An approval is not yet applied; denied is final for these bytes, with the reason.`,
		InputSchema:  object(schema{"transaction": transaction, "seconds": schema{"type": "number", "minimum": 0, "maximum": waitLongest.Seconds(), "description": "how long to wait; 50 if left out, as many clients give up after a minute"}}, "transaction"),
		OutputSchema: result(with(state, schema{"decided": flag("there is a decision, or the transaction has ended")}), append([]string{"decided"}, stateRequired...)...),
	}, (*call).wait)
	addTool(s, sdk.Tool{
		Name: "explain_policy", Annotations: looks("What a change would need"),
		Description: "Say which rules of the Policy apply to a patch, or to any change of some paths: who must approve it, which commands are run on it, what is protected, what looks like a secret. Nothing is recorded.",
		InputSchema: object(schema{
			"patch": text("a patch, as in propose_patch"), "format": schema{"type": "string", "enum": formats()}, "paths": list("or paths from the top of the repository", text("a path")),
		}),
		OutputSchema: result(schema{
			"patch_id": text("the patch's, empty for paths"), "policy_commit": text("the commit that has the Policy"), "policy_sha256": text("its hash"),
			"paths": list("which rules each path falls under", schema{"type": "object"}), "secrets": list("what looks like a secret", schema{"type": "object"}),
			"needs": list("what people must approve", schema{"type": "object"}), "commands": list("the commands that are run on it", text("a command")),
			"merge": text("who merges what becomes a pull request"), "risks": schema{"type": "object", "description": "what a reader may overlook"},
		}, "policy_commit", "paths", "needs", "commands"),
	}, (*call).explainPolicy)
	addTool(s, sdk.Tool{
		Name: "get_transaction", Annotations: looks("A transaction"),
		Description: "All that the ledger has of a transaction: files, risks, decisions with their reasons, what was applied; with diff, the exact bytes that are up for approval. Secrets are taken out.",
		InputSchema: object(schema{"transaction": transaction, "diff": flag("also the diff")}, "transaction"),
		OutputSchema: result(schema{
			"report": schema{"type": "object", "description": "as countersign show --json prints it"}, "closed": state["closed"], "next": state["next"], "person": person,
			"diff": text("the diff"), "diff_base64": text("its exact bytes, where they are not UTF-8"),
		}, "transaction_id", "report", "closed", "next"),
	}, (*call).get)
	addTool(s, sdk.Tool{
		Name: "verify", Annotations: looks("Verify the ledger"),
		Description: "Verify the record of one transaction, or without one the whole ledger: that it only grew, and that every state is what its events say. \"ok\" is false where something was found.",
		InputSchema: object(schema{"transaction": transaction}),
		OutputSchema: result(schema{
			"ok": flag("nothing was found"), "complete": flag("the whole history is here"), "tip": text("the ledger's commit that was verified"), "from": text("the commit that was trusted"),
			"commits": number("how many commits were read", 0), "transactions": number("how many transactions they have", 0), "signed": number("how many commits have a good signature", 0),
			"signed_decisions": schema{"type": "object"}, "count": number("how many findings there are", 0),
			"findings": list("what was found", schema{"type": "object"}), "notes": list("what is no finding", schema{"type": "object"}),
			"pages": schema{"type": "object", "description": "the pages in the ledger, which decide nothing: whether they say what the record does"},
		}, "ok", "tip", "findings"),
	}, (*call).verify)
}
