//go:build browser

package report_test

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/report/pagetest"
)

// githubStyle is how GitHub lays out a comment on a phone, as far as heights hang on it
// (github-markdown-css, .markdown-body and .markdown-alert).
const githubStyle = `
body { margin: 16px; font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
.comment { border: 1px solid #d1d9e0; padding: 16px; overflow-wrap: break-word; }
p, ul, table, pre, .alert, details { margin: 0 0 16px; }
h3 { font-size: 1.25em; line-height: 1.25; margin: 0 0 16px; }
ul { padding-left: 2em; }
code { font: 85% ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; padding: .2em .4em; white-space: break-spaces; }
pre { padding: 16px; overflow: auto; font-size: 85%; line-height: 1.45; }
pre code { font-size: 100%; padding: 0; white-space: pre; }
.alert { padding: 8px 16px; border-left: .25em solid #9a6700; }
.alert > :last-child { margin-bottom: 0; }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse; }
th, td { padding: 6px 13px; border: 1px solid #d1d9e0; }
summary { cursor: pointer; }`

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	boldSpan = regexp.MustCompile(`\*\*(.+?)\*\*`)
	linkSpan = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)
)

func inline(text string) string {
	text = codeSpan.ReplaceAllString(html.EscapeString(text), "<code>$1</code>")
	return linkSpan.ReplaceAllString(boldSpan.ReplaceAllString(text, "<b>$1</b>"), `<a href="$2">$1</a>`)
}

// rendered is a comment as HTML: it knows the marks that a request has.
func rendered(markdown string) string {
	var b strings.Builder
	lines := strings.Split(markdown, "\n")
	list := func(items []string) {
		b.WriteString("<ul>")
		for _, item := range items {
			b.WriteString("<li>" + inline(strings.TrimPrefix(item, "- ")) + "</li>")
		}
		b.WriteString("</ul>")
	}
	for i := 0; i < len(lines); i++ {
		end := i + slices.Index(append(lines[i:], ""), "")
		switch line := lines[i]; {
		case line == "":
		case strings.HasPrefix(line, "```"):
			end = i + 1 + slices.Index(lines[i+1:], "```")
			b.WriteString("<pre><code>" + html.EscapeString(strings.Join(lines[i+1:end], "\n")) + "\n</code></pre>")
			i = end
		case strings.HasPrefix(line, "<"):
			b.WriteString(line + "\n")
		case strings.HasPrefix(line, "#"):
			b.WriteString("<h3>" + inline(strings.TrimLeft(line, "# ")) + "</h3>")
		case strings.HasPrefix(line, "> [!"):
			b.WriteString(`<div class="alert"><p>Warning</p><p>` + inline(strings.TrimPrefix(lines[i+1], "> ")) + "</p>")
			var items []string
			for _, line := range lines[i+2 : end] {
				items = append(items, strings.TrimPrefix(line, "> "))
			}
			list(items)
			b.WriteString("</div>")
			i = end
		case strings.HasPrefix(line, "| "):
			b.WriteString("<table>")
			for j, row := range lines[i:end] {
				if j != 1 {
					b.WriteString("<tr>")
					for _, cell := range strings.Split(strings.Trim(row, "|"), "|") {
						b.WriteString("<td>" + inline(cell) + "</td>")
					}
					b.WriteString("</tr>")
				}
			}
			b.WriteString("</table>")
			i = end
		case strings.HasPrefix(line, "- "):
			list(lines[i:end])
			i = end
		default:
			b.WriteString("<p>" + strings.ReplaceAll(inline(strings.Join(lines[i:end], "\n")), "\n", "<br>") + "</p>")
			i = end
		}
	}
	return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>A request</title><style>` +
		githubStyle + `</style><div class="comment">` + b.String() + "</div>"
}

// TestBrowserRequest: on a phone a request for a change of two files is at most 1,100 pixels high, and the
// first thing to type is on the first two screens.
func TestBrowserRequest(t *testing.T) {
	const width, screen, most = 390, 844, 1100
	path := filepath.Join(t.TempDir(), "request.html")
	check(t, os.WriteFile(path, []byte(rendered(picture().Body())), 0o666))
	p := pagetest.Start(t).Open(t, pagetest.File(t, path), pagetest.Look{Width: width, Height: screen})
	var height, wide, first float64
	p.Eval(`document.querySelector(".comment").getBoundingClientRect().height`, &height)
	p.Eval(`document.documentElement.scrollWidth`, &wide)
	p.Eval(`[...document.querySelectorAll("code")].find(c => c.textContent.startsWith("/approve")).getBoundingClientRect().bottom`, &first)
	t.Logf("%.0f pixels high, the first thing to type ends at %.0f", height, first)
	if height > most || first > 2*screen || wide > width {
		t.Errorf("%.0f pixels high (at most %d), the first thing to type ends at %.0f, %.0f wide", height, most, first, wide)
	}
}

// TestBrowserLedger: on a phone a ledger's own page of a transaction, as a forge shows it, says on the first screen how it
// stands, who proposed and who answered. Tables and code scroll in boxes of their own, as forges have them; the page does not.
func TestBrowserLedger(t *testing.T) {
	text, err := os.ReadFile("../pipeline/page/v1/testdata/pages.md")
	check(t, err)
	b, path, seen := pagetest.Start(t), filepath.Join(t.TempDir(), "page.html"), 0
	state := regexp.MustCompile(`(?m)^\*\*(.+?)\.?\*\*`)
	for _, page := range strings.Split(string(text), "<!-- ")[1:] {
		name, page, _ := strings.Cut(page, " -->\n")
		says := state.FindStringSubmatch(page)
		if !strings.Contains(name, "/tx_") || says == nil {
			continue
		}
		seen++
		check(t, os.WriteFile(path, []byte(rendered(page)), 0o666))
		p := b.Open(t, pagetest.File(t, path), pagetest.Look{Width: 390, Height: 844})
		var wide int
		p.Eval("document.documentElement.scrollWidth", &wide)
		if above := p.Above(); !strings.Contains(above, says[1]) || !strings.Contains(above, "proposed") || wide > 390 {
			t.Errorf("%s: %d pixels wide; the first screen says %q", name, wide, above)
		}
		p.Close()
	}
	if seen < 5 {
		t.Errorf("%d pages", seen)
	}
}
