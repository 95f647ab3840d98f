// Package status says which files of a working tree are not what the index has,
// and which are in neither the index nor a list of what is to be ignored, as
// "git status --untracked-files=all" does. It runs nothing: no file system
// monitor that the configuration names; a filter is its caller's. A file is compared by its
// content, unless what lstat tells of it is what the index noted.
//
// One walk looks at every directory once, on all cores: it is opened by its name
// in the directory above, never through a link, listed, and each file in it that
// the index has is looked at by its name there.
package status

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/attributes"
	"github.com/countersign-dev/countersign/gitstore/ignore"
	"github.com/countersign-dev/countersign/gitstore/index"
)

// Options are what the configuration and the rest of the repository say. The
// zero value is a repository without either.
type Options struct {
	IgnoreMode  bool // core.fileMode is off: the executable bit means nothing
	IgnoreCase  bool // core.ignoreCase: names that differ in case alone are one
	NoLinks     bool // core.symlinks is off: links are files that hold where they point
	IgnoreCtime bool // core.trustCtime is off
	CheckLess   bool // core.checkStat is "minimal"
	Sparse      bool // core.sparseCheckout: what is there although it need not be counts

	// Ignored are the lists that are about the whole working tree, the last one
	// asked first.
	Ignored []ignore.List

	// Submodule returns the commit that the repository at a path has checked out;
	// false where there is none.
	Submodule func(name string) (plumbing.Hash, bool)
	// Form returns how the file at a path is checked out; nil: as its blob is.
	Form func(name string) (attributes.Form, error)
	// Blob returns the content of a blob: of a .gitignore that is not checked out, or
	// of a file that is in another form.
	Blob func(id plumbing.Hash) ([]byte, error)
}

// Changed returns the paths of the working tree at dir that are changed, gone,
// or new and not ignored. A path that is not merged is changed. They are in no
// order.
func Changed(dir string, x *index.Index, o Options) ([]string, error) {
	root, err := openRoot(dir)
	if err != nil {
		return nil, err
	}
	w := &walker{x: x, Options: o, tokens: make(chan struct{}, runtime.GOMAXPROCS(0)-1)}
	if o.IgnoreCase {
		w.folded = fold(x)
	}
	w.walk(root, &place{}, 0, x.Len(), "")
	w.group.Wait()
	return w.changed, w.err
}

// A walker walks one working tree.
type walker struct {
	Options
	x      *index.Index
	folded map[string]bool // in lower case, what the index has and is below

	tokens chan struct{} // one for each goroutine that may be started
	group  sync.WaitGroup

	mu      sync.Mutex
	changed []string
	err     error
}

func (w *walker) add(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = append(w.changed, name)
}

// fail notes the first error. The others go on to their end.
func (w *walker) fail(name string, err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = fmt.Errorf("%+q: %w", name, err)
	}
}

// walk looks at a directory, which it closes. The index has the entries from lo
// up to hi below it; prefix is its path with a slash, "" for the root.
func (w *walker) walk(dir *dir, at *place, lo, hi int, prefix string) {
	defer dir.close()
	names, err := dir.list()
	if err != nil {
		w.fail(prefix, err)
		return
	}
	w.readIgnored(dir, names, at, prefix, lo, hi)
	for i := lo; i < hi; {
		rest := w.x.Name(i)[len(prefix):]
		slash := bytes.IndexByte(rest, '/')
		if slash < 0 {
			i = w.file(dir, i, hi, prefix)
			continue
		}
		end := w.x.Below(i, hi, len(prefix)+slash+1)
		w.tracked(dir, at, i, end, prefix, string(rest[:slash]))
		i = end
	}
	for _, n := range names {
		if !w.has(n, prefix, lo, hi) {
			w.untracked(dir, at, n, prefix)
		}
	}
}

// tracked goes into a directory that the index has entries below.
func (w *walker) tracked(above *dir, at *place, lo, hi int, prefix, name string) {
	prefix += name + "/"
	d, err := above.open(name)
	switch {
	case isAbsent(err):
		for i := lo; i < hi; i++ {
			w.gone(w.x.Entry(i))
		}
	case err != nil:
		w.fail(prefix, err)
	default:
		w.start(func() { w.walk(d, &place{above: at, name: name}, lo, hi, prefix) })
	}
}

// start does something in a goroutine of its own, if a core may be free.
func (w *walker) start(do func()) {
	select {
	case w.tokens <- struct{}{}:
		w.group.Go(func() {
			do()
			<-w.tokens
		})
	default:
		do()
	}
}

// file compares the entries of one name with what is on disk, and returns the
// entry after them.
func (w *walker) file(dir *dir, i, hi int, prefix string) (next int) {
	e := w.x.Entry(i)
	next = i + 1
	for next < hi && bytes.Equal(w.x.Name(next), e.Name) {
		next++
	}
	if e.Stage != 0 {
		w.add(string(e.Name))
		return next
	}
	if e.AssumeValid || e.SkipWorktree && !w.Sparse || e.Mode == index.ModeDir {
		return next
	}
	name := e.Name[len(prefix):]
	s, err := dir.lstat(name)
	switch {
	case isAbsent(err):
		w.gone(e)
	case err != nil:
		w.fail(string(e.Name), err)
	default:
		changed, err := w.differs(dir, e, s, string(name))
		if w.fail(string(e.Name), err); changed {
			w.add(string(e.Name))
		}
	}
	return next
}

