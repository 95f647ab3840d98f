//go:build browser

package main

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/countersign-dev/countersign/report/browsertest"
)

// TestBrowserScript runs scripts that look at what the program wrote in a real browser.
func TestBrowserScript(t *testing.T) {
	b := browsertest.Start(t)
	p := scripts(t, "testdata/browser")
	looker := scriptBrowser{t, b}
	p.Cmds["look"], p.Cmds["looksite"] = looker.look, looker.site
	testscript.Run(t, p)
}

type scriptBrowser struct {
	t *testing.T
	b *browsertest.Browser
}

// look looks at pages that are files of their own: look FILE...
func (s scriptBrowser) look(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: look FILE...")
	}
	for _, file := range args {
		s.page(ts, ts.MkAbs(file), browsertest.Rules{})
	}
}

// site looks at the largest page of each kind of a site, as files: looksite DIR.
func (s scriptBrowser) site(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: looksite DIR")
	}
	root := ts.MkAbs(args[0])
	largest, size := map[string]string{}, map[string]int64{}
	ts.Check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		kind, below, _ := strings.Cut(filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator))), "/")
		if kind += fmt.Sprint(strings.Count(below, "/")); info.Size() > size[kind] {
			largest[kind], size[kind] = path, info.Size()
		}
		return nil
	}))
	for _, kind := range slices.Sorted(maps.Keys(largest)) {
		rules := browsertest.Rules{Below: browsertest.File(s.t, filepath.Join(root, "style.css"))}
		if strings.HasPrefix(kind, "search") {
			rules = browsertest.Rules{Below: browsertest.File(s.t, root), Scripts: []string{"/search.js"}}
		}
		s.page(ts, largest[kind], rules)
	}
	if len(largest) < 8 {
		ts.Fatalf("few kinds of pages: %q", largest)
	}
}

func (s scriptBrowser) page(ts *testscript.TestScript, path string, rules browsertest.Rules) {
	rules.Screen = ".layout"
	for _, problem := range s.b.Problems(s.t, browsertest.File(s.t, path), rules) {
		s.t.Errorf("%s: %s", path, problem)
	}
}
