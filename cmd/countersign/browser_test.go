//go:build browser

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image/png"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/countersign-dev/countersign/report/pagetest"
)

// TestBrowserScript runs scripts that look at what the program wrote in a real browser.
func TestBrowserScript(t *testing.T) {
	t.Parallel()
	b := pagetest.Start(t)
	p := scripts(t, "testdata/browser")
	looker := scriptBrowser{t, b}
	p.Cmds["look"], p.Cmds["looksite"], p.Cmds["managerreads"], p.Cmds["picture"], p.Cmds["shows"] = looker.look, looker.site, looker.reads, looker.picture, looker.shows
	testscript.Run(t, p)
}

type scriptBrowser struct {
	t *testing.T
	b *pagetest.Browser
}

// look looks at pages that are files of their own: look FILE...
func (s scriptBrowser) look(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: look FILE...")
	}
	for _, file := range args {
		s.page(ts, ts.MkAbs(file), pagetest.Rules{})
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
		rules := pagetest.Rules{Below: pagetest.File(s.t, root)} // its style and its icon
		if strings.HasPrefix(kind, "search") {
			rules = pagetest.Rules{Below: pagetest.File(s.t, root), Scripts: []string{"/search.js"}}
		}
		s.page(ts, largest[kind], rules)
	}
	if len(largest) < 8 {
		ts.Fatalf("few kinds of pages: %q", largest)
	}
}

// reads reads off a page who approved which bytes, as a person does who was led there by a link on the pull
// request: managerreads LINK FILE 'LOGIN DECIDED TIME COUNTS'...
func (s scriptBrowser) reads(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: managerreads LINK FILE DECISION...")
	}
	var seen struct {
		Title, Number, Transaction, Diff string
		Decisions                        []string
		Top                              float64
	}
	p := s.b.Open(s.t, pagetest.File(s.t, ts.MkAbs(args[1])), pagetest.Look{})
	p.Eval(`(() => {
		const who = document.querySelector("#who").parentElement, text = e => e.innerText.trim();
		return {
			Title: text(document.querySelector("#who")),
			Top: who.getBoundingClientRect().top,
			Number: who.querySelector("p.faint code").title,
			Decisions: [...who.querySelectorAll(".needs > li")].flatMap(li => [...li.querySelectorAll("p:has(time)")].map(p => text(li.querySelector("strong")) + ": " + text(p))),
			Transaction: [...document.querySelectorAll("dt")].filter(e => text(e) == "Transaction").map(e => text(e.nextElementSibling)).join(),
			Diff: [...document.querySelectorAll(".change .diff code")].map(e => e.textContent).join(""),
		};
	})()`, &seen)
	if seen.Title != "Who approved which bytes" || !slices.Equal(seen.Decisions, args[2:]) {
		ts.Fatalf("%s: %q", seen.Title, seen.Decisions)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(seen.Diff))); sum != seen.Number || len(seen.Diff) == 0 {
		ts.Fatalf("the diff that shows hashes to %s, the page says %s", sum, seen.Number)
	}
	if seen.Top > 450 || seen.Transaction == "" || !strings.HasSuffix(args[0], "/"+seen.Transaction) {
		ts.Fatalf("the table stands %v pixels down, in the page of %q", seen.Top, seen.Transaction)
	}
}

// shows holds that a page's text has these texts: shows FILE TEXT...
func (s scriptBrowser) shows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: shows FILE TEXT...")
	}
	var text string
	s.b.Open(s.t, pagetest.File(s.t, ts.MkAbs(args[0])), pagetest.Look{NoPolicy: true}).Eval("document.body.textContent", &text)
	for _, want := range args[1:] {
		if !strings.Contains(text, want) {
			ts.Fatalf("%s does not show %s: %s", args[0], want, text)
		}
	}
}

// picture looks at what docs/pictures has, and draws it with UPDATE_SCRIPTS=1: picture NAME FILE [ELEMENT].
func (s scriptBrowser) picture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: picture NAME FILE [ELEMENT]")
	}
	const width, height, most = 960, 720, 150 << 10
	p := s.b.Open(s.t, pagetest.File(s.t, ts.MkAbs(args[1])), pagetest.Look{Width: width, Height: height})
	if len(args) > 2 {
		p.Eval(fmt.Sprintf("document.getElementById(%q).scrollIntoView()", args[2]), nil)
	}
	ts.Check(docsPicture(args[0], p.Picture(), width, height, most))
}

// docsPicture looks at a picture that docs/pictures has, and at the same as it was drawn now, which takes its place with UPDATE_SCRIPTS=1.
func docsPicture(name string, drawn []byte, width, height, most int) error {
	path := filepath.Join(docsDir, "pictures", name+".png")
	if os.Getenv("UPDATE_SCRIPTS") != "" {
		if err := os.WriteFile(path, drawn, 0o644); err != nil {
			return err
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for which, picture := range map[string][]byte{"drawn": drawn, "kept": kept} { // letters differ from machine to machine
		if c, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil || c.Width != width || c.Height != height || len(picture) > most {
			return fmt.Errorf("%s as %s: %+v, %d bytes, %w", name, which, c, len(picture), err)
		}
	}
	return nil
}

func (s scriptBrowser) page(ts *testscript.TestScript, path string, rules pagetest.Rules) {
	rules.Screen = ".layout, .exact, .paper ~ pre"
	for _, problem := range s.b.Problems(s.t, pagetest.File(s.t, path), rules) {
		s.t.Errorf("%s: %s", path, problem)
	}
}
