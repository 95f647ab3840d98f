package patch

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"slices"
)

// A Tree reads files of a base once each. It is for one goroutine, as the base
// need not be safe for more.
type Tree struct {
	base  fs.FS
	dirs  map[string]fs.FileMode
	files map[string]*File
}

// NewTree returns a Tree of a base.
func NewTree(base fs.FS) *Tree { return &Tree{base, map[string]fs.FileMode{}, map[string]*File{}} }

// Lookup is File of one path.
func Lookup(base fs.FS, path string) (*File, error) { return NewTree(base).File(path) }

// File returns a regular file, nil if there is none at the path. A link or a
// submodule at the path or above it is an *Error.
func (t *Tree) File(path string) (*File, error) {
	if f, known := t.files[path]; known {
		return f, nil
	}
	f, err := t.read(path)
	if err == nil {
		t.files[path] = f
	}
	return f, err
}

func (t *Tree) read(path string) (*File, error) {
	info, err := t.Stat(path)
	var why *Error
	switch {
	case errors.As(err, &why):
		return nil, &Error{Path: path, Message: why.Message, Try: "leave it out: only regular files can be proposed"}
	case err != nil || info == nil:
		return nil, err
	}
	data, err := fs.ReadFile(t.base, path)
	if err != nil {
		return nil, err
	}
	return &File{Mode: ModeOf(info), Data: data}, nil
}

// Stat describes the regular file at a path, nil if there is none. A link or a submodule
// at the path or above it is an error.
func (t *Tree) Stat(path string) (fs.FileInfo, error) {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		switch mode, err := t.dirMode(path[:i]); {
		case err != nil:
			return nil, err
		case mode == nothing || mode.IsRegular():
			return nil, nil
		case !mode.IsDir():
			return nil, &Error{Message: "is under a symbolic link or submodule"}
		}
	}
	info, err := fs.Lstat(t.base, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, nil
	case !info.Mode().IsRegular():
		return nil, &Error{Message: "is a symbolic link or submodule"}
	}
	return info, nil
}

// nothing stands for a path that does not exist.
const nothing = fs.ModeIrregular | fs.ModeDir

