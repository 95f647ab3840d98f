//go:build browser

package pagetest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// A Browser is a Chromium with a profile of its own. Whatever it wants of a place that is not this machine
// goes to a proxy, which notes it and refuses.
type Browser struct {
	ctx   context.Context
	proxy *httptest.Server

	mu      sync.Mutex
	left    []string
	windows []string
}

// Start starts a Chromium, and ends it with the test. The test is skipped, or fails if
// COUNTERSIGN_BROWSER is "require", where there is none.
func Start(t testing.TB) *Browser {
	t.Helper()
	program := chromium()
	if program == "" {
		lacks(t, "no Chromium")
	}
	b := &Browser{}
	b.proxy = httptest.NewServer(http.HandlerFunc(b.refuse))
	t.Cleanup(b.proxy.Close)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-domain-reliability", true),
		chromedp.Flag("no-pings", true), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("force-webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.ProxyServer(b.proxy.URL), chromedp.WSURLReadTimeout(time.Minute),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	var end context.CancelFunc
	b.ctx, end = chromedp.NewContext(allocator)
	t.Cleanup(end)
	if err := b.prepare(); err != nil {
		t.Fatalf("pagetest: starting %s: %v", program, err)
	}
	return b
}

// prepare starts the browser, has it tell of windows, and lets nothing be downloaded.
func (b *Browser) prepare() error {
	if err := chromedp.ListenBrowser(b.ctx, b.heard); err != nil {
		return err
	}
	if _, err := chromedp.CallBrowser(b.ctx, target.SetDiscoverTargets, target.SetDiscoverTargetsParams{Discover: true}); err != nil {
		return err
	}
	_, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny})
	return err
}

// lacks ends a test that lacks something of the machine.
func lacks(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("COUNTERSIGN_BROWSER") == "require" {
		t.Fatalf("pagetest: %s, and COUNTERSIGN_BROWSER=require", what)
	}
	t.Skipf("\n\n*** NOT TESTED IN A BROWSER: %s (see .ci/run) ***\n", what)
}

func chromium() string {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} { // the first is Chromium without its windows, at half the cost
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// own are places that Chromium asks of its own accord, for the time and for updates. A page that asks them is
// seen to (Seen.Requests).
var own = regexp.MustCompile(`\.(google|googleapis|gstatic|gvt1)\.com(:443)?$`)

// refuse notes what was asked for, and gives nothing.
func (b *Browser) refuse(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !own.MatchString(r.Host) {
		b.left = append(b.left, r.Method+" "+r.URL.String()+" "+r.Host)
	}
	http.Error(w, "pagetest: nothing leaves this machine", http.StatusForbidden)
}

// heard notes windows that a page opens.
func (b *Browser) heard(event any) {
	if e, ok := event.(*target.EventTargetCreated); ok && e.TargetInfo.OpenerID != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.windows = append(b.windows, e.TargetInfo.Type+" "+e.TargetInfo.URL)
	}
}

// Left is each request so far that wanted to leave the machine, of all pages.
func (b *Browser) Left() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.left)
}

// Windows are the windows that pages have opened so far, by address.
func (b *Browser) Windows() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.windows)
}

// File is the file:// address of a file.
func File(t testing.TB, path string) string {
	t.Helper()
	whole, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(whole)}).String()
}

// Serve serves a directory on 127.0.0.1 until the test ends, and returns its address, with a slash at
// its end.
func Serve(t testing.TB, dir string) string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	if host, _, err := net.SplitHostPort(server.Listener.Addr().String()); err != nil || host != "127.0.0.1" {
		t.Fatalf("pagetest: served on %s: %v", server.Listener.Addr(), err)
	}
	return server.URL + "/"
}
