package difflook

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/patch"
)

// QuoteList makes the first few paths of a list safe to print.
func QuoteList(paths []string) string {
	const most = 10
	var out []string
	for _, p := range paths[:min(most, len(paths))] {
		out = append(out, patch.Quote(p))
	}
	if len(paths) > most {
		out = append(out, fmt.Sprintf("and %d more", len(paths)-most))
	}
	return strings.Join(out, ", ")
}

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
