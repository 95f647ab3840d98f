package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/code"
)

// A way is one in which commits may be accounted for. cover are these, whole the one that the
// change is of as a whole, "" in a row; the others are part of partOf.
type way struct {
	by       By
	ids      []string // transactions; none of a rule
	cover    []string
	whole    string
	partOf   string
	signer   string
	strength Strength
	exact    bool
	claims   []*Claim // of the transactions
}

// meets reports whether two ways have a transaction or a commit in common.
func (w *way) meets(o *way) bool {
	in := func(all []string) func(string) bool {
		return func(one string) bool { return slices.Contains(all, one) }
	}
	return slices.ContainsFunc(w.ids, in(o.ids)) || slices.ContainsFunc(w.cover, in(o.cover))
}

// A subject is a change that may be accounted for by itself: of a commit in its first parent,
// with all that a merge brings, or of all that a merge brings. options are the transactions
// whose patches make it, each alone, several what may together, and combined those that do; tried
// is how many patches were applied for it. free is the rule that accounts for it without any, and
// no the gravest reason why not.
type subject struct {
	change
	cover    []string
	whole    string
	partOf   string
	options  []*way
	several  []*entry
	tried    int
	combined []*way
	sought   bool // combined was looked for
	terms    func(e *entry) terms
	free     *way
	no       Unexplained
}

// MaxRow is how many commits are in a row at most.
const MaxRow = 50

// maxPatches is how many patches are tried for one change, or for the rows that end with it, the
// newest, and maxWays how many ways of giving transactions to commits, or rows, for one commit.
const (
	maxPatches = 64
	maxWays    = 4096
)

// maxUnsettled is how many transactions that account for nothing are looked at for why a row is none.
const maxUnsettled = 8

// subject finds what may account for a change. whole is "" for what a merge brings.
func (j *judge) subject(ctx context.Context, from, to string, cover []string, partOf string) (*subject, error) {
	ch, err := j.change(ctx, from, to)
	if err != nil {
		return nil, err
	}
	s := &subject{change: ch, cover: cover, partOf: partOf, no: Unexplained{Paths: ch.paths}}
	if partOf == "" || partOf == to {
		s.whole = to
	}
	here := j.trust
	s.terms = func(e *entry) terms { return j.termsAt(here, e) }
	var why string
	if c := j.commits[to]; len(c.Parents) == 1 && s.whole == to {
		if s.free, why, err = j.free(ctx, c, ch); err != nil {
			return nil, err
		}
	}
	switch {
	case len(ch.entries) == 0:
		s.no.graver(NothingKnown, "changes no file")
		return s, nil
	case ch.unfit != "":
		s.no.graver(NothingKnown, "no transaction can propose it: "+ch.unfit)
		return s, nil
	}
	if err := j.options(ctx, s); err != nil {
		return nil, err
	}
	s.no.graver(NothingKnown, "no transaction proposes this change")
	if why != "" && s.no.Code == NothingKnown {
		s.no.Code = BeyondBot
	}
	if why != "" {
		s.no.Reason += "; " + why
	}
	return s, nil
}

// options finds the transactions whose patch makes a change, and says what is known of those
// that do not account for it. Those that cannot, as the change was there when they were proposed, or they account for another
// commit, come last, and only tell why not.
func (j *judge) options(ctx context.Context, s *subject) error {
	all := j.unusedFirst(j.Index.inside(s.paths))
	for _, useless := range []bool{false, true} {
		for _, e := range all {
			had, err := j.had(ctx, e, s.to)
			if err != nil {
				return err
			}
			if useless != (had || j.elsewhere(e.id, s.cover)) || useless && len(s.options) > 0 {
				continue
			}
			if err := j.option(ctx, s, e, had, useless); err != nil {
				return err
			}
		}
	}
	rank := func(w *way) int {
		switch {
		case slices.Contains(w.cover, j.madeFor[w.ids[0]]):
			return 0
		case w.exact:
			return 1
		}
		return 2
	}
	slices.SortFunc(s.options, func(a, b *way) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(j.Index.at[a.ids[0]], j.Index.at[b.ids[0]]))
	})
	slices.SortFunc(s.several, func(a, b *entry) int { return cmp.Compare(j.Index.at[a.id], j.Index.at[b.id]) })
	return nil
}

