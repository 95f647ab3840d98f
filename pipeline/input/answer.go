package input

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// What agents leave behind in workflows: the last message of openai/codex-action (its
// output final-message, or its output-file), and what anthropics/claude-code-action leaves
// of a session (its output execution_file, a JSON array of messages; or
// structured_output). All end in a text that holds a change, or in an object whose form
// the workflow's author chose.
const (
	FormatCodexAction  = "codex-action"
	FormatClaudeAction = "claude-code-action"
)

// fromAnswer reads what an agent's action left. Of the messages of a session, the change
// alone is what was given.
func fromAnswer(format string, raw []byte, root string, together bool, summary string) (Change, error) {
	doc, err := canon.Parse(raw)
	if err != nil { // it is a text
		doc = string(raw)
	}
	session := isExecution(doc)
	if session {
		if doc, err = lastResult(doc); err != nil {
			return Change{}, err
		}
	}
	part, kind := raw, FormatEdits // a list, unless it is one of the others
	switch doc := doc.(type) {
	case string:
		var b block
		b, kind, err = changeIn([]byte(doc))
		part = b.text
	case map[string]any:
		part, kind, err = memberOf(doc, root)
	default:
		err = nil
	}
	if err != nil {
		return Change{}, err
	}
	in, err := as(kind, part, root, together, summary)
	if in.Format, in.Raw = format, raw; session {
		in.Raw = part
	}
	return in, err
}

// changeIn finds the one change in a text: all of it, a fenced block, or a diff that stands
// in it as it is.
func changeIn(text []byte) (block, string, error) {
	if format := detect(text); format != "" {
		return block{text: text}, format, nil
	}
	b, err := onlyBlock(text)
	if begins := newFinder(text).first(); begins > 0 && (b.line == 0 || begins < b.line) {
		return block{text: text}, FormatUnified, nil
	}
	return b, detect(b.text), err
}

// isExecution reports whether a document is the messages of a session of Claude Code's SDK,
// of which each has a type, and one is the result.
func isExecution(doc any) bool {
	for _, message := range objects(doc) {
		switch message["type"] {
		case "result":
			return true
		case "system", "assistant", "user":
		default:
			return false
		}
	}
	return false
}

// lastResult is what a session that succeeded ended in: its structured output, else its
// last text.
func lastResult(messages any) (any, error) {
	var result map[string]any
	for _, message := range objects(messages) {
		if message["type"] == "result" {
			result = message
		}
	}
	if result["subtype"] != "success" || result["is_error"] != false {
		return nil, &patch.Error{Message: fmt.Sprintf("the session did not succeed: its result is %+q", ledger.OneLine(fmt.Sprint(result["subtype"]), 60))}
	}
	if given := result["structured_output"]; given != nil {
		return given, nil
	}
	if text, is := result["result"].(string); is {
		return text, nil
	}
	return nil, &patch.Error{Message: "the session has no result"}
}

// maxMembers is how many members are looked at: each is read by itself.
const maxMembers = 1000

// memberOf finds the one member of an object that holds a change, where the object is none
// itself.
func memberOf(object map[string]any, root string) (part []byte, format string, err error) {
	if len(object) > maxMembers {
		return nil, "", &patch.Error{Message: fmt.Sprintf("the object has %d members, more than %d", len(object), maxMembers)}
	}
	whole, err := canon.Line(object)
	if err != nil {
		return nil, "", err
	}
	if _, err := Calls(whole, root); err == nil {
		return whole, FormatEdits, nil
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		var raw []byte
		var kind string
		switch value := object[name].(type) {
		case string:
			b, found, err := changeIn([]byte(value))
			if err != nil {
				continue
			}
			raw, kind = b.text, found
		case []any, map[string]any:
			if raw, err = canon.Line(value); err != nil {
				return nil, "", err
			}
			kind = FormatEdits
		default:
			continue
		}
		if _, err := Calls(raw, root); kind == FormatEdits && err != nil {
			continue
		}
		part, format, found = raw, kind, append(found, fmt.Sprintf("%+q", ledger.OneLine(name, 60)))
	}
	switch len(found) {
	case 0:
		return nil, "", &patch.Error{Message: "no format that is known: no member of the object is a change", Try: tryFrom}
	case 1:
		return part, format, nil
	}
	return nil, "", &patch.Error{Message: "several members of the object hold a change: " + strings.Join(found[:min(10, len(found))], ", ")}
}
