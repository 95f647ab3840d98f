package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/go-git/go-git/v5/plumbing"
)

// A RollbackError is a ledger whose tip does not descend from the last one that
// was seen here, or that the caller knows of: somebody rewrote or deleted it
// (T51). Tip is "" where the ref is gone. Why is set where descent could merely
// not be shown. Source says who named Seen, "" for the memory of this clone.
type RollbackError struct {
	Ledger, Tip, Seen string
	Why               error
	Source            string
}

func (e *RollbackError) Error() string {
	known := "last seen here"
	if e.Source != "" {
		known = "named by " + e.Source
	}
	switch {
	case e.Tip == "":
		return fmt.Sprintf("%s is gone: it was at %s, %s", e.Ledger, e.Seen, known)
	case e.Why != nil:
		return fmt.Sprintf("%s is at %s, which cannot be shown to descend from %s, %s: %v", e.Ledger, e.Tip, e.Seen, known, e.Why)
	}
	return fmt.Sprintf("%s was rewritten: its tip %s does not descend from %s, %s", e.Ledger, e.Tip, e.Seen, known)
}

func (e *RollbackError) Unwrap() error { return e.Why }

// memory is the last tip that was seen of one ledger, in a file.
type memory struct {
	repo *Repo
	name string // of the ledger, for people
	file string
	// known is a tip that the caller knows of from elsewhere, or zero.
	known plumbing.Hash
}

func (r *Repo) memory(name string, known plumbing.Hash) memory {
	return memory{r, name, filepath.Join(r.stateDir(), "tips", shortName(name)+".json"), known}
}

// remembered is what the file holds.
type remembered struct {
	Ledger string `json:"ledger"`
	Tip    string `json:"tip"`
}

// read returns the last tip, zero if none was seen yet. A file that cannot be
// read is an error: it must not read as no memory.
func (m memory) read() (plumbing.Hash, error) {
	raw, err := os.ReadFile(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return plumbing.ZeroHash, nil
	}
	var doc remembered
	if err == nil {
		err = canon.Unmarshal(raw, &doc)
	}
	if err == nil && (doc.Ledger != m.name || !plumbing.IsHash(doc.Tip)) {
		err = errors.New("it is damaged")
	}
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("reading the last tip seen of %s: %s: %w", m.name, m.file, err)
	}
	return plumbing.NewHash(doc.Tip), nil
}

// write replaces the memory. The caller holds the repository's lock.
func (m memory) write(tip plumbing.Hash) error {
	line, err := canon.Line(remembered{m.name, tip.String()})
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
	descends func(ancestor plumbing.Hash) (bool, error)
	verify   func(from plumbing.Hash) error
}

// hold refuses a tip that does not descend from what is known and from seen,
// or whose commits since then do not verify, and remembers it. seen is what the memory said before the tip was asked for:
// read later, it may be another process's, and newer. Where nothing can be
// written (an auditor's read-only copy), the tip is held to the memory all the
// same.
func (m memory) hold(seen, tip plumbing.Hash, c tipCheck) error {
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
func (m memory) follows(seen, tip plumbing.Hash, descends func(ancestor plumbing.Hash) (bool, error)) error {
	for _, must := range []plumbing.Hash{m.known, seen} {
		if err := m.check(tip, must, descends); err != nil {
			return err
		}
	}
	return nil
}

// remember is advance where the memory can be written.
func (m memory) remember(seen, tip plumbing.Hash) error {
	err := m.advance(seen, tip)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}

func (m memory) check(tip, must plumbing.Hash, descends func(plumbing.Hash) (bool, error)) error {
	if must.IsZero() || must == tip {
		return nil
	}
	if tip.IsZero() {
		return &RollbackError{Ledger: m.name, Seen: must.String()}
	}
	ok, err := descends(must)
	if ok && err == nil || err != nil && !errors.Is(err, errCutOff) {
		return err
	}
	return &RollbackError{Ledger: m.name, Tip: tip.String(), Seen: must.String(), Why: err}
}

// advance remembers a tip that descends from seen. If another process has
// remembered something else meanwhile, that stays: it saw at least as much.
func (m memory) advance(seen, tip plumbing.Hash) error {
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

var errCutOff = errors.New("the history is not here as far back")

// descends reports whether ancestor is tip or one of its ancestors, as far as a
// source has them. A history that is cut off is an error, unless ancestor was
// found before.
func descends(s source, tip, ancestor plumbing.Hash) (bool, error) {
	for queue, seen := []plumbing.Hash{tip}, map[plumbing.Hash]bool{}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == ancestor {
			return true, nil
		}
		c, err := readCommit(s, queue[0])
		if errors.Is(err, packfile.ErrMissing) {
			return false, fmt.Errorf("%w: commit %s is missing", errCutOff, queue[0])
		}
		if err != nil {
			return false, err
		}
		for _, p := range c.parents {
			if !seen[p] {
				seen[p], queue = true, append(queue, p)
			}
		}
	}
	return false, nil
}
