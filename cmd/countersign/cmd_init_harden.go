package main

import "strings"

// signEnvironment is the environment that keeps the keys (docs/setup.md).
const signEnvironment = "countersign"

// initHarden prints requests to GitHub's REST API, in the order to make them:
// {owner} and {repo} are filled in by "gh api".
func (a *App) initHarden(f initFlags) error {
	requests := environmentRequests(f)
	if branch, ok := strings.CutPrefix(a.flags.ledgerRef, "refs/heads/"); ok {
		requests = append(ledgerRulesets(branch, f.app), requests...)
		if f.app == 0 {
			a.say("hint: --app NUMBER also keeps everybody but that app from adding to the ledger")
		}
	} else {
		a.say("no ruleset reaches %s: rulesets are for branches and tags, so whoever may push can rewrite or delete that ref", a.flags.ledgerRef)
		a.say("hint: countersign remembers the last tip and refuses a ledger that was rewritten; --ledger-ref refs/heads/countersign-ledger keeps it where a ruleset holds")
	}
	if f.gate {
		requests = append(requests, checkRuleset(f.app))
	}
	a.say("hint: after these requests, put the secrets COUNTERSIGN_SIGN_KEY and COUNTERSIGN_APP_KEY into the environment %q, and that name into the variable COUNTERSIGN_ENVIRONMENT", signEnvironment)
	return a.printJSON(requests)
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

// checkRuleset requires the check of gate-only mode. Where an app is named no
// other's check of that name counts (T67).
func checkRuleset(app int64) any {
	check := document{"context": "countersign"}
	if app != 0 {
		check["integration_id"] = app
	}
	return ruleset("countersign: the exact bytes are approved", "~DEFAULT_BRANCH", nil, document{
		"type":       "required_status_checks",
		"parameters": document{"strict_required_status_checks_policy": false, "required_status_checks": []any{check}},
	})
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

// environmentRequests make an environment whose secrets only workflows of the
// default branch are given, and those of a merge queue in front of it where pull
// requests are guarded.
func environmentRequests(f initFlags) []any {
	path := "environments/" + signEnvironment
	out := []any{
		request("PUT", path, document{"deployment_branch_policy": document{"protected_branches": false, "custom_branch_policies": true}}),
		request("POST", path+"/deployment-branch-policies", document{"name": f.branch}),
	}
	if f.gate {
		out = append(out, request("POST", path+"/deployment-branch-policies", document{"name": "gh-readonly-queue/" + f.branch + "/*"}))
	}
	return out
}
