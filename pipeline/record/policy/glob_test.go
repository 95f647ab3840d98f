package policy_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func mustGlob(t *testing.T, s string) policy.Glob {
	t.Helper()
	g, err := policy.ParseGlob(s)
	fatal(t, err)
	return g
}

// TestGlob: what each glob matches, and after a bar what it does not.
func TestGlob(t *testing.T) {
	for glob, paths := range map[string]string{
		"*.tf":          "a.tf x/y/a.tf .tf a.tf/b | a.tfx atf",
		"docs":          "docs docs/a a/docs a/docs/b DOCS/x | docsx a.docs",
		"docs/":         "docs/a a/docs/b | docs a/docs",
		"/docs":         "docs docs/a | a/docs",
		"/docs/":        "docs/a | docs a/docs/b",
		"docs/api":      "docs/api docs/api/x | a/docs/api docs/apis",
		"a/*/b":         "a/x/b a/x/b/c | a/b a/x/y/b",
		"a/**/b":        "a/b a/x/b a/x/y/b a/b/c | b xa/b",
		"a/**":          "a/b a/b/c | a b/a/c",
		"**/b":          "b a/b a/b/c x/y/b | bb",
		"**":            "a a/b",
		"**/":           "a/b | a",
		"/**/a/**/b/**": "a/b/c x/a/y/b/z | a/b a",
		"a**b":          "ab axxb c/axb | a/b",
		"/a**b":         "ab axb | a/b c/axb",
		"?":             "a é ß/x | ab",
		"caf?.md":       "café.md cafe.md",
		"CAFÉ":          "café cafe\u0301 CAFE\u0301",
		"[a-c]x":        "ax BX | dx",
		"[!a-c]x":       "dx | ax BX",
		"[^a]":          "b | a A",
		"[A]":           "a A | b",
		"[]a]":          "] a | b",
		"[a-]":          "a - | b",
		"[[:digit:]]x":  "1x | ax",
		"[[:upper:]]":   "a A | 1",
		`\*`:            "* | a",
		`\!a`:           "!a | a",
		`\#a`:           "#a",
		`[\]]`:          "] | a",
		"a*b*c*d":       "abcd axbxcxd | abdc",
		"*":             "a a/b",
	} {
		g := mustGlob(t, glob)
		yes, no, _ := strings.Cut(paths, "|")
		for _, path := range strings.Fields(yes) {
			if !g.Match(path) {
				t.Errorf("%s does not match %s", glob, path)
			}
		}
		for _, path := range strings.Fields(no) {
			if g.Match(path) {
				t.Errorf("%s matches %s", glob, path)
			}
		}
	}
}

// TestGlobAsGit compares with git check-ignore on random globs and paths. Case
// does not count there either (core.ignoreCase).
func TestGlobAsGit(t *testing.T) {
	dir := t.TempDir()
	git := func(stdin string, args ...string) string {
		out, err := teststand.TryGit(dir, stdin, append([]string{"-c", "core.ignoreCase=true"}, args...)...)
		if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: none is ignored
			t.Fatal(err)
		}
		return out
	}
	git("", "init", "-q")
	r := rand.New(rand.NewPCG(1, 2))
	var paths []string
	for range 400 {
		paths = append(paths, randomPath(r))
	}
	stdin := strings.Join(paths, "\x00") + "\x00"
	agreed, matched := 0, 0
	for range 150 {
		glob := randomGlob(r)
		g, err := policy.ParseGlob(glob)
		if err != nil {
			continue
		}
		agreed++
		out := git(stdin, "-c", "core.excludesFile="+write(t, dir, glob), "check-ignore", "--no-index", "-z", "--stdin")
		ignored := map[string]bool{}
		for path := range bytes.SplitSeq([]byte(out), []byte{0}) {
			ignored[string(path)] = true
		}
		for _, path := range paths {
			if got := g.Match(path); got != ignored[path] {
				t.Fatalf("glob %q, path %q: we say %v, git %v", glob, path, got, ignored[path])
			} else if got {
				matched++
			}
		}
	}
	if agreed < 110 || matched < 700 {
		t.Errorf("only %d globs, %d matches", agreed, matched)
	}
}

// TestT42Globs: a matcher that tried every way would not end on these.
func TestT42Globs(t *testing.T) {
	name := strings.Repeat("a", 255)
	long := strings.TrimSuffix(strings.Repeat(strings.Repeat("a", 15)+"/", 250), "/")
	for _, glob := range []string{
		strings.Repeat("*a", 120) + "b", strings.Repeat("**/", 80) + "b", strings.Repeat("a*/", 80) + "b",
		strings.Repeat("**/a*/", 40) + "b", strings.Repeat("?*", 120) + "b", strings.Repeat("[!b]*", 50) + "b",
	} {
		g := mustGlob(t, glob)
		for range 20 {
			if g.Match(name) || g.Match(long) {
				t.Errorf("%.20s… matches", glob)
			}
		}
	}
}

// TestT42Classes: a Policy full of wide classes is read soon, as nothing goes through their characters.
func TestT42Classes(t *testing.T) {
	file := "protected: [{paths: ["
	for i := 0; len(file) < 60<<10; i++ {
		file += fmt.Sprintf("\"%d%s\",", i, strings.Repeat("[b-\U0001E942]", 40))
	}
	began := time.Now()
	p, err := policy.Parse("", []byte(file+"a]}]"))
	if err != nil || len(p.Needs([]string{"0b"}, false)) != 1 {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("reading the Policy took %s", took)
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"a/**/b", "[]a-z[:alpha:]]", `\*`, "**/", "é?"} {
		f.Add(s, "a/x/b")
	}
	f.Fuzz(func(t *testing.T, glob, path string) {
		g, err := policy.ParseGlob(glob)
		if err != nil || len(path) > 4096 { // which no path is (patch.CheckPath)
			return
		}
		got := g.Match(path)
		if got != g.Match(strings.ToUpper(strings.ToLower(path))) && isASCII(path) {
			t.Errorf("%q, %q: case counts", glob, path)
		}
		if got && !g.Match(path+"/below") {
			t.Errorf("%q matches %q, but nothing below", glob, path)
		}
	})
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}
