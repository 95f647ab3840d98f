package look

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/verifier"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/site"
)

func (p Program) browseCommand() *cobra.Command {
	var o options
	var noOpen bool
	cmd := &cobra.Command{
		Use:   "browse [TX]",
		Short: "Show the ledger's pages in the browser, or the page of a transaction",
		Long: `browse serves the pages that site writes on 127.0.0.1, to this machine alone and below a name
that nobody can guess, and opens the browser there. Nothing is written. It ends with Ctrl-C.

The ledger is audited first; until that is over the pages say how far it is.`,
		Example: "  countersign browse\n  countersign browse tx_01J --no-open",
		Args:    console.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.browse(cmd.Context(), args, o, noOpen)
		},
	}
	cmd.Flags().BoolVar(&o.redact, "redact", false, "leave out the diffs and what commands printed")
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "print the address, and open no browser")
	return cmd
}

// browse serves the pages until the person ends it.
func (p Program) browse(ctx context.Context, args []string, o options, noOpen bool) error {
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // as site has it
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := p.open(o)
	if err != nil {
		return err
	}
	b.Passkeys = Passkeys{} // a passkey is of a host with a name
	page, err := b.find(ctx, args)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return &console.ExitError{Code: console.ExitIO, Err: err}
	}
	s := newServer(b, l.Addr().(*net.TCPAddr).Port)
	served := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan error, 2)
	go func() { ended <- served.Serve(l) }()
	go func() {
		if err := s.prepare(ctx); err != nil {
			ended <- err
		}
	}()
	defer served.Close()
	address := fmt.Sprintf("http://127.0.0.1:%d%s%s", s.port, s.prefix, page)
	if err := p.Result(console.Document{"url": address}, address+"\n"); err != nil {
		return err
	}
	if !noOpen {
		go func() { // some browsers are in the terminal, and end when the person is done
			if p.OpenBrowser(address) != nil {
				p.Say("no browser was opened: the address above is for one")
			}
		}()
	}
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	if s.ready.Load() != nil { // the whole ledger was read
		err = errors.Join(err, s.b.unverified())
	}
	return err
}

// find returns the address of the page that is meant.
func (b *build) find(ctx context.Context, args []string) (string, error) {
	h, err := b.Ledger.History(ctx, gitstore.HistoryOptions{})
	if err != nil || len(args) == 0 {
		return "index.html", err
	}
	snap, err := b.Ledger.At(ctx, h.Tip())
	if err != nil {
		return "", err
	}
	id, err := lookup.Find(snap.Tree, args[0])
	return site.Transaction(id), err
}

// A server serves a build to this machine.
type server struct {
	b      *build
	port   int
	prefix string // the path that all pages are below: others who can reach the port do not know it

	ready atomic.Pointer[site.Site] // nil until the whole ledger was read
	far   atomic.Value              // how far that is, in words
}

func newServer(b *build, port int) *server {
	s := &server{b: b, port: port, prefix: "/" + strings.ToLower(rand.Text()) + "/"}
	shown := b.Progress
	b.Progress = func(what string, done, total int) {
		shown(what, done, total)
		switch {
		case total > 0:
			what = fmt.Sprintf("%d of %d %s", done, total, what)
		case done > 0:
			what = fmt.Sprintf("%d %s", done, what)
		default:
			what = ""
		}
		s.far.Store(what)
	}
	s.far.Store("")
	return s
}

// prepare audits the ledger and reads what lists need. Pages are made when they are asked for.
func (s *server) prepare(ctx context.Context) error {
	h, err := s.b.Ledger.History(ctx, gitstore.HistoryOptions{})
	if err != nil {
		return err
	}
	if err := s.b.audit(ctx, h); err != nil {
		return err
	}
	s.ready.Store(s.b.site())
	if err := s.b.unverified(); err != nil {
		s.b.Say("%s", err.Error())
	}
	return nil
}