// dirMode is the type of what stands above some path.
func (t *Tree) dirMode(dir string) (fs.FileMode, error) {
	if mode, known := t.dirs[dir]; known {
		return mode, nil
	}
	mode := nothing
	info, err := fs.Lstat(t.base, dir)
	switch {
	case err == nil:
		mode = info.Mode().Type()
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	t.dirs[dir] = mode
	return mode, nil
}

// ModeOf is the mode of a regular file.
func ModeOf(info fs.FileInfo) Mode {
	if info.Mode()&0o111 != 0 {
		return Executable
	}
	return Regular
}

// checkCollisions refuses a change after which two names in one directory
// differ only by case or Unicode normalisation, or a path is both a file and a
// directory. Only directories on the way to an added path are looked at.
func checkCollisions(base fs.FS, changes []Change) error {
	c := collider{
		base: base, gone: map[string]bool{}, thinned: map[string]bool{},
		names: map[string]map[string]string{}, files: map[string]bool{},
	}
	for _, ch := range changes {
		if ch.After != nil {
			continue
		}
		c.gone[ch.Path] = true
		for i := range len(ch.Path) {
			if ch.Path[i] == '/' {
				c.thinned[ch.Path[:i]] = true
			}
		}
	}
	for _, ch := range changes {
		if ch.Before != nil || ch.After == nil {
			continue
		}
		dir, start := ".", 0
		for i := range len(ch.Path) {
			if ch.Path[i] != '/' {
				continue
			}
			if err := c.place(dir, ch.Path[start:i], ch.Path, false); err != nil {
				return err
			}
			dir, start = ch.Path[:i], i+1
		}
		c.files[ch.Path] = true
		if err := c.place(dir, ch.Path[start:], ch.Path, true); err != nil {
			return err
		}
	}
	return nil
}

type collider struct {
	base    fs.FS
	gone    map[string]bool              // paths the change removes
	thinned map[string]bool              // directories above them
	names   map[string]map[string]string // directory → folded name → name
	files   map[string]bool              // added paths
}

// place puts one component of an added path into its directory.
func (c *collider) place(dir, name, path string, last bool) error {
	names, err := c.listing(dir)
	if err != nil {
		return err
	}
	full := join(dir, name)
	other, taken := names[FoldName(name)]
	switch {
	case taken && other != name:
		return &Error{Path: path, Message: "collides with " + Quote(join(dir, other)) + " where case or Unicode form is ignored", Try: "rename one of the two: on some systems they are one file"}
	case taken && last:
		return &Error{Path: path, Message: "is a directory after the patch", Try: "delete in the same patch what is in the way"}
	case taken && c.isFile(full):
		return &Error{Path: path, Message: Quote(full) + " is a file, not a directory", Try: "delete in the same patch what is in the way"}
	}
	names[FoldName(name)] = name
	return nil
}

func (c *collider) isFile(full string) bool {
	if c.files[full] {
		return true
	}
	info, err := fs.Lstat(c.base, full)
	return err == nil && !info.IsDir() && !c.gone[full]
}

// listing is what the base directory still holds after the change's removals.
func (c *collider) listing(dir string) (map[string]string, error) {
	if names, ok := c.names[dir]; ok {
		return names, nil
	}
	names := map[string]string{}
	c.names[dir] = names
	entries, err := fs.ReadDir(c.base, dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return names, nil
	}
	if info, statErr := fs.Lstat(c.base, dir); err != nil && statErr == nil && !info.IsDir() {
		return names, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		stays, err := c.stays(join(dir, e.Name()), e)
		if err != nil {
			return nil, err
		}
		if stays {
			names[FoldName(e.Name())] = e.Name()
		}
	}
	return names, nil
}

// stays reports whether anything is left at a base path after the removals.
func (c *collider) stays(path string, e fs.DirEntry) (bool, error) {
	if !e.IsDir() {
		return !c.gone[path], nil
	}
	if !c.thinned[path] {
		return true, nil
	}
	entries, err := fs.ReadDir(c.base, path)
	if err != nil {
		return false, err
	}
	for _, child := range entries {
		if stays, err := c.stays(join(path, child.Name()), child); stays || err != nil {
			return stays, err
		}
	}
	return false, nil
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// ErrUnchanged is the *Error of a patch that changes nothing.
var ErrUnchanged error = &Error{Message: "the patch changes nothing"}

// Between makes the Patchset that turns the files of the base into after: the
// content of each path afterwards, nil for a path that is gone. Paths that end
// as they began are left out; nothing changed at all is an *Error.
func (t *Tree) Between(after map[string]*File) (Patchset, error) {
	var changes []Change
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if err := CheckPath(path); err != nil {
			return Patchset{}, err
		}
		before, err := t.File(path)
		if err != nil {
			return Patchset{}, err
		}
		if c := (Change{Path: path, Before: before, After: after[path]}); !before.Equal(c.After) {
			switch {
			case c.Before == nil:
				c.Kind = Add
			case c.After == nil:
				c.Kind = Delete
			default:
				c.Kind = Update
			}
			changes = append(changes, c)
		}
	}
	if len(changes) == 0 {
		return Patchset{}, ErrUnchanged
	}
	if err := checkCollisions(t.base, changes); err != nil {
		return Patchset{}, err
	}
	return newPatchset(pairRenames(changes)), nil
}

// pairRenames finds the renames. Walking the added paths in order, each is
// paired with the first deleted path of identical content.
func pairRenames(changes []Change) []Change {
	gone := map[[sha256.Size]byte][]int{} // the deletions of a content, in path order
	for i, c := range changes {
		if c.Kind == Delete {
			sum := sha256.Sum256(c.Before.Data)
			gone[sum] = append(gone[sum], i)
		}
	}
	if len(gone) == 0 {
		return changes
	}
	paired := map[int]bool{}
	for i := range changes {
		c := &changes[i]
		if c.Kind != Add {
			continue
		}
		sum := sha256.Sum256(c.After.Data)
		if from := gone[sum]; len(from) > 0 {
			gone[sum], paired[from[0]] = from[1:], true
			c.Kind, c.From, c.Before = Rename, changes[from[0]].Path, changes[from[0]].Before
		}
	}
	var out []Change
	for i, c := range changes {
		if !paired[i] {
			out = append(out, c)
		}
	}
	return out
}
