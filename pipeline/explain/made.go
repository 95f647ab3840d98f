package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A change is in which paths the files of one commit differ from another's. unfit says why no
// patch can be it, as far as that is told by paths and modes.
type change struct {
	from, to string
	entries  []PathChange
	paths    []string
	unfit    string
}

func (j *judge) change(ctx context.Context, from, to string) (change, error) {
	key := from + ".." + to
	if ch, known := j.changes[key]; known {
		return ch, nil
	}
	entries, err := j.Code.Paths(ctx, from, to)
	if err != nil {
		return change{}, err
	}
	ch := change{from: from, to: to, entries: entries}
	for _, e := range entries {
		ch.paths = append(ch.paths, e.Path)
		for _, mode := range []uint32{e.Old, e.New} {
			if ch.unfit == "" {
				ch.unfit = unfit(e.Path, mode)
			}
		}
	}
	if len(j.changes) > 4*MaxRow { // a row looks back no further
		clear(j.changes)
	}
	j.changes[key] = ch
	return ch, nil
}

// unfit says why a path is in no patch, "" if it may be.
func unfit(path string, mode uint32) string {
	err := patch.CheckPath(path)
	if err == nil && mode != 0 && !isRegular(mode) {
		what := fmt.Sprintf("the file mode %o is refused", mode)
		switch mode {
		case 0o120000:
			what = "symbolic links are refused"
		case 0o160000:
			what = "submodules are refused"
		}
		err = &patch.Error{Path: path, Message: what}
	}
	if err == nil {
		return ""
	}
	return ledger.OneLine(err.Error(), 300)
}

// patches are those that were made again from their records, as far as they are few.
type patches struct {
	made  map[string]madeAgain
	bytes int
}

// mostPatchBytes is how many bytes of files are kept of patches that were made again.
const mostPatchBytes = 8 << 20

type madeAgain struct {
	set patch.Patchset
	why string
}

// patch makes the patch of a transaction from its record and the commit that it was
// reviewed on. Where that cannot be done here, it says why.
func (j *judge) patch(ctx context.Context, e *entry) (patch.Patchset, string, error) {
	if known, is := j.patches.made[e.id]; is {
		return known.set, known.why, nil
	}
	set, why, err := j.makeAgain(ctx, e)
	if err != nil {
		return set, "", err
	}
	for _, c := range set.Files() {
		for _, f := range []*patch.File{c.Before, c.After} {
			if f != nil {
				j.patches.bytes += len(f.Data)
			}
		}
	}
	if j.patches.made == nil || j.patches.bytes > mostPatchBytes {
		j.patches = patches{made: map[string]madeAgain{}}
	}
	j.patches.made[e.id] = madeAgain{set, why}
	return set, why, nil
}

func (j *judge) makeAgain(ctx context.Context, e *entry) (set patch.Patchset, why string, err error) {
	tx, err := lookup.State(j.Ledger, e.id)
	if err != nil {
		return set, "", err
	}
	raw, err := lookup.StoredPatch(j.Ledger, tx)
	if err != nil {
		return set, "", err
	}
	if tx.Pointers.Proposal.PatchRedactedSHA256 != "" {
		return set, "the ledger has its patch without secrets", nil
	}
	base, err := j.Code.Tree(ctx, e.base)
	if err != nil {
		return set, "the commit that it was reviewed on is not here", nil
	}
	diff, err := patch.Parse(raw)
	if err == nil {
		set, err = code.Put(diff, base)
	}
	if err == nil && set.ID() != e.patch {
		err = fmt.Errorf("it is %s", set.ID())
	}
	if err != nil {
		return set, "", &ledger.CorruptError{ID: e.id, Err: fmt.Errorf("its patch, made again: %w", err)}
	}
	return set, "", nil
}

// file is what a commit has at a path, nil for nothing; fits is false for what is no file of
// a patch.
func (j *judge) file(ctx context.Context, commit, path string) (f *patch.File, fits bool, err error) {
	tree, err := j.Code.Tree(ctx, commit)
	if err != nil {
		return nil, false, err
	}
	f, err = patch.Lookup(tree, path)
	if errors.As(err, new(*patch.Error)) {
		return nil, false, nil
	}
	return f, err == nil, err
}