// option looks at one transaction, of which had says that the change was there when it was proposed.
func (j *judge) option(ctx context.Context, s *subject, e *entry, had, useless bool) error {
	made, exact, err := j.fits(ctx, s, e, useless)
	if err != nil || !made {
		return err
	}
	claim, err := j.claim(e, s.terms(e))
	switch {
	case err != nil:
		return err
	case !claim.Explains:
		s.no.graver(claim.Code, "of the transaction that proposes it, "+e.id+": "+claim.Why, e.id)
	case had:
		s.no.graver(NotApproved, fmt.Sprintf("%s was proposed for what came after this commit", e.id), e.id)
	default:
		s.options = append(s.options, s.way(exact, claim))
	}
	return nil
}

// fits reports whether a transaction's patch makes a change, and whether it is exactly that. One that
// may with others is kept.
func (j *judge) fits(ctx context.Context, s *subject, e *entry, useless bool) (made, exact bool, err error) {
	if e.files == len(s.paths) {
		if exact, err = j.is(ctx, e, s.change); exact || err != nil {
			return exact, exact, err
		}
	}
	switch {
	case !e.settled:
		return false, false, nil
	case s.tried == maxPatches:
		if !useless {
			s.no.graver(CannotTell, fmt.Sprintf("older transactions of its files were not tried, as %d newer ones were", maxPatches))
		}
		return false, false, nil
	}
	s.tried++
	if e.files >= len(s.paths) {
		var why string
		if made, why, err = j.makes(ctx, e, s.change); err != nil {
			return false, false, err
		}
		if why != "" {
			s.no.graver(CannotTell, fmt.Sprintf("1 approved patch could not be made again here, as of %s: %s", e.id, why), e.id)
		}
	}
	s.several = append(s.several, e)
	return made, false, nil
}

// unusedFirst puts the newest first, and behind them those that account for something so far.
func (j *judge) unusedFirst(all []*entry) []*entry {
	slices.Reverse(all)
	unused := func(e *entry) bool { return j.used[e.id] == nil }
	first := slices.DeleteFunc(slices.Clone(all), func(e *entry) bool { return !unused(e) })
	return append(first, slices.DeleteFunc(all, unused)...)
}

// let lets go of what a subject needs no more that nothing accounts for, and nothing will.
func (j *judge) let(commit string, s *subject) {
	switch {
	case len(s.options) > 0 || len(s.several) > 1:
	case s.no.Code == NothingKnown:
		delete(j.subjects, commit)
	default:
		s.change, s.several = change{}, nil
	}
}

// way is that of some transactions, as strong as the weakest.
func (s *subject) way(exact bool, claims ...*Claim) *way {
	w := &way{cover: s.cover, whole: s.whole, partOf: s.partOf, exact: exact}
	w.claim(claims...)
	return w
}

// claim has some transactions account for what a way covers.
func (w *way) claim(claims ...*Claim) {
	w.by, w.claims, w.strength = claims[0].By(), claims, claims[0].Strength
	for _, c := range claims {
		w.ids = append(w.ids, c.TransactionID)
		if !c.Strength.AtLeast(w.strength) {
			w.strength = c.Strength
		}
	}
}

// elsewhere reports whether a transaction accounts for another commit of the branch, which its
// record names.
func (j *judge) elsewhere(id string, cover []string) bool {
	made := j.madeFor[id]
	return made != "" && !slices.Contains(cover, made)
}

// had reports whether a commit was there when a transaction was proposed. Of a base that is not
// here, as that of a branch that was squashed, it is not known to have any.
func (j *judge) had(ctx context.Context, e *entry, commit string) (bool, error) {
	r, known := j.reached[e.base]
	if !known {
		r = reach{top: -1, side: map[string]bool{}}
		if _, err := j.Code.RawCommit(ctx, e.base); err == nil {
			r.far = !j.reach(ctx, e.base, &r)
		} else if _, err := j.Code.Descends(ctx, commit, e.base); err != nil { // it is here, and cannot be read
			return false, err
		}
		j.reached[e.base] = r
	}
	if r.far {
		return j.Code.Descends(ctx, e.base, commit)
	}
	at, own := j.place[commit]
	if !own {
		at = j.place[j.brought[commit]]
	}
	return at <= r.top || r.side[commit], nil
}

