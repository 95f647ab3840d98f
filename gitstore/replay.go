package gitstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/sshsig"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// replay makes the commits that only the clone has again on the remote's tip.
type replay struct {
	source
	base, theirs plumbing.Hash
	mine         []link
	sign         func([]byte) (string, error)
}

// An ourStep is one of our commits: what it brought, and what it is about.
type ourStep struct {
	link
	files map[string][]byte
	place string // a transaction's directory, or the ledger's own events
}

// An UnsignableError is a signed commit that has to be made again, without a
// key to sign it.
type UnsignableError struct{ Commit string }

func (e *UnsignableError) Error() string {
	return fmt.Sprintf("commit %s is signed, and has to be made and signed again", e.Commit)
}

// plan returns the entries to make, and the transactions that the remote has
// advanced differently, whose commits are not among them.
func (r *replay) plan() (entries []ledger.Entry, conflicts []string, err error) {
	remote, err := r.treeOf(r.theirs)
	if err != nil {
		return nil, nil, err
	}
	steps, err := r.steps(remote)
	if err != nil {
		return nil, nil, err
	}
	skip := map[string]int{}
	for _, s := range steps {
		if _, done := skip[s.place]; done {
			continue
		}
		n, err := r.known(steps, s.place, remote)
		if err != nil {
			return nil, nil, err
		}
		if skip[s.place] = n; n > len(steps) {
			conflicts = append(conflicts, subject(s.place))
		}
	}
	for i, s := range steps {
		if i < skip[s.place] {
			continue
		}
		e, err := r.entry(s)
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, e)
	}
	return entries, conflicts, nil
}

func subject(place string) string {
	if id, ok := ledger.TransactionOf(place); ok {
		return id
	}
	return "the ledger's own events"
}

// known tells how many steps the remote needs not, because it has at this place
// what we had after them. What it has and we never had is a conflict: more than
// there are.
func (r *replay) known(steps []ourStep, place string, remote plumbing.Hash) (int, error) {
	there, err := entryAt(r.source, remote, place)
	if err != nil {
		return 0, err
	}
	base, err := r.treeOf(r.base)
	if err != nil {
		return 0, err
	}
	before, err := entryAt(r.source, base, place)
	if err != nil {
		return 0, err
	}
	n := len(steps) + 1
	if before.id == there.id {
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
		switch {
		case after.id == there.id:
			n = i + 1
		case place == ledger.LedgerEventsFile:
			n = len(steps) + 1 // an acceptance names its parent: it cannot be made again on another
		}
	}
	return n, nil
}

func (r *replay) treeOf(commit plumbing.Hash) (plumbing.Hash, error) {
	if commit.IsZero() {
		return plumbing.ZeroHash, nil
	}
	c, err := readCommit(r.source, commit)
	return c.tree, err
}

func (r *replay) steps(remote plumbing.Hash) ([]ourStep, error) {
	former, err := r.treeOf(r.base)
	if err != nil {
		return nil, err
	}
	steps := make([]ourStep, len(r.mine))
	for i, c := range r.mine {
		if steps[i], err = r.step(c, former, remote); err != nil {
			return nil, fmt.Errorf("commit %s: %w", c.id, err)
		}
		former = c.tree
	}
	return steps, nil
}

// step reads what a commit brought. What the remote has at the root, or in an
// index, is written once, and left as it is.
func (r *replay) step(c link, former, remote plumbing.Hash) (ourStep, error) {
	s := ourStep{link: c, files: map[string][]byte{}, place: ledger.LedgerEventsFile}
	err := diffTrees(r.source, former, c.tree, func(d treeChange) error {
		if d.new.id.IsZero() {
			return fmt.Errorf("%+q was removed, which no ledger does", d.path)
		}
		if !d.new.mode.IsFile() {
			return nil
		}
		if id, ok := ledger.TransactionOf(d.path); ok {
			s.place = ledger.Dir(id)
		} else if d.path != ledger.LedgerEventsFile {
			there, err := entryAt(r.source, remote, d.path)
			if err != nil || !there.id.IsZero() {
				return err
			}
		}
		data, err := readObject(r.source, plumbing.BlobObject, d.new.id)
		s.files[d.path] = data
		return err
	})
	return s, err
}

// entry is a step with its commit's own time and words.
func (r *replay) entry(s ourStep) (ledger.Entry, error) {
	raw, err := readObject(r.source, plumbing.CommitObject, s.id)
	if err != nil {
		return ledger.Entry{}, err
	}
	payload, _, err := sshsig.Split(raw)
	switch {
	case errors.Is(err, sshsig.ErrNoSignature):
		payload = raw
	case err != nil:
		return ledger.Entry{}, fmt.Errorf("reading commit %s: %w", s.id, err)
	case r.sign == nil:
		return ledger.Entry{}, &UnsignableError{s.id.String()}
	}
	when, message, err := commitWords(string(payload))
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("reading commit %s: %w", s.id, err)
	}
	return ledger.Entry{Message: message, When: when, Files: s.files}, nil
}

// commitWords reads when a commit was made, and what it says.
func commitWords(commit string) (when time.Time, message string, err error) {
	head, message, _ := strings.Cut(commit, "\n\n")
	lines := strings.Split(head, "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "committer ") })
	if i < 0 {
		return when, "", errors.New("it has no committer")
	}
	var seconds int64
	_, rest, _ := strings.Cut(lines[i], "> ")
	if _, err := fmt.Sscan(rest, &seconds); err != nil {
		return when, "", errors.New("it has no time")
	}
	return time.Unix(seconds, 0).UTC(), message, nil
}

// run makes the entries on the remote's tip.
func (r *replay) run(entries []ledger.Entry, to *packfile.Batch) (plumbing.Hash, error) {
	return chain(r.source, to, r.theirs, entries, r.sign)
}
