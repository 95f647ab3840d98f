package gitstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/object"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

var _ code.Refs = (*Repo)(nil)

// A RefError is a ref that may not be written.
type RefError struct{ Name, Message string }

func (e *RefError) Error() string { return fmt.Sprintf("%+q %s", e.Name, e.Message) }
func (*RefError) Hint() string    { return "countersign run TX --to branch --branch NAME" }

// Ref returns the commit that a full ref name stands for, "" if there is none.
func (r *Repo) Ref(_ context.Context, name string) (string, error) {
	ref, err := refName(name)
	if err != nil {
		return "", err
	}
	tip, err := r.tip(ref)
	if err != nil { // its file, or one of its directories, may be of another ref
		err = cmp.Or(r.clashes(name), err)
	}
	if err != nil || tip.IsZero() {
		return "", err
	}
	return tip.String(), nil
}

// DefaultBranch returns the branch that a remote's HEAD was on when it was
// cloned or last asked (git remote set-head), "" where the clone does not know.
func (r *Repo) DefaultBranch(remote string) (string, error) {
	head, err := r.store.Reference(plumbing.NewRemoteHEADReferenceName(remote))
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading HEAD of the remote %s: %w", remote, err)
	}
	branch, _ := strings.CutPrefix(head.Target().String(), "refs/remotes/"+remote+"/")
	if head.Type() != plumbing.SymbolicReference || branch == head.Target().String() {
		return "", nil
	}
	return branch, nil
}

func refName(name string) (plumbing.ReferenceName, error) {
	ref := plumbing.ReferenceName(name)
	if err := ref.Validate(); err != nil || !strings.HasPrefix(name, "refs/") || strings.Count(name, "/") < 2 {
		return "", &RefError{name, "is not a name for a branch or ref"}
	}
	return ref, nil
}

// BuildCommit writes the commit that changes these files of its parent. Only
// trees on the way to a changed file are read and written; no ref moves, and
// until one does, or Close, `git gc` leaves the commit alone.
func (r *Repo) BuildCommit(_ context.Context, parent string, files []patch.Change, c code.Commit) (string, error) {
	id := plumbing.NewHash(parent)
	base, err := readCommit(r.objects, id)
	if err != nil {
		return "", err
	}
	next := commit{Tree: base.Tree, Parents: []plumbing.Hash{id}}
	b := builder{r.objects, &packfile.Batch{}}
	made, err := b.commit(next, files, func(next commit) ([]byte, error) {
		committer, authored := identity(object.OurName, cmp.Or(c.Committer, object.OurEmail)), c.Authored
		if authored.IsZero() {
			authored = c.When.UTC()
		}
		return signed(object.EncodeAuthored(next, identity(c.Author, c.Email), authored, committer, c.When, c.Message), c.Sign)
	})
	if err != nil {
		return "", err
	}
	pack, err := writePack(r.objects, b.batch)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects.Release(r.built[made].name)
	r.built[made] = pack
	return made.String(), nil
}

// placed lets go of a commit that was built: a ref leads to it now.
func (r *Repo) placed(commit plumbing.Hash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects.Release(r.built[commit].name)
	delete(r.built, commit)
}

// CheckRef refuses a name that is none, one that Git would not let be beside
// those that there are, and a branch that is checked out, here or in a linked
// working tree, with a *RefError.
func (r *Repo) CheckRef(_ context.Context, name string) error {
	ref, err := refName(name)
	if err != nil {
		return err
	}
	checkedOut, err := r.checkedOut(ref)
	if err == nil && checkedOut {
		err = &RefError{name, "is checked out"}
	}
	if _, exists := r.store.Reference(ref); err == nil && exists != nil {
		err = r.clashes(name)
	}
	return err
}

