package explain_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// move makes one move of a tale.
func (w *tale) move() {
	moves := []struct {
		weight int
		name   string
		do     func()
	}{
		{4, "apply", w.applies1}, {6, "squash", w.squash}, {4, "rebase", w.rebase}, {3, "a row with a thing of its own", w.evilRow},
		{4, "merge", w.merge}, {3, "evil merge", w.evilMerge}, {2, "octopus", w.octopus}, {3, "covered merge", w.covered},
		{3, "by hand", w.hand}, {3, "more, or less", w.moreOrLess}, {3, "revert", w.revert}, {2, "empty", w.empty}, {4, "bot", w.bot},
		{3, "rules", w.changesRules}, {2, "a Policy of its own", w.ownPolicy}, {3, "not approved", w.notApproved}, {2, "late", w.late}, {2, "twins", w.twins}, {2, "early", w.early},
		{1, "a merge that the forge did not make", w.forgedMerge}, {2, "keys by hand", w.keysByHand},
	}
	total := 0
	for _, m := range moves {
		total += m.weight
	}
	at := w.rng.IntN(total)
	for _, m := range moves {
		if at -= m.weight; at < 0 {
			w.say("%s:", m.name)
			m.do()
			return
		}
	}
}

var nobody = truth{why: "nobody approved it"}

func (w *tale) tree() files { return w.trees[w.main.tip] }

// noise are other commits of the branch meanwhile, which touch none of some edits' places.
func (w *tale) noise(edits []edit) {
	for _, e := range edits {
		w.taken[fmt.Sprint(e.path, e.place)] = true
	}
	for range w.rng.IntN(3) {
		other := w.change(w.tree(), 1)
		if len(other) == 0 {
			continue
		}
		if w.rng.IntN(2) == 0 {
			w.add(w.main, "noise", w.apply(w.tree(), other...), nobody)
			w.say("  meanwhile by hand %v", other)
			continue
		}
		x := w.transact(w.main.tip, other)
		w.add(w.main, "meanwhile", w.apply(w.tree(), other...), w.spent(x))
		w.say("  meanwhile %s: %v", w.names[x.id], other)
	}
	for _, e := range edits {
		delete(w.taken, fmt.Sprint(e.path, e.place))
	}
}

// spent is the truth of a commit that a transaction makes now on main.
func (w *tale) spent(x *tx) truth {
	w.main.gone = append(w.main.gone, x)
	return w.judged(x, w.terms(w.main, x))
}

// moves reports whether a change still goes where lines moved: not where files come and go.
func movable(edits []edit) bool {
	return !slices.ContainsFunc(edits, func(e edit) bool { return e.place == -1 })
}

func (w *tale) applies1() {
	edits := w.any(w.tree())
	if len(edits) == 0 {
		return
	}
	x := w.propose(w.main.tip, edits, false)
	if !w.approve(x, w.pick(rulesIn(w.trees[w.policyAt]), false)...) {
		panic("refused")
	}
	x.ends = "applied"
	is := w.spent(x)
	id, err := w.applies(x.id, "main")
	w.must(err)
	x.made = id
	w.names[id] = "applied"
	w.added(w.main, id, is)
	w.say("  %s %v by %v", w.names[x.id], edits, x.votes)
}

func (w *tale) squash() {
	edits := w.any(w.tree())
	if len(edits) == 0 {
		return
	}
	x := w.transact(w.main.tip, edits)
	w.noise(edits)
	is := w.spent(x)
	id := w.add(w.main, "squash", w.apply(w.tree(), edits...), is)
	w.closes(x, id)
	is = w.again(x, is)
	w.main.truth[id] = is
	w.say("  %s %v by %v, %s", w.names[x.id], edits, x.votes, x.ends)
}

// again is a truth with the strength that the end of a transaction gives it.
func (w *tale) again(x *tx, is truth) truth {
	if is.explained && x.ends == "completed" && len(x.votes) == 1 {
		is.strength = "forge_twice"
	}
	return is
}