// A reach is what a commit has of the branch: the commits that this was at up to a place, and some
// that a merge brought. far says that it was not found out.
type reach struct {
	top  int
	side map[string]bool
	far  bool
}

// maxReach is how many commits beside the branch a reach looks at.
const maxReach = 1000

// reach finds out what a commit has of the branch, and reports whether it could.
func (j *judge) reach(ctx context.Context, from string, r *reach) bool {
	seen := map[string]bool{}
	beside := 0
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		id := queue[0]
		if seen[id] || id == j.before {
			continue
		}
		seen[id] = true
		if at, own := j.place[id]; own {
			r.top = max(r.top, at)
			continue
		}
		c, here := j.commits[id]
		if here {
			r.side[id] = true
		} else {
			raw, err := j.Code.RawCommit(ctx, id)
			if beside++; err != nil || beside > maxReach {
				return false
			}
			c.Parents = parentsOf(raw)
		}
		queue = append(queue, c.Parents...)
	}
	return true
}

// parentsOf are the parents in a commit as Git stores it.
func parentsOf(raw []byte) (out []string) {
	head, _, _ := strings.Cut(string(raw), "\n\n")
	for line := range strings.Lines(head) {
		if id, is := strings.CutPrefix(line, "parent "); is {
			out = append(out, strings.TrimSpace(id))
		}
	}
	return out
}

// alone are the ways of a subject by one transaction, and none of some.
func (j *judge) alone(s *subject, taken func(id string) bool) (out []*way) {
	for _, w := range s.options {
		if !taken(w.ids[0]) && !j.elsewhere(w.ids[0], w.cover) {
			out = append(out, w)
		}
	}
	return out
}

// rest are its other ways: by several transactions, and by a rule.
func (j *judge) rest(ctx context.Context, s *subject, taken func(id string) bool) (out []*way, err error) {
	err = j.together(ctx, s)
	for _, w := range s.combined {
		if !slices.ContainsFunc(w.ids, taken) {
			out = append(out, w)
		}
	}
	if s.free != nil {
		out = append(out, s.free)
	}
	return out, err
}

// give gives a subject its transactions, if that can be. Else it says why not; nil is for a
// subject that has some.
func (j *judge) give(ctx context.Context, s *subject) (*Unexplained, error) {
	g := &search{judge: j}
	for _, taken := range []func(string) bool{func(id string) bool { return j.used[id] != nil }, func(string) bool { return false }} {
		alone := func() ([]*way, error) { return j.alone(s, taken), nil }
		rest := func() ([]*way, error) { return j.rest(ctx, s, taken) } // which takes longer to seek
		for _, ways := range []func() ([]*way, error){alone, rest} {
			all, err := ways()
			if err != nil {
				return nil, err
			}
			for _, w := range all {
				if ok, err := g.try(ctx, w); ok || err != nil {
					return nil, err
				}
			}
		}
	}
	no := s.no
	for _, w := range slices.Concat(s.options, s.combined) {
		for _, id := range w.ids {
			other := j.used[id]
			switch where := j.madeFor[id]; {
			case other != nil:
				where = other.cover[len(other.cover)-1]
				fallthrough
			case where != "":
				no.graver(UsedUp, fmt.Sprintf("%s was approved for commit %.12s; the same change again takes an approval of its own", id, where), id)
			}
		}
	}
	if g.tried > maxWays {
		no.graver(CannotTell, fmt.Sprintf("not every way of giving approvals to commits was tried, as there are more than %d", maxWays))
	}
	if err := j.parts(ctx, s, &no); err != nil {
		return nil, err
	}
	return &no, nil
}

// choose has a way account for its commits.
func (j *judge) choose(w *way) {
	for _, id := range w.ids {
		j.used[id] = w
	}
	for _, id := range w.cover {
		j.of[id] = w
	}
	j.accept(w)
}

// A search looks for a way to give transactions to some commits so that all that are
// accounted for stay so.
type search struct {
	*judge
	tried int
}

// try chooses a way, and others for what it takes transactions or commits from.
func (g *search) try(ctx context.Context, w *way) (bool, error) {
	chosen, ok, err := g.solve(ctx, []*way{w}, nil)
	if !ok || err != nil {
		return false, err
	}
	for _, o := range chosen {
		for _, old := range g.meeting(chosen, o) {
			for _, id := range old.ids {
				delete(g.used, id)
			}
			for _, id := range old.cover {
				delete(g.of, id)
			}
		}
	}
	for _, o := range chosen {
		g.choose(o)
	}
	return true, nil
}

