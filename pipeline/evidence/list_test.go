package evidence

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseList(t *testing.T) {
	got, err := ParseList("# all\r\n\r\nacme/shop\thttps://github.com/acme/shop.git\r\nlegacy ../legacy release\n  # none\nacme/.github ../x\nacme/-x- ../y")
	if want := []Listed{{"acme/shop", "https://github.com/acme/shop.git", ""}, {"legacy", "../legacy", "release"}, {"acme/.github", "../x", ""}, {"acme/-x-", "../y", ""}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"": "no repository", "# a b\n": "no repository", "a\n": "line 1: it has 1 words", "a b c d": "4 words", "x y\na b\nA c": "line 3: A is listed twice",
		"a --upload-pack=x": "address of a", "a b --x": "branch of a", "../x y": "no name", "a/../b c": "no name", "a/. c": "no name", ". c": "no name", "-a c": "no name", "a/ c": "no name", "/a c": "no name", "=cmd y": "no name", "a\u200b b": "no name", "a x\x1by": "address", "a/b/c/d/e x": "no name",
		strings.Repeat("a", 201) + " x": "no name", strings.Repeat(" ", MaxListLen+1): "longer than",
	} {
		if _, err := ParseList(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50q: %v, want %s", text, err, want)
		}
	}
}

// FuzzParseList: what is read is written back and reads as the same.
func FuzzParseList(f *testing.F) {
	f.Add("# x\nacme/shop https://example.org/shop.git main\nb ../b\n")
	f.Fuzz(func(t *testing.T, raw string) {
		list, err := ParseList(raw)
		if err != nil {
			return
		}
		var b strings.Builder
		for _, l := range list {
			fmt.Fprintf(&b, "%s %s %s\n", l.Name, l.Address, l.Branch)
		}
		if again, err := ParseList(b.String()); err != nil || !slices.Equal(again, list) {
			t.Errorf("%q: %v, %v", list, again, err)
		}
	})
}
