// Package rest speaks to the REST API of a forge, over http, and is what the packages of
// forges have in common: how requests are sent and fail, and in Repository what is asked at
// the same addresses.
//
// Reading fails closed: an answer that was cut is an error, never a shorter one.
// Reads are tried again when the network or the forge fails, writes only when the
// forge surely did nothing. The token goes to the API's hosts and nowhere else.
package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Kind says what went wrong, so that a caller can tell people what to do.
type Kind string

// The kinds.
const (
	KindAuth        Kind = "auth"        // the token is not valid
	KindPermission  Kind = "permission"  // the token may not do it
	KindNotFound    Kind = "notfound"    // it does not exist, or the token cannot see it
	KindRateLimited Kind = "ratelimited" // too many requests, and the wait is too long
	KindNetwork     Kind = "network"     // no answer, a cut one, or one of status 5xx
	KindRefused     Kind = "refused"     // the forge did not take the request
	KindChanged     Kind = "changed"     // what was read changed meanwhile, twice
	KindMoved       Kind = "moved"       // the head of a pull request is another than the one to merge
	KindAnswer      Kind = "answer"      // an answer that cannot be used
	KindClock       Kind = "clock"       // the clocks there and here are far apart
	KindSpent       Kind = "spent"       // there were as many requests as WithBudget allows
)

// An Error is a request to a forge that failed. It holds neither the token nor
// an address, and no text over one line.
type Error struct {
	Forge   string // whose API it was, such as "GitHub"
	Op      string // what was being done
	Kind    Kind
	Status  int       // of the answer; 0 without one
	Message string    // what the forge said, or what is wrong with what it said
	Until   time.Time // KindRateLimited: when to try again; zero if not known
	Err     error     // the cause; may be nil
}

// Error is one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	if e.Forge != "" {
		b.WriteString(e.Forge + ": ")
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, "status %d: ", e.Status)
	}
	b.WriteString(e.Message)
	if !e.Until.IsZero() {
		b.WriteString("; not before " + e.Until.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint is what to do about it.
func (e *Error) Hint() string {
	switch e.Kind {
	case KindAuth:
		return "the token is no longer valid: give another one"
	case KindPermission:
		return "countersign init --check"
	case KindNotFound:
		return "give a token that can see it, if it is there"
	case KindClock:
		return "set the clock of this machine"
	case KindRateLimited:
		return "run it again later: nothing counts until it was read"
	}
	return "run it again: nothing counts until all of it was read"
}

// Is matches the errors that package forge tells apart.
func (e *Error) Is(target error) bool {
	return target == forge.ErrPermission && e.Kind == KindPermission || target == forge.ErrNotFound && e.Kind == KindNotFound ||
		target == forge.ErrMoved && e.Kind == KindMoved || target == forge.ErrRefused && e.Kind == KindRefused ||
		target == forge.ErrSpent && (e.Kind == KindSpent || e.Kind == KindRateLimited)
}

// Failed says at which forge, and in doing what, an error came. What net/http adds around
// errors is left out: it has addresses, and that of an artifact is a secret.
func Failed(forge, op string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		told := *e
		told.Forge, told.Op = forge, op
		return &told
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", op, err)
	}
	return &Error{Forge: forge, Op: op, Kind: KindAnswer, Message: "the answer cannot be read", Err: err}
}

// IsKind reports whether an error is of one of the kinds.
func IsKind(err error, kinds ...Kind) bool {
	var e *Error
	return errors.As(err, &e) && slices.Contains(kinds, e.Kind)
}

// Unusable is an answer that cannot be right.
func Unusable(format string, args ...any) error {
	return &Error{Kind: KindAnswer, Message: fmt.Sprintf(format, args...)}
}

// Changed is of what was read while it changed.
func Changed(what string) error {
	return &Error{Kind: KindChanged, Message: what + " changed while they were read"}
}

const (
	maxTries  = 5           // a server may be down for a quarter of a minute
	maxWait   = time.Minute // in all, for one request
	maxAnswer = 32 << 20    // bytes of an API's answer
)

// A Call says what kind of request a context is for. Without one, GET and HEAD
// read and everything else writes.
type Call struct {
	Read  bool
	Raw   bool  // the answer is no JSON
	Limit int64 // bytes of the answer; 0: 32 MiB
	// Judge says what is wrong with a good answer; nil for nothing.
	Judge func(resp *http.Response, body []byte) *Trouble
}

type callKey struct{}

// WithCall makes the requests of a context of that kind.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(req *http.Request) Call {
	c, told := req.Context().Value(callKey{}).(Call)
	if !told {
		c.Read = req.Method == http.MethodGet || req.Method == http.MethodHead
	}
	if c.Limit == 0 {
		c.Limit = maxAnswer
	}
	return c
}

