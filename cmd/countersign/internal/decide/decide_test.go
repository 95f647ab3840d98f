package decide

import (
	"testing"
	"time"
)

// TestSeconds: a number alone is one of seconds.
func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"2": 2 * time.Second, "0": 0, "90s": 90 * time.Second, "5ms": 5 * time.Millisecond, "-1s": -time.Second, "2 m": 0, "": 0, "soon": 0} {
		var got seconds
		if err := got.Set(text); time.Duration(got) != want || (err != nil) != (text == "2 m" || text == "" || text == "soon") {
			t.Errorf("%q: %v, %v", text, time.Duration(got), err)
		}
	}
}
