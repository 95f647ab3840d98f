package explain_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/explain"
)

// A second judge, slow and simple: of small histories it tries all ways of giving
// transactions to commits. It shares no code with the judge, and knows no texts: a file is a
// set of lines that have a fixed order, so that a patch is what two sets differ by.

// A sheet is a file: which of the lines "0a", "0b", "1a" … it has. It may be absent.
type sheet struct {
	there, exec bool
	lines       uint8
}

const sheetLines = 8

func (s sheet) text() string {
	var b strings.Builder
	if s.exec {
		b.WriteString("x:")
	}
	for i := range sheetLines {
		if s.lines>>i&1 == 1 {
			fmt.Fprintf(&b, "%d%c\n", i/2, 'a'+i%2)
		}
	}
	return b.String()
}

// desk are the files "f" and "g".
type desk [2]sheet

const lenient = "version: 1\nexplained: {decisions: [signed, forge, local], merges: covered}\n"

func (d desk) files(more string) files {
	out := files{".github/countersign.yml": lenient, "more": more}
	for i, name := range []string{"f", "g"} {
		if d[i].there {
			out[name] = d[i].text()
		}
	}
	return out
}

// mergeSheets is what two sides make of a sheet: between two lines that all have, at most one
// side may have changed anything, unless both did alike.
func mergeSheets(base, ours, theirs sheet) (sheet, bool) {
	switch {
	case ours == base || ours == theirs:
		return theirs, true
	case theirs == base:
		return ours, true
	case !base.there || !ours.there || !theirs.there:
		return sheet{}, false
	}
	out := sheet{there: true, exec: ours.exec}
	if ours.exec == base.exec {
		out.exec = theirs.exec
	}
	anchors := base.lines & ours.lines & theirs.lines
	for from := 0; from <= sheetLines; {
		to := from
		for to < sheetLines && anchors>>to&1 == 0 {
			to++
		}
		gap := uint8(1<<to - 1<<from)
		switch b, o, t := base.lines&gap, ours.lines&gap, theirs.lines&gap; {
		case o == b || o == t:
			out.lines |= t
		case t == b:
			out.lines |= o
		default:
			return sheet{}, false
		}
		if to < sheetLines {
			out.lines |= 1 << to
		}
		from = to + 1
	}
	return out, true
}

// A slip is a patch: what two desks differ by.
type slip struct{ before, after desk }

func (p slip) touches(i int) bool { return p.before[i] != p.after[i] }

// put is what a patch makes of a desk where it goes, and goes out again whole.
func (p slip) put(d desk) (desk, bool) {
	out := d
	for i := range d {
		if !p.touches(i) {
			continue
		}
		forth, ok := mergeSheets(p.before[i], d[i], p.after[i])
		if !ok || forth == d[i] {
			return d, false
		}
		if back, ok := mergeSheets(p.after[i], forth, p.before[i]); !ok || back != d[i] {
			return d, false
		}
		out[i] = forth
	}
	return out, true
}

// makes reports whether a patch makes one desk of another.
func (p slip) makes(from, to desk) bool {
	if p.before == from && p.after == to {
		return true
	}
	out, ok := p.put(from)
	return ok && out == to
}

// isRow reports whether desks one after the other lead from the first to the last as a patch
// makes it, and each holds lines of before or after and takes nothing of that back.
func (p slip) isRow(all []desk) bool {
	first, last := all[0], all[len(all)-1]
	if !p.makes(first, last) {
		return false
	}
	for n := 1; n < len(all); n++ {
		for i := range first {
			a, b, was, is := first[i], last[i], all[n-1][i], all[n][i]
			if !p.touches(i) {
				if is != was {
					return false
				}
				continue
			}
			if is == was {
				continue
			}
			common := a.lines & b.lines
			switch {
			case !is.there && b.there || !is.there && !was.there:
				return false // it only comes, or only goes
			case is.there && !was.there && a.there:
				return false // it was gone
			case is.there && is.exec != a.exec && is.exec != b.exec, is.there && !a.there && is.exec != b.exec, is.there && !b.there && is.exec != a.exec:
				return false
			case is.there && was.there && was.exec != is.exec && was.exec == b.exec && b.there:
				return false // it had the mode of after
			case is.there && (is.lines&common != common || is.lines&^(a.lines|b.lines) != 0):
				return false
			case is.lines&(a.lines&^b.lines)&^was.lines != 0, was.lines&(b.lines&^a.lines)&^is.lines != 0:
				return false // takes back
			}
		}
	}
	return true
}

