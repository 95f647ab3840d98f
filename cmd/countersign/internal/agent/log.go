package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// beganFile was written when the program was started last: what is older is of other runs, by the file system's own clock.
const beganFile = "began"

// Logs are the files that the profile's log can be, of those written since the program was started, the newest first: a directory, and
// names below it. Sessions of the person's own may be among them, and the program can have made anything of its own.
func (t *Tree) Logs(p Profile, home string) (dir string, names []string, err error) {
	began, err := os.Stat(filepath.Join(t.dir, beganFile))
	if err != nil || p.Log == "" {
		return "", nil, err
	}
	dir, pattern := t.logs(p, home)
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	found, err := fs.Glob(root.FS(), pattern)
	if err != nil {
		return "", nil, err
	}
	written := map[string]fs.FileInfo{}
	for _, name := range found {
		if info, err := root.Lstat(name); err == nil && !info.ModTime().Before(began.ModTime()) {
			written[name] = info
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return written[b].ModTime().Compare(written[a].ModTime()) })
	return dir, names, nil
}

// logs are where a profile's logs are, and their pattern there: in the person's home where that lends the directory, else in the program's own.
func (t *Tree) logs(p Profile, home string) (dir, pattern string) {
	for _, name := range p.Write {
		below, is := strings.CutPrefix(p.Log, name+"/")
		if real, err := filepath.EvalSymlinks(filepath.Join(home, name)); is && err == nil && filepath.IsAbs(home) {
			return real, below
		}
	}
	return t.home(), p.Log
}
