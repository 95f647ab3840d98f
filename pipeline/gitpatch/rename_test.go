package gitpatch_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// words are some lines; seed says which.
func words(seed uint64, lines int) []string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	out := make([]string, lines)
	for i := range out {
		out[i] = strings.Repeat("w", rnd.IntN(20)) + fmt.Sprint(" ", seed, " ", rnd.IntN(1000))
		if rnd.IntN(10) == 0 {
			out[i] = strings.Repeat(out[i], 12) // of more than 64 bytes
		}
	}
	return out
}

func textFile(lines []string, end string) *patch.File {
	return &patch.File{Mode: patch.Regular, Data: []byte(strings.Join(lines, end) + end)}
}

// replaced has n lines of a file made anew.
func replaced(lines []string, n int) []string {
	return slices.Concat(words(99, n), lines[n:])
}

// renamings are those of a patch, as `git diff -M --raw` tells them.
func renamings(p patch.Patchset) []string {
	var out []string
	for _, r := range gitpatch.Renamings(p.Bytes()) {
		out = append(out, fmt.Sprintf("R%03d\t%s\t%s", r.Alike, r.OldPath, r.NewPath))
	}
	return out
}

func gitRenames(r repo) []string {
	var out []string
	for line := range strings.Lines(string(r.git("diff", "--cached", "-M", "-l0", "--raw"))) {
		if _, status, _ := strings.Cut(strings.TrimSpace(line), " R"); status != "" && !strings.HasPrefix(status, "100") {
			out = append(out, "R"+status)
		}
	}
	return out
}

// TestRenamings: files are renamed where git says so, and as alike as git says.
func TestRenamings(t *testing.T) {
	ten, hundred := words(1, 10), words(2, 100)
	reversed := slices.Clone(hundred)
	slices.Reverse(reversed)
	executable := textFile(replaced(hundred, 3), "\n")
	executable.Mode = patch.Executable
	for name, c := range map[string]struct{ before, after map[string]*patch.File }{
		"edited":                   {map[string]*patch.File{"old": textFile(hundred, "\n")}, map[string]*patch.File{"dir/new": textFile(replaced(hundred, 28), "\n")}},
		"executable":               {map[string]*patch.File{"old": textFile(hundred, "\n")}, map[string]*patch.File{"new": executable}},
		"half":                     {map[string]*patch.File{"old": textFile(hundred, "\n")}, map[string]*patch.File{"new": textFile(replaced(hundred, 45), "\n")}},
		"less":                     {map[string]*patch.File{"old": textFile(hundred, "\n")}, map[string]*patch.File{"new": textFile(replaced(hundred, 60), "\n")}},
		"much longer":              {map[string]*patch.File{"old": textFile(ten, "\n")}, map[string]*patch.File{"new": textFile(append(words(3, 40), ten...), "\n")}},
		"another order":            {map[string]*patch.File{"old": textFile(hundred, "\n")}, map[string]*patch.File{"new": textFile(reversed, "\n")}},
		"line ends":                {map[string]*patch.File{"old": textFile(hundred, "\n")}, map[string]*patch.File{"new": textFile(hundred, "\r\n")}},
		"without the last newline": {map[string]*patch.File{"old": textFile(ten, "\n")}, map[string]*patch.File{"new": {Mode: patch.Regular, Data: []byte(strings.Join(ten, "\n"))}}},
		"one long line":            {map[string]*patch.File{"old": {Mode: patch.Regular, Data: []byte(strings.Join(hundred, ""))}}, map[string]*patch.File{"new": {Mode: patch.Regular, Data: []byte(strings.Join(replaced(hundred, 1), ""))}}},
		"two into one":             {map[string]*patch.File{"a": textFile(replaced(hundred, 20), "\n"), "b": textFile(replaced(hundred, 5), "\n")}, map[string]*patch.File{"c": textFile(hundred, "\n")}},
		"one into two":             {map[string]*patch.File{"a": textFile(hundred, "\n")}, map[string]*patch.File{"b": textFile(replaced(hundred, 20), "\n"), "c": textFile(replaced(hundred, 5), "\n")}},
		"the only ones of a name": {map[string]*patch.File{"x/a": textFile(hundred, "\n")}, map[string]*patch.File{
			"y/a": textFile(replaced(hundred, 20), "\n"), "y/b": textFile(replaced(hundred, 1), "\n")}},
		"three of a name": {map[string]*patch.File{"x/a": textFile(hundred, "\n")}, map[string]*patch.File{
			"y/a": textFile(replaced(hundred, 20), "\n"), "y/b": textFile(replaced(hundred, 1), "\n"), "z/a": textFile(ten, "\n")}},
		"the same name, less alike": {map[string]*patch.File{"x/a": textFile(hundred, "\n")}, map[string]*patch.File{
			"y/a": textFile(replaced(hundred, 40), "\n"), "y/b": textFile(replaced(hundred, 1), "\n")}},
		"crossed": {map[string]*patch.File{"x/a": textFile(hundred, "\n"), "x/b": textFile(replaced(hundred, 10), "\n")}, map[string]*patch.File{
			"y/a": textFile(replaced(hundred, 12), "\n"), "y/b": textFile(replaced(hundred, 2), "\n")}},
		"with spaces and quotes": {map[string]*patch.File{`a "b" c`: textFile(hundred, "\n")}, map[string]*patch.File{"d e\u00e9": textFile(replaced(hundred, 10), "\n")}},
		"empty":                  {map[string]*patch.File{"a": {Mode: patch.Regular}}, map[string]*patch.File{"b": textFile(ten[:1], "\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.git("config", "core.quotepath", "off")
			after := map[string]*patch.File{"still": textFile(ten[:2], "\n")}
			r.write("still", after["still"])
			for path, f := range c.before {
				r.write(path, f)
				after[path] = nil
			}
			r.commit()
			for path := range c.before {
				r.write(path, nil)
			}
			for path, f := range c.after {
				r.write(path, f)
				after[path] = f
			}
			r.git("add", "-A")
			base := map[string]*patch.File{"still": after["still"]}
			for path, f := range c.before {
				base[path] = f
			}
			p, err := patch.NewTree(newMemFS(base)).Between(after)
			fatal(t, err)
			want := gitRenames(r)
			for i := range want {
				want[i] = strings.NewReplacer(`"`, ``, `\`, ``).Replace(want[i]) // git quotes names here
			}
			got := renamings(p)
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], `"`, ``)
			}
			if name == "another order" {
				got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "R100") })
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, git says %q", got, want)
			}
		})
	}
}

