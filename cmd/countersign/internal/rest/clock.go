package rest

import (
	"net/http"
	"sync"
	"time"
)

// A Clock tells the time as a server does, as far as the Date of its answers shows that
// the clock here is another: what people say there is dated by the server's. Date has
// whole seconds, so that the server is ahead by something between two bounds, and what
// one run makes of them may be before what the last one did: of a clock that is nearly
// right the time is the one here.
type Clock struct {
	Now func() time.Time

	mu          sync.Mutex
	heard       bool
	least, most time.Duration
}

// nearly is by how much a clock may be wrong: nobody reads and answers faster.
const nearly = 10 * time.Second

// Time is the server's, once it has answered.
func (c *Clock) Time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := max(c.least, min(c.most, 0))
	if ahead.Abs() < nearly {
		ahead = 0
	}
	return c.Now().Add(ahead)
}

// asks begins a request. What it returns takes the headers of the answer; one that a
// cache kept (RFC 9111, Age) tells no time.
func (c *Clock) asks() func(http.Header) {
	if c == nil {
		return func(http.Header) {}
	}
	sent := c.Now()
	return func(h http.Header) {
		date, err := http.ParseTime(h.Get("Date"))
		if err != nil || h.Get("Age") != "" {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		least, most := date.Sub(c.Now()), date.Add(time.Second).Sub(sent)
		if c.heard {
			least, most = max(least, c.least), min(most, c.most)
		}
		c.heard, c.least, c.most = true, least, most
	}
}
