package review

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// An UnfitError is a diff that does not fit the commit that it was put on, with what the history tells of that.
type UnfitError struct {
	Patch   *patch.Error // why it does not fit
	Done    bool         // the commit has the change
	Since   string       // with Done: the commit that brought it, "" where the history here does not tell
	Fits    string       // the newest commit before that it fits, "" for none that was found
	Back    int          // how many commits that is before
	Renamed string       // what a file that is missing was renamed to, "" where that is not so
	Below   string       // the one directory below which it fits, "" for none
}

func (e *UnfitError) Error() string {
	switch m := e.mismatch(); {
	case e.Done && e.Since != "":
		return fmt.Sprintf("nothing to do: HEAD has this change since %.7s", e.Since)
	case e.Done:
		return "nothing to do: HEAD has this change"
	case e.Renamed != "":
		return fmt.Sprintf("%s was renamed since this patch was made: it is %s now", patch.Quote(e.Patch.Path), patch.Quote(e.Renamed))
	case e.Below != "":
		return fmt.Sprintf("%s is not there, and below %s the patch fits: it was made there, with --relative", patch.Quote(e.Patch.Path), patch.Quote(e.Below+"/"))
	case m != nil:
		return fmt.Sprintf("%s has changed since this patch was made: %s", patch.Quote(e.Patch.Path), m)
	}
	return e.Patch.Error()
}

// Differs returns the line of the file that differs, where that says it all; nil where another reason is told.
func (e *UnfitError) Differs() *gitpatch.Mismatch {
	if m := e.mismatch(); m != nil && !e.Done && m.Whole() {
		return m
	}
	return nil
}

func (e *UnfitError) mismatch() (m *gitpatch.Mismatch) {
	errors.As(e.Patch.Cause, &m)
	return m
}

func (e *UnfitError) Unwrap() error { return e.Patch }

// How far is looked for what a diff that does not fit needs.
const (
	maxTried  = 20      // commits, and directories, that it is put on
	maxPaths  = 100     // files; the past of more is not looked at
	maxListed = 100_000 // entries of a tree
)

// Has reports whether the commit that a diff is for has what it makes.
func Has(ctx context.Context, r *pipeline.Runner, in input.Change) (bool, error) {
	base := in.Base
	if base == "" {
		var err error
		if base, err = r.Repo.Head(ctx); err != nil {
			return false, err
		}
	}
	tree, err := r.Repo.Tree(ctx, base)
	return err == nil && in.DoneIn(tree), err
}

// unfit finds out why a diff does not fit a commit. Whatever cannot be found out, as in a shallow
// clone, is left out: the diff is refused all the same.
func (r reviewer) unfit(ctx context.Context, in input.Change, base string, tree fs.FS, err error) error {
	var why *patch.Error
	if !errors.As(err, &why) || !why.Base || !in.IsDiff() {
		return err
	}
	e := &UnfitError{Patch: why}
	var paths, ids []string
	for _, p := range in.Parts(tree) {
		name := p.Path
		if p.From != "" {
			name = p.From
		}
		if !slices.Contains(paths, name) {
			paths, ids = append(paths, name), append(ids, p.OldID)
		}
		if p.From != "" {
			paths, ids = append(paths, p.Path), append(ids, "")
		}
	}
	var runs []code.Run
	if len(paths) > 0 && len(paths) <= maxPaths {
		runs, _ = r.Repo.Past(ctx, base, paths)
	}
	if e.Done = in.DoneIn(tree); e.Done {
		e.Since = r.doneSince(ctx, in, runs)
		return e
	}
	tried := 0
	for _, run := range runs {
		if run.Back == 0 || !names(run, ids) {
			continue
		}
		if tried++; tried > maxTried {
			break
		}
		old, err := r.Repo.Tree(ctx, run.Newest)
		if err == nil {
			_, err = in.Resolve(old)
		}
		if err == nil {
			e.Fits, e.Back = run.Newest, run.Back
			break
		}
	}
	if f, err := patch.Lookup(tree, why.Path); f == nil && err == nil {
		if e.Renamed = r.renamed(ctx, base, tree, why.Path); e.Renamed == "" {
			e.Below = below(in, tree, why.Path)
		}
	}
	return e
}

// names reports whether the files of a run may be those that the index lines of a diff name; a line that
// is not there, or is of a new file, names any.
func names(run code.Run, ids []string) bool {
	for i, id := range ids {
		if strings.Trim(id, "0") != "" && !strings.HasPrefix(run.Blobs[i], id) {
			return false
		}
	}
	return true
}

// doneSince is the commit that brought a change, of which the first of runs has it; "" if they do not tell.
func (r reviewer) doneSince(ctx context.Context, in input.Change, runs []code.Run) (since string) {
	for _, run := range runs[:min(len(runs), maxTried)] {
		tree, err := r.Repo.Tree(ctx, run.Newest)
		if err != nil {
			return ""
		}
		if !in.DoneIn(tree) {
			return since
		}
		since = run.Oldest
	}
	if len(runs) > maxTried {
		return ""
	}
	return since
}

// renamed returns what a file that is gone was renamed to, as git sees it: a file that the commit added which
// took it away, of the same content, or more than half of it. "" where there is none, or none any more.
func (r reviewer) renamed(ctx context.Context, base string, tree fs.FS, gone string) string {
	for range 10 { // renamed again and again
		runs, err := r.Repo.Past(ctx, base, []string{gone})
		if err != nil || len(runs) < 2 || runs[0].Blobs[0] != "" || runs[0].Oldest == "" {
			return ""
		}
		before, err1 := r.Repo.Tree(ctx, runs[1].Newest)
		after, err2 := r.Repo.Tree(ctx, runs[0].Oldest)
		_, files, err3 := r.Repo.Drift(ctx, runs[1].Newest, runs[0].Oldest)
		if errors.Join(err1, err2, err3) != nil {
			return ""
		}
		was, _ := patch.Lookup(before, gone)
		best, most := "", 49
		for _, file := range files[:min(len(files), 1000)] {
			old, err1 := patch.Lookup(before, file)
			now, err2 := patch.Lookup(after, file)
			if was == nil || old != nil || now == nil || errors.Join(err1, err2) != nil {
				continue
			}
			if alike := gitpatch.Alike(was.Data, now.Data); alike > most {
				best, most = file, alike
			}
		}
		if best == "" {
			return ""
		}
		if f, err := patch.Lookup(tree, best); f != nil || err != nil {
			return best
		}
		gone = best
	}
	return ""
}

// below returns the one directory of a tree below which a diff fits, "" for none, or where not all are looked at.
func below(in input.Change, tree fs.FS, missing string) string {
	var found []string
	seen, tried := 0, 0
	_ = fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		dir, named := strings.CutSuffix(name, "/"+missing)
		if named = named && err == nil && !e.IsDir(); named {
			tried++
		}
		if seen++; err != nil || seen > maxListed || tried > maxTried {
			found = nil
			return fs.SkipAll
		}
		if !named {
			return nil
		}
		if _, err := in.Below(dir).Resolve(tree); err == nil {
			found = append(found, dir)
		}
		return nil
	})
	if len(found) != 1 {
		return ""
	}
	return found[0]
}
