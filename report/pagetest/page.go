//go:build browser

package pagetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/debugger"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A Look is how a page is looked at.
type Look struct {
	Width, Height int // in CSS pixels; 0 is 1280 by 900
	Dark, Print   bool
	// NoPolicy puts the page's Content-Security-Policy aside: what keeps scripts out is the markup alone.
	NoPolicy bool
}

// Phone is a phone held upright.
var Phone = Look{Width: 375, Height: 812}

// A Page is a page in a tab of its own. An error of the browser ends the test.
type Page struct {
	t   testing.TB
	ctx context.Context
	end context.CancelFunc

	mu      sync.Mutex
	seen    Seen
	touched bool // this package has run a script of its own
}

// Seen is what a page has done.
type Seen struct {
	Requests []string // addresses, that of the page among them
	Console  []string // what was written there, by scripts and by the browser
	Errors   []string // exceptions that nobody caught
	Dialogs  []string // alert, confirm, prompt, beforeunload
	Scripts  []string // the address of each script that was compiled: elements, attributes, javascript: and workers
}

// patience bounds each step. Only a browser that hangs needs as much.
const patience = 2 * time.Minute

// Open opens an address and waits until it is loaded. The tab closes with the test.
func (b *Browser) Open(t testing.TB, address string, look Look) *Page {
	t.Helper()
	p := &Page{t: t}
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithListener(p.heard))
	t.Cleanup(end)
	p.ctx, p.end = ctx, end
	if err := chromedp.Do(ctx); err != nil { // a tab lives as long as the context of its first call
		t.Fatalf("pagetest: opening a tab: %v", err)
	}
	p.do(step(network.Enable, network.EnableParams{}), step(log.Enable, cdp.Empty{}), step(debugger.Enable, debugger.EnableParams{}),
		step(page.SetBypassCSP, page.SetBypassCSPParams{Enabled: look.NoPolicy}))
	p.Look(look)
	p.mu.Lock()
	p.seen = Seen{} // chromedp looked at the empty tab
	p.mu.Unlock()
	p.do(chromedp.Navigate(address))
	return p
}

// Look changes how the page is looked at. NoPolicy is for Open alone.
func (p *Page) Look(look Look) {
	p.t.Helper()
	if look.Width == 0 {
		look.Width, look.Height = 1280, 900
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}}
	if look.Dark {
		media.Features[0].Value = "dark"
	}
	if look.Print {
		media.Media = "print"
	}
	p.do(step(emulation.SetEmulatedMedia, media), step(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(look.Width), Height: int64(look.Height), DeviceScaleFactor: 1, Mobile: look.Width < 500,
	}))
}

// Go opens another address in the tab.
func (p *Page) Go(address string) {
	p.t.Helper()
	p.do(chromedp.Navigate(address))
}

// Close closes the tab, for a test that opens many.
func (p *Page) Close() { p.end() }

// step is a command of the browser's protocol, without its result.
func step[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, t, command, params)
		return none, err
	}
}

func (p *Page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	run(p, chromedp.Steps(steps...))
}

func run[T any](p *Page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.ctx, patience)
	defer stop()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.t.Fatalf("pagetest: %v\nseen: %+v", err, p.seen)
	}
	return value
}

// source marks the scripts of this package.
const source = "pagetest:"

// heard notes what the page does.
func (p *Page) heard(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.seen
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		s.Requests = append(s.Requests, e.Request.URL)
	case *network.EventWebSocketCreated:
		s.Requests = append(s.Requests, e.URL)
	case *log.EventEntryAdded:
		s.Console = append(s.Console, fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
	case *runtime.EventConsoleAPICalled:
		text := string(e.Type) + ":"
		for _, a := range e.Args {
			text += " " + string(a.Value)
			if len(a.Value) == 0 {
				text += a.Description
			}
		}
		s.Console = append(s.Console, text)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		s.Errors = append(s.Errors, text)
	case *page.EventJavascriptDialogOpening:
		s.Dialogs = append(s.Dialogs, fmt.Sprintf("%s: %s", e.Type, e.Message))
		go func() { // the page stands still until it is answered; a tab that is closed needs no answer
			_ = chromedp.Do(p.ctx, step(page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true}))
		}()
	case *debugger.EventScriptParsed:
		// A script of ours may compile others, which have no address.
		if !strings.HasPrefix(e.URL, source) && (e.URL != "" || !p.touched) {
			s.Scripts = append(s.Scripts, e.URL)
		}
	}
}

