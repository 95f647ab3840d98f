package checks

import (
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// Schema is the first word of Results' format.
const Schema = "countersign/results/1"

const (
	maxResults    = 8 << 20 // bytes of the document
	maxExecutions = 1000
)

// Results are what came of the commands of one Policy on one tree: what a job
// without rights hands to the one that has them. See the package comment.
type Results struct {
	Schema       string      `json:"schema"`
	Tree         string      `json:"tree"`          // the Git tree, 40 hex digits
	PolicySHA256 string      `json:"policy_sha256"` // the Policy's Sum
	Executions   []Execution `json:"executions"`
}

// Line is the Results in canonical JSON and an LF. What Parse would refuse is
// an error.
func (r Results) Line() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("writing the results: %w", err)
	}
	line, err := canon.Line(r)
	if err == nil && len(line) > maxResults {
		err = tooLarge()
	}
	if err != nil {
		return nil, fmt.Errorf("writing the results: %w", err)
	}
	return line, nil
}

// Parse reads what Line wrote. The bytes may come from anyone: they are refused
// if they are larger than 8 MiB, in any other form, or hold one command twice.
// That the form is right does not make it true: whoever can run the commands
// can say what came of them.
func Parse(raw []byte) (Results, error) {
	var r Results
	err := parse(raw, &r)
	if err != nil {
		return Results{}, fmt.Errorf("reading the results: %w", err)
	}
	return r, nil
}

func parse(raw []byte, r *Results) error {
	if len(raw) > maxResults {
		return tooLarge()
	}
	if len(raw) == 0 || raw[len(raw)-1] != '\n' {
		return errors.New("they do not end in a line feed: are they all there?")
	}
	if err := canon.Unmarshal(raw, r); err != nil {
		return err
	}
	return r.check()
}

func tooLarge() error { return fmt.Errorf("they are larger than %d bytes", maxResults) }

func (r Results) check() error {
	sum, prefixed := strings.CutPrefix(r.PolicySHA256, "sha256:")
	switch {
	case r.Schema != Schema:
		return fmt.Errorf("their schema is not %s", Schema)
	case !canon.IsHex64(r.Tree + strings.Repeat("0", 24)):
		return errors.New("their tree is not 40 lower-case hex digits")
	case !prefixed || !canon.IsHex64(sum):
		return errors.New("their policy_sha256 is not sha256: and 64 lower-case hex digits")
	case r.Executions == nil || len(r.Executions) > maxExecutions:
		return fmt.Errorf("they are not a list of at most %d executions", maxExecutions)
	}
	seen := map[string]bool{}
	for i, e := range r.Executions {
		if err := e.check(); err != nil {
			return fmt.Errorf("execution %d: %w", i+1, err)
		}
		if k := key(e.Argv, e.Shell); seen[k] {
			return fmt.Errorf("execution %d: %s is there twice", i+1, label(e.Argv))
		} else {
			seen[k] = true
		}
	}
	return nil
}

// For returns the executions of the commands wanted, in their order. Results of
// another tree or another Policy, a command that is missing or that nobody
// wanted, and one that is required here and optional there, are errors.
func (r Results) For(tree, policySum string, commands []policy.Check) ([]Execution, error) {
	out, err := r.pick(tree, policySum, commands)
	if err != nil {
		return nil, fmt.Errorf("using the results: %w", err)
	}
	return out, nil
}

func (r Results) pick(tree, policySum string, commands []policy.Check) ([]Execution, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := distinct(commands); err != nil {
		return nil, err
	}
	if r.Tree != tree {
		return nil, fmt.Errorf("they are of the tree %s, not of %s", r.Tree, tree)
	}
	if r.PolicySHA256 != policySum {
		return nil, fmt.Errorf("they are of the Policy %s, not of %s", r.PolicySHA256, policySum)
	}
	have := map[string]Execution{}
	for _, e := range r.Executions {
		have[key(e.Argv, e.Shell)] = e
	}
	out := make([]Execution, 0, len(commands))
	for _, c := range commands {
		e, ok := have[key(c.Argv, c.Shell)]
		switch {
		case !ok:
			return nil, fmt.Errorf("%s is missing", label(c.Argv))
		case e.Required != c.Required:
			return nil, fmt.Errorf("%s is required in one place and optional in the other", label(c.Argv))
		}
		delete(have, key(c.Argv, c.Shell))
		out = append(out, e)
	}
	return out, surplus(r.Executions, have)
}

// surplus names the first of the executions that are left over.
func surplus(all []Execution, left map[string]Execution) error {
	for _, e := range all {
		if _, ok := left[key(e.Argv, e.Shell)]; ok {
			return fmt.Errorf("%s is there, and nobody asked for it", label(e.Argv))
		}
	}
	return nil
}
