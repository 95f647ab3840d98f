package patch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

// Resolve puts the diff on base, the tree of the commit that is patched. Every
// hunk must apply exactly where it says. The error is an *Error for a diff that
// does not fit, and wraps fs errors where base could not be read.
//
// base should implement fs.ReadLinkFS, so that links are seen and refused.
func (d Diff) Resolve(base fs.FS) (Patchset, error) {
	after := map[string]*File{}
	for _, s := range d.sections {
		if err := s.resolve(base, after); err != nil {
			var e *Error
			if errors.As(err, &e) && e.Line == 0 {
				e.Line = s.line
			}
			return Patchset{}, err
		}
	}
	return Between(base, after)
}

func (s section) resolve(base fs.FS, after map[string]*File) error {
	before, err := Lookup(base, s.old)
	if err != nil {
		return err
	}
	if s.file.IsNew {
		before = &File{} // whether the path is free is for Between to say
	}
	if before == nil {
		return &Error{Path: s.old, Message: "does not exist in the base commit"}
	}
	if !s.file.IsNew && s.oldMode != 0 && s.oldMode != before.Mode {
		return &Error{Path: s.old, Message: fmt.Sprintf("has mode %s in the base commit, the patch says %s", before.Mode, s.oldMode)}
	}
	data, err := s.apply(before.Data)
	if err != nil {
		return &Error{Path: s.old, Message: "does not apply to the base commit: " + err.Error()}
	}
	return s.outcome(before, data, after, base)
}

func (s section) outcome(before *File, data []byte, after map[string]*File, base fs.FS) error {
	switch {
	case s.file.IsDelete:
		if len(data) > 0 {
			return &Error{Path: s.old, Message: "deletion leaves content behind"}
		}
		after[s.old] = nil
		return nil
	case s.file.IsNew:
		if old, err := Lookup(base, s.new); err != nil || old != nil {
			return errors.Join(err, &Error{Path: s.new, Message: "already exists in the base commit"})
		}
	case s.file.IsRename:
		if _, done := after[s.old]; !done {
			after[s.old] = nil
		}
	}
	mode := cmpMode(s.newMode, before.Mode)
	after[s.new] = &File{Mode: mode, Data: data}
	return nil
}

func cmpMode(stated, before Mode) Mode {
	if stated != 0 {
		return stated
	}
	return before
}

// Between makes the Patchset that turns the files of base into after: the
// content of each path afterwards, nil for a path that is gone. Paths that end
// as they began are left out; nothing changed at all is an *Error.
func Between(base fs.FS, after map[string]*File) (Patchset, error) {
	var changes []Change
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if err := CheckPath(path); err != nil {
			return Patchset{}, err
		}
		before, err := Lookup(base, path)
		if err != nil {
			return Patchset{}, err
		}
		if c := (Change{Path: path, Before: before, After: after[path]}); !before.Equal(c.After) {
			changes = append(changes, c)
		}
	}
	if len(changes) == 0 {
		return Patchset{}, &Error{Message: "the patch changes nothing"}
	}
	if err := checkCollisions(base, changes); err != nil {
		return Patchset{}, err
	}
	return Patchset{pairRenames(changes)}, nil
}

// pairRenames gives each change its kind. Walking the added paths in order,
// each is paired with the first deleted path of identical content.
func pairRenames(changes []Change) []Change {
	gone := map[string][]int{} // content → indexes of deletions, in path order
	for i, c := range changes {
		if c.After == nil {
			gone[string(c.Before.Data)] = append(gone[string(c.Before.Data)], i)
		}
	}
	paired := map[int]bool{}
	for i := range changes {
		c := &changes[i]
		c.Kind = kindOf(*c)
		if c.Kind != Add || len(gone[string(c.After.Data)]) == 0 {
			continue
		}
		from := gone[string(c.After.Data)][0]
		gone[string(c.After.Data)] = gone[string(c.After.Data)][1:]
		paired[from] = true
		c.Kind, c.From, c.Before = Rename, changes[from].Path, changes[from].Before
	}
	out := changes[:0:0]
	for i, c := range changes {
		if !paired[i] {
			out = append(out, c)
		}
	}
	return out
}

func kindOf(c Change) Kind {
	switch {
	case c.Before == nil:
		return Add
	case c.After == nil:
		return Delete
	}
	return Update
}

// Lookup returns a regular file of a tree, nil if there is none at the path. A
// link or a submodule at the path or above it is an *Error.
func Lookup(tree fs.FS, path string) (*File, error) {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		info, err := fs.Lstat(tree, path[:i])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		case info.Mode().IsRegular():
			return nil, nil
		case !info.IsDir():
			return nil, &Error{Path: path, Message: "is under a symbolic link or submodule"}
		}
	}
	info, err := fs.Lstat(tree, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, nil
	case !info.Mode().IsRegular():
		return nil, &Error{Path: path, Message: "is a symbolic link or submodule"}
	}
	data, err := fs.ReadFile(tree, path)
	if err != nil {
		return nil, err
	}
	return &File{Mode: modeOf(info), Data: data}, nil
}

func modeOf(info fs.FileInfo) Mode {
	if info.Mode()&0o111 != 0 {
		return Executable
	}
	return Regular
}
