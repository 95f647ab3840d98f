package checks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// An Execution is what came of one command. It holds what the command printed,
// which may be anything, secrets included.
type Execution struct {
	Argv        []string           `json:"argv"`
	Shell       bool               `json:"shell"`            // Argv's first word is a script for sh
	Required    bool               `json:"required"`         // as the Policy or the Proposal says
	ExitCode    int                `json:"exit_code"`        // 128 and the signal's number where one ended it; -1 where it never ran
	Signal      string             `json:"signal,omitempty"` // in words
	TimedOut    bool               `json:"timed_out"`
	DurationMS  int64              `json:"duration_ms"`
	Stdout      string             `json:"stdout"` // at most 64 KiB: the middle is cut out, and a line says so
	Stderr      string             `json:"stderr"`
	StdoutBytes int64              `json:"stdout_bytes"` // printed in all
	StderrBytes int64              `json:"stderr_bytes"`
	Error       string             `json:"error"` // why it could not be run
	Protection  sandbox.Protection `json:"protection"`
}

// OK reports whether the command ran to its end and reported success.
func (e Execution) OK() bool {
	return len(e.Argv) > 0 && e.Error == "" && e.Signal == "" && !e.TimedOut && e.ExitCode == 0
}

// The bounds of an Execution. Those of the text it holds are in bytes.
const (
	maxOutput     = 64 << 10
	maxWords      = 1000
	maxArgv       = 64 << 10
	maxNote       = 1000 // of a signal's name, or the reason why it could not be run
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
	case len(e.Stdout) > maxOutput || len(e.Stderr) > maxOutput || !allText(e.Stdout, e.Stderr):
		return fmt.Errorf("what it printed is not text of at most %d bytes", maxOutput)
	case !isCount(e.DurationMS) || !isCount(e.StdoutBytes) || !isCount(e.StderrBytes):
		return fmt.Errorf("a number is out of range")
	}
	return checkProtection(e.Protection)
}

func checkProtection(p sandbox.Protection) error {
	ok := isNote(p.Mode) && p.Landlock >= 0 && p.Landlock <= 1000 && p.Namespaces != nil && len(p.Namespaces) <= maxNamespaces
	for _, n := range p.Namespaces {
		ok = ok && isNote(n)
	}
	if !ok {
		return fmt.Errorf("its protection is not one that we know")
	}
	return nil
}

// allText reports whether strings are valid UTF-8. A string from JSON may hold
// half of a surrogate pair, which is not.
func allText(all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) })
}

func isNote(s string) bool {
	return len(s) <= maxNote && allText(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func isCount(n int64) bool { return n >= 0 && n < maxNumber }

// A key is what makes two commands the same: the exact words, and whether a
// shell reads them.
func key(argv []string, shell bool) string { return fmt.Sprintf("%t %q", shell, argv) }

// label shows a command in an error.
func label(argv []string) string {
	return strconv.QuoteToASCII(truncate(strings.Join(argv, " "), 200))
}

func truncate(s string, most int) string {
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// distinct refuses a command that is given twice: there is one result for both.
func distinct(commands []policy.Check) error {
	seen := map[string]bool{}
	for _, c := range commands {
		k := key(c.Argv, c.Shell)
		if seen[k] {
			return fmt.Errorf("the command %s is asked for twice", label(c.Argv))
		}
		seen[k] = true
	}
	return nil
}
