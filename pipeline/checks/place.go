package checks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// file copies a regular file. Its size is asked for first, so that one that is
// too large is not read.
func (c *copier) file(dir *os.Root, name string) error {
	info, err := fs.Lstat(c.tree, name)
	switch {
	case err != nil:
		return failure(name, err)
	case !info.Mode().IsRegular():
		return failure(name, errors.New("listed as a file, and is none"))
	case info.Size() > c.left.bytes:
		return failure(name, c.tooLarge())
	}
	data, err := fs.ReadFile(c.tree, name)
	if err == nil {
		err = c.pay(int64(len(data)))
	}
	if err == nil {
		err = write(dir, path.Base(name), data, permissions(info))
	}
	return failure(name, err)
}

func permissions(info fs.FileInfo) fs.FileMode {
	if info.Mode()&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

// write makes a file that was not there, with these permissions whatever the
// umask is.
func write(dir *os.Root, name string, data []byte, perm fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	return errors.Join(err, f.Close())
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