// TestT71Renamings: what is shown of a rename hides nothing of the two files that the bytes have: put on the files
// before, it gives the files after, byte for byte, in the real git as well.
func TestT71Renamings(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	renamed := 0
	for range 300 {
		base, after := map[string]*patch.File{}, map[string]*patch.File{}
		for i := range 1 + rnd.IntN(3) {
			f := randomFile(rnd)
			to := &patch.File{Mode: f.Mode, Data: edit(rnd, f.Data)}
			switch rnd.IntN(6) {
			case 0:
				to.Mode = patch.Executable
			case 1:
				to.Data = bytes.TrimSuffix(to.Data, []byte("\n"))
			case 2:
				to.Data = bytes.ReplaceAll(to.Data, []byte("1"), []byte("\xff"))
			}
			base[fmt.Sprint("old", i)], after[fmt.Sprint("old", i)], after[fmt.Sprint(`new "`, i)] = f, nil, to
		}
		p, err := patch.NewTree(newMemFS(base)).Between(after)
		fatal(t, err)
		for _, r := range gitpatch.Renamings(p.Bytes()) {
			renamed++
			d, err := gitpatch.Parse(r.Diff)
			if err != nil {
				t.Fatalf("%v: %s", err, r.Diff)
			}
			got, err := d.Resolve(newMemFS(base))
			if err != nil {
				t.Fatalf("%v: %s", err, r.Diff)
			}
			_, sums := got.Hashes()
			if want := after[r.NewPath].Sum(); *sums[r.NewPath] != *want || sums[r.OldPath] != nil {
				t.Errorf("another content: %s", r.Diff)
			}
			for _, c := range got.Changes {
				if c.Path == r.NewPath && c.After.Mode != after[r.NewPath].Mode {
					t.Errorf("another mode: %s", r.Diff)
				}
			}
		}
	}
	if renamed < 100 {
		t.Errorf("only %d renames", renamed)
	}

	// A diff that does not have all of a file, or another text than it says, as a masked one has, tells no rename.
	hundred := words(2, 100)
	p, err := patch.NewTree(newMemFS(map[string]*patch.File{"old": textFile(hundred, "\n")})).Between(map[string]*patch.File{"old": nil, "new": textFile(replaced(hundred, 5), "\n")})
	fatal(t, err)
	whole := string(p.Bytes())
	if len(gitpatch.Renamings([]byte(whole))) != 1 {
		t.Fatal("no rename")
	}
	for what, diff := range map[string]string{
		"a masked line":  strings.ReplaceAll(whole, hundred[50]+"\n", "<REDACTED:x>\n"),
		"a lost line":    strings.Replace(strings.Replace(whole, "-"+hundred[50]+"\n", "", 1), "@@ -1,100 +0,0 @@", "@@ -1,99 +0,0 @@", 1),
		"no diff at all": whole + "x\n",
	} {
		if diff == whole || len(gitpatch.Renamings([]byte(diff))) > 0 {
			t.Errorf("%s: a rename", what)
		}
	}
}

// TestManyRenamings: the search for renames is bounded, and beyond its bounds it finds less.
func TestManyRenamings(t *testing.T) {
	base, after := map[string]*patch.File{}, map[string]*patch.File{}
	for i := range 1000 {
		lines := slices.Concat(words(7, 10), []string{fmt.Sprint(i)})
		base[fmt.Sprint("old", i)], after[fmt.Sprint("old", i)] = textFile(lines, "\n"), nil
		after[fmt.Sprint("new", i)] = textFile(append(lines, "x"), "\n")
	}
	p, err := patch.NewTree(newMemFS(base)).Between(after)
	fatal(t, err)
	raw, from := p.Bytes(), time.Now()
	if n := len(gitpatch.Renamings(raw)); n == 0 || time.Since(from) > 5*time.Second {
		t.Errorf("%d in %v", n, time.Since(from))
	}
}