// is reports whether a change is exactly the patch of a transaction that changes its paths.
// Both name the blobs of all files; only a patch that is stored without its secrets has to be made from files.
func (j *judge) is(ctx context.Context, e *entry, ch change) (bool, error) {
	blobs, err := j.blobs(e)
	if err != nil || blobs != nil {
		return err == nil && slices.EqualFunc(blobs, ch.entries, func(a, b PathChange) bool {
			return a.Path == b.Path && a.OldID == b.OldID && a.NewID == b.NewID && a.Old == regularMode(b.Old) && a.New == regularMode(b.New)
		}), err
	}
	set, err := j.Code.Diff(ctx, ch.from, ch.to)
	if errors.As(err, new(*patch.Error)) {
		return false, nil
	}
	return err == nil && set.ID() == e.patch, err
}

// regularMode is a mode of a regular file as a patch has it.
func regularMode(mode uint32) uint32 {
	if mode == 0 || mode == uint32(patch.Executable) {
		return mode
	}
	return uint32(patch.Regular)
}

// blobs are the files of a transaction's patch, by its canonical bytes; nil if the ledger has
// other bytes.
func (j *judge) blobs(e *entry) ([]PathChange, error) {
	if e.read {
		return e.blobs, nil
	}
	tx, err := lookup.State(j.Ledger, e.id)
	if err != nil {
		return nil, err
	}
	if e.read = true; tx.Pointers.Proposal == nil || tx.Pointers.Proposal.PatchRedactedSHA256 != "" {
		return nil, nil
	}
	raw, err := lookup.StoredPatch(j.Ledger, tx)
	if err != nil {
		return nil, err
	}
	diff, err := patch.Parse(raw)
	if err != nil {
		return nil, &ledger.CorruptError{ID: e.id, Err: err}
	}
	id := func(id string) string { return strings.TrimLeft(id, "0") }
	for _, part := range diff.Parts {
		one := PathChange{Path: part.Path, Old: uint32(part.Before), New: uint32(part.After), OldID: part.OldID, NewID: part.NewID}
		if part.Kind == patch.Rename {
			e.blobs = append(e.blobs, PathChange{Path: part.From, Old: one.Old, OldID: one.OldID})
			one.Old, one.OldID = 0, ""
		}
		if id(one.OldID) == "" {
			one.OldID = ""
		}
		if id(one.NewID) == "" {
			one.NewID = ""
		}
		e.blobs = append(e.blobs, one)
	}
	slices.SortFunc(e.blobs, func(a, b PathChange) int { return strings.Compare(a.Path, b.Path) })
	return e.blobs, nil
}

// sides are what a path had and has in a change.
func (j *judge) sides(ctx context.Context, e PathChange) (before, after *patch.File, err error) {
	for _, side := range []struct {
		mode uint32
		id   string
		to   **patch.File
	}{{e.Old, e.OldID, &before}, {e.New, e.NewID, &after}} {
		if side.mode == 0 {
			continue
		}
		data, err := j.Code.Blob(ctx, side.id)
		if err != nil {
			return nil, nil, err
		}
		*side.to = &patch.File{Mode: patch.Mode(regularMode(side.mode)), Data: data}
	}
	return before, after, nil
}

// makes reports whether a change is made by a patch in its files; or why that cannot be told here.
func (j *judge) makes(ctx context.Context, e *entry, ch change) (made bool, why string, err error) {
	set, why, err := j.patch(ctx, e)
	if why != "" || err != nil {
		return false, why, err
	}
	files := set.Files()
	if len(files) != len(ch.entries) {
		return false, "", nil
	}
	for i, c := range files {
		if c.Path != ch.entries[i].Path {
			return false, "", nil
		}
		before, after, err := j.sides(ctx, ch.entries[i])
		if err != nil || !makes(c, before, after) {
			return false, "", err
		}
	}
	return true, "", nil
}

// begins tells commits from which a patch may have made the files of another, as they have what is
// left when it is taken out of these.
func (j *judge) begins(ctx context.Context, e *entry, to string) (func(from string) (bool, error), error) {
	none := func(string) (bool, error) { return false, nil }
	set, why, err := j.patch(ctx, e)
	if why != "" || err != nil {
		return none, err
	}
	before := map[string]*patch.File{}
	for _, c := range set.Files() {
		after, fits, err := j.file(ctx, to, c.Path)
		if err != nil {
			return nil, err
		}
		back, ok := mergeFile(c.After, after, c.Before)
		if !fits || !ok {
			return none, nil
		}
		before[c.Path] = back
	}
	return func(from string) (bool, error) {
		ch, err := j.change(ctx, from, to)
		if err != nil || len(ch.entries) != len(before) {
			return false, err
		}
		return !slices.ContainsFunc(ch.entries, func(e PathChange) bool {
			f, is := before[e.Path]
			if f == nil {
				return !is || e.Old != 0
			}
			return patch.BlobID(f.Data, len(e.OldID)) != e.OldID || uint32(f.Mode) != regularMode(e.Old)
		}), nil
	}, nil
}

