package report_test

import (
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestPicture: the pictures in docs show what the program writes on a pull request, word for
// word; with -update they are drawn anew.
func TestPicture(t *testing.T) {
	asked, done := picture(), applied() // as a server shows them that is not known to have the ledger
	asked.Report.Record, done.Record = "", ""
	for _, p := range []struct{ file, title, markdown string }{
		{"request.svg", "A request, as it stands on a pull request", asked.Body()},
		{"check.svg", "The check run of a change that was applied", done.CheckRun().Summary},
	} {
		got, err := draw(p.title, p.markdown)
		check(t, err)
		drawn, want := strings.Join(wordsOf(t, matches(t, p.file, got)), ""), strings.Join(visibleWords(p.markdown), "")
		if drawn != want {
			t.Errorf("drawn is\n%s\nand written is\n%s", drawn, want)
		}
	}
}

// matches reads a picture in docs, which must be this one; with -update it is written first.
func matches(t *testing.T, file, picture string) string {
	t.Helper()
	if file = "../docs/" + file; *update {
		check(t, os.WriteFile(file, []byte(picture), 0o644))
	}
	raw, err := os.ReadFile(file)
	check(t, err)
	if string(raw) != picture {
		t.Errorf("%s is another picture; run go test -update and look at it", file)
	}
	return string(raw)
}

// wordsOf are the words of a picture's texts, in their order.
func wordsOf(t *testing.T, svg string) []string {
	t.Helper()
	var words []string
	inText := false
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return words
		}
		check(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				words = append(words, strings.Fields(string(token))...)
			}
		}
	}
}

// visibleWords are the words of Markdown without its marks, and what opens on a click.
func visibleWords(markdown string) []string {
	text, _, _ := strings.Cut(markdown, "\n<details>")
	if _, closed, ok := strings.Cut(markdown, "\n<details>"); ok {
		summary, _, _ := strings.Cut(closed, "\n")
		text += "\n" + summary
	}
	var words []string
	inFence := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			inFence = !inFence
			continue
		case strings.HasPrefix(line, "|---"), strings.HasPrefix(line, "</details>"):
			continue
		case !inFence:
			line = strings.TrimPrefix(strings.TrimPrefix(line, "> "), "- ")
			line = strings.NewReplacer("### ", "", "**", "", "`", "", "<details open>", "", "[!WARNING]", "Warning").Replace(unsummarized(line))
			if strings.HasPrefix(line, "|") {
				line = strings.ReplaceAll(line, "|", " ")
			}
		}
		words = append(words, strings.Fields(line)...)
	}
	return words
}

// unsummarized is a line of HTML around a summary as Markdown.
func unsummarized(line string) string {
	line = strings.NewReplacer("<details open>", "", "<summary>", "", "</summary>", "", "<code>", "`", "</code>", "`").Replace(line)
	return html.UnescapeString(line)
}

// The measures of a picture, in pixels.
const (
	pictureWidth = 852
	margin       = 33
	textSize     = 14
	codeSize     = 12
	lineHeight   = 21
	codeHeight   = 17.4
	gap          = 10
)

// A drawing is a picture of Markdown in GitHub's manner, drawn from the top down. It knows
// the marks that a request has, and refuses any other.
type drawing struct {
	body strings.Builder
	y    float64 // where the next block begins
}

