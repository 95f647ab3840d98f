package secret

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// automaton answers, for one regular expression and one place in a text,
// whether a match may begin there, and up to where it could reach. It reads
// each byte once, where package regexp would follow every alternative. It errs
// towards yes: word boundaries always hold, and all characters beyond ASCII
// are alike. What it allows, the expression itself decides.
//
// Without it BenchmarkDiff5MB takes 3.2 times as long, and four hostile texts of 1 MB
// (TestT42Bounded) took more than six minutes together, where no budget left patches unscanned.
//
// States are made as they are met, so an automaton belongs to one goroutine.
type automaton struct {
	prog    *syntax.Prog
	class   [128]uint8
	classes int      // the last one is for everything beyond ASCII
	accepts [][]bool // by set number: which classes
	setOf   []int    // by instruction
	ids     map[string]int32
	states  []state
	next    []int32 // state*classes + class; 0 is not known yet
	mark    []int   // of instructions, in closure
	marked  int
}

type state struct {
	at          []uint32 // instructions that read a rune
	match, last bool     // matches here; matches here if the text ends
}

const (
	dead      = 1
	first     = 2
	maxStates = 1500
)

func newAutomaton(prog *syntax.Prog) *automaton {
	a := &automaton{prog: prog, setOf: make([]int, len(prog.Inst)), mark: make([]int, len(prog.Inst))}
	a.classify(a.collect())
	a.reset()
	return a
}

// collect numbers the distinct sets of runes that instructions read.
func (a *automaton) collect() []*syntax.Inst {
	var sets []*syntax.Inst
	known := map[string]int{}
	for pc := range a.prog.Inst {
		inst := &a.prog.Inst[pc]
		if inst.Op < syntax.InstRune {
			continue
		}
		key := string(inst.Rune) + string(rune('0'+inst.Op)) + string(rune('0'+inst.Arg&1))
		id, ok := known[key]
		if !ok {
			id = len(sets)
			known[key], sets = id, append(sets, inst)
		}
		a.setOf[pc] = id
	}
	return sets
}

// classify groups the characters that no set tells apart.
func (a *automaton) classify(sets []*syntax.Inst) {
	groups := map[string]uint8{}
	a.accepts = make([][]bool, len(sets))
	for c := range rune(128) {
		sign := make([]byte, len(sets))
		for i, set := range sets {
			if set.MatchRune(c) {
				sign[i] = 1
			}
		}
		id, ok := groups[string(sign)]
		if !ok {
			id = uint8(len(groups))
			groups[string(sign)] = id
			for i := range sets {
				a.accepts[i] = append(a.accepts[i], sign[i] == 1)
			}
		}
		a.class[c] = id
	}
	for i, set := range sets {
		a.accepts[i] = append(a.accepts[i], beyondASCII(set))
	}
	a.classes = len(groups) + 1
}

// beyondASCII reports whether the instruction reads any rune from U+0080 on.
func beyondASCII(inst *syntax.Inst) bool {
	if inst.Op == syntax.InstRuneAny || inst.Op == syntax.InstRuneAnyNotNL {
		return true
	}
	folds := syntax.Flags(inst.Arg)&syntax.FoldCase != 0
	return folds || slices.Max(inst.Rune) >= utf8.RuneSelf
}

func (a *automaton) reset() {
	a.ids = map[string]int32{}
	a.states = make([]state, first, 64)
	a.next = make([]int32, first*a.classes, 64*a.classes)
	a.add([]uint32{uint32(a.prog.Start)})
}

// add returns the state reached at the given instructions, making it if new.
func (a *automaton) add(seeds []uint32) int32 {
	at, match := a.closure(seeds, false)
	if len(at) == 0 && !match {
		if _, last := a.closure(seeds, true); !last {
			return dead
		}
	}
	_, last := a.closure(seeds, true)
	key := make([]byte, 0, 4*len(at)+2)
	for _, pc := range at {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	key = append(key, flag(match), flag(last))
	if id, ok := a.ids[string(key)]; ok {
		return id
	}
	id := int32(len(a.states))
	a.ids[string(key)] = id
	a.states = append(a.states, state{at, match, last})
	a.next = append(a.next, make([]int32, a.classes)...)
	return id
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// closure follows everything that reads no rune.
func (a *automaton) closure(seeds []uint32, end bool) (at []uint32, match bool) {
	a.marked++
	stack := slices.Clone(seeds)
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if a.mark[pc] == a.marked {
			continue
		}
		a.mark[pc] = a.marked
		inst := &a.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			if end || syntax.EmptyOp(inst.Arg)&syntax.EmptyEndText == 0 {
				stack = append(stack, inst.Out)
			}
		case syntax.InstMatch:
			match = true
		case syntax.InstFail:
		default:
			at = append(at, pc)
		}
	}
	slices.Sort(at)
	return at, match
}

