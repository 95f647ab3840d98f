package githubtest

import (
	"maps"
	"slices"
)

var ruleOperations = []operation{
	{"GET", "/repos/{owner}/{repo}/rulesets", "metadata:read", (*Server).listRulesets},
	{"GET", "/repos/{owner}/{repo}/rulesets/{ruleset_id}", "metadata:read", (*Server).getRuleset},
	{"GET", "/repos/{owner}/{repo}/rules/branches/{branch}", "metadata:read", (*Server).listRules},
}

// NewRuleset is a ruleset of a repository. Target is branch, tag or push;
// Enforcement is active if it is "". The Rules are parameters by type, nil for
// a type without. Branches are those, by name, that it holds for; the server
// tells of the rules and does not enforce them.
type NewRuleset struct {
	Repository  string
	Name        string
	Target      string
	Enforcement string
	Branches    []string
	Rules       map[string]map[string]any
}

type ruleset struct {
	NewRuleset
	id int64
}

// Ruleset adds a ruleset and returns its id.
func (s *Server) Ruleset(n NewRuleset) int64 {
	defer s.lock()()
	n.Enforcement = or(n.Enforcement, "active")
	r := s.repo(n.Repository)
	r.rulesets = append(r.rulesets, &ruleset{n, s.nextID()})
	return r.rulesets[len(r.rulesets)-1].id
}

func (s *Server) listRulesets(c *call) answer {
	return list(c, c.repo.rulesets, func(one *ruleset) object { return s.ruleset(c.repo, one) })
}

func (s *Server) getRuleset(c *call) answer {
	for _, one := range c.repo.rulesets {
		if one.id == c.id("ruleset_id") {
			o := s.ruleset(c.repo, one)
			o["rules"] = one.rules(nil)
			return ok(o)
		}
	}
	return notFound
}

// listRules lists the active rules of a branch.
func (s *Server) listRules(c *call) answer {
	var found []object
	for _, one := range c.repo.rulesets {
		if one.Target == "branch" && one.Enforcement == "active" && slices.Contains(one.Branches, c.PathValue("branch")) {
			found = append(found, one.rules(object{"ruleset_id": one.id, "ruleset_source": c.repo.fullName(), "ruleset_source_type": "Repository"})...)
		}
	}
	return list(c, found, func(o object) object { return o })
}

func (s *Server) ruleset(r *repository, one *ruleset) object {
	self := s.at("/repos/%s/rulesets/%d", r.fullName(), one.id)
	return object{
		"id": one.id, "node_id": nodeID("RRS", one.id), "name": one.Name, "target": one.Target, "enforcement": one.Enforcement, "source": r.fullName(),
		"source_type": "Repository", "created_at": stamp(r.created), "updated_at": stamp(r.created), "_links": object{"self": object{"href": self}},
	}
}

// rules are the rules of a set, each with more.
func (one *ruleset) rules(more object) []object {
	all := []object{}
	for _, kind := range slices.Sorted(maps.Keys(one.Rules)) {
		rule := object{"type": kind}
		if parameters := one.Rules[kind]; parameters != nil {
			rule["parameters"] = parameters
		}
		maps.Copy(rule, more)
		all = append(all, rule)
	}
	return all
}