// gone notes an entry whose file is not there.
func (w *walker) gone(e index.Entry) {
	if e.Stage != 0 || !e.AssumeValid && !e.SkipWorktree {
		w.add(string(e.Name))
	}
}

// has reports whether a name of a directory is the index's: a file of it, or a
// directory that it has entries below.
func (w *walker) has(n fs.DirEntry, prefix string, lo, hi int) bool {
	if lo < hi {
		full := append(append(make([]byte, 0, 256), prefix...), n.Name()...)
		i := w.x.Search(full, lo, hi)
		if i < hi && bytes.Equal(w.x.Name(i), full) {
			return !n.IsDir() || w.x.Entry(i).Mode == index.ModeGitlink
		}
		if full = append(full, '/'); n.IsDir() {
			i = w.x.Search(full, i, hi)
			return i < hi && bytes.HasPrefix(w.x.Name(i), full)
		}
	}
	if w.folded == nil {
		return false
	}
	full := strings.ToLower(prefix + n.Name())
	if n.IsDir() {
		full += "/"
	}
	return w.folded[full]
}

// fold lists in lower case what the index has: files, and directories with a
// slash.
func fold(x *index.Index) map[string]bool {
	out := map[string]bool{}
	for i := range x.Len() {
		name := strings.ToLower(string(x.Name(i)))
		for !out[name] && name != "./" {
			out[name] = true
			name = path.Dir(strings.TrimSuffix(name, "/")) + "/"
		}
	}
	return out
}

// untracked notes a file that the index has not, or those below a directory.
func (w *walker) untracked(above *dir, at *place, n fs.DirEntry, prefix string) {
	full := prefix + n.Name()
	isFile := n.Type().IsRegular() || n.Type() == fs.ModeSymlink
	switch {
	case n.Name() == ".git", w.IgnoreCase && strings.EqualFold(n.Name(), ".git"):
		return
	case !n.IsDir() && !isFile, w.ignored(at, n.Name(), n.IsDir()):
		return
	case isFile:
		w.add(full)
		return
	}
	d, err := above.open(n.Name())
	switch {
	case isAbsent(err):
	case err != nil && errors.Is(err, fs.ErrPermission): // git warns, and goes on
	case err != nil:
		w.fail(full, err)
	case d.isRepository():
		d.close()
	default:
		w.start(func() { w.walk(d, &place{above: at, name: n.Name()}, 0, 0, full+"/") })
	}
}

// isRepository reports whether a directory is the working tree of another
// repository: its files are not this one's to have.
func (d *dir) isRepository() bool {
	if file, err := d.read(".git"); err == nil {
		return bytes.HasPrefix(file, []byte("gitdir: "))
	}
	git, err := d.open(".git")
	if err != nil {
		return false
	}
	defer git.close()
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := git.lstat([]byte(name)); err != nil {
			return false
		}
	}
	return true
}

const ignoreFile = ".gitignore"

// A place is a directory on the way of the walk. Whether it is ignored as a
// whole is worked out when something in it is asked about, which in most
// directories nothing is.
type place struct {
	above *place // nil: this is the root
	name  string
	list  ignore.List // its own .gitignore

	once    sync.Once
	ignored bool
}

// readIgnored reads the directory's own list: the file, or what the index has
// where it need not be checked out. A link is not followed.
func (w *walker) readIgnored(dir *dir, names []fs.DirEntry, at *place, prefix string, lo, hi int) {
	var data []byte
	var err error
	if slices.ContainsFunc(names, func(n fs.DirEntry) bool { return n.Name() == ignoreFile && n.Type().IsRegular() }) {
		data, err = dir.read(ignoreFile)
	} else {
		i := w.x.Search([]byte(prefix+ignoreFile), lo, hi)
		if i == hi || string(w.x.Name(i)) != prefix+ignoreFile || w.Blob == nil {
			return
		}
		e := w.x.Entry(i)
		if !e.SkipWorktree || e.Stage != 0 {
			return
		}
		data, err = w.Blob(e.ID)
	}
	if w.fail(prefix+ignoreFile, err); err == nil {
		at.list = ignore.Parse(data)
	}
}

// ignored reports whether a name of a directory is ignored: because the whole
// directory is, or by the list that is nearest to it of those that say
// something.
func (w *walker) ignored(at *place, name string, dir bool) bool {
	if at.above != nil {
		at.once.Do(func() { at.ignored = w.ignored(at.above, at.name, true) })
		if at.ignored {
			return true
		}
	}
	for ; ; at = at.above {
		if ignored, found := at.list.Match(name, dir, w.IgnoreCase); found {
			return ignored
		}
		if at.above == nil {
			break
		}
		name = at.name + "/" + name
	}
	for _, l := range slices.Backward(w.Ignored) {
		if ignored, found := l.Match(name, dir, w.IgnoreCase); found {
			return ignored
		}
	}
	return false
}
