package workspace

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/checks"
)

func TestExcerpt(t *testing.T) {
	full := strings.Repeat("0123456789abcde\n", checks.MaxOutput/16)
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"a line", "done\n", "done\n"},
		{"no line end", "done", "done"},
		{"NUL and escapes stay", "\x00\x1b[31m", "\x00\x1b[31m"},
		{"not UTF-8", "a\xff\xfeb\xe2\x82", "a\ufffd\ufffdb\ufffd\ufffd"},
		{"half a surrogate", "\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
		{"U+FFFD itself", "\ufffd", "\ufffd"},
		{"just enough", full, full},
	} {
		if got := excerpt([]byte(c.in), int64(len(c.in))); got != c.want {
			t.Errorf("%s: %d bytes %.100q", c.name, len(got), got)
		}
	}
}

// TestExcerptCut: head, line and tail stand for all bytes together.
func TestExcerptCut(t *testing.T) {
	for name, unit := range map[string]string{
		"lines": "0123456789abcde\n", "no line ends": "x", "three bytes": "€", "four bytes": "\U0001f600",
		"not UTF-8": "\xff", "now and then": "ab\xffc€\xe2\x82", "cut characters": "\xf0\x9f\x98",
	} {
		for extra := range 5 {
			in := "begin" + strings.Repeat(unit, 3*checks.MaxOutput/len(unit)) + strings.Repeat("e", extra) + "end"
			got := excerpt([]byte(in), int64(len(in)))
			if len(got) > checks.MaxOutput || len(got) < checks.MaxOutput-200 || !utf8.ValidString(got) {
				t.Fatalf("%s: %d bytes", name, len(got))
			}
			start, rest, _ := strings.Cut(got, "… ")
			var n int
			_, err := fmt.Sscanf(rest, "%d bytes cut …\n", &n)
			_, end, found := strings.Cut(rest, "…\n")
			if err != nil || !found || !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") || !strings.HasSuffix(start, "\n") {
				t.Fatalf("%s: %v %.20q … %q", name, err, got, got[len(got)-20:])
			}
			middle := in[rawLen(t, in, strings.TrimSuffix(start, "\n")):]
			if unit == "0123456789abcde\n" { // whose line end may be the text's own
				middle = strings.TrimPrefix(middle, "\n")
			}
			if want := len(middle) - rawTail(t, in, end); n != want {
				t.Errorf("%s: says that %d bytes are cut, not %d", name, n, want)
			}
		}
	}
}

// rawLen is how many bytes of in a text is made of, rawTail the same from the end.
func rawLen(t *testing.T, in, text string) int {
	t.Helper()
	n := 0
	for _, want := range text {
		r, size := utf8.DecodeRuneInString(in[n:])
		if r != want {
			t.Fatalf("at %d: %q, not %q", n, want, r)
		}
		n += size
	}
	return n
}

func rawTail(t *testing.T, in, text string) int {
	t.Helper()
	n, runes := len(in), []rune(text)
	for i := range runes {
		r, size := utf8.DecodeLastRuneInString(in[:n])
		if want := runes[len(runes)-1-i]; r != want {
			t.Fatalf("%d from the end: %q, not %q", len(in)-n, want, r)
		}
		n -= size
	}
	return len(in) - n
}

// TestExcerptOfPart: where the sandbox has thrown the end away, what follows the
// beginning is not passed off as the end.
func TestExcerptOfPart(t *testing.T) {
	for _, c := range []struct {
		kept  string
		total int64
		want  string
	}{
		{"a\nb\n", 1000, "a\nb\n… 996 bytes cut …\n"},
		{"a\nb", 1000, "a\nb\n… 997 bytes cut …\n"},
		{"", 7, "\n… 7 bytes cut …\n"},
		{strings.Repeat("x", 2*checks.MaxOutput), 10 * checks.MaxOutput, strings.Repeat("x", checks.MaxOutput-64) + "\n… 589888 bytes cut …\n"},
	} {
		if got := excerpt([]byte(c.kept), c.total); got != c.want || len(got) > checks.MaxOutput {
			t.Errorf("%.20q of %d: %d bytes, end %q", c.kept, c.total, len(got), got[max(0, len(got)-30):])
		}
	}
}