func (w *tale) rebase() {
	edits := w.change(w.tree(), 2+w.rng.IntN(4))
	if len(edits) < 2 {
		return
	}
	if w.rng.IntN(2) == 0 { // by files
		slices.SortFunc(edits, func(a, b edit) int { return strings.Compare(a.path, b.path) })
	}
	x := w.transact(w.main.tip, edits)
	w.noise(edits)
	var steps [][]edit
	for left := edits; len(left) > 0; {
		n := 1 + w.rng.IntN(len(left))
		if len(left) == len(edits) && n == len(left) {
			n--
		}
		steps = append(steps, left[:n])
		left = left[n:]
	}
	if e := steps[0]; e[0].old != "" && e[0].new != "" && w.rng.IntN(3) == 0 { // one line goes before the other comes
		gone, come := e[0], e[0]
		gone.new, come.old = "", ""
		steps = append([][]edit{append([]edit{gone}, e[1:]...)}, append(steps[1:], []edit{come})...)
	}
	// All are judged by the Policy that is there when the row ends, and before it nothing changes that.
	is := w.spent(x)
	var made []string
	for i, step := range steps {
		if i > 0 && w.rng.IntN(6) == 0 {
			made = append(made, w.add(w.main, "empty in it", w.tree(), is))
		}
		made = append(made, w.add(w.main, fmt.Sprint("row ", i+1), w.apply(w.tree(), step...), is))
	}
	w.closes(x, w.main.tip)
	for _, id := range made {
		is := w.again(x, is)
		is.ends, is.codes = w.main.tip, nil
		if !is.explained && strings.HasPrefix(w.names[id], "empty") {
			is = w.emptyTruth()
		}
		w.main.truth[id] = is
	}
	w.say("  %s %v in %d by %v, %s", w.names[x.id], edits, len(made), x.votes, x.ends)
}

func (w *tale) emptyTruth() truth {
	return truth{explained: !w.terms(w.main, nil).refuseEmpty, by: explain.ByEmpty, why: "it changes no file"}
}

func (w *tale) evilRow() {
	edits := w.change(w.tree(), 2)
	if len(edits) < 2 {
		return
	}
	x := w.transact(w.main.tip, edits)
	w.noise(edits)
	w.taken["x"] = true
	for _, e := range edits {
		w.taken[fmt.Sprint(e.path, e.place)] = true
	}
	var evil []edit
	kind := w.rng.IntN(6)
	switch kind {
	case 0: // a line in the same file
		e := edits[0]
		for i := range places {
			if i != e.place && !w.taken[fmt.Sprint(e.path, i)] {
				evil = []edit{{e.path, i, inPlace(w.tree()[e.path], i), w.fresh()}}
			}
		}
	case 1:
		evil = []edit{{".github/workflows/evil.yml", -1, "", "on: push\n"}}
	case 2:
		evil = []edit{{"evil/link", -1, "", "l:/etc/passwd"}}
	case 3:
		evil = []edit{{"evil/sub", -1, "", "s:" + strings.Repeat("1", 40)}}
	case 4:
		e := edit{path: edits[0].path, place: -2, new: "x:"}
		if strings.HasPrefix(w.tree()[e.path], "x:") {
			e = edit{path: edits[0].path, place: -2, old: "x:"}
		}
		evil = []edit{e}
	default:
		evil = []edit{{"src/evil", -1, "", w.fresh()}}
	}
	for _, e := range edits {
		delete(w.taken, fmt.Sprint(e.path, e.place))
	}
	if len(evil) == 0 {
		return
	}
	is := truth{why: "a thing of its own comes and goes in the row"}
	if w.rng.IntN(2) == 0 {
		w.add(w.main, "half, and evil", w.apply(w.tree(), append(evil, edits[0])...), is)
		w.add(w.main, "rest", w.apply(w.tree(), append(backwards(evil), edits[1])...), is)
	} else {
		w.add(w.main, "half", w.apply(w.tree(), edits[0]), is)
		w.add(w.main, "evil", w.apply(w.tree(), evil...), is)
		w.add(w.main, "evil back", w.apply(w.tree(), backwards(evil)...), is)
		w.add(w.main, "rest", w.apply(w.tree(), edits[1]), is)
	}
	w.say("  %s %v with %v", w.names[x.id], edits, evil)
}