// makes reports whether a patch makes one file of another: put onto the one it gives the other,
// and taken out of that it gives the one.
func makes(c patch.Change, before, after *patch.File) bool {
	forth, ok := mergeFile(c.Before, before, c.After)
	if !ok || !forth.Equal(after) || before.Equal(after) {
		return false
	}
	back, ok := mergeFile(c.After, after, c.Before)
	return ok && back.Equal(before)
}

// stepwise reports whether some commits one after the other lead from one commit to another as a
// patch makes it: each takes lines of before out and puts lines of after in, and takes nothing
// of that back.
func (j *judge) stepwise(ctx context.Context, e *entry, from, to string, commits []string) (bool, error) {
	set, why, err := j.patch(ctx, e)
	if why != "" || err != nil {
		return false, err
	}
	for _, c := range set.Files() {
		before, _, err := j.file(ctx, from, c.Path)
		if err != nil {
			return false, err
		}
		after, _, err := j.file(ctx, to, c.Path)
		if err != nil {
			return false, err
		}
		for _, commit := range commits {
			here, fits, err := j.file(ctx, commit, c.Path)
			if !fits || err != nil || !isBetween(before, after, here) {
				return false, err
			}
			before = here
		}
	}
	return true, nil
}

// isBetween reports whether a file is, line by line and in order, of lines of two others:
// of those that both have it has all, and of what differs any of the one's and the other's.
func isBetween(before, after, here *patch.File) bool {
	switch {
	case here.Equal(before), here.Equal(after):
		return true
	case here == nil || before == nil && after == nil || before != nil && after != nil && here.Mode != before.Mode && here.Mode != after.Mode:
		return false
	case before == nil && here.Mode != after.Mode, after == nil && here.Mode != before.Mode:
		return false
	}
	for _, f := range []*patch.File{before, after, here} {
		if f != nil && isBinary(f) {
			return false
		}
	}
	a, b := linesOf(before), linesOf(after)
	return isWoven(a, b, patch.DiffLines(a, b), linesOf(here))
}

// maxPlaces bounds the places that are looked at for one line, and maxCompared the lines that are
// compared for one file.
const (
	maxPlaces   = 1000
	maxCompared = 1 << 24
)

// isWoven reports whether a text is of the lines of two others that differ by some edits: all that both have, and of an edit any
// of the one's and of the other's.
func isWoven(a, b [][]byte, edits []patch.Edit, text [][]byte) bool {
	// By line: where the edit that it is in ends; a line of both is its own.
	endA, endB := upTo(len(a)), upTo(len(b))
	for _, e := range edits {
		for i := e.OldStart; i < e.OldEnd; i++ {
			endA[i] = e.OldEnd
		}
		for i := e.NewStart; i < e.NewEnd; i++ {
			endB[i] = e.NewEnd
		}
	}
	compared := 0
	first := func(lines [][]byte, from, to int, line []byte) int {
		for i := from; i < to; i++ {
			if compared++; string(lines[i]) == string(line) {
				return i
			}
		}
		return -1
	}
	type place struct{ a, b int } // how far the text has come in both
	now := []place{{}}
	for _, line := range text {
		var next []place
		add := func(p place) { // unless another in the same edit, or before the same lines, reaches all that it does
			behind := func(o place) bool {
				return endA[o.a] == endA[p.a] && endB[o.b] == endB[p.b] && o.a <= p.a && o.b <= p.b
			}
			if !slices.ContainsFunc(next, behind) {
				next = append(next, p)
			}
		}
		for _, p := range now {
			both, other := endA[p.a], endB[p.b] // where the lines begin that both have
			if i := first(a, p.a, both, line); i >= 0 {
				add(place{i + 1, p.b})
			}
			if i := first(b, p.b, other, line); i >= 0 {
				add(place{p.a, i + 1})
			}
			if both < len(a) && first(a, both, both+1, line) == both {
				add(place{both + 1, other + 1})
			}
		}
		if now = next; len(now) == 0 || len(now) > maxPlaces || compared > maxCompared {
			return false
		}
	}
	return slices.ContainsFunc(now, func(p place) bool { return endA[p.a] == len(a) && endB[p.b] == len(b) })
}