// A pooled is a transaction that histories choose from: it says whether it may account for a
// commit at all, and the commit that its record names.
type pooled struct {
	id, base, made string
	slip
	counts bool
}

const poolSize = 96

// pool are transactions that the stages recorded, each on a base of its own.
var pool = sync.OnceValues(func() (*stages, []pooled) {
	w := newStages(nil, 7)
	rng := rand.New(rand.NewPCG(7, 7))
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	w.policyAt = w.commit("policy", desk{}.files(""))
	var all []pooled
	for n := range poolSize {
		p := pooled{slip: slip{before: anyDesk(rng)}}
		if n > 0 && rng.IntN(3) == 0 { // of the same place as another
			p.before = all[rng.IntN(n)].after
		}
		for p.after = p.before; p.after == p.before; {
			p.after = edited(rng, p.before)
		}
		if n > 0 && rng.IntN(3) == 0 { // the same as another, or the other way around
			p.slip = all[rng.IntN(n)].slip
			if rng.IntN(2) == 0 {
				p.before, p.after = p.after, p.before
			}
		}
		p.base = w.commit(fmt.Sprint("base ", n), p.before.files(fmt.Sprint(n)))
		after := p.after.files(fmt.Sprint(n))
		var err error
		switch kind := rng.IntN(10); kind {
		case 0: // approved alone
			p.id, err = w.proposes(local(bea), p.base, after, nil)
			must(err)
			must(w.says(ada, "approve", p.id))
		case 1, 2, 3:
			p.counts = true
			pull := w.opens(bea, p.base, p.base, "main")
			p.id, err = w.proposes(bea, p.base, after, pull)
			must(err)
			must(w.comments(ada, "/approve", p.id, pull))
			if kind < 3 {
				p.made = fmt.Sprintf("%040x", 0xabc000+n)
				must(w.ends(p.id, pull, p.made, []string{1: "", 2: "what was merged is another patch"}[kind]))
			}
		default:
			p.counts = true
			p.id, err = w.proposes(local(bea), p.base, after, nil)
			must(err)
			must(w.says(ada, "approve", p.id))
			p.made, err = w.applies(p.id, p.id)
			must(err)
		}
		all = append(all, p)
	}
	return w, all
})

func anyDesk(rng *rand.Rand) desk {
	return desk{{there: true, lines: 0b01010101}, {there: rng.IntN(4) > 0, lines: 0b00010001}}.clean()
}

// clean has no lines where there is no file.
func (d desk) clean() desk {
	for i := range d {
		if !d[i].there {
			d[i] = sheet{}
		}
	}
	return d
}

// edited is a desk with something changed.
func edited(rng *rand.Rand, d desk) desk {
	i := 0
	if rng.IntN(4) == 0 {
		i = 1
	}
	switch rng.IntN(16) {
	case 0:
		d[i].exec = d[i].there && !d[i].exec
	case 1:
		d[i] = sheet{there: !d[i].there, lines: uint8(rng.IntN(4))}
	default:
		d[i].there = true
		for range 1 + rng.IntN(3) {
			slot := 2 * rng.IntN(sheetLines/2)
			d[i].lines = d[i].lines&^(3<<slot) | uint8(rng.IntN(3)<<slot)
		}
		if rng.IntN(6) == 0 {
			return edited(rng, d)
		}
	}
	return d.clean()
}

// A small is a history of few commits, and the transactions of its ledger. A node is a commit,
// and where the one is that it comes after: the first is the root. side are those that it brings as a
// merge, one after the other.
type small struct {
	*repo
	nodes  []node
	txs    []pooled
	pinned []int // by transaction: the commit that is its making, -1 for none
	had    []int // by transaction: the newest commit that its base had
}

type node struct {
	id   string
	at   desk
	from int
	side []int
}

