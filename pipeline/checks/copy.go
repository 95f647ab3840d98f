package checks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
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

// Copy writes a commit's tree into dir, which is there and empty. Files have
// their bytes as the commit has them, whatever .gitattributes says, and mode
// 0644 or 0755. A submodule is an empty directory. An entry that Git would
// take for its own (.git) is refused: nothing in the tree may configure it.
//
// Nothing is written outside dir: every access goes through an os.Root, and
// links are made when all files are there, so that none is written through.
// Where links point to is not looked at. At most 500,000 entries, 256
// directories deep, and 4 GiB are copied; more is an error, as is a name or a
// kind of file that the platform does not have. After an error, dir holds a
// part of the tree.
func Copy(tree fs.FS, dir string) error {
	return copyTree(context.Background(), tree, dir, copyLimits)
}

func copyTree(ctx context.Context, tree fs.FS, dir string, max limits) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("copying the tree: %w", err)
	}
	defer root.Close()
	if err := empty(root); err != nil {
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

func empty(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err == nil && len(entries) > 0 {
		err = errors.New("the directory for the copy is not empty")
	}
	return err
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
		if err := c.spend(); err != nil {
			return err
		}
		if err := c.entry(dir, path.Join(name, e.Name()), e, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) spend() error {
	if c.left.entries--; c.left.entries < 0 {
		return fmt.Errorf("it has more than %d files and directories", c.max.entries)
	}
	return c.ctx.Err()
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
		return c.below(dir, name, depth)
	case fs.ModeIrregular: // a submodule, as Git leaves it when it is not initialised
		return failure(name, dir.Mkdir(e.Name(), 0o755))
	}
	return failure(name, errors.New("neither a file, a link, a directory nor a submodule"))
}

// below copies a directory inside another. It is new: Mkdir refuses what is
// there already, under this name or one that the file system takes for it.
func (c *copier) below(dir *os.Root, name string, depth int) error {
	if err := dir.Mkdir(path.Base(name), 0o755); err != nil {
		return failure(name, err)
	}
	sub, err := dir.OpenRoot(path.Base(name))
	if err != nil {
		return failure(name, err)
	}
	defer sub.Close()
	return c.directory(sub, name, depth+1)
}
