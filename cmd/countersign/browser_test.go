//go:build browser

package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/countersign-dev/countersign/report/browsertest"
)

// TestBrowserScript runs scripts that look at what the program wrote in a real browser.
func TestBrowserScript(t *testing.T) {
	b := browsertest.Start(t)
	p := scripts(t, "testdata/browser")
	p.Cmds["look"] = func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) == 0 {
			ts.Fatalf("usage: look FILE...")
		}
		for _, file := range args {
			if found := b.Problems(t, browsertest.File(t, ts.MkAbs(file)), browsertest.Rules{Screen: ".layout"}); len(found) > 0 {
				ts.Fatalf("%s: %q", file, found)
			}
		}
	}
	testscript.Run(t, p)
}