// Seen is what the page has done so far, a moment after what was asked of it last.
func (p *Page) Seen() Seen {
	p.t.Helper()
	p.do(chromedp.Sleep(100 * time.Millisecond))
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// Eval runs a script in the page, waits for it if it is a promise, and stores its value in to unless
// that is nil. A page's policy does not keep it from running.
func (p *Page) Eval(script string, to any) {
	p.t.Helper()
	p.mu.Lock()
	p.touched = true
	p.mu.Unlock()
	raw := run(p, chromedp.Evaluate[[]byte](script+"\n//# sourceURL="+source, chromedp.EvalAwaitPromise))
	if to == nil {
		return
	}
	if err := json.Unmarshal(raw, to); err != nil {
		p.t.Fatalf("pagetest: %s: %v: %q", script, err, raw)
	}
}

// Text is the text of the page as it shows.
func (p *Page) Text() (text string) {
	p.t.Helper()
	p.Eval("document.body.innerText", &text)
	return text
}

// Above is the text that shows before anybody scrolls, in lines as they stand in the page.
func (p *Page) Above() (text string) {
	p.t.Helper()
	p.Eval(`(() => {
  const out = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; n = walk.nextNode();) {
    const range = document.createRange();
    range.selectNodeContents(n);
    const at = range.getBoundingClientRect();
    if (n.data.trim() && at.width > 0 && at.left >= 0 && at.bottom > 0 && at.bottom <= innerHeight) out.push(n.data.trim());
  }
  return out.join(" ");
})()`, &text)
	return text
}

// Wait waits until a script's value is true. The test fails if that takes longer than most.
func (p *Page) Wait(script string, most time.Duration) {
	p.t.Helper()
	for end := time.Now().Add(most); ; {
		var is bool
		if p.Eval("!!("+script+")", &is); is {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("pagetest: after %v still not: %s\nthe page says: %s\nseen: %+v", most, script, p.Text(), p.Seen())
		}
		p.do(chromedp.Sleep(50 * time.Millisecond))
	}
}

// Click clicks the one element that a CSS selector finds.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf("(() => { const all = document.querySelectorAll(%q); if (all.length != 1) throw new Error(all.length + ' are ' + %[1]q); all[0].click(); return 0 })()", selector), nil)
}

// Type puts a text into the element with the focus, as keys do.
func (p *Page) Type(text string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(text))
}

// Tab presses the tab key.
func (p *Page) Tab() {
	p.t.Helper()
	p.do(chromedp.KeyEvent(kb.Tab))
}

// Passkeys gives the browser a device that makes and uses passkeys, whose person always agrees; copied says that its passkeys
// can be copied to others.
func (p *Page) Passkeys(copied bool) {
	p.t.Helper()
	p.do(step(webauthn.Enable, webauthn.EnableParams{}), step(webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true,
			IsUserVerified: true, AutomaticPresenceSimulation: true, DefaultBackupEligibility: copied, DefaultBackupState: copied,
		},
	}))
}

// Choose has a person choose files in the file input that a CSS selector finds.
func (p *Page) Choose(selector string, files ...string) {
	p.t.Helper()
	input := run(p, chromedp.Evaluate[*runtime.RemoteObject](fmt.Sprintf("document.querySelector(%q)\n//# sourceURL="+source, selector)))
	p.do(step(dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: files, ObjectID: input.ObjectID}))
}

// Picture is a PNG of what shows in the window, from the top of the page.
func (p *Page) Picture() (png []byte) {
	p.t.Helper()
	return run(p, chromedp.CaptureScreenshot())
}

// PDF is the page as it is printed.
func (p *Page) PDF() (pdf []byte) {
	p.t.Helper()
	return run(p, chromedp.PrintToPDF(chromedp.PDFPrintBackground()))
}

// Violations are the rules of axe-core that the page breaks, each with the elements, as one text.
func (p *Page) Violations() (broken []string) {
	p.t.Helper()
	path := os.Getenv("COUNTERSIGN_AXE")
	if path == "" {
		lacks(p.t, "no axe-core: COUNTERSIGN_AXE is not set")
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Eval(string(axe)+"\n;0", nil)
	p.Eval(`axe.run(document, {resultTypes: ["violations"]}).then(r => {
		if (r.passes.length < 5) throw new Error("axe-core looked at nothing");
		return r.violations.map(v => v.id + " (" + v.impact + "): " + v.help + v.nodes.map(n => "\n    " + n.html + "\n      " + n.failureSummary.replaceAll("\n", "\n      ")).join(""));
	})`, &broken)
	return broken
}
