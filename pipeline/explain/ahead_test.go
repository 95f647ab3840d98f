package explain

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
)

// Whatever the order is that things are asked for in, each is its own, its error too, and little is read that nobody asks for.
func TestReadAhead(t *testing.T) {
	const n = 500
	ids := make([]string, n)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	bad := errors.New("bad")
	for name, c := range map[string]struct {
		next func(i int) int
		most int64 // reads
	}{
		"in order":   {func(i int) int { return i }, n},
		"backwards":  {func(i int) int { return n - 1 - i }, n},
		"mixed":      {func(i int) int { return i * 7 % n }, 2 * n},
		"each twice": {func(i int) int { return i / 2 }, n},
		"two lines":  {func(i int) int { return i/2 + i%2*(n/2) }, 2 * n},
	} {
		var reads atomic.Int64
		read := readAhead(ids, func(id string) (string, error) {
			if reads.Add(1); id == "77" {
				return "", bad
			}
			return "value of " + id, nil
		})
		for i := range n {
			at := c.next(i)
			got, err := read(at)
			if at == 77 && err != bad || at != 77 && (err != nil || got != "value of "+ids[at]) {
				t.Errorf("%s: %d is %q %v", name, at, got, err)
			}
		}
		if reads.Load() > c.most {
			t.Errorf("%s: %d reads", name, reads.Load())
		}
	}
}
