package explain_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A tale is a random history whose truth is known: what is told of it, move by move, says of
// each commit whether something accounts for it. All lines that a move writes are new, so that
// nothing is approved by chance.
type tale struct {
	*stages
	rng   *rand.Rand // of the move
	main  *branch
	other *branch // "release", nil before there is one
	count int
	gated int // how many transactions there were before the first of a pull request's own diff, -1 for none
	taken map[string]bool
	lax   bool // somebody changed the rules of main by hand
	words []string
	all   []*tx
	forks []fork
}

// A fork is a place of main where another branch may begin.
type fork struct {
	at    string
	trust [2]ruleset
	truth map[string]truth
}

// A branch has a tip, what is believed of its rules, and the truth of its commits.
type branch struct {
	name            string
	tip             string
	actual, vouched ruleset
	gone            []*tx // that are spent
	truth           map[string]truth
	newest          int // of main's commits, the newest that it has
}

// A truth is what is to be said of a commit: any of the codes if it is not explained, none for any.
// ends is the last of its row, makes the commit that the record of its transaction names, or "".
type truth struct {
	explained   bool
	either      bool // the record does not tell
	by          explain.By
	strength    explain.Strength
	late        bool
	codes       []explain.Reason
	ends, names string
	tx, why     string // the transaction that codes are about, "" for none
}

// A ruleset is what the files of a commit say of rules.
type ruleset struct {
	book       rulebook
	keys, bots string // whose, a space between each
}

// A rulebook is a Policy, as far as it is played with.
type rulebook struct {
	required                         int
	signed, merges, refuseEmpty, bot bool
	modes                            bool
	decisions                        string // "" where the file does not say
}

func (b rulebook) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "version: 1\napprovals:\n  required: %d\n  keys: keys\n", b.required)
	if b.signed {
		s.WriteString("  signed: require\n")
	}
	fmt.Fprintf(&s, "explained:\n  empty: %v\n", !b.refuseEmpty)
	if b.merges {
		s.WriteString("  merges: covered\n")
	}
	if b.decisions != "" {
		fmt.Fprintf(&s, "  decisions: [%s]\n", b.decisions)
	}
	if b.bot {
		fmt.Fprintf(&s, "  bots:\n    - {keys: botkeys, paths: [/deps/, /lock], modes: %v}\n", b.modes)
	}
	return s.String()
}

func keyFile(who string) string {
	text := "# keys\n"
	for _, name := range strings.Fields(who) {
		text += name + "@example.org " + keys[name].Public + "\n"
	}
	return text
}

func (r ruleset) in(f files) files {
	return f.with(".github/countersign.yml", r.book.text()).with("keys", keyFile(r.keys)).with("botkeys", keyFile(r.bots))
}

// rulesIn reads them back.
func rulesIn(f files) (r ruleset) {
	p := f[".github/countersign.yml"]
	fmt.Sscanf(p, "version: 1\napprovals:\n  required: %d\n", &r.book.required)
	r.book.signed, r.book.merges = strings.Contains(p, "signed: require"), strings.Contains(p, "merges: covered")
	r.book.refuseEmpty, r.book.bot = strings.Contains(p, "empty: false"), strings.Contains(p, "bots:")
	r.book.modes = strings.Contains(p, "modes: true")
	if _, rest, has := strings.Cut(p, "decisions: ["); has {
		r.book.decisions, _, _ = strings.Cut(rest, "]")
	}
	names := func(text string) string {
		var all []string
		for line := range strings.Lines(text) {
			if name, _, is := strings.Cut(line, "@"); is {
				all = append(all, name)
			}
		}
		return strings.Join(all, " ")
	}
	r.keys, r.bots = names(f["keys"]), names(f["botkeys"])
	return r
}

// terms are the rules that hold: the first, tightened by the others. lists are those whose keys
// have to have a key.
type heldTo struct {
	rulebook
	lists []ruleset
	all   []ruleset
}

func held(all []ruleset, ofFirst bool) heldTo {
	t := heldTo{rulebook: all[0].book, lists: all, all: all}
	for _, r := range all[1:] {
		t.required, t.signed, t.refuseEmpty = max(t.required, r.book.required), t.signed || r.book.signed, t.refuseEmpty || r.book.refuseEmpty
		t.merges = t.merges && r.book.merges
		mine := t.decisions
		if mine == "" && r.book.decisions != "" && r.book.decisions != "signed, forge, local" {
			mine = "signed, forge"
		}
		if r.book.decisions != "" && mine != "" {
			var both []string
			for _, kind := range strings.Split(mine, ", ") {
				if slices.Contains(strings.Split(r.book.decisions, ", "), kind) {
					both = append(both, kind)
				}
			}
			mine = strings.Join(both, ", ")
			if len(both) == 0 {
				mine = "none"
			}
		}
		t.decisions = mine
	}
	if ofFirst {
		t.lists = all[:1]
	}
	return t
}

