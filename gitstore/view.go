package gitstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// A View is a repository as it would be: its objects with others beside them, and refs of its own.
type View struct {
	Beside []string          // more directories of objects, such as that of a push
	Head   string            // the ref that HEAD is on
	Refs   map[string]string // commits by full name
}

// View makes a bare repository in an empty directory, which borrows the objects of this one.
func (r *Repo) View(dir string, v View) error {
	var objects, refs []string
	for _, of := range append([]string{r.gitObjects(), r.ownObjects()}, v.Beside...) {
		if of == r.ownObjects() && !isDir(of) {
			continue
		}
		if !filepath.IsAbs(of) || strings.ContainsAny(of, "\n\r") {
			return fmt.Errorf("objects cannot be borrowed from %+q", of)
		}
		objects = append(objects, filepath.ToSlash(of)+"\n")
	}
	for name, id := range v.Refs {
		if _, err := refName(name); err != nil {
			return err
		}
		refs = append(refs, r.name(id)+" "+name+"\n")
	}
	slices.SortFunc(refs, func(a, b string) int { return strings.Compare(a[strings.Index(a, " "):], b[strings.Index(b, " "):]) })
	config := "[core]\n\tbare = true\n\trepositoryFormatVersion = 0\n"
	if r.objects.Format == packfile.SHA256 {
		config = "[core]\n\tbare = true\n\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n"
	}
	for _, below := range []string{"refs", "objects/info"} {
		if err := os.MkdirAll(filepath.Join(dir, below), 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"HEAD": "ref: " + v.Head + "\n", "config": config, "packed-refs": strings.Join(refs, ""), "objects/info/alternates": strings.Join(objects, "")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func isDir(name string) bool {
	at, err := os.Stat(name)
	return err == nil && at.IsDir()
}

// HeadRef is the full name of the ref that HEAD is on, which need not be there.
func (r *Repo) HeadRef() (string, error) {
	head, err := r.branch()
	return head.String(), err
}

// RefsAmong returns the commits of refs that have one of these names, or are below it. One that is symbolic, or damaged, is an error.
func (r *Repo) RefsAmong(names ...string) (map[string]string, error) {
	refs, err := r.refs(names...)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, at := range refs {
		if at.err != nil {
			return nil, at.err
		}
		out[name] = at.id.String()
	}
	return out, nil
}

// Has reports whether a commit is here.
func (r *Repo) Has(commit string) (bool, error) {
	_, err := readCommit(r.objects, r.id(commit))
	return err == nil, missingIsNil(err)
}

// Newer are the commits that one has and another has not, but most at most, in the order of CommitsBetween; and of these those
// by first parents, the oldest first, which follow on the other one directly if grows says so.
func (r *Repo) Newer(ctx context.Context, since, commit string, most int) (all, line []string, grows bool, err error) {
	out, cut, err := r.history(ctx, "rev-list", "--parents", fmt.Sprintf("--max-count=%d", most), r.name(commit), "^"+r.name(since))
	if err == nil && cut != "" {
		err = &CutOffError{cut}
	}
	first := map[string]string{}
	for said := range strings.Lines(out) {
		ids := append(strings.Fields(said), "")
		first[ids[0]] = ids[1]
		all = append(all, ids[0])
	}
	next := commit
	for id, is := first[next]; is; id, is = first[next] {
		line, next = append(line, next), id
	}
	slices.Reverse(line)
	return all, line, next == since, err
}

// Peeled is the commit that an object is, or that a tag names; "" for an object of another kind.
func (r *Repo) Peeled(id string) (string, error) {
	at, kind, err := r.peel(r.id(id))
	if err != nil || kind != plumbing.CommitObject {
		return "", err
	}
	return at.String(), nil
}
