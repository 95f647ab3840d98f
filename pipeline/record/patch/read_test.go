package patch_test

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// changed is a base and the canonical bytes of a change of every kind.
func changed(t testing.TB) (fstest.MapFS, patch.Patchset) {
	t.Helper()
	base := fstest.MapFS{}
	for name, data := range map[string]string{
		"bin": "\x00a", "bingone": "\x00b", "emptied": "x\n", "empty": "", "gone": "a\nb", "mode": "m\n", "old \"name\"": "same\n",
		"text one": "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12", "torn": "a\nb",
	} {
		base[name] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
	}
	file := func(s string) *patch.File { return &patch.File{Mode: patch.Regular, Data: []byte(s)} }
	set, err := patch.NewTree(base).Between(map[string]*patch.File{
		"bin": file("\x00c"), "bingone": nil, "binnew": file(strings.Repeat("\x00d", 100)), "emptied": file(""), "empty": nil, "gone": nil,
		"made": file("x\ny"), "madeempty": file(""), "mode": {Mode: patch.Executable, Data: []byte("m\n")}, "moved": {Mode: patch.Executable, Data: []byte("same\n")},
		"old \"name\"": nil, "text one": file("1\nII\n3\n4\n5\n6\n7\n8\n9\n10\nXI\n12\n"), "torn": file("a\nc"),
	})
	fatal(t, err)
	return base, set
}

// TestT53Parse: canonical bytes are read as what they are, and with one byte other, one more or one less they are refused,
// do not fit the base, or do not agree with the hashes.
func TestT53Parse(t *testing.T) {
	base, set := changed(t)
	before, after := set.Hashes()
	read := func(raw []byte) (string, bool) {
		d, err := patch.Parse(raw)
		if err != nil {
			return "", false
		}
		again, err := code.Put(d, base)
		return again.ID(), err == nil && d.Agrees(set.Paths(), before, after, true) == nil
	}
	raw := set.Bytes()
	if id, ok := read(raw); !ok || id != set.ID() {
		t.Fatalf("not read: %v\n%.3000s", ok, raw)
	}
	shown := string(raw)
	for i := range raw {
		for what, other := range map[string]string{
			"another": shown[:i] + string(raw[i]^1) + shown[i+1:], "one less": shown[:i] + shown[i+1:], "one more": shown[:i] + shown[i:i+1] + shown[i:],
			"a line less": shown[:i] + shown[i+strings.Index(shown[i:]+"\n", "\n"):],
		} {
			if other == shown {
				continue
			}
			if _, ok := read([]byte(other)); ok {
				t.Errorf("byte %d, %s: taken\n%.300s", i, what, other[max(0, i-150):])
			}
		}
	}
}

// TestLargeBinary: a content of several blocks is read.
func TestLargeBinary(t *testing.T) {
	for _, size := range []int{1, 65534, 65535, 65536, 140_000} {
		data := append(make([]byte, size), "end"...)
		set, err := patch.NewTree(fstest.MapFS{}).Between(map[string]*patch.File{"b": {Mode: patch.Regular, Data: data}})
		fatal(t, err)
		d, err := patch.Parse(set.Bytes())
		if err != nil || !bytes.Equal(d.Parts[0].Data, data) {
			t.Errorf("%d: %v", size, err)
		}
	}
}