// side makes commits beside main, from where it was.
func (w *tale) side(what string, from string, steps ...[]edit) (tip string, all []string) {
	tip = from
	for i, step := range steps {
		tip = w.commit(fmt.Sprint(what, " ", i+1), w.apply(w.trees[tip], step...), tip)
		all = append(all, tip)
	}
	return tip, all
}

func (w *tale) merge() {
	from := w.main.tip
	edits := w.change(w.tree(), 1+w.rng.IntN(3))
	if len(edits) == 0 {
		return
	}
	x := w.transact(from, edits)
	steps := [][]edit{edits}
	if len(edits) > 1 && w.rng.IntN(2) == 0 {
		steps = [][]edit{edits[:1], edits[1:]}
	}
	if w.rng.IntN(3) == 0 { // somewhere on the way there was something else: the branch was never there
		steps = [][]edit{{{"draft", -1, "", "draft\n"}}, append([]edit{{"draft", -1, "draft\n", ""}}, edits...)}
	}
	tip, all := w.side("side", from, steps...)
	w.noise(edits)
	is := w.spent(x)
	id := w.add(w.main, "merge", w.apply(w.tree(), edits...), is, tip)
	w.closes(x, id)
	is = w.again(x, is)
	w.main.truth[id] = is
	is.codes = nil
	for _, one := range all {
		w.main.truth[one] = is
	}
	w.say("  %s %v in %d, by %v, %s", w.names[x.id], edits, len(all), x.votes, x.ends)
}

func (w *tale) evilMerge() {
	from := w.main.tip
	edits := w.change(w.tree(), 1+w.rng.IntN(2))
	if len(edits) == 0 {
		return
	}
	x := w.transact(from, edits)
	tip, all := w.side("side", from, edits)
	w.noise(edits)
	is := w.spent(x)
	f := w.apply(w.tree(), edits...)
	evil := truth{why: "it is an evil merge"}
	switch w.rng.IntN(3) {
	case 0:
		f = f.with("src/evil", w.fresh())
	case 1: // drops main's
		f = f.with("lock", f["lock"]+"dropped\n")
	default: // drops the side's
		f = w.tree()
	}
	w.add(w.main, "evil merge", f, evil, tip)
	w.main.truth[all[0]] = is
	if f["src/evil"] != "" {
		w.add(w.main, "evil away", f.with("src/evil", ""), nobody)
	}
	w.say("  %s %v by %v", w.names[x.id], edits, x.votes)
}

func (w *tale) octopus() {
	from := w.main.tip
	edits := w.change(w.tree(), 2)
	if len(edits) < 2 {
		return
	}
	a := w.transact(from, edits[:1])
	b := w.transact(from, edits[1:])
	left, _ := w.side("left", from, edits[:1])
	right, _ := w.side("right", from, edits[1:])
	terms := w.terms(w.main, nil)
	first, second := w.judged(a, terms), w.judged(b, terms)
	f := w.apply(w.tree(), edits...)
	evil := w.rng.IntN(3) == 0
	is := truth{explained: first.explained && second.explained && !evil, why: "it is an octopus of both"}
	if evil {
		f = f.with("lock", f["lock"]+"evil\n")
	}
	w.add(w.main, "octopus", f, is, left, right)
	w.main.truth[left], w.main.truth[right] = first, second
	if is.explained {
		w.main.truth[left], w.main.truth[right] = is, is
	}
	w.say("  %s %s %v, evil %v", w.names[a.id], w.names[b.id], edits, evil)
}

