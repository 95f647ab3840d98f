package checks

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// Asked is all that a Proposal asks for beyond its files, as an artifact has it.
type Asked struct {
	Schema     string   `json:"schema"`
	ProposalID string   `json:"proposal_id"`
	Actions    []Action `json:"actions"`
	Tests      []Test   `json:"acceptance_tests"`
}

// Types of actions and tests, as a Proposal has them (package document).
const (
	executeCommand = "execute_command"
	hashMatch      = "hash_match"
	commandSuccess = "command_success"
	fileExists     = "file_exists"
	contentMatch   = "content_match"
)

// AskedSchema is the schema of Asked.
const AskedSchema = "countersign/checks/1"

// An Action is an execute_command, validate or test action.
type Action struct {
	ID          string  `json:"id"`
	Type        string  `json:"type"`
	Target      string  `json:"target"`
	Content     *string `json:"content,omitempty"`
	Required    bool    `json:"required"`
	Description string  `json:"description"`
}

// A Test is an acceptance test.
type Test struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Type     string `json:"type"`
	Target   string `json:"target"`
	Expected string `json:"expected"`
	Required bool   `json:"required"`
}

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

// ReadFile returns a file, nil if there is none. base is what is expected
// there, for the mode where a file system does not tell.
type ReadFile func(path string, base *patch.File) (*patch.File, error)

// RunTests looks at the files that a Proposal's tests are about. Its commands
// are among WantedCommands.
func RunTests(doc Asked, read ReadFile) ([]TestResult, error) {
	var out []TestResult
	for _, t := range doc.required() {
		if t.Type == commandSuccess {
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
func (d Asked) required() []Test {
	out := slices.Clone(d.Tests)
	for i := range out {
		for _, a := range d.Actions {
			if a.Type != executeCommand && a.Target == out[i].ID {
				out[i].Required = out[i].Required || a.Required
			}
		}
	}
	return out
}

// run returns why the test fails, "" if it passes.
func (t Test) run(read ReadFile) (string, error) {
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
func (t Test) judge(f *patch.File) string {
	switch {
	case t.Type == fileExists && (f == nil) == (t.Expected == "false"):
		return ""
	case f == nil:
		return "the file does not exist"
	case t.Type == fileExists:
		return "the file exists"
	case t.Type == hashMatch && canon.Hex(f.Data) == strings.TrimPrefix(t.Expected, "sha256:"):
		return ""
	case t.Type == hashMatch:
		return "the file's hash is " + canon.Sum(f.Data)
	case t.Type == contentMatch && string(f.Data) == t.Expected:
		return ""
	}
	return "the content is not what is expected"
}

// ReadAsked reads what a transaction's Proposal asks for beyond its files.
func ReadAsked(tree fs.FS, tx ledger.Transaction) (Asked, error) {
	file := tx.Pointers.Proposal.Checks
	switch proposed := tx.Pointers.Proposal.Kind == ledger.KindProposal; {
	case file == "" && proposed: // a record that lost what was asked for is not one that asks for nothing
		return Asked{}, &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New("the Proposal's checks are not recorded")}
	case file == "":
		return Asked{}, nil
	}
	raw, err := ledger.ReadFile(tree, tx.TransactionID, file)
	if err != nil {
		return Asked{}, err
	}
	var doc Asked
	if err := canon.UnmarshalDocument("the list of checks", raw, &doc); err != nil {
		return Asked{}, &ledger.CorruptError{ID: tx.TransactionID, Err: err}
	}
	if doc.Schema != AskedSchema {
		err := errors.New("what its Proposal asks for is recorded in an unknown schema")
		return Asked{}, &ledger.CorruptError{ID: tx.TransactionID, Err: err}
	}
	return doc, nil
}

// Lines are the WantedCommands in words, each once.
func Lines(p policy.Policy, doc Asked) []string {
	var out []string
	for _, w := range WantedCommands(p, doc) {
		line := w.Target
		if w.Message != "" {
			line += " (" + w.Message + ")"
		}
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

// Failures are the required checks that did not pass, as findings.
func Failures(results []TestResult) []canon.Violation {
	var out []canon.Violation
	for _, t := range results {
		if t.Required && !t.OK {
			out = append(out, canon.Violation{RuleID: "TEST", Path: t.ID, Message: t.Type + " " + patch.Quote(t.Target) + ": " + t.Message})
		}
	}
	return out
}

// A Wanted is one thing that asks for a command. Message says why it is not
// run, "" where it is.
type Wanted struct {
	ID, Kind, Target string
	Required         bool
	Command          policy.Command
	Message          string
}

// Result is what came of it.
func (w Wanted) Result(ok bool, message string) TestResult {
	return TestResult{w.ID, w.Kind, w.Target, w.Required, ok, message}
}

// WantedCommands are those of the Policy, and those of a Proposal; what the
// Policy does not allow is not run, and has failed.
func WantedCommands(p policy.Policy, doc Asked) []Wanted {
	var out []Wanted
	for i, c := range p.Commands.Run {
		out = append(out, Wanted{fmt.Sprintf("commands.run[%d]", i), "command", c.Command.Text(), c.Required, c.Command, ""})
	}
	ask := func(id, kind, target string, required bool) {
		w := Wanted{ID: id, Kind: kind, Target: target, Required: required}
		var ok bool
		if w.Command, ok = Allowed(p, target); !ok {
			w.Message = "not run: the Policy does not allow the command"
		}
		out = append(out, w)
	}
	tests := map[string]bool{}
	for _, t := range doc.required() {
		if tests[t.ID] = true; t.Type == commandSuccess {
			ask(t.ID, t.Type, t.Target, t.Required)
		}
	}
	for _, a := range doc.Actions {
		if a.Type == executeCommand || !tests[a.Target] { // else it names a test, which runs anyway
			ask(a.ID, a.Type, a.Target, a.Required)
		}
	}
	return out
}
