package packfile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxBorrow is how long a chain of repositories that borrow from each other
// may be, as in git itself.
const maxBorrow = 5

// borrow returns an objects directory and those that info/alternates names,
// and that those name (gitrepository-layout(5)).
func borrow(objectsDir string, depth int) ([]string, error) {
	if depth > maxBorrow {
		return nil, fmt.Errorf("%s: objects are borrowed over too many repositories", objectsDir)
	}
	if info, err := os.Stat(objectsDir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("opening the objects in %s: not a directory (%v)", objectsDir, err)
	}
	named, err := alternates(objectsDir)
	if err != nil {
		return nil, fmt.Errorf("reading what objects are borrowed: %w", err)
	}
	out := []string{objectsDir}
	for _, dir := range named {
		below, err := borrow(dir, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

func alternates(objectsDir string) (_ []string, err error) {
	f, err := os.Open(filepath.Join(objectsDir, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var out []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		dir := lines.Text()
		if dir == "" || strings.HasPrefix(dir, "#") {
			continue
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(objectsDir, dir)
		}
		out = append(out, filepath.Clean(dir))
	}
	return out, lines.Err()
}
