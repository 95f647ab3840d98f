package secret

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A ruleset is everything that is looked for.
type ruleset struct {
	entries []ruleEntry
	paths   []*pathRule
	allowed func() []allowlist // of every rule
	blocks  bool
	secrets bool // of Kubernetes
	kinds   map[string]bool
	engines sync.Pool // of *engine
	waking  sync.Mutex
	current atomic.Pointer[index]
}

// An index has the rules of a set that are awake, ready to be run, and the
// literals of all: those of the others wake them.
type index struct {
	rules    []*rule // by entry; nil where it sleeps, or finds nothing by itself
	ids      map[string]uint16
	literals *keywords
	asleep   [][]int // by literal: entries that it wakes
	led      [][]int // by literal: rules whose matches begin with it
	near     [][]int // by literal: rules that are tried around it
	always   []int   // rules without any literal
	begin    uint16  // the literals of blocks
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
	set := &ruleset{entries: rules, kinds: map[string]bool{KindKnown: true, KindUnscanned: true}}
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
	awake := make([]*rule, len(rules))
	for i, e := range rules {
		set.kinds[kindOf(e.id)] = true
		if e.id == privateKey {
			set.blocks = true
		} else if e.id == kubernetesSecret {
			set.secrets = true
		} else if len(e.wakes) == 0 {
			if awake[i], err = set.prepare(e); err != nil {
				return nil, err
			}
		}
	}
	set.current.Store(set.index(awake))
	return set, nil
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

// wake prepares the rules that these literals of x wake, and returns the index
// with them. Only default rules sleep, so what is wrong with one is a bug.
func (set *ruleset) wake(x *index, literals map[uint16]bool) *index {
	set.waking.Lock()
	defer set.waking.Unlock()
	awake := slices.Clone(set.current.Load().rules)
	for id := range literals {
		for _, i := range x.asleep[id] {
			if awake[i] != nil {
				continue
			}
			r, err := set.prepare(set.entries[i])
			if err != nil || r == nil {
				panic(fmt.Sprintf("secret: gitleaks' rule %s: %v", set.entries[i].id, err))
			}
			awake[i] = r
		}
	}
	made := set.index(awake)
	set.current.Store(made)
	return made
}

// index gathers the literals of all entries. Most rules that wake bring no
// other literals than those that woke them: then the automaton stays.
func (set *ruleset) index(awake []*rule) *index {
	x := &index{rules: awake, ids: map[string]uint16{}}
	last := set.current.Load()
	if last != nil {
		x.ids, x.literals = maps.Clone(last.ids), last.literals
	}
	number := func(literal string) uint16 {
		literal = strings.ToLower(literal)
		if _, ok := x.ids[literal]; !ok {
			x.ids[literal], x.literals = uint16(len(x.ids)), nil
		}
		return x.ids[literal]
	}
	enter := func(list *[][]int, words []string, i int) {
		for _, word := range words {
			id := int(number(word))
			*list = append(*list, make([][]int, max(0, id+1-len(*list)))...)
			if at := &(*list)[id]; !slices.Contains(*at, i) {
				*at = append(*at, i)
			}
		}
	}
	x.begin, x.end, x.secret = number("-----begin"), number("-----end"), number("secret")
	x.data = [3]uint16{number("data:"), number(`data":`), number("data':")}
	for i, e := range set.entries {
		switch r := awake[i]; {
		case e.id == privateKey, e.id == kubernetesSecret:
		case r == nil:
			enter(&x.asleep, e.wakes, i)
		case r.leads != nil:
			enter(&x.led, r.leads, i)
		case len(r.keywords) == 0 || slices.Contains(r.keywords, ""):
			x.always = append(x.always, i)
		default:
			enter(&x.near, r.keywords, i)
		}
	}
	for _, list := range []*[][]int{&x.asleep, &x.led, &x.near} {
		*list = append(*list, make([][]int, len(x.ids)-len(*list))...)
	}
	if x.literals == nil {
		literals := make([]string, len(x.ids))
		for literal, id := range x.ids {
			literals[id] = literal
		}
		x.literals = newKeywords(literals)
	}
	return x
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