// A Transport adds the token, reads each answer in whole, turns what is no
// answer into an Error and tries again where that is right. A library above then
// sees nothing but good answers, and none of the limits that it would remember.
type Transport struct {
	Base    http.RoundTripper
	Token   string
	Agent   string
	Hosts   []string // origins that the token is for
	Wait    func(context.Context, time.Duration) error
	Timeout time.Duration // of one attempt at one request
	Clock   *Clock        // hears the time of each good answer; nil for none
}

// Clients are one for the API, with the token, and one for what lies outside of it, without.
// What the transport leaves out is filled in.
func (t Transport) Clients() (api, storage *http.Client) {
	t.Base, t.Agent, t.Timeout = http.DefaultTransport, cmp.Or(t.Agent, "countersign"), cmp.Or(t.Timeout, 30*time.Second)
	if t.Wait == nil {
		t.Wait = Sleep
	}
	outside := t
	outside.Token, outside.Clock = "", nil
	return &http.Client{Transport: &t, CheckRedirect: SameOrigin}, &http.Client{Transport: &outside}
}

// RoundTrip is http.RoundTripper's. Its error is an *Error, or the context's.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
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
		pause := time.Second << (try - 1)
		if trouble.limited {
			pause = trouble.after
		}
		again := trouble.limited || trouble.Transient && (c.Read || trouble.unsent) // a write only if nothing was done
		if try == maxTries || !again || pause > left {
			err := trouble.Err
			return nil, &err
		}
		left -= pause
		if err := t.Wait(req.Context(), pause); err != nil {
			return nil, err
		}
	}
}

func (t *Transport) attempt(req *http.Request, c Call) (*http.Response, *Trouble) {
	ctx, cancel := context.WithTimeout(req.Context(), t.Timeout)
	defer cancel()
	out, err := t.prepare(ctx, req)
	if err != nil {
		return nil, &Trouble{Err: Error{Kind: KindRefused, Message: "the request cannot be sent again", Err: err}}
	}
	if !maySend(ctx) {
		return nil, &Trouble{Err: Error{Kind: KindSpent, Message: "as many requests were sent as are allowed"}}
	}
	heard := t.Clock.asks()
	resp, err := t.Base.RoundTrip(out)
	if err != nil {
		return nil, noAnswer(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.Limit+1))
	switch {
	case err != nil:
		return nil, &Trouble{Transient: true, Err: Error{Kind: KindNetwork, Message: "the answer was cut off", Err: err}}
	case int64(len(body)) > c.Limit:
		return nil, &Trouble{Err: Error{Kind: KindAnswer, Status: resp.StatusCode, Message: "the answer is too large"}}
	}
	bad := judge(resp, body, c)
	if bad == nil { // what is no answer may be a proxy's, with a clock of its own
		bad = heard(resp.Header)
	}
	if bad != nil {
		return nil, bad
	}
	good := *resp
	good.Request, good.Header, good.Body = req, resp.Header.Clone(), io.NopCloser(bytes.NewReader(body))
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"} {
		good.Header.Del(name) // go-github would refuse by itself to ask again
	}
	return &good, nil
}

