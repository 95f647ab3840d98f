package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/view"
)

// Hunks are as much of a diff as there is room for, in Markdown.
type hunks struct {
	text  string
	shown int // lines
	total int
}

func (h hunks) cut() bool { return h.shown < h.total }

const (
	// openLines is how many lines of a diff are seen at once. The others open on a click.
	openLines = 40
	// maxTitles is the room of the files' names, and mostFiles how many there are at most.
	maxTitles = 10 << 10
	mostFiles = 100
	// frameCost is more than what stands around a file's title and its lines.
	frameCost = len("<details open><summary>, 1000000 of 1000000 lines shown</summary>\n\n```diff\n```\n\n</details>\n")
)

// hunks shows a diff file by file, without the lines of it that repeat names and modes. What does
// not print is shown as an escape (T14). All of it takes at most room bytes. Files are named first,
// as far as there is room for that, then lines are shown: all of the short files before a part of
// a long one.
func (r Report) hunks(diff []byte, room int) hunks {
	files := r.fileDiffs(diff)
	var h hunks
	named, titles := 0, 0
	for _, f := range files {
		h.total += len(f.lines)
		if cost := len(f.title) + frameCost; named < mostFiles && titles+cost <= min(room, maxTitles) {
			named, titles = named+1, titles+cost
		}
	}
	room -= titles
	order := make([]int, named)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return files[i].size - files[j].size })
	shown := make([]int, named)
	for _, i := range order {
		n, size := files[i].fit(room)
		shown[i], h.shown, room = n, h.shown+n, room-size
	}
	var b strings.Builder
	open := 0
	for i, f := range files[:named] {
		n, state := shown[i], ""
		if open+n <= openLines {
			open, state = open+n, " open"
		}
		if n < len(f.lines) {
			f.title += fmt.Sprintf(", %d of %d lines shown", n, len(f.lines))
		}
		if n == 0 {
			b.WriteString("<p>" + f.title + "</p>\n\n")
		} else {
			b.WriteString("<details" + state + "><summary>" + f.title + "</summary>\n\n" + fenced("diff", strings.Join(f.lines[:n], "\n")) + "\n</details>\n")
		}
	}
	if len(files) > 0 {
		b.WriteString(list{noun: "more file"}.missing(len(files) - named))
	}
	h.text = b.String()
	return h
}

// A fileDiff is what a diff tells of one file.
type fileDiff struct {
	title string // HTML
	lines []string
	size  int // bytes
}

// fit is how many lines fit into a room, and how much of it they and longer fences take.
func (f fileDiff) fit(room int) (n, size int) {
	run := 0
	for ; n < len(f.lines); n++ {
		longest := max(run, backticks(f.lines[n]))
		if size+len(f.lines[n])+1+2*longest > room {
			break
		}
		run, size = longest, size+len(f.lines[n])+1
	}
	return n, size + 2*run
}

// fileDiffs are the files of canonical bytes, in the order of r.Files.
func (r Report) fileDiffs(diff []byte) (out []fileDiff) {
	files := r.View().Files
	for i, stat := range gitpatch.Stats(diff) {
		f := fileDiff{title: fmt.Sprintf("file %d", i+1)}
		var of *File // nil where the report does not know it: then all is shown
		if i < len(files) {
			of = &files[i]
			f.title = strings.TrimSpace(escape.Tagged(shorten(of.Path)) + " " + fileText(*of, escape.Tagged))
		}
		inHunk, binary := false, false
		for line := range bytes.Lines(stat.Diff) {
			text := strings.TrimSuffix(string(line), "\n")
			isHunk := strings.HasPrefix(text, "@@ ")
			inHunk = inHunk || isHunk
			whole := isHunk && (strings.HasPrefix(text, "@@ -0,0 ") || strings.HasSuffix(text, " +0,0 @@"))
			if binary || whole || of != nil && !inHunk && r.repeats(*of, text) {
				binary = binary || text == beginsBinary
				continue
			}
			binary = of != nil && !inHunk && text == beginsBinary
			f.lines, f.size = append(f.lines, Style{}.reveal(text)), f.size+len(text)
		}
		out = append(out, f)
	}
	return out
}

