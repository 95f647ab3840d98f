package conformance

import (
	"crypto/sha1"
	"fmt"
	"math/rand/v2"
	"strings"
)

func init() { generators["patch"] = patchVectors }

// blob is the name that git has for a content.
func blob(data string) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(data), data))))
}

const absent = "0000000000000000000000000000000000000000"

func lineText(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func patchVectors(g *generator) {
	patchMakes(g)
	patchReads(g)
	patchPathCases(g)
	patchDiffs(g)
	g.in("fingerprints")
	id := strings.Repeat("0123456789abcdef", 4)
	print := func(id string) m { return m{"patch_id": id} }
	g.good("fingerprints", "P-40 P-41", "the fingerprints of a patch", print(id), m{"fileChange": "patchset:" + id, "secrets_override": "secret:patchset:" + id, "protected_path": "protected:patchset:" + id, "break_glass": "patchset:" + id})
	for _, c := range [][2]string{{"in upper case", strings.ToUpper(id)}, {"with a digit less", id[1:]}, {"with a digit more", id + "0"}, {"with a space", id[:63] + " "}, {"that is a fingerprint", "patchset:" + id}, {"that is empty", ""}, {"with a letter that is no digit", id[:63] + "g"}} {
		g.bad("fingerprints", "P-41", "a patch_id "+c[0], "the fingerprints of a patch", print(c[1]))
	}
}

func patchMakes(g *generator) {
	g.in("make")
	tree := func(base, after m) m { return m{"base": base, "after": after} }
	exec := func(text string) m { return m{"mode": "100755", "content": text} }
	g.good("make", "P-1 P-2 P-6 P-8 P-9 P-11 P-12 P-14 P-15 P-17 V-11", "one line of a text is another", tree(m{"a.txt": "one\ntwo\nthree\n"}, m{"a.txt": "one\n2\nthree\n"}), m{
		"patch": "diff --git a/a.txt b/a.txt\nindex " + blob("one\ntwo\nthree\n") + ".." + blob("one\n2\nthree\n") + " 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"})
	g.good("make", "P-6 P-9 P-12 P-15", "a file is added", tree(m{}, m{"d/a": "x\n"}), m{
		"patch": "diff --git a/d/a b/d/a\nnew file mode 100644\nindex " + absent + ".." + blob("x\n") + "\n--- /dev/null\n+++ b/d/a\n@@ -0,0 +1 @@\n+x\n"})
	g.good("make", "P-6 P-9 P-12 P-15", "an executable file is deleted", tree(m{"a": exec("x\ny\n")}, m{}), m{
		"patch": "diff --git a/a b/a\ndeleted file mode 100755\nindex " + blob("x\ny\n") + ".." + absent + "\n--- a/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n"})
	g.good("make", "P-9", "a mode alone", tree(m{"a": "x\n"}, m{"a": exec("x\n")}), m{
		"patch": "diff --git a/a b/a\nold mode 100644\nnew mode 100755\nindex " + blob("x\n") + ".." + blob("x\n") + "\n"})
	g.good("make", "P-9", "a mode and a line", tree(m{"a": exec("x\n")}, m{"a": "y\n"}), m{
		"patch": "diff --git a/a b/a\nold mode 100755\nnew mode 100644\nindex " + blob("x\n") + ".." + blob("y\n") + "\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"})
	g.good("make", "P-9 P-11 P-26", "an empty file is added", tree(m{}, m{"a": ""}), m{
		"patch": "diff --git a/a b/a\nnew file mode 100644\nindex " + absent + "..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"})
	g.good("make", "P-9", "an empty file is deleted", tree(m{"a": ""}, m{}), m{
		"patch": "diff --git a/a b/a\ndeleted file mode 100644\nindex e69de29bb2d1d6434b8b29ae775ad8c2e48c5391.." + absent + "\n"})
	g.good("make", "P-15", "a text becomes empty", tree(m{"a": "x\n"}, m{"a": ""}), m{
		"patch": "diff --git a/a b/a\nindex " + blob("x\n") + ".." + blob("") + " 100644\n--- a/a\n+++ b/a\n@@ -1 +0,0 @@\n-x\n"})
	g.good("make", "P-15", "a text without an LF at its end gets one", tree(m{"a": "x"}, m{"a": "x\n"}), m{
		"patch": "diff --git a/a b/a\nindex " + blob("x") + ".." + blob("x\n") + " 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"})
	g.good("make", "P-15", "a common last line has no LF", tree(m{"a": "x\nend"}, m{"a": "y\nend"}), m{
		"patch": "diff --git a/a b/a\nindex " + blob("x\nend") + ".." + blob("y\nend") + " 100644\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-x\n+y\n end\n\\ No newline at end of file\n"})
	g.good("make", "P-7 P-9", "a rename", tree(m{"old": "x\n"}, m{"new": "x\n"}), m{
		"patch": "diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\nindex " + blob("x\n") + ".." + blob("x\n") + " 100644\n"})
	g.good("make", "P-7 P-9", "a rename with another mode", tree(m{"old": "x\n"}, m{"new": exec("x\n")}), m{
		"patch": "diff --git a/old b/new\nold mode 100644\nnew mode 100755\nsimilarity index 100%\nrename from old\nrename to new\nindex " + blob("x\n") + ".." + blob("x\n") + "\n"})
	g.good("make", "P-7", "of two deleted with the same bytes, the first is renamed", tree(m{"b": "x\n", "c": "x\n"}, m{"a": "x\n"}), nil)
	g.good("make", "P-7", "two renames pair in byte order", tree(m{"x1": "x\n", "x2": "x\n"}, m{"a1": "x\n", "a2": "x\n"}), nil)
	g.good("make", "P-7", "more added than deleted: the rest is added", tree(m{"m": "x\n"}, m{"a": "x\n", "z": "x\n"}), nil)
	g.good("make", "P-7", "a file with other bytes is no rename", tree(m{"old": "x\ny\nz\n"}, m{"new": "x\ny\nz\nw\n"}), nil)
	g.good("make", "P-7", "empty files are renamed", tree(m{"old": ""}, m{"new": ""}), nil)
	g.good("make", "P-7", "a copy is an add", tree(m{"old": "x\n"}, m{"old": "y\n", "new": "x\n"}), nil)
	g.good("make", "P-7 P-8", "two files change names", tree(m{"a": "1\n", "b": "2\n"}, m{"a": "2\n", "b": "1\n"}), nil)
	g.good("make", "P-8", "sections are in byte order of their paths", tree(m{"a/b": "1\n", "a.b": "1\n", "a0": "1\n"}, m{"a/b": "2\n", "a.b": "2\n", "B": "1\n", "é": "1\n"}), nil)
	g.good("make", "P-8 P-7", "a rename is at its new path", tree(m{"z": "1\n", "m": "1\n"}, m{"a": "1\n", "m": "2\n"}), nil)
	g.good("make", "P-10", "a name with a quote", tree(m{`a"b`: "x\n"}, m{`a"b`: "y\n"}), m{
		"patch": "diff --git \"a/a\\\"b\" \"b/a\\\"b\"\nindex " + blob("x\n") + ".." + blob("y\n") + " 100644\n--- \"a/a\\\"b\"\n+++ \"b/a\\\"b\"\n@@ -1 +1 @@\n-x\n+y\n"})
	g.good("make", "P-10 P-12", "a name with a space ends in a tab", tree(m{"a b": "x\n"}, m{"a b": "y\n"}), m{
		"patch": "diff --git a/a b b/a b\nindex " + blob("x\n") + ".." + blob("y\n") + " 100644\n--- a/a b\t\n+++ b/a b\t\n@@ -1 +1 @@\n-x\n+y\n"})
	g.good("make", "P-10 P-12", "a name with a quote and a space has no tab", tree(m{}, m{`a "b`: "y\n"}), nil)
	g.good("make", "P-10", "a name that is not ASCII is as it is", tree(m{}, m{"naïve/日本.txt": "y\n"}), nil)
	g.good("make", "P-10 P-7", "a rename to a name with a quote", tree(m{"a": "x\n"}, m{`"`: "x\n"}), nil)
	g.good("make", "P-12", "a text in another encoding is a text", m{"base": m{"a": Bytes("\xe9t\xe9\n")}, "after": m{"a": Bytes("\xe9t\xe8\n")}}, nil)
	g.good("make", "P-12 P-15", "lines end with CR LF", tree(m{"a": "x\r\ny\r\n"}, m{"a": "x\r\ny\n"}), nil)
	g.good("make", "P-13 P-16", "a binary file is added", tree(m{}, m{"a": "\x00\x01\x02"}), nil)
	g.good("make", "P-13", "a text becomes binary", tree(m{"a": "x\n"}, m{"a": "x\x00\n"}), nil)
	g.good("make", "P-13 P-16", "a binary file is deleted: zero bytes after", tree(m{"a": "x\x00\n"}, m{}), nil)
	g.good("make", "P-13", "a binary file becomes text", tree(m{"a": "x\x00\n"}, m{"a": "text\n"}), nil)
	g.good("make", "P-16", "exactly one line of binary", m{"base": m{}, "after": m{"a": m{"repeat": "\x00", "times": 41}}}, nil)
	g.good("make", "P-16", "one byte more than a line of binary", m{"base": m{}, "after": m{"a": m{"repeat": "\x00", "times": 42}}}, nil)
	g.good("make", "P-16", "two stored blocks", m{"base": m{}, "after": m{"a": m{"join": []any{"\x00", m{"repeat": "z", "times": 65535}}}}}, nil)
	patchHunks(g)
	for _, mode := range []string{"120000", "160000", "100664", "040000"} {
		content := map[string]string{"120000": "target", "160000": strings.Repeat("1", 40), "100664": "x\n", "040000": ""}[mode]
		if mode != "100664" && mode != "040000" {
			g.bad("make", "P-1", "mode "+mode+" before", "a file is added", tree(m{"d/a": m{"mode": mode, "content": content}}, m{"d/a": "x\n"}))
			g.bad("make", "P-1", "mode "+mode+" where a directory should be", "a file is added", tree(m{"d": m{"mode": mode, "content": content}}, m{"d": m{"mode": mode, "content": content}, "d/a": "x\n"}))
		}
		g.bad("make", "P-1", "mode "+mode+" after", "a file is added", tree(m{}, m{"d/a": m{"mode": mode, "content": content}}))
	}
	g.bad("make", "P-2", "nothing at all", "a file is added", tree(m{}, m{}))
	g.good("make", "P-2", "make: a file, the same before and after, is not touched", tree(m{"B": "one\n", "l": "x"}, m{"l": "x"}), nil)
	g.bad("make", "P-2 P-3 P-4", "make: a path that is refused, the same before and after", "make: a file, the same before and after, is not touched", tree(m{"B": "one\n", ".git/x": "1\n"}, m{".git/x": "1\n"}))
	g.bad("make", "P-1 P-2", "make: a link, the same before and after", "make: a file, the same before and after, is not touched", tree(m{"B": "one\n", "l": m{"mode": "120000", "content": "x"}}, m{"l": m{"mode": "120000", "content": "x"}}))
	g.bad("make", "P-2", "the same before and after", "one line of a text is another", tree(m{"a.txt": "x\n"}, m{"a.txt": "x\n"}))
	g.good("make", "P-2", "a file that stays the same is left out", tree(m{"a": "x\n", "b": "y\n"}, m{"a": "x\n", "b": "z\n"}), nil)
	g.bad("make", "P-3 P-4", "a path with two dots is added", "a file is added", tree(m{}, m{"d/../a": "x\n"}))
	g.bad("make", "P-5", "a file where a directory stays", "a file is added", tree(m{"d/b": "y\n"}, m{"d/b": "z\n", "d": "x\n"}))
	g.good("make", "P-5", "a file where a directory was", tree(m{"d/b": "y\n"}, m{"d": "x\n"}), nil)
	g.good("make", "P-5", "a directory where a file was", tree(m{"d": "y\n"}, m{"d/b": "x\n"}), nil)
	g.bad("make", "P-5", "a directory where a file stays", "a file is added", tree(m{"d": "y\n"}, m{"d": "z\n", "d/b": "x\n"}))
	g.bad("make", "P-5 U-5", "an added name that differs in case from one that stays", "a file is added", tree(m{"README": "y\n"}, m{"README": "z\n", "readme": "x\n"}))
	g.good("make", "P-5", "a name that changes its case alone", tree(m{"README": "y\n"}, m{"readme": "y\n"}), nil)
	g.bad("make", "P-5", "an added directory that differs in case from one that stays", "a file is added", tree(m{"Doc/a": "y\n"}, m{"Doc/a": "z\n", "doc/b": "x\n"}))
	g.good("make", "P-5", "a directory that becomes empty does not count", tree(m{"Doc/a": "y\n"}, m{"doc/a": "y\n"}), nil)
	g.good("make", "P-5", "two names that collide already, and are changed", tree(m{"A": "y\n", "a": "y\n"}, m{"A": "z\n", "a": "z\n"}), nil)
	g.good("make", "P-15", "a line that looks like a header", tree(m{"a": "-- x\n"}, m{"a": "++ y\n"}), nil)
}

// patchHunks are changes of one text of forty lines, at some of them.
func patchHunks(g *generator) {
	base := lineText(1, 40)
	change := func(at ...int) string {
		text := base
		for _, n := range at {
			text = strings.Replace(text, fmt.Sprintf("line %d\n", n), fmt.Sprintf("LINE %d\n", n), 1)
		}
		return text
	}
	for _, c := range []struct {
		note  string
		after string
	}{
		{"six common lines between two edits: one hunk", change(10, 17)}, {"seven common lines between two edits: two hunks", change(10, 18)}, {"the first line", change(1)}, {"the last line", change(40)},
		{"three lines from both ends", change(4, 37)}, {"three edits, of which two share a hunk", change(5, 12, 30)}, {"lines added at the beginning", "x\ny\n" + base}, {"lines added at the end", base + "x\ny\n"},
		{"all other", strings.ToUpper(base)}, {"lines taken away in the middle", lineText(1, 10) + lineText(15, 40)},
	} {
		g.good("make", "P-14 P-15", "hunks: "+c.note, m{"base": m{"a": base}, "after": m{"a": c.after}}, nil)
	}
}

func patchReads(g *generator) {
	g.in("read")
	before, after := "one\ntwo\nthree\n", "one\n2\nthree\n"
	head := "diff --git a/a.txt b/a.txt\nindex " + blob(before) + ".." + blob(after) + " 100644\n"
	files := "--- a/a.txt\n+++ b/a.txt\n"
	hunk := "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
	base := m{"a.txt": before}
	read := func(patch string, base m) m { return m{"patch": Bytes(patch), "base": base} }
	twin := "the canonical bytes of a change"
	g.good("read", "P-8 P-9 P-17 P-24 P-25 P-26 P-27 P-28 E-44", twin, read(head+files+hunk, base), nil)
	for _, c := range []struct{ requires, note, patch string }{
		{"P-8", "a line before the section", "x\n" + head + files + hunk}, {"P-8", "a line behind the section", head + files + hunk + "\n"}, {"P-8", "a mail's end behind it", head + files + hunk + "-- \n2.40\n"},
		{"P-8 P-24", "the section twice", head + files + hunk + head + files + hunk}, {"P-9", "without the index line", "diff --git a/a.txt b/a.txt\n" + files + hunk},
		{"P-9 P-11", "short ids in the index line", strings.Replace(head, blob(before)+".."+blob(after), blob(before)[:7]+".."+blob(after)[:7], 1) + files + hunk},
		{"P-9 P-11", "ids in upper case", strings.Replace(head, blob(before), strings.ToUpper(blob(before)), 1) + files + hunk},
		{"P-11 P-24", "another id of the file before", strings.Replace(head, blob(before), blob(after), 1) + files + hunk}, {"P-11 P-24", "another id of the file after", strings.Replace(head, blob(after), blob(before), 1) + files + hunk},
		{"P-9", "without the mode in the index line", strings.Replace(head, " 100644", "", 1) + files + hunk}, {"P-9 P-24", "another mode in the index line", strings.Replace(head, " 100644", " 100755", 1) + files + hunk},
		{"P-12", "without the names", head + hunk}, {"P-12", "a tab behind a name without a space", head + "--- a/a.txt\t\n+++ b/a.txt\n" + hunk}, {"P-12", "a time behind a name", head + "--- a/a.txt\t2026-01-05\n+++ b/a.txt\n" + hunk},
		{"P-12", "another name before", head + "--- a/b.txt\n+++ b/a.txt\n" + hunk}, {"P-12", "/dev/null for a file that is there", head + "--- /dev/null\n+++ b/a.txt\n" + hunk}, {"P-9", "other prefixes", strings.ReplaceAll(strings.ReplaceAll(head+files, "a/a", "i/a"), "b/a", "w/a") + hunk},
		{"P-10", "quotes that are not needed", strings.ReplaceAll(head, "a/a.txt b/a.txt", `"a/a.txt" "b/a.txt"`) + files + hunk},
		{"P-14", "less context than there is", head + files + "@@ -2 +2 @@\n-two\n+2\n"}, {"P-15", "a section heading behind the hunk's ranges", head + files + strings.Replace(hunk, "@@\n one", "@@ f()\n one", 1)},
		{"P-15", "a length of one that is written", head + files + strings.Replace(hunk, "-1,3 +1,3", "-1,3 +01,3", 1)}, {"P-15", "new lines before the old ones", head + files + "@@ -1,3 +1,3 @@\n one\n+2\n-two\n three\n"},
		{"P-15 P-25", "a count that is too great", head + files + strings.Replace(hunk, "-1,3", "-1,4", 1)}, {"P-15 P-25", "a count that is too small", head + files + strings.Replace(hunk, "+1,3", "+1,2", 1)}, {"P-15 P-24", "a hunk elsewhere", head + files + strings.Replace(hunk, "-1,3 +1,3", "-2,3 +2,3", 1)},
		{"P-15 P-24", "a context that the file has not", head + files + strings.Replace(hunk, " one", " eins", 1)}, {"P-15", "a deleted line that the file has not", head + files + strings.Replace(hunk, "-two", "-zwei", 1)}, {"P-15 P-11", "another new line", head + files + strings.Replace(hunk, "+2", "+3", 1)},
		{"P-18 P-23", "a longer edit than there need be", head + files + "@@ -1,3 +1,3 @@\n-one\n-two\n+one\n+2\n three\n"}, {"P-15", "CR LF in the patch's own lines", strings.ReplaceAll(head, "\n", "\r\n") + files + hunk}, {"P-15", "cut short", head + files + hunk[:len(hunk)-2]},
		{"P-15", "an empty line for an empty common line", head + files + "@@ -1,3 +1,3 @@\n one\n-two\n+2\nthree\n"}, {"P-25", "a hunk without a change", head + files + "@@ -1,3 +1,3 @@\n one\n two\n three\n"}, {"P-2", "nothing", ""},
		{"P-8", "a section of a mode alone that stays", "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100644\nindex " + blob(before) + ".." + blob(before) + "\n"},
		{"P-7 P-9", "a copy", "diff --git a/a.txt b/b.txt\nsimilarity index 100%\ncopy from a.txt\ncopy to b.txt\nindex " + blob(before) + ".." + blob(before) + " 100644\n"},
		{"P-7 P-9", "a rename with edits", "diff --git a/a.txt b/b.txt\nsimilarity index 80%\nrename from a.txt\nrename to b.txt\nindex " + blob(before) + ".." + blob(after) + " 100644\n--- a/a.txt\n+++ b/b.txt\n" + hunk},
	} {
		g.bad("read", c.requires, "read: "+c.note, twin, read(c.patch, base))
	}
	g.bad("read", "P-24", "read: the file is another one", twin, read(head+files+hunk, m{"a.txt": before + "x\n"}))
	g.bad("read", "P-24", "read: the file is not there", twin, read(head+files+hunk, m{}))
	g.bad("read", "P-24", "read: the file is executable", twin, read(head+files+hunk, m{"a.txt": m{"mode": "100755", "content": before}}))
	g.bad("read", "P-1 P-24", "read: the file is a link", twin, read(head+files+hunk, m{"a.txt": m{"mode": "120000", "content": before}}))
	addAt := func(name string) string {
		return "diff --git a/" + name + " b/" + name + "\nnew file mode 100644\nindex " + absent + ".." + blob("x\n") + "\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+x\n"
	}
	add := addAt("n")
	g.good("read", "P-9 P-24", "the canonical bytes of an add", read(add, m{}), nil)
	g.bad("read", "P-24", "read: what is added is there", "the canonical bytes of an add", read(add, m{"n": "y\n"}))
	g.bad("read", "P-24", "read: what is added is there, just so", "the canonical bytes of an add", read(add, m{"n": "x\n"}))
	g.bad("read", "P-1", "read: a link is added", "the canonical bytes of an add", read(strings.Replace(add, "100644", "120000", 1), m{}))
	g.bad("read", "P-1", "read: a mode that git does not write", "the canonical bytes of an add", read(strings.Replace(add, "100644", "100664", 1), m{}))
	g.bad("read", "P-3", "read: a path below .git is added", "the canonical bytes of an add", read(addAt(".git/n"), m{}))
	g.bad("read", "P-8", "read: sections out of order", "the canonical bytes of an add", read(addAt("z")+add, m{}))
	g.good("read", "P-8", "two sections in order", read(add+addAt("z"), m{}), nil)
	g.bad("read", "P-7 P-24", "read: a rename as a delete and an add", "two sections in order", read(
		"diff --git a/a b/a\ndeleted file mode 100644\nindex "+blob("x\n")+".."+absent+"\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"+add, m{"a": "x\n"}))
	rename := func(from, to string) string {
		return "diff --git a/" + from + " b/" + to + "\nsimilarity index 100%\nrename from " + from + "\nrename to " + to + "\nindex " + blob("x\n") + ".." + blob("x\n") + " 100644\n"
	}
	g.good("read", "P-7 P-24", "the canonical bytes of a rename", read(rename("b", "a"), m{"b": "x\n"}), nil)
	g.bad("read", "P-24", "read: a rename away twice", "the canonical bytes of a rename", read(rename("b", "a")+rename("b", "c"), m{"b": "x\n"}))
	g.bad("read", "P-7", "read: a rename of the second of two with the same bytes", "the canonical bytes of a rename", read(
		rename("c", "a")+"diff --git a/b b/b\ndeleted file mode 100644\nindex "+blob("x\n")+".."+absent+"\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", m{"b": "x\n", "c": "x\n"}))
	g.bad("read", "P-9", "read: a rename of other similarity", "the canonical bytes of a rename", read(strings.Replace(rename("b", "a"), "100%", "99%", 1), m{"b": "x\n"}))
	binary := "diff --git a/n b/n\nnew file mode 100644\nindex " + absent + ".." + blob("\x00") + "\nGIT binary patch\nliteral 1\n"
	own := ownBytes(g, m{}, m{"n": "\x00"})
	g.good("read", "P-13 P-16 P-24 P-26", "the canonical bytes of a binary file", read(own, m{}), nil)
	body := strings.TrimPrefix(own, binary)
	if body == own {
		g.t.Errorf("a binary section begins otherwise: %q", own)
	}
	g.bad("read", "P-13", "read: a binary file with a second half", "the canonical bytes of a binary file", read(own+"literal 0\nHcmV?d00001\n\n", m{}))
	g.bad("read", "P-16", "read: a binary file that is compressed", "the canonical bytes of a binary file", read(binary+"IcmZPo00001000310RR910000\n\n", m{}))
	g.bad("read", "P-13", "read: a binary file without the empty line", "the canonical bytes of a binary file", read(strings.TrimSuffix(own, "\n"), m{}))
	g.bad("read", "P-13", "read: a binary file of another length", "the canonical bytes of a binary file", read(strings.Replace(own, "literal 1", "literal 2", 1), m{}))
	g.bad("read", "P-13", "read: a binary file as a delta", "the canonical bytes of a binary file", read(strings.Replace(own, "literal 1", "delta 1", 1), m{}))
	g.bad("read", "P-16", "read: a character that base 85 has not", "the canonical bytes of a binary file", read(binary+`"`+body[1:], m{}))
	g.bad("read", "P-12 P-13", "read: a text as binary", "the canonical bytes of a binary file", read(strings.Replace(ownBytes(g, m{}, m{"n": "\x00y"}), blob("\x00y"), blob("zy"), 1), m{}))
}

// ownBytes are the canonical bytes of a change.
func ownBytes(g *generator, base, after m) string {
	g.t.Helper()
	v := Vector{Input: m{"base": base, "after": after}}
	if err := v.complete(nil); err != nil {
		g.t.Fatal(err)
	}
	got, _, err := answer(Question{"patch", "x", v.Question().Input, "make"})
	if err != nil || got.Verdict != Accept {
		g.t.Fatal(err, got)
	}
	return string(got.Values["patch"].(Bytes))
}

func patchPathCases(g *generator) {
	g.in("path")
	path := func(p string) m { return m{"path": p} }
	for _, p := range []string{
		"a", "a/b.c", ".gitignore", ".github/x", "a b", `a"b`, "...a", "gitx", "a*?<>|b", "-rf", "con1", "console", "COM", "com10", "lpt", "nulx", "a~b", "~1", "abcdefghi~1", "a~1.abcd", "a~1b", "日本語", "é", "e\u0301", "\u0301x",
		"x.con", "~", "a~", "aux2.txt", "COM¹x",
	} {
		g.good("path", "P-3 P-4", "path: "+p, path(p), nil)
	}
	for _, c := range []struct{ requires, note, path string }{
		{"P-3", "empty", ""}, {"P-3", "a backslash", `a\b`}, {"P-3", "absolute", "/a"}, {"P-3", "a drive", "c:a"}, {"P-3", "a line feed", "a\nb"}, {"P-3", "a tab", "a\tb"}, {"P-3 U-1", "U+0085", "a\u0085b"}, {"P-3", "DEL", "a\x7fb"},
		{"P-3", "a zero width space", "a\u200bb"}, {"P-3", "a soft hyphen", "a\u00adb"}, {"P-3", "a direction mark", "a\u202eb"}, {"P-3", "a no-break space", "a\u00a0b"}, {"P-3", "an ideographic space", "a\u3000b"}, {"P-3", "a line separator", "a\u2028b"},
		{"P-3", "a private character", "a\ue000b"}, {"P-3", "a private character of plane 16", "a\U0010fffdb"}, {"P-3 U-2", "a variation selector", "a\ufe0fb"}, {"P-3 U-2", "a Hangul filler", "a\u3164b"}, {"P-3 U-2", "a combining grapheme joiner", "a\u034fb"}, {"P-3 U-2", "U+2065", "a\u2065b"},
		{"P-3 U-2", "U+180F", "a\u180fb"}, {"P-3 U-2", "U+E01F0", "a\U000e01f0b"}, {"P-3", "a braille pattern without dots", "a\u2800b"}, {"P-3", "a null notehead", "a\U0001d159b"}, {"P-3", "a Khitan filler", "a\U00016fe4b"}, {"P-3", "a hieroglyphic blank", "a\U00013441b"},
		{"P-4", "two slashes", "a//b"}, {"P-4", "a slash at the end", "a/"}, {"P-4", "a dot", "a/./b"}, {"P-4", "two dots", "a/../b"}, {"P-4", "two dots alone", ".."}, {"P-4", "a full-width dot", "a/．/b"}, {"P-4", "a two dot leader", "a/‥/b"},
		{"P-4", "a colon", "ab:c"}, {"P-4", "a dot at the end", "a."}, {"P-4", "a space at the end", "a /b"}, {"P-4", ".git", ".git/config"}, {"P-4", ".GIT", "a/.GIT"}, {"P-4", ".git with dots and spaces", "a/.git. . /b"}, {"P-4", ".git and a stream", "a/.git::$INDEX_ALLOCATION/b"},
		{"P-4", "git~1", "git~1"}, {"P-4", "GIT~1", "a/GIT~1"}, {"P-4", "full-width .git", ".ｇｉｔ"}, {"P-4 U-5", ".GiT", ".GiT"}, {"P-4", "a device", "con"}, {"P-4", "a device with an extension", "a/NUL.txt"}, {"P-4", "a device with two extensions", "aux.tar.gz"}, {"P-4", "a device and a space", "prn .x"},
		{"P-4", "COM1", "COM1"}, {"P-4", "COM0", "com0.x"}, {"P-4", "LPT with a raised two", "lpt²"}, {"P-4", "CONIN$", "conin$"}, {"P-4", "CONOUT$ with an extension", "CONOUT$.log"}, {"P-4", "a short name", "GITHUB~1"}, {"P-4", "a short name with an extension", "abc~12.txt"}, {"P-4", "a short name of one letter", "a~1"},
	} {
		g.bad("path", c.requires, "bad path: "+c.note, "path: a", path(c.path))
	}
	g.bad("path", "P-3", "bad path: not UTF-8", "path: a", path("base64:YYBi"))
	g.good("path", "P-4", "path: a component of 255 bytes", m{"path": m{"repeat": "x", "times": 255}}, nil)
	g.bad("path", "P-4", "bad path: a component of 256 bytes", "path: a component of 255 bytes", m{"path": m{"repeat": "x", "times": 256}})
	g.bad("path", "P-4", "bad path: a component of 86 characters and 258 bytes", "path: a component of 255 bytes", m{"path": m{"repeat": "語", "times": 86}})
	long := func(times int, last string) string { return strings.Repeat("a23456789012345/", times) + last }
	g.good("path", "P-3", "path: 4,096 bytes and 255 slashes", path(long(255, "a234567890123456")), nil)
	g.bad("path", "P-3", "bad path: 4,097 bytes", "path: 4,096 bytes and 255 slashes", path(long(255, "a2345678901234567")))
	g.bad("path", "P-3", "bad path: 256 slashes", "path: 4,096 bytes and 255 slashes", path(strings.Repeat("a/", 256)+"a"))
	g.in("paths")
	paths := func(p ...string) m { return m{"paths": p} }
	g.good("paths", "P-5", "paths beside each other", paths("a", "b/a", "b/b", "c/a"), nil)
	g.good("paths", "P-5 U-5", "paths that look alike and fold otherwise", paths("o", "0", "ł", "l"), nil)
	g.good("paths", "P-5 U-5 U-1", "dotless and dotted i", paths("ı", "i"), nil)
	for _, c := range []struct{ note, a, b string }{
		{"case", "README", "readme"}, {"the case of a directory", "Doc/a", "doc/b"}, {"Unicode form", "é", "e\u0301"}, {"sharp s", "straße", "STRASSE"}, {"capital sharp s", "ẞ", "ss"}, {"Kelvin", "\u212a", "k"}, {"long s", "ſ", "s"}, {"final sigma", "ς", "Σ"}, {"ligature", "ﬁ", "fi"},
		{"a file and a directory", "a", "a/b"}, {"a file and a directory of another case", "A", "a/b"}, {"dotted capital I", "İ", "i̇"}, {"Cherokee", "Ꭰ", "ꭰ"}, {"the order of marks", "a\u0323\u0302", "ậ"}, {"ypogegrammeni", "ᾳ", "αι"}, {"Deseret", "𐐀", "𐐨"},
	} {
		g.bad("paths", "P-5 U-5", "paths that collide: "+c.note, "paths beside each other", paths(c.a, c.b))
	}
}

// patchDiffs ask for the hunks of two texts.
func patchDiffs(g *generator) {
	g.in("diff")
	diff := func(requires, note, before, after, body string) {
		g.t.Helper()
		var values m
		if body != "?" {
			values = m{"body": body}
		}
		g.good("diff", requires, "diff: "+note, m{"before": before, "after": after}, values)
	}
	diff("P-19", "the same", "a\n", "a\n", "")
	diff("P-19", "from nothing", "", "a\n", "@@ -0,0 +1 @@\n+a\n")
	diff("P-18", "an LF at the end is part of the line", "a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n")
	diff("P-19 P-23", "an insertion goes as far down as the prefix goes", "a\na\n", "a\na\na\n", "@@ -1,2 +1,3 @@\n a\n a\n+a\n")
	diff("P-22 P-23", "no edit slides", "x\na\nb\na\nb\ny\n", "x\na\nb\ny\n", "@@ -1,6 +1,4 @@\n x\n a\n b\n-a\n-b\n y\n")
	diff("P-21 P-22", "the example of Myers", "a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", "?")
	diff("P-21 P-22", "swapped lines", "a\nb\n", "b\na\n", "?")
	diff("P-21 P-22", "three lines turned round", "a\nb\nc\n", "c\nb\na\n", "?")
	diff("P-21 P-22", "four lines turned round", "a\nb\nc\nd\n", "d\nc\nb\na\n", "?")
	diff("P-23", "two edits with nothing between them are one", "a\nb\n", "c\nd\n", "@@ -1,2 +1,2 @@\n-a\n-b\n+c\n+d\n")
	diff("P-18", "a line with CR is another line", "a\r\nb\n", "a\nb\n", "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\n")
	diff("P-18", "CR alone ends no line", "a\rb\n", "a\rc\n", "@@ -1 +1 @@\n-a\rb\n+a\rc\n")
	r := rand.New(rand.NewPCG(7, 22))
	random := func(kinds, n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%c\n", 'a'+r.IntN(kinds))
		}
		return b.String()
	}
	for i := range 14 {
		diff("P-20 P-21 P-22 P-23", fmt.Sprintf("random lines of few kinds, %d", i+1), random(2+i%4, 6+3*i), random(2+i%4, 6+2*i), "?")
	}
	// The bound: of N and M lines that have nothing in common, D is N + M.
	times := func(text string, n int) m { return m{"repeat": text, "times": n} }
	bound := func(note string, before, after any) {
		g.t.Helper()
		v := Vector{Op: "diff", Requires: []string{"P-20"}, Note: "diff: " + note, Input: m{"before": before, "after": after}, Expect: Expectation{Verdict: Accept}}
		g.add(v)
	}
	bound("the distance is bounded: 2,048 and 2,048 lines with one in common", m{"join": []any{times("a\n", 2048), "x\n"}}, m{"join": []any{"x\n", times("b\n", 2048)}})
	bound("the distance is bounded: a line more, and there is one edit", m{"join": []any{times("a\n", 2049), "x\n"}}, m{"join": []any{"x\n", times("b\n", 2048)}})
}
