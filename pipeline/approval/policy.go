// Package approval decides: what the Policy asks for, what was said, and what
// that adds up to. It is pure; who said what is for the caller to find out.
package approval

import (
	"github.com/countersign-dev/countersign/pipeline/canon"
)

// A Policy is what a repository's owner demands. The zero value demands
// nothing and is never used; Default is what holds without a Policy file.
type Policy struct {
	Version   int       `json:"version"`
	Approvals Approvals `json:"approvals"`
	Limits    Limits    `json:"limits"`
}

// Approvals says whose agreement is needed. Local tells whether decisions taken
// with the command line count.
type Approvals struct {
	Required int  `json:"required"`
	Local    bool `json:"local"`
}

// Limits bound what may be proposed: changed files, and bytes of input.
type Limits struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Default is the Policy of a repository that has none: one human, who may
// decide locally because there is no pull request; 500 files; 5 MiB.
func Default() Policy {
	return Policy{
		Version:   1,
		Approvals: Approvals{Required: 1, Local: true},
		Limits:    Limits{Files: 500, Bytes: 5 << 20},
	}
}

// Sum is the "sha256:…" of the Policy's canonical JSON.
func (p Policy) Sum() string {
	line, err := canon.Line(p)
	if err != nil {
		panic("approval: encoding a Policy: " + err.Error())
	}
	return canon.Sum(line)
}