// beginsBinary is the line above the content of a binary file.
const beginsBinary = "GIT binary patch"

// repeats reports whether a line of a file's header says what its title and the risks say. There is no
// room for every risk, and a line of one that is not listed is shown.
func (r Report) repeats(f File, line string) bool {
	is := func(start string) bool { return strings.HasPrefix(line, start) }
	listed := func(kinds ...risk.Kind) bool {
		return slices.ContainsFunc(r.list().Risks, func(one risk.Risk) bool { return one.Path == f.Path && slices.Contains(kinds, one.Kind) })
	}
	switch {
	case line == beginsBinary:
		return listed(risk.Binary)
	case is("old mode "), is("new mode "), is("new file mode ") && line != "new file mode 100644":
		return listed(risk.Executable, risk.Mode)
	case is("rename "), is("similarity "):
		return f.From != ""
	}
	return slices.ContainsFunc([]string{"diff --git ", "index ", "--- ", "+++ ", "new file mode ", "deleted file mode "}, is)
}

// fileText says what becomes of a file; show makes a name safe.
func fileText(f File, show func(string) string) string {
	var parts []string
	if f.From != "" {
		parts = append(parts, "renamed from "+show(shorten(f.From)))
	} else if became := map[string]string{"add": "new", "delete": "deleted"}[f.Kind]; became != "" {
		parts = append(parts, became)
	}
	added, deleted, note := lineCounts(f)
	counts := strings.Fields(added + " " + strings.Replace(deleted, "-", "−", 1))
	if counts = slices.DeleteFunc(counts, func(n string) bool { return n == "+0" || n == "−0" }); len(counts) > 0 {
		parts = append(parts, strings.Join(counts, " "))
	}
	return strings.TrimPrefix(strings.Join(parts, ", ")+note+renamedFrom(f, show), ", ")
}

// An escapedPart has the lines of one side of a file that a diff shows with escapes.
type escapedPart struct {
	file    int // the diff's, counted from 0
	removed bool
	lines   []int // of the file after the change, or before it where they are removed
}

// escapedIn finds where canonical bytes are shown with escapes (T14, T71): for characters that do not show in
// lines that are added, and for bytes that are not UTF-8 in lines that are added or removed. Without a word, a change from such a
// byte to the text of its escape would look like none.
func escapedIn(diff []byte) (parts []escapedPart) {
	for l := range gitpatch.Lines(diff) {
		removed, text := l.Mark == '-', string(l.Text)
		if l.Mark != '+' && !removed || removed && utf8.ValidString(text) || (Style{}).reveal(text) == text {
			continue
		}
		i := len(parts) - 1
		for i >= 0 && parts[i].file == l.File && parts[i].removed != removed {
			i--
		}
		if i < 0 || parts[i].file != l.File {
			i, parts = len(parts), append(parts, escapedPart{file: l.File, removed: removed})
		}
		parts[i].lines = append(parts[i].lines, max(l.After, l.Before))
	}
	return parts
}

func (e escapedPart) row(files []File) string {
	where := fmt.Sprintf("file %d", e.file+1)
	if e.file >= 0 && e.file < len(files) {
		where = name(files[e.file].Path)
	}
	return fmt.Sprintf("- %s, %s%s\n", where, lineNumbers(e.lines), map[bool]string{true: " of what is removed"}[e.removed])
}

// maxHiddenLines is how many lines are named.
const maxHiddenLines = 5

// lineNumbers is "line 3", or "lines 1, 2, 3, 4, 5 and 7 more".
func lineNumbers(lines []int) string { return view.Lines(lines, 0, maxHiddenLines) }
