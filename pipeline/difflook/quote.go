package difflook

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Moved says where a hunk was found, as "doc.go 4 lines lower".
func Moved(o patch.Offset) string {
	where, n, s := "lower", o.By, "s"
	if n < 0 {
		where, n = "higher", -n
	}
	if n == 1 {
		s = ""
	}
	return fmt.Sprintf("%s %d line%s %s", patch.Quote(o.Path), n, s, where)
}
