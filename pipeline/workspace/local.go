package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"path"
	"slices"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Local returns changes of a commit as they are on disk. A file that Git takes
// for the one before, or after, is that one, byte for byte as it is; where it is
// neither, each is what Git would check out. With a filter only that is the one after: a
// program may drop what nobody was shown.
//
// Before goes by the attributes of the commit, After by those that the changes
// leave. Those of a change that nobody has approved yet do not count: then After
// stays as it is.
func (t *Tree) Local(ctx context.Context, base fs.FS, files []patch.Change, approved bool) ([]patch.Change, error) {
	was := t.Attributes.Rules(reader(base, nil))
	err := was.Ask(ctx, paths(files))
	if err != nil {
		return nil, err
	}
	is := was
	if approved && slices.ContainsFunc(files, func(f patch.Change) bool { return path.Base(f.Path) == git.AttributesFile }) {
		is = t.Attributes.Rules(reader(base, files))
		if err = is.Ask(ctx, paths(files)); err != nil {
			return nil, err
		}
	}
	var out []patch.Change
	var plain []int // files that no program has a part in
	forms := make([]form, len(files))
	for i, f := range files {
		if forms[i], err = formOf(ctx, f, was, is, approved); err != nil {
			return nil, err
		}
		if forms[i] == (form{}) {
			continue
		}
		if out == nil {
			out = append(out, files...)
		}
		if forms[i].before.IsFiltered() || forms[i].after.IsFiltered() {
			out[i], err = t.local(f, forms[i])
		} else {
			out[i], err = forms[i].convert(f, nil)
			plain = append(plain, i)
		}
		if err != nil {
			return nil, err
		}
	}
	if out == nil {
		return files, nil
	}
	return out, t.unlike(files, out, plain, forms)
}

// unlike looks for files that are none of what Git would check out, and has them as they
// are where Git takes them for it all the same. Few are: the rest is compared as it is
// read, on all cores.
func (t *Tree) unlike(files, out []patch.Change, plain []int, forms []form) (err error) {
	checkedOut := make([]patch.Change, len(plain))
	for n, i := range plain {
		checkedOut[n] = out[i]
	}
	for n, s := range t.look(checkedOut, deleted(files)) {
		if i := plain[n]; s.state == effect.Other && err == nil {
			out[i], err = t.local(files[i], forms[i])
		}
	}
	return err
}

// A form is how a file is checked out before a change, and after it.
type form struct{ before, after git.FileForm }

func formOf(ctx context.Context, f patch.Change, was, is *git.AttributeRules, approved bool) (out form, err error) {
	if f.Before != nil {
		out.before, err = was.Form(ctx, f.Path)
	}
	if err == nil && f.After != nil && approved {
		out.after, err = is.Form(ctx, f.Path)
	}
	return out, err
}

func (t *Tree) local(f patch.Change, as form) (patch.Change, error) {
	disk, err := t.read(f.Path)
	if err != nil {
		return f, err
	}
	return as.convert(f, disk)
}

// convert has both sides of a change as they are on disk: as Git would check them out, or
// the file that is there where Git takes it for one.
func (as form) convert(f patch.Change, disk *patch.File) (patch.Change, error) {
	place := func(file *patch.File, form git.FileForm, elsewhere bool) (*patch.File, bool, error) {
		if file == nil || form == (git.FileForm{}) {
			return file, false, nil
		}
		if disk != nil && !elsewhere && form.Same(disk.Data, file.Data) {
			return &patch.File{Mode: file.Mode, Data: disk.Data}, true, nil
		}
		data, err := form.Checkout(file.Data)
		if errors.Is(err, git.ErrNotUTF8) {
			err = &git.UnsupportedError{Path: f.Path, Attribute: "working-tree-encoding", Why: git.ErrNotUTF8.Error()}
		}
		return &patch.File{Mode: file.Mode, Data: data}, false, err
	}
	var there bool
	var err error
	if f.Before, there, err = place(f.Before, as.before, false); err == nil {
		f.After, _, err = place(f.After, as.after, there || as.after.IsFiltered())
	}
	return f, err
}

// read returns a file, nil where there is none: also where something else is in
// its place, or on the way.
func (t *Tree) read(name string) (*patch.File, error) {
	f, err := patch.Lookup(t.files(), name)
	if errors.As(err, new(*patch.Error)) {
		return nil, nil
	}
	return f, err
}

