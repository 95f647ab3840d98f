package input

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// FormatGHAW is what an agent of GitHub's agentic workflows leaves behind (gh-aw, the
// artifact "agent": agent_output.json and aw-*.patch). It is a directory, not a file.
const FormatGHAW = "gh-aw"

// GHAWOutput is the file that says what the agent asks for.
const GHAWOutput = "agent_output.json"

// GHAW reads the change that an agent of gh-aw asks for: the one item of its output that is
// create_pull_request or push_to_pull_request_branch, and the patch that goes with it, of
// patches by their names. rest are the types of the other items, which nobody does here.
func GHAW(output []byte, patches map[string][]byte, summary string) (in Change, rest []string, err error) {
	doc, err := canon.Parse(output)
	if err != nil {
		return in, nil, &patch.Error{Message: GHAWOutput + ": " + err.Error()}
	}
	root, _ := doc.(map[string]any)
	items, is := root["items"].([]any)
	if !is {
		return in, nil, &patch.Error{Message: GHAWOutput + " has no list of items"}
	}
	var asked map[string]any
	for i, item := range items {
		object, _ := item.(map[string]any)
		kind, is := object["type"].(string)
		switch {
		case !is:
			return in, nil, &patch.Error{Message: fmt.Sprintf("%s: item %d has no type", GHAWOutput, i+1)}
		case kind != "create_pull_request" && kind != "push_to_pull_request_branch":
			rest = append(rest, ledger.OneLine(kind, 60))
		case asked != nil:
			return in, nil, &patch.Error{Message: GHAWOutput + " asks for two changes: propose them one at a time"}
		default:
			asked = object
		}
	}
	if asked == nil {
		return in, rest, &patch.Error{Message: GHAWOutput + " asks for no change"}
	}
	raw, err := patchOf(asked, patches)
	if err != nil {
		return in, rest, err
	}
	for _, member := range []string{"title", "message", "commit_message"} {
		if text, is := asked[member].(string); is && summary == "" {
			summary = text
		}
	}
	in, err = One(raw, true, summary)
	in.Format, in.Messages = FormatGHAW, itemMessages(asked, in.Messages)
	return in, rest, err
}

// patchOf is the patch that an item names, or the only one.
func patchOf(item map[string]any, patches map[string][]byte) ([]byte, error) {
	if given, is := item["patch_path"]; is {
		named, _ := given.(string)
		if raw, there := patches[path.Base(named)]; there {
			return raw, nil
		}
		return nil, &patch.Error{Message: fmt.Sprintf("the patch %+q, which the item names, is not there", ledger.OneLine(path.Base(named), 80))}
	}
	if len(patches) == 1 {
		for _, raw := range patches {
			return raw, nil
		}
	}
	var names []string
	for name := range patches {
		names = append(names, ledger.OneLine(name, 60))
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, &patch.Error{Message: "no aw-*.patch is there: gh-aw writes one with \"patch-format: am\""}
	}
	return nil, &patch.Error{Message: "which patch goes with the item is not told, of " + strings.Join(names, ", ")}
}