// covered is a merge that only the Policy's rule for merges accounts for: one side is a bot's.
func (w *tale) covered() {
	from := w.main.tip
	edits := w.change(w.tree(), 1)
	if len(edits) == 0 {
		return
	}
	terms := w.terms(w.main, nil)
	lockOf := w.tree()["lock"]
	tip := w.commit("bot's side", w.tree().with("lock", "v"+w.fresh()), from)
	w.signed(tip, keys["bot"].Sign)
	bot := w.botTruth(terms, "bot", true)
	mine := nobody
	var x *tx
	if w.rng.IntN(2) == 0 {
		x = w.transact(from, edits)
		mine = w.judged(x, w.terms(w.main, x))
		w.main.gone = append(w.main.gone, x)
	}
	side := w.commit("the other's side", w.apply(w.trees[tip], edits...), tip)
	w.noise(append(edits, edit{path: "lock"}))
	if w.tree()["lock"] != lockOf {
		return
	}
	f := w.apply(w.tree(), edits...).with("lock", w.trees[tip]["lock"])
	evil := w.rng.IntN(4) == 0
	if evil {
		f = f.with("deps/a", w.fresh())
	}
	now := w.terms(w.main, nil)
	if now.rulebook != terms.rulebook {
		panic("the rules moved")
	}
	is := truth{explained: now.merges && bot.explained && mine.explained && !evil, by: explain.ByMerge, why: "the rule for merges says so"}
	w.add(w.main, "covered merge", f, is, side)
	w.main.truth[tip], w.main.truth[side] = bot, mine
	w.say("  merges %v, bot %v, other %v, evil %v", now.merges, bot.explained, mine.explained, evil)
}

func (w *tale) hand() {
	f := w.tree()
	edits := w.any(f)
	if len(edits) == 0 || w.rng.IntN(4) == 0 {
		edits = []edit{[]edit{{"link", -1, f["link"], "l:" + w.fresh()}, {"sub", -1, f["sub"], fmt.Sprintf("s:%040d", w.count)}, {".github/workflows/x.yml", -1, f[".github/workflows/x.yml"], w.fresh()}}[w.rng.IntN(3)]}
	}
	w.add(w.main, "by hand", w.apply(f, edits...), nobody)
	w.say("  %v", edits)
}

// moreOrLess are commits with an extra hunk, or a part of a patch.
func (w *tale) moreOrLess() {
	edits := w.change(w.tree(), 3)
	if len(edits) < 3 {
		return
	}
	if w.rng.IntN(2) == 0 {
		x := w.transact(w.main.tip, edits[:2])
		w.noise(edits)
		w.add(w.main, "more", w.apply(w.tree(), edits...), truth{why: "more is in it than was approved"})
		w.say("  %s %v, and %v", w.names[x.id], edits[:2], edits[2:])
		return
	}
	x := w.transact(w.main.tip, edits)
	w.noise(edits)
	w.add(w.main, "less", w.apply(w.tree(), edits[:2]...), truth{why: "it is a part of what was approved"})
	w.add(w.main, "then another", w.apply(w.tree()).with("deps/a", w.fresh()), nobody)
	w.say("  %s %v, less %v", w.names[x.id], edits, edits[2:])
}

// goes reports whether edits go onto some files.
func (w *tale) goes(f files, edits []edit) (ok bool) {
	defer func() { ok = recover() == nil }()
	w.apply(f, edits...)
	return true
}

