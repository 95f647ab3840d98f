package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// attributed are attributes, each of which a directory of the matrix has.
var attributed = []string{
	"", "text", "-text", "binary", "text=auto", "eol=crlf", "eol=lf", "text=auto eol=crlf", "ident", "text eol=crlf ident",
	"working-tree-encoding=UTF-16", "text eol=crlf working-tree-encoding=UTF-16LE", "filter=unknown",
}

// blobs makes a commit's tree of what is staged, and of these blobs; "" removes one.
func (s playground) blobs(index string, files map[string]string) (tree string) {
	s.t.Helper()
	for name, data := range files {
		if data == "" {
			s.gitWith(index, "", "update-index", "--force-remove", name)
			continue
		}
		id := strings.TrimSpace(s.gitWith(index, data, "hash-object", "-w", "--stdin", "--no-filters"))
		s.gitWith(index, "", "update-index", "--add", "--cacheinfo", "100644,"+id+","+name)
	}
	return strings.TrimSpace(s.gitWith(index, "", "write-tree"))
}

func (s playground) gitWith(index, stdin string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = s.repo, strings.NewReader(stdin), os.Stderr
	cmd.Env = append(s.env(), "GIT_INDEX_FILE="+index)
	out, err := cmd.Output()
	check(s.t, err)
	return string(out)
}

// TestCheckedOut takes a patch of new, changed and deleted files with every
// attribute through the program. The real git has checked the base out, makes the
// patch, and says what the working tree should be.
func TestCheckedOut(t *testing.T) {
	long(t)
	for _, autocrlf := range []string{"true", "input", "false"} {
		t.Run("autocrlf="+autocrlf, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, nil)
			s.git("init", "-q", "-b", "main")
			s.git("config", "core.autocrlf", autocrlf)
			s.git("config", "user.name", "Ada")
			s.git("config", "user.email", "ada@localhost")
			rules := ""
			before, after := map[string]string{}, map[string]string{}
			var status []string
			for i, a := range attributed {
				rules += fmt.Sprintf("%d/** %s\n", i, a)
				in := func(name, old, new string) {
					name = fmt.Sprintf("%d/%s", i, name)
					letter := " M"
					switch {
					case old == "":
						letter = "??"
					case new == "":
						letter = " D"
					}
					status = append(status, letter+" "+name)
					after[name] = new
					if old != "" {
						before[name] = old
					}
				}
				in("changed", "one\ntwo\nthree $Id$\n", "one\n2\nthree $Id$\nfour\n")
				in("gone", "gone\n$Id$\n", "")
				in("new", "", "new\n$Id$\n")
				before[fmt.Sprintf("%d/kept", i)] = "kept\n$Id$\n"
				if slices.Contains([]string{"", "-text", "binary", "text=auto", "text=auto eol=crlf"}, a) {
					in("crlf", "one\r\ntwo\r\n", "one\r\n2\r\n")
				}
			}
			before[".gitattributes"] = rules
			after[".gitattributes"], after["late/changed"] = rules+"late/** text eol=crlf\n", "late\n2\n"
			before["late/changed"], before["late/kept"] = "late\n1\n", "kept\n"
			status = append(status, " M .gitattributes", " M late/changed")
			index := filepath.Join(s.dir, "index")
			base := s.blobs(index, before)
			commit := strings.TrimSpace(s.git("commit-tree", "-m", "base", base))
			s.git("reset", "-q", "--hard", commit)
			tree := s.blobs(index, after)
			diff := s.git("diff", "--binary", base, tree)
			patch := filepath.Join(s.dir, "p.patch")
			check(t, os.WriteFile(patch, []byte(diff), 0o644))

			s.run(0, "review", "--patch", patch)
			s.run(0, "approve", s.newest(), "--all")
			s.run(0, "apply")
			s.run(0, "validate")

			got := strings.Split(strings.TrimRight(s.git("status", "--porcelain", "-uall"), "\n"), "\n")
			slices.Sort(got)
			slices.Sort(status)
			if !slices.Equal(got, status) {
				t.Errorf("git status:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(status, "\n"))
			}
			if got, want := s.git("diff", "--binary", "--no-renames"), s.git("diff", "--binary", "--no-renames", "--diff-filter=MD", base, tree); got != want {
				t.Errorf("git diff:\n%s\nwant:\n%s", got, want)
			}
			disk := s.files()
			s.git("add", "-A")
			if got := strings.TrimSpace(s.git("write-tree")); got != tree {
				t.Errorf("git stores otherwise: %s", s.git("diff", tree, got))
			}
			s.git("reset", "-q", "--hard", strings.TrimSpace(s.git("commit-tree", "-m", "after", tree)))
			for name, data := range s.files() {
				if strings.HasSuffix(name, "/kept") { // no file of the patch
					continue
				}
				if disk[name] != data {
					t.Errorf("%s: %q; git checks out %q", name, disk[name], data)
				}
				delete(disk, name)
			}
			for name := range disk {
				if !strings.HasSuffix(name, "/kept") {
					t.Errorf("%s is left", name)
				}
			}
			s.validLedger()
		})
	}
}

// files are those of the working tree.
func (s playground) files() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimRight(s.git("ls-files", "-z", "--cached", "--others"), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(s.repo, name)); err == nil {
			out[name] = s.read(name)
		}
	}
	return out
}