// step makes the transition that is not known yet.
func (a *automaton) step(from int32, class int) int32 {
	var seeds []uint32
	for _, pc := range a.states[from].at {
		if a.accepts[a.setOf[pc]][class] {
			seeds = append(seeds, a.prog.Inst[pc].Out)
		}
	}
	to := int32(dead)
	if len(seeds) > 0 {
		to = a.add(seeds)
	}
	a.next[int(from)*a.classes+class] = to
	return to
}

// run reads text from start until nothing can match any more, or limit. It
// returns where it stopped, and whether a match may begin at start.
func (a *automaton) run(text []byte, start, limit int) (end int, maybe bool) {
	if len(a.states) > maxStates {
		a.reset()
	}
	s, i := int32(first), start
	for i < limit {
		maybe = maybe || a.states[s].match
		class, size := a.classes-1, 1
		if c := text[i]; c < utf8.RuneSelf {
			class = int(a.class[c])
		} else {
			_, size = utf8.DecodeRune(text[i:])
		}
		to := a.next[int(s)*a.classes+class]
		if to == 0 {
			to = a.step(s, class)
		}
		if to == dead {
			return i, maybe
		}
		s, i = to, i+size
	}
	return min(i, limit), maybe || a.states[s].match || limit == len(text) && a.states[s].last
}

// keywords finds many literals in one pass over a text, without regard to the
// case of ASCII letters (Aho and Corasick, 1975, with every transition filled
// in). Its cost is the text's length, whatever the text.
type keywords struct {
	class   [256]uint8
	classes int
	next    []int32    // state*classes + class
	out     [][]uint16 // literals that end in a state
	sizes   []int
}

// newKeywords numbers the literals in the order given.
func newKeywords(literals []string) *keywords {
	k := &keywords{classes: 1}
	most := 1 // states
	for _, l := range literals {
		k.sizes = append(k.sizes, len(l))
		most += len(l)
		for i := range len(l) {
			if k.class[l[i]] == 0 {
				k.class[lower(l[i])], k.class[upper(l[i])] = uint8(k.classes), uint8(k.classes)
				k.classes++
			}
		}
	}
	// Room for the most states there can be: pages that nothing touches take no memory.
	k.next, k.out = make([]int32, most*k.classes), make([][]uint16, most)
	states := int32(1)
	for id, l := range literals {
		state := int32(0)
		for i := range len(l) {
			to := &k.next[int(state)*k.classes+int(k.class[l[i]])]
			if *to == 0 {
				*to = states
				states++
			}
			state = *to
		}
		k.out[state] = append(k.out[state], uint16(id))
	}
	k.next, k.out = k.next[:int(states)*k.classes], k.out[:states]
	k.link()
	return k
}

// link replaces every missing transition by that of the longest proper suffix.
func (k *keywords) link() {
	fail := make([]int32, len(k.out))
	queue := []int32{0}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		for c := range k.classes {
			at := int(state)*k.classes + c
			child, back := k.next[at], k.next[int(fail[state])*k.classes+c]
			if child == 0 {
				k.next[at] = back
				continue
			}
			if state != 0 {
				fail[child] = back
			}
			k.out[child] = append(k.out[child], k.out[fail[child]]...)
			queue = append(queue, child)
		}
	}
}

// scan calls hit for each occurrence, in the order of their ends, until hit
// says false.
func (k *keywords) scan(text []byte, hit func(id uint16, start, end int) bool) {
	state := int32(0)
	for i, c := range text {
		state = k.next[int(state)*k.classes+int(k.class[c])]
		for _, id := range k.out[state] {
			if !hit(id, i+1-k.sizes[id], i+1) {
				return
			}
		}
	}
}

// in reports whether any literal occurs in text.
func (k *keywords) in(text []byte) bool {
	found := false
	k.scan(text, func(uint16, int, int) bool {
		found = true
		return false
	})
	return found
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}
