package input_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
)

const abab = "a\nb\nc\na\nb\n"

// cases are what people and models write; tool is what the real tool does where that is
// something else than refusing with us.
var cases = []struct {
	name, file, patch string
	want, err         string
	tool              string
}{
	{name: "lines", file: abab, patch: "@@\n c\n-a\n+x\n", want: "a\nb\nc\nx\nb\n"},
	{name: "no @@", file: abab, patch: " c\n-a\n+x\n", want: "a\nb\nc\nx\nb\n"},
	{name: "after a line", file: abab, patch: "@@ c\n-b\n+x\n", want: "a\nb\nc\na\nx\n"},
	{name: "the end", file: abab, patch: "@@\n-b\n+x\n*** End of File\n", want: "a\nb\nc\na\nx\n"},
	{name: "a function", file: "f {\n1\n}\ng {\n1\n}\n", patch: "@@ g {\n-1\n+2\n", want: "f {\n1\n}\ng {\n2\n}\n"},
	{name: "two chunks", file: abab, patch: "@@\n a\n-b\n c\n@@\n-a\n b\n", want: "a\nc\nb\n"},
	{name: "new lines alone", file: "a\n", patch: "@@\n+b\n", want: "a\nb\n"},
	{name: "an empty file", file: "", patch: "@@\n+b\n", want: "b\n"},
	{name: "an empty line of context", file: "a\n\nb\n", patch: "@@\n a\n\n-b\n+c\n", want: "a\n\nc\n"},
	{name: "white space behind", file: "a  \nb\n", patch: "@@\n a\n-b\n+c\n", want: "a  \nc\n"},
	{name: "white space before", file: "\ta\nb\n", patch: "@@\n a\n-b\n+c\n", want: "\ta\nc\n"},
	{name: "quotes", file: "say \u201cit\u201d\n", patch: "@@\n-say \"it\"\n+say it\n", want: "say it\n"},
	{name: "carriage returns", file: "a\r\nb\r\n", patch: "@@\n-a\n+c\n", want: "c\r\nb\r\n"},
	{name: "no end of the last line", file: "a\nb", patch: "@@\n-a\n+c\n", want: "c\nb\n"},
	{name: "all gone", file: "a\n", patch: "@@\n-a\n", want: ""},
	{name: "exactly one is exactly alike", file: "a \na\n", patch: "@@\n-a\n+b\n", want: "a \nb\n"},

	{name: "not there", file: abab, patch: "@@\n-z\n+x\n", err: "not there"},
	{name: "no such line to come after", file: abab, patch: "@@ z\n-a\n+x\n", err: "no line \"z\""},
	{name: "out of order", file: "a\nb\n", patch: "@@\n-b\n+x\n@@\n-a\n+y\n", err: "not there"},
	{name: "no lines", file: abab, patch: "", err: "has no lines"},
	{name: "no lines behind @@", file: abab, patch: "@@\n", err: "has no lines"},
	{name: "something else", file: abab, patch: "@@\n-a\nb\n", err: "begins with none of"},
	{name: "behind the end", file: abab, patch: "@@\n a\n-b\n*** End of File\n+c\n", err: "End of File"},

	{name: "two places", file: abab, patch: "@@\n a\n-b\n+x\n", err: "2 places, lines 1, 4", tool: "a\nx\nc\na\nb\n"},
	{name: "two lines to come after", file: "f\na\nf\nb\na\n", patch: "@@ f\n-a\n+x\n", err: "2 places, lines 2, 5", tool: "f\nx\nf\nb\na\n"},
	{name: "an empty line alone", file: "a\n", patch: "@@\n\n+b\n", err: "does not say where", tool: "\nb\na\n"},
}

func update1(patch string) string {
	return "*** Begin Patch\n*** Update File: a.txt\n" + patch + "*** End Patch\n"
}

