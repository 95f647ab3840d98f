package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// AttributesFile is the name of the files that attributes are in.
const AttributesFile = ".gitattributes"

// Attributes are what Git's configuration says of the files of a working tree. The
// zero value changes nothing of a file.
type Attributes struct {
	GitDir     string // whose configuration and info/attributes count; "" is a Git without attributes
	AutoCRLF   string // core.autocrlf: "true", "input", or neither
	EOL        string // core.eol, in lower case
	NativeCRLF bool   // lines end in CRLF on this system

	// Filters are the filters that the configuration names a program for. Run runs one on
	// the file at a path; nil where none may be run.
	Filters map[string]Filter
	Run     func(command, path string, in []byte) ([]byte, error)

	file   string // core.attributesFile, where that is relative
	digits int    // of the id of an object; 0 is 40
}

// A Filter is a driver of the attribute "filter": what a shell runs when a file is added
// and when it is checked out, "" for nothing.
type Filter struct {
	Clean, Smudge string
	Required      bool   // nothing is not enough
	Refused       string // why it is not run, "" where it may be
}

// NewAttributes is what a configuration says of the files of a working tree. In a workflow no program
// is run; elsewhere those of the user's and the system's files, which are looked up in path.
func NewAttributes(said []Setting, gitDir, worktree, path string, inWorkflow bool) Attributes {
	c := Attributes{GitDir: gitDir, NativeCRLF: runtime.GOOS == "windows", Filters: drivers(said)}
	inside := false
	for _, s := range said {
		switch s.Key {
		case "core.eol":
			c.EOL = strings.ToLower(s.Value)
		case "core.autocrlf":
			if c.AutoCRLF = strings.ToLower(s.Value); IsTrue(s.Value) {
				c.AutoCRLF = "true"
			}
		case "core.attributesfile":
			if c.file = ""; s.Value != "" && !filepath.IsAbs(s.Value) && !strings.ContainsAny(s.Value[:1], "~%") {
				c.file = filepath.Join(worktree, s.Value)
			}
		case "extensions.objectformat":
			if s.Value == "sha256" {
				c.digits = 64
			}
		case "countersign.filters":
			inside = s.IsUsers() && s.Value == "worktree" || inside && !s.IsUsers()
		}
	}
	if !inWorkflow {
		c.Run = FilterRunner{Worktree: worktree, Inside: inside, Path: path}.Run
	}
	return c
}

// drivers are the filters that the configuration names a program for. One of which it says anything
// that the user's and the system's files do not is refused, and so is one that
// has a long-running program (filter.<name>.process) and no others.
func drivers(said []Setting) map[string]Filter {
	type driver struct {
		Filter
		process string
	}
	all, users := map[string]driver{}, map[string]driver{}
	for _, s := range said {
		name, found := strings.CutPrefix(s.Key, "filter.")
		at := strings.LastIndexByte(name, '.')
		if !found || at < 0 {
			continue
		}
		set := func(of map[string]driver) {
			d := of[name[:at]]
			switch name[at+1:] {
			case "clean":
				d.Clean = s.Value
			case "smudge":
				d.Smudge = s.Value
			case "process":
				d.process = s.Value
			case "required":
				d.Required = IsTrue(s.Value)
			}
			of[name[:at]] = d
		}
		if set(all); s.IsUsers() {
			set(users)
		}
	}
	out := map[string]Filter{}
	for name, d := range all {
		switch {
		case d != users[name]:
			d.Refused = "the repository's own configuration names its program, and only yours may (git config --global)"
		case d.process != "" && (d.Clean == "" || d.Smudge == ""):
			d.Refused = "a long-running program (process) is not run, only clean and smudge are"
		}
		if d.Filter != (Filter{}) {
			out[name] = d.Filter
		}
	}
	return out
}

// AttributeRules are the attributes of one tree. Several goroutines may use them.
type AttributeRules struct {
	config Attributes
	read   func(name string) ([]byte, error)

	mu   sync.Mutex
	said map[string]map[string]string // by path
}

// Rules returns the attributes of a tree, of which read returns a file, nil where
// there is none.
func (c Attributes) Rules(read func(name string) ([]byte, error)) *AttributeRules {
	return &AttributeRules{config: c, read: read, said: map[string]map[string]string{}}
}

// asked are the attributes that count.
var asked = []string{"text", "crlf", "eol", "ident", "filter", "working-tree-encoding"}

// Ask asks git for the attributes of all these files at once, those that are not known.
func (r *AttributeRules) Ask(ctx context.Context, names []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ask(ctx, names)
}

func (r *AttributeRules) ask(ctx context.Context, names []string) error {
	if r.config.GitDir == "" {
		return nil
	}
	var unknown []string
	for _, name := range names {
		if _, known := r.said[name]; !known {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	err := r.checkAttr(ctx, unknown)
	if err != nil {
		err = fmt.Errorf("reading Git's attributes: %w", err)
	}
	return err
}

// checkAttr has git look at a directory in which only the tree's files of attributes are; where
// there are none, at an index that is not there.
func (r *AttributeRules) checkAttr(ctx context.Context, names []string) error {
	files, err := r.files(names)
	if err != nil {
		return err
	}
	dir, from := r.config.GitDir, []string{"check-attr", "--cached", "-z", "--stdin"}
	if len(files) > 0 {
		if dir, err = lay(files); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		from = []string{"check-attr", "-z", "--stdin"}
	}
	c := Command{
		Dir: dir, Args: append(from, asked...), Stdin: strings.NewReader(strings.Join(names, "\x00") + "\x00"),
		Env: []string{"GIT_DIR=" + r.config.GitDir, "GIT_WORK_TREE=" + dir, "GIT_INDEX_FILE=" + filepath.Join(dir, "countersign", "no index")},
	}.Set("attr.tree", "") // git 2.43 would read that in place of the files
	if r.config.file != "" {
		c = c.Set("core.attributesFile", r.config.file)
	}
	out, err := c.Output(ctx)
	if err != nil {
		return err
	}
	fields := strings.Split(out, "\x00") // and one that is empty
	if len(fields) != 3*len(asked)*len(names)+1 {
		return fmt.Errorf("git check-attr answered %d fields for %d files", len(fields), len(names))
	}
	for i, name := range names {
		said := map[string]string{}
		for j, attribute := range asked {
			at := 3 * (i*len(asked) + j)
			if fields[at] != name || fields[at+1] != attribute {
				return fmt.Errorf("git check-attr answered for %q and %s, and was asked for %q and %s", fields[at], fields[at+1], name, attribute)
			}
			if fields[at+2] != "unspecified" {
				said[attribute] = fields[at+2]
			}
		}
		r.said[name] = said
	}
	return nil
}

// files are the tree's files of attributes that these paths lead by.
func (r *AttributeRules) files(names []string) (map[string][]byte, error) {
	files, done := map[string][]byte{}, map[string]bool{}
	for _, name := range names {
		for at := path.Dir(name); !done[at]; at = path.Dir(at) {
			done[at] = true
			data, err := r.read(path.Join(at, AttributesFile))
			if err != nil {
				return nil, err
			}
			if data != nil {
				files[path.Join(at, AttributesFile)] = data
			}
		}
	}
	return files, nil
}

// lay writes files into a new directory.
func lay(files map[string][]byte) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "countersign-attributes-"); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer root.Close()
	}
	for name, data := range files {
		if err == nil {
			err = root.MkdirAll(path.Dir(name), 0o700)
		}
		if err == nil {
			err = root.WriteFile(name, data, 0o600)
		}
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return dir, err
}