func lists(who, name string) bool { return slices.Contains(strings.Fields(who), name) }

// takes reports whether a kind of decision accounts for commits.
func (t heldTo) takes(kind string, gated bool) bool {
	if t.decisions != "" {
		return slices.Contains(strings.Split(t.decisions, ", "), kind)
	}
	return kind != "local" || !gated && !t.signed
}

// A vote is an approval. kind is signed, forge or local.
type vote struct {
	who  string
	kind string
}

// A tx is a transaction, as it was told.
type tx struct {
	id     string
	edits  []edit
	base   string
	votes  []vote
	pull   *pullRequest
	order  int    // how many were recorded before it
	ends   string // applied, given, proposed, denied, completed, interrupted, open, superseded
	placed int    // of main's commits, the newest whose Policy it went by
	late   bool
	book   rulebook // by which it was approved
	made   string   // the commit that its record names
}

// judged is what a transaction is worth on some terms.
func (w *tale) judged(x *tx, t heldTo) (is truth) {
	defer func() { is.tx = x.id }()
	out := truth{explained: true, by: explain.ByTransaction}
	if asks := x.book; x.pull != nil && x.ends != "completed" && (asks.required != t.required || asks.signed != t.signed) {
		return truth{either: true} // what stood when it was merged is not recorded, and what other rules ask not known
	}
	if x.pull != nil {
		out.by = explain.ByPullRequest
	}
	gated := w.gated >= 0 && w.gated < x.order
	count, enough := map[string]bool{}, map[string]bool{}
	for _, v := range x.votes {
		switch {
		case v.kind == "signed" && slices.ContainsFunc(t.lists, func(r ruleset) bool { return !lists(r.keys, v.who) }):
		case v.kind != "signed" && t.signed:
		default:
			count[v.who] = true
			if t.takes(v.kind, gated) {
				enough[v.who] = true
			}
		}
	}
	switch {
	case x.ends == "denied":
		return truth{codes: []explain.Reason{explain.Denied}, why: "it was denied"}
	case x.ends == "proposed" || len(x.votes) == 0:
		return truth{codes: []explain.Reason{explain.NotApproved}, why: "it was only proposed"}
	case x.ends == "given":
		return truth{codes: []explain.Reason{explain.NotApplied, explain.NotApproved}, why: "it was not applied"}
	case x.ends == "superseded":
		return truth{codes: []explain.Reason{explain.NotApproved}, why: "it was superseded"}
	case len(count) < t.required:
		return truth{codes: []explain.Reason{explain.NotApproved, explain.UnknownPolicy}, why: "by the Policy it is not approved"}
	case len(enough) < t.required:
		return truth{codes: []explain.Reason{explain.WeakDecision}, why: "its decisions are too weak"}
	}
	if len(x.votes) == 1 {
		out.strength = map[string]explain.Strength{"signed": explain.Signed, "forge": explain.Forge, "local": explain.Shell}[x.votes[0].kind]
		if x.votes[0].kind == "signed" && x.votes[0].who == "cyd" {
			out.strength = explain.Hardware
		}
		if x.ends == "completed" {
			out.strength = explain.ForgeTwice
		}
	}
	return out
}

// An edit changes what is in a place of a file: between two lines that stay. Place -1 is the
// whole file, "" for none, -2 its mode, "x:" or "".
type edit struct {
	path     string
	place    int
	old, new string
}

const places = 8

func (e edit) back() edit { e.old, e.new = e.new, e.old; return e }

func backwards(all []edit) (out []edit) {
	for _, e := range slices.Backward(all) {
		out = append(out, e.back())
	}
	return out
}

// inPlace is what a file has in a place.
func inPlace(text string, place int) string {
	_, rest, _ := strings.Cut(text, fmt.Sprintf("-- %d\n", place))
	in, _, _ := strings.Cut(rest, "-- ")
	return in
}

// apply makes some edits, which must go.
func (w *tale) apply(f files, all ...edit) files {
	out := maps.Clone(f)
	for _, e := range all {
		text := out[e.path]
		switch {
		case e.place == -1 && text == e.old:
			if out[e.path] = e.new; e.new == "" {
				delete(out, e.path)
			}
		case e.place == -2 && strings.HasPrefix(text, "x:") == (e.old != ""):
			out[e.path] = e.new + strings.TrimPrefix(text, "x:")
		case e.place >= 0 && inPlace(text, e.place) == e.old:
			sep := fmt.Sprintf("-- %d\n", e.place)
			out[e.path] = strings.Replace(text, sep+e.old, sep+e.new, 1)
		default:
			panic(fmt.Sprintf("%+v does not go onto %q", e, text))
		}
	}
	return out
}

