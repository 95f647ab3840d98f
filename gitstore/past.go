package gitstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/code"
)

// maxPast is how many commits Past looks at.
const maxPast = 2000

// Past returns what a commit and those before it, by first parents and at most maxPast in all, have had at
// some paths, newest first. A history that is cut off, as in a shallow clone, ends there.
func (r *Repo) Past(ctx context.Context, commit string, paths []string) (runs []code.Run, err error) {
	known := map[string]string{} // the file's id, by its path below a tree's
	for back := 0; ; back++ {
		c, err := readCommit(r.objects, r.id(commit))
		if err == nil {
			err = ctx.Err()
		}
		if back > 0 && (back == maxPast || errors.Is(err, packfile.ErrMissing)) {
			runs[len(runs)-1].Oldest = ""
			return runs, nil
		}
		var blobs []string
		for _, path := range paths {
			var id string
			if err == nil {
				id, err = r.blobAt(c.Tree, path, known)
			}
			blobs = append(blobs, id)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the history before %s: %w", commit, err)
		}
		if n := len(runs); n == 0 || !slices.Equal(runs[n-1].Blobs, blobs) {
			runs = append(runs, code.Run{Newest: commit, Back: back, Blobs: blobs})
		}
		if runs[len(runs)-1].Oldest = commit; len(c.Parents) == 0 {
			return runs, nil
		}
		commit = c.Parents[0].String()
	}
}

// blobAt is the id of the file at a path below a tree, "" for none.
func (r *Repo) blobAt(tree packfile.ID, path string, known map[string]string) (id string, err error) {
	key := tree.String() + "/" + path
	if id, ok := known[key]; ok {
		return id, nil
	}
	entries, err := readTree(r.objects, tree)
	name, below, deeper := strings.Cut(path, "/")
	if i := slices.IndexFunc(entries, func(e treeEntry) bool { return e.name == name }); i >= 0 {
		switch e := entries[i]; {
		case deeper && e.mode == filemode.Dir:
			id, err = r.blobAt(e.id, below, known)
		case !deeper && e.mode.IsFile():
			id = e.id.String()
		}
	}
	known[key] = id
	return id, err
}
