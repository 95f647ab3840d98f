// Package lazyregexp compiles regular expressions on their first use: most runs
// of the program need few of them, and to compile them all is a tenth of a start.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// New returns a function that returns the compiled expression. An expression
// that is not valid panics on the first use; in a test it does so at once.
func New(expr string) func() *regexp.Regexp {
	get := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
	if len(os.Args) > 0 && strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test") {
		get()
	}
	return get
}