// fresh is a new line.
func (w *tale) fresh() string {
	w.count++
	return fmt.Sprintf("line %d\n", w.count)
}

// change edits some places that no other move has, all of files there are. few bounds how many.
func (w *tale) change(f files, n int) (out []edit) {
	var open []edit
	for _, path := range []string{"src/a", "src/b", "lib/c"} {
		for i := range places {
			if !w.taken[fmt.Sprint(path, i)] {
				open = append(open, edit{path: path, place: i, old: inPlace(f[path], i)})
			}
		}
	}
	w.rng.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	for i, e := range open[:min(n, len(open))] {
		switch {
		case i == 0: // so that no other change is the same
			e.new = w.fresh()
		case e.old != "" && w.rng.IntN(4) == 0:
		case w.rng.IntN(4) == 0:
			e.new = w.fresh() + w.fresh()
		default:
			e.new = w.fresh()
		}
		out = append(out, e)
	}
	return out
}

// any is a change of some kind.
func (w *tale) any(f files) []edit {
	switch w.rng.IntN(8) {
	case 0: // a file that comes, or goes
		for _, path := range slices.Sorted(maps.Keys(f)) {
			if strings.HasPrefix(path, "new/") && w.rng.IntN(3) == 0 {
				return []edit{{path, -1, f[path], ""}}
			}
		}
		return append(w.change(f, w.rng.IntN(2)), edit{fmt.Sprintf("new/%d", w.count), -1, "", w.fresh() + w.fresh()})
	case 1: // a rename
		for _, path := range slices.Sorted(maps.Keys(f)) {
			if strings.HasPrefix(path, "new/") {
				w.count++
				return []edit{{path, -1, f[path], ""}, {fmt.Sprintf("new/%d", w.count), -1, "", f[path]}}
			}
		}
	case 2: // a mode
		path := []string{"src/a", "src/b", "lib/c"}[w.rng.IntN(3)]
		e := edit{path: path, place: -2, new: "x:"}
		if strings.HasPrefix(f[path], "x:") {
			e.old, e.new = e.new, e.old
		}
		return append(w.change(f, w.rng.IntN(2)), e)
	}
	return w.change(f, 1+w.rng.IntN(4))
}

// say notes what was done.
func (w *tale) say(format string, args ...any) {
	w.words = append(w.words, fmt.Sprintf(format, args...))
}

// terms are those at the tip of a branch, for a transaction or none.
func (w *tale) terms(b *branch, x *tx) heldTo {
	own := []ruleset{b.vouched}
	if b.actual != b.vouched {
		own = append(own, b.actual)
	}
	if b == w.main {
		return held(own, false)
	}
	place := b.newest
	if x != nil {
		for _, o := range w.all {
			if o.order <= x.order {
				place = max(place, o.placed)
			}
		}
	}
	line := w.line("", w.main.tip)
	return held(append([]ruleset{rulesIn(w.trees[line[place]])}, own...), true)
}

// add puts a commit on a branch, with its truth.
func (w *tale) add(b *branch, what string, f files, is truth, more ...string) string {
	return w.added(b, w.commit(what, f, append([]string{b.tip}, more...)...), is)
}

func (w *tale) added(b *branch, id string, is truth) string {
	b.truth[id] = is
	b.tip = id
	w.refs["refs/heads/"+b.name] = id
	now := rulesIn(w.trees[id])
	switch {
	case now == b.actual:
	case is.explained && b.actual == b.vouched:
		b.actual, b.vouched = now, now
	default:
		b.actual = now
		w.lax = w.lax || b == w.main
	}
	if b == w.main {
		w.policyAt = id
	}
	return id
}

func (w *tale) must(err error) {
	if err != nil {
		panic(err)
	}
}

// votes are as many as a Policy asks for, in a way that it takes.
func (w *tale) pick(book ruleset, pull bool) (out []vote) {
	people := []string{"ada", "cyd"}
	w.rng.Shuffle(2, func(i, j int) { people[i], people[j] = people[j], people[i] })
	for n := range book.book.required {
		v := vote{people[n], "local"}
		if pull {
			v.kind = "forge"
		} else if lists(book.keys, v.who) && (book.book.signed || w.rng.IntN(2) == 0) {
			v.kind = "signed"
		}
		out = append(out, v)
	}
	return out
}

