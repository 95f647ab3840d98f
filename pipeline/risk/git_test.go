package risk_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// T75 The list is held to git: whoever reads it knows each line of `git diff
// --summary`, each file that git calls binary, and each added character that does
// not print.
func TestT75Git(t *testing.T) {
	dir := t.TempDir()
	git := func(stdin string, args ...string) string { return teststand.Git(t, dir, stdin, args...) }
	git("", "init", "-q")
	ids := map[string]string{}
	tree := func(files map[string]*patch.File) string {
		var index strings.Builder
		for _, name := range slices.Sorted(maps.Keys(files)) {
			data := string(files[name].Data)
			if ids[data] == "" {
				ids[data] = strings.TrimSpace(git(data, "hash-object", "-w", "--stdin"))
			}
			fmt.Fprintf(&index, "%s %s\t%s\n", files[name].Mode, ids[data], name)
		}
		git("", "read-tree", "--empty")
		git(index.String(), "update-index", "--index-info")
		return strings.TrimSpace(git("", "write-tree"))
	}
	rng := rand.New(rand.NewPCG(16, 1))
	for n := range 25 {
		before, after := randomFiles(rng), randomFiles(rng)
		for name, f := range before { // most stay as they are
			if _, both := after[name]; both && rng.IntN(2) == 0 {
				after[name] = f
			}
		}
		changed := map[string]*patch.File{}
		for name := range before {
			changed[name] = nil
		}
		maps.Copy(changed, after)
		if maps.EqualFunc(before, after, func(a, b *patch.File) bool { return a.Equal(b) }) {
			continue
		}
		list := risk.Of(between(t, before, changed), nil)
		has := func(match func(risk.Risk) bool) bool { return slices.ContainsFunc(list, match) }
		a, b := tree(before), tree(after)
		for line := range strings.Lines(git("", "diff", "--summary", "--no-renames", a, b)) {
			words := strings.Fields(line)
			name := words[len(words)-1]
			ok := true
			switch {
			case strings.HasPrefix(line, " create mode 100755"):
				ok = has(func(r risk.Risk) bool { return r.Path == name && (r.Kind == risk.Executable || r.Kind == risk.Rename) })
			case strings.HasPrefix(line, " delete mode"):
				ok = has(func(r risk.Risk) bool {
					return r.Kind == risk.Delete && r.Path == name || r.Kind == risk.Rename && r.From == name
				})
			case strings.HasPrefix(line, " mode change 100644 => 100755"):
				ok = has(func(r risk.Risk) bool { return r.Kind == risk.Executable && r.Path == name })
			case strings.HasPrefix(line, " mode change"):
				ok = has(func(r risk.Risk) bool { return r.Kind == risk.Mode && r.Path == name })
			}
			if !ok {
				t.Errorf("%d: nothing says %q:\n%s", n, line, lines(list))
			}
		}
		renamed := map[string]bool{}
		for _, r := range list {
			if r.Kind == risk.Rename {
				renamed[r.Path], renamed[r.From] = true, true
			}
		}
		for line := range strings.Lines(git("", "diff", "--numstat", "--no-renames", a, b)) {
			name := strings.TrimSpace(line[strings.LastIndexByte(line, '\t')+1:])
			if strings.HasPrefix(line, "-\t-\t") && !renamed[name] && !has(func(r risk.Risk) bool { return r.Kind == risk.Binary && r.Path == name }) {
				t.Errorf("%d: nothing says that %s is binary:\n%s", n, name, lines(list))
			}
		}
		for name, f := range after {
			if renamed[name] || f.Equal(before[name]) || has(func(r risk.Risk) bool { return r.Kind == risk.Binary && r.Path == name }) {
				continue
			}
			var old []string
			if before[name] != nil {
				old = slices.Collect(strings.Lines(string(before[name].Data)))
			}
			for line := range bytes.Lines(f.Data) {
				if slices.Contains(old, string(line)) {
					continue
				}
				text := string(bytes.TrimSuffix(line, []byte("\n")))
				if utf8.RuneCountInString(text) > 500 && !has(func(r risk.Risk) bool { return r.Kind == risk.Long && r.Path == name }) {
					t.Errorf("%d: nothing says that %s has a long line:\n%s", n, name, lines(list))
				}
				odd := strings.IndexFunc(text, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) >= 0 || !utf8.ValidString(text)
				if odd && !has(func(r risk.Risk) bool { return r.Kind == risk.Hidden && r.Path == name }) {
					t.Errorf("%d: nothing says that %s has %q:\n%s", n, name, text, lines(list))
				}
			}
		}
	}
}

// randomFiles makes a few small files out of few names and few lines, so that
// many are equal, moved, or differ in their mode alone.
func randomFiles(rng *rand.Rand) map[string]*patch.File {
	pool := []string{
		"a\n", "b\n", " a\n", "a\r\n", "\x00\n", "\xff\n", "\u202e\n", "tab\there\n", "\x1b[1m\n", strings.Repeat("y", 501) + "\n", "no end", "",
		"\u200b\n", "раssword\n", "\u00a0\n", "é\n",
	}
	names := []string{"one", "two", "dir/three", "dir/four.sh", "Makefile", "five.bin"}
	out := map[string]*patch.File{}
	for _, name := range names {
		if rng.IntN(3) == 0 {
			continue
		}
		f := &patch.File{Mode: patch.Regular}
		if rng.IntN(3) == 0 {
			f.Mode = patch.Executable
		}
		for range rng.IntN(4) {
			f.Data = append(f.Data, pool[rng.IntN(len(pool))]...)
		}
		out[name] = f
	}
	return out
}