// revert takes back what was made, and makes it again.
func (w *tale) revert() {
	var x *tx
	for _, one := range slices.Backward(w.main.gone) {
		if w.goes(w.tree(), backwards(one.edits)) && movable(one.edits) {
			x = one
			break
		}
	}
	if x == nil {
		return
	}
	back := backwards(x.edits)
	if w.rng.IntN(2) == 0 {
		undo := w.transact(w.main.tip, back)
		w.noise(back)
		w.add(w.main, "approved revert", w.apply(w.tree(), back...), w.spent(undo))
		w.say("  %s, by %s", w.names[x.id], w.names[undo.id])
	} else {
		w.add(w.main, "revert", w.apply(w.tree(), back...), nobody)
		w.say("  %s, by hand", w.names[x.id])
	}
	w.noise(back)
	switch w.rng.IntN(3) {
	case 0:
		w.add(w.main, "again by hand", w.apply(w.tree(), x.edits...), truth{why: "it was made before"})
		w.say("  again by hand")
	case 1:
		redo := w.transact(w.main.tip, x.edits)
		w.noise(x.edits)
		w.add(w.main, "again approved", w.apply(w.tree(), x.edits...), w.spent(redo))
		w.say("  again by %s", w.names[redo.id])
	}
}

func (w *tale) empty() {
	w.add(w.main, "empty", w.tree(), w.emptyTruth())
}

// botTruth is what is so of a bot's commit.
func (w *tale) botTruth(t heldTo, who string, fine bool) truth {
	ok := fine && t.bot
	for _, r := range t.all {
		ok = ok && r.book.bot && lists(r.bots, who)
	}
	return truth{explained: ok, by: explain.ByBot, why: fmt.Sprintf("it is %s's, fine %v, and the rules are %+v", who, fine, t)}
}

func (w *tale) bot() {
	f, t := w.tree(), w.terms(w.main, nil)
	who, fine, what := "bot", true, "a version"
	next := f.with("lock", "v"+w.fresh())
	switch w.rng.IntN(9) {
	case 0:
		next, what = f.with("deps/a", strings.TrimSuffix(f["deps/a"], "\n")+w.fresh()).with("deps/b/c", w.fresh()), "two files"
	case 1:
		next, fine, what = next.with("src/bot", w.fresh()), false, "the wrong path"
	case 2:
		next, fine, what = next.with("deps/CODEOWNERS", w.fresh()), false, "a protected name"
	case 3:
		next, fine, what = next.with("deps/.github/workflows/x.yml", w.fresh()), false, "a workflow"
	case 4:
		next, fine, what = f.with("deps/tool"+fmt.Sprint(w.count), "x:"+w.fresh()), t.modes, "an executable"
	case 5:
		mode := "x:"
		if strings.HasPrefix(f["deps/a"], "x:") {
			mode = ""
		}
		next, fine, what = f.with("deps/a", mode+strings.TrimPrefix(f["deps/a"], "x:")), t.modes, "a mode"
	case 6:
		who = "eve"
	case 7:
		next, fine, what = f.with("lock/x", w.fresh()).with("lock", ""), false, "a directory"
	}
	id := w.commit("bot: "+what, next, w.main.tip)
	w.signed(id, keys[who].Sign)
	w.added(w.main, id, w.botTruth(t, who, fine))
	if what == "a directory" {
		w.add(w.main, "a file again", f, nobody)
	}
	w.say("  %s by %s", what, who)
}

// rules1 changes the rules, with approval or without.
func (w *tale) changesRules() {
	now := rulesIn(w.tree())
	next := now
	switch w.rng.IntN(4) {
	case 0:
		next.keys = []string{"ada", "ada cyd", "cyd"}[w.rng.IntN(3)]
		if now.book.signed || now.book.required > 1 {
			next.keys = "ada cyd"
		}
	case 1:
		next.bots = []string{"bot", "bot eve", ""}[w.rng.IntN(3)]
	default:
		next.book = w.anyBook()
	}
	if next.book.signed {
		next.keys = "ada cyd"
	}
	if next == now {
		return
	}
	f := next.in(w.tree())
	if w.rng.IntN(4) > 0 {
		var edits []edit
		for _, path := range []string{".github/countersign.yml", "keys", "botkeys"} {
			if f[path] != w.tree()[path] {
				edits = append(edits, edit{path, -1, w.tree()[path], f[path]})
			}
		}
		x := w.transact(w.main.tip, edits)
		w.add(w.main, "rules", f, w.spent(x))
		w.say("  %+v by %s %v", next, w.names[x.id], x.votes)
		return
	}
	w.add(w.main, "rules by hand", f, nobody)
	w.say("  %+v by hand", next)
}