// meeting are the ways that account for something now, which meet one.
func (g *search) meeting(fixed []*way, w *way) (out []*way) {
	add := func(old *way) {
		if old != nil && !slices.Contains(out, old) && !slices.Contains(fixed, old) {
			out = append(out, old)
		}
	}
	for _, id := range w.ids {
		add(g.used[id])
	}
	for _, id := range w.cover {
		add(g.of[id])
	}
	return out
}

// solve chooses ways beside those that are fixed, so that the last of these takes from no
// commit what accounts for it. pending are such commits so far.
func (g *search) solve(ctx context.Context, fixed []*way, pending []string) ([]*way, bool, error) {
	last := fixed[len(fixed)-1]
	covered := func(id string) bool {
		return slices.ContainsFunc(fixed, func(w *way) bool { return slices.Contains(w.cover, id) })
	}
	for _, old := range g.meeting(fixed, last) {
		if old.whole != "" {
			pending = append(slices.Clip(pending), old.whole)
		} else {
			pending = append(slices.Clip(pending), old.cover...)
		}
	}
	pending = slices.DeleteFunc(slices.Clone(pending), covered)
	if len(pending) == 0 {
		return fixed, true, nil
	}
	taken := func(id string) bool {
		return slices.ContainsFunc(fixed, func(w *way) bool { return slices.Contains(w.ids, id) })
	}
	next, err := g.other(ctx, pending[0], taken)
	if err != nil {
		return nil, false, err
	}
	for _, w := range next {
		if g.tried++; g.tried > maxWays {
			return nil, false, nil
		}
		if slices.ContainsFunc(fixed, w.meets) {
			continue
		}
		if out, ok, err := g.solve(ctx, append(slices.Clip(fixed), w), pending); ok || err != nil {
			return out, ok, err
		}
	}
	return nil, false, nil
}

// other are the ways in which a commit may be accounted for, with none of the transactions
// that are taken.
func (g *search) other(ctx context.Context, commit string, taken func(id string) bool) (out []*way, err error) {
	if s := g.subjects[commit]; s != nil {
		if out, err = g.rest(ctx, s, taken); err != nil {
			return nil, err
		}
		out = append(g.alone(s, taken), out...)
	}
	l := g.lines[commit]
	for i := l.at; i < min(len(l.chain), l.at+MaxRow); i++ {
		if _, judged := g.lines[l.chain[i].ID]; !judged {
			break
		}
		rows, err := g.rowsAt(ctx, l.chain[i])
		if err != nil {
			return nil, err
		}
		for _, w := range rows {
			if slices.Contains(w.cover, commit) && !taken(w.ids[0]) {
				out = append(out, w)
			}
		}
	}
	return out, nil
}

// endRow gives a row that ends with a commit its transaction, if one is accounted for thereby
// that was not.
func (j *judge) endRow(ctx context.Context, c code.BranchCommit) (bool, error) {
	rows, err := j.rowsAt(ctx, c)
	if err != nil {
		return false, err
	}
	for _, w := range rows {
		news := func(id string) bool { _, is := j.Explained[id]; return !is }
		if !slices.ContainsFunc(w.cover, news) {
			continue
		}
		if ok, err := (&search{judge: j}).try(ctx, w); ok || err != nil {
			return ok, err
		}
		if other := j.used[w.ids[0]]; other != nil {
			j.refuseRow(w.cover, UsedUp, fmt.Sprintf("%s was approved for commit %.12s; the same change again takes an approval of its own", w.ids[0], other.cover[len(other.cover)-1]), w.ids[0])
		}
	}
	return false, nil
}

// refuseRow notes why a row does not account for commits that nothing else accounts for.
func (j *judge) refuseRow(cover []string, code Reason, why, id string) {
	for _, commit := range cover {
		no := j.noRow[commit]
		no.graver(code, why, id)
		j.noRow[commit] = no
		if u, not := j.Unexplained[commit]; not {
			u.graver(code, why, id)
			j.Unexplained[commit] = u
		}
	}
}

