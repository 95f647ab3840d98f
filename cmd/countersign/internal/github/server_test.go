package github

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

const (
	theToken  = "ghs_not_a_real_token"
	theCommit = "0123456789abcdef0123456789abcdef01234567"
)

// A step is what a scripted server does with one request.
type step struct {
	status  int
	header  string // "Name: value; Name: value"
	body    string
	cut     bool // the connection ends within the body
	silence bool // there is no answer
	stop    func()
}

// A script is a server that answers in turn; the last answer is for all
// requests that follow.
type script struct {
	*httptest.Server
	mu    sync.Mutex
	steps []step
	seen  []*http.Request
}

// date is what the servers of these tests take for now.
var date = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func newScript(t *testing.T, steps ...step) *script {
	t.Helper()
	s := &script{steps: steps}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // else a server does not see that the client has gone
	s.mu.Lock()
	now := s.steps[min(len(s.seen), len(s.steps)-1)]
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	if now.stop != nil {
		now.stop()
	}
	if now.silence {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Date", date.Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json")
	for _, line := range splitFields(now.header) {
		w.Header().Set(line[0], line[1])
	}
	if now.cut {
		w.Header().Set("Content-Length", "1000")
	}
	if now.status != 0 {
		w.WriteHeader(now.status)
	}
	_, _ = w.Write([]byte(now.body))
}

func (s *script) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// pauses notes how long a client would have waited.
type pauses []time.Duration

func (p *pauses) wait(ctx context.Context, d time.Duration) error {
	*p = append(*p, d)
	return ctx.Err()
}

func newClient(t *testing.T, apiURL string, p *pauses) *Client {
	t.Helper()
	c, err := New(Options{APIURL: apiURL, Repository: "o/n", Token: theToken, Wait: p.wait, Timeout: time.Minute})
	teststand.Fatal(t, err)
	return c
}
