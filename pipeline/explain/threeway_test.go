package explain

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

func text(s string) *patch.File { return &patch.File{Mode: patch.Regular, Data: []byte(s)} }

func TestMerge(t *testing.T) {
	run := func(s string) *patch.File { return &patch.File{Mode: patch.Executable, Data: []byte(s)} }
	for name, c := range map[string]struct {
		base, ours, theirs, want *patch.File
		clean                    bool
	}{
		"neither":                {text("a"), text("a"), text("a"), text("a"), true},
		"ours":                   {text("a"), text("b"), text("a"), text("b"), true},
		"theirs":                 {text("a"), text("a"), text("b"), text("b"), true},
		"alike":                  {text("a"), text("b"), text("b"), text("b"), true},
		"both, apart":            {text("1\n2\n3\n"), text("x\n2\n3\n"), text("1\n2\ny\n"), text("x\n2\ny\n"), true},
		"both, side by side":     {text("1\n2\n"), text("x\n2\n"), text("1\ny\n"), nil, false},
		"the same line":          {text("1\n"), text("x\n"), text("y\n"), nil, false},
		"one alike, one of ours": {text("1\n2\n3\n"), text("x\n2\ny\n"), text("x\n2\n3\n"), text("x\n2\ny\n"), true},
		"made by one":            {nil, nil, text("a"), text("a"), true},
		"made by both":           {nil, text("a"), text("b"), nil, false},
		"removed":                {text("a"), text("a"), nil, nil, true},
		"removed and changed":    {text("a"), text("b"), nil, nil, false},
		"changed and removed":    {text("a"), nil, text("b"), nil, false},
		"mode and content":       {text("a"), run("a"), text("b"), run("b"), true},
		"mode of theirs":         {text("a\n1\nb\n"), text("x\n1\nb\n"), run("a\n1\ny\n"), run("x\n1\ny\n"), true},
		"binary, one side":       {text("\x00"), text("\x00"), text("\x00b"), text("\x00b"), true},
		"binary, both":           {text("\x00"), text("\x00a"), text("\x00b"), nil, false},
		"binary, mode beside":    {text("\x00"), run("\x00"), text("\x00b"), run("\x00b"), true},
	} {
		got, clean := mergeFile(c.base, c.ours, c.theirs)
		if clean != c.clean || clean && !got.Equal(c.want) {
			t.Errorf("%s: %+v %v", name, got, clean)
		}
	}
}

func TestForeign(t *testing.T) {
	for name, c := range map[string]struct {
		ours, theirs, merged *patch.File
		want                 []Lines
	}{
		"a line of nobody's":  {text("1\n2\n3\n"), text("1\nx\n3\n"), text("1\ny\n3\n"), []Lines{{"f", 2, 2}}},
		"one more":            {text("1\n2\n"), text("1\n2\n"), text("1\n2\n3\n"), []Lines{{"f", 3, 3}}},
		"one less":            {text("1\n2\n3\n"), text("1\n2\n3\n"), text("1\n3\n"), []Lines{{"f", 2, 1}}},
		"theirs, not ours":    {text("1\n"), text("2\n"), text("2\n"), []Lines{{"f", 1, 1}}},
		"gone":                {text("1\n"), text("1\n"), nil, []Lines{{Path: "f"}}},
		"another mode":        {text("1\n"), text("1\n"), &patch.File{Mode: patch.Executable, Data: []byte("1\n")}, []Lines{{Path: "f"}}},
		"no text":             {text("1\n"), text("1\n"), text("\x00"), []Lines{{Path: "f"}}},
		"theirs is not there": {text("1\n"), nil, text("2\n"), []Lines{{"f", 1, 1}}},
	} {
		if got := foreignLines("f", c.ours, c.theirs, c.merged); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestMergeAsGit: what is merged here has the bytes that git merge-file makes of it, and
// almost all that git merges is merged here.
func TestMergeAsGit(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	edit := func(lines []string) []string {
		out := append([]string{}, lines...)
		for range 1 + random.IntN(2) {
			at := random.IntN(len(out))
			switch random.IntN(3) {
			case 0:
				out[at] = fmt.Sprintln(random.IntN(4))
			case 1:
				out = append(out[:at:at], out[at+1:]...)
			case 2:
				out = append(out[:at:at], append([]string{fmt.Sprintln("new", random.IntN(4))}, out[at:]...)...)
			}
			if len(out) == 0 {
				return []string{"end\n"}
			}
		}
		return out
	}
	join := func(lines []string) (b []byte) {
		for _, l := range lines {
			b = append(b, l...)
		}
		return b
	}
	git, both, differ := 0, 0, 0
	for range 200 {
		var base []string
		for i := range 12 {
			base = append(base, fmt.Sprintln("line", i))
		}
		files := [][]byte{join(edit(base)), join(base), join(edit(base))}
		args := []string{"merge-file", "-p", "-q"}
		for i, data := range files {
			name := filepath.Join(dir, fmt.Sprint(i))
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, name)
		}
		want, err := exec.Command("git", args...).Output()
		got, clean := mergeFile(text(string(files[1])), text(string(files[0])), text(string(files[2])))
		if err == nil {
			git++
		}
		switch {
		case clean && err != nil:
			t.Errorf("git finds a conflict, and we do not:\n%s--\n%s--\n%s", files[0], files[1], files[2])
		case clean && !bytes.Equal(got.Data, want):
			differ++
		case clean:
			both++
		}
	}
	t.Logf("git merges %d of 200; of these %d are merged alike here, %d differently", git, both, differ)
	if differ > 0 || both*100 < git*95 || git < 100 {
		t.Errorf("git merges %d; %d alike, %d differently", git, both, differ)
	}
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte("1\n2\n3\n"), []byte("x\n2\n3\n"), []byte("1\n2\ny"))
	f.Add([]byte(""), []byte("\x00"), []byte("a"))
	f.Fuzz(func(t *testing.T, base, ours, theirs []byte) {
		b, o, th := text(string(base)), text(string(ours)), text(string(theirs))
		got, clean := mergeFile(b, o, th)
		back, cleanBack := mergeFile(b, th, o)
		if clean != cleanBack || clean && !got.Equal(back) {
			t.Errorf("%q %q %q: %v %v, the other way %v %v", base, ours, theirs, got, clean, back, cleanBack)
		}
		for _, r := range foreignLines("f", o, th, text(string(theirs)+"x")) {
			if r.From < 0 || r.To < r.From-1 {
				t.Errorf("%v", r)
			}
		}
	})
}
