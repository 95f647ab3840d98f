package checks

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
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
	Tree         string      `json:"tree"`          // the Git tree, 40 hex digits, or 64
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
	var err error
	switch {
	case len(raw) > maxResults:
		err = tooLarge()
	case len(raw) == 0 || raw[len(raw)-1] != '\n':
		err = errors.New("they do not end in a line feed: is the end missing?")
	default:
		if err = canon.UnmarshalDocument("the file", raw, &r); err == nil {
			err = r.check()
		}
	}
	if err != nil {
		return Results{}, fmt.Errorf("reading the results: %w", err)
	}
	return r, nil
}

func tooLarge() error { return fmt.Errorf("they are larger than %d bytes", maxResults) }

func (r Results) check() error {
	switch {
	case r.Schema != Schema:
		return fmt.Errorf("their schema is not %s", Schema)
	case !canon.IsGitID(r.Tree):
		return errors.New("their tree is not 40 or 64 lower-case hex digits")
	case !canon.IsSum(r.PolicySHA256):
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
			return fmt.Errorf("execution %d: %s is there twice", i+1, Label(e.Argv))
		} else {
			seen[k] = true
		}
	}
	return nil
}

// For returns the executions of the commands wanted, in their order. Results of
// another tree or another Policy, a command that is missing or that nobody
// wanted, and one that is required here and optional there, are errors.
func (r Results) For(tree, policySum string, commands []policy.Check) (_ []Execution, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("using the results: %w", err)
		}
	}()
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := Distinct(commands); err != nil {
		return nil, err
	}
	if r.Tree != tree {
		return nil, fmt.Errorf("they are of the tree %s, not of %s", r.Tree, tree)
	}
	if r.PolicySHA256 != policySum {
		return nil, fmt.Errorf("they are of the Policy %s, not of %s", r.PolicySHA256, policySum)
	}
	left := map[string]Execution{}
	for _, e := range r.Executions {
		left[key(e.Argv, e.Shell)] = e
	}
	out := make([]Execution, 0, len(commands))
	for _, c := range commands {
		e, ok := left[key(c.Argv, c.Shell)]
		switch {
		case !ok:
			return nil, fmt.Errorf("%s is missing", Label(c.Argv))
		case e.Required != c.Required:
			return nil, fmt.Errorf("%s is required in one place and optional in the other", Label(c.Argv))
		}
		delete(left, key(c.Argv, c.Shell))
		out = append(out, e)
	}
	for _, e := range r.Executions {
		if _, unwanted := left[key(e.Argv, e.Shell)]; unwanted {
			return nil, fmt.Errorf("%s has a result, although nobody asked for it", Label(e.Argv))
		}
	}
	return out, nil
}

// An Execution is what came of one command. It holds what the command printed,
// which may be anything, secrets included.
type Execution struct {
	Argv        []string   `json:"argv"`
	Shell       bool       `json:"shell"`            // Argv's first word is a script for sh
	Required    bool       `json:"required"`         // as the Policy or the Proposal says
	ExitCode    int        `json:"exit_code"`        // 128 and the signal's number where one ended it; -1 where it never ran
	Signal      string     `json:"signal,omitempty"` // in words
	TimedOut    bool       `json:"timed_out"`
	DurationMS  int64      `json:"duration_ms"`
	Stdout      string     `json:"stdout"` // at most 64 KiB: the middle is cut out, and a line says so
	Stderr      string     `json:"stderr"`
	StdoutBytes int64      `json:"stdout_bytes"` // printed in all
	StderrBytes int64      `json:"stderr_bytes"`
	Error       string     `json:"error"` // why it could not be run
	Protection  Protection `json:"protection"`
}

// Protection is what a sandbox had in force when a command ran.
type Protection struct {
	Mode          string   `json:"mode"`
	Landlock      int      `json:"landlock"`       // ABI version; 0 means none
	Namespaces    []string `json:"namespaces"`     // names as of /proc/PID/ns
	Seccomp       bool     `json:"seccomp"`        // the filter of dangerous system calls
	NetworkFilter bool     `json:"network_filter"` // no network because the filter denies sockets
}

// OK reports whether the command ran to its end and reported success.
func (e Execution) OK() bool {
	return len(e.Argv) > 0 && e.Error == "" && e.Signal == "" && !e.TimedOut && e.ExitCode == 0
}

// The bounds of an Execution. Those of the text it holds are in bytes.
const (
	MaxOutput     = 64 << 10
	maxWords      = 1000
	maxArgv       = 64 << 10
	MaxNote       = 1000 // of a signal's name, or the reason why it could not be run
	maxNumber     = 1e15 // as far as canonical JSON is exact
	maxNamespaces = 16
)

// check says what no Execution of ours has.
func (e Execution) check() error {
	switch {
	case len(e.Argv) == 0 || len(e.Argv) > maxWords || len(strings.Join(e.Argv, " ")) > maxArgv || !allText(e.Argv...):
		return fmt.Errorf("its argv is not one of 1 to %d words of text", maxWords)
	case e.ExitCode < -1 || e.ExitCode > 255 || (e.ExitCode < 0) != (e.Error != ""):
		return fmt.Errorf("its exit code is %d, and its error %+q", e.ExitCode, truncate(e.Error, 200))
	case !isNote(e.Signal) || !isNote(e.Error):
		return fmt.Errorf("its signal and error are not a short line of text each")
	case len(e.Stdout) > MaxOutput || len(e.Stderr) > MaxOutput || !allText(e.Stdout, e.Stderr):
		return fmt.Errorf("its output is not text of at most %d bytes", MaxOutput)
	case !isCount(e.DurationMS) || !isCount(e.StdoutBytes) || !isCount(e.StderrBytes):
		return fmt.Errorf("a number is out of range")
	}
	p := e.Protection
	if !isNote(p.Mode) || p.Landlock < 0 || p.Landlock > 1000 || p.Namespaces == nil || len(p.Namespaces) > maxNamespaces ||
		slices.ContainsFunc(p.Namespaces, func(name string) bool { return !isNote(name) }) {
		return errors.New("its protection is not one that we know")
	}
	return nil
}

// allText reports whether strings are valid UTF-8. A string from JSON may hold
// half of a surrogate pair, which is not.
func allText(all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) })
}

func isNote(s string) bool {
	return len(s) <= MaxNote && allText(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func isCount(n int64) bool { return n >= 0 && n < maxNumber }

// A key is what makes two commands the same: the exact words, and whether a
// shell reads them.
func key(argv []string, shell bool) string { return fmt.Sprintf("%t %q", shell, argv) }

// Label shows a command in an error.
func Label(argv []string) string {
	return strconv.QuoteToASCII(truncate(strings.Join(argv, " "), 200))
}

func truncate(s string, most int) string {
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// Distinct refuses a command that is given twice: there is one result for both.
func Distinct(commands []policy.Check) error {
	seen := map[string]bool{}
	for _, c := range commands {
		k := key(c.Argv, c.Shell)
		if seen[k] {
			return fmt.Errorf("the command %s is asked for twice", Label(c.Argv))
		}
		seen[k] = true
	}
	return nil
}
