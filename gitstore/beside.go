package gitstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Beside is a kind of ref beside a ledger's. What is in it counts by its signatures: the
// ref is remembered by nobody, and its files are untrusted.
type Beside struct {
	suffix  string // of the ref's name
	what    string // of the files, for people
	grows   bool   // files are added, and none is replaced
	depth   int    // of directories that files are below
	known   func(name string) bool
	entries int   // that are looked at
	files   int   // that are read at once
	size    int64 // of one file
	fetch   int64 // bytes of one, with the history of the ref
}

// Checkpoints are what witnesses signed of the ledger (docs/witnesses.md), in few files that
// are replaced.
var Checkpoints = Beside{
	suffix: "-checkpoints", what: "checkpoints",
	known: func(name string) bool { return checkpointName().MatchString(name) }, entries: 10_000, files: 64, size: 32 << 10, fetch: 128 << 20,
}

// Attestations are signed statements of transactions (docs/attestations.md), one a file, in
// directories named as the transactions' own. No file is replaced: its name has the hash of
// its content.
var Attestations = Beside{
	suffix: "-attestations", what: "attestations", grows: true, depth: 6,
	known: func(name string) bool {
		id, _, ok := ledger.Within(name)
		return ok && path.Dir(name) == ledger.Dir(id) && attestationName().MatchString(path.Base(name))
	},
	entries: 1_000_000, files: 256, size: MaxAttestation, fetch: 512 << 20,
}

// MaxAttestation is the size of the largest statement that is kept.
const MaxAttestation = 1 << 20

var (
	checkpointName  = canon.Regexp(`^[0-9]{1,18}-[0-9a-f]{12}$`)
	attestationName = canon.Regexp(`^[a-z-]{1,40}\.([0-9a-f]{40}|[0-9a-f]{64})\.[0-9a-f]{64}\.json$`)
)

// Ref is the name of the ref beside a ledger's.
func (b Beside) Ref(ledger string) string {
	name, ok := strings.CutPrefix(ledger, "refs/agent/")
	if !ok {
		name = strings.TrimPrefix(ledger, "refs/")
	}
	return "refs/agent/" + name + b.suffix
}

// Holds reports whether a file of the ref has this name.
func (b Beside) Holds(name string) bool { return b.known(name) }

// Kept are files of a ref beside the ledger's, by name, and the commit that has them: "" if
// there is none.
type Kept struct {
	Tip   string
	Files map[string][]byte
}

// list finds the files of a commit, by name; what is no such file is passed over.
func (b Beside) list(s source, tip packfile.ID) (map[string]packfile.ID, error) {
	found := map[string]packfile.ID{}
	if tip.IsZero() {
		return found, nil
	}
	c, err := readCommit(s, tip)
	if err != nil {
		return nil, err
	}
	left := b.entries
	var walk func(dir string, depth int, id packfile.ID) error
	walk = func(dir string, depth int, id packfile.ID) error {
		entries, err := readTree(s, id)
		if err != nil {
			return err
		}
		if left -= len(entries); left < 0 {
			return fmt.Errorf("%s of the ledger: there are more than %d", b.what, b.entries)
		}
		for _, e := range entries {
			name := dir + e.name
			switch {
			case e.mode == filemode.Dir && depth < b.depth:
				if err := walk(name+"/", depth+1, e.id); err != nil {
					return err
				}
			case e.mode == filemode.Regular && depth == b.depth && b.known(name):
				found[name] = e.id
			}
		}
		return nil
	}
	return found, walk("", 0, c.Tree)
}