func (w *tale) keysByHand() {
	now := rulesIn(w.tree())
	if w.rng.IntN(2) == 0 { // takes a bot's out, which then signs all the same
		if now.bots = []string{"", "eve"}[w.rng.IntN(2)]; now != rulesIn(w.tree()) {
			w.add(w.main, "keys by hand", now.in(w.tree()), nobody)
		}
		w.bot()
		return
	}
	now.keys, now.bots = strings.Join(append(strings.Fields(strings.ReplaceAll(now.keys, "eve", "")), "eve"), " "), "bot eve"
	if now == rulesIn(w.tree()) {
		return
	}
	w.add(w.main, "keys by hand", now.in(w.tree()), nobody)
	if !now.book.signed {
		return
	}
	// eve signs, whom the keys by hand list: she is none of those who may.
	edits := w.change(w.tree(), 1)
	if len(edits) == 0 {
		return
	}
	x := w.propose(w.main.tip, edits, false)
	if w.approve(x, vote{"eve", "signed"}) {
		x.ends = "given"
		if _, err := w.applies(x.id, "topic-"+x.id); err == nil {
			x.ends = "applied"
		}
	}
	w.add(w.main, "eve's", w.apply(w.tree(), edits...), w.judged(x, w.terms(w.main, x)))
}

// ownPolicy is a record that goes by a Policy of its own, with keys of its own or without.
func (w *tale) ownPolicy() {
	from := w.main.tip
	edits := w.change(w.tree(), 1)
	if len(edits) == 0 {
		return
	}
	mine := rulesIn(w.tree())
	mine.book.required, mine.book.signed, mine.keys = 1, false, "ada cyd eve"
	kind := "local"
	if w.rng.IntN(2) == 0 {
		kind, mine.book.signed = "signed", true
	}
	w.policyAt = w.commit("evil", mine.in(w.tree()), from)
	x := w.propose(from, edits, false)
	who := "eve"
	if kind == "local" && w.rng.IntN(2) == 0 {
		who = "ada" // whose address anybody can set
	}
	ok := w.approve(x, vote{who, kind})
	var id string
	var err error
	if ok {
		id, err = w.applies(x.id, "main")
	}
	w.policyAt = from
	if !ok || err != nil {
		w.say("  refused: %v", err)
		return
	}
	x.ends = "applied"
	w.names[id] = "by a Policy of its own"
	w.added(w.main, id, w.spent(x))
	w.say("  %s %v by %s, %s", w.names[x.id], edits, who, kind)
}

func (w *tale) notApproved() {
	edits := w.any(w.tree())
	if len(edits) == 0 {
		return
	}
	now := rulesIn(w.trees[w.policyAt])
	pull := !now.book.signed && w.rng.IntN(2) == 0
	x := w.propose(w.main.tip, edits, pull)
	deny := func() {
		var err error
		if pull {
			err = w.comments(cyd, "/deny", x.id, x.pull)
		} else {
			err = w.says(cyd, ledger.Deny, x.id)
		}
		w.must(err)
		x.ends = "denied"
	}
	switch kind := w.rng.IntN(6); {
	case kind == 0: // proposed
	case kind == 1:
		deny()
	case !w.approve(x, w.pick(now, pull)...):
		panic("refused")
	case kind == 2:
		deny()
	case kind == 3 && pull:
		x.ends = "superseded"
		w.must(w.runner(bea).Supersede(w.ctx(), x.id, x.id, "another is in its place"))
	case kind == 4 && !pull:
		w.must(w.interrupts(x.id))
		x.ends = "given"
	case pull:
		x.ends = "open"
	default:
		x.ends = "given"
	}
	is := w.judged(x, w.terms(w.main, x))
	w.add(w.main, "not approved", w.apply(w.tree(), edits...), is)
	w.say("  %s %v is %s, by %v", w.names[x.id], edits, x.ends, x.votes)
}

