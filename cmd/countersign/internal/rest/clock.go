package rest

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// A Clock tells the time as a server does, by the Date of its answers: what people say
// there is dated by the server's clock. Date has whole seconds, so that two runs may find
// the server ahead by up to a second more or less. A clock here that is nearly right is
// therefore left alone.
type Clock struct {
	Now func() time.Time

	mu          sync.Mutex
	heard       bool
	least, most time.Duration
}

const (
	nearly = 10 * time.Second // by how much a clock may be wrong: nobody reads and answers faster
	far    = 24 * time.Hour   // apart, one of two clocks is no clock: which one, cannot be told
)

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

// asks begins a request. What it returns takes the headers of the answer, and refuses a
// date that is far from the clock here: by the wrong one, old approvals could count. An
// answer that a cache kept (RFC 9111, Age) tells no time.
func (c *Clock) asks() func(http.Header) *Trouble {
	if c == nil {
		return func(http.Header) *Trouble { return nil }
	}
	sent := c.Now()
	return func(h http.Header) *Trouble {
		date, err := http.ParseTime(h.Get("Date"))
		if err != nil || h.Get("Age") != "" {
			return nil
		}
		now := c.Now()
		least, most := date.Sub(now), date.Add(time.Second).Sub(sent)
		if least.Abs() > far {
			return &Trouble{Err: Error{Kind: KindClock, Message: fmt.Sprintf("it is %s there, and %s here", date.Format(time.RFC3339), now.UTC().Format(time.RFC3339))}}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.heard {
			least, most = max(least, c.least), min(most, c.most)
		}
		c.heard, c.least, c.most = true, least, most
		return nil
	}
}
