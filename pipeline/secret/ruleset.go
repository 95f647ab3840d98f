package secret

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A pathRule finds files that are secrets by their names.
type pathRule struct {
	kind string
	path *regexp.Regexp
}

// defaultRules are made at the first scan, once a process.
var defaultRules = sync.OnceValue(func() *ruleset {
	c, err := defaults()
	if err != nil {
		panic("secret: gitleaks' default rules: " + err.Error())
	}
	set, err := newRuleset(c)
	if err != nil {
		panic("secret: gitleaks' default rules: " + err.Error())
	}
	return set
})

func newRuleset(c configFile) (*ruleset, error) {
	set := &ruleset{kinds: map[string]bool{KindKnown: true, KindUnscanned: true}}
	for _, a := range c.Allowlists {
		list, err := newAllowlist(a)
		if err != nil {
			return nil, err
		}
		set.allowed = append(set.allowed, list)
	}
	for _, file := range c.Rules {
		if err := set.add(file); err != nil {
			return nil, err
		}
	}
	set.index()
	return set, nil
}

// add files one rule. A rule that is only part of others (skipReport) finds
// nothing by itself; what a rule requires beside its match is not required
// here, so that less is missed.
func (set *ruleset) add(file ruleFile) error {
	if file.SkipReport {
		return nil
	}
	set.kinds[kindOf(file.ID)] = true
	if file.ID == privateKey {
		set.blocks = true
		return nil
	}
	if file.Regex == "" {
		return set.addPath(file)
	}
	r, err := newRule(file)
	if err != nil {
		return err
	}
	for _, a := range file.Allowlists {
		list, err := newAllowlist(a)
		if err != nil {
			return fmt.Errorf("rule %s: %w", r.kind, err)
		}
		r.allowed = append(r.allowed, list)
	}
	set.rules = append(set.rules, r)
	return nil
}

func (set *ruleset) addPath(file ruleFile) error {
	kind := kindOf(file.ID)
	if kind == "" || file.Path == "" {
		return fmt.Errorf("rule %q: needs an id, and a regex or a path", file.ID)
	}
	path, err := regexp.Compile(file.Path)
	if err != nil {
		return fmt.Errorf("rule %s: %w", kind, err)
	}
	set.paths = append(set.paths, &pathRule{kind, path})
	return nil
}

// index gathers the literals of all rules.
func (set *ruleset) index() {
	ids := map[string]uint16{}
	var literals []string
	number := func(literal string) uint16 {
		literal = strings.ToLower(literal)
		id, ok := ids[literal]
		if !ok {
			id = uint16(len(literals))
			ids[literal], literals = id, append(literals, literal)
			set.led, set.near = append(set.led, nil), append(set.near, nil)
		}
		return id
	}
	set.begin, set.end = number("-----begin"), number("-----end")
	for i, r := range set.rules {
		for _, l := range r.leads {
			id := number(l)
			set.led[id] = appendNew(set.led[id], i)
		}
		if r.leads != nil {
			continue
		}
		words := nonEmpty(r.keywords)
		if len(words) < len(r.keywords) || len(words) == 0 {
			set.always = append(set.always, i)
			continue
		}
		for _, word := range words {
			id := number(word)
			set.near[id] = appendNew(set.near[id], i)
		}
	}
	set.literals = newKeywords(literals)
}

func appendNew(list []int, i int) []int {
	if slices.Contains(list, i) {
		return list
	}
	return append(list, i)
}

// names returns the kind of the path rule that a path meets, or "".
func (set *ruleset) names(path string) string {
	for _, p := range set.paths {
		if p.path.MatchString(path) {
			return p.kind
		}
	}
	return ""
}