// prepare copies a request for one attempt.
func (t *Transport) prepare(ctx context.Context, req *http.Request) (*http.Request, error) {
	out := req.Clone(ctx)
	out.Header.Del("Authorization")
	out.Header.Set("User-Agent", t.Agent)
	if t.Token != "" && slices.Contains(t.Hosts, Origin(req.URL)) {
		out.Header.Set("Authorization", "Bearer "+t.Token)
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

// noAnswer is of an attempt that ended without a response. The server surely
// did nothing if there was no connection.
func noAnswer(err error) *Trouble {
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
	return &Trouble{Transient: true, unsent: unsent, Err: Error{Kind: KindNetwork, Message: message, Err: err}}
}

// SameOrigin lets a redirect stay with the server that it came from.
func SameOrigin(req *http.Request, via []*http.Request) error {
	if len(via) > 3 || req.Method != via[0].Method || Origin(req.URL) != Origin(via[0].URL) {
		return &Error{Kind: KindRefused, Message: "the request was sent elsewhere"}
	}
	return nil
}

// Trouble is an attempt that failed.
type Trouble struct {
	Err       Error
	Transient bool          // the next attempt may succeed
	unsent    bool          // the server did not get the request
	limited   bool          // the server refused it, as there were too many
	after     time.Duration // limited: when to try again
}

// judge says what is wrong with a response, nil for nothing.
func judge(resp *http.Response, body []byte, c Call) *Trouble {
	switch {
	case resp.StatusCode >= 400:
		return refused(resp, body)
	case resp.StatusCode >= 300, resp.StatusCode == http.StatusNoContent, c.Raw:
		return nil
	}
	if !json.Valid(body) || bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return &Trouble{Transient: true, Err: Error{Kind: KindNetwork, Status: resp.StatusCode, Message: "the answer was cut off"}}
	}
	if c.Judge != nil {
		return c.Judge(resp, body)
	}
	return nil
}

// refused reads an answer of status 4xx or 5xx.
func refused(resp *http.Response, body []byte) *Trouble {
	message := cmp.Or(messageOf(body), strings.ToLower(http.StatusText(resp.StatusCode)))
	t := &Trouble{Err: Error{Status: resp.StatusCode, Message: message}}
	switch status := resp.StatusCode; {
	case status == http.StatusTooManyRequests, status == http.StatusForbidden && isLimit(resp.Header, message):
		t.Limit(resp.Header)
	case status == http.StatusUnauthorized:
		t.Err.Kind = KindAuth
	case status == http.StatusForbidden:
		t.Err.Kind = KindPermission
	case status == http.StatusNotFound, status == http.StatusGone:
		t.Err.Kind = KindNotFound
	case status >= 500, status == http.StatusRequestTimeout:
		t.Err.Kind, t.Transient = KindNetwork, true
	default:
		t.Err.Kind = KindRefused
	}
	return t
}

// messageOf is what a forge says in an error's body, on one line; "" where the
// body is not its JSON, such as a proxy's page.
func messageOf(body []byte) string {
	var doc struct {
		Message string `json:"message"`
		Errors  []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	_ = json.Unmarshal(body, &doc) // what cannot be read stays empty
	for _, e := range doc.Errors {
		if e.Message != "" {
			doc.Message += ": " + e.Message
		}
	}
	return ledger.OneLine(doc.Message, 300)
}

// isLimit tells a limit from a missing permission, which has the same status.
func isLimit(h http.Header, message string) bool {
	return h.Get("Retry-After") != "" || h.Get("X-Ratelimit-Remaining") == "0" ||
		strings.Contains(strings.ToLower(message), "rate limit")
}

// Limit fills in when to try again (REST API, "Rate limits"): Retry-After, else
// the reset, else a minute. The clock is the server's.
func (t *Trouble) Limit(h http.Header) {
	t.limited, t.after, t.Err.Kind = true, time.Minute, KindRateLimited
	now, err := http.ParseTime(h.Get("Date"))
	dated := err == nil
	if seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 20); err == nil {
		t.after = time.Duration(seconds) * time.Second
	} else if reset, err := strconv.ParseUint(h.Get("X-Ratelimit-Reset"), 10, 40); err == nil && h.Get("X-Ratelimit-Remaining") == "0" {
		t.Err.Until = time.Unix(int64(reset), 0)
		t.after = 2 * maxWait
		if dated {
			t.after = max(time.Second, t.Err.Until.Sub(now))
		}
		return
	}
	if dated {
		t.Err.Until = now.Add(t.after)
	}
}
