package proofs

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/view"
)

type object = map[string]any

// A sarif is a run of SARIF in the making: results, and the rules that they break, each once.
type sarif struct {
	rules, results []any
	known          map[string]bool
}

// A sarifRule is a rule, how bad it is to break it, and what it is about.
type sarifRule struct{ id, level, text string }

var (
	unexplainedRule = sarifRule{"unexplained-commit", "error", "nothing accounts for a commit: docs/explain.md"}
	contradicted    = sarifRule{"forge-contradicts-record", "error", "the forge tells something else than the record: docs/online.md"}
	untold          = sarifRule{"forge-does-not-tell", "warning", "the forge does not tell what was recorded of it: docs/online.md"}

	onlineRules = map[online.Verdict]sarifRule{online.Gone: contradicted, online.Changed: contradicted, online.Unknown: untold}
)

// SARIF is what an audit found, for code scanning (SARIF 2.1.0, OASIS, 2020): the ledger's findings,
// the commits of a branch that nothing accounts for, and what the forge tells otherwise than the record, or not;
// branch and asked may be nil. A finding about no file is placed at the Policy, as code scanning takes none without a file.
func SARIF(r audit.Result, branch *explain.Branch, asked *online.Result, ledgerRef, version string) map[string]any {
	run := sarif{[]any{}, []any{}, map[string]bool{}}
	for _, f := range slices.Concat(r.Findings, r.Pages.Findings) {
		text := "a rule of the ledger: docs/formats.md"
		if f.RuleID == "L23" {
			text = "a page in the ledger differs from the record, which is sound or not without it: docs/formats.md"
		}
		run.add(sarifRule{f.RuleID, "error", text}, fmt.Sprintf("%s %.12s %s: %s", ledgerRef, f.Commit, f.Path, f.Message), f.Commit, "commit/v1", f.Commit, nil)
	}
	if branch != nil {
		for _, u := range branch.Unexplained {
			lines := u.Lines
			for _, path := range u.Paths {
				if len(u.Lines) == 0 {
					lines = append(lines, explain.Lines{Path: path})
				}
			}
			run.add(unexplainedRule, fmt.Sprintf("Commit %s of %s (%s) %s", u.Commit, branch.Name, u.Subject, u.Reason), u.Commit, "commit/v1", u.Commit, lines)
		}
	}
	if asked != nil {
		for _, f := range asked.Findings {
			if rule, told := onlineRules[f.Verdict]; told {
				about := f.What + " " + f.About
				run.add(rule, fmt.Sprintf("%s (%s) is %s: %s %s", about, f.TransactionID, f.Verdict, f.Now, f.Reason), f.TransactionID, "online/v1", f.TransactionID+" "+about, nil)
			}
		}
	}
	driver := object{"name": "countersign", "version": version, "rules": run.rules}
	return object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []any{object{"tool": object{"driver": driver}, "results": run.results}},
	}
}

// add adds a result about a commit or a transaction. Under mark, of is what it is known again by.
func (s *sarif) add(rule sarifRule, message, about, mark, of string, lines []explain.Lines) {
	if !s.known[rule.id] {
		s.known[rule.id] = true
		s.rules = append(s.rules, object{"id": rule.id, "shortDescription": object{"text": rule.text}})
	}
	if len(lines) == 0 {
		lines = []explain.Lines{{Path: policy.Path}}
	}
	var places []any
	for _, l := range lines {
		physical := object{"artifactLocation": object{"uri": view.Joined(strings.Split(l.Path, "/"), "/", url.PathEscape)}}
		if l.From > 0 {
			physical["region"] = object{"startLine": l.From, "endLine": max(l.From, l.To)}
		}
		places = append(places, object{"physicalLocation": physical, "logicalLocations": []any{object{"name": cmp.Or(about, "ledger"), "kind": "commit"}}})
	}
	s.results = append(s.results, object{
		"ruleId": rule.id, "level": rule.level, "message": object{"text": report.Clean(message)}, "locations": places, "partialFingerprints": object{mark: of + " " + rule.id},
	})
}