// clashes refuses a new ref that is a directory of another, or below one: they
// cannot both be files.
func (r *Repo) clashes(name string) error {
	packed, err := os.ReadFile(filepath.Join(r.gitDir, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := path.Dir(name); strings.Contains(dir, "/"); dir = path.Dir(dir) {
		info, err := os.Stat(r.refFile(plumbing.ReferenceName(dir)))
		if err == nil && info.Mode().IsRegular() || bytes.Contains(packed, []byte(" "+dir+"\n")) {
			return &RefError{name, "cannot be beside " + dir}
		}
	}
	if bytes.Contains(packed, []byte(" "+name+"/")) {
		return &RefError{name, "cannot be beside those below it"}
	}
	return filepath.WalkDir(r.refFile(plumbing.ReferenceName(name)), func(_ string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return nil
		case err == nil && !d.IsDir() && !strings.HasSuffix(d.Name(), ".lock"):
			err = &RefError{name, "cannot be beside those below it"}
		}
		return err
	})
}

// MoveRef sets a ref that CheckRef accepts to next if it still is old ("":
// absent), else it returns writing.ErrMoved.
func (r *Repo) MoveRef(ctx context.Context, name, old, next string) error {
	if err := r.CheckRef(ctx, name); err != nil {
		return err
	}
	return r.moveTo(name, old, next)
}

func (r *Repo) moveTo(name, old, next string) error {
	if err := r.gitCounts(plumbing.NewHash(next)); err != nil {
		return err
	}
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	commit := plumbing.NewHash(next)
	r.mu.Lock()
	pack, built := r.built[commit]
	r.mu.Unlock()
	if built {
		if err := r.notePacks(pack); err != nil {
			return err
		}
	}
	if err := r.moveRef(plumbing.ReferenceName(name), plumbing.NewHash(old), commit); err != nil {
		return err
	}
	r.placed(commit)
	return nil
}

// gitCounts refuses a commit on one that only Fetch has brought to a shallow or
// partial clone: git would find the ref broken.
func (r *Repo) gitCounts(commit plumbing.Hash) error {
	if _, err := os.Stat(r.ownObjects()); err != nil {
		return nil
	}
	c, err := readCommit(r.objects, commit)
	if err != nil {
		return err
	}
	git, err := packfile.Open(r.gitObjects())
	if err != nil {
		return err
	}
	for _, parent := range c.Parents {
		if _, _, err = git.Size(parent); errors.Is(err, packfile.ErrMissing) {
			err = &UnsupportedError{fmt.Errorf("the clone is shallow or partial, and git has no commit %s in it; \"git fetch --unshallow\" brings all", parent)}
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, git.Close())
}

// checkedOut looks at HEAD and at the HEAD of every linked working tree
// (gitrepository-layout(5), worktrees/<id>/HEAD).
func (r *Repo) checkedOut(name plumbing.ReferenceName) (bool, error) {
	heads, err := filepath.Glob(filepath.Join(r.gitDir, "worktrees", "*", "HEAD"))
	if err != nil {
		return false, err
	}
	for _, file := range append(heads, filepath.Join(r.gitDir, "HEAD")) {
		data, err := os.ReadFile(file)
		if err != nil {
			return false, fmt.Errorf("reading %s: %w", file, err)
		}
		if strings.TrimSpace(string(data)) == "ref: "+name.String() {
			return true, nil
		}
	}
	return false, nil
}

// A LockedError is a ref that another process holds, or one that died left
// locked.
type LockedError struct{ File string }

func (e *LockedError) Error() string { return "the ledger is locked by " + e.File }
func (e *LockedError) Hint() string {
	return "remove " + e.File + ", if no other process is at work"
}

// lockTries and lockWait bound how long a locked ref is waited for: about five
// seconds. A holder keeps the lock for as long as one small write takes.
var lockTries = 200 // tests that leave a lock behind do not wait

const lockWait = 25 * time.Millisecond

func (r *Repo) refFile(name plumbing.ReferenceName) string {
	return filepath.Join(r.gitDir, filepath.FromSlash(name.String()))
}

// tip returns the commit that a ref names, zero where there is no such ref.
//
// go-git takes a loose ref that it cannot read for an absent one and goes on to
// packed-refs. A ledger with a damaged ref must not look empty, or old.
func (r *Repo) tip(name plumbing.ReferenceName) (plumbing.Hash, error) {
	raw, err := os.ReadFile(r.refFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return r.packedTip(name)
	}
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("reading %s: %w", name, err)
	}
	text := strings.TrimRight(string(raw), " \t\r\n")
	if strings.HasPrefix(text, "ref:") {
		return plumbing.ZeroHash, fmt.Errorf("%s is a symbolic ref, and a ledger must not be one", name)
	}
	if !plumbing.IsHash(text) {
		return plumbing.ZeroHash, fmt.Errorf("reading %s: the file %s is damaged", name, r.refFile(name))
	}
	return plumbing.NewHash(text), nil
}

func (r *Repo) packedTip(name plumbing.ReferenceName) (id plumbing.Hash, err error) {
	err = r.packedRefs(func(packed, tip string) {
		if packed == name.String() {
			id = plumbing.NewHash(tip)
		}
	})
	return id, err
}

// packedRefs calls visit for every ref in packed-refs (git-pack-refs(1)). A line that is
// none is an error, as it is to git.
func (r *Repo) packedRefs(visit func(name, id string)) error {
	file := filepath.Join(r.gitDir, "packed-refs")
	packed, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the refs: %w", err)
	}
	for line := range strings.Lines(string(packed)) {
		text, whole := strings.CutSuffix(line, "\n")
		id, name, ok := strings.Cut(text, " ")
		peeled, isPeeled := strings.CutPrefix(text, "^")
		switch {
		case whole && strings.HasPrefix(text, "#"), whole && isPeeled && plumbing.IsHash(peeled):
		case whole && ok && plumbing.IsHash(id) && name != "":
			visit(name, id)
		default:
			return fmt.Errorf("reading the refs: the file %s is damaged: %+q is no ref", file, text[:min(len(text), 80)])
		}
	}
	return nil
}

