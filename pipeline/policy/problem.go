package policy

import (
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing that is wrong with a Policy file. Line and Column, in
// characters, count from 1. Key is the path of keys to it, "" for the file as a
// whole: approvals.required, protected[0].paths[2]. Allowed are the keys or
// words that could stand there, where these can be listed.
type Problem struct {
	File    string   `json:"file"`
	Line    int      `json:"line"`
	Column  int      `json:"column"`
	Key     string   `json:"key"`
	Message string   `json:"message"`
	Allowed []string `json:"allowed,omitempty"`
}

// Error is file:line:column: key: message (allowed: …), on one line.
func (p Problem) Error() string {
	s := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Key != "" {
		s += p.Key + ": "
	}
	s += p.Message
	if len(p.Allowed) > 0 {
		s += " (allowed: " + strings.Join(p.Allowed, ", ") + ")"
	}
	return s
}

// Problems are all that is wrong with a Policy file, in the file's order.
type Problems []Problem

// Error is one line for each Problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each Problem as an error.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// maxProblems is how many are told; who reads the list mends the first ones.
const maxProblems = 100

// err is nil where there are none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return ps[:min(len(ps), maxProblems)]
}
