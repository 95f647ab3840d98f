package patch

import (
	"io/fs"
	"slices"
)

// An Operation writes or deletes a whole file, as patch.json and Proposals do.
type Operation struct {
	Op      string // create, modify or delete
	Path    string
	Content []byte // nil for a delete
}

// FromOperations makes the Patchset that the operations mean on base. A new
// file is a regular one; a modified one keeps its mode. An operation that does
// not fit the base, or a path that is named twice, is an *Error.
func FromOperations(base fs.FS, ops []Operation) (Patchset, error) {
	t, after := newTree(base), map[string]*File{}
	for _, op := range ops {
		if _, twice := after[op.Path]; twice {
			return Patchset{}, &Error{Path: op.Path, Message: "path appears twice in the patch"}
		}
		f, err := op.resolve(t)
		if err != nil {
			return Patchset{}, err
		}
		after[op.Path] = f
	}
	return between(t, after)
}

func (op Operation) resolve(t *tree) (*File, error) {
	if err := CheckPath(op.Path); err != nil {
		return nil, err
	}
	before, err := t.file(op.Path)
	switch {
	case err != nil:
		return nil, err
	case op.Op == "create" && before != nil:
		return nil, &Error{Path: op.Path, Message: "already exists in the base commit"}
	case op.Op == "create":
		return &File{Mode: Regular, Data: op.Content}, nil
	case before == nil:
		return nil, &Error{Path: op.Path, Message: "does not exist in the base commit"}
	case op.Op == "modify":
		return &File{Mode: before.Mode, Data: op.Content}, nil
	case op.Op == "delete":
		return nil, nil
	}
	return nil, &Error{Path: op.Path, Message: "unknown operation " + Quote(op.Op)}
}

// Operations writes the patchset as operations on whole files, sorted by path.
// A patchset that they cannot express (an executable bit that changes or is
// new) is an *Error.
func (p Patchset) Operations() ([]Operation, error) {
	var out []Operation
	for _, f := range p.Files() {
		op := Operation{Op: "modify", Path: f.Path}
		switch {
		case f.After == nil:
			op.Op = "delete"
		case f.Before == nil:
			op.Op = "create"
		}
		want := Regular
		if f.Before != nil {
			want = f.Before.Mode
		}
		if f.After != nil {
			if f.After.Mode != want {
				return nil, &Error{Path: f.Path, Message: "whole-file operations cannot set the executable bit"}
			}
			op.Content = slices.Clip(f.After.Data)
		}
		out = append(out, op)
	}
	return out, nil
}
