// Package browsertest is for tests: it opens pages in a real Chromium and tells what they
// did there. Everything but this comment is built with -tags browser only, so that nobody pays
// for the browser's protocol who does not test pages.
//
//	go test -tags browser ./...
//
// A test is skipped where there is no Chromium, unless COUNTERSIGN_BROWSER=require is set: then it
// fails. COUNTERSIGN_AXE is the path of axe-core's axe.min.js, which .ci/run gets from npm.
package browsertest
