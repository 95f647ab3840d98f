//go:build browser

package html_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// TestBrowserLives: the page of a life in each state is fit to be looked at, as a page of a site and as a
// file of its own.
func TestBrowserLives(t *testing.T) {
	b := pagetest.Start(t)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, html.StyleFile), html.Style(), 0o666))
	check(t, os.WriteFile(filepath.Join(dir, html.IconFile), html.Icon(), 0o666))
	site := html.Options{
		Root: "../../", Nav: []html.Link{{Address: "index.html", Text: "Overview"}}, Links: forge.Links{Web: "https://github.com/acme/app"}, LedgerRef: "refs/agent/ledger",
		Person: func(a ledger.Actor) string { return "person/" + a.Kind + "/index.html" }, Path: func(string) string { return "path/index.html" },
	}
	seen := map[plain.State]bool{}
	all := lives(t, append(storetest.Mixed(9), storetest.Signed)...)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		tx := all[id]
		now := read(t, tx, id)
		if seen[now.State] && now.Status != ledger.Completed {
			continue
		}
		seen[now.State] = true
		t.Run(string(read(t, tx, id).State), func(t *testing.T) {
			for name, o := range map[string]html.Options{"alone.html": {Alone: true}, "index.html": site} {
				if o.Alone && read(t, tx, id).Status != ledger.Completed {
					continue // its parts are the same
				}
				path := filepath.Join(dir, "tx", id, name)
				check(t, os.MkdirAll(filepath.Dir(path), 0o777))
				check(t, os.WriteFile(path, []byte(page(t, read(t, tx, id), o)), 0o666))
				rules := pagetest.Rules{Screen: ".layout"}
				if !o.Alone {
					rules.Below = pagetest.File(t, dir) // its style and its icon
				}
				if !o.Alone {
					above(t, b, pagetest.File(t, path), read(t, tx, id))
				}
				for _, problem := range b.Problems(t, pagetest.File(t, path), rules) {
					t.Errorf("%s: %s", name, problem)
				}
			}
		})
	}
}

// above holds that the first screen of a phone answers who approved which bytes, and whether that counted.
func above(t *testing.T, b *pagetest.Browser, address string, tx html.Transaction) {
	t.Helper()
	for _, dark := range []bool{false, true} {
		p := b.Open(t, address, pagetest.Look{Width: 390, Height: 844, Dark: dark})
		text := p.Above()
		p.Close()
		want := []string{banners[tx.State][:6], "Who approved which bytes", tx.PatchID[:12]}
		for _, a := range append(tx.Approvers, tx.Deniers...) {
			want = append(want, a.Login)
		}
		if len(tx.Approvers) > 0 && !strings.Contains(text, "proves that") && !strings.Contains(text, "signed by a key") {
			t.Errorf("the first screen does not say how much that proves: %s", text)
		}
		for _, word := range want {
			if !strings.Contains(text, word) {
				t.Errorf("the first screen does not say %q: %s", word, text)
			}
		}
	}
}

// TestBrowserT76Hostile: a browser makes nothing but text of what stands in a record, even without the page's
// policy: no script runs, nothing is asked for, nothing is written to the console; nor when the page is read
// again as the browser has it.
func TestBrowserT76Hostile(t *testing.T) {
	b := pagetest.Start(t)
	life, dir := someLives(t), t.TempDir()
	at := filepath.Join(dir, "tx", "id", "index.html")
	check(t, os.MkdirAll(filepath.Dir(at), 0o777))
	check(t, os.WriteFile(filepath.Join(dir, html.StyleFile), html.Style(), 0o666))
	check(t, os.WriteFile(filepath.Join(dir, html.IconFile), html.Icon(), 0o666))
	rules := pagetest.Rules{Below: pagetest.File(t, dir)}
	address := pagetest.File(t, at)
	for i, many := range slices.Collect(slices.Chunk(pagetest.HostileTexts(), 20)) { // what one of them opens shows whatever stands beside it
		text := strings.Join(many, " ")
		for name, page := range hostilePages(t, life, text) {
			check(t, os.WriteFile(at, []byte(page), 0o666))
			for _, look := range []pagetest.Look{{NoPolicy: true}, {}} {
				if i > 0 && (name == "no record" || !look.NoPolicy) {
					continue // each page is looked at without its policy; that costs a second
				}
				p := b.Open(t, address, look)
				if found := p.Strange(address, rules); len(found) > 0 {
					t.Errorf("%s, %.60q, %+v: %.500q", name, text, look, found)
				}
				if !look.NoPolicy {
					p.Close()
					continue
				}
				var shown string
				if p.Eval("document.body.textContent", &shown); name != "no record" && !has(shown, pagetest.ShownRuns(beginning(text))) {
					t.Errorf("%s: %.60q does not show", name, text)
				}
				p.Eval("document.body.innerHTML = document.body.innerHTML, 0", nil)
				if found := p.Strange(address, rules); len(found) > 0 {
					t.Errorf("%s, %.60q, read again: %.500q", name, text, found)
				}
				p.Close()
			}
		}
	}
	if left := b.Left(); len(left)+len(b.Windows()) > 0 {
		t.Errorf("left: %q, windows: %q", left, b.Windows())
	}
}
