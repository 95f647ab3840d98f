package lookup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Form says in a word what an input was.
func Form(in ledger.Input) string {
	form := in.Kind
	if in.Format != "" {
		form = in.Format
	}
	if in.Via != "" {
		form += " over " + in.Via
	}
	return form
}

// Does is what the transaction's patch does to which files; it stands where the proposer does not say
// what the patch is for.
func Does(t ledger.Transaction) string {
	if t.Pointers.Proposal == nil {
		return ""
	}
	return DoesTo(t.Pointers.Proposal.BaseSHA256, t.Pointers.Proposal.AfterSHA256)
}

// DoesTo is what becomes of which files, the first few, by their hashes before and after; nil is no file:
// "update doc.go, add NEW.md".
func DoesTo(before, after map[string]*string) string {
	names := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		verb := "update"
		if after[name] == nil {
			verb = "delete"
		} else if before[name] == nil {
			verb = "add"
		}
		names[verb] = append(names[verb], name)
	}
	const most = 3
	var said []string
	named := 0
	for _, verb := range []string{"update", "add", "delete"} {
		if shown := names[verb][:min(len(names[verb]), most-named)]; len(shown) > 0 {
			said, named = append(said, verb+" "+strings.Join(shown, ", ")), named+len(shown)
		}
	}
	text := strings.Join(said, ", ")
	if len(after) > named {
		text += fmt.Sprintf(" and %d more", len(after)-named)
	}
	return text
}