// late is a pull request that was merged before it was approved.
func (w *tale) late() {
	now := rulesIn(w.trees[w.policyAt])
	edits := w.change(w.tree(), 2)
	if now.book.signed || len(edits) < 2 {
		return
	}
	x := w.propose(w.main.tip, edits, true)
	at := w.now
	commit := w.commit("merged first", w.apply(w.tree(), edits...), w.main.tip)
	w.now = w.now.Add(5_000_000_000)
	if !w.approve(x, w.pick(now, true)...) {
		panic("refused")
	}
	x.ends, x.made = "open", commit
	w.must(w.merged(x.id, x.pull, commit, at))
	is := w.spent(x)
	is.late, x.late = is.explained, true
	w.added(w.main, commit, is)
	w.say("  %s %v by %v", w.names[x.id], edits, x.votes)
}

// early is a commit by hand of what is applied after that: the record names the later one.
func (w *tale) early() {
	edits := w.change(w.tree(), 1+w.rng.IntN(2))
	if len(edits) == 0 {
		return
	}
	x := w.propose(w.main.tip, edits, false)
	if !w.approve(x, w.pick(rulesIn(w.trees[w.policyAt]), false)...) {
		panic("refused")
	}
	x.ends = "applied"
	first := w.add(w.main, "early", w.apply(w.tree(), edits...), nobody)
	w.add(w.main, "early back", w.apply(w.tree(), backwards(edits)...), nobody)
	is := w.spent(x)
	id, err := w.applies(x.id, "main")
	w.must(err)
	w.names[id] = "applied"
	w.added(w.main, id, is)
	w.main.truth[first] = truth{names: id, why: "its approval is for a later commit"}
	w.say("  %s %v by %v", w.names[x.id], edits, x.votes)
}

// twins are two transactions of one patch: both may be made.
func (w *tale) twins() {
	edits := w.change(w.tree(), 1+w.rng.IntN(2))
	if len(edits) == 0 {
		return
	}
	from := w.main.tip
	one := w.transact(from, edits)
	if one.ends == "open" {
		w.must(w.ends(one.id, one.pull, fmt.Sprintf("%040d", 1), ""))
		one.ends = "completed"
	} else {
		w.must(w.validates(one.id))
	}
	two := w.propose(from, edits, false)
	if !w.approve(two, w.pick(rulesIn(w.trees[w.policyAt]), false)...) {
		panic("refused")
	}
	_, err := w.applies(two.id, "topic-"+two.id)
	w.must(err)
	two.ends = "applied"
	t := w.terms(w.main, nil)
	worth := 0
	for _, x := range []*tx{one, two} {
		if w.judged(x, t).explained {
			worth++
		}
	}
	for n := range 3 {
		is := truth{explained: n < worth, why: fmt.Sprintf("%d of two that propose it are worth something", worth)}
		w.add(w.main, fmt.Sprint("twin ", n+1), w.apply(w.tree(), edits...), is)
		w.add(w.main, fmt.Sprint("twin ", n+1, " away"), w.apply(w.tree(), backwards(edits)...), nobody)
	}
	w.say("  %s %s %v", w.names[one.id], w.names[two.id], edits)
}