// types are the content types of what is served.
var types = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// headers are those of every answer.
var headers = map[string]string{
	"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
	"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
}

// ServeHTTP serves pages to those who ask for this host by its name: a page of another one, whose
// name was made to mean this machine, gets nothing.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for name, value := range headers {
		h.Set(name, value)
	}
	h.Set("Content-Security-Policy", policyOf(""))
	port := strconv.Itoa(s.port)
	address, below := strings.CutPrefix(r.URL.Path, s.prefix)
	switch {
	case r.Host != "127.0.0.1:"+port && r.Host != "localhost:"+port:
		http.Error(w, "This address is not of this host.", http.StatusMisdirectedRequest)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "Pages can only be looked at.", http.StatusMethodNotAllowed)
		return
	case !below:
		http.NotFound(w, r)
		return
	}
	if address == "" || strings.HasSuffix(address, "/") {
		address += "index.html"
	}
	if address == bundleAddress && s.b.bundles() && s.ready.Load() != nil {
		s.bundle(w, r)
		return
	}
	data, status, err := s.file(address)
	switch {
	case err != nil:
		http.Error(w, "The page cannot be made: the ledger cannot be read.", http.StatusInternalServerError)
		return
	case data == nil:
		http.NotFound(w, r)
		return
	}
	h.Set("Content-Type", types[path.Ext(address)])
	h.Set("Content-Length", strconv.Itoa(len(data)))
	if status == http.StatusOK {
		h.Set("Content-Security-Policy", policyOf(address))
	} else {
		h.Set("Refresh", "1")
	}
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(data)
	}
}

// bundle serves the ledger itself.
func (s *server) bundle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	if r.Method != http.MethodGet {
		return
	}
	if err := s.b.Ledger.WriteBundle(r.Context(), s.b.tip, !s.b.ok(), w); err != nil {
		panic(http.ErrAbortHandler) // the reader must not take what there is for all of it
	}
}

// policyOf is the policy of a page, as the page itself has it, and that no other shows it in a frame.
func policyOf(address string) string {
	policy := html.Head{Scripts: site.Scripts(address)}.ContentSecurityPolicy()
	if address == verifyAddress {
		policy = verifier.Policy()
	}
	return policy + "; frame-ancestors 'none'"
}

// file makes a file of the site, nil if there is none.
func (s *server) file(address string) (data []byte, status int, err error) {
	ready := s.ready.Load()
	switch {
	case address == html.StyleFile:
		return html.Style(), http.StatusOK, nil
	case address == html.IconFile:
		return html.Icon(), http.StatusOK, nil
	case ready == nil:
		return readingPage(address, s.far.Load().(string)), http.StatusServiceUnavailable, nil
	case strings.HasPrefix(address, "tx/"):
		data, err = s.transaction(address, ready)
	case address == verifyAddress && s.b.verifies():
		data, err = s.b.verifier()
	default:
		data, _ = ready.File(address)
	}
	return data, http.StatusOK, err
}

// transaction makes a transaction's page.
func (s *server) transaction(address string, ready *site.Site) ([]byte, error) {
	id, ok := strings.CutSuffix(strings.TrimPrefix(address, "tx/"), ".html")
	if _, known := slices.BinarySearch(s.b.ids, id); !ok || !known {
		return nil, nil
	}
	return s.b.page(id, ready.Has)
}

// readingPage is the page that is shown until the ledger was read, and asked for again each second.
func readingPage(address, far string) []byte {
	if path.Ext(address) != ".html" {
		return nil
	}
	var body html.Body
	body.Put("<h1>The ledger is being audited</h1>\n<p role=\"status\">{}</p>\n<p>This page shows what you asked for when that is over.</p>\n", far)
	return html.Layout(html.Head{
		Title: "The ledger is being audited", Root: strings.Repeat("../", strings.Count(address, "/")), Footer: "Nothing was decided.",
	}, &body)
}
