// Package pagetest is for tests of what people read. It holds that templates fit what they are filled in with, in every
// branch, as the compiler holds it of Go; and it has texts that try to be markup, a script, an address or a control where
// they are shown. Whoever shows foreign text shows each of them as text.
//
// It opens pages in a real Chromium and tells what they did there. That is built with -tags browser only, so that nobody pays
// for the browser's protocol who does not test pages.
//
//	go test -tags browser ./...
//
// A test is skipped where there is no Chromium, unless COUNTERSIGN_BROWSER=require is set: then it
// fails. COUNTERSIGN_AXE is the path of axe-core's axe.min.js, which .ci/run gets from npm.
package pagetest
