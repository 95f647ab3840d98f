package approval_test

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// TestT72Signed: where the Policy asks for signatures, nothing else counts, by whoever's
// account it is; a signature that is no good never counts.
func TestT72Signed(t *testing.T) {
	const (
		require = "approvals: {keys: k, signed: require, break_glass: [ada]}"
		unmet   = "0 of 1 signed approvals"
		met     = "1 of 1 signed approvals"
	)
	headOf := func(commit string) func(*approval.Case) {
		return func(c *approval.Case) {
			if err := c.Log.Append(noon, &ledger.TurnItem{TransactionID: c.Log.Meta().TransactionID, TurnID: "turn_1", Item: ledger.Item{
				ID: "item_1", Type: "fileChange", Metadata: &ledger.Proposal{PatchID: thePatch, PullRequest: 7, HeadCommit: commit},
			}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	judgeAll(t, []situation{
		{"signed", require, "a", "ada sign=k", approved, met, "+approved", nil},
		{"not signed", require, "a", "ada", pending, unmet, "-is not signed, which the Policy asks for: countersign sign --pr 7", headOf("head")},
		{"locally, not signed", require, "a", "ada local", pending, unmet,
			"-is not signed, which the Policy asks for: countersign approve tx_01KE5W5200041061050R3GG28A --sign", alone},
		{"locally, signed", require, "a", "ada local sign=k", approved, met, "+approved", alone},
		{"a green review", require, "a", "ada source=review", pending, unmet, "-is not signed", nil},
		{"a break-glass", require, "a", "ada glass=down", pending, unmet, "-is not signed", nil},
		{"a break-glass with a key", require, "a", "ada glass=down sign=k", approved, "break-glass by ada: down", "+by breaking the glass", nil},
		{"a break-glass with a bad one", require, "a", "ada glass=down sign=bad", pending, unmet, "-its signature does not count: it was signed for another patch", nil},
		{"a denial needs none", require, "a", "ada sign=k; bob deny", denied, "denied by bob", "+approved; +denied", nil},
		{"bad", require, "a", "ada sign=bad", pending, unmet, "-its signature does not count: it was signed for another patch", nil},
		{"bad, where none is asked for", "approvals: {keys: k}", "a", "ada sign=bad", pending, none, "-its signature does not count", nil},
		{"good, where none is asked for", "approvals: {keys: k}", "a", "ada sign=k", approved, one, "+approved", nil},
		{"not signed, where none is asked for", "approvals: {keys: k}", "a", "ada", approved, one, "+approved", nil},
		{"where none is taken", "approvals: {keys: k, signed: off}", "a", "ada sign=k", pending, none, "-the Policy takes none", nil},
		{"where there are no keys", "", "a", "ada sign=k", pending, none, "-the Policy takes none", nil},
		{"where nobody can verify it", require, "a", "ada sign=k", pending, unmet, "-it was not verified", func(c *approval.Case) { c.Signed = nil }},
		{"a bot's key", require, "a", "app sign=k", pending, unmet, "-not a human account", nil},
		{"an account listed under bots", "{bots: [ada], approvals: {keys: k, signed: require}}", "a", "ada sign=k", pending, unmet, "-under bots", nil},
		{"the proposer's key", require, "a", "agent sign=k", pending, unmet, "-not a human account", nil},
		{"a human proposer's key", require, "a", "", pending, unmet, "-its author is the proposer", func(c *approval.Case) {
			c.Log = record(t, people["ada"], spoken(t, "ada sign=k"))
		}},
		{"T12 one key of two accounts", "approvals: {keys: k, required: 2}", "a", "ada sign=k; bob sign=k", pending, "1 of 2 approvals", "+approved; -its key's vote is counted already", nil},
		{"T12 two keys of one account", "approvals: {keys: k, required: 2}", "a", "ada sign=k; ada sign=l", pending, "1 of 2 approvals", "+approved; -this person's vote", nil},
		{"two keys of two accounts", "approvals: {keys: k, required: 2, signed: require}", "a", "ada sign=k; bob sign=l", approved, "2 of 2 signed approvals", "+approved; +approved", nil},
		{"of a protected path alone", "protected: [{paths: [a], signed: require}]", "a", "ada; ada protected", pending, "1 of 1 approvals; protected_path: 0 of 1 signed",
			"+approved; -is not signed", nil},
		{"of a protected path, signed", "{approvals: {keys: k}, protected: [{paths: [a], signed: require}]}", "a", "ada; bob protected sign=k", approved,
			"1 of 1 approvals; protected_path: 1 of 1 signed", "+approved; +approved", nil},
		{"of a protected path, in an emergency", "{approvals: {break_glass: [ada]}, protected: [{paths: [a], signed: require}]}", "a", "ada glass=down", pending,
			"0 of 1 approvals; protected_path: 0 of 1 signed", "-is not signed", nil},
		{"of a secret alone", "secrets: {signed: require}", "!a", "ada; ada secret", pending, "1 of 1 approvals; secrets_override: 0 of 1 signed", "+approved; -is not signed", nil},

		// It is as old as its statement, and of the commit that was reviewed, whenever it is posted.
		{"posted again, too old", "approvals: {keys: k, max_age: 90m}", "a", "ada sign=k at=1h", pending, none, "-expired", nil},
		{"not too old", "approvals: {keys: k, max_age: 3h}", "a", "ada sign=k at=1h", approved, one, "+approved", nil},
		{"posted before it was made", "approvals: {keys: k, max_age: 150m}", "a", "ada sign=k at=3h", pending, none, "-expired", nil},
		{"posted again on another head", "approvals: {keys: k, same_head: true}", "a", "ada sign=k on=head", pending, none, "-another commit", headOf("old")},
		{"on the head that was reviewed", "approvals: {keys: k, same_head: true}", "a", "ada sign=k on=head", approved, one, "+approved", headOf("head")},
	})
}
