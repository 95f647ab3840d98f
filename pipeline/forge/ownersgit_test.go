package forge_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestCodeOwnersAsGit: GitHub says that patterns are those of .gitignore but for
// what it excepts; so git itself is asked which paths a pattern is about. A last
// component with a * does not reach below a directory that it matches, which is
// the documented docs/* and the one known difference.
func TestCodeOwnersAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	dir := t.TempDir()
	run(t, dir, "", "init", "-q")
	r := rand.New(rand.NewPCG(3, 4))
	paths := somePaths()
	for range 150 {
		pattern := somePattern(r)
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(pattern+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		ignored := map[string]bool{}
		for line := range strings.SplitSeq(run(t, dir, strings.Join(paths, "\n"), "-c", "core.quotePath=false", "check-ignore", "--no-index", "--stdin"), "\n") {
			ignored[line] = true
		}
		for _, path := range paths {
			owned := who(t, pattern+" @a", path) != "-"
			if documented := !owned && belowStar(pattern, path); owned != ignored[path] && !documented {
				t.Errorf("%q, %s: owned %v, git %v", pattern, path, owned, ignored[path])
			}
		}
	}
}

// belowStar reports whether a path may be in a directory that the pattern's last
// component, a * alone, matches.
func belowStar(pattern, path string) bool {
	return strings.HasSuffix("/"+pattern, "/*") && strings.Count(path, "/") > 0
}

func run(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	out, err := teststand.TryGit(dir, stdin, args...)
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: none is ignored
		t.Fatal(err)
	}
	return out
}

func somePaths() []string {
	names := []string{"a", "b", "a{b", "ab", "x.go", "a,b"}
	var out []string
	for _, x := range names {
		out = append(out, x)
		for _, y := range names {
			out = append(out, x+"/"+y, fmt.Sprintf("%s/%s/a", y, x), fmt.Sprintf("a/%s/%s/b", x, y))
		}
	}
	return out
}

func somePattern(r *rand.Rand) string {
	var parts []string
	for range 1 + r.IntN(3) {
		parts = append(parts, pick(r, "a", "b", "a{b", "a,b", "*", "**", "a*", "*.go", "?", "a?b", `\a`))
	}
	return pick(r, "", "/") + strings.Join(parts, "/") + pick(r, "", "", "/")
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
