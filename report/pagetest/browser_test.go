//go:build browser

package pagetest

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// bad does everything that a page of ours must not do.
const bad = `<!DOCTYPE html><title>Bad</title>
<p id="p">text</p><a href="x">go</a>
<img src="http://elsewhere.example/a.png"><link rel="preconnect" href="https://elsewhere.example">
<script>console.log("ran", 1); setTimeout(() => { throw new Error("thrown") })</script>
<img src="data:," onerror="document.title = 'attribute'"><iframe src="javascript:parent.document.body.dataset.url = 1"></iframe>
<script>setTimeout(() => alert("dialog"), 50); open("about:blank#opened")</script>
<input type="file" id="file"><input id="word">`

func write(t *testing.T, page string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page #1.html")
	if err := os.WriteFile(path, []byte(page), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBrowserSeen: what a bad page does is seen, so a test that sees nothing says something.
func TestBrowserSeen(t *testing.T) {
	b := Start(t)
	path := write(t, bad)
	p := b.Open(t, File(t, path), Look{})
	p.Wait("document.title == 'attribute'", time.Minute)
	for end := time.Now().Add(time.Minute); len(p.Seen().Dialogs) == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	seen := p.Seen()
	for what, list := range map[string][]string{
		"http://elsewhere.example/a.png": seen.Requests, `"ran" 1`: seen.Console, "thrown": seen.Errors, "dialog": seen.Dialogs,
		"elsewhere.example": b.Left(),
	} {
		if !slices.ContainsFunc(list, func(s string) bool {
			return strings.Contains(s, what) || what == `ran" 1` && strings.Contains(s, "ran")
		}) {
			t.Errorf("not seen: %s: %q", what, list)
		}
	}
	if windows := b.Windows(); len(windows) != 1 {
		t.Errorf("windows seen: %q, want one", windows)
	}
	if len(seen.Scripts) < 4 {
		t.Errorf("scripts seen: %q, want two elements, an attribute and an address", seen.Scripts)
	}
	if broken := p.Violations(); len(broken) == 0 {
		t.Error("axe-core finds nothing in a page without a language")
	}
}

// TestBrowserQuiet: nothing is seen of a page that does nothing, and nothing of what this package does itself.
func TestBrowserQuiet(t *testing.T) {
	b := Start(t)
	path := write(t, `<!DOCTYPE html><html lang="en"><head><title>Quiet</title><meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" content="default-src 'none'"></head>
<body><main><h1>Hello</h1><p><label>Word <input id="word"></label></p><p><label>File <input type="file" id="file"></label></p></main></body></html>`)
	p := b.Open(t, File(t, path), Phone)
	if text := p.Text(); !strings.Contains(text, "Hello") {
		t.Errorf("the page says %q", text)
	}
	if broken := p.Violations(); len(broken) > 0 {
		t.Errorf("axe-core: %q", broken)
	}
	p.Tab()
	p.Type("typed")
	p.Choose("#file", path)
	var got [3]any
	p.Eval("[document.querySelector('#word').value, document.querySelector('#file').files[0].name, innerWidth]", &got)
	if got != [3]any{"typed", "page #1.html", 375.0} {
		t.Errorf("typed, chosen and width: %q", got)
	}
	if image, err := png.DecodeConfig(bytes.NewReader(p.Picture())); err != nil || image.Width != 375 || image.Height != 812 {
		t.Errorf("picture: %+v, %v", image, err)
	}
	if pdf := p.PDF(); !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Errorf("PDF: %.20q", pdf)
	}
	seen := p.Seen()
	if len(seen.Requests) != 1 || len(seen.Console)+len(seen.Errors)+len(seen.Dialogs)+len(seen.Scripts)+len(b.Left())+len(b.Windows()) > 0 {
		t.Errorf("seen: %q, left: %q, windows: %q", seen, b.Left(), b.Windows())
	}
}

// TestBrowserLook: a page is looked at as it is asked.
func TestBrowserLook(t *testing.T) {
	b := Start(t)
	dir := filepath.Dir(write(t, `<meta http-equiv="Content-Security-Policy" content="script-src 'none'"><script>document.title = "ran"</script>`))
	address := Serve(t, dir) + "page%20%231.html"
	p := b.Open(t, address, Look{Dark: true, Print: true})
	var got []bool
	media := "['(prefers-color-scheme: dark)', 'print'].map(m => matchMedia(m).matches).concat(document.title == 'ran')"
	if p.Eval(media, &got); !slices.Equal(got, []bool{true, true, false}) {
		t.Errorf("dark, print, ran: %v", got)
	}
	if seen := p.Seen(); len(seen.Console) == 0 {
		t.Errorf("nobody told that a script was kept out: %+v", seen)
	}
	p = b.Open(t, address, Look{NoPolicy: true})
	if p.Eval(media, &got); !slices.Equal(got, []bool{false, false, true}) {
		t.Errorf("dark, print, ran without a policy: %v", got)
	}
}

// TestBrowserProblems: each thing that can be wrong with a page is found.
func TestBrowserProblems(t *testing.T) {
	b := Start(t)
	const head = `<!DOCTYPE html><html lang="en"><head><title>A page</title><meta name="viewport" content="width=device-width, initial-scale=1">
<style>:focus-visible { outline: 3px solid } body { overflow-wrap: anywhere } @media print { .screen { display: none } }</style></head><body><main><h1>A page</h1>`
	for want, body := range map[string]string{
		"":                                   `<p class="screen">Not on paper</p><p><a href="#x">A link</a></p><pre tabindex="0" role="region" aria-label="Box" style="white-space: pre-wrap">word</pre>`,
		"color-contrast":                     `<p style="color: #bbb; background: #fff">pale</p>`,
		"the page scrolls sideways":          `<p style="white-space: nowrap">` + strings.Repeat("word ", 60) + `</p>`,
		"is not reached":                     `<p><a href="#x" tabindex="-1">A link</a></p>`,
		"has the focus and does not show it": `<p><a href="#x" style="outline: none">A link</a></p>`,
		"has the focus and is out of sight":  `<p><a href="#x" style="position: fixed; left: -500px">A link</a></p>`,
		"print: does not show: for nobody":   `<style>@media print { #gone { display: none } }</style><p id="gone">for nobody</p>`,
		"print: cut off":                     `<pre tabindex="0" role="region" aria-label="Box" style="overflow: auto">` + strings.Repeat("word ", 60) + `</pre>`,
		"ran a script":                       `<script>document.title = "B page"</script>`,
		"asked for":                          `<p><img src="x.png" alt="a picture"></p>`,
	} {
		found := b.Problems(t, File(t, write(t, head+body+"</main></body></html>")), Rules{Screen: ".screen"})
		if text := strings.Join(found, "\n"); want == "" && text != "" || want != "" && !strings.Contains(text, want) {
			t.Errorf("want %q, found %s", want, text)
		}
	}
}
