package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Read returns the Policy of a tree, and whether the tree has a file. A tree
// without one has Default. Everything else that keeps the file from being read
// is an error and never Default: that it is a directory or a link, or stands
// below one, that it has another spelling of the name, that reading fails.
func Read(tree fs.FS) (p Policy, found bool, err error) {
	if found, err = lookFor(tree); err != nil {
		return Policy{}, false, fmt.Errorf("reading the Policy: %w", err)
	}
	if !found {
		return Default(), false, nil
	}
	raw, err := fs.ReadFile(tree, Path)
	if err != nil {
		return Policy{}, false, fmt.Errorf("reading the Policy: %w", err)
	}
	p, err = Parse(Path, raw)
	return p, err == nil, err
}

// mostKeysBytes bounds the file of keys, and that of witnesses.
const mostKeysBytes = 1 << 20

// ReadKeys reads the file of keys that a Policy names from the tree that the Policy
// is read from. A file that is missing, or is a link, a directory or below a link,
// is an error: nobody's signature counts then. A Policy that goes by the keys of the
// forge alone has an empty one.
func (p Policy) ReadKeys(tree fs.FS) ([]byte, error) {
	switch {
	case p.Approvals.Keys == "" && p.Approvals.ForgeKeys:
		return nil, nil
	case p.Approvals.Keys == "":
		return nil, errors.New("the Policy names no file of keys (approvals.keys)")
	}
	return ReadNamed(tree, keysRule, p.Approvals.Keys)
}

// ReadNamed reads a file of the tree that a Policy is read from, as ReadKeys does. What names it, a
// key of the Policy or an input of the Action, is told in errors.
func ReadNamed(tree fs.FS, key, name string) ([]byte, error) {
	file, err := patch.NewTree(tree).Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s: %w", key, name, err)
	case file == nil:
		return nil, fmt.Errorf("%s: there is no file %s beside the Policy", key, name)
	}
	data, err := fs.ReadFile(tree, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s: %w", key, name, err)
	case len(data) > mostKeysBytes:
		return nil, fmt.Errorf("%s: %s has %d bytes, more than %d", key, name, len(data), mostKeysBytes)
	}
	return data, nil
}

// lookFor goes down to the file by what each directory lists, which no link and
// no file system that ignores case can lead astray. Another spelling of a name is taken for a
// slip, not for absence.
func lookFor(tree fs.FS) (bool, error) {
	at := "."
	for _, want := range []struct {
		name string
		mode fs.FileMode
		is   string
	}{{path.Dir(Path), fs.ModeDir, "a directory"}, {path.Base(Path), 0, "a file"}} {
		entries, err := fs.ReadDir(tree, at)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() == want.name })
		other := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return spelling(e.Name()) == spelling(want.name) })
		switch {
		case i < 0 && other < 0:
			return false, nil
		case i < 0:
			return false, fmt.Errorf("%s: %w", path.Join(at, entries[other].Name()), errSpelling)
		}
		at = path.Join(at, want.name)
		if mode := entries[i].Type(); mode != want.mode {
			return false, fmt.Errorf("%s is %s, not %s", at, cmp.Or(modes[mode], "no ordinary file"), want.is)
		}
	}
	return true, nil
}

var modes = map[fs.FileMode]string{fs.ModeDir: "a directory", fs.ModeSymlink: "a link", 0: "a file"}

var errSpelling = errors.New("the Policy is " + Path + ", in this spelling")

// spelling is what two names share that a hurried reader takes for one.
func spelling(name string) string {
	if stem, ok := strings.CutSuffix(patch.FoldName(name), ".yaml"); ok {
		return stem + ".yml"
	}
	return patch.FoldName(name)
}

// A Problem is one thing that is wrong with a Policy file. Line and Column, in
// characters, count from 1. Key is the path of keys to it, "" for the file as a
// whole: approvals.required, protected[0].paths[2]. Allowed are the keys or
// words that could stand there, where these can be listed.
type Problem struct {
	File    string   `json:"file"`
	Line    int      `json:"line"`
	Column  int      `json:"column"`
	Key     string   `json:"key"`
	Message string   `json:"message"`
	Allowed []string `json:"allowed,omitempty"`
}

// Error is file:line:column: key: message (allowed: …), on one line.
func (p Problem) Error() string {
	s := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Key != "" {
		s += p.Key + ": "
	}
	s += p.Message
	if len(p.Allowed) > 0 {
		s += " (allowed: " + strings.Join(p.Allowed, ", ") + ")"
	}
	return s
}

// Problems are all that is wrong with a Policy file, in the file's order.
type Problems []Problem

// Error is one line for each Problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

func (Problems) Hint() string { return "docs/policy.md lists the keys and their values" }

// maxProblems is how many are told; who reads the list mends the first ones.
const maxProblems = 100

// err is nil where there are none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	return ps[:min(len(ps), maxProblems)]
}
