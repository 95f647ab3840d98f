package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// between is what turns some files into others.
func between(t testing.TB, from, to files) patch.Patchset {
	t.Helper()
	after := map[string]*patch.File{}
	for path := range from {
		if _, stays := to[path]; !stays {
			after[path] = nil
		}
	}
	for path := range to {
		f, err := patch.Lookup(to.fs(), path)
		fatal(t, err)
		after[path] = f
	}
	set, err := patch.NewTree(from.fs()).Between(after)
	fatal(t, err)
	return set
}

func lines(words string) string { return strings.ReplaceAll(words, " ", "\n") + "\n" }

// TestOf: what approved patches are to a change.
func TestOf(t *testing.T) {
	base := files{"a": lines("1 2 3 4 5 6 7"), "b": "b\n", "bin": "\x00\x01"}
	one := between(t, base, files{"a": lines("one 2 3 4 5 6 7"), "b": "b\n", "bin": "\x00\x01"})
	seven := between(t, base, files{"a": lines("1 2 3 4 5 6 seven"), "b": "b\n", "bin": "\x00\x01"})
	binary := between(t, base, files{"a": base["a"], "b": "b\n", "bin": "\x00\x02"})
	mode := between(t, base, files{"a": "x:" + base["a"], "b": "b\n", "bin": "\x00\x01"})
	gone := between(t, base, files{"a": base["a"], "bin": "\x00\x01"})
	made := between(t, base, files{"a": base["a"], "b": "b\n", "bin": "\x00\x01", "new": "n\n"})
	moved := files{"a": lines("1 2 3 FOUR 5 6 7"), "b": "b\n", "bin": "\x00\x01"}
	next := between(t, files{"a": lines("one 2 3 4 5 6 7")}, files{"a": lines("ONE 2 3 4 5 6 7")}) // after one
	all := map[string]patch.Patchset{"one": one, "seven": seven, "binary": binary, "mode": mode, "gone": gone, "made": made, "next": next}

	for _, c := range []struct {
		name     string
		from, to files
		patches  string
		want     explain.Making
		used     string
		lines    string
	}{
		{"the patch itself", base, files{"a": lines("one 2 3 4 5 6 7"), "b": "b\n", "bin": "\x00\x01"}, "seven one", explain.Exact, "one", ""},
		{"two patches", base, files{"a": lines("one 2 3 4 5 6 seven"), "b": "b\n", "bin": "\x00\x01"}, "seven one", explain.Replay, "seven one", ""},
		{"two in a row", base, files{"a": lines("ONE 2 3 4 5 6 7"), "b": "b\n", "bin": "\x00\x01"}, "one next", explain.Replay, "one next", ""},
		{"the second alone", base, files{"a": lines("ONE 2 3 4 5 6 7"), "b": "b\n", "bin": "\x00\x01"}, "next", explain.NotCovered, "", "a:1-1"},
		{"another file moved", files{"a": base["a"], "b": "c\n", "bin": "\x00\x01"}, files{"a": lines("one 2 3 4 5 6 7"), "b": "c\n", "bin": "\x00\x01"}, "one", explain.Exact, "one", ""},
		{"another line moved", moved, files{"a": lines("one 2 3 FOUR 5 6 7"), "b": "b\n", "bin": "\x00\x01"}, "one", explain.Replay, "one", ""},
		{"a mode on moved lines", moved, files{"a": "x:" + moved["a"], "b": "b\n", "bin": "\x00\x01"}, "mode", explain.Replay, "mode", ""},
		{"and a line with it", moved, files{"a": "x:" + lines("one 2 3 FOUR 5 6 7"), "b": "b\n", "bin": "\x00\x01"}, "one mode", explain.Replay, "one mode", ""},
		{"and a line more", moved, files{"a": lines("one 2 3 FOUR 5 6 7 8"), "b": "b\n", "bin": "\x00\x01"}, "one", explain.NotCovered, "one", "a:8-8"},
		{"and a line less", moved, files{"a": lines("one 2 3 FOUR 5 7"), "b": "b\n", "bin": "\x00\x01"}, "one", explain.NotCovered, "one", "a:6-5"},
		{"the last newline", base, files{"a": strings.TrimSuffix(lines("one 2 3 4 5 6 7"), "\n"), "b": "b\n", "bin": "\x00\x01"}, "one", explain.NotCovered, "one", "a:7-7"},
		{"conflict", files{"a": lines("uno 2 3 4 5 6 7")}, files{"a": lines("one 2 3 4 5 6 7")}, "one", explain.NotCovered, "", "a:1-1"},
		{"a neighbour", files{"a": lines("1 two 3 4 5 6 7")}, files{"a": lines("one two 3 4 5 6 7")}, "one", explain.NotCovered, "", "a:1-1"},
		{"beside the neighbour", files{"a": lines("1 2 three 4 5 6 7")}, files{"a": lines("one 2 three 4 5 6 7")}, "one", explain.Replay, "one", ""},
		{"binary that moved", files{"bin": "\x00\x03"}, files{"bin": "\x00\x02"}, "binary", explain.NotCovered, "", "bin:0-0"},
		{"binary, and a file", base, files{"a": base["a"], "b": "c\n", "bin": "\x00\x02"}, "binary", explain.NotCovered, "binary", "b:1-1"},
		{"deleted and made", base, files{"a": base["a"], "bin": "\x00\x01", "new": "n\n"}, "gone made", explain.Replay, "gone made", ""},
		{"deleted, changed before", files{"b": "c\n"}, files{}, "gone", explain.NotCovered, "", "b:0-0"},
		{"made with another text", base, files{"a": base["a"], "b": "b\n", "bin": "\x00\x01", "new": "m\n"}, "made", explain.NotCovered, "", "new:0-0"},
		{"another mode", base, files{"a": "x:" + lines("one 2 3 4 5 6 7"), "b": "b\n", "bin": "\x00\x01"}, "one", explain.NotCovered, "one", "a:0-0"},
		{"taken back", files{"a": lines("one 2 3 4 5 6 7")}, files{"a": base["a"]}, "one", explain.NotCovered, "", "a:1-1"},
		{"half of a patch with two files", base, files{"a": lines("one 2 3 4 5 6 7"), "b": "b\n", "bin": "\x00\x01"}, "both", explain.NotCovered, "", "a:1-1"},
		{"nothing approved", base, files{"a": lines("one 2 3 4 5 6 7"), "b": "b\n", "bin": "\x00\x01"}, "", explain.NotCovered, "", "a:1-1"},
	} {
		all["both"] = between(t, base, files{"a": lines("one 2 3 4 5 6 7"), "b": "c\n", "bin": "\x00\x01"})
		var patches []explain.Patch
		for _, id := range strings.Fields(c.patches) {
			patches = append(patches, explain.Patch{ID: id, Set: all[id]})
		}
		got := explain.Of(between(t, c.from, c.to), patches)
		var left []string
		for _, l := range got.Lines {
			left = append(left, fmt.Sprintf("%s:%d-%d", l.Path, l.From, l.To))
		}
		if got.Result != c.want || strings.Join(got.Transactions, " ") != c.used || strings.Join(left, " ") != c.lines {
			t.Errorf("%s: %s by %v, left %v", c.name, got.Result, got.Transactions, left)
		}
	}
}
