package rest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestClock: the time is the server's where the clock here is another, and the one here
// where that is nearly the same.
func TestClock(t *testing.T) {
	start := time.Date(2026, 1, 5, 10, 0, 0, 500e6, time.UTC)
	date := func(second int) http.Header {
		return http.Header{"Date": {start.Add(time.Duration(second) * time.Second).Format(http.TimeFormat)}}
	}
	const day = 24 * 60 * 60
	for name, c := range map[string]struct {
		answers []http.Header
		want    time.Duration // that the server is ahead
		refused int           // how many of the answers are
	}{
		"none":             {nil, 0, 0},
		"a zone away":      {[]http.Header{date(-day / 2)}, -day/2*time.Second + 500*time.Millisecond, 0},
		"a day behind":     {[]http.Header{date(-day - 1)}, 0, 1},
		"a day ahead":      {[]http.Header{date(day + 2)}, 0, 1},
		"absurd":           {[]http.Header{date(60), {"Date": {"Thu, 01 Jan 1970 00:00:00 GMT"}}, {"Date": {"Fri, 31 Dec 9999 23:59:59 GMT"}}}, 59500 * time.Millisecond, 2},
		"the same":         {[]http.Header{date(0)}, 0, 0},
		"nearly":           {[]http.Header{date(9), date(10)}, 0, 0},
		"behind":           {[]http.Header{date(-60)}, -59500 * time.Millisecond, 0},
		"ahead":            {[]http.Header{date(60)}, 59500 * time.Millisecond, 0},
		"the narrower":     {[]http.Header{date(-61), date(-60)}, -60500 * time.Millisecond, 0},
		"unlike":           {[]http.Header{date(0), date(60)}, 59500 * time.Millisecond, 0},
		"without a date":   {[]http.Header{{}}, 0, 0},
		"no date":          {[]http.Header{{"Date": {"yesterday"}}}, 0, 0},
		"out of a cache":   {[]http.Header{{"Date": date(-60)["Date"], "Age": {"60"}}}, 0, 0},
		"a cache, and not": {[]http.Header{{"Date": date(-600)["Date"], "Age": {"600"}}, date(60)}, 59500 * time.Millisecond, 0},
	} {
		clock := &Clock{Now: func() time.Time { return start }}
		refused := 0
		for _, h := range c.answers {
			if clock.asks()(h) != nil {
				refused++
			}
		}
		if got := clock.Time().Sub(start); got != c.want || refused != c.refused {
			t.Errorf("%s: ahead by %v, want %v; %d refused, want %d", name, got, c.want, refused, c.refused)
		}
	}
	if (*Clock)(nil).asks()(date(2*day)) != nil {
		t.Error("no clock refuses")
	}
}

// TestClockOfAnswers: what is no answer, such as a proxy's page, tells no time, and an answer of another age is none.
func TestClockOfAnswers(t *testing.T) {
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	clock := &Clock{Now: func() time.Time { return now }}
	status, date := 0, time.Time{}
	to := &Transport{Base: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Date": {date.Format(http.TimeFormat)}}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	}), Clock: clock, Timeout: time.Minute}
	for _, c := range []struct {
		status int
		date   time.Time
		kind   Kind
		ahead  time.Duration
	}{
		{404, now.Add(time.Hour), KindNotFound, 0},
		{200, time.Unix(0, 0).UTC(), KindClock, 0},
		{200, now.Add(time.Hour), "", time.Hour},
	} {
		status, date = c.status, c.date
		_, err := to.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if got := clock.Time().Sub(now); IsKind(err, c.kind) == (c.kind == "") || got != c.ahead {
			t.Errorf("%d of %v: %v, ahead by %v", c.status, c.date, err, got)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