// draw draws what a person sees of a comment: what opens on a click is closed.
func draw(title, markdown string) (string, error) {
	d := &drawing{y: margin - 4}
	lines := strings.Split(markdown, "\n")
	for i := 0; i < len(lines); i++ {
		switch line := lines[i]; {
		case line == "":
		case strings.HasPrefix(line, "### "):
			d.heading(line[4:])
		case strings.HasPrefix(line, "```"):
			end := i + 1 + slices.Index(lines[i+1:], "```")
			d.code(lines[i+1:end], line == "```diff")
			i = end
		case strings.HasPrefix(line, "| "):
			end := i + slices.Index(lines[i:], "")
			d.table(lines[i:end])
			i = end
		case strings.HasPrefix(line, "- "):
			d.ellipse(margin+10, d.y+lineHeight/2)
			if err := d.paragraph(line[2:], margin+24); err != nil {
				return "", err
			}
			if strings.HasPrefix(lines[i+1], "- ") {
				d.y -= gap
			}
		case line == "> [!WARNING]":
			end, top := i+slices.Index(lines[i:], ""), d.y
			d.text("Warning", margin+16, d.y+15, textSize, boldFont, "#9a6700")
			d.y += lineHeight
			for _, line := range lines[i+1 : end] {
				line, at := strings.TrimPrefix(line, "> "), margin+16.0
				if item, ok := strings.CutPrefix(line, "- "); ok {
					d.ellipse(margin+26, d.y+lineHeight/2)
					line, at = item, margin+40
				}
				if err := d.paragraph(line, at); err != nil {
					return "", err
				}
				d.y -= gap
			}
			d.rect(margin, top, 3.5, d.y-top, 0, "#9a6700")
			d.y += gap
			i = end
		case strings.HasPrefix(line, "<details open><summary>"):
			fmt.Fprintf(&d.body, "<path d=\"M%d %.1fh10l-5 8z\" fill=\"#1f2328\"/>\n", margin, d.y+6)
			if err := d.paragraph(unsummarized(line), margin+15); err != nil {
				return "", err
			}
		case line == "</details>":
		case strings.HasPrefix(line, "<details><summary>"):
			fmt.Fprintf(&d.body, "<path d=\"M%d %.1fv10l8 -5z\" fill=\"#1f2328\"/>\n", margin, d.y+5)
			if err := d.paragraph(unsummarized(strings.TrimPrefix(line, "<details>")), margin+15); err != nil {
				return "", err
			}
			i += slices.Index(lines[i:], "</details>")
		case strings.HasPrefix(line, "<!-- ") && strings.HasSuffix(line, " -->"):
		default:
			if err := d.paragraph(line, margin); err != nil {
				return "", err
			}
		}
	}
	height := d.y + margin/2
	return d.svg(title, pictureWidth, height), nil
}

// svg is the whole picture, in a frame.
func (d *drawing) svg(title string, width, height float64) string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n"+
		"<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"+
		"<rect x=\"16.5\" y=\"16.5\" width=\"%.0f\" height=\"%.0f\" rx=\"6\" fill=\"#fff\" stroke=\"#d1d9e0\"/>\n%s</svg>\n",
		width, height, width, height, title, width-33, height-33, d.body.String())
}

// The fonts of a text.
const (
	plainFont = iota
	boldFont
	codeFont
)

// text draws one text in one font, as wide as it was measured to be whatever fonts there are.
func (d *drawing) text(text string, x, baseline, size float64, font int, colour string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	family := map[int]string{
		plainFont: `-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"`, boldFont: `-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-weight="600"`,
		codeFont: `ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"`,
	}[font]
	lead := len(text) - len(strings.TrimLeft(text, " "))
	x += float64(lead) * wide(" ", size, font)
	text = strings.TrimSpace(text)
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text))
	fmt.Fprintf(&d.body, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" font-family=\"%s fill=\"%s\" textLength=\"%.1f\" xml:space=\"preserve\">%s</text>\n",
		x, baseline, size, family, colour, wide(text, size, font), escaped.String())
}

func (d *drawing) rect(x, y, width, height, round float64, colour string) {
	fmt.Fprintf(&d.body, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.0f\" fill=\"%s\"/>\n", x, y, width, height, round, colour)
}

func (d *drawing) ellipse(x, y float64) {
	fmt.Fprintf(&d.body, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"#1f2328\"/>\n", x, y)
}

func (d *drawing) heading(text string) {
	d.text(strings.ReplaceAll(text, "`", ""), margin, d.y+22, 18, boldFont, "#1f2328")
	d.y += 31 + gap
}

// code draws a block, whose lines are coloured where it is a diff.
func (d *drawing) code(lines []string, diff bool) {
	d.rect(margin, d.y, pictureWidth-2*margin, float64(len(lines))*codeHeight+24, 6, "#f6f8fa")
	y := d.y + 12
	for _, line := range lines {
		colour := "#1f2328"
		behind := ""
		switch {
		case !diff:
		case strings.HasPrefix(line, "+"):
			colour, behind = "#116329", "#dafbe1"
		case strings.HasPrefix(line, "-"):
			colour, behind = "#82071e", "#ffebe9"
		case strings.HasPrefix(line, "@@"):
			colour = "#8250df"
		}
		if behind != "" {
			d.rect(margin+12, y+2, wide(line, codeSize, codeFont), codeHeight-3, 0, behind)
		}
		d.text(line, margin+12, y+12.5, codeSize, codeFont, colour)
		y += codeHeight
	}
	d.y = y + 12 + gap
}

