package github

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

const (
	maxTries  = 4
	maxWait   = time.Minute // in all, for one request
	maxAnswer = 32 << 20    // bytes of an API's answer
)

// A call says what kind of request a context is for. Without one, GET and HEAD
// read and everything else writes.
type call struct {
	read    bool
	graphql bool
	raw     bool  // the answer is no JSON
	limit   int64 // bytes of the answer
}

type callKey struct{}

func withCall(ctx context.Context, c call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(req *http.Request) call {
	c, told := req.Context().Value(callKey{}).(call)
	if !told {
		c.read = req.Method == http.MethodGet || req.Method == http.MethodHead
	}
	if c.limit == 0 {
		c.limit = maxAnswer
	}
	return c
}

// A transport adds the token, reads each answer in whole, turns what is no
// answer into an Error and tries again where that is right. go-github then sees
// nothing but good answers, and none of the limits that it would remember.
type transport struct {
	base    http.RoundTripper
	token   string
	agent   string
	hosts   []string // origins that the token is for
	wait    func(context.Context, time.Duration) error
	timeout time.Duration
}

// RoundTrip is http.RoundTripper's. Its error is an *Error, or the context's.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	c := callOf(req)
	left := maxWait
	for try := 1; ; try++ {
		resp, trouble := t.attempt(req, c)
		if trouble == nil {
			return resp, nil
		}
		if err := req.Context().Err(); err != nil {
			return nil, err
		}
		pause := trouble.pause(try)
		if try == maxTries || !trouble.again(c.read) || pause > left {
			return nil, trouble.told()
		}
		left -= pause
		if err := t.wait(req.Context(), pause); err != nil {
			return nil, err
		}
	}
}

func (t *transport) attempt(req *http.Request, c call) (*http.Response, *trouble) {
	ctx, cancel := context.WithTimeout(req.Context(), t.timeout)
	defer cancel()
	out, err := t.prepare(ctx, req)
	if err != nil {
		return nil, &trouble{err: Error{Kind: KindRefused, Message: "the request cannot be sent again", Err: err}}
	}
	resp, err := t.base.RoundTrip(out)
	if err != nil {
		return nil, noAnswer(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.limit+1))
	switch {
	case err != nil:
		return nil, &trouble{transient: true, err: Error{Kind: KindNetwork, Message: "the answer was cut off", Err: err}}
	case int64(len(body)) > c.limit:
		return nil, &trouble{err: Error{Kind: KindAnswer, Status: resp.StatusCode, Message: "the answer is too large"}}
	}
	if bad := judge(resp, body, c); bad != nil {
		return nil, bad
	}
	return answer(req, resp, body), nil
}

// prepare copies a request for one attempt.
func (t *transport) prepare(ctx context.Context, req *http.Request) (*http.Request, error) {
	out := req.Clone(ctx)
	out.Header.Del("Authorization")
	out.Header.Set("User-Agent", t.agent)
	for _, host := range t.hosts {
		if t.token != "" && origin(req.URL) == host {
			out.Header.Set("Authorization", "Bearer "+t.token)
		}
	}
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		out.Body = body
	}
	return out, nil
}

// answer is a response that was read, without the limits: go-github would
// refuse by itself to ask again.
func answer(req *http.Request, resp *http.Response, body []byte) *http.Response {
	out := *resp
	out.Request = req
	out.Header = resp.Header.Clone()
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"} {
		out.Header.Del(name)
	}
	out.Body = io.NopCloser(bytes.NewReader(body))
	return &out
}

// noAnswer is of an attempt that ended without a response. The server surely
// did nothing if there was no connection.
func noAnswer(err error) *trouble {
	message := "no answer"
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		message = "no answer in time"
	}
	var op *net.OpError
	unsent := errors.As(err, &op) && op.Op == "dial"
	if unsent {
		message = "no connection: " + ledger.OneLine(op.Err.Error(), 200)
	}
	return &trouble{transient: true, unsent: unsent, err: Error{Kind: KindNetwork, Message: message, Err: err}}
}

// sameOrigin lets a redirect stay with the server that it came from.
func sameOrigin(req *http.Request, via []*http.Request) error {
	if len(via) > 3 || req.Method != via[0].Method || origin(req.URL) != origin(via[0].URL) {
		return &Error{Kind: KindRefused, Message: "the request was sent elsewhere"}
	}
	return nil
}