func newSmall(t testing.TB, seed uint64) *small {
	w, all := pool()
	rng := rand.New(rand.NewPCG(seed, 28))
	s := &small{repo: emptyRepo(t)}
	picked := map[int]bool{}
	for first := rng.IntN(len(all)); len(picked) < 1+rng.IntN(4); first = rng.IntN(len(all)) {
		picked[first] = true
		for n, p := range all { // what has to do with it
			if len(picked) < 4 && rng.IntN(8) == 0 && (p.before == all[first].before || p.before == all[first].after || p.after == all[first].before) {
				picked[n] = true
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(picked)) {
		s.txs = append(s.txs, all[n])
		s.names[all[n].id] = fmt.Sprint("tx", len(s.txs)-1)
		s.trees[all[n].base] = w.trees[all[n].base]
		s.pinned, s.had = append(s.pinned, -1), append(s.had, 0)
	}
	for name, f := range w.ledger {
		if slices.ContainsFunc(s.txs, func(p pooled) bool { return strings.Contains(name, p.id) }) {
			s.ledger[name] = f
		}
	}
	now := s.txs[rng.IntN(len(s.txs))].before
	if rng.IntN(3) == 0 {
		now = edited(rng, now)
	}
	s.nodes = []node{{id: s.commit("root", now.files("root")), at: now}}
	tip := 0
	for left := 1 + rng.IntN(6); left > 0; {
		if left < 2 || rng.IntN(4) > 0 {
			tip = s.next(rng, tip)
			left--
			continue
		}
		base, side := tip, []int(nil)
		for base > 0 && rng.IntN(2) == 0 {
			base = s.nodes[base].from
		}
		for end := base; len(side) < left-1 && (len(side) == 0 || rng.IntN(2) == 0); left-- {
			end = s.next(rng, end)
			side = append(side, end)
		}
		left--
		theirs := s.nodes[side[len(side)-1]]
		merged, ok := remade(s.nodes[base].at, s.nodes[tip].at, theirs.at)
		if !ok || rng.IntN(4) == 0 {
			merged = edited(rng, merged)
		}
		if rng.IntN(8) == 0 {
			merged = theirs.at
		}
		n := len(s.nodes)
		s.nodes = append(s.nodes, node{s.commit(fmt.Sprint("c", n), merged.files("root"), s.nodes[tip].id, theirs.id), merged, tip, side})
		tip = n
	}
	for k, p := range s.txs {
		if rng.IntN(8) == 0 && s.trees[p.made] == nil {
			s.had[k] = rng.IntN(len(s.nodes))
			s.parents[p.base] = []string{s.nodes[s.had[k]].id}
		}
	}
	return s
}

// next is a commit after another.
func (s *small) next(rng *rand.Rand, from int) int {
	now, n, id := s.nodes[from].at, len(s.nodes), ""
	next, k := now, rng.IntN(len(s.txs))
	p := s.txs[k]
	switch rng.IntN(8) {
	case 0:
		next = edited(rng, now)
	case 1: // taken back
		next, _ = slip{p.after, p.before}.put(now)
	case 2: // a part
		if whole, ok := p.put(now); ok {
			for i := range next {
				gone, come := now[i].lines&^whole[i].lines, whole[i].lines&^now[i].lines
				next[i].lines = now[i].lines&^(gone&uint8(rng.Uint32())) | come&uint8(rng.Uint32())
			}
			next = next.clean()
		}
	case 3: // two
		next, _ = p.put(now)
		next, _ = s.txs[rng.IntN(len(s.txs))].put(next)
	case 4: // towards the end of one that was reviewed here or elsewhere
		for i := range next {
			if rng.IntN(2) == 0 {
				next[i] = p.after[i]
			}
		}
	default:
		next, _ = p.put(now)
		if p.made != "" && s.trees[p.made] == nil && rng.IntN(4) == 0 {
			id = p.made
		}
	}
	name := fmt.Sprint("c", n)
	if id == "" {
		id = s.commit(name, next.files("root"), s.nodes[from].id)
	} else {
		s.put(id, name, next.files("root"), s.nodes[from].id)
		if exact := changed(now, next) == p.slip.changed(); exact || strings.HasPrefix(p.made, "000000") { // of an apply, if it is exactly that
			s.pinned[k] = n
		}
	}
	s.nodes = append(s.nodes, node{id: id, at: next, from: from})
	return n
}

// remade is what merging gives.
func remade(base, ours, theirs desk) (out desk, ok bool) {
	ok = true
	for i := range base {
		one, clean := mergeSheets(base[i], ours[i], theirs[i])
		if out[i] = one; !clean {
			out[i], ok = ours[i], false
		}
	}
	return out, ok
}

func (p slip) changed() slip { return changed(p.before, p.after) }

// changed leaves out what is alike.
func changed(from, to desk) slip {
	for i := range from {
		if from[i] == to[i] {
			from[i], to[i] = sheet{}, sheet{}
		}
	}
	return slip{from, to}
}

// A use is a way to account for commits: by transactions, none for an empty one.
type use struct {
	txs, commits uint
	row          bool
}

// has are a commit and all before it.
func (s *small) has(n int) (all uint) {
	all = 1 << n
	if n > 0 {
		all |= s.has(s.nodes[n].from)
	}
	for _, one := range s.nodes[n].side {
		all |= s.has(one)
	}
	return all
}

// free reports whether a transaction may account for a change that ends with a commit.
func (s *small) free(k int, commits uint, to int) bool {
	return s.txs[k].counts && s.has(s.had[k])>>to&1 == 0 && (s.pinned[k] < 0 || commits>>s.pinned[k]&1 == 1)
}

// single are the ways to account for a change by itself.
func (s *small) single(from, to desk, commits uint, last int) (out []use) {
	var together func(at desk, used uint)
	together = func(at desk, used uint) {
		if u := (use{txs: used, commits: commits}); at == to && used != 0 && !slices.Contains(out, u) {
			out = append(out, u)
		}
		for k, p := range s.txs {
			inside := true
			for i := range from {
				inside = inside && !(p.touches(i) && from[i] == to[i])
			}
			if next, ok := p.put(at); ok && inside && used>>k&1 == 0 && s.free(k, commits, last) {
				together(next, used|1<<k)
			}
		}
	}
	if from != to {
		together(from, 0)
	}
	return out
}

func (s *small) brought(n int) (all uint) {
	for _, one := range s.nodes[n].side {
		all |= 1 << one
	}
	return all
}

// whole are the ways to account for a commit as what it changes in its first parent.
func (s *small) whole(n int) []use {
	from, to := s.nodes[s.nodes[n].from].at, s.nodes[n].at
	if from == to && s.nodes[n].side == nil {
		return []use{{commits: 1 << n}}
	}
	return s.single(from, to, s.brought(n)|1<<n, n)
}

// rows are those that end with a commit, the longest first.
func (s *small) rows(n int) (out []use) {
	if s.nodes[n].side != nil || s.nodes[s.nodes[n].from].at == s.nodes[n].at {
		return nil
	}
	all, commits := []desk{s.nodes[n].at}, uint(0)
	line := s.merge(n)
	for first := n; first > 0 && s.nodes[first].side == nil && s.merge(first) == line; first = s.nodes[first].from {
		commits |= 1 << first
		from := s.nodes[s.nodes[first].from].at
		all = append([]desk{from}, all...)
		for k, p := range s.txs {
			if first != n && from != s.nodes[first].at && s.free(k, commits, n) && p.isRow(all) {
				out = append([]use{{1 << k, commits, true}}, out...)
			}
		}
	}
	return out
}

// merge is the one that brought a commit, 0 for none.
func (s *small) merge(n int) int {
	return max(0, slices.IndexFunc(s.nodes, func(o node) bool { return slices.Contains(o.side, n) }))
}

// solves reports whether each of some commits can be accounted for by one of some uses, none of
// which have a transaction or a commit in common.
func solves(commits uint, uses []use, txs, done uint) bool {
	left := commits &^ done
	if left == 0 {
		return true
	}
	first := uint(1) << bits.TrailingZeros(left)
	for _, u := range uses {
		if u.commits&first != 0 && u.txs&txs == 0 && u.commits&done == 0 && solves(commits, uses, txs|u.txs, done|u.commits) {
			return true
		}
	}
	return false
}

// explained are the commits that are accounted for.
func (s *small) explained() (all uint) {
	var uses []use
	try := func(some []use) bool {
		i := slices.IndexFunc(some, func(u use) bool { return u.commits&^all != 0 && solves(all|u.commits, uses, u.txs, u.commits) })
		if i >= 0 {
			all |= some[i].commits
		}
		return i >= 0
	}
	one := func(n int) {
		rows := s.rows(n)
		if uses = slices.Concat(uses, s.whole(n), rows); !try(rows) && solves(all|1<<n, uses, 0, 0) {
			all |= 1 << n
		}
	}
	for n := 1; n < len(s.nodes); n++ {
		c := s.nodes[n]
		if s.merge(n) != 0 {
			continue
		}
		if c.side == nil {
			one(n)
			continue
		}
		if whole := s.whole(n); try(whole) {
			uses = append(uses, whole...)
			continue
		}
		base, last := s.nodes[c.side[0]].from, c.side[len(c.side)-1]
		brings := s.single(s.nodes[base].at, s.nodes[last].at, s.brought(n), last)
		if len(c.side) > 1 && try(brings) {
			uses = append(uses, brings...)
		} else {
			for _, side := range c.side {
				one(side)
			}
		}
		if clean, ok := remade(s.nodes[base].at, s.nodes[c.from].at, s.nodes[last].at); ok && clean == c.at && s.brought(n)&^all == 0 {
			all |= 1 << n
			uses = append(uses, use{commits: 1 << n})
		}
	}
	return all
}

func (s *small) String() string {
	var b strings.Builder
	for k, p := range s.txs {
		fmt.Fprintf(&b, "tx%d: %v, counts %v, pinned %d, had %d\n", k, p.slip, p.counts, s.pinned[k], s.had[k])
	}
	for n, c := range s.nodes {
		fmt.Fprintf(&b, "c%d: %v, after c%d, brings %v\n", n, c.at, c.from, c.side)
	}
	return b.String()
}

func (d desk) String() string {
	one := func(s sheet) string {
		if !s.there {
			return "-"
		}
		return fmt.Sprintf("%q", strings.ReplaceAll(s.text(), "\n", " "))
	}
	return one(d[0]) + " " + one(d[1])
}

func (p slip) String() string { return p.before.String() + " -> " + p.after.String() }

// TestSlowJudge: the judge and the slow one agree on small histories full of coincidences, and
// what the judge gives to commits makes them.
func TestSlowJudge(t *testing.T) {
	n := uint64(80)
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		n = 2000
	}
	const parts = 8
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < n && !t.Failed(); seed += parts {
				if s := newSmall(t, seed); len(s.nodes) > 1 {
					if problem := s.compared(); problem != "" {
						t.Errorf("seed %d:\n%s%v", seed, problem, s)
					}
				}
			}
		})
	}
}