// Stored returns a reader that goes by the attributes of a commit with changes. Of a
// file with a filter Git may store less than it holds: it is the file as it is where it
// is not what Git would check out of what it stores.
func (t *Tree) Stored(ctx context.Context, commit fs.FS, changes []patch.Change) (effect.Reader, error) {
	read, err := t.stored(ctx, commit, changes, paths(changes), true)
	return func(name string, base *patch.File) (*patch.File, error) { return read(name, base, math.MaxInt64) }, err
}

// Proposed returns a reader as Stored does, of what Git stores of a file with a filter
// whatever it checks out of that. Only a filter knows before how much that is. names are
// the files that will be asked for.
func (t *Tree) Proposed(ctx context.Context, commit fs.FS, changes []patch.Change, names []string) (effect.LimitedReader, error) {
	return t.stored(ctx, commit, changes, names, false)
}

func (t *Tree) stored(ctx context.Context, commit fs.FS, changes []patch.Change, names []string, exact bool) (effect.LimitedReader, error) {
	rules := t.Attributes.Rules(reader(commit, changes))
	if err := rules.Ask(ctx, names); err != nil {
		return nil, err
	}
	return func(name string, base *patch.File, most int64) (*patch.File, error) {
		form, unknown := rules.Form(ctx, name)
		if !form.IsFiltered() && t.exceeds(name, base, most, form) {
			return nil, &gitpatch.TooLargeError{Path: name}
		}
		f, err := t.Read(name, base)
		if err != nil || f == nil {
			return nil, err
		}
		if unknown != nil || form == (git.FileForm{}) {
			return f, unknown
		}
		if base == nil {
			if base, err = patch.Lookup(commit, name); err != nil && !errors.As(err, new(*patch.Error)) {
				return nil, err
			}
		}
		stored, err := store(form, f.Data, base)
		if err == nil && exact && form.IsFiltered() {
			var out []byte
			if out, err = form.Checkout(stored); err == nil && !bytes.Equal(out, f.Data) {
				return f, nil
			}
		}
		var unsupported *git.UnsupportedError
		if err != nil && !errors.As(err, &unsupported) {
			err = &patch.Error{Path: name, Message: err.Error()}
		}
		f.Data = stored
		return f, err
	}, nil
}

// exceeds reports whether Git would store a file as more than most bytes beyond base's.
func (t *Tree) exceeds(name string, base *patch.File, most int64, form git.FileForm) bool {
	info, err := t.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false // Read says what is wrong
	}
	size := info.Size()
	if form != (git.FileForm{}) {
		size /= 4 // line ends and encodings take at most so much more
	}
	if base != nil {
		size -= int64(len(base.Data))
	}
	return size > most
}

// store is what Git stores of a file: base's content where it takes it for that.
func store(form git.FileForm, data []byte, base *patch.File) ([]byte, error) {
	switch {
	case base == nil:
		return form.Add(data, nil)
	case !form.IsFiltered() && form.Same(data, base.Data):
		return base.Data, nil
	}
	return form.Add(data, base.Data)
}

// Changed are the attributes among changed files, as they are on disk.
func (t *Tree) Changed(changed []string) ([]patch.Change, error) {
	var out []patch.Change
	for _, name := range changed {
		if path.Base(name) != git.AttributesFile {
			continue
		}
		f, err := t.read(name)
		if err != nil {
			return nil, err
		}
		out = append(out, patch.Change{Path: name, After: f})
	}
	return out, nil
}

func paths(files []patch.Change) []string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = f.Path
	}
	return out
}

// reader reads the attributes of a commit with changes. What is no regular file
// has none.
func reader(commit fs.FS, changes []patch.Change) func(name string) ([]byte, error) {
	changed := map[string]*patch.File{}
	for _, f := range changes {
		if path.Base(f.Path) == git.AttributesFile {
			changed[f.Path] = f.After
		}
	}
	return func(name string) ([]byte, error) {
		f, found := changed[name]
		if !found {
			var err error
			if f, err = patch.Lookup(commit, name); err != nil && !errors.As(err, new(*patch.Error)) {
				return nil, err
			}
		}
		if f == nil {
			return nil, nil
		}
		return f.Data, nil
	}
}
