package status

import (
	"slices"
	"sync"

	"github.com/countersign-dev/countersign/gitstore/ignore"
)

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
func (w *walker) readIgnored(dir *dir, names []name, at *place, prefix string, lo, hi int) {
	if slices.ContainsFunc(names, func(n name) bool { return n.name == ignoreFile && n.kind.IsRegular() }) {
		data, err := dir.read(ignoreFile)
		if w.fail(prefix+ignoreFile, err); err == nil {
			at.list = ignore.Parse(data)
		}
		return
	}
	i := w.x.Search([]byte(prefix+ignoreFile), lo, hi)
	if i == hi || string(w.x.Name(i)) != prefix+ignoreFile || w.Blob == nil {
		return
	}
	if e := w.x.Entry(i); e.SkipWorktree && e.Stage == 0 {
		data, err := w.Blob(e.ID)
		if w.fail(prefix+ignoreFile, err); err == nil {
			at.list = ignore.Parse(data)
		}
	}
}

// ignored reports whether a name of a directory is ignored: because the whole
// directory is, or by the list that is nearest to it of those that say
// something.
func (w *walker) ignored(at *place, name string, dir bool) bool {
	if w.isIgnored(at) {
		return true
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

// isIgnored reports whether a directory is ignored, with all below it.
func (w *walker) isIgnored(at *place) bool {
	if at.above == nil {
		return false
	}
	at.once.Do(func() { at.ignored = w.ignored(at.above, at.name, true) })
	return at.ignored
}
