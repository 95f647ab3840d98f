package guard

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// An update is what a push does to a ref: from a commit to another, "" for none.
type update struct {
	Ref string `json:"ref"`
	Old string `json:"old"`
	New string `json:"new"`
}

// maxUpdates is how many refs a push may name.
const maxUpdates = 10_000

// readUpdates reads what git gives a pre-receive hook: "OLD NEW REF" lines. A ref that is named twice, which git's own push never
// does, is an error: what the push makes of it is not known.
func readUpdates(in io.Reader) (all []update, err error) {
	named := map[string]bool{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), " ", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("git gave the hook a line that is not OLD NEW REF: %+q", lines.Text())
		}
		if all = append(all, newUpdate(fields[2], fields[0], fields[1])); len(all) > maxUpdates {
			return nil, fmt.Errorf("the push names more than %d refs", maxUpdates)
		}
		if named[fields[2]] {
			return nil, fmt.Errorf("the push names %+q twice", fields[2])
		}
		named[fields[2]] = true
	}
	return all, lines.Err()
}

// readPushed reads what git gives a pre-push hook: "LOCAL-REF NEW REMOTE-REF OLD" lines.
func readPushed(in io.Reader) (all []update) {
	for lines := bufio.NewScanner(in); lines.Scan() && len(all) < maxUpdates; {
		if fields := strings.Fields(lines.Text()); len(fields) == 4 {
			all = append(all, newUpdate(fields[2], fields[3], fields[1]))
		}
	}
	return all
}

// newUpdate reads zeros as none.
func newUpdate(ref, old, next string) update {
	none := func(id string) string {
		if strings.Trim(id, "0") == "" {
			return ""
		}
		return id
	}
	return update{ref, none(old), none(next)}
}

// names are the refs that a push is held to: the default branch and those that the Policy names, the ledger, and what is beside it.
type names struct {
	head     string
	branches []string // head among them
	ledger   string
}

func (n names) beside() []string {
	return []string{n.ledger + "-checkpoints", n.ledger + "-attestations"}
}

// alike is the guarded ref that a name is taken for, "" for none: where case and normalisation do not count; by git, which finds
// refs/NAME and refs/tags/NAME before a branch NAME (gitrevisions(7)); or as it is below a ref of the ledger, which could not be made then.
func (n names) alike(ref string) string {
	for _, guarded := range append(append(n.branches[:len(n.branches):len(n.branches)], n.ledger), n.beside()...) {
		folded, short := patch.FoldName(ref), patch.FoldName(short(guarded))
		if ref != guarded && (folded == patch.FoldName(guarded) || folded == "refs/"+short || folded == "refs/tags/"+short || strings.HasPrefix(folded, patch.FoldName(guarded)+"/")) {
			return guarded
		}
	}
	return ""
}