// TestT53Form: what Bytes does not write is refused without the base.
func TestT53Form(t *testing.T) {
	const (
		a  = "7898192261678d5a9a3d1d1d5d9a1a3b7c9d2e4f"
		b  = "61780798228d17af2d34fce4cfbdf35556832472"
		no = "0000000000000000000000000000000000000000"
	)
	head := func(name string) string {
		return "diff --git a/" + name + " b/" + name + "\nindex " + a + ".." + b + " 100644\n--- a/" + name + "\n+++ b/" + name + "\n"
	}
	good := head("f") + "@@ -1 +1 @@\n-a\n+b\n"
	for name, c := range map[string]struct {
		raw, want string
	}{
		"good":            {good, ""},
		"two hunks":       {head("f") + "@@ -1 +1 @@\n-a\n+b\n@@ -9 +9,2 @@\n c\n+d\n", ""},
		"two files":       {good + strings.ReplaceAll(good, "/f", "/g"), ""},
		"nothing":         {"", "the patch is empty"},
		"text before":     {"x\n" + good, "not in canonical form"},
		"text behind":     {good + "x\n", "not in canonical form"},
		"another order":   {strings.ReplaceAll(good, "/f", "/g") + good, "order of paths"},
		"twice":           {good + good, "order of paths"},
		"short ids":       {strings.ReplaceAll(good, a, a[:12]), "two contents"},
		"capital ids":     {strings.ReplaceAll(good, a, strings.ToUpper(a)), "two contents"},
		"one content":     {strings.ReplaceAll(good, a, b), "without a change"},
		"an absent file":  {strings.ReplaceAll(good, a, no), "disagrees on what happens"},
		"no index":        {strings.ReplaceAll(good, "index "+a+".."+b+" 100644\n", ""), "not in canonical form"},
		"a link":          {strings.ReplaceAll(good, "100644", "120000"), "not in canonical form"},
		"two modes alike": {strings.ReplaceAll(strings.ReplaceAll(good, " 100644\n", "\n"), "index ", "old mode 100644\nnew mode 100644\nindex "), "not in canonical form"},
		"bad path":        {strings.ReplaceAll(good, "/f", "/.git"), "reads as .git"},
		"needless quotes": {strings.Replace(good, "a/f b/f", "\"a/f\" \"b/f\"", 1), "not in canonical form"},
		"other names":     {strings.Replace(good, "+++ b/f", "+++ b/g", 1), "not in canonical form"},
		"no hunks":        {head("f"), "without a change"},
		"no change":       {head("f") + "@@ -1 +1 @@\n a\n", "without a change"},
		"counts":          {head("f") + "@@ -1,2 +1 @@\n-a\n+b\n", "its counts say"},
		"a count of one":  {head("f") + "@@ -1,1 +1 @@\n-a\n+b\n", "malformed hunk header"},
		"a heading":       {head("f") + "@@ -1 +1 @@ x\n-a\n+b\n", "malformed hunk header"},
		"line 0":          {head("f") + "@@ -0 +0 @@\n-a\n+b\n", "out of order"},
		"large numbers":   {head("f") + "@@ -9999999999 +9999999999 @@\n-a\n+b\n", "malformed hunk header"},
		"another place":   {head("f") + "@@ -1 +2 @@\n-a\n+b\n", "out of order"},
		"wrong order":     {head("f") + "@@ -1 +1 @@\n+b\n-a\n", "behind one that comes"},
		"bare line":       {head("f") + "@@ -1,2 +1,2 @@\n\n-a\n+b\n", "its counts say"},
		"cut off":         {strings.TrimSuffix(good, "\n"), "its counts say"},
		"a NUL":           {head("f") + "@@ -1 +1 @@\n-a\n+\x00\n", "NUL byte"},
		"behind the end":  {head("f") + "@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n-c\n+b\n", "not the last one"},
		"no line for it":  {head("f") + "@@ -1 +1 @@\n-a\n+\n\\ No newline at end of file\n", "missing newline"},
		"renamed, made":   {"diff --git a/f b/g\nnew file mode 100644\nsimilarity index 100%\nrename from f\nrename to g\nindex " + no + "..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n", "not in canonical form"},
		"renamed, edited": {"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\nindex " + a + ".." + b + " 100644\n", "changes nothing of the content"},
		"a renamed twice": {"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\nindex " + a + ".." + a + " 100644\n" +
			"diff --git a/f b/h\nsimilarity index 100%\nrename from f\nrename to h\nindex " + a + ".." + a + " 100644\n", "appears twice"},
		"a copy":                  {"diff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\nindex " + a + ".." + a + " 100644\n", "not in canonical form"},
		"a new file of two hunks": {"diff --git a/f b/f\nnew file mode 100644\nindex " + no + ".." + b + "\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n@@ -0,0 +2 @@\n+b\n", "one hunk"},
		"deflated":                {"diff --git a/f b/f\nnew file mode 100644\nindex " + no + ".." + b + "\nGIT binary patch\nliteral 1\nIcmZQ%00IC22><{9\n\n", "binary content"},
		"another size":            {"diff --git a/f b/f\nnew file mode 100644\nindex " + no + ".." + b + "\nGIT binary patch\nliteral 2\nMcmb000000100000004\n\n", "binary content"},
		"no NUL":                  {"diff --git a/f b/f\nnew file mode 100644\nindex " + no + ".." + b + "\nGIT binary patch\nliteral 1\nLcmV+c0RI1Y0C@m;\n\n", "is not binary"},
	} {
		_, err := patch.Parse([]byte(c.raw))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestT40Put: canonical bytes fit the base that they were made for, and no other.
func TestT40Put(t *testing.T) {
	for name, bend := range map[string]func(fstest.MapFS){
		"":                             func(fstest.MapFS) {},
		"its index line names another": func(b fstest.MapFS) { b["torn"].Data = []byte("a\nb\n") },
		"has mode 100755":              func(b fstest.MapFS) { b["gone"].Mode = 0o755 },
		"does not exist":               func(b fstest.MapFS) { delete(b, "bin") },
		"made: already exists":         func(b fstest.MapFS) { b["made"] = b["gone"] },
		"moved: already exists":        func(b fstest.MapFS) { b["moved"] = b["gone"] },
		"collides with MADE where":     func(b fstest.MapFS) { b["MADE"] = b["gone"] },
		"symbolic link":                func(b fstest.MapFS) { b["torn"].Mode = 0o777 | fs.ModeSymlink },
	} {
		base, set := changed(t)
		d, err := patch.Parse(set.Bytes())
		fatal(t, err)
		bend(base)
		again, err := code.Put(d, base)
		if name == "" && (err != nil || again.ID() != set.ID()) || name != "" && (err == nil || !strings.Contains(err.Error(), name)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
