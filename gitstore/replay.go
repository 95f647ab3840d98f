package gitstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// replay makes the commits that only the clone has again on the remote's tip.
type replay struct {
	source
	base, theirs packfile.ID
	former, now  packfile.ID // their trees
	mine         []link
	sign         func([]byte) (string, error)
	pages        writing.Pages
}

// An ourStep is one of our commits: what it brought, and what it is about.
type ourStep struct {
	link
	files map[string][]byte
	place string // a transaction's directory, or the ledger's own events
}

// unsignable is the error of a signed commit that has to be made again, without a key to sign it.
func unsignable(commit packfile.ID) error {
	return fault.Refuse(fmt.Sprintf("commit %s is signed, and has to be made and signed again with the same key", commit), "give the key: --sign-key FILE")
}

// A planned is what is to be made again: entries, each signed or not. conflicts
// are the transactions that the remote has advanced differently, whose commits
// are not among them; denied those of them with a denial that the remote lacks.
// overruled are those that the remote has denied and the clone had approved, or that both have applied.
type planned struct {
	entries           []madeAgain
	overruled         []string
	joined            []string // transactions that both sides went on with, and that commute
	conflicts, denied []string
}

type madeAgain struct {
	writing.Entry
	signed bool
}

func (r *replay) plan() (p planned, err error) {
	if r.former, err = treeOf(r.source, r.base); err != nil {
		return p, err
	}
	if r.now, err = treeOf(r.source, r.theirs); err != nil {
		return p, err
	}
	steps, err := r.steps()
	if err != nil {
		return p, err
	}
	skip, joined := map[string]int{}, map[int]map[string][]byte{} // the second by step
	for _, s := range steps {
		if _, done := skip[s.place]; done {
			continue
		}
		n, err := r.known(steps, s.place)
		if err != nil {
			return p, err
		}
		overruled := false
		if n > len(steps) {
			var done map[int]map[string][]byte
			if done, overruled, err = r.join(steps, s.place); err != nil {
				return p, err
			}
			if done != nil {
				maps.Copy(joined, done)
				n, p.joined = 0, append(p.joined, subject(s.place))
			}
		}
		if overruled {
			p.overruled = append(p.overruled, subject(s.place))
		} else if n <= len(steps) {
			own, err := r.approvesOwn(steps, s.place)
			if err != nil {
				return p, err
			}
			if own {
				n = len(steps) + 1
			}
		}
		if skip[s.place] = n; n > len(steps) {
			p.conflicts = append(p.conflicts, subject(s.place))
		}
	}
	for i, s := range steps {
		if skip[s.place] > len(steps) && s.denies() {
			p.denied = append(p.denied, subject(s.place))
		}
		if i < skip[s.place] {
			continue
		}
		if files, ok := joined[i]; ok {
			if s.files = files; files == nil {
				continue
			}
		}
		e, err := r.entry(s)
		if err != nil {
			return p, err
		}
		p.entries = append(p.entries, e)
	}
	return p, nil
}

// denies reports whether a step brings a denial that the remote has not.
func (s ourStep) denies() bool {
	for name := range s.files {
		if ledger.IsDenial(name) {
			return true
		}
	}
	return false
}

func subject(place string) string {
	if id, _, ok := ledger.Within(place); ok {
		return id
	}
	return "the ledger's own events"
}

// known tells how many steps the remote needs not, because it has at this place
// what we had after them. What it has and we never had is a conflict: more than
// there are.
func (r *replay) known(steps []ourStep, place string) (int, error) {
	there, err := entryAt(r.source, r.now, place)
	if err != nil {
		return 0, err
	}
	before, err := entryAt(r.source, r.former, place)
	if err != nil {
		return 0, err
	}
	n := len(steps) + 1
	if same, err := r.same(before, there); err != nil {
		return 0, err
	} else if same {
		n = 0
	}
	for i, s := range steps {
		if s.place != place {
			continue
		}
		after, err := entryAt(r.source, s.tree, place)
		if err != nil {
			return 0, err
		}
		same, err := r.same(after, there)
		if err != nil {
			return 0, err
		}
		switch {
		case same:
			n = i + 1
		case place == ledger.LedgerEventsFile:
			n = len(steps) + 1 // an acceptance names its parent: it cannot be made again on another
		}
	}
	return n, nil
}

