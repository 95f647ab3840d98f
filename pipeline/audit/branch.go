package audit

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A Branch is what an audit says of the code: the commits of a branch that no
// transaction made. Since is the commit that the oldest transaction was
// reviewed on: what was there before the ledger began is not judged.
type Branch struct {
	Name        string        `json:"name"`
	Since       string        `json:"since"`
	Commits     int           `json:"commits"`
	Unexplained []Unexplained `json:"unexplained"`
}

// Unexplained is a commit that no transaction made, and why that is so.
type Unexplained struct {
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
}

// Since returns the commit that the oldest transaction was reviewed on, "" in a
// ledger without one.
func Since(tree fs.FS) (string, error) {
	ids, err := ledger.IDs(tree)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	log, err := ledger.Read(tree, ids[0])
	if err != nil {
		return "", err
	}
	return log.Meta().BaseCommit, nil
}

// Explain looks for the transaction that made each commit: its message names
// one with the trailer Countersign-Transaction, and an apply/complete of that
// transaction names the commit. tree is the ledger's tip.
func Explain(tree fs.FS, name, since string, commits []history.BranchCommit) (Branch, error) {
	b := Branch{Name: name, Since: since, Commits: len(commits), Unexplained: []Unexplained{}}
	for _, c := range commits {
		reason, err := unexplained(tree, c)
		if err != nil {
			return b, err
		}
		if reason != "" {
			subject, _, _ := strings.Cut(c.Message, "\n")
			b.Unexplained = append(b.Unexplained, Unexplained{c.ID, ledger.OneLine(subject, 120), reason})
		}
	}
	return b, nil
}

// unexplained says why a commit is; "" if a transaction made it.
func unexplained(tree fs.FS, c history.BranchCommit) (reason string, err error) {
	id := ""
	for line := range strings.Lines(c.Message) {
		if value, ok := strings.CutPrefix(line, "Countersign-Transaction: "); ok {
			id = strings.TrimSpace(value)
		}
	}
	if id == "" {
		return "names no transaction", nil
	}
	if ledger.CheckID(id) != nil {
		return fmt.Sprintf("names the transaction %s, which is none", ledger.OneLine(id, 60)), nil
	}
	if _, err := fs.Stat(tree, ledger.Dir(id)); err != nil {
		return fmt.Sprintf("names %s, which the ledger does not have", id), nil
	}
	log, err := ledger.Read(tree, id)
	if err != nil {
		return "", err
	}
	made := slices.ContainsFunc(ledger.Of[*ledger.ApplyComplete](log), func(p *ledger.ApplyComplete) bool {
		return p.Success && p.CommitAfter == c.ID
	})
	if !made {
		return fmt.Sprintf("names %s, which did not make it", id), nil
	}
	return "", nil
}
