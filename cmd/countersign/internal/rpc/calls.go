package rpc

import "sync"

// calls keeps those that run in order, and their number within bounds.
type calls struct {
	running sync.WaitGroup
	slots   chan struct{}

	mu   sync.Mutex
	last map[string]chan struct{} // by key: closed when the last call that came is done
}

func newCalls() *calls {
	return &calls{slots: make(chan struct{}, MaxCalls), last: map[string]chan struct{}{}}
}

// enter admits a call, once there is a slot for it. It may run when turn is
// closed, and then calls done. Of the key "" any number run at once.
func (c *calls) enter(key string) (turn <-chan struct{}, done func()) {
	c.slots <- struct{}{}
	c.running.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	before, mine := c.last[key], make(chan struct{})
	if before == nil || key == "" {
		before = make(chan struct{})
		close(before)
	}
	c.last[key] = mine
	return before, func() { c.leave(key, mine) }
}

// run does something in a call's slot and in a call's turn, and does not wait for
// it: a client may write its next request before it reads.
func (c *calls) run(key string, do func()) {
	turn, done := c.enter(key)
	go func() {
		defer done()
		<-turn
		do()
	}()
}

func (c *calls) leave(key string, mine chan struct{}) {
	c.mu.Lock()
	if c.last[key] == mine {
		delete(c.last, key)
	}
	c.mu.Unlock()
	close(mine)
	<-c.slots
	c.running.Done()
}
