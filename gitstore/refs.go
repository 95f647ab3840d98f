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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
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
	if err != nil || tip.IsZero() {
		return "", err
	}
	return tip.String(), nil
}

// DefaultBranch returns the branch that a remote's HEAD was on when it was
// cloned or last asked (git remote set-head), "" where the clone does not know.
func (r *Repo) DefaultBranch(remote string) (string, error) {
	dir := "refs/remotes/" + remote + "/"
	if _, err := refName(dir + "HEAD"); err != nil {
		return "", nil // an address
	}
	head, err := r.ask("symbolic-ref", "--quiet", dir+"HEAD")
	if err != nil && !git.IsNo(err) {
		return "", fmt.Errorf("reading HEAD of the remote %s: %w", remote, err)
	}
	branch, below := strings.CutPrefix(head, dir)
	if !below {
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
	id := r.id(parent)
	base, err := readCommit(r.objects, id)
	if err != nil {
		return "", err
	}
	next := commit{Tree: base.Tree, Parents: []packfile.ID{id}}
	b := builder{r.objects, r.batch()}
	made, err := b.commit(next, files, func(next commit) ([]byte, error) {
		committer, authored := identity(packfile.OurName, cmp.Or(c.Committer, packfile.OurEmail)), c.Authored
		if authored.IsZero() {
			authored = c.When.UTC()
		}
		return signed(packfile.EncodeAuthored(next, identity(c.Author, c.Email), authored, committer, c.When, c.Message), c.Sign)
	})
	if err != nil {
		return "", err
	}
	pack, err := packfile.Write(r.objects.Dir, b.batch)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.built[made].Release()
	r.built[made] = pack
	return made.String(), nil
}

// placed lets go of a commit that was built: a ref leads to it now.
func (r *Repo) placed(commit packfile.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.built[commit].Release()
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
	parts := strings.SplitN(name, "/", 3)
	beside, err := r.refs(parts[0] + "/" + parts[1])
	if err != nil {
		return err
	}
	if there, exists := beside[name]; exists {
		if there.worktree != "" {
			err = &RefError{name, "is checked out"}
		}
		return err
	}
	for other := range beside {
		switch {
		case strings.HasPrefix(name, other+"/"):
			return &RefError{name, "cannot be beside " + other}
		case strings.HasPrefix(other, name+"/"):
			return &RefError{name, "cannot be beside those below it"}
		}
	}
	checkedOut, err := r.checkedOut(ref)
	if err == nil && checkedOut {
		err = &RefError{name, "is checked out"}
	}
	return err
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
	if err := r.gitCounts(r.id(next)); err != nil {
		return err
	}
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	commit := r.id(next)
	if err := r.moveRef(plumbing.ReferenceName(name), r.id(old), commit); err != nil {
		return err
	}
	r.placed(commit)
	return nil
}

// gitCounts refuses a commit on one that only Fetch has brought to a shallow or
// partial clone: git would find the ref broken.
func (r *Repo) gitCounts(commit packfile.ID) error {
	if _, err := os.Stat(r.ownObjects()); err != nil {
		return nil
	}
	c, err := readCommit(r.objects, commit)
	if err != nil {
		return err
	}
	known := git.Objects{Dir: r.gitObjects(), Format: r.objects.Format}
	for _, parent := range c.Parents {
		if _, _, err = known.Size(parent); errors.Is(err, packfile.ErrMissing) {
			err = &UnsupportedError{fmt.Errorf("the clone is shallow or partial, and git has no commit %s in it; \"git fetch --unshallow\" brings all", parent)}
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, known.Close())
}

// checkedOut reports whether HEAD, or that of a linked working tree, is on a ref, which need not be there yet.
func (r *Repo) checkedOut(name plumbing.ReferenceName) (bool, error) {
	trees, err := r.ask("worktree", "list", "--porcelain", "-z")
	if err != nil {
		return false, fmt.Errorf("reading what is checked out: %w", err)
	}
	if strings.Contains(trees, "\x00branch "+name.String()+"\x00") {
		return true, nil
	}
	if first, _, _ := strings.Cut(trees, "\x00\x00"); strings.Contains(first, "\x00branch ") || strings.HasSuffix(first, "\x00detached") {
		return false, nil
	}
	main := r.command("symbolic-ref", "--quiet", "HEAD") // of a bare repository it is not listed
	main.Env = []string{"GIT_DIR=" + r.gitDir}
	head, _, err := main.Soon(context.Background())
	if git.IsNo(err) { // it is detached
		err = nil
	}
	return strings.TrimSuffix(head, "\n") == name.String(), err
}

// lockWait is how long a locked ref is waited for. A holder keeps the lock for as long as one small write takes.
var lockWait = 5 * time.Second // tests that leave a lock behind do not wait

// lockedBy is the lock that git names as what it could not make.
var lockedBy = canon.Regexp(`Unable to create '(.*\.lock)': File exists`)

// tip returns the commit that a ref names, zero where there is no such ref. A ledger with a damaged ref must not look empty, or old.
func (r *Repo) tip(name plumbing.ReferenceName) (packfile.ID, error) {
	refs, err := r.refs(name.String())
	if err != nil {
		return packfile.None, err
	}
	at := r.among(refs, name)
	return at.id, at.err
}

// among is a ref among those that were read by its name: git lists no symbolic one that leads nowhere.
func (r *Repo) among(refs map[string]refValue, name plumbing.ReferenceName) refValue {
	at, there := refs[name.String()]
	if !there && r.mayBe(name) {
		if _, err := r.ask("symbolic-ref", "--quiet", name.String()); err == nil {
			at.err = symbolic(name.String())
		} else if !git.IsNo(err) {
			at.err = fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return at
}

// mayBe reports whether there may be a ref that git does not list: one that leads nowhere is a file where refs are files.
func (r *Repo) mayBe(name plumbing.ReferenceName) bool {
	if _, err := os.Lstat(filepath.Join(r.gitDir, "reftable")); !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return slices.ContainsFunc([]string{r.gitDir, r.ownDir}, func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name.String())))
		return !errors.Is(err, fs.ErrNotExist)
	})
}

