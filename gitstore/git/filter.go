package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What one run may take, and how much of what it complains about is told.
const (
	maxFilterTime = 2 * time.Minute
	maxPrinted    = 100 << 20
	maxTold       = 200
)

// A FilterRunner runs filters for the files of a working tree: a command of the user's or the
// system's configuration is given a file and prints what becomes of it. Who calls says which
// configuration a command is from (T84).
//
// Git runs them at the top of the working tree. Here they run in an empty directory, where
// nothing that a repository holds can be taken for a program, and no repository is found
// whose configuration they would read; unless the user's configuration says that they are
// to run where Git runs them. Either way what is in the working tree is no program of PATH,
// and this program's own variables, and a forge's, are not handed on.
type FilterRunner struct {
	Worktree string // its top
	Inside   bool   // filters run there
	Path     string // the PATH that programs are looked up in
}

// Run gives a file's content to a command, in which %f stands for its path in the working
// tree, and returns what it prints. The error of a command that fails is one line of
// visible characters.
func (r FilterRunner) Run(command, path string, in []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), maxFilterTime)
	defer cancel()
	folders := r.folders()
	shell := find("sh", folders)
	if shell == "" {
		return nil, errors.New("there is no sh to run it with")
	}
	cmd := exec.CommandContext(ctx, shell, "-c", expand(command, path))
	cmd.WaitDelay = time.Second
	cmd.Dir = r.Worktree
	cmd.Env = append(slices.DeleteFunc(cmd.Environ(), isPrivate), "PATH="+strings.Join(folders, string(os.PathListSeparator)))
	if !r.Inside {
		empty, err := os.MkdirTemp("", "countersign-filter-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(empty)
		cmd.Dir = empty
		cmd.Env = append(cmd.Env, "GIT_DIR="+os.DevNull)
	}
	var out, told bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &capped{&out, maxPrinted, true}, &capped{&told, maxTold, false}
	err := cmd.Run()
	switch {
	case out.Len() >= maxPrinted:
		return nil, fmt.Errorf("it prints more than %d MiB", maxPrinted>>20)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it takes longer than %s", maxFilterTime)
	case err != nil && told.Len() > 0:
		err = fmt.Errorf("%w: %+q", err, strings.TrimSpace(told.String()))
	}
	if err != nil && !r.Inside {
		err = fmt.Errorf("%w; it runs outside the repository, unless your countersign.filters is worktree", err)
	}
	return out.Bytes(), err
}

// expand puts a path, quoted for the shell, in place of %f, and % in place of %%.
func expand(command, path string) string {
	quoted := "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
	return strings.NewReplacer("%%", "%", "%f", quoted).Replace(command)
}

// folders are those of PATH that are named in full and outside the working tree, also
// where links lead.
func (r FilterRunner) folders() (out []string) {
	tree, err := filepath.EvalSymlinks(r.Worktree)
	if err != nil {
		return nil
	}
	for _, dir := range filepath.SplitList(r.Path) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil && filepath.IsAbs(dir) && !within(tree, real) && !within(r.Worktree, dir) {
			out = append(out, dir)
		}
	}
	return out
}

func within(folder, file string) bool {
	inside, err := filepath.Rel(folder, file)
	return err != nil || inside != ".." && !strings.HasPrefix(inside, ".."+string(filepath.Separator))
}

// find is the first program of a name in folders, "" for none.
func find(name string, folders []string) string {
	for _, dir := range folders {
		if program, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return program
		}
	}
	return ""
}

// isPrivate reports whether a variable is not for a filter: our own and those of a forge's
// job, which may hold tokens; what says where a repository is, or what its configuration
// is; and PATH, which is given anew.
func isPrivate(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	for _, prefix := range []string{"COUNTERSIGN_", "GITHUB_", "ACTIONS_", "INPUT_", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"PATH", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_PREFIX"}, name)
}

// capped takes what there is room for. What is more is an error, or forgotten.
type capped struct {
	to   *bytes.Buffer
	room int
	full bool // more is an error
}

func (l *capped) Write(p []byte) (int, error) {
	fits := p[:min(len(p), l.room)]
	l.to.Write(fits)
	l.room -= len(fits)
	if l.full && len(fits) < len(p) {
		return len(fits), io.ErrShortWrite
	}
	return len(p), nil
}
