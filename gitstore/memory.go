package gitstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A RollbackError is lineage's.
type RollbackError = lineage.RollbackError

// memory is the last tip that was seen of one ledger, in a file.
type memory struct {
	repo *Repo
	name string // of the ledger, for people
	file string
	at   string // the address of the repository that keeps it, if that is another; "" else
	// known is a tip that the caller knows of from elsewhere, or zero.
	known packfile.ID
}

func (r *Repo) memory(name string, known packfile.ID) memory {
	return memory{repo: r, name: name, file: filepath.Join(r.stateDir(), "tips", shortName(name)+".json"), known: known}
}

// remembered is what the file holds.
type remembered struct {
	Ledger string `json:"ledger"`
	Tip    string `json:"tip"`
	At     string `json:"at,omitempty"`
}

// read returns the last tip, zero if none was seen yet. A file that cannot be
// read is an error: it must not read as no memory.
func (m memory) read() (packfile.ID, error) {
	doc, err := m.document()
	return packfile.ParseID(doc.Tip), err
}

// document is all that the file holds, and nothing if there is none.
func (m memory) document() (doc remembered, err error) {
	raw, err := os.ReadFile(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return remembered{}, nil
	}
	if err == nil {
		err = canon.Unmarshal(raw, &doc)
	}
	if err == nil && (doc.Ledger != m.name || !packfile.IsID(doc.Tip)) {
		err = errors.New("it is damaged")
	}
	if err != nil {
		return remembered{}, fmt.Errorf("reading the last tip seen of %s: %s: %w", m.name, m.file, err)
	}
	return doc, nil
}

// write replaces the memory. The caller holds the repository's lock.
func (m memory) write(tip packfile.ID) error {
	line, err := canon.Line(remembered{m.name, tip.String(), m.at})
	if err == nil {
		err = writeState(m.file, line)
	}
	if err != nil {
		return fmt.Errorf("remembering the tip of %s: %w", m.name, err)
	}
	return nil
}

// A tipCheck says of one tip whether a commit is it or an ancestor of it, and
// what is wrong with the commits after one; after zero, with all.
type tipCheck struct {
	descends func(ancestor packfile.ID) (bool, error)
	verify   func(from packfile.ID) error
}

// hold refuses a tip that does not descend from what is known and from seen,
// or whose commits since then do not verify, and remembers it. seen is what the memory said before the tip was asked for:
// read later, it may be another process's, and newer. Where nothing can be
// written (an auditor's read-only copy), the tip is held to the memory all the
// same.
func (m memory) hold(seen, tip packfile.ID, c tipCheck) error {
	if err := m.follows(seen, tip, c.descends); err != nil || tip == seen {
		return err
	}
	from := seen
	if from.IsZero() {
		from = m.known
	}
	if err := c.verify(from); err != nil {
		return err
	}
	return m.remember(seen, tip)
}

// follows refuses a tip that does not descend from what is known and from seen.
func (m memory) follows(seen, tip packfile.ID, descends func(ancestor packfile.ID) (bool, error)) error {
	for _, must := range []packfile.ID{m.known, seen} {
		if err := lineage.Held(m.name, tip, must, descends); err != nil {
			return err
		}
	}
	return nil
}

// remember is advance where the memory can be written.
func (m memory) remember(seen, tip packfile.ID) error {
	err := m.advance(seen, tip)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}

// advance remembers a tip that descends from seen. If another process has
// remembered something else meanwhile, that stays: it saw at least as much.
func (m memory) advance(seen, tip packfile.ID) error {
	unlock, err := m.repo.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if now, err := m.read(); err != nil || now != seen {
		return err
	}
	return m.write(tip)
}

// descends is lineage.Descends over a source.
func descends(s source, tip, ancestor packfile.ID) (bool, error) {
	return lineage.Descends(s, tip, ancestor)
}

// An UnverifiedError is a ledger whose commits since the last tip that was
// remembered do not verify. Nothing is remembered of it, so that the ledger as
// it was is not refused once it is back.
type UnverifiedError struct {
	Ledger, Tip, Since string
	First              history.Finding
	Count              int
}

func (e *UnverifiedError) Error() string {
	since := "its commits"
	if e.Since != "" {
		since = fmt.Sprintf("its commits since %.12s", e.Since)
	}
	more := ""
	if e.Count > 1 {
		more = fmt.Sprintf(", and %d more", e.Count-1)
	}
	return fmt.Sprintf("%s is at %s, and %s do not verify: %s %.12s %s: %s%s", e.Ledger, e.Tip, since, e.First.RuleID, e.First.Commit, e.First.Path, e.First.Message, more)
}

func (e *UnverifiedError) Hint() string {
	return "find out who added them, and put " + cmp.Or(e.Since, "the ledger as it was") + " back; docs/ledger.md says how an owner accepts them"
}

// verifyNew audits what is after from, all of it for zero, if the ledger is to
// be verified at all. A history that is not here to its root, of which nothing
// was known, is taken as it is: there is nothing to hold it to.
func (l *Ledger) verifyNew(name string, objects source, from, tip packfile.ID) error {
	if l.verify == nil || tip.IsZero() || from == tip {
		return nil
	}
	o := lineage.Options{Tip: tip, From: from}
	var err error
	if o.Distortions, err = l.repo.distortions(); err != nil {
		return err
	}
	found, complete, err := l.verify(lineage.New(objects, o), tip.String())
	if err != nil || len(found) == 0 || from.IsZero() && !complete {
		return err
	}
	return &UnverifiedError{Ledger: name, Tip: tip.String(), Since: hexOf(from), First: found[0], Count: len(found)}
}

