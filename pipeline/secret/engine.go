package secret

import "sync"

// An engine holds what a scan writes to. It grows as it is used, so scans hand
// it on.
type engine struct {
	strict, loose []*automaton
	until         []int // by rule: where its last match in this view ended
	tried         []int // by rule: the last place it was tried at, plus one
	conditions    map[*condition]*automaton
}

func newEngine(set *ruleset) *engine {
	n := len(set.entries)
	return &engine{
		strict: make([]*automaton, n), loose: make([]*automaton, n),
		until: make([]int, n), tried: make([]int, n),
		conditions: map[*condition]*automaton{},
	}
}

// maxIdle engines are kept for the scans to come.
const maxIdle = 4

type engines struct {
	lock sync.Mutex
	idle []*engine
}

func (e *engines) take(set *ruleset) *engine {
	e.lock.Lock()
	defer e.lock.Unlock()
	n := len(e.idle)
	if n == 0 {
		return newEngine(set)
	}
	taken := e.idle[n-1]
	e.idle = e.idle[:n-1]
	return taken
}

func (e *engines) give(used *engine) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if len(e.idle) < maxIdle {
		e.idle = append(e.idle, used)
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