// same reports whether two places have the same record. A page is not of it: of two ledgers that are joined, one may
// have none.
func (r *replay) same(a, b treeEntry) (bool, error) {
	if a.id == b.id || a.mode != filemode.Dir || b.mode != filemode.Dir {
		return a.id == b.id, nil
	}
	var records [2][]treeEntry
	for i, e := range []treeEntry{a, b} {
		entries, err := readTree(r.source, e.id)
		if err != nil {
			return false, err
		}
		records[i] = slices.DeleteFunc(entries, func(e treeEntry) bool { return e.name == ledger.ReadmeFile })
	}
	return slices.Equal(records[0], records[1]), nil
}

// join makes the steps of a transaction, which the remote has advanced as well,
// again on what the remote has of it, where they commute (writing.Join). It
// returns each step's files, nil for a step that has nothing new; and nil if
// the two contradict. overruled says that ours is left out: an approval of what the
// remote has denied, or an apply of what it has applied.
func (r *replay) join(steps []ourStep, place string) (out map[int]map[string][]byte, overruled bool, err error) {
	id, _, ok := ledger.Within(place)
	if !ok {
		return nil, false, nil
	}
	there, err := r.logAt(r.now, place)
	if err != nil || there == nil {
		return nil, false, err
	}
	before, err := r.logAt(r.former, place)
	if err != nil || before == nil || !bytes.HasPrefix(there.Bytes(), before.Bytes()) {
		return nil, false, err
	}
	ours, err := r.logAt(steps[len(steps)-1].tree, place)
	if err != nil || ours == nil || !bytes.HasPrefix(ours.Bytes(), before.Bytes()) {
		return nil, false, err
	}
	out = map[int]map[string][]byte{}
	done := len(before.Events())
	repeats := writing.Repeats(ours, there)
	join := writing.NewJoin(there, done)
	for i, s := range steps {
		if s.place != place {
			continue
		}
		if out[i] = nil; repeats {
			continue
		}
		if ours, err = r.logAt(s.tree, place); err != nil || ours == nil {
			return nil, false, err
		}
		added, err := join.Add(ours, done, len(ours.Events()))
		if err != nil {
			return nil, false, nil // a conflict
		}
		if done = len(ours.Events()); !added {
			continue
		}
		state, err := canon.Line(join.Log().Transaction())
		if err != nil {
			return nil, false, err
		}
		out[i] = maps.Clone(s.files)
		out[i][path.Join(ledger.Dir(id), ledger.EventsFile)] = bytes.Clone(join.Log().Bytes())
		out[i][path.Join(ledger.Dir(id), ledger.TransactionFile)] = state
	}
	return out, repeats || join.Overruled(), nil
}

// approvesOwn reports whether somebody approves in our steps of a transaction what they had proposed in another one of
// the remote's, which the record, made without that, does not say (L24).
func (r *replay) approvesOwn(steps []ourStep, place string) (bool, error) {
	last := steps[len(steps)-1].tree
	ours, err := r.logAt(last, place)
	if err != nil || ours == nil {
		return false, err
	}
	done := 0 // events that the remote has
	for _, tree := range []packfile.ID{r.former, r.now} {
		known, err := r.logAt(tree, place)
		if err != nil {
			return false, err
		}
		if known != nil && bytes.HasPrefix(ours.Bytes(), known.Bytes()) {
			done = len(known.Events())
		}
	}
	var approved []ledger.Actor
	for _, p := range ours.Payloads()[done:] {
		if d, is := p.(*ledger.ApprovalDecision); is && d.Decision == ledger.Approve {
			approved = append(approved, d.Source.Author)
		}
	}
	if len(approved) == 0 {
		return false, nil
	}
	there, err := r.treeFS(r.now)
	if err != nil {
		return false, err
	}
	here, err := r.treeFS(last)
	if err != nil {
		return false, err
	}
	dir, err := fs.Sub(here, place)
	if err != nil {
		return false, err
	}
	others, err := lookup.ProposedElsewhere(there, dir, ours)
	return slices.ContainsFunc(others, func(p ledger.ProposedIn) bool {
		return slices.ContainsFunc(approved, func(a ledger.Actor) bool { return a.ID == p.Proposer.ID })
	}), err
}