func symbolic(name string) error {
	return fmt.Errorf("%s is a symbolic ref, and a ledger must not be one", name)
}

// A refValue is what a ref is.
type refValue struct {
	id       packfile.ID // zero for a symbolic one and a damaged one
	worktree string      // where it is checked out, "" for nowhere
	err      error       // that it is one of these
}

// refs returns the refs that have one of these names, or are below it.
func (r *Repo) refs(names ...string) (map[string]refValue, error) {
	const format = "%(refname)%00%(objectname)%00%(symref)%00%(worktreepath)%00"
	out, warned, err := r.command(append([]string{"for-each-ref", "--format=" + format, "--"}, names...)...).Soon(context.Background())
	if err == nil {
		err = r.canList(names)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the refs: %w", err)
	}
	refs := map[string]refValue{}
	for fields := strings.Split(out, "\x00"); len(fields) > 4; fields = fields[4:] {
		name, at := strings.TrimPrefix(fields[0], "\n"), refValue{id: packfile.ParseID(fields[1]), worktree: fields[3]}
		if fields[2] != "" {
			at = refValue{worktree: at.worktree, err: symbolic(name)}
		}
		refs[name] = at
	}
	for line := range strings.Lines(warned) { // such as "warning: ignoring broken ref refs/heads/main"
		told, ignored := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "warning: ignoring ")
		if !ignored {
			return nil, fmt.Errorf("reading the refs: git says %+q", line)
		}
		name := told[strings.LastIndexByte(told, ' ')+1:]
		refs[name] = refValue{err: fmt.Errorf("reading %s: it is damaged (git: %s)", name, told)}
	}
	return refs, nil
}

