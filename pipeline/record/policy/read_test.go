package policy_test

import (
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// broken fails to open one name.
type broken struct {
	fs.FS
	name string
}

func (b broken) Open(name string) (fs.File, error) {
	if name == b.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("input/output error")}
	}
	return b.FS.Open(name)
}

// TestRead: a tree without the file has the default; whatever else keeps it
// from being read is an error, and no Policy comes with it.
func TestRead(t *testing.T) {
	link := &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte("other.yml")}
	whole := fstest.MapFS{policy.Path: file("approvals: {required: 2}")}
	for name, c := range map[string]struct {
		tree fs.FS
		want string // "default", "2", or part of the error
	}{
		"empty tree":        {fstest.MapFS{}, "default"},
		"no .github":        {fstest.MapFS{"a": file("")}, "default"},
		"another file":      {fstest.MapFS{".github/x.yml": file("")}, "default"},
		"the file":          {whole, "2"},
		"a directory":       {fstest.MapFS{policy.Path + "/x": file("")}, "is a directory, not a file"},
		"a link":            {fstest.MapFS{policy.Path: link, ".github/other.yml": file("version: 1")}, "is a link, not a file"},
		".github is a file": {fstest.MapFS{".github": file("")}, ".github is a file, not a directory"},
		".github is a link": {fstest.MapFS{".github": link, "other.yml/countersign.yml": file("version: 1")}, ".github is a link"},
		"yaml":              {fstest.MapFS{".github/countersign.yaml": file("version: 1")}, "countersign.yaml: the Policy is .github/countersign.yml"},
		"upper case":        {fstest.MapFS{".GitHub/countersign.yml": file("version: 1")}, ".GitHub: the Policy is"},
		"upper case file":   {fstest.MapFS{".github/Countersign.YML": file("version: 1")}, "Countersign.YML: the Policy is"},
		"both spellings":    {fstest.MapFS{policy.Path: whole[policy.Path], ".github/countersign.yaml": file("x")}, "2"},
		"wrong":             {fstest.MapFS{policy.Path: file("version: 0")}, ".github/countersign.yml:1:10: version: is 0"},
		"empty":             {fstest.MapFS{policy.Path: file("")}, "the file is empty"},
		"no root":           {broken{whole, "."}, "reading the Policy: open .: input/output error"},
		"no directory":      {broken{whole, ".github"}, "reading the Policy: open .github: input/output error"},
		"no content":        {broken{whole, policy.Path}, "reading the Policy: open .github/countersign.yml: input/output error"},
	} {
		p, found, err := policy.Read(c.tree)
		switch {
		case c.want == "default":
			if err != nil || found || !reflect.DeepEqual(p, policy.Default()) {
				t.Errorf("%s: %v, %v, %s", name, err, found, p.JSON())
			}
		case c.want == "2":
			if err != nil || !found || p.Approvals.Required != 2 {
				t.Errorf("%s: %v, %v, %s", name, err, found, p.JSON())
			}
		case err == nil || found || !strings.Contains(err.Error(), c.want) || !reflect.DeepEqual(p, policy.Policy{}):
			t.Errorf("%s: %v, want %s; %v %+v", name, err, c.want, found, p)
		}
	}
}

// TestT73ReadKeys: the file of keys is the one that the Policy names, beside it, and
// an ordinary file, or there is none.
func TestT73ReadKeys(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("keys"), Mode: 0o644}
	for name, c := range map[string]struct {
		keys string
		tree fstest.MapFS
		want string
	}{
		"there":         {".github/k", fstest.MapFS{".github/k": file}, ""},
		"not named":     {"", fstest.MapFS{".github/k": file}, "names no file"},
		"missing":       {".github/k", fstest.MapFS{".github/l": file}, "there is no file .github/k"},
		"in other case": {".github/k", fstest.MapFS{".github/K": file}, "there is no file"},
		"a directory":   {".github/k", fstest.MapFS{".github/k/x": file}, "there is no file"},
		"a link":        {".github/k", fstest.MapFS{".github/k": &fstest.MapFile{Data: []byte("l"), Mode: fs.ModeSymlink | 0o777}, ".github/l": file}, "symbolic link"},
		"below a link":  {"a/k", fstest.MapFS{"a": &fstest.MapFile{Data: []byte("b"), Mode: fs.ModeSymlink | 0o777}, "b/k": file}, "symbolic link"},
		"too long":      {"k", fstest.MapFS{"k": &fstest.MapFile{Data: make([]byte, 1<<20+1), Mode: 0o644}}, "more than"},
	} {
		p := policy.Default()
		p.Approvals.Keys = c.keys
		raw, err := p.ReadKeys(c.tree)
		if (err == nil) != (c.want == "") || err == nil && string(raw) != "keys" || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
}
