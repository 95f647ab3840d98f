package report

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/difflook"
)

// renamedFrom says what a file was before it was renamed with changes, "" where it was not;
// show makes a name safe.
func renamedFrom(f File, show func(string) string) string {
	if f.RenamedFrom == "" {
		return ""
	}
	return fmt.Sprintf(", renamed with changes from %s (%d%% alike)", show(f.RenamedFrom), f.Alike)
}

// Renamed shows, below a diff, what changed in files that were renamed: "" where none was. It
// is for eyes alone, and no part of what is approved.
func Renamed(diff []byte, s Style) string {
	var b strings.Builder
	for _, r := range difflook.Renamings(diff) {
		title := fmt.Sprintf("renamed with changes: %s → %s (%d%% alike; only for reading, the bytes above are what counts)", r.OldPath, r.NewPath, r.Alike)
		b.WriteString("\n" + s.paint(bold, Clean(title)) + "\n")
		for l := range difflook.Lines(r.Diff) {
			b.WriteString("  " + s.diffLine(l) + "\n")
		}
	}
	return b.String()
}
