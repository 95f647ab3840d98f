package wire

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// An httpClient is net/http's, behind a guard.
type httpClient struct {
	http  *http.Client
	guard *guard
	base  string // the repository's URL; it changes when the server redirects
}

func newHTTPClient(r Remote, o Options) *httpClient {
	base := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		ForceAttemptHTTP2:      true, // also with a TLS configuration of our own
		MaxResponseHeaderBytes: 1 << 20,
		TLSClientConfig:        o.TLS.Clone(),
	}
	g := &guard{base: base, remote: r, exact: o.Exact, agent: o.UserAgent, authorization: o.Authorization, ask: o.Credentials}
	if g.authorization == "" && r.user != nil {
		password, _ := r.user.Password()
		g.authorization = Basic(r.user.Username(), password)
	}
	return &httpClient{&http.Client{Transport: g}, g, r.base()}
}

func (c *httpClient) begin(n *notes) { c.guard.notes = n }

func (c *httpClient) Close() error {
	c.guard.base.(interface{ CloseIdleConnections() }).CloseIdleConnections()
	return nil
}

// base has no user: the guard alone knows the credentials.
func (r Remote) base() string { return r.scheme + "://" + r.hostPort() + r.path }

func (c *httpClient) open(service string) session { return &httpSession{client: c, service: service} }

// An httpSession is a service of a server over http, whose answers the guard checks.
type httpSession struct {
	client  *httpClient
	service string
	body    io.Closer // of the answer to a fetch
}

func (s *httpSession) list(ctx context.Context) (*refList, error) {
	const path = "/info/refs"
	resp, err := s.send(ctx, http.MethodGet, path+"?service="+s.service)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	at := *resp.Request.URL
	at.RawQuery, at.Fragment, at.RawFragment = "", "", ""
	s.client.base = strings.TrimSuffix(at.String(), path)
	raw, err := io.ReadAll(resp.Body) // the guard has it whole
	if err != nil {
		return nil, err
	}
	all := bytes.NewReader(raw)
	adv, err := readAdvertisement(all, s.service)
	if err == nil && all.Len() != 0 {
		err = errors.New("the answer goes on after its end")
	}
	return adv, err
}

func (s *httpSession) fetch(ctx context.Context, request []byte) (io.Reader, error) {
	resp, err := s.send(ctx, http.MethodPost, "/"+s.service, request)
	if err != nil {
		return nil, err
	}
	s.body = resp.Body
	return resp.Body, nil
}

func (s *httpSession) push(ctx context.Context, command, pack []byte, sideband bool) (*report, error) {
	resp, err := s.send(ctx, http.MethodPost, "/"+s.service, command, pack)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return readReport(resp.Body, sideband, s.client.guard.notes)
}

func (s *httpSession) close() {
	if s.body != nil {
		_ = s.body.Close()
	}
}

// send says how long it is: there are servers that take nothing else.
func (s *httpSession) send(ctx context.Context, method, path string, parts ...[]byte) (*http.Response, error) {
	var body []io.Reader
	var size int64
	for _, part := range parts {
		body, size = append(body, bytes.NewReader(part)), size+int64(len(part))
	}
	req, err := http.NewRequestWithContext(ctx, method, s.client.base+path, io.MultiReader(body...))
	if err != nil {
		return nil, err
	}
	if req.ContentLength = size; size == 0 {
		req.Body = http.NoBody
	}
	req.GetBody = func() (io.ReadCloser, error) { // for a connection that ended before anything was sent
		var again []io.Reader
		for _, part := range parts {
			again = append(again, bytes.NewReader(part))
		}
		return io.NopCloser(io.MultiReader(again...)), nil
	}
	req.Header.Set("Accept", "*/*")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-"+s.service+"-request")
		req.Header.Set("Accept", "application/x-"+s.service+"-result")
	}
	return s.client.http.Do(req)
}

// A guard is what an HTTP session speaks through. It alone adds
// credentials, lets no request go elsewhere, and returns an answer only if it
// is one of the Git service that was asked, whole but for packs.
type guard struct {
	base          http.RoundTripper
	remote        Remote
	exact         bool // no redirect is followed
	agent         string
	authorization string
	ask           func(context.Context, *url.URL) (string, func(bool)) // nil once it was
	notes         *notes
}

func (g *guard) RoundTrip(req *http.Request) (_ *http.Response, err error) {
	defer func() {
		if err != nil {
			err = g.notes.failed(err)
		}
	}()
	if err := g.remote.mayVisit(req.URL); err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.URL.User = nil
	req.Header.Del("Authorization")
	req.Header.Del("Host")
	req.Header.Set("User-Agent", g.agent)
	var took func(bool)
	if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/git-receive-pack") {
		took = g.fill(req) // what is pushed cannot be sent twice
	}
	if g.authorization != "" && mayAuthorize(req.URL) {
		req.Header.Set("Authorization", g.authorization)
	}
	resp, err := g.base.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized && req.Method == http.MethodGet {
		if took = g.fill(req); took != nil {
			drain(resp.Body)
			req.Header.Set("Authorization", g.authorization)
			resp, err = g.base.RoundTrip(req)
		}
	}
	if err != nil {
		return nil, &NetworkError{strip(err)}
	}
	if took != nil && (resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusUnauthorized) {
		took(resp.StatusCode == http.StatusOK)
	}
	if err := g.checkStatus(req, resp); err != nil {
		if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/plain" { // why, to be shown
			_, _ = io.Copy(g.notes, io.LimitReader(resp.Body, maxMessage))
		}
		drain(resp.Body)
		return nil, err
	}
	if resp.StatusCode != http.StatusOK { // a redirect that may be followed
		drain(resp.Body)
		resp.Body = http.NoBody
		return resp, nil
	}
	body, err := g.answer(req, resp)
	if err != nil {
		drain(resp.Body)
		return nil, err
	}
	resp.Body = body
	return resp, nil
}