// compared is in what the judge is not of the slow one's mind, "" for nothing.
func (s *small) compared() (problem string) {
	want := s.explained()
	index, err := indexOf(s.ledger)
	s.check(err)
	var list []code.BranchCommit
	for _, c := range slices.Backward(s.log) {
		if len(c.Parents) > 0 {
			list = append(list, c)
		}
	}
	line := s.line("", s.nodes[len(s.nodes)-1].id)
	got, err := explain.Run(context.Background(), explain.Options{Ledger: s.ledger, Index: index, Code: s, Default: line, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}, list)
	s.check(err)
	usedBy := map[string]string{}
	for n, c := range s.nodes[1:] {
		n++
		e, is := got.Explained[c.id]
		if is != (want>>n&1 == 1) {
			problem += s.named(fmt.Sprintf("c%d: explained %v: %+v %s\n", n, is, e, got.Unexplained[c.id].Reason))
		}
		if of := s.nodes[s.merge(n)].id; e.PartOf == "" && s.merge(n) > 0 && slices.Contains(got.Explained[of].Transactions(), e.Transaction) {
			// what the program made for a transaction is reported as that transaction's, whatever brought it
			e = got.Explained[of]
			e.PartOf = of
		}
		for _, tx := range e.Transactions() {
			by := cmp.Or(e.PartOf, c.id)
			if usedBy[tx] != "" && usedBy[tx] != by {
				problem += fmt.Sprintf("%s accounts for two changes, %s and %s\n", s.names[tx], s.names[usedBy[tx]], s.names[by])
			}
			usedBy[tx] = by
		}
		if is && !s.backed(n, e) {
			problem += s.named(fmt.Sprintf("c%d: not made so: %+v\n", n, e))
		}
	}
	return problem
}

