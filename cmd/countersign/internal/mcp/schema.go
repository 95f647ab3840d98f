package mcp

import "maps"

// A schema is a JSON Schema (2020-12).
type schema = map[string]any

func text(description string) schema { return schema{"type": "string", "description": description} }

func number(description string, least int) schema {
	return schema{"type": "integer", "minimum": least, "description": description}
}

func flag(description string) schema { return schema{"type": "boolean", "description": description} }

func list(description string, items schema) schema {
	return schema{"type": "array", "description": description, "items": items}
}

// object has these members, and no others.
func object(members schema, required ...string) schema {
	s := schema{"type": "object", "properties": members, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// failure has the members of a result that is an error.
var failure = schema{
	"error": text("what is wrong, in one line"), "hint": text("what to do about it"), "rule": text("which rule refuses it: arguments, patch, unchanged, limits.bytes, limits.files, secrets, uncommitted, denied, policy or record"),
	"path": text("the file that it is about"), "line": number("the line of what was given, or of the file", 1), "exit": number("the exit code that the command line would have had", 1),
	"transaction_id": text("the transaction that it is about"),
}

// result is either an object of these members or a failure: clients hold an error's data to
// the schema as well.
func result(members schema, required ...string) schema {
	all := maps.Clone(failure)
	maps.Copy(all, members)
	return schema{"type": "object", "properties": all, "anyOf": []schema{{"required": required}, {"required": []string{"error", "exit"}}}}
}

// person says how a person decides, outside of the client.
var person = schema{
	"type": "object", "description": "how a person decides, outside of this client: tell them",
	"properties": schema{
		"say": text("one sentence for the person"), "command": text("the command that shows the change and asks, in a terminal"),
		"browse": text("the command that shows its page in a browser"), "url": text("the pull request where it is decided"),
	},
	"required": []string{"say", "command", "browse"},
}

// state has the members that say where a transaction stands.
var state = schema{
	"transaction_id": text("its id"), "patch_id": text("the SHA-256 of the exact bytes that are up for approval"), "status": text("its status, as in the ledger"), "state": text("where it stands, in the words that people read"),
	"closed": flag("nothing more happens with it"), "verdict": text("pending, approved or denied"), "reason": text("where it stands and why, in a line for people"), "summary": text("what it is for"),
	"base_commit": text("the commit that it was proposed on"), "pull_request": number("the pull request that it is for", 1), "next": text("what happens next"),
	"files": list("the files that it changes", text("a path")), "person": person,
}

var stateRequired = []string{"transaction_id", "patch_id", "status", "state", "closed", "verdict", "next", "files"}

// with are the members of two schemas.
func with(members, more schema) schema {
	members = maps.Clone(members)
	maps.Copy(members, more)
	return members
}
