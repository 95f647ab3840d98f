// Package lazyregexp compiles regular expressions on their first use: most runs
// of the program need few of them, and to compile them all is a tenth of a start.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. An expression that is not
// valid panics on the first use; a test here compiles each that is written down.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
