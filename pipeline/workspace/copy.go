package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// limits bound a copy. A tree of a few objects can name more files than any
// disk holds.
type limits struct {
	entries int   // files, links and directories
	bytes   int64 // of all files and links together
	depth   int   // directories inside each other
}

// copyLimits leave room for the largest public repositories.
var copyLimits = limits{entries: 500_000, bytes: 4 << 30, depth: 256}

// copyTree writes a commit's tree into dir, which is there and empty. Files have
// their bytes as the commit has them, whatever .gitattributes says, and mode
// 0644 or 0755. A submodule is an empty directory. An entry that Git would
// take for its own (.git) is refused: nothing in the tree may configure it.
//
// Nothing is written outside dir: every access goes through an os.Root, and
// links are made when all files are there, so that none is written through.
// Where links point to is not looked at. At most 500,000 entries, 256
// directories deep, and 4 GiB (copyLimits) are copied; more is an error, as is a name or a
// kind of file that the platform does not have. After an error, dir holds a
// part of the tree.
func copyTree(ctx context.Context, tree fs.FS, dir string, max limits) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("copying the tree: %w", err)
	}
	defer root.Close()
	there, err := fs.ReadDir(root.FS(), ".")
	if err == nil && len(there) > 0 {
		err = errors.New("the directory for the copy is not empty")
	}
	if err != nil {
		return fmt.Errorf("copying the tree: %w", err)
	}
	c := &copier{ctx: ctx, tree: tree, max: max, left: max}
	if err := c.directory(root, ".", 0); err != nil {
		return fmt.Errorf("copying the tree: %w", err)
	}
	for _, l := range c.links {
		if err := root.Symlink(l.target, l.name); err != nil {
			return fmt.Errorf("copying the tree: %w", failure(l.name, err))
		}
	}
	return nil
}

// A copier holds what is left of the limits, and the links that are still to be
// made.
type copier struct {
	ctx       context.Context
	tree      fs.FS
	max, left limits
	links     []link
}

type link struct{ name, target string }

// directory copies one directory into dir, a handle to its copy.
func (c *copier) directory(dir *os.Root, name string, depth int) error {
	if depth > c.max.depth {
		return failure(name, fmt.Errorf("more than %d directories deep", c.max.depth))
	}
	entries, err := fs.ReadDir(c.tree, name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if c.left.entries--; c.left.entries < 0 {
			return fmt.Errorf("it has more than %d files and directories", c.max.entries)
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.entry(dir, path.Join(name, e.Name()), e, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) entry(dir *os.Root, name string, e fs.DirEntry, depth int) error {
	if err := checkName(e.Name()); err != nil {
		return failure(name, err)
	}
	switch e.Type() {
	case 0:
		return c.file(dir, name)
	case fs.ModeSymlink:
		return c.link(name)
	case fs.ModeDir:
		// It is new: Mkdir refuses what is there already, under this name or one that
		// the file system takes for it.
		if err := dir.Mkdir(e.Name(), 0o755); err != nil {
			return failure(name, err)
		}
		sub, err := dir.OpenRoot(e.Name())
		if err != nil {
			return failure(name, err)
		}
		defer sub.Close()
		return c.directory(sub, name, depth+1)
	case fs.ModeIrregular: // a submodule, as Git leaves it when it is not initialised
		return failure(name, dir.Mkdir(e.Name(), 0o755))
	}
	return failure(name, errors.New("neither a file, a link, a directory nor a submodule"))
}

// file copies a regular file, with permissions of its own whatever the umask is.
// Its size is asked for first, so that one that is too large is not read.
func (c *copier) file(dir *os.Root, name string) error {
	info, err := fs.Lstat(c.tree, name)
	switch {
	case err != nil:
		return failure(name, err)
	case !info.Mode().IsRegular():
		return failure(name, errors.New("listed as a file, but is not one"))
	case info.Size() > c.left.bytes:
		return failure(name, c.tooLarge())
	}
	data, err := fs.ReadFile(c.tree, name)
	if err != nil {
		return failure(name, err)
	}
	if err := c.pay(int64(len(data))); err != nil {
		return failure(name, err)
	}
	perm := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		perm = 0o755
	}
	f, err := dir.OpenFile(path.Base(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return failure(name, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	return failure(name, errors.Join(err, f.Close()))
}

// link notes a link for the end of the copy.
func (c *copier) link(name string) error {
	target, err := fs.ReadLink(c.tree, name)
	if err == nil {
		err = c.pay(int64(len(target)))
	}
	if err == nil && (target == "" || strings.ContainsRune(target, 0)) {
		err = errors.New("it points to what cannot be a path")
	}
	c.links = append(c.links, link{name, target})
	return failure(name, err)
}

func (c *copier) pay(size int64) error {
	if c.left.bytes -= size; c.left.bytes < 0 {
		return c.tooLarge()
	}
	return nil
}

func (c *copier) tooLarge() error {
	return fmt.Errorf("with it, the files have more than %d bytes", c.max.bytes)
}

// failure says of which path an error is, without the system's own, longer
// name for it.
func failure(name string, err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	return fmt.Errorf("%+q: %w", name, err)
}

// checkName reports whether a name from a tree can be one of a file in the copy.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsRune(name, '/') {
		return errors.New("not a file name")
	}
	if _, err := filepath.Localize(name); err != nil {
		return errors.New("not a file name on this platform")
	}
	if isDotGit(name) {
		return errors.New("a name that Git takes for its own directory")
	}
	return nil
}

// isDotGit reports whether a file system may read a name as .git: in any letter
// case, with characters that HFS+ ignores, with the dots, spaces and stream
// names that Windows drops, or in its short form.
func isDotGit(name string) bool {
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	return name == ".git" || name == "git~1"
}
