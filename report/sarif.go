package report

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// UnexplainedRule is the rule of SARIF that a commit breaks which nothing accounts for.
const UnexplainedRule = "unexplained-commit"

// A SARIFLog is a log of SARIF 2.1.0 (OASIS, 2020), as far as audit writes one.
type SARIFLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID   string    `json:"id"`
	Text sarifText `json:"shortDescription"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID       string            `json:"ruleId"`
	Level        string            `json:"level"`
	Message      sarifText         `json:"message"`
	Locations    []sarifLocation   `json:"locations"`
	Fingerprints map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct {
	Physical sarifPhysical  `json:"physicalLocation"`
	Logical  []sarifLogical `json:"logicalLocations"`
}

type sarifPhysical struct {
	Artifact struct {
		URI string `json:"uri"`
	} `json:"artifactLocation"`
	Region *sarifRegion `json:"region,omitempty"`
}

type sarifRegion struct {
	From int `json:"startLine"`
	To   int `json:"endLine"`
}

type sarifLogical struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// SARIF is what an audit found, for code scanning: the ledger's findings and the commits
// of a branch that nothing accounts for; branch may be nil. A finding about no file is
// placed at the Policy, as code scanning takes none without a file.
func SARIF(r audit.Result, branch *explain.Branch, ledgerRef, version string) SARIFLog {
	run := sarifRun{Tool: sarifTool{sarifDriver{"countersign", version, []sarifRule{}}}, Results: []sarifResult{}}
	add := func(rule, text, message, commit string, lines []explain.Lines) {
		if !slices.ContainsFunc(run.Tool.Driver.Rules, func(r sarifRule) bool { return r.ID == rule }) {
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{rule, sarifText{text}})
		}
		one := sarifResult{RuleID: rule, Level: "error", Message: sarifText{Clean(message)}, Fingerprints: map[string]string{"commit/v1": commit + " " + rule}}
		for _, l := range lines {
			one.Locations = append(one.Locations, sarifPlace(l, commit))
		}
		run.Results = append(run.Results, one)
	}
	for _, f := range r.Findings {
		place := []explain.Lines{{Path: policy.Path}}
		add(f.RuleID, "a rule of the ledger: docs/formats.md", fmt.Sprintf("%s %.12s %s: %s", ledgerRef, f.Commit, f.Path, f.Message), f.Commit, place)
	}
	if branch != nil {
		for _, u := range branch.Unexplained {
			lines := u.Lines
			for _, path := range u.Paths {
				if len(u.Lines) == 0 {
					lines = append(lines, explain.Lines{Path: path})
				}
			}
			if len(lines) == 0 {
				lines = []explain.Lines{{Path: policy.Path}}
			}
			add(UnexplainedRule, "nothing accounts for a commit: docs/explain.md", fmt.Sprintf("Commit %s of %s (%s) %s", u.Commit, branch.Name, u.Subject, u.Reason), u.Commit, lines)
		}
	}
	return SARIFLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}}
}

// sarifPlace is where a commit has lines of a file.
func sarifPlace(l explain.Lines, commit string) sarifLocation {
	var at sarifLocation
	names := strings.Split(l.Path, "/")
	for i, name := range names {
		names[i] = url.PathEscape(name)
	}
	at.Physical.Artifact.URI = strings.Join(names, "/")
	if l.From > 0 {
		at.Physical.Region = &sarifRegion{l.From, max(l.From, l.To)}
	}
	at.Logical = []sarifLogical{{cmp.Or(commit, "ledger"), "commit"}}
	return at
}
