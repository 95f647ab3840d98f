package git

import (
	"testing"
	"time"
)

// Impatient has nobody wait for long.
func Impatient(t *testing.T) {
	old := maxTime
	maxTime = 20 * time.Millisecond
	t.Cleanup(func() { maxTime = old })
}

// Running reports whether there is a process to answer.
func (o *Objects) Running() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.run != nil
}
