package gitstore

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Changed returns the paths whose file in the index or the working tree is not
// HEAD's: changed, deleted, or new and not ignored. Sorted. They are those of
// "git status --untracked-files=all", but for what is in other repositories below this one,
// of which only the commit counts that is checked out. No filter is run: a file that
// has one is among them, when git would ask it, though it may be what Git would store as HEAD has it.
func (r *Repo) Changed(ctx context.Context) ([]string, error) {
	return changed(ctx, git.Command{Dir: r.worktree})
}

func changed(ctx context.Context, c git.Command) ([]string, error) {
	c.Args = append(c.Args, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=dirty", "--no-renames")
	c, err := c.WithoutPrograms(ctx)
	var out string
	if err == nil {
		out, err = c.Output(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("comparing the working tree with HEAD: %w", err)
	}
	var changed []string
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		fields := map[string]int{"1": 9, "u": 11, "?": 2}[line[:min(len(line), 1)]] // git-status(1): with the path, which is the last
		words := strings.SplitN(line, " ", max(fields, 1))
		switch name := words[len(words)-1]; {
		case line == "", strings.HasPrefix(line, "# "), words[0] == "?" && strings.HasSuffix(name, "/"): // a header, such as of stashes; another repository
		case len(words) != fields || !filepath.IsLocal(name), path.Clean(name) != name:
			return nil, fmt.Errorf("comparing the working tree with HEAD: git status answered %q", line)
		default:
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed), nil
}

// Index compares the files with their index entries.
func (r *Repo) Index(ctx context.Context, files []patch.Change) (code.IndexState, error) {
	var state code.IndexState
	if r.worktree == "" || len(files) == 0 {
		return state, nil
	}
	entries, err := r.entries(ctx, files)
	if err != nil {
		return state, fmt.Errorf("reading the index: %w", err)
	}
	for _, f := range files {
		e, found := entries[f.Path]
		if e.tag == "S" {
			state.Sparse = append(state.Sparse, f.Path)
		}
		if found != (f.Before != nil) || found && e.is != fmt.Sprintf("%06o %s 0", uint32(f.Before.Mode), r.blobID(f.Before)) {
			state.Staged = append(state.Staged, f.Path)
		}
	}
	return state, nil
}

// blobID is a file's id in the repository.
func (r *Repo) blobID(f *patch.File) string { return patch.BlobID(f.Data, 2*r.objects.Format.Size()) }

// An entry is one of the index: "S" for what need not be checked out; its mode, id and stage,
// which is not 0 where a merge is not resolved.
type entry struct{ tag, is string }

// entries are those of files, the first of each. Git finds a few by their names; of many it
// tells the whole index.
func (r *Repo) entries(ctx context.Context, files []patch.Change) (map[string]entry, error) {
	args, size := []string{"ls-files", "-z", "-t", "--stage", "--"}, 0
	want := make(map[string]bool, len(files))
	for _, f := range files {
		want[f.Path] = true
		args, size = append(args, f.Path), size+len(f.Path)
	}
	if len(files) > 200 || size > 16<<10 { // a command line has an end
		args = args[:5]
	}
	out, err := git.Command{Dir: r.worktree, Args: args, Env: []string{"GIT_LITERAL_PATHSPECS=1"}}.Output(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[string]entry, len(files))
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		head, name, _ := strings.Cut(line, "\t")
		if _, known := found[name]; !known && want[name] {
			tag, is, _ := strings.Cut(head, " ")
			found[name] = entry{tag, is}
		}
	}
	return found, nil
}