// rowsAt are the rows that end with a commit, the longest first.
func (j *judge) rowsAt(ctx context.Context, c code.BranchCommit) ([]*way, error) {
	rows, known := j.rows[c.ID]
	if known {
		return rows, nil
	}
	here := j.trust
	last, err := j.inRow(ctx, c)
	if err != nil || last == nil || len(last.paths) == 0 {
		return nil, err
	}
	l, tried, unsettled := j.lines[c.ID], 0, 0
	for _, e := range j.unusedFirst(j.Index.around(last.paths)) {
		if !e.settled { // which is none, and tells why
			if unsettled++; unsettled > maxUnsettled {
				continue
			}
		}
		if j.elsewhere(e.id, ids(l.chain[max(0, l.at-MaxRow+1):l.at+1])) {
			continue
		}
		if had, err := j.had(ctx, e, c.ID); err != nil {
			return nil, err
		} else if had {
			continue
		}
		if e.settled {
			tried++
		}
		if tried > maxPatches {
			if s := j.subjects[c.ID]; s != nil {
				s.no.graver(CannotTell, fmt.Sprintf("not every row that may end here was tried, as %d newer transactions of its files were", maxPatches))
			}
			break
		}
		made, err := j.rowsOf(ctx, e, l, here)
		if err != nil {
			return nil, err
		}
		rows = append(rows, made...)
	}
	slices.SortStableFunc(rows, func(a, b *way) int { return cmp.Compare(len(b.cover), len(a.cover)) })
	j.rows[c.ID] = rows
	return rows, nil
}

// rowsOf are the rows that make the change of one transaction and end at a place of a line.
func (j *judge) rowsOf(ctx context.Context, e *entry, l line, here trust) (rows []*way, err error) {
	var begins func(commit string) (bool, error)
	paths := map[string]bool{}
	for i := l.at; i >= max(0, l.at-MaxRow+1); i-- {
		ch, err := j.inRow(ctx, l.chain[i])
		if err != nil {
			return nil, err
		}
		if ch == nil || !j.Index.covers(e, ch.paths) {
			break
		}
		for _, path := range ch.paths {
			paths[path] = true
		}
		if i == l.at || len(paths) < e.files || len(ch.paths) == 0 { // nor does a row begin with what changes nothing
			continue
		}
		if begins == nil {
			if begins, err = j.begins(ctx, e, l.chain[l.at].ID); err != nil {
				return nil, err
			}
		}
		if is, err := begins(l.chain[i].Parents[0]); err != nil {
			return nil, err
		} else if !is {
			continue
		}
		w, err := j.row(ctx, e, l.chain[i:l.at+1], here)
		if err != nil {
			return nil, err
		}
		if w != nil {
			rows = append(rows, w)
		}
	}
	return rows, nil
}

// inRow is what a commit changes, nil if it cannot be in a row.
func (j *judge) inRow(ctx context.Context, c code.BranchCommit) (*change, error) {
	if len(c.Parents) != 1 {
		return nil, nil
	}
	ch, err := j.change(ctx, c.Parents[0], c.ID)
	if err != nil || ch.unfit != "" {
		return nil, err
	}
	return &ch, nil
}

// row is some commits as a row of a transaction's patch, nil if they are none.
func (j *judge) row(ctx context.Context, e *entry, chain []code.BranchCommit, here trust) (*way, error) {
	from, to := chain[0].Parents[0], chain[len(chain)-1].ID
	whole, err := j.change(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if made, _, err := j.makes(ctx, e, whole); !made || err != nil {
		return nil, err
	}
	w := &way{cover: ids(chain), partOf: from + ".." + to}
	if j.elsewhere(e.id, w.cover) {
		return nil, nil
	}
	if ok, err := j.stepwise(ctx, e, from, to, w.cover[:len(w.cover)-1]); !ok || err != nil {
		return nil, err
	}
	if slices.Contains(w.cover, here.doubt) { // of the row itself
		here.actual, here.doubt = here.vouched, ""
	}
	claim, err := j.claim(e, j.termsAt(here, e))
	if err != nil {
		return nil, err
	}
	if !claim.Explains {
		j.refuseRow(w.cover, claim.Code, "of the transaction that proposes it with the commits beside it, "+e.id+": "+claim.Why, e.id)
		return nil, nil
	}
	w.claim(claim)
	return w, nil
}
