//go:build browser

package html_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/report/browsertest"
	"github.com/countersign-dev/countersign/report/html"
)

// TestBrowserLives: the page of every life is fit to be looked at, as a page of a site and as a
// file of its own.
func TestBrowserLives(t *testing.T) {
	b := browsertest.Start(t)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, html.StyleFile), html.Style(), 0o666))
	site := html.Options{
		Root: "../../", Nav: []html.Link{{Address: "index.html", Text: "Overview"}}, Web: "https://github.com/acme/app", LedgerRef: "refs/agent/ledger",
		Person: func(a ledger.Actor) string { return "person/" + a.Kind + "/index.html" }, Path: func(string) string { return "path/index.html" },
	}
	for id, tx := range lives(t, append(storetest.Mixed(9), storetest.Signed)...) {
		t.Run(read(t, tx, id).State, func(t *testing.T) {
			for name, o := range map[string]html.Options{"alone.html": {Alone: true}, "index.html": site} {
				if o.Alone && read(t, tx, id).Status != ledger.Completed {
					continue // its parts are the same
				}
				path := filepath.Join(dir, "tx", id, name)
				check(t, os.MkdirAll(filepath.Dir(path), 0o777))
				check(t, os.WriteFile(path, []byte(page(t, read(t, tx, id), o)), 0o666))
				rules := browsertest.Rules{Screen: ".layout"}
				if !o.Alone {
					rules.Below = browsertest.File(t, filepath.Join(dir, html.StyleFile))
				}
				for _, problem := range b.Problems(t, browsertest.File(t, path), rules) {
					t.Errorf("%s: %s", name, problem)
				}
			}
		})
	}
}
