package pipeline_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestT20BaseBranchTightens: the Policy is the default branch's; that of a pull
// request's base can make it stricter, and nothing else.
func TestT20BaseBranchTightens(t *testing.T) {
	repo := &commits{}
	for _, file := range []string{
		"approvals: {required: 2}\n", "approvals: {required: 3}\n", "approvals: {required: 1}\nsandbox: danger-full-access\n", "approvals: 3\n", "",
	} {
		files := maps.Clone(base)
		if file != "" {
			files[policy.Path] = file
		}
		repo.commit(files)
	}
	const strict, stricter, lax, wrong, none = 1, 2, 3, 4, 5
	for _, c := range []struct{ commit, base, required int }{
		{strict, 0, 2}, {strict, strict, 2}, {strict, stricter, 3}, {strict, lax, 2}, {stricter, strict, 3}, {strict, none, 2},
		{none, 0, 1}, {none, strict, 2},
	} {
		other := ""
		if c.base > 0 {
			other = id(c.base)
		}
		r, err := pipeline.ReadRules(t.Context(), repo, id(c.commit), other)
		if err != nil || r.Policy.Approvals.Required != c.required || r.Policy.Sandbox != policy.WorkspaceWrite || r.Commit != id(c.commit) {
			t.Errorf("%d with %d: %+v %v", c.commit, c.base, r, err)
		}
	}
	var problems policy.Problems
	for _, c := range [][2]string{{id(wrong), ""}, {id(strict), id(wrong)}} {
		if _, err := pipeline.ReadRules(t.Context(), repo, c[0], c[1]); !errors.As(err, &problems) {
			t.Errorf("%v: %v", c, err)
		}
	}
	for _, c := range [][2]string{{id(9), ""}, {id(strict), id(9)}} {
		if _, err := pipeline.ReadRules(t.Context(), repo, c[0], c[1]); err == nil {
			t.Errorf("%v: a commit that is not there was taken", c)
		}
	}
}

// TestT73KeysOfTheTrustedBase: the keys are those of the commit that the Policy is read
// from, whatever the branch of a pull request and its base have; that base can only ask
// for more.
func TestT73KeysOfTheTrustedBase(t *testing.T) {
	repo := &commits{}
	add := func(policyFile, keys string) (commit string) {
		files := maps.Clone(base)
		files[policy.Path] = policyFile
		if keys != "" {
			files[".github/keys"] = keys
		}
		repo.commit(files)
		return id(len(repo.trees))
	}
	const named = "approvals: {keys: .github/keys"
	trusted := add(named+", signed: require}\n", "ada@localhost "+adaKey.Public+"\n")
	lax := add(named+", signed: off}\n", "ada@localhost "+adaKey.Public+"\neve@localhost "+evesKey.Public+"\n")
	strict := add("approvals: {signed: require, hardware: true, pin: true}\n", "")
	accepting := add(named+"}\n", "ada@localhost "+adaKey.Public+"\n")
	missing := add(named+", signed: require}\n", "")
	broken := add(named+", signed: require}\n", "ada@localhost "+adaKey.Public+"\nbob\n")
	open := add("version: 1\n", "eve@localhost "+evesKey.Public+"\n")
	statement := approval.SignedDecision{
		Schema: approval.DecisionSchema, TransactionID: "tx_01KE5W5200041061050R3GG28A", BaseCommit: id(1), Decision: "approve",
		Fingerprints: []string{"patchset:" + strings.Repeat("a", 64)}, DecidedAt: "2026-01-05T00:00:00Z", Shown: "sha256:" + strings.Repeat("b", 64),
		Proposers: []ledger.Actor{{Kind: "bot", ID: "1"}}, RequestedBy: []ledger.Requester{}, Policy: ledger.PolicyRef{Commit: id(1), SHA256: "sha256:" + strings.Repeat("c", 64)},
	}
	about := approval.Subject{TransactionID: statement.TransactionID, BaseCommit: id(1), PatchID: strings.Repeat("a", 64), Shown: statement.Shown}
	about.Proposers, about.RequestedBy, about.Policies = statement.Proposers, statement.RequestedBy, []ledger.PolicyRef{statement.Policy}
	at := time.Date(2026, 1, 5, 0, 1, 0, 0, time.UTC)
	about.Began = at
	for _, c := range []struct {
		name, commit, base string
		signing            policy.Signing
		ada, eve           string // why their signature is not taken
	}{
		{"the trusted base", trusted, "", policy.SignedOnly, "", "do not list"},
		{"a base branch with another key", trusted, lax, policy.SignedOnly, "", "do not list"},
		{"a base branch that asks for more", accepting, strict, policy.SignedOnly, "not a security key", "do not list"},
		{"a base branch with keys of its own", open, lax, policy.SignedOff, "names no file of keys", "names no file of keys"},
		{"a base branch that requires what there is not", open, trusted, policy.SignedOnly, "names no file of keys", "names no file of keys"},
		{"no file", missing, "", policy.SignedOnly, "there is no file .github/keys", "there is no file"},
		{"no file, and one in the base branch", missing, lax, policy.SignedOnly, "there is no file .github/keys", "there is no file"},
		{"a file with a line that cannot be read", broken, "", policy.SignedOnly, "", "line 2 cannot be read"},
	} {
		r, err := pipeline.ReadRules(t.Context(), repo, c.commit, c.base)
		if err != nil || r.Policy.Approvals.Signing() != c.signing {
			t.Errorf("%s: %s, %v", c.name, r.Policy.Approvals.Signing(), err)
		}
		for who, want := range map[string]string{"ada": c.ada, "eve": c.eve} {
			key := map[string]teststand.Signer{"ada": adaKey, "eve": evesKey}[who]
			from := ledger.Source{Kind: "local", Author: ledger.Actor{ID: "local:" + who + "@localhost"}}
			_, err := approval.Verify(key.Signs(statement), about, r.Keys, from, at)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: %v, want %q", c.name, who, err, want)
			}
		}
	}
}