// read reads files of a commit that are wanted, all if want is nil; what is no such file, is
// too large, or comes after as many as are read at once is passed over.
func (b Beside) read(s source, tip packfile.ID, want func(name string) bool) (Kept, error) {
	k := Kept{Tip: hexOf(tip), Files: map[string][]byte{}}
	found, err := b.list(s, tip)
	if err != nil {
		return k, err
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if len(k.Files) >= b.files || want != nil && !want(name) {
			continue
		}
		if kind, size, err := s.Size(found[name]); err != nil {
			return k, err
		} else if size > b.size || kind != plumbing.BlobObject {
			continue
		}
		if k.Files[name], err = readObject(s, plumbing.BlobObject, found[name]); err != nil {
			return k, err
		}
	}
	return k, nil
}

// Kept reads what the clone keeps: the files that are wanted, all if want is nil.
func (l *Ledger) Kept(_ context.Context, b Beside, want func(name string) bool) (Kept, error) {
	tip, err := l.repo.tip(l.besideRef(b))
	if err != nil {
		return Kept{}, err
	}
	return b.read(l.repo.objects, tip, want)
}

// Keep replaces the files that were read by others, or adds them where the ref grows, in a
// commit on the one that had them. If another commit has taken its place, it returns
// writing.ErrMoved.
func (l *Ledger) Keep(_ context.Context, b Beside, before Kept, files map[string][]byte, when time.Time) error {
	batch := l.repo.batch()
	made, err := b.commit(l.repo.objects, batch, files, when, l.repo.id(before.Tip))
	if errors.Is(err, errUnchanged) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.keep(b, l.repo.id(before.Tip), made, batch)
}

// besideRef is where the clone keeps them.
func (l *Ledger) besideRef(b Beside) plumbing.ReferenceName {
	return plumbing.ReferenceName(b.Ref(l.ref.String()))
}

// errUnchanged says that all files are there already.
var errUnchanged = errors.New("nothing is new")

// commit makes the commit with these files, beside those of its first parent where the ref
// grows.
func (b Beside) commit(s source, to *packfile.Batch, files map[string][]byte, when time.Time, parents ...packfile.ID) (packfile.ID, error) {
	var c commit
	c.Parents = slices.DeleteFunc(parents, packfile.ID.IsZero)
	if b.grows && len(c.Parents) > 0 {
		first, err := readCommit(s, c.Parents[0])
		if err != nil {
			return packfile.None, err
		}
		c.Tree = first.Tree
	}
	base, made := c.Tree, builder{overlay{to, s}, to}
	return made.commit(c, changes(files), func(c commit) ([]byte, error) {
		if b.grows && c.Tree == base {
			return nil, errUnchanged
		}
		return packfile.EncodeCommit(c, packfile.Us, packfile.Us, when, b.what+" of the ledger\n"), nil
	})
}

// keep writes objects and moves the clone's ref to a commit.
func (l *Ledger) keep(b Beside, old, next packfile.ID, batch *packfile.Batch) error {
	return packfile.Hold(l.repo.objects.Dir, batch, func() error {
		unlock, err := l.repo.lock()
		if err != nil {
			return err
		}
		defer unlock()
		return l.repo.moveRef(l.besideRef(b), old, next)
	})
}

// with are files and, where the ref grows, those that ours has and theirs has not.
func (b Beside) with(s source, files map[string][]byte, ours, theirs packfile.ID) (map[string][]byte, error) {
	if !b.grows || ours.IsZero() || ours == theirs {
		return files, nil
	}
	mine, err := b.list(s, ours)
	if err != nil {
		return nil, err
	}
	has, err := b.list(s, theirs)
	if err != nil {
		return nil, err
	}
	all, left := maps.Clone(files), b.fetch
	for name, id := range mine {
		if _, there := has[name]; there || all[name] != nil {
			continue
		}
		kind, size, err := s.Size(id)
		if err != nil {
			return nil, err
		}
		if kind != plumbing.BlobObject || size > b.size {
			continue
		}
		if left -= size; left < 0 {
			return nil, fmt.Errorf("%s of the ledger: those that are here alone are larger than %d bytes", b.what, b.fetch)
		}
		if all[name], err = readObject(s, plumbing.BlobObject, id); err != nil {
			return nil, err
		}
	}
	return all, nil
}
