package wiretest

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"time"
)

// A Kind is a way in which a request fails.
type Kind string

// Before means that git does not see the request, After that git has done what
// it asks for.
const (
	None         Kind = ""
	CutBefore    Kind = "connection closed before"
	CutRequest   Kind = "connection closed in the middle of the request" // before
	CutAfter     Kind = "connection closed after"
	CutAnswer    Kind = "connection closed in the middle of the answer" // after
	Truncate     Kind = "half of the answer"                            // after; properly ended
	StatusBefore Kind = "status before"                                 // Status, Location
	StatusAfter  Kind = "status after"
	EmptyBefore  Kind = "empty 200 before"
	EmptyAfter   Kind = "empty 200 after"
	BodyBefore   Kind = "other body before" // 200 with Git's content type and Body
	BodyAfter    Kind = "other body after"
	HTMLBefore   Kind = "page before" // 200 with text/html
	HTMLAfter    Kind = "page after"
	Slow         Kind = "slow"           // waits for Delay, or till the client leaves, then serves
	Trickle      Kind = "slow in answer" // after; half of the answer, then waits as Slow
)

// A Fault is how one request fails. The zero value is not at all.
type Fault struct {
	Kind     Kind
	Status   int
	Location string // of a redirect
	Body     string
	Type     string // of BodyBefore, instead of Git's
	Delay    time.Duration
}

// All are the kinds that a push may meet, without the slow ones, with what
// they need.
func All() []Fault {
	return []Fault{
		{Kind: CutBefore}, {Kind: CutRequest}, {Kind: CutAfter}, {Kind: CutAnswer}, {Kind: Truncate},
		{Kind: EmptyBefore}, {Kind: EmptyAfter}, {Kind: HTMLBefore}, {Kind: HTMLAfter},
		{Kind: StatusBefore, Status: 401}, {Kind: StatusBefore, Status: 403}, {Kind: StatusBefore, Status: 404}, {Kind: StatusBefore, Status: 429},
		{Kind: StatusBefore, Status: 500}, {Kind: StatusAfter, Status: 500}, {Kind: StatusBefore, Status: 502}, {Kind: StatusAfter, Status: 502},
		{Kind: BodyBefore, Body: "nonsense"}, {Kind: BodyAfter, Body: "nonsense"}, {Kind: BodyBefore, Body: "0000"}, {Kind: BodyAfter, Body: "0000"},
		{Kind: BodyBefore, Body: "0011\x03out of disk0000"},
	}
}

// String names the fault.
func (f Fault) String() string {
	s := string(f.Kind)
	if f.Status != 0 {
		s += " " + strconv.Itoa(f.Status)
	}
	if f.Body != "" {
		s += " " + strconv.Quote(f.Body)
	}
	return s
}

const page = "<!DOCTYPE html><title>Sign in</title>"

func answerType(r *http.Request) string {
	if r.Method == http.MethodGet {
		return "application/x-" + r.URL.Query().Get("service") + "-advertisement"
	}
	return "application/x-" + path.Base(r.URL.Path) + "-result"
}

func wait(r *http.Request, d time.Duration) {
	select {
	case <-r.Context().Done():
	case <-time.After(d):
	}
}

// before does what is due before git sees the request, and reports whether git shall.
func (f Fault) before(w http.ResponseWriter, r *http.Request) bool {
	switch f.Kind {
	case CutBefore:
		panic(http.ErrAbortHandler)
	case CutRequest:
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
		panic(http.ErrAbortHandler)
	case StatusBefore:
		_, _ = io.Copy(io.Discard, r.Body)
		f.status(w)
	case EmptyBefore:
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", answerType(r))
	case BodyBefore:
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", cmp.Or(f.Type, answerType(r)))
		_, _ = io.WriteString(w, f.Body)
	case HTMLBefore:
		_, _ = io.Copy(io.Discard, r.Body)
		html(w)
	case Slow:
		body, err := io.ReadAll(r.Body) // only then net/http sees the client leave
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		wait(r, f.Delay)
		return r.Context().Err() == nil
	default:
		return true
	}
	return false
}

func html(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, page)
}

func (f Fault) status(w http.ResponseWriter) {
	if f.Location != "" {
		w.Header().Set("Location", f.Location)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Body)
}

// after sends git's answer, or what comes in its stead.
func (f Fault) after(w http.ResponseWriter, r *http.Request, answer *httptest.ResponseRecorder) {
	body := answer.Body.Bytes()
	switch f.Kind {
	case CutAfter:
		panic(http.ErrAbortHandler)
	case StatusAfter:
		f.status(w)
		return
	case HTMLAfter:
		html(w)
		return
	case EmptyAfter, BodyAfter:
		w.Header().Set("Content-Type", answerType(r))
		_, _ = io.WriteString(w, f.Body)
		return
	}
	maps.Copy(w.Header(), answer.Header())
	w.Header().Del("Content-Length")
	w.WriteHeader(answer.Code)
	switch f.Kind {
	case CutAnswer:
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case Truncate:
		_, _ = w.Write(body[:len(body)/2])
		return
	case Trickle:
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		wait(r, f.Delay)
	}
	_, _ = w.Write(body)
}