// forgedMerge is a record that says that an approved pull request was merged as a commit that
// is something else.
func (w *tale) forgedMerge() {
	now := rulesIn(w.trees[w.policyAt])
	edits := w.change(w.tree(), 2)
	if now.book.signed || len(edits) < 2 {
		return
	}
	x := w.propose(w.main.tip, edits[:1], true)
	if !w.approve(x, w.pick(now, true)...) {
		panic("refused")
	}
	x.ends = "open"
	id := w.add(w.main, "evil, by a forged record", w.apply(w.tree(), edits[1:]...), nobody)
	w.must(w.merged(x.id, x.pull, id, w.now))
	w.say("  %s %v, and %v", w.names[x.id], edits[:1], edits[1:])
}

// release makes another branch, from a commit that main had, and some moves there. It is none
// where somebody changed the rules of main by hand.
func (w *tale) release() {
	if w.lax || len(w.forks) == 0 {
		return
	}
	from := w.forks[w.rng.IntN(len(w.forks))]
	b := &branch{name: "release", tip: from.at, actual: from.trust[0], vouched: from.trust[1], truth: from.truth, newest: slices.Index(w.line("", w.main.tip), from.at)}
	w.other = b
	w.refs["refs/heads/release"] = b.tip
	w.say("release, from %s:", w.names[b.tip])
	tree := func() files { return w.trees[b.tip] }
	put := func(what string, f files, is truth) { w.add(b, what, f, is) }
	for range 6 {
		switch w.rng.IntN(7) {
		case 0, 1, 2: // what main has
			var pick *tx
			for _, x := range w.main.gone {
				other := func(o *tx) bool { return x != o && slices.Equal(paths(x.edits), paths(o.edits)) } // or its revert
				if !slices.ContainsFunc(w.main.gone, other) && !slices.Contains(b.gone, x) && !b.has(w, x.made) && w.rng.IntN(2) == 0 && w.goes(tree(), x.edits) && !b.mayHave(x) {
					pick = x
				}
			}
			if pick == nil {
				continue
			}
			is := w.judged(pick, w.terms(b, pick))
			is.late = is.explained && pick.late // as it was on main
			b.gone = append(b.gone, pick)
			put("cherry-pick", w.apply(tree(), pick.edits...), is)
			w.say("  cherry-pick of %s", w.names[pick.id])
			if w.rng.IntN(3) == 0 && movable(pick.edits) {
				put("taken back", w.apply(tree(), backwards(pick.edits)...), nobody)
				put("picked again", w.apply(tree(), pick.edits...), truth{why: "it was picked before", explained: false})
				w.say("  back and again")
			}
		case 3:
			edits := w.change(tree(), 1)
			put("by hand", w.apply(tree(), edits...), nobody)
		case 4:
			edits := w.change(tree(), 2)
			x := w.transact(b.tip, edits)
			put("reviewed there", w.apply(tree(), edits...), w.judged(x, w.terms(b, x)))
			w.say("  %s %v by %v", w.names[x.id], edits, x.votes)
		case 5:
			now := rulesIn(tree())
			now.book = w.anyBook()
			approved := func(x *tx) bool {
				return slices.ContainsFunc(x.edits, func(e edit) bool { return e.new == now.book.text() })
			}
			if next := now.in(tree()); rulesIn(next) != rulesIn(tree()) && !slices.ContainsFunc(w.main.gone, approved) {
				put("its rules by hand", next, nobody)
				w.say("  rules %+v", now)
			}
		default:
			put("empty there", tree(), truth{explained: !w.terms(b, nil).refuseEmpty, by: explain.ByEmpty, why: "it changes no file"})
		}
	}
}

// paths are the places that edits change, in order.
func paths(edits []edit) (out []string) {
	for _, e := range edits {
		out = append(out, fmt.Sprint(e.path, e.place))
	}
	slices.Sort(out)
	return out
}

// has reports whether a branch has a commit.
func (b *branch) has(w *tale, commit string) bool { return commit != "" && w.ancestors(b.tip)[commit] }

// mayHave reports whether a commit that a branch has was made by a transaction.
func (b *branch) mayHave(x *tx) bool {
	for _, is := range b.truth {
		if is.tx == x.id {
			return true
		}
	}
	return false
}