// refsBelow returns the refs in a directory such as "refs/replace", with what they
// stand for; a symbolic one, or one whose file is damaged, stands for zero.
//
// go-git takes the lock that git-pack-refs(1) holds on a ref for another ref, and
// fails as it is empty. Files are read before packed-refs: what git moves there
// in between is found there.
func (r *Repo) refsBelow(dir string) (map[string]plumbing.Hash, error) {
	refs := map[string]plumbing.Hash{}
	err := filepath.WalkDir(filepath.Join(r.gitDir, filepath.FromSlash(dir)), func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // git removes what it has packed
		}
		if err != nil || d.IsDir() || strings.HasSuffix(d.Name(), ".lock") {
			return err
		}
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, relErr := filepath.Rel(r.gitDir, file)
		var id plumbing.Hash
		if text := strings.TrimSpace(string(raw)); plumbing.IsHash(text) {
			id = plumbing.NewHash(text)
		}
		refs[filepath.ToSlash(name)] = id
		return errors.Join(err, relErr)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the refs: %w", err)
	}
	err = r.packedRefs(func(name, id string) {
		if _, loose := refs[name]; !loose && strings.HasPrefix(name, dir+"/") {
			refs[name] = plumbing.NewHash(id)
		}
	})
	return refs, err
}

// RefNames returns the full names of all refs, in order.
func (r *Repo) RefNames() ([]string, error) {
	refs, err := r.refsBelow("refs")
	return slices.Sorted(maps.Keys(refs)), err
}

// moveRef sets a ref to next if it still is old (zero: absent), with the
// protocol of git itself: <ref>.lock exclusively, look, rename. go-git's
// SetReference ignores that lock and loses updates. ErrMoved says that the ref
// was not old; nothing was changed then. The caller holds r.lock.
func (r *Repo) moveRef(name plumbing.ReferenceName, old, next plumbing.Hash) (err error) {
	file := r.refFile(name)
	note, err := r.note(name, file+".lock", next)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, os.Remove(note)) }()
	if err := takeLock(note, file+".lock"); err != nil {
		return err
	}
	now, err := r.tip(name)
	if err == nil && now != old {
		err = writing.ErrMoved
	}
	if err == nil {
		if err = os.Rename(file+".lock", file); err != nil {
			err = fmt.Errorf("writing %s: %w", name, err)
		}
	}
	if err != nil {
		_ = os.Remove(file + ".lock")
	}
	return err
}

// note writes what the ref will be to a file of our own. The ref's lock is made
// a link to it, so that a lock which a killed process left behind is known: it
// is the same file as the old note, and nobody else can hold it now.
func (r *Repo) note(name plumbing.ReferenceName, lock string, next plumbing.Hash) (string, error) {
	note := filepath.Join(r.stateDir(), "ref-"+shortName(name.String()))
	mine, err := os.Lstat(note)
	if err == nil {
		if held, err := os.Lstat(lock); err == nil && os.SameFile(mine, held) {
			if err := os.Remove(lock); err != nil {
				return "", err
			}
		}
		// Never written in place: it may be the ref itself by now.
		err = os.Remove(note)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return note, writeState(note, []byte(next.String()+"\n"))
}

// takeLock waits until the lock is ours. git-pack-refs(1) removes the lock's
// directory where that is empty, maybe just after it was made. Where a file
// system has no links, the note is copied, and a lock that a killed process left
// has to be removed by hand.
func takeLock(note, lock string) error {
	for range lockTries {
		err := os.MkdirAll(filepath.Dir(lock), 0o777)
		if err == nil {
			err = os.Link(note, lock)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			err = copyNew(note, lock)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("locking the ledger: %w", err)
		}
		time.Sleep(lockWait)
	}
	return &LockedError{lock}
}

func copyNew(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
