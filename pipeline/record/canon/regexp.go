package canon

import (
	"regexp"
	"sync"
)

// Regexp returns a function that returns the expression, compiled on its first use: most runs of the program need few
// of them, and to compile them all is a tenth of a start. One that is not valid panics then; a test here compiles each
// that is written down.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