var people = map[string]ledger.Actor{"ada": ada, "bea": bea, "cyd": cyd, "eve": eve, "mallory": person("mallory", "66")}

// propose reviews a change of a commit.
func (w *tale) propose(base string, edits []edit, pull bool) *tx {
	ids, err := lookup.IDs(w.ledger)
	w.must(err)
	x := &tx{edits: edits, base: base, order: len(ids), ends: "proposed"}
	after := w.apply(w.trees[base], edits...)
	if pull {
		head := w.commit("head", after, base)
		x.pull = w.opens(bea, base, head, "main")
		if w.gated < 0 {
			w.gated = len(ids)
		}
	}
	w.all = append(w.all, x)
	w.places(x)
	who := local(bea)
	if pull {
		who = bea
	}
	x.id, err = w.proposes(who, base, after, x.pull)
	w.must(err)
	w.names[x.id] = fmt.Sprint("tx", x.order)
	return x
}

// places notes the Policy that a stage of a transaction goes by.
func (w *tale) places(x *tx) {
	x.placed = max(x.placed, slices.Index(w.line("", w.main.tip), w.policyAt))
}

// approve gives votes. It is false where one was refused.
func (w *tale) approve(x *tx, votes ...vote) bool {
	w.places(x)
	x.book = rulesIn(w.trees[w.policyAt]).book
	for _, v := range votes {
		var err error
		switch v.kind {
		case "forge":
			err = w.comments(people[v.who], "/approve", x.id, x.pull)
		case "signed":
			err = w.signs(people[v.who], x.id)
		default:
			err = w.says(people[v.who], ledger.Approve, x.id)
		}
		if err != nil {
			w.say("  %s of %s's was refused: %v", v.kind, v.who, err)
			return false
		}
		x.votes = append(x.votes, v)
	}
	return true
}

// transact has a change reviewed, approved and settled, on a branch of its own or as a pull
// request's own diff.
func (w *tale) transact(base string, edits []edit) *tx {
	now := rulesIn(w.trees[w.policyAt])
	pull := !now.book.signed && w.rng.IntN(2) == 0
	x := w.propose(base, edits, pull)
	if !w.approve(x, w.pick(now, pull)...) {
		panic("an approval was refused: " + strings.Join(w.words, "\n"))
	}
	if pull {
		x.ends = "open"
		return x
	}
	_, err := w.applies(x.id, "topic-"+x.id)
	w.must(err)
	x.ends = "applied"
	return x
}

// closes ends a pull request that was merged as a commit, in one of the ways that there are.
func (w *tale) closes(x *tx, commit string) {
	if x.pull == nil {
		return
	}
	switch w.rng.IntN(4) {
	case 0:
		w.must(w.merged(x.id, x.pull, commit, w.now))
		x.made = commit
	case 1:
		w.must(w.ends(x.id, x.pull, commit, ""))
		x.ends, x.made = "completed", commit
	case 2:
		w.must(w.ends(x.id, x.pull, commit, "what was merged is another patch"))
		x.ends, x.made = "interrupted", commit
	}
}

func newTale(t testing.TB, seed uint64) *tale {
	w := &tale{stages: newStages(t, seed), gated: -1, taken: map[string]bool{}}
	w.rng = rand.New(rand.NewPCG(seed, 0))
	f := files{"lock": "v0\n", "deps/a": "v0\n"}
	for _, path := range []string{"src/a", "src/b", "lib/c"} {
		for i := range places {
			f[path] += fmt.Sprintf("-- %d\n", i)
			if w.rng.IntN(3) > 0 {
				f[path] += w.fresh()
			}
		}
		f[path] += "-- end\n"
	}
	r := ruleset{book: w.anyBook(), keys: "ada cyd", bots: "bot"}
	root := w.commit("root", r.in(f))
	w.main = &branch{newest: -1, name: "main", tip: root, actual: r, vouched: r, truth: map[string]truth{}}
	w.refs["refs/heads/main"], w.policyAt = root, root
	w.say("root: %+v", r)
	return w
}

func (w *tale) anyBook() rulebook {
	b := rulebook{
		required: 1 + w.rng.IntN(8)/7, signed: w.rng.IntN(6) == 0, merges: w.rng.IntN(2) == 0, refuseEmpty: w.rng.IntN(4) == 0, bot: w.rng.IntN(4) > 0,
		modes: w.rng.IntN(3) == 0, decisions: []string{"", "signed, forge", "signed, forge, local", "signed"}[w.rng.IntN(10)%4%(2+w.rng.IntN(3))],
	}
	b.modes = b.modes && b.bot
	return b
}