// backed reports whether there is a use that is what the judge says.
func (s *small) backed(n int, e explain.Explained) bool {
	var txs uint
	for k, p := range s.txs {
		if slices.Contains(e.Transactions(), p.id) {
			txs |= 1 << k
		}
	}
	at := func(id string) int { return slices.IndexFunc(s.nodes, func(c node) bool { return c.id == id }) }
	of := s.merge(n)
	switch from, to, _ := strings.Cut(e.PartOf, ".."); {
	case e.By == explain.ByMerge:
		return s.nodes[n].side != nil && txs == 0
	case e.PartOf == "":
		return slices.ContainsFunc(s.whole(n), func(u use) bool { return u.txs == txs })
	case to == "":
		return of > 0 && at(from) == of && slices.ContainsFunc(s.whole(of), func(u use) bool { return u.txs == txs })
	case of > 0 && at(from) == s.nodes[s.nodes[of].side[0]].from && slices.Index(s.nodes[of].side, at(to)) == len(s.nodes[of].side)-1 &&
		slices.ContainsFunc(s.single(s.nodes[at(from)].at, s.nodes[at(to)].at, s.brought(of), at(to)), func(u use) bool { return u.txs == txs }):
		return true
	default:
		return slices.ContainsFunc(s.rows(at(to)), func(u use) bool {
			return u.txs == txs && u.commits>>n&1 == 1 && s.nodes[bits.TrailingZeros(u.commits)].from == at(from)
		})
	}
}
