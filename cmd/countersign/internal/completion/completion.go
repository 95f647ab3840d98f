// Package completion says what a shell may offer to who types a command: transactions, refs
// and the few values that a flag can have. It
// is called at every press of a key: it reads the ledger as it is, verifies nothing, asks
// nobody, and says nothing where something is wrong, as the command itself then will.
package completion

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/report"
)

// The bounds of the work for one press of a key.
const (
	maxOffered = 100
	maxRead    = 1000
	maxSummary = 60 // characters
)

// Transactions are the ids that begin with what was typed, newest first, each with a tab
// and a line that describes it, as shells take it. Open leaves out those that are closed.
func Transactions(tree fs.FS, typed string, open bool) []string {
	var out []string
	read := 0
	for id, err := range ledger.Backward(tree) {
		if err != nil || len(out) == maxOffered || read == maxRead {
			break
		}
		if ledger.CheckID(id) != nil || !strings.HasPrefix(id, typed) {
			continue
		}
		read++
		tx, err := ledger.State(tree, id)
		if err != nil || open && tx.Closed {
			continue
		}
		out = append(out, id+"\t"+describe(tx))
	}
	return out
}

// Takes reports whether a command takes a transaction, and whether that has to be open.
func Takes(command string) (takes, open bool) {
	switch command {
	case "approve", "deny", "sign", "gate", "wait", "apply", "run", "close", "settle", "checks":
		return true, true
	case "show", "log", "diff", "export", "validate":
		return true, false
	}
	return false, false
}

// Values are what a command's flags can be, by the flag's name, where they are few. None are
// offered for words, numbers and times, and no file either.
func Values(command string) map[string][]string {
	all := map[string][]string{
		"as": {"one\tall of them are one change"}, "sandbox": {"read-only", "workspace-write", "danger-full-access"},
		"fingerprint": {"secret\twhat looks like a secret", "protected\tprotected paths"},
		"recipe":      {"remove-todo"}, "to": {"worktree", "branch", "ref"}, "color": {"auto", "always", "never"},
		"status": {string(ledger.Interrupted)},
	}
	for _, name := range []string{
		"app", "concurrency", "every", "id", "known-tip", "limit", "max", "needle", "part", "pr", "reason", "repo", "since", "summary", "timeout", "tree",
	} {
		all[name] = nil
	}
	if command == "review" {
		all["as"] = append(all["as"], "each\teach is a transaction")
	}
	if command == "list" {
		all["status"] = nil
		for _, status := range ledger.Statuses {
			all["status"] = append(all["status"], string(status))
		}
	}
	return all
}

// directories are the flags that take a directory.
var directories = []string{"directory", "dir", "pack", "target"}

// refs are the flags that take a ref, with the prefix that they leave out.
var refs = map[string]string{"ledger-ref": "", "policy-ref": "", "from": "", "commit": "", "branch": "refs/heads/"}

// names are those, without a prefix that all have, that begin with what was typed. What a
// shell might expand is not offered.
func names(all []string, prefix, typed string) []string {
	var out []string
	for _, name := range all {
		short, has := strings.CutPrefix(name, prefix)
		if has && len(out) < maxOffered && strings.HasPrefix(short, typed) && short == strings.Map(inert, report.Clean(short)) {
			out = append(out, short)
		}
	}
	return out
}

// describe is a transaction's state and summary, in one line that is inert whatever a
// shell does with it.
func describe(tx ledger.Transaction) string {
	text := []rune(report.Clean(tx.Notes))
	if len(text) > maxSummary {
		text = append(text[:maxSummary-1], '…')
	}
	return strings.Map(inert, fmt.Sprintf("%s: %s", tx.Status, string(text)))
}

// inert replaces what a shell might expand, or take for the end of a word.
func inert(r rune) rune {
	if strings.ContainsRune("$`\\!'\"<>&|;*?~{}", r) {
		return '_'
	}
	return r
}
