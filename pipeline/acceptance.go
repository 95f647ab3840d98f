package pipeline

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/proposal"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// A TestResult is one check of a Proposal (PROPOSAL_INTERNAL_SPEC 3.4) and what
// came of it.
type TestResult struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Target   string `json:"target"`
	Required bool   `json:"required"`
	OK       bool   `json:"ok"`
	Message  string `json:"message"`
}

// readFile returns a file, nil if there is none. base is what is expected
// there, for the mode where a file system does not tell.
type readFile func(path string, base *patch.File) (*patch.File, error)

// runTests looks at the files that a Proposal's tests are about. Its commands
// are in commands.go.
func runTests(doc checksDoc, read readFile) ([]TestResult, error) {
	var out []TestResult
	for _, t := range doc.required() {
		if t.Type == proposal.CommandSuccess {
			continue
		}
		message, err := t.run(read)
		if err != nil {
			return nil, err
		}
		out = append(out, TestResult{t.ID, t.Type, t.Target, t.Required, message == "", message})
	}
	return out, nil
}

// required are the tests, each required where it says so itself or an action
// that must succeed names it.
func (d checksDoc) required() []checkTest {
	out := slices.Clone(d.Tests)
	for i := range out {
		for _, a := range d.Actions {
			if a.Type != proposal.ExecuteCommand && a.Target == out[i].ID {
				out[i].Required = out[i].Required || a.Required
			}
		}
	}
	return out
}

// run returns why the test fails, "" if it passes.
func (t checkTest) run(read readFile) (string, error) {
	if err := patch.CheckPath(t.Target); err != nil {
		return err.Error(), nil
	}
	f, err := read(t.Target, nil)
	if _, unfit := err.(*patch.Error); unfit {
		return err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	return t.judge(f), nil
}

// judge: file_exists takes "false" for a file that must not be there; hash_match
// takes a SHA-256 of the raw bytes with or without "sha256:"; content_match
// takes the whole content.
func (t checkTest) judge(f *patch.File) string {
	switch {
	case t.Type == proposal.FileExists && (f == nil) == (t.Expected == "false"):
		return ""
	case f == nil:
		return "the file does not exist"
	case t.Type == proposal.FileExists:
		return "the file exists"
	case t.Type == proposal.HashMatch && canon.Hex(f.Data) == strings.TrimPrefix(t.Expected, "sha256:"):
		return ""
	case t.Type == proposal.HashMatch:
		return "the file's hash is " + canon.Sum(f.Data)
	case t.Type == proposal.ContentMatch && string(f.Data) == t.Expected:
		return ""
	}
	return "the content is not what is expected"
}

// readChecks reads what a transaction's Proposal asks for beyond its files.
func readChecks(tree fs.FS, tx ledger.Transaction) (checksDoc, error) {
	file := tx.Pointers.Proposal.Checks
	switch proposed := tx.Pointers.Proposal.Kind == input.KindProposal; {
	case file == "" && proposed: // a record that lost what was asked for is not one that asks for nothing
		return checksDoc{}, &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New("the Proposal's checks are not recorded")}
	case file == "":
		return checksDoc{}, nil
	}
	raw, err := fs.ReadFile(tree, path.Join(ledger.Dir(tx.TransactionID), file))
	if err != nil {
		return checksDoc{}, err
	}
	var doc checksDoc
	if err := canon.Unmarshal(raw, &doc); err != nil {
		return checksDoc{}, &ledger.CorruptError{ID: tx.TransactionID, Err: err}
	}
	return doc, nil
}

// failures are the required checks that did not pass, as findings.
func failures(results []TestResult) []rule.Violation {
	var out []rule.Violation
	for _, t := range results {
		if t.Required && !t.OK {
			out = append(out, rule.Violation{RuleID: "TEST", Path: t.ID, Message: t.Type + " " + patch.Quote(t.Target) + ": " + t.Message})
		}
	}
	return out
}
