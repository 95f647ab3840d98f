package html

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// writeDiff writes canonical bytes, a section a file. All of it stands there once, in its own order,
// so that it can be selected and compared; two style rules set the removed and the added lines of a change
// below each other, or side by side. names are the files' paths, in the diff's order.
func (s *sheet) writeDiff(diff []byte, names []string) {
	d := drawer{Body: &s.Body, names: names}
	for line := range bytes.Lines(diff) {
		d.line(string(line))
	}
	d.endFile()
}

// A drawer goes through a diff line by line.
type drawer struct {
	*Body
	names []string
	file  int // counted from 1; 0 before the first

	inHunk        bool
	before, after int  // the numbers of the next lines
	side          byte // of the change that is open: '-', '+', or 0 for none
}

// line writes a line with its LF.
func (d *drawer) line(line string) {
	switch {
	case strings.HasPrefix(line, "diff --git "):
		d.beginFile(line)
		d.meta("m", line)
	case d.file == 0:
		d.beginFile(line)
		d.meta("m", line)
	case strings.HasPrefix(line, "@@ "):
		d.before, d.after = starts(line)
		d.inHunk = true
		d.meta("g", line)
	case !d.inHunk:
		d.meta("m", line)
	case line[0] == '-':
		d.changed(line)
		d.code("d", line, d.before, 0)
		d.before++
	case line[0] == '+':
		d.changed(line)
		d.code("a", line, 0, d.after)
		d.after++
	case line[0] == '\\': // "\ No newline at end of file" belongs to the line before
		d.Markup(`<span class="m">`).Lines(line).Markup("</span>")
	default:
		d.endChange()
		d.code("u", line, d.before, d.after)
		d.before++
		d.after++
	}
}

// meta writes a line that is none of a file.
func (d *drawer) meta(class constant, line string) {
	d.endChange()
	d.Markup(`<span class="`).Markup(class).Markup(`">`).Lines(line).Markup("</span>")
}

// changed opens the half of a change that a line is in. A removed line after an added one begins
// another change.
func (d *drawer) changed(line string) {
	if line[0] == d.side {
		return
	}
	if d.side == '+' {
		d.endChange()
	}
	switch {
	case d.side == '-': // and now an added one
		d.Markup("</span>")
	case line[0] == '+':
		d.Markup(`<span class="ch"><span class="o"></span>`)
	default:
		d.Markup(`<span class="ch">`)
	}
	if d.side = line[0]; d.side == '+' {
		d.Markup(`<span class="w">`)
	} else {
		d.Markup(`<span class="o">`)
	}
}

func (d *drawer) endChange() {
	if d.side != 0 {
		d.Markup("</span></span>")
	}
	d.side = 0
}

// code writes a line of a file, with its numbers before and after as attributes, so that they are
// neither copied nor read as text.
func (d *drawer) code(class constant, line string, before, after int) {
	d.Markup(`<span class="`).Markup(class).Markup(`"`)
	if before > 0 {
		d.number(` data-o="`, before)
	}
	if after > 0 {
		d.number(` data-n="`, after)
	}
	d.Markup(">").Lines(line).Markup("</span>")
}

func (d *drawer) number(name constant, n int) {
	d.Markup(name)
	d.b = strconv.AppendInt(d.b, int64(n), 10)
	d.Markup(`"`)
}

func (d *drawer) beginFile(line string) {
	d.endFile()
	name := fmt.Sprintf("file %d", d.file+1)
	if d.file < len(d.names) {
		name = d.names[d.file]
	} else if _, after, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " b/"); ok {
		name = after
	}
	d.file++
	d.inHunk = false
	d.Markup("<details open class=\"file\"").Attribute("id", fmt.Sprintf("file-%d", d.file)).Markup(">\n<summary><h3>").Text(name).Markup("</h3></summary>\n")
	d.Markup(`<pre class="diff" tabindex="0" role="region"`).Attribute("aria-label", "Diff of "+name).Markup("><code>")
}

func (d *drawer) endFile() {
	if d.file > 0 {
		d.endChange()
		d.Markup("</code></pre>\n</details>\n")
	}
}

// starts are the first lines of "@@ -a,b +c,d @@".
func starts(line string) (before, after int) {
	number := func(sign string) int {
		_, rest, _ := strings.Cut(line, sign)
		end := strings.IndexAny(rest, ", ")
		n, _ := strconv.Atoi(rest[:max(end, 0)])
		return n
	}
	return number(" -"), number(" +")
}
