package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A folded diff is as much of a diff as there is room for, in a code block that
// opens on a click. What does not print is shown as an escape (T14).
type folded struct {
	text  string // of the lines, each with its LF
	run   int    // the longest run of backticks
	shown int    // lines
	total int
}

const (
	foldHead = "<details><summary>The diff, %s</summary>\n\n"
	foldTail = "\n</details>\n\n"
	// foldCost is more than what stands around the lines, the two fences apart.
	foldCost = len(foldHead) + len(foldTail) + 40
)

// fold takes lines, from the first, while they fit into room bytes.
func fold(diff []byte, room int) folded {
	var f folded
	var b strings.Builder
	for line := range bytes.Lines(diff) {
		f.total++
		if f.shown+1 < f.total {
			continue // one did not fit before
		}
		text := Style{}.reveal(strings.TrimSuffix(string(line), "\n")) + "\n"
		run := max(f.run, backticks(text))
		if b.Len()+len(text)+2*len(fenceFor(run))+foldCost > room {
			continue
		}
		b.WriteString(text)
		f.run, f.shown = run, f.shown+1
	}
	f.text = b.String()
	return f
}

func (f folded) cut() bool { return f.shown < f.total }

func (f folded) String() string {
	if f.shown == 0 {
		return ""
	}
	size := plural(f.total, "line")
	if f.cut() {
		size = fmt.Sprintf("%d of its %d lines", f.shown, f.total)
	}
	return fmt.Sprintf(foldHead, size) + fenced("diff", f.text) + foldTail
}

var plainRef = lazyregexp.New(`^refs/[A-Za-z0-9][A-Za-z0-9/_.-]*$`)

// maxRef bounds a ref that is shown in a command.
const maxRef = 200

// seeDiff says how to see the whole patch; with git alone where the ledger's
// ref can stand in a shell as it is.
func (r Report) seeDiff() string {
	lines := "countersign diff " + Clean(r.TransactionID) + "\n"
	if len(r.LedgerRef) <= maxRef && plainRef().MatchString(r.LedgerRef) && ledger.CheckID(r.TransactionID) == nil {
		lines += "git fetch origin " + r.LedgerRef + "\ngit show FETCH_HEAD:" + ledger.Dir(r.TransactionID) + "/" + ledger.PatchFile(Clean(r.PatchID)) + "\n"
	}
	return fenced("sh", lines) + "\n"
}
