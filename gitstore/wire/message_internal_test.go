package wire

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestPackOf: what comes before a pack is read to its end and no further, and nothing else is taken for it.
func TestPackOf(t *testing.T) {
	line := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	id := strings.Repeat("12", 20)
	const rest = "0009\x01PACK0000"
	for name, c := range map[string]struct {
		answer string
		depth  int
		fine   bool
	}{
		"nothing in common":       {line("NAK\n") + rest, 0, true},
		"without a line feed":     {line("NAK") + rest, 0, true},
		"in common":               {line("ACK "+id+"\n") + line("ACK "+id+"\n") + rest, 0, true},
		"cut off here":            {line("shallow "+id+"\n") + line("unshallow "+id+"\n") + "0000" + line("NAK\n") + rest, 1, true},
		"of SHA-256":              {line("shallow "+strings.Repeat("12", 32)+"\n") + "0000" + line("NAK\n") + rest, 1, true},
		"cut off nowhere":         {"0000" + line("NAK\n") + rest, 1, true},
		"cut off at what is none": {line("shallow none\n") + "0000" + line("NAK\n") + rest, 1, false},
		"another word":            {line("xshallow "+id+"\n") + "0000" + line("NAK\n") + rest, 1, false},
		"no end of that":          {line("shallow "+id+"\n") + line("NAK\n") + rest, 1, false},
		"an error":                {line("ERR no such object\n"), 0, false},
		"an error after that":     {"0000" + line("ERR no such object\n"), 1, false},
		"nothing":                 {"", 0, false},
		"cut":                     {line("NAK\n"), 0, false},
	} {
		from, err := packOf(strings.NewReader(c.answer), c.depth)
		if (err == nil) != c.fine {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if got, err := io.ReadAll(from); string(got) != rest || err != nil {
			t.Errorf("%s: %q is left, %v", name, got, err)
		}
	}
}
