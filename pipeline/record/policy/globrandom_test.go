package policy_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomPath(r *rand.Rand) string {
	names := make([]string, 1+r.IntN(4))
	for i := range names {
		for range 1 + r.IntN(3) {
			names[i] += pick(r, "a", "b", "c", "A", "-", "]", "!", "1", "*")
		}
		if strings.EqualFold(names[i], ".git") {
			names[i] = "a"
		}
	}
	return strings.Join(names, "/")
}

// randomGlob makes globs of what paths are made of. A single letter in brackets
// is lower case, and [:upper:] left out: there git forgets that case does not
// count.
func randomGlob(r *rand.Rand) string {
	names := make([]string, 1+r.IntN(3))
	for i := range names {
		if r.IntN(4) == 0 {
			names[i] = "**"
			continue
		}
		for range 1 + r.IntN(4) {
			names[i] += pick(r, "a", "b", "c", "B", "*", "?", "-", "**", "[ab]", "[!a]", "[a-b]", "[A-C]", "[^-]", "[]a]", "[[:digit:]]",
				"[![:alpha:]]", "[a-]", `\*`, `\a`, "1", "]", `[\]]`, "[--1]")
		}
	}
	return pick(r, "", "", "/") + strings.Join(names, "/") + pick(r, "", "", "", "/")
}

// write makes a file of one ignore rule and returns its path.
func write(t *testing.T, dir, glob string) string {
	t.Helper()
	file := filepath.Join(dir, ".git", "ignore")
	fatal(t, os.WriteFile(file, []byte(glob+"\n"), 0o666))
	return file
}