// canList refuses directories of these refs that cannot be listed: git takes what is in them for absent without a word.
func (r *Repo) canList(names []string) (err error) {
	for _, dir := range slices.Compact([]string{r.gitDir, r.ownDir}) {
		err = errors.Join(err, fs.WalkDir(os.DirFS(dir), "refs", func(at string, d fs.DirEntry, err error) error {
			wanted := slices.ContainsFunc(names, func(name string) bool {
				return strings.HasPrefix(name+"/", at+"/") || strings.HasPrefix(at+"/", name+"/")
			})
			switch {
			case err != nil || d.Type().IsRegular():
			case !wanted && d.IsDir():
				return fs.SkipDir
			case wanted && d.IsDir():
				_, err = os.Lstat(dir + "/" + at + "/.")
			case wanted: // a link
				_, err = os.Stat(dir + "/" + at)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}))
	}
	return err
}

// RefNames returns the full names of all refs, in order.
func (r *Repo) RefNames() ([]string, error) {
	refs, err := r.refs("refs")
	return slices.Sorted(maps.Keys(refs)), err
}

// moveRef sets a ref to next if it still is old (zero: absent). ErrMoved says that the ref
// was not old; nothing was changed then. The caller holds r.lock.
func (r *Repo) moveRef(name plumbing.ReferenceName, old, next packfile.ID) error {
	wait := strconv.FormatInt(lockWait.Milliseconds(), 10)
	c := r.command("-c", "core.filesRefLockTimeout="+wait, "-c", "reftable.lockTimeout="+wait, "update-ref", "--no-deref", "-m", "countersign", "--stdin")
	c.Stdin = strings.NewReader(fmt.Sprintf("update %s %s %s\n", name, next, r.objects.Format.Hex(old)))
	c.Env = append(c.Env, "GIT_COMMITTER_NAME=countersign", "GIT_COMMITTER_EMAIL=countersign@localhost") // of the reflog
	c, err := r.withoutHooks(c)
	if err == nil {
		_, _, err = c.Soon(context.Background())
	}
	if err == nil {
		return nil
	}
	if now, tipErr := r.tip(name); tipErr != nil || now == next {
		return tipErr
	} else if now != old {
		return writing.ErrMoved
	}
	if by := lockedBy().FindStringSubmatch(err.Error()); by != nil {
		return &fault.Error{Message: "the ledger is locked by " + by[1], Try: "remove " + by[1] + ", if no other process is at work"}
	}
	return fmt.Errorf("writing %s: %w", name, err)
}

// withoutHooks is WithoutPrograms for a command that comes to no filter. The configuration is not asked for again where
// Settings has what the user's says, and the repository's own, as it is now, can name no hook.
func (r *Repo) withoutHooks(c git.Command) (git.Command, error) {
	r.mu.Lock()
	said := r.said
	r.mu.Unlock()
	if said == nil || r.mayNameHooks() {
		return c.WithoutPrograms(context.Background())
	}
	return c.Without(said), nil
}

// mayNameHooks reports whether the repository's own configuration may name hooks: neither the name of a section nor
// that of a key can be written otherwise than in these letters.
func (r *Repo) mayNameHooks() bool {
	for _, file := range []string{filepath.Join(r.gitDir, "config"), filepath.Join(r.ownDir, "config.worktree")} {
		at, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !at.Mode().IsRegular() { // to open it may take for ever
			return true
		}
		raw, err := os.ReadFile(file)
		raw = bytes.ToLower(raw)
		if err != nil || bytes.Contains(raw, []byte("hook")) || bytes.Contains(raw, []byte("include")) {
			return true
		}
	}
	return false
}

// command is a command of git in the repository.
func (r *Repo) command(args ...string) git.Command {
	return git.Command{Dir: r.ownDir, Env: []string{"GIT_DIR=" + r.ownDir}, Args: args}
}

// ask runs a command of git and returns its answer without the line's end. A ref that is no file would keep git waiting
// for ever, so no answer about refs is waited for without a bound.
func (r *Repo) ask(args ...string) (string, error) {
	out, _, err := r.command(args...).Soon(context.Background())
	return strings.TrimSuffix(out, "\n"), err
}