// fill asks for credentials, where there are none yet and somebody may have some. It
// returns who wants to know whether the server took them; nil where there are still none.
func (g *guard) fill(req *http.Request) (took func(bool)) {
	ask := g.ask
	if ask == nil || g.authorization != "" || !mayAuthorize(req.URL) {
		return nil
	}
	g.ask = nil
	path := strings.TrimSuffix(strings.TrimSuffix(req.URL.Path, "/info/refs"), "/git-receive-pack")
	authorization, took := ask(req.Context(), &url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: path})
	if authorization == "" || checkHeader(authorization) != nil {
		return nil
	}
	g.authorization = authorization
	return took
}

// mayVisit lets requests to the remote's own host pass, and those to its
// https from http.
func (r Remote) mayVisit(u *url.URL) error {
	if !strings.EqualFold(u.Hostname(), r.host) {
		return errors.New("the server redirects to another host")
	}
	switch port := portOf(u); {
	case u.Scheme == r.scheme && port == r.dialPort():
		return nil
	case u.Scheme == "https" && r.scheme == "http" && port == 443 && r.dialPort() == 80:
		return nil
	case u.Scheme != r.scheme:
		return errors.New("the server redirects to another scheme")
	}
	return errors.New("the server redirects to another port")
}

func portOf(u *url.URL) int {
	if u.Port() == "" {
		return Remote{scheme: u.Scheme}.dialPort()
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return -1
	}
	return port
}

// mayAuthorize reports whether nobody listens on the way.
func mayAuthorize(u *url.URL) bool {
	return u.Scheme == "https" || isLoopback(u.Hostname())
}

// checkStatus accepts an answer, and a redirect of the first request of a
// session to elsewhere on the same host.
func (g *guard) checkStatus(req *http.Request, resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		if g.exact {
			return ErrElsewhere
		}
		if req.Method != http.MethodGet {
			return errors.New("the server redirects a request that must not be redirected")
		}
		to, err := resp.Location()
		if err != nil {
			return errors.New("the server redirects to nowhere")
		}
		if err := g.remote.mayVisit(to); err != nil {
			return err
		}
		if to.User != nil || to.Query().Get("service") != req.URL.Query().Get("service") || !strings.HasSuffix(to.Path, "/info/refs") {
			return errors.New("the server redirects to another path")
		}
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		why := errors.New("the credentials are not valid here or not sufficient")
		switch {
		case g.authorization == "":
			why = errors.New("no credentials were given")
		case !mayAuthorize(req.URL):
			why = errors.New("credentials are not sent without TLS")
		}
		return &AuthError{resp.StatusCode, why}
	case http.StatusNotFound:
		return ErrNotFound
	}
	failed := &StatusError{Status: resp.StatusCode}
	if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 20); err == nil {
		failed.after = time.Duration(seconds) * time.Second
	} else if resp.StatusCode == http.StatusTooManyRequests {
		failed.after = maxWait
	}
	return failed
}

// drain reads what little is left, so that the connection is used again.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}

// answer checks an answer, and reads it whole if it is not a pack.
func (g *guard) answer(req *http.Request, resp *http.Response) (io.ReadCloser, error) {
	service := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
	want, limit := "application/x-"+service+"-result", int64(maxReport)
	if req.Method == http.MethodGet {
		service = req.URL.Query().Get("service")
		want, limit = "application/x-"+service+"-advertisement", maxAdvertisement
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != want {
		return nil, fmt.Errorf("the answer is no %s", want)
	}
	if want == "application/x-git-upload-pack-result" {
		return &packBody{resp.Body, g.notes}, nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, &NetworkError{err}
	case int64(len(raw)) > limit:
		return nil, ErrTooLarge
	}
	_ = resp.Body.Close()
	return io.NopCloser(bytes.NewReader(raw)), nil
}

// A packBody remembers how reading failed, and
// reads a little on when it is closed.
type packBody struct {
	io.ReadCloser
	notes *notes
}

func (b *packBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		return n, b.notes.failed(&NetworkError{err})
	}
	if long := b.notes.count(n); long != nil {
		return 0, long
	}
	return n, err
}

func (b *packBody) Close() error {
	drain(b.ReadCloser)
	return nil
}

// Basic is the value of an Authorization header for a user and a password or
// token.
func Basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// ExtraHeader returns the value of the Authorization header in a line of Git's
// http.extraheader, which is where actions/checkout leaves its token. Other
// headers are an error, and so is a line break.
func ExtraHeader(line string) (string, error) {
	name, value, ok := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	if !ok || !strings.EqualFold(strings.TrimSpace(name), "Authorization") || value == "" {
		return "", errors.New("http.extraheader is not an Authorization header")
	}
	return value, checkHeader(value)
}

func checkHeader(value string) error {
	if strings.ContainsFunc(value, isControl) {
		return errors.New("the Authorization header has control characters")
	}
	return nil
}