func (r *replay) treeFS(tree packfile.ID) (*treeFS, error) {
	root, err := readTree(r.source, tree)
	if err != nil {
		return nil, err
	}
	return newTreeFS(r.source, root)
}

// logAt reads a transaction's events, nil if there are none or they do not
// fold.
func (r *replay) logAt(tree packfile.ID, place string) (*ledger.Log, error) {
	e, err := entryAt(r.source, tree, path.Join(place, ledger.EventsFile))
	if err != nil || e.id.IsZero() {
		return nil, err
	}
	raw, err := readObject(r.source, plumbing.BlobObject, e.id)
	if err != nil {
		return nil, err
	}
	log, err := ledger.ReadLog(bytes.Clone(raw))
	if err != nil {
		return nil, nil
	}
	return log, nil
}

func (r *replay) steps() (steps []ourStep, err error) {
	steps, former := make([]ourStep, len(r.mine)), r.former
	for i, c := range r.mine {
		if steps[i], err = r.step(c, former); err != nil {
			return nil, fmt.Errorf("commit %s: %w", c.id, err)
		}
		former = c.tree
	}
	return steps, nil
}

// step reads what a commit brought. What the remote has at the root, or in an
// index, is written once, and left as it is.
func (r *replay) step(c link, former packfile.ID) (ourStep, error) {
	s := ourStep{link: c, files: map[string][]byte{}, place: ledger.LedgerEventsFile}
	err := diffTrees(r.source, former, c.tree, func(d treeChange) error {
		if ledger.IsPage(d.path) {
			return nil // pages are made again
		}
		if d.new.id.IsZero() {
			return fmt.Errorf("%+q was removed, and a ledger never removes anything", d.path)
		}
		if !d.new.mode.IsFile() {
			return nil
		}
		if id, _, ok := ledger.Within(d.path); ok {
			s.place = ledger.Dir(id)
		} else if d.path != ledger.LedgerEventsFile {
			there, err := entryAt(r.source, r.now, d.path)
			if err != nil || !there.id.IsZero() {
				return err
			}
		}
		data, err := readObject(r.source, plumbing.BlobObject, d.new.id)
		s.files[d.path] = data
		return err
	})
	if _, own := s.files[ledger.LedgerEventsFile]; err == nil && s.place == ledger.LedgerEventsFile && !own {
		err = errors.New("it is about no transaction, so this is no ledger")
	}
	return s, err
}

// entry is a step with its commit's own time and words. It is signed again only
// if its signature is ours: the same key signs the same bytes the same way, so
// a forgery does not leave with a good one.
func (r *replay) entry(s ourStep) (madeAgain, error) {
	raw, err := readObject(r.source, plumbing.CommitObject, s.id)
	if err != nil {
		return madeAgain{}, err
	}
	payload, signature, err := signing.Split(raw)
	switch {
	case errors.Is(err, sshsig.ErrNoSignature):
		payload = raw
	case err != nil:
		return madeAgain{}, fmt.Errorf("reading commit %s: %w", s.id, err)
	case r.sign == nil:
		return madeAgain{}, unsignable(s.id)
	default:
		if again, err := r.sign(payload); err != nil || again != signature {
			return madeAgain{}, errors.Join(unsignable(s.id), err)
		}
	}
	seconds, message, dated := packfile.Committed(payload)
	if !dated {
		return madeAgain{}, fmt.Errorf("reading commit %s: it has no time", s.id)
	}
	return madeAgain{writing.Entry{Message: message, When: time.Unix(seconds, 0).UTC(), Files: s.files}, signature != ""}, nil
}

// run makes the entries on the remote's tip.
func (r *replay) run(entries []madeAgain, to *packfile.Batch) (tip packfile.ID, err error) {
	tip = r.theirs
	for _, e := range entries {
		sign := r.sign
		if !e.signed {
			sign = nil
		}
		if tip, err = chain(r.source, to, tip, []writing.Entry{e.Entry}, r.pages, sign); err != nil {
			return tip, err
		}
	}
	return tip, nil
}
