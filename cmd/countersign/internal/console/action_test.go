package console

import (
	"strings"
	"testing"
)

// T71 Nothing that goes through the log of a step is a command of its runner, which ends a line at any of these.
func TestT71StepLog(t *testing.T) {
	for text, want := range map[string]string{
		"::stop-commands::x\n": ": :stop-commands::x\n", "a\n \u00a0::x": "a\n \u00a0: :x", "a\r::x": "a\r: :x", "a\u2028::x": "a\u2028: :x",
		"a ##[debug]": "a ## [debug]", "a::b": "a::b", "std::vector": "std::vector",
	} {
		var out strings.Builder
		if n, err := Log(&out).Write([]byte(text)); err != nil || n != len(text) || out.String() != want {
			t.Errorf("%q: %q, %d, %v", text, out.String(), n, err)
		}
	}
}
