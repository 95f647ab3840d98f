package teststand

import (
	"cmp"
	"net/http"
	"sync"
)

// A Request is one that a server got.
type Request struct {
	Method, Path  string
	URI           string // the path and the query, as they came
	Protocol      string // HTTP/1.1 or HTTP/2.0
	Authorization string
	UserAgent     string
	Remote        string // the client's address, the same for one connection
	Status        int    // of the answer; 0 if there was none
	In, Out       int64  // bytes of the bodies; In only of a [Server]
}

// A Recorder notes the requests that a server gets, and lets them fail. Several
// goroutines may use it.
type Recorder struct {
	mu    sync.Mutex
	fault func(n int, r *http.Request) Fault
	asked int // requests since the fault was set
	seen  []*Request
}

// SetFault sets what goes wrong: f is asked for each request, n is 1 for the
// first after this call. Nil is nothing.
func (rec *Recorder) SetFault(f func(n int, r *http.Request) Fault) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.fault, rec.asked = f, 0
}

// Requests returns what was asked so far.
func (rec *Recorder) Requests() []Request {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	all := make([]Request, len(rec.seen))
	for i, r := range rec.seen {
		all[i] = *r
	}
	return all
}

// Reset forgets the requests so far.
func (rec *Recorder) Reset() {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.seen = nil
}

// Serve notes a request, and serves it by next or fails as the fault says.
func (rec *Recorder) Serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	request, fault := rec.note(r)
	fault.Serve(&noted{w, rec, request}, r, next)
}

func (rec *Recorder) note(r *http.Request) (*Request, Fault) {
	request := &Request{
		Method: r.Method, Path: r.URL.Path, URI: r.URL.RequestURI(), Protocol: r.Proto, Authorization: r.Header.Get("Authorization"), UserAgent: r.UserAgent(), Remote: r.RemoteAddr,
	}
	rec.mu.Lock()
	rec.seen = append(rec.seen, request)
	rec.asked++
	fault, n := rec.fault, rec.asked
	rec.mu.Unlock() // a fault may itself be another request
	if fault == nil {
		return request, Fault{}
	}
	return request, fault(n, r)
}

// noted notes an answer before anybody sees it.
type noted struct {
	http.ResponseWriter
	rec     *Recorder
	request *Request
}

func (n *noted) note(status, written int) {
	n.rec.mu.Lock()
	defer n.rec.mu.Unlock()
	n.request.Status = cmp.Or(n.request.Status, status)
	n.request.Out += int64(written)
}

func (n *noted) WriteHeader(status int) {
	n.note(status, 0)
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Write(p []byte) (int, error) {
	n.note(http.StatusOK, len(p))
	return n.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }
