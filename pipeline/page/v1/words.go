package v1

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// What a transaction is said to be.
const (
	begun       = "being recorded"
	waits       = "waits for approval"
	approved    = "approved, not applied"
	mergeable   = "approved, not merged"
	checkFailed = "check failed"
	applyFailed = "apply failed"
	unchecked   = "applied, not checked yet"
	applied     = "applied"
	merged      = "merged"
	denied      = "denied"
	superseded  = "superseded"
	closed      = "closed"
	unknown     = "cannot be told"
)

// states are what tables count, in their order.
var states = []string{openWord, begun, waits, approved, mergeable, checkFailed, applyFailed, unchecked, applied, merged, denied, superseded, closed, unknown}

// stateOf is where a transaction stands. approval is what was decided of an open one, "" for nothing yet; failed says of an
// applied one that its last validate found something, of one that failed, that its last apply was begun.
func stateOf(status ledger.Status, approval string, gateOnly, failed bool) string {
	done, ready := applied, approved
	if gateOnly {
		done, ready = merged, mergeable
	}
	switch status {
	case ledger.Completed:
		return done
	case ledger.Applied:
		if failed {
			return checkFailed
		}
		return unchecked
	case ledger.Denied:
		return denied
	case ledger.Superseded:
		return superseded
	case ledger.Interrupted:
		return closed
	case ledger.Created, ledger.InProgress:
		return begun
	case ledger.Proposed, ledger.Awaiting, ledger.Failed:
	default:
		return unknown
	}
	switch {
	case approval == denied:
		return denied
	case status == ledger.Failed && failed:
		return applyFailed
	case status == ledger.Failed:
		return checkFailed
	case approval == approvedBy:
		return ready
	}
	return waits
}

// approvedBy is what was decided of a change that has its approvals.
const approvedBy = "approved"

// breakGlass is the kind of the request whose answer stands in for approvals.
const breakGlass = "break_glass"

// whats name what an approval is of, by the kind of its request.
var whats = map[string]string{"fileChange": "the change", "secrets_override": "secrets", "protected_path": "protected paths", breakGlass: "break-glass"}

// approvedWords say what somebody approved, by the kind of the request.
var approvedWords = map[string]string{
	"fileChange": "approved it", "secrets_override": "approved its secrets", "protected_path": "approved its protected paths", breakGlass: "broke the glass for it",
}

// wheres say where a decision was made, by the kind of its source.
var wheres = map[string]string{
	"local": "in a shell", "rpc": "over JSON-RPC", "review": "in a review", "review_comment": "in a review comment", "issue_comment": "in a comment",
}

// forges name whose account an id is of.
var forges = map[string]string{"github": "GitHub", "gitea": "Gitea"}

// proves says how much a decision proves.
func proves(s ledger.Source) string {
	switch {
	case s.Signature != nil:
		return "signed by a key"
	case s.Kind == "local":
		return "in a shell, unsigned: proves that somebody with this shell said so"
	case s.Kind == "rpc":
		return "over JSON-RPC, unsigned: proves that some program here said so"
	}
	of, _, _ := strings.Cut(s.Author.ID, ":")
	if name := forges[of]; name != "" {
		return name + " account"
	}
	return "account on the forge"
}

// ended is the record's reason of an end for people: "README.md changed meanwhile".
func ended(reason string) string {
	if files, moved := strings.CutPrefix(reason, "the base changed: "); moved {
		return files + " changed meanwhile"
	}
	return reason
}

// riskTitles say what a kind of risk means, in few words.
var riskTitles = map[string]string{
	"unlisted": "not listed", "executable": "becomes executable", "trusted": "steers automation", "build": "builds or installs",
	"secret": "secret", "protected": "protected", "binary": "binary", "delete": "deleted", "rename": "renamed",
	"mode": "executable no more", "whitespace": "white space only", "long": "long lines", "hidden": "hidden characters",
	"lookalike": "look-alike letters", "generated": "generated",
}

func riskTitle(kind string) string { return cmp.Or(riskTitles[kind], "of unknown kind") }

// form says in a word what an input was.
func form(in ledger.Input) string {
	text := cmp.Or(in.Format, in.Kind)
	if in.Via != "" {
		text += " over " + in.Via
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
