package mcp

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Path is where the server is, below its address.
const Path = "/mcp"

// maxRequests is how many requests are answered at the same time; more are told to come back.
const maxRequests = 2 * (MaxCalls + MaxWaits)

// ServeHTTP answers clients of this machine that know the token, until ctx is done. Each
// request stands by itself, as the revision of the protocol of 2026-07-28 has it. ready is
// called before the first.
func ServeHTTP(ctx context.Context, p Program, version string, l net.Listener, token string, ready func() error) error {
	s, err := newService(p, version)
	if err != nil {
		return err
	}
	answers := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.server }, &sdk.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: MaxMessage, PropagateRequestCancellation: true,
	})
	served := &http.Server{
		Handler: guarded(answers, l.Addr().(*net.TCPAddr), token), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = served.Close() })
	defer stop()
	if err := ready(); err != nil {
		return err
	}
	if err := served.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// guarded lets in who asks for this host by its own name, from no other page, and with the
// token. A page in a browser can have its name mean this machine (DNS rebinding), and
// whoever else has an account here can reach the port: they would propose in the owner's
// name, and read the repository.
func guarded(answers http.Handler, at *net.TCPAddr, token string) http.Handler {
	_, port, _ := net.SplitHostPort(at.String())
	var hosts []string
	for _, name := range []string{at.IP.String(), "localhost"} {
		hosts = append(hosts, net.JoinHostPort(name, port))
	}
	requests := make(chan struct{}, maxRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		origin, isURL := strings.CutPrefix(r.Header.Get("Origin"), "http://")
		switch {
		case !slices.Contains(hosts, r.Host):
			http.Error(w, "This address is not of this host.", http.StatusMisdirectedRequest)
			return
		case len(r.Header.Values("Origin")) > 1, len(r.Header.Values("Origin")) == 1 && (!isURL || !slices.Contains(hosts, origin)):
			http.Error(w, "Pages of others get nothing here.", http.StatusForbidden)
			return
		case token == "" || !bearer || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "The token is missing or wrong.", http.StatusUnauthorized)
			return
		case r.URL.Path != Path:
			http.NotFound(w, r)
			return
		}
		select {
		case requests <- struct{}{}:
			defer func() { <-requests }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests at the same time.", http.StatusServiceUnavailable)
			return
		}
		answers.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), asking{}, r.Context())))
	})
}

// asking is the key of the context of the request over HTTP that a call came with. The SDK
// hands on what a request's context has but, for older revisions of the protocol, not that
// it is over.
type asking struct{}

// whileAsked is ctx for as long as the client is there to be answered.
func whileAsked(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if request, ok := ctx.Value(asking{}).(context.Context); ok {
		stop := context.AfterFunc(request, cancel)
		return ctx, func() { stop(); cancel() }
	}
	return ctx, cancel
}
