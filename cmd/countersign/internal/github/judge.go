package github

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// trouble is an attempt that failed.
type trouble struct {
	err       Error
	transient bool          // the next attempt may succeed
	unsent    bool          // the server did not get the request
	limited   bool          // the server refused it, as there were too many
	after     time.Duration // limited: when to try again
}

// again reports whether to try once more: a write only if nothing was done.
func (t *trouble) again(read bool) bool {
	return t.limited || t.transient && (read || t.unsent)
}

// pause is how long to wait after the nth attempt: 1, 2, 4 seconds, or what the
// server asks for.
func (t *trouble) pause(n int) time.Duration {
	if t.limited {
		return t.after
	}
	return time.Second << (n - 1)
}

func (t *trouble) told() error {
	err := t.err
	return &err
}

// judge says what is wrong with a response, nil for nothing.
func judge(resp *http.Response, body []byte, c call) *trouble {
	switch {
	case resp.StatusCode >= 400:
		return refused(resp, body)
	case resp.StatusCode >= 300, resp.StatusCode == http.StatusNoContent, c.raw:
		return nil
	}
	if !json.Valid(body) || bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return &trouble{transient: true, err: Error{Kind: KindNetwork, Status: resp.StatusCode, Message: "the answer was cut off"}}
	}
	if c.graphql {
		return judgeGraphQL(resp, body)
	}
	return nil
}

// refused reads an answer of status 4xx or 5xx.
func refused(resp *http.Response, body []byte) *trouble {
	message := firstOf(messageOf(body), strings.ToLower(http.StatusText(resp.StatusCode)))
	t := &trouble{err: Error{Status: resp.StatusCode, Message: message}}
	switch status := resp.StatusCode; {
	case status == http.StatusTooManyRequests, status == http.StatusForbidden && isLimit(resp.Header, message):
		t.limit(resp.Header)
	case status == http.StatusUnauthorized:
		t.err.Kind = KindAuth
	case status == http.StatusForbidden:
		t.err.Kind = KindPermission
	case status == http.StatusNotFound, status == http.StatusGone:
		t.err.Kind = KindNotFound
	case status >= 500, status == http.StatusRequestTimeout:
		t.err.Kind, t.transient = KindNetwork, true
	default:
		t.err.Kind = KindRefused
	}
	return t
}

// messageOf is what GitHub says in an error's body, on one line; "" where the
// body is not GitHub's JSON, such as a proxy's page.
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

// limit fills in when to try again (REST API, "Rate limits"): Retry-After, else
// the reset, else a minute. The clock is the server's.
func (t *trouble) limit(h http.Header) {
	t.limited, t.after, t.err.Kind = true, time.Minute, KindRateLimited
	now, err := http.ParseTime(h.Get("Date"))
	dated := err == nil
	if seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 20); err == nil {
		t.after = time.Duration(seconds) * time.Second
	} else if reset, err := strconv.ParseUint(h.Get("X-Ratelimit-Reset"), 10, 40); err == nil && h.Get("X-Ratelimit-Remaining") == "0" {
		t.err.Until = time.Unix(int64(reset), 0)
		t.after = 2 * maxWait
		if dated {
			t.after = max(time.Second, t.err.Until.Sub(now))
		}
		return
	}
	if dated {
		t.err.Until = now.Add(t.after)
	}
}
