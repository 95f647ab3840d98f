package main

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/report"
)

// A thread is the directories that a client works in: roots, to which its
// proposals keep, and cwd, where its relative paths begin; all from the top of
// the repository, with slashes. It is nothing else, so that its id says it all
// and nothing has to be kept.
//
//	thread?cwd=.&root=.
type thread struct {
	roots []string // sorted, each once
	cwd   string
}

const threadPrefix = "thread?"

func (t thread) id() string {
	return threadPrefix + url.Values{"cwd": {t.cwd}, "root": t.roots}.Encode()
}

// everything is the thread of the whole repository.
var everything = thread{[]string{"."}, "."}

type threadParams struct {
	WorkspaceRoots []string `json:"workspaceRoots"`
	CWD            string   `json:"cwd,omitempty"`
}

func (c *call) threadStart(_ context.Context, p threadParams) (any, error) {
	t, err := c.newThread(p.WorkspaceRoots, p.CWD)
	if err != nil {
		return nil, err
	}
	c.told.opened(t)
	return c.showThread(t), nil
}

func (c *call) threadList(context.Context, struct{}) (any, error) {
	out := []any{}
	for _, t := range c.told.threads() {
		out = append(out, c.showThread(t))
	}
	return map[string]any{"threads": out}, nil
}

func (c *call) showThread(t thread) any {
	return map[string]any{"threadId": t.id(), "workspaceRoots": c.at(t.roots...), "cwd": c.at(t.cwd)[0]}
}

// newThread checks the paths of a client: each must be absolute, and a
// directory of this repository, whatever links lead there.
func (s *service) newThread(roots []string, cwd string) (thread, error) {
	if len(roots) == 0 {
		return thread{}, &usageError{"no workspace root was given", ""}
	}
	var t thread
	for _, root := range roots {
		inside, err := s.inside(root)
		if err != nil {
			return thread{}, err
		}
		t.roots = append(t.roots, inside)
	}
	var err error
	if t.cwd, err = s.inside(firstOf(cwd, roots[0])); err != nil {
		return thread{}, err
	}
	if !within(t.cwd, t.roots) {
		return thread{}, &usageError{fmt.Sprintf("%s is in none of the workspace roots", report.Clean(cwd)), ""}
	}
	slices.Sort(t.roots)
	t.roots = slices.Compact(t.roots)
	return t, nil
}

// inside is a directory of the repository as a path from its top.
func (s *service) inside(dir string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", &usageError{fmt.Sprintf("%s %s", report.Clean(dir), why), ""}
	}
	if !filepath.IsAbs(dir) {
		return refuse("is not an absolute path")
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return refuse("is no directory that can be read")
	}
	rel, err := filepath.Rel(s.root, real)
	if err != nil || !filepath.IsLocal(rel) {
		return refuse("is not in the repository " + s.root)
	}
	rel = filepath.ToSlash(rel)
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return refuse("is no directory that can be read")
	}
	if rel != "." && patch.CheckPath(rel) != nil {
		return refuse("is no place for files that can be proposed")
	}
	return rel, nil
}

// thread reads a thread's id, and checks anew what it says.
func (s *service) thread(id string) (thread, error) {
	query, ok := strings.CutPrefix(id, threadPrefix)
	said, err := url.ParseQuery(query)
	if !ok || err != nil {
		return thread{}, &usageError{"threadId is not one that thread/start gave", ""}
	}
	t, err := s.newThread(s.at(said["root"]...), s.at(said.Get("cwd"))[0])
	if err == nil && t.id() != id {
		err = &usageError{"threadId is not one that thread/start gave", ""}
	}
	return t, err
}

// within reports whether a path is one of these directories, or below one.
func within(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
	})
}

// keepTo refuses a change that touches files outside of these directories.
func keepTo(in pipeline.Input, dirs []string) pipeline.Input {
	resolve := in.Resolve
	in.Resolve = func(base fs.FS) (patch.Patchset, error) {
		set, err := resolve(base)
		if err != nil {
			return set, err
		}
		for _, f := range set.Files() {
			if !within(f.Path, dirs) {
				return patch.Patchset{}, &patch.Error{Path: f.Path, Message: "is outside of where this turn may write"}
			}
		}
		return set, nil
	}
	return in
}

// files are a client's paths, which begin in cwd, from the top of the
// repository. Those that do not are refused further on.
func (t thread) files(names []string) []string {
	var out []string
	for _, name := range names {
		if !path.IsAbs(name) {
			name = path.Join(t.cwd, name)
		}
		out = append(out, name)
	}
	return out
}
