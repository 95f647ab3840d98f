package ignore_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore/ignore"
)

// TestBesideGit: one pattern at a time, each asked of git about the same paths.
func TestBesideGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	patterns := []string{
		"a", "/a", "a/", "/a/", "a/b", "/a/b", "*", "**", "/*", "*/", "*/b", "**/b", "**/b/", "a/**", "a/**/b", "/**/b", "a**", "a**/b", "**b", "a/**b",
		"*.c", "*.*", "?", "??", "a?c", "[ab]", "[!ab]", "[^ab]", "[a-c]", "[]a]", "[]-a]", "[a-]", "[-a]", "[", "[a", "[a]b", "a[/]b", "[[:alpha:]]", "[[:digit:]a]",
		"[[:nothing:]]", "[[:alpha]", "[a-\\c]", "[\\]]", "\\a", "\\*", "a\\", "\\!a", "\\#a", "#a", "!a", "a ", "a\\ ", " a", "a\t", "a\r", "a b", "*a*b*c*", "a*b/c", "*/*/c", "/a*/b*",
		"a/b/**", "a/**/**/b", "**/**/c", "**/a/**", "***", "a***b", "*/**/c", "", "/", "//", "a//b", "./a", "a/.", "ü", "[ü]", "A", "[A-C]", "*.C", "[[:upper:]]", "a/*", "a/?", "a/*/c", "\\[a]", "x*y**z", "**/", "/**", "**/*", "a*/**/c",
	}
	random := rand.New(rand.NewPCG(14, 2))
	atoms := []string{"a", "b", "/", "*", "**", "?", "[ab]", "[!a]", "c", "/", "**/", ".", "\\b"}
	for range 80 {
		p := ""
		for range 1 + random.IntN(6) {
			p += atoms[random.IntN(len(atoms))]
		}
		patterns = append(patterns, p)
	}
	paths := []string{
		"a", "b", "c", "aa", "ab", "abc", "a.c", "A", "B", "a b", "a ", " a", "!a", "#a", "\\", "]", "[", "[a]", "-", "*", "ü", "1", ".", "x.c", "xyz", "xaybzc", "axbxc", "a/x",
		"a/b", "a/c", "a/b/c", "b/a", "b/a/c", "a/x/b", "a/x/y/b", "ab/c", "aa/b", "b/c", "x/b/c", "x/y/c", "a/b/b", "axx/b", "b/b/b", "a/a/a", "c/c", "A/b", "a/.", "b.", ".a", "a/.b/c",
	}
	for i, p := range paths { // names that git would take for others
		if p == "." || strings.HasSuffix(p, "/.") {
			paths[i] = "y"
		}
	}
	dir := t.TempDir()
	git(t, dir, nil, "init", "-q")
	for _, fold := range []bool{false, true} {
		git(t, dir, nil, "config", "core.ignoreCase", map[bool]string{true: "true", false: "false"}[fold])
		for _, p := range patterns {
			if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(p+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			out := git(t, dir, []byte(strings.Join(paths, "\x00")), "check-ignore", "--no-index", "--stdin", "-z")
			gits := map[string]bool{}
			for name := range strings.SplitSeq(out, "\x00") {
				gits[name] = true
			}
			list := ignore.Parse([]byte(p + "\n"))
			for _, name := range paths {
				if ours := ignored(list, name, fold); ours != gits[name] {
					t.Errorf("%q ignores %q: %v, git says %v (without case %v)", p, name, ours, gits[name], fold)
				}
			}
		}
	}
}

// ignored asks about the directories above as well.
func ignored(l ignore.List, name string, fold bool) bool {
	for i := range len(name) {
		if name[i] == '/' {
			if is, _ := l.Match(name[:i], true, fold); is {
				return true
			}
		}
	}
	is, _ := l.Match(name, false, fold)
	return is
}

func git(t *testing.T, dir string, in []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: nothing is ignored
		t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// TestManyStars: a pattern costs little whatever it is asked about.
func TestManyStars(t *testing.T) {
	list := ignore.Parse([]byte(strings.Repeat("*a", 200) + "b\n" + strings.Repeat("**/a", 200) + "/b\n" + strings.Repeat("*a/", 100) + "b\n"))
	if is, _ := list.Match(strings.Repeat("a", 4000), false, false); is {
		t.Error("ignored")
	}
	if is, _ := list.Match(strings.Repeat("a/", 2000)+"c", false, false); is {
		t.Error("ignored")
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a/**/[!b-d]*\n!\\x", "a/b/c", true)
	f.Fuzz(func(t *testing.T, patterns, name string, fold bool) {
		ignore.Parse([]byte(patterns)).Match(name, fold, fold)
	})
}
