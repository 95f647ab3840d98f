package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are the Markdown pages that people read, by their path from the repository's root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range []string{"docs", ".github", "."} {
		entries, err := os.ReadDir(filepath.Join("../..", dir))
		check(t, err)
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".md") {
				raw, err := os.ReadFile(filepath.Join("../..", dir, e.Name()))
				check(t, err)
				all[path.Join(dir, e.Name())] = string(raw)
			}
		}
	}
	return all
}

// anchor is the fragment that GitHub gives a heading.
func anchor(heading string) string {
	kept := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
	return strings.ReplaceAll(kept, " ", "-")
}

// TestDocsLinks: every link from a page to this repository leads somewhere, also to its heading, and
// docs/README.md leads to every page in docs.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	all, root := pages(t), os.DirFS("../..")
	link, heading := regexp.MustCompile(`\]\(([^)\s]+)\)`), regexp.MustCompile(`(?m)^#+ (.*)$`)
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, fragment, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := fs.Stat(root, target); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
			found := fragment == ""
			for _, h := range heading.FindAllStringSubmatch(all[target], -1) {
				found = found || anchor(h[1]) == fragment
			}
			if !found {
				t.Errorf("%s links to %s, and there is no such heading", name, m[1])
			}
		}
	}
	for name := range all {
		if base, ok := strings.CutPrefix(name, "docs/"); ok && base != "README.md" && !strings.Contains(all["docs/README.md"], "("+base+")") {
			t.Errorf("docs/README.md does not lead to %s", base)
		}
	}
}

// TestReadmeIsShort: the README has at most 700 words.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	if words := len(strings.Fields(pages(t)["README.md"])); words > 700 {
		t.Errorf("the README has %d words", words)
	}
}
