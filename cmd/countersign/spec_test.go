package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestSpec: each requirement of docs/spec has one id and stands there once, each id that a page or a vector names is one,
// and all of it has at most 25,000 words.
func TestSpec(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	check(t, fs.WalkDir(os.DirFS("../.."), "docs/spec", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			var raw []byte
			raw, err = os.ReadFile("../../" + name)
			pages[name] = string(raw)
		}
		return err
	}))
	made := regexp.MustCompile(`(?m)^\s*(?:- )?\*\*([A-Z]-[0-9]+)\*\*`)
	named := regexp.MustCompile(`(?:^|[^A-Za-z0-9+-])([BDEHJPSVY]-[0-9]+)\b`)
	in, words := map[string]string{}, 0
	for name, text := range pages {
		words += len(strings.Fields(text))
		for _, m := range made.FindAllStringSubmatch(text, -1) {
			if other, twice := in[m[1]]; twice {
				t.Errorf("%s is a requirement of %s, and of %s", m[1], name, other)
			}
			in[m[1]] = name
		}
	}
	for name, text := range pages {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if in[m[1]] == "" {
				t.Errorf("%s names %s, which is no requirement", name, m[1])
			}
		}
	}
	if len(in) < 200 || words > 25_000 {
		t.Errorf("%d requirements in %d words", len(in), words)
	}
}
