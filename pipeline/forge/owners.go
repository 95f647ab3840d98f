package forge

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// Owners are the lines of a repository's CODEOWNERS file, which says who owns a path. Nil has none.
//
// The file is read as GitHub documents it ("About code owners"): the first of
// .github/CODEOWNERS, CODEOWNERS and docs/CODEOWNERS; the last line that matches
// a path decides, also where it names nobody; a pattern is a [policy.Glob] in which case
// counts, and whose last component, where it is a * alone, does not reach below
// a directory; a # begins a comment, on a line of its own or after a space; a
// line with a ! pattern, a class in brackets, \# or an owner that is none is
// skipped.
//
// An owner is a gate here, so what GitHub's text leaves open is owned by nobody
// rather than by whom an earlier line names: a pattern with a # inside, or with
// a bracket behind a backslash.
//
// Whether an account exists, and whether it or a team may write, the file does
// not tell; who asks has to look.
type Owners struct{ rules []ownerRule }

type ownerRule struct {
	glob   policy.Glob
	owners []string // as they stand there: @login, @org/team, or an address
}

const (
	mostBytes = 3_000_000 // GitHub loads no file of more than 3 MB
	mostLine  = 60_000    // bytes, so that matching ends in time (T42)
)

// ReadOwners reads the CODEOWNERS file of a tree. Without one nobody owns
// anything. One that is no ordinary file, or cannot be read, is an error: the
// next location is looked at only where there is none.
func ReadOwners(tree fs.FS) (*Owners, error) {
	for _, name := range []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"} {
		found, err := hasFile(tree, name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if !found {
			continue
		}
		raw, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		return ParseOwners(raw)
	}
	return &Owners{}, nil
}

// hasFile goes by what each directory lists, which no link leads astray.
func hasFile(tree fs.FS, name string) (bool, error) {
	entry := func(dir, name string) (fs.DirEntry, error) {
		entries, err := fs.ReadDir(tree, dir)
		i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
		if err != nil || i < 0 {
			return nil, err
		}
		return entries[i], nil
	}
	if dir := path.Dir(name); dir != "." {
		if e, err := entry(".", dir); err != nil || e == nil || !e.IsDir() {
			return false, err
		}
	}
	e, err := entry(path.Dir(name), path.Base(name))
	if err != nil || e == nil {
		return false, err
	}
	if !e.Type().IsRegular() {
		return false, errors.New("it is no ordinary file")
	}
	return true, nil
}

// ParseOwners reads a CODEOWNERS file. Lines that GitHub skips are skipped; a
// file that is too long, or not UTF-8, or has a line that is too long, is an
// error.
func ParseOwners(raw []byte) (*Owners, error) {
	if len(raw) > mostBytes {
		return nil, fmt.Errorf("a CODEOWNERS file of %d bytes, more than %d", len(raw), mostBytes)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("a CODEOWNERS file that is not UTF-8")
	}
	out := &Owners{}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(raw), "\ufeff")) {
		n++
		line = strings.TrimSpace(line)
		if len(line) > mostLine {
			return nil, fmt.Errorf("CODEOWNERS line %d: %d bytes long, more than %d", n, len(line), mostLine)
		}
		pattern, rest := cutPattern(line)
		owners, ok := parseOwners(rest)
		if !ok || isSkipped(pattern) {
			continue
		}
		patterns := []string{pattern}
		if before, _, inside := strings.Cut(pattern, "#"); inside || strings.ContainsAny(pattern, "[]") {
			patterns, owners = []string{before, pattern}, nil // it can be read in two ways
		}
		for _, p := range patterns {
			if g, err := parseGlob(p); err == nil { // else it matches nothing, as an empty component does
				out.rules = append(out.rules, ownerRule{g, owners})
			}
		}
	}
	return out, nil
}

// cutPattern cuts a line at the first space or tab without a backslash before it.
func cutPattern(line string) (pattern, rest string) {
	escaped := false
	for i, c := range line {
		if !escaped && (c == ' ' || c == '\t') {
			return line[:i], line[i:]
		}
		escaped = c == '\\' && !escaped
	}
	return line, ""
}

// isSkipped reports whether GitHub documents that it takes no notice of a line
// with this pattern.
func isSkipped(pattern string) bool {
	if pattern == "" || strings.ContainsRune("#!", rune(pattern[0])) || strings.HasPrefix(pattern, `\#`) || strings.Contains(pattern, "***") {
		return true
	}
	bare := strings.NewReplacer(`\\`, "", `\[`, "", `\]`, "").Replace(pattern)
	return strings.ContainsAny(bare, "[]")
}

// ownerForm is an account, a team, or an address.
var ownerForm = canon.Regexp(`^(@[A-Za-z0-9_-]+|@[A-Za-z0-9-]+/[A-Za-z0-9_-]+|[A-Za-z0-9._%+/-]+@[A-Za-z0-9._%+-]+)$`)

// parseOwners reads what follows a pattern; not ok is an owner that is none.
func parseOwners(rest string) (owners []string, ok bool) {
	rest, _, _ = strings.Cut(rest, "#")
	owners = strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '\t' })
	return owners, !slices.ContainsFunc(owners, func(o string) bool { return !ownerForm().MatchString(o) })
}

// parseGlob reads a pattern of CODEOWNERS.
func parseGlob(pattern string) (policy.Glob, error) {
	g, err := policy.ParseExactGlob(pattern)
	if strings.HasSuffix(pattern, "/*") {
		g = g.Shallow()
	}
	return g, err
}

// Of returns the owners that the last line which matches a path names, as it
// names them. The path is relative to the root, with slashes. None means that
// nobody owns it.
func (c *Owners) Of(path string) []string {
	if c == nil {
		return nil
	}
	for _, r := range slices.Backward(c.rules) {
		if r.glob.Match(path) {
			return r.owners
		}
	}
	return nil
}

// Owns reports whether an account owns a path, itself or in a team that does. An
// address says nothing about accounts. Member reports whether the account is in
// "org/team"; it is asked until one team has it, and its error comes back if none
// has.
func (c *Owners) Owns(path, login string, member func(team string) (bool, error)) (bool, error) {
	owners := c.Of(path)
	isLogin := func(o string) bool { return strings.EqualFold(o, "@"+login) && !strings.Contains(o, "/") }
	if slices.ContainsFunc(owners, isLogin) {
		return true, nil
	}
	var failed error
	for _, o := range owners {
		team, ok := strings.CutPrefix(o, "@")
		if !ok || !strings.Contains(team, "/") {
			continue
		}
		in, err := member(team)
		if in && err == nil {
			return true, nil
		}
		if failed == nil {
			failed = err
		}
	}
	return false, failed
}