// table draws a table whose first row is its head, and whose second one only says so.
func (d *drawing) table(rows []string) {
	var cells [][]string
	var widths []float64
	for i, row := range rows {
		if i == 1 || strings.Trim(row, "| ") == "" {
			continue
		}
		var one []string
		for _, cell := range strings.Split(strings.Trim(row, "|"), "|") {
			one = append(one, strings.TrimSpace(cell))
		}
		for j, cell := range one {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], d.line(spans(cell, false), 0, 0, false)+26)
		}
		cells = append(cells, one)
	}
	for _, row := range cells {
		x := float64(margin)
		for j, cell := range row {
			fmt.Fprintf(&d.body, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"30\" fill=\"#fff\" stroke=\"#d1d9e0\"/>\n", x+.5, d.y+.5, widths[j])
			d.line(spans(cell, false), x+13, d.y+20, true)
			x += widths[j]
		}
		d.y += 30
	}
	d.y += gap
}

// A span is a part of a line in one font.
type span struct {
	text string
	font int
}

// spans are the parts of a line of Markdown.
func spans(text string, bold bool) []span {
	var out []span
	heading := bold
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			out = append(out, span{part, codeFont})
			continue
		}
		for j, part := range strings.Split(part, "**") {
			if j > 0 {
				bold = !bold
			}
			font := plainFont
			if bold || heading {
				font = boldFont
			}
			if part != "" {
				out = append(out, span{part, font})
			}
		}
	}
	return out
}

// line draws spans side by side, or only measures them, and returns how wide they are.
func (d *drawing) line(parts []span, x, baseline float64, drawn bool) float64 {
	from := x
	for _, s := range parts {
		size, pad := float64(textSize), 0.0
		if s.font == codeFont {
			size, pad = codeSize, 5
		}
		width := wide(s.text, size, s.font)
		if drawn && s.font == codeFont {
			d.rect(x, baseline-13, width+2*pad, 18, 6, "#eff1f3")
		}
		if drawn {
			d.text(s.text, x+pad, baseline, size, s.font, "#1f2328")
		}
		x += width + 2*pad
	}
	return x - from
}

// paragraph draws a line of Markdown, broken where it is too long. What it cannot draw as
// GitHub does is an error.
func (d *drawing) paragraph(text string, x float64) error {
	var line []span
	flush := func() {
		d.line(line, x, d.y+15, true)
		line, d.y = nil, d.y+lineHeight
	}
	for _, s := range spans(text, false) {
		if s.font != codeFont && strings.ContainsAny(s.text, "[]<>|#_*\\&") {
			return fmt.Errorf("nobody has said how %q is drawn", text)
		}
		words := []string{s.text}
		if s.font != codeFont {
			words = strings.SplitAfter(s.text, " ")
		}
		for _, word := range words {
			if d.line(append(slices.Clone(line), span{strings.TrimSpace(word), s.font}), 0, 0, false) > pictureWidth-margin-x && len(line) > 0 {
				flush()
			}
			if n := len(line) - 1; n >= 0 && line[n].font == s.font && s.font != codeFont {
				line[n].text += word
			} else if word != "" {
				line = append(line, span{word, s.font})
			}
		}
	}
	flush()
	d.y += gap
	return nil
}

// wide is about how wide a text is, by the widths of Helvetica in thousandths.
func wide(text string, size float64, font int) float64 {
	if font == codeFont {
		return .602 * size * float64(utf8.RuneCountInString(text))
	}
	total := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("ijl'|", r):
			total += 222
		case strings.ContainsRune(" ftI.,:;/!()-[]“”", r):
			total += 290
		case strings.ContainsRune("mM—–", r):
			total += 833
		case strings.ContainsRune("wABEKPSVXYCDHNRUGOQTWFZ+−", r):
			total += 690
		case strings.ContainsRune("rckvsxyz", r):
			total += 480
		default:
			total += 556
		}
	}
	if font == boldFont {
		total *= 1.07
	}
	return 1.05 * total * size / 1000 // other fonts are wider
}
