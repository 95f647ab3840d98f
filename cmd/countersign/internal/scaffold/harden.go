package scaffold

import "strings"

// SignEnvironment is the environment that keeps the keys (docs/setup.md).
const SignEnvironment = "countersign"

type document = map[string]any

// Harden are requests to GitHub's REST API, in the order to make them, which
// protect the ledger where it is on a branch, the default branch's check where
// pull requests are guarded, and the signing key. {owner} and {repo} are filled in
// by "gh api"; app is 0 where none is named.
func Harden(ledgerRef, defaultBranch string, gate bool, app int64) []any {
	var out []any
	if branch, ok := strings.CutPrefix(ledgerRef, "refs/heads/"); ok {
		out = ledgerRulesets(branch, app)
	}
	// The environment's secrets are given to workflows of the default branch alone,
	// and to those of a merge queue in front of it where pull requests are guarded.
	environment := "environments/" + SignEnvironment
	out = append(out,
		request("PUT", environment, document{"deployment_branch_policy": document{"protected_branches": false, "custom_branch_policies": true}}),
		request("POST", environment+"/deployment-branch-policies", document{"name": defaultBranch}))
	if !gate {
		return out
	}
	// Where an app is named no other's check of that name counts (T67).
	check := document{"context": "countersign"}
	if app != 0 {
		check["integration_id"] = app
	}
	return append(out,
		request("POST", environment+"/deployment-branch-policies", document{"name": "gh-readonly-queue/" + defaultBranch + "/*"}),
		ruleset("countersign: the exact bytes are approved", "~DEFAULT_BRANCH", nil, document{
			"type":       "required_status_checks",
			"parameters": document{"strict_required_status_checks_policy": false, "required_status_checks": []any{check}},
		}))
}

func request(method, path string, body document) any {
	return document{"method": method, "path": "repos/{owner}/{repo}/" + path, "body": body}
}

// ledgerRulesets protect the branch that has the ledger. They are two, because
// whom a ruleset excepts is excepted from all of its rules: the app may add to
// the ledger, and may not rewrite it.
func ledgerRulesets(branch string, app int64) []any {
	ref := "refs/heads/" + branch
	out := []any{ruleset("countersign: the ledger is only added to", ref, nil, document{"type": "deletion"}, document{"type": "non_fast_forward"})}
	if app != 0 {
		only := []any{document{"actor_id": app, "actor_type": "Integration", "bypass_mode": "always"}}
		update := document{"type": "update", "parameters": document{"update_allows_fetch_and_merge": false}}
		out = append(out, ruleset("countersign: who adds to the ledger", ref, only, document{"type": "creation"}, update))
	}
	return out
}

func ruleset(name, ref string, except []any, rules ...any) any {
	if except == nil {
		except = []any{}
	}
	return request("POST", "rulesets", document{
		"name": name, "target": "branch", "enforcement": "active", "bypass_actors": except, "rules": rules,
		"conditions": document{"ref_name": document{"include": []any{ref}, "exclude": []any{}}},
	})
}