// Record makes the entry that records an acceptance, from the accepted tip's
// tree and the tip that was remembered.
type Record func(tree fs.FS, remembered string) (writing.Entry, error)

// acceptable holds a tip to what a person looked at and accepts.
func (m memory) acceptable(now packfile.ID, tip string, c tipCheck) (seen packfile.ID, err error) {
	if seen, err = m.read(); err != nil {
		return seen, err
	}
	if now.IsZero() || now.String() != tip {
		return seen, fault.Refuse(fmt.Sprintf("%s is at %s, not at %s", m.name, now, tip), "")
	}
	var rollback *RollbackError
	for _, must := range []packfile.ID{seen, m.known} {
		err := lineage.Held(m.name, now, must, c.descends)
		if errors.As(err, &rollback) {
			return must, nil
		}
		if err != nil {
			return seen, err
		}
	}
	var unverified *UnverifiedError
	if err := c.verify(seen); err != nil {
		if errors.As(err, &unverified) {
			err = nil
		}
		return seen, err
	}
	return seen, fault.Refuse(fmt.Sprintf("%s needs no acceptance: its tip descends from what was last seen here, and verifies", m.name), "")
}

// AcceptTip takes tip, which must be the ledger's, for good although it does not
// descend from the one remembered or does not verify, records that as an entry on it, and returns
// the new tip.
func (l *Ledger) AcceptTip(_ context.Context, tip string, record Record) (string, error) {
	now, err := l.tip()
	if err != nil {
		return "", err
	}
	objects := l.repo.objects
	seen, err := l.seen.acceptable(now, tip, l.checkOf(now))
	if err != nil {
		return "", err
	}
	batch := l.repo.batch()
	made, err := l.acceptance(objects, batch, now, seen, record)
	if err != nil {
		return "", err
	}
	return made.String(), packfile.Hold(objects.Dir, batch, func() error { return l.move(now, made) })
}

func (l *Ledger) acceptance(s source, to *packfile.Batch, now, seen packfile.ID, record Record) (packfile.ID, error) {
	tree, err := commitTree(s, now)
	if err != nil {
		return packfile.None, err
	}
	entry, err := record(tree, seen.String())
	if err != nil {
		return packfile.None, err
	}
	return chain(s, to, now, []writing.Entry{entry}, l.pages, l.sign)
}

// AcceptTip is the same for the remote's tip. What the clone itself had is kept
// under refs/agent/set-aside/.
func (s *Shared) AcceptTip(ctx context.Context, tip string, record Record) (string, error) {
	now, err := s.server.Tip(ctx, s.ref)
	if err != nil {
		return "", err
	}
	if now.IsZero() {
		return "", fault.Refuse(s.seen.name+" is not there", "")
	}
	objects, dir, fetched, err := s.fetchAccepted(ctx, now)
	if err != nil {
		return "", err
	}
	defer fetched.Release()
	m := s.seen
	m.known = s.known
	seen, err := m.acceptable(now, tip, tipCheck{
		func(a packfile.ID) (bool, error) { return descends(objects, now, a) },
		func(from packfile.ID) error {
			if s.partial != nil {
				return s.verifyPartial(from, now)
			}
			return s.verifyWhole(from, packfile.None, now)
		},
	})
	if err != nil {
		return "", err
	}
	batch := s.local.repo.batch()
	made, err := s.local.acceptance(objects, batch, now, seen, record)
	if err != nil {
		return "", err
	}
	sent, err := batch.Encode()
	if err == nil {
		err = s.push(ctx, now, made, sent)
	}
	if err != nil {
		if errors.Is(err, writing.ErrMoved) {
			err = fault.Refuse(s.seen.name+" has moved meanwhile", "")
		}
		return "", err
	}
	s.passed = made
	return made.String(), packfile.Hold(dir, batch, func() error { return s.accepted(made) })
}

// fetchAccepted gets what is needed of a tip that the memory would refuse, and
// returns where its objects go, and the pack that is held until a ref leads to it.
func (s *Shared) fetchAccepted(ctx context.Context, now packfile.ID) (from source, dir string, held packfile.Held, err error) {
	if s.partial != nil {
		s.partial.ctx = ctx
		return s.partial, s.partial.own.Dir, "", s.partial.fetchTip(now, packfile.None)
	}
	ours, err := s.local.tip()
	if err == nil {
		held, err = s.fetchWhole(ctx, now, ours)
	}
	return s.local.repo.objects, s.local.repo.objects.Dir, held, err
}

// accepted moves the memory, and the clone's own ref if it has one.
func (s *Shared) accepted(made packfile.ID) error {
	seen, err := s.seen.read()
	if err == nil {
		err = s.seen.advance(seen, made)
	}
	if err != nil || s.partial != nil {
		return err
	}
	ours, err := s.local.tip()
	if err != nil {
		return err
	}
	if err := s.local.repo.keep(setAside(ours), packfile.None, ours); err != nil {
		return err
	}
	if err := s.local.move(ours, made); err != nil {
		return err
	}
	return s.forgetUnjoined(made)
}

// setAside is the ref that keeps what a clone had.
func setAside(tip packfile.ID) plumbing.ReferenceName {
	return plumbing.ReferenceName("refs/agent/set-aside/" + tip.String()[:12])
}