func TestCases(t *testing.T) {
	tool := ""
	if at := os.Getenv("COUNTERSIGN_CODEX"); at != "" {
		tool = filepath.Join(t.TempDir(), "apply_patch")
		fatal(t, os.Symlink(at, tool))
	}
	for _, c := range cases {
		files := map[string]string{"a.txt": c.file}
		got, err := byUs(files, update1(c.patch))
		switch {
		case c.err == "" && (err != nil || got["a.txt"] != c.want):
			t.Errorf("%s: %q, %v", c.name, got, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if tool == "" {
			continue
		}
		real, ok := byTool(t, tool, files, update1(c.patch))
		if want := c.want + c.tool; ok != (c.err == "" || c.tool != "") || ok && real["a.txt"] != want {
			t.Errorf("%s: the tool gives %q, %v", c.name, real, ok)
		}
	}
}

// TestFiles: files that come, go and move, several times over.
func TestFiles(t *testing.T) {
	base := map[string]string{"a.txt": "a\n", "b.txt": "b\n"}
	for _, c := range []struct {
		name, patch string
		want        map[string]string
		err         string
	}{
		{"all", "*** Add File: d/n.txt\n+1\n+\n*** Delete File: b.txt\n*** Update File: a.txt\n*** Move to: d/a.txt\n@@\n-a\n+x\n", map[string]string{"d/n.txt": "1\n\n", "d/a.txt": "x\n"}, ""},
		{"over another", "*** Update File: a.txt\n*** Move to: b.txt\n@@\n-a\n+x\n", map[string]string{"b.txt": "x\n"}, ""},
		{"over itself", "*** Add File: a.txt\n+x\n", map[string]string{"a.txt": "x\n", "b.txt": "b\n"}, ""},
		{"twice", "*** Update File: a.txt\n@@\n-a\n+x\n*** Update File: a.txt\n@@\n-x\n+y\n", map[string]string{"a.txt": "y\n", "b.txt": "b\n"}, ""},
		{"round", "*** Update File: a.txt\n*** Move to: c.txt\n@@\n-a\n+x\n*** Update File: b.txt\n*** Move to: a.txt\n@@\n-b\n+y\n*** Update File: c.txt\n*** Move to: b.txt\n@@\n-x\n+z\n", map[string]string{"a.txt": "y\n", "b.txt": "z\n"}, ""},
		{"gone and here again", "*** Delete File: a.txt\n*** Add File: a.txt\n+x\n", map[string]string{"a.txt": "x\n", "b.txt": "b\n"}, ""},
		{"a shell's", "", nil, "first line"},
		{"onto itself", "*** Update File: a.txt\n*** Move to: a.txt\n@@\n-a\n+x\n", nil, "onto itself"},
		{"not there", "*** Delete File: z.txt\n", nil, "does not exist"},
		{"gone already", "*** Delete File: a.txt\n*** Update File: a.txt\n@@\n-a\n+b\n", nil, "does not exist"},
		{"nothing", "*** Update File: a.txt\n@@\n-a\n+a\n", base, ""},
		{"another directory", "*** Add File: ../x\n+1\n", nil, "path"},
		{"from the root", "*** Add File: /etc/x\n+1\n", nil, "path"},
		{"Git's own", "*** Add File: .git/hooks/x\n+1\n", nil, ".git"},
		{"a NUL", "*** Add File: a\x00b\n+1\n", nil, "control"},
		{"no file", "", nil, "names no file"},
		{"too many", strings.Repeat("*** Add File: x\n+1\n", 1001), nil, "at most 1000 files"},
		{"a file below a file", "*** Add File: a.txt/b\n+1\n", nil, "a.txt"},
	} {
		text := "*** Begin Patch\n" + c.patch + "*** End Patch\n"
		if c.name == "a shell's" {
			text = "cat <<EOF\n" + text + "EOF\n"
		}
		got, err := byUs(base, text)
		if c.err == "" && (err != nil || !maps.Equal(got, c.want)) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	for _, shell := range []string{"<<'EOF'\n%sEOF\n", "apply_patch <<'PATCH'\n%sPATCH\n", "applypatch <<PATCH\n%sPATCH\n"} {
		if got, err := byUs(base, fmt.Sprintf(shell, update1("@@\n-a\n+x\n"))); err != nil || got["a.txt"] != "x\n" {
			t.Errorf("%s: %q, %v", shell, got, err)
		}
	}
}

func FuzzApplyPatch(f *testing.F) {
	for _, c := range cases {
		f.Add(c.file, update1(c.patch))
	}
	f.Add("a\n", "*** Begin Patch\n*** Add File: n\n+x\n*** Delete File: b.txt\n*** End Patch")
	f.Fuzz(func(t *testing.T, file, text string) {
		files := map[string]string{"a.txt": file, "b.txt": "b\n"}
		if input.IsApplyPatch([]byte(text)) != (len(text) > 0 && input.IsApplyPatch([]byte(text+"\n"))) {
			t.Error("a line end changes what it is")
		}
		one, err := byUs(files, text)
		if two, again := byUs(files, text); (err == nil) != (again == nil) || !maps.Equal(one, two) {
			t.Errorf("%q, %v and then %q, %v", one, err, two, again)
		}
	})
}
