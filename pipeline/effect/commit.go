package effect

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A Builder makes the commits of changes.
type Builder struct {
	Refs code.Refs
	// Signer returns what signs with the key in a variable of the environment,
	// nil where it is not set.
	Signer func(name string) (func([]byte) (string, error), error)
}

// Build writes the commit that an approved change makes of its base. No ref
// points to it yet. host is the forge whose account the proposer's is, and key
// the variable that holds what it is signed with, both "" for none.
func (b Builder) Build(ctx context.Context, c Change, host, key string) (string, error) {
	sign, err := b.sign(key)
	if err != nil {
		return "", err
	}
	commit, err := commitOf(c, host)
	if err != nil {
		return "", err
	}
	commit.Sign = sign
	return b.Refs.BuildCommit(ctx, c.Base, c.Set.Files(), commit)
}

// sign is what signs with a key, nil where there is none to sign with.
func (b Builder) sign(key string) (func([]byte) (string, error), error) {
	switch {
	case key == "":
		return nil, nil
	case b.Signer == nil:
		return nil, &SignerError{Name: key}
	}
	sign, err := b.Signer(key)
	if err != nil || sign == nil {
		return nil, &SignerError{key, err}
	}
	return sign, nil
}

// commitOf makes a commit's words from the transaction alone, so that the same
// approved transaction on the same parent is the same commit. Its author is the one
// whom the patch names; on a forge it is the proposer's account, as forges go by authors
// where they say who may not approve.
func commitOf(c Change, host string) (code.Commit, error) {
	tx := c.Log.Transaction()
	when, err := time.Parse(ledger.TimeFormat, tx.CreatedAt)
	if err != nil {
		return code.Commit{}, fmt.Errorf("reading the transaction's time: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nCountersign-Transaction: %s\nCountersign-Patch: %s\n", Subject(tx), tx.TransactionID, tx.PatchID())
	for _, d := range c.Verdict.Decisions {
		if d.Counted && d.Decision == ledger.Approve {
			fmt.Fprintf(&b, "Countersign-Approved-By: %s\n", withoutCommands(ledger.OneLine(d.Author.Login, 100)))
		}
	}
	commit := code.Commit{Author: tx.Proposer.Login, Email: email(tx.Proposer), When: when}
	if login, address := account(tx.Proposer, host); address != "" {
		commit.Author, commit.Email, commit.Committer = login, address, address
	}
	if by := tx.Pointers.Proposal.Author; by != nil && host == "" && tx.PullRequest() == 0 {
		fmt.Fprintf(&b, "Countersign-Proposed-By: %s\n", withoutCommands(ledger.OneLine(tx.Proposer.Login, 100)))
		commit.Author, commit.Email = by.Name, by.Email
		commit.Authored, err = time.Parse(time.RFC3339, by.Date)
	}
	commit.Message = b.String()
	return commit, err
}

// Subject is the first line of a transaction's commit.
func Subject(tx ledger.Transaction) string {
	return withoutCommands(ledger.OneLine(cmp.Or(tx.Notes, "Apply patch "+tx.PatchID()[:12]), 200))
}

// account is the login of an account of a forge as its pages show it, and the
// address by which a commit is the account's without giving away another:
// ID+LOGIN@users.noreply.HOST (GitHub's documentation, "Setting your commit
// email address"). The address of what is no account there is "".
func account(a ledger.Actor, host string) (login, address string) {
	if id, err := strconv.ParseUint(a.ID, 10, 64); err != nil || id == 0 || a.Login == "" || host == "" {
		return "", ""
	}
	login = a.Login
	if a.Kind != "user" {
		login = strings.TrimSuffix(login, "[bot]") + "[bot]"
	}
	return login, ledger.OneLine(a.ID+"+"+login+"@users.noreply."+host, 200)
}

// withoutCommands takes from a proposer's words what a forge or its CI obeys in
// a commit message, such as "[skip ci]" (GitHub's documentation, "Skipping
// workflow runs"): other services have other words, all of them in brackets or
// asterisks.
func withoutCommands(words string) string {
	words = strings.NewReplacer("[", "(", "]", ")", "***", "* * *").Replace(words)
	return skipChecks().ReplaceAllString(words, "skip checks")
}

var skipChecks = lazyregexp.New(`(?i)skip-checks`)

// email is the proposer's address, where the id holds one.
func email(a ledger.Actor) string {
	if _, rest, ok := strings.Cut(a.ID, ":"); ok && strings.Contains(rest, "@") {
		return ledger.OneLine(rest, 200)
	}
	return "proposer@localhost"
}