// upTo are the numbers from 0 to n.
func upTo(n int) []int {
	out := make([]int, n+1)
	for i := range out {
		out[i] = i
	}
	return out
}

// together finds the ways in which approved patches, more than one, make a change together,
// once for a subject.
func (j *judge) together(ctx context.Context, s *subject) error {
	if s.sought || len(s.several) < 2 {
		return nil
	}
	s.sought = true
	for _, path := range s.paths {
		if !slices.ContainsFunc(s.several, func(e *entry) bool { return j.Index.covers(e, []string{path}) }) {
			return nil
		}
	}
	now, rest, all, claims, err := j.inside(ctx, s, func(string) bool { return false }, (*state).within)
	if err != nil || len(all) < 2 || len(rest) > 0 {
		return err
	}
	found, whole := now.together(all)
	for _, ids := range found {
		var of []*Claim
		for _, id := range ids {
			of = append(of, claims[id])
		}
		s.combined = append(s.combined, s.way(false, of...))
	}
	if !whole {
		s.no.graver(CannotTell, fmt.Sprintf("not all of its %s were tried together, as there are more than %d ways", ledger.Plural(len(all), "approved patch", "approved patches"), maxWays))
	}
	return nil
}

// inside is the change of a subject as far as patches may be in it, which account for it if they
// may be of use; the other paths are rest.
func (j *judge) inside(ctx context.Context, s *subject, taken func(id string) bool, useful func(*state, []Patch) bool) (now *state, rest []Lines, all []Patch, claims map[string]*Claim, err error) {
	untold := map[string]string{}
	paths := map[string]bool{}
	for _, e := range s.several {
		if taken(e.id) || j.elsewhere(e.id, s.cover) {
			continue
		}
		had, err := j.had(ctx, e, s.to)
		if err != nil {
			return nil, nil, nil, nil, err
		}
		made, why, err := j.patch(ctx, e)
		if err != nil {
			return nil, nil, nil, nil, err
		}
		switch {
		case had:
		case why != "":
			untold[e.id] = why
		default:
			all = append(all, Patch{e.id, made})
			for _, path := range made.Paths() {
				paths[path] = true
			}
		}
	}
	now = &state{want: map[string]*patch.File{}, now: map[string]*patch.File{}}
	for _, e := range s.entries {
		if !paths[e.Path] {
			rest = append(rest, Lines{Path: e.Path})
			continue
		}
		if now.now[e.Path], now.want[e.Path], err = j.sides(ctx, e); err != nil {
			return nil, nil, nil, nil, err
		}
	}
	if len(untold) == 0 && !useful(now, all) { // what they are worth takes longer to tell
		return nil, nil, nil, nil, nil
	}
	claims = map[string]*Claim{}
	for _, e := range s.several {
		if untold[e.id] != "" || slices.ContainsFunc(all, func(p Patch) bool { return p.ID == e.id }) {
			if claims[e.id], err = j.claim(e, s.terms(e)); err != nil {
				return nil, nil, nil, nil, err
			}
		}
		if why := untold[e.id]; why != "" && claims[e.id].Explains {
			s.no.graver(CannotTell, fmt.Sprintf("1 approved patch could not be made again here, as of %s: %s", e.id, why), e.id)
		}
	}
	return now, rest, slices.DeleteFunc(all, func(p Patch) bool { return !claims[p.ID].Explains }), claims, nil
}

// parts says which approved patches are in a change that holds more than these.
func (j *judge) parts(ctx context.Context, s *subject, no *Unexplained) error {
	if len(s.several) == 0 || slices.Index(Reasons, no.Code) < slices.Index(Reasons, PartlyApproved) {
		return nil
	}
	now, rest, all, _, err := j.inside(ctx, s, func(id string) bool { return j.used[id] != nil }, (*state).takes)
	if err != nil || len(all) == 0 {
		return err
	}
	used, left := now.cover(all)
	if left = append(left, rest...); len(left) == 0 || len(used) == 0 {
		return nil
	}
	no.graver(PartlyApproved, ledger.Plural(len(used), "approved patch is", "approved patches are")+" in it, and more than that", used...)
	slices.SortStableFunc(left, func(a, b Lines) int { return strings.Compare(a.Path, b.Path) })
	no.Lines = append(no.Lines, left...)
	return nil
}
