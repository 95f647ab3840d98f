package policy

import "strings"

// An Explained is a path with the rules that protect it, none where it may
// change with the approvals that every patch needs.
type Explained struct {
	Path  string `json:"path"`
	Rules []Met  `json:"rules"`
}

// A Met rule is "built-in" or protected[n], with the first of its globs that
// matches, and what it asks for.
type Met struct {
	Rule     string   `json:"rule"`
	Glob     string   `json:"glob"`
	Required int      `json:"required"`
	Users    []string `json:"users,omitempty"`
	Teams    []string `json:"teams,omitempty"`
	Owners   bool     `json:"owners,omitempty"`
}

// Explain says of each path which rules it meets, in the order of paths. Needs
// is what these add up to.
func (p Policy) Explain(paths []string) []Explained {
	rules := p.matchers()
	out := make([]Explained, 0, len(paths))
	for _, path := range paths {
		e := Explained{Path: path, Rules: []Met{}}
		names := strings.Split(fold(path), "/")
		for _, m := range rules {
			if glob, ok := m.find(names); ok {
				e.Rules = append(e.Rules, Met{m.name, glob, max(1, m.rule.Required), m.rule.Users, m.rule.Teams, m.rule.Owners})
			}
		}
		out = append(out, e)
	}
	return out
}
