package pipeline

import (
	"bytes"
	"context"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/patch/linediff"
)

// RecipeInput is the seeds' remove_todo_multi: every line that contains the
// needle is deleted, in the named files, or with none named in all text files
// of the tree. Apply computes it again and refuses if the outcome differs.
func RecipeInput(needle string, files []string, summary string) (Input, error) {
	if needle == "" || strings.ContainsAny(needle, "\r\n") {
		return Input{}, &patch.Error{Message: "the needle must be a part of one line"}
	}
	if summary == "" {
		summary = "remove the lines that contain " + needle
	}
	return Input{
		Kind: KindRecipe, Summary: summary, Raw: []byte(needle), Needle: needle,
		Resolve: func(base fs.FS) (patch.Patchset, error) { return removeLines(base, needle, files) },
	}, nil
}

func removeLines(base fs.FS, needle string, files []string) (patch.Patchset, error) {
	named := len(files) > 0
	if !named {
		var err error
		if files, err = regularFiles(base); err != nil {
			return patch.Patchset{}, err
		}
	}
	after := map[string]*patch.File{}
	for _, name := range files {
		if err := patch.CheckPath(name); err != nil {
			if named {
				return patch.Patchset{}, err
			}
			continue // a path that no patch may touch
		}
		f, err := patch.Lookup(base, name)
		switch {
		case err != nil:
			return patch.Patchset{}, err
		case f == nil:
			return patch.Patchset{}, &patch.Error{Path: name, Message: "does not exist in the base commit"}
		case !named && bytes.IndexByte(f.Data, 0) >= 0:
			continue
		}
		after[name] = &patch.File{Mode: f.Mode, Data: without(f.Data, needle)}
	}
	return patch.Between(base, after)
}

func without(data []byte, needle string) []byte {
	var out []byte
	for _, line := range linediff.Lines(data) {
		if !bytes.Contains(line, []byte(needle)) {
			out = append(out, line...)
		}
	}
	return out
}

func regularFiles(base fs.FS) ([]string, error) {
	var out []string
	err := fs.WalkDir(base, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out = append(out, name)
		}
		return err
	})
	return out, err
}

// WorktreeInput proposes what the working tree holds beyond HEAD. Apply then
// finds the files in place, and reads them back against what was approved.
func (r *Runner) WorktreeInput(ctx context.Context, summary string) (Input, error) {
	if r.Worktree == nil {
		return Input{}, &NoWorktreeError{}
	}
	changed, err := r.Repo.Changed(ctx)
	if err != nil {
		return Input{}, err
	}
	return Input{Kind: KindWorktree, Summary: summary, Resolve: func(base fs.FS) (patch.Patchset, error) {
		return r.readChanged(base, changed)
	}}, nil
}

func (r *Runner) readChanged(base fs.FS, changed []string) (patch.Patchset, error) {
	after := map[string]*patch.File{}
	for _, name := range changed {
		if err := patch.CheckPath(name); err != nil {
			return patch.Patchset{}, err
		}
		before, err := patch.Lookup(base, name)
		if err != nil {
			return patch.Patchset{}, err
		}
		if after[name], err = r.Worktree.Read(name, before); err != nil {
			return patch.Patchset{}, err
		}
	}
	return patch.Between(base, after)
}
