package secret

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A ruleset is everything that is looked for: rules where their words stand, and what each word may be of.
type ruleset struct {
	rules   []func() *rule // prepared when a text first has one of its words; nil of those that find nothing by themselves
	paths   []*pathRule
	allowed func() []allowlist // of every rule
	blocks  bool
	secrets bool // of Kubernetes
	kinds   map[string]bool
	engines sync.Pool // of *engine

	literals *keywords
	words    []string
	of       [][]int // by word: rules that it is of
	always   []int   // rules without any word
	begin    uint16  // the words of blocks
	end      uint16
	data     [3]uint16 // those of manifests
	secret   uint16
}

// A pathRule finds files that are secrets by their names.
type pathRule struct {
	kind string
	path *regexp.Regexp
}

// defaultRules are made at the first scan, once a process.
var defaultRules = sync.OnceValue(func() *ruleset {
	set, err := newRuleset(configFile{})
	if err != nil {
		panic("secret: gitleaks' default rules: " + err.Error())
	}
	return set
})

// newRuleset adds a repository's own file to the default rules. Everything in
// that file is read now; default rules that it leaves alone sleep.
func newRuleset(own configFile) (*ruleset, error) {
	head, rules := defaults()
	rules, lists, err := extended(rules, own)
	if err != nil {
		return nil, err
	}
	ownAllowed, err := newAllowlists(lists)
	if err != nil {
		return nil, err
	}
	set := &ruleset{rules: make([]func() *rule, len(rules)), kinds: map[string]bool{KindKnown: true, KindUnscanned: true}}
	set.engines.New = func() any { return newEngine(len(rules)) }
	set.allowed = sync.OnceValue(func() []allowlist {
		file, err := readConfig([]byte(head))
		if err != nil {
			panic("secret: gitleaks' allowlist: " + err.Error())
		}
		list, err := newAllowlists(strictly(file.Allowlists))
		if err != nil {
			panic("secret: gitleaks' allowlist: " + err.Error())
		}
		return append(list, ownAllowed...)
	})
	ids := map[string]uint16{}
	number := func(word string) uint16 {
		word = strings.ToLower(word)
		if _, known := ids[word]; !known {
			ids[word], set.words, set.of = uint16(len(ids)), append(set.words, word), append(set.of, nil)
		}
		return ids[word]
	}
	set.begin, set.end, set.secret = number("-----begin"), number("-----end"), number("secret")
	set.data = [3]uint16{number("data:"), number(`data":`), number("data':")}
	for i, e := range rules {
		set.kinds[kindOf(e.id)] = true
		switch e.id {
		case privateKey:
			set.blocks = true
			continue
		case kubernetesSecret:
			set.secrets = true
			continue
		}
		words, err := set.add(i, e)
		if err != nil {
			return nil, err
		}
		for _, word := range words {
			if of := &set.of[number(word)]; !slices.Contains(*of, i) {
				*of = append(*of, i)
			}
		}
	}
	set.literals = newKeywords(set.words)
	return set, nil
}

// add adds a rule, and returns the words without which it finds nothing. One whose words are known is read when a text has one
// of them: only default rules are, so that what is wrong with one is a bug.
func (set *ruleset) add(i int, e ruleEntry) (words []string, err error) {
	if len(e.wakes) > 0 {
		set.rules[i] = sync.OnceValue(func() *rule {
			r, err := set.prepare(e)
			if err != nil || r == nil {
				panic(fmt.Sprintf("secret: gitleaks' rule %s: %v", e.id, err))
			}
			return r
		})
		return e.wakes, nil
	}
	r, err := set.prepare(e)
	if err != nil || r == nil {
		return nil, err
	}
	set.rules[i] = func() *rule { return r }
	if words = r.leads; words == nil {
		words = r.keywords
	}
	if len(words) == 0 || slices.Contains(words, "") {
		set.always = append(set.always, i)
		return nil, nil
	}
	return words, nil
}

// prepare reads one rule. A rule that is only part of others (skipReport) finds
// nothing by itself; what a rule requires beside its match is not required
// here, so that less is missed.
func (set *ruleset) prepare(e ruleEntry) (*rule, error) {
	file, err := e.read()
	if err != nil {
		return nil, err
	}
	if file.SkipReport {
		delete(set.kinds, kindOf(e.id))
		return nil, nil
	}
	if file.Regex == "" {
		return nil, set.addPath(file)
	}
	r, err := newRule(file)
	if err != nil {
		return nil, err
	}
	if r.allowed, err = newAllowlists(file.Allowlists); err != nil {
		return nil, fmt.Errorf("rule %s: %w", r.kind, err)
	}
	return r, nil
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

// names returns the kind of the path rule that a path meets, or "".
func (set *ruleset) names(path string) string {
	for _, p := range set.paths {
		if p.path.MatchString(path) {
			return p.kind
		}
	}
	return ""
}

// An engine holds what a scan writes to. It grows as it is used, so scans hand
// it on.
type engine struct {
	strict, loose []*automaton
	until         []int // by rule: where its last match in this view ended
	tried         []int // by rule: the last place it was tried at, plus one
	conditions    map[*condition]*automaton
}

func newEngine(n int) *engine {
	return &engine{
		strict: make([]*automaton, n), loose: make([]*automaton, n),
		until: make([]int, n), tried: make([]int, n),
		conditions: map[*condition]*automaton{},
	}
}

// automaton returns that of rule i: for a match at a place, or anywhere.
func (e *engine) automaton(i int, m *matcher, anywhere bool) *automaton {
	list := e.strict
	if m.loosened {
		list = e.loose
	}
	if list[i] == nil {
		if anywhere {
			list[i] = newAutomaton(m.search())
		} else {
			list[i] = newAutomaton(m.prog())
		}
	}
	return list[i]
}
