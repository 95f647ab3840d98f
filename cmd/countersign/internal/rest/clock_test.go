package rest

import (
	"net/http"
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
	for name, c := range map[string]struct {
		answers []http.Header
		want    time.Duration // that the server is ahead
	}{
		"none":             {nil, 0},
		"the same":         {[]http.Header{date(0)}, 0},
		"nearly":           {[]http.Header{date(9), date(10)}, 0},
		"behind":           {[]http.Header{date(-60)}, -59500 * time.Millisecond},
		"ahead":            {[]http.Header{date(60)}, 59500 * time.Millisecond},
		"the narrower":     {[]http.Header{date(-60), date(-61)}, -60500 * time.Millisecond},
		"unlike":           {[]http.Header{date(0), date(60)}, 59500 * time.Millisecond},
		"without a date":   {[]http.Header{{}}, 0},
		"no date":          {[]http.Header{{"Date": {"yesterday"}}}, 0},
		"out of a cache":   {[]http.Header{{"Date": date(-60)["Date"], "Age": {"60"}}}, 0},
		"a cache, and not": {[]http.Header{{"Date": date(-600)["Date"], "Age": {"600"}}, date(60)}, 59500 * time.Millisecond},
	} {
		clock := &Clock{Now: func() time.Time { return start }}
		for _, h := range c.answers {
			clock.asks()(h)
		}
		if got := clock.Time().Sub(start); got != c.want {
			t.Errorf("%s: ahead by %v, want %v", name, got, c.want)
		}
	}
	(*Clock)(nil).asks()(date(0))
}