func (w *tale) ctx() context.Context { return context.Background() }

// tell makes the moves of a tale that are listed, each by chance of its own.
func tell(t testing.TB, seed uint64, moves []int) (w *tale, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("telling it: %v", p)
		}
	}()
	w = newTale(t, seed)
	for _, n := range moves {
		w.rng = rand.New(rand.NewPCG(seed, uint64(n+1)))
		w.forks = append(w.forks, fork{w.main.tip, [2]ruleset{w.main.actual, w.main.vouched}, maps.Clone(w.main.truth)})
		w.move()
	}
	w.rng = rand.New(rand.NewPCG(seed, 0))
	w.release()
	return w, nil
}

// check judges a branch of the tale, and compares with the truth.
func (w *tale) check(b *branch) (wrong []string) {
	root := w.line("", b.tip)[0]
	since := w.line("", w.main.tip)[0]
	if root != since {
		return []string{"no root"}
	}
	got, err := w.run(b, b.tip)
	if err != nil {
		return []string{err.Error()}
	}
	for id, is := range b.truth {
		name := w.names[id]
		e, explained := got.Explained[id]
		u := got.Unexplained[id]
		switch {
		case is.either:
		case !got.Has(id):
			wrong = append(wrong, fmt.Sprintf("%s was not judged", name))
		case explained && !is.explained:
			wrong = append(wrong, fmt.Sprintf("%s is EXPLAINED by %s %v, but %s", name, e.By, e.Transactions(), is.why))
		case !explained && is.explained:
			wrong = append(wrong, fmt.Sprintf("%s is unexplained (%s: %s), but %s", name, u.Code, u.Reason, is.why))
		case explained && is.by != "" && e.By != is.by:
			wrong = append(wrong, fmt.Sprintf("%s is explained by %s, not %s", name, e.By, is.by))
		case explained && is.strength != "" && e.Strength != is.strength:
			wrong = append(wrong, fmt.Sprintf("%s is %s, not %s", name, e.Strength, is.strength))
		case explained && is.late != (e.Late != ""):
			wrong = append(wrong, fmt.Sprintf("%s: late is %v, told is %q", name, is.late, e.Late))
		case !explained && len(is.codes) > 0 && slices.Equal(u.Transactions, []string{is.tx}) && !slices.Contains(is.codes, u.Code):
			wrong = append(wrong, fmt.Sprintf("%s is unexplained by %s (%s), not %v (%s)", name, u.Code, u.Reason, is.codes, is.why))
		}
		if one, err := got.Commit(context.Background(), id); err != nil || one.Explained != explained || one.By != e.By || !explained && one.Code != u.Code {
			wrong = append(wrong, fmt.Sprintf("%s: of the commit %+v, %v", name, one, err))
		}
	}
	// A prefix says the same, but for what comes later.
	line := w.line("", b.tip)
	if n := 1 + w.rng.IntN(len(line)); n > 1 {
		part, err := w.run(b, line[n-1])
		if err != nil {
			return append(wrong, err.Error())
		}
		has := func(id string) bool { return part.Has(id) }
		for id := range part.Explained {
			if _, is := got.Explained[id]; !is && (b.truth[id].names == "" || has(b.truth[id].names)) {
				wrong = append(wrong, fmt.Sprintf("%s is explained on the branch up to %s, and not later: %s", w.names[id], w.names[line[n-1]], got.Unexplained[id].Reason))
			}
		}
		for id, u := range part.Unexplained {
			if _, is := got.Explained[id]; is && (b.truth[id].ends == "" || has(b.truth[id].ends)) {
				wrong = append(wrong, fmt.Sprintf("%s is not explained on the branch up to %s, and later is: %s", w.names[id], w.names[line[n-1]], u.Reason))
			}
		}
	}
	for i := range wrong {
		wrong[i] = w.named(wrong[i])
	}
	slices.Sort(wrong)
	return wrong
}

// run judges a branch up to a commit.
func (w *tale) run(b *branch, tip string) (explain.Result, error) {
	all := w.ancestors(tip)
	var list []code.BranchCommit
	for _, c := range slices.Backward(w.log) {
		if all[c.ID] && len(c.Parents) > 0 {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return explain.Result{}, nil
	}
	line := w.line("", w.main.tip)
	if b == w.main {
		line = w.line("", tip)
	}
	index, err := indexOf(w.ledger)
	if err != nil {
		return explain.Result{}, err
	}
	return explain.Run(context.Background(), explain.Options{Ledger: w.ledger, Index: index, Code: w, Default: line, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}, list)
}
