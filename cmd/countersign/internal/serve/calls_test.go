package serve

import "testing"

// While maxCalls calls run there is no slot for another one.
func TestBounded(t *testing.T) {
	c := newRPCServer(nil, nil).calls
	end := make(chan struct{})
	for range maxCalls {
		c.run("", func() { <-end })
	}
	select {
	case c.slots <- struct{}{}:
		t.Fatal("there is a slot left")
	default:
	}
	close(end)
	if c.running.Wait(); len(c.slots) > 0 || len(c.last) > 0 {
		t.Errorf("%d slots and %d keys are taken", len(c.slots), len(c.last))
	}
}
