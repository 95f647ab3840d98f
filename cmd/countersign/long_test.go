package main

import (
	"os"
	"slices"
	"testing"
)

// everything reports whether COUNTERSIGN_LONG asks for all that there is to try, and not for one of each kind.
func everything() bool { return os.Getenv("COUNTERSIGN_LONG") != "" }

// long skips a test that tries once more, in another place or in another way, what a shorter one does. A variable that says
// how often it tries is enough to run it.
func long(t *testing.T, orSet ...string) {
	t.Helper()
	if !everything() && !slices.ContainsFunc(orSet, func(name string) bool { return os.Getenv(name) != "" }) {
		t.Skip("COUNTERSIGN_LONG=1 runs it")
	}
}
