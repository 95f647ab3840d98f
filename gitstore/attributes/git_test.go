package attributes

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/filter"
)

// repository is one that the real git works on, with no configuration but its
// own.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	r := repository{t, t.TempDir()}
	r.git("", "init", "-q")
	return r
}

func (r repository) git(stdin string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "core.safecrlf=false"}, args...)...)
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1", "HOME="+r.dir)
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, err.(*exec.ExitError).Stderr)
	}
	return string(out)
}

func (r repository) write(name string, data []byte) {
	r.t.Helper()
	name = filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repository) read(name string) []byte {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
	if err != nil {
		r.t.Fatal(err)
	}
	return data
}

var (
	attributeLines = []string{
		"", "text", "-text", "binary", "text=auto", "text=input", "text=odd", "eol=crlf", "eol=lf", "text eol=crlf", "text=auto eol=crlf", "text=auto eol=lf",
		"-text eol=crlf", "text=input eol=crlf", "crlf", "-crlf", "crlf=input", "!text crlf=input", "ident", "text eol=crlf ident", "-ident", "working-tree-encoding=UTF-8",
		"filter=rot", "text eol=crlf ident filter=rot", "working-tree-encoding=UTF-16LE filter=up", "filter=half",
		"working-tree-encoding=UTF-16", "working-tree-encoding=utf-16le text eol=crlf", "working-tree-encoding=UTF-16BE ident", "working-tree-encoding=UTF-16LE-BOM", "filter=none",
	}
	contents = [][]byte{
		nil, []byte("one\ntwo\n"), []byte("one\r\ntwo\r\n"), []byte("one\ntwo\r\n"), []byte("one\rtwo\n"), []byte("no end"), []byte("\n"), []byte("a\x00b\n"),
		[]byte("\x01\x02\x03\n"), []byte(strings.Repeat("x", 200) + "\x01\n"), []byte("end of dos\n\x1a"), []byte("é ü 𝄞\n"),
		[]byte("$Id$\n"), []byte("a $Id: 0123 $ b\n"), []byte("$Id: x y z $\n"), []byte("$Id: no\nend$ $Id$"), []byte("$Id:$ $Id$ $Id"), []byte("$Id: $\r\n"), []byte("$Idx $Id$\n"),
	}
)

// config is the configuration that a row of the matrix runs with.
type config struct{ autocrlf, eol string }

var configs = []config{{"false", ""}, {"true", ""}, {"input", ""}, {"false", "crlf"}, {"false", "lf"}, {"input", "crlf"}}

func (c config) set(r repository) Config {
	r.git("", "config", "core.autocrlf", c.autocrlf)
	if c.eol != "" {
		r.git("", "config", "core.eol", c.eol)
	}
	for name, f := range filters {
		r.git("", "config", "filter."+name+".clean", f.Clean)
		r.git("", "config", "filter."+name+".smudge", f.Smudge)
	}
	return Config{AutoCRLF: c.autocrlf, EOL: c.eol, Filters: filters, Run: filter.Runner{Worktree: r.dir, Path: os.Getenv("PATH")}.Run}
}

// filters are those of the matrix; rot is undone by itself, half has no smudge.
var filters = map[string]Filter{
	"rot":  {Clean: "LC_ALL=C tr n-za-mN-ZA-M a-zA-Z", Smudge: "LC_ALL=C tr a-zA-Z n-za-mN-ZA-M"},
	"up":   {Clean: "tail -c +4", Smudge: "printf '%%s' up:; cat"},
	"half": {Clean: "cat"},
}

func (r repository) rules(c Config) *Rules {
	r.t.Helper()
	rules, err := c.Rules(func(name string) ([]byte, error) {
		data, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			return nil, nil
		}
		return data, err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return rules
}

// others are the contents that a file is given on disk which has one of them in
// the index.
func others(i int, line string) []int {
	switch {
	case !strings.Contains(line, "filter=") || strings.Contains(line, "=none"):
	case i%3 == 0: // each is several processes
		return []int{(i + 1) % len(contents)}
	default:
		return nil
	}
	return []int{i, (i + 1) % len(contents), (i + 10) % len(contents)}
}

// foreignIdent is what git add drops, and Add does not: a text that no checkout made.
var foreignIdent = regexp.MustCompile(`\$Id:[^$\n]*\$`)

// TestIdentHidesNothing: a file is what was approved only where each $Id$ of it has what
// a checkout puts there. Any other text between the signs could be a command of a script.
func TestIdentHidesNothing(t *testing.T) {
	r := newRepository(t)
	r.write(".gitattributes", []byte("*.sh ident\n"))
	form, err := r.rules(Config{}).Form("run.sh")
	if err != nil {
		t.Fatal(err)
	}
	blob := []byte("echo $Id$\n")
	out, err := form.Checkout(blob)
	if err != nil || !form.Same(out, blob) || !form.Same(blob, blob) {
		t.Fatalf("%q, %v", out, err)
	}
	for _, text := range []string{
		"echo $Id: ; touch pwned ; $\n", "echo $Id:$\n", "echo $Id: $\n", "echo $Id: x$\n", "echo $Id:" + strings.Repeat("a", 40) + " $\n",
		"echo $Id: " + strings.Repeat("a", 39) + "; $\n", "echo $Id: " + strings.Repeat("A", 40) + " $\n", "echo $Id: " + strings.Repeat("a", 41) + " $\n",
	} {
		if form.Same([]byte(text), blob) {
			t.Errorf("%q passes for %q", text, blob)
		}
		if in, err := form.Add([]byte(text), blob); err != nil || string(in) != text {
			t.Errorf("%q is proposed as %q, %v", text, in, err)
		}
	}
}

// TestMatrix holds Checkout to "git checkout-index", and Add to "git add", for each
// configuration, attribute and pair of contents of the index and the disk.
func TestMatrix(t *testing.T) {
	for _, c := range configs {
		t.Run(fmt.Sprintf("autocrlf=%s,eol=%s", c.autocrlf, c.eol), func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			set := c.set(r)
			var lines strings.Builder
			for i, a := range attributeLines {
				fmt.Fprintf(&lines, "a%d/** %s\n", i, a)
			}
			r.write(".gitattributes", []byte(lines.String()))
			ids := make([]string, len(contents))
			for i, data := range contents {
				ids[i] = strings.TrimSpace(r.git(string(data), "hash-object", "-w", "--stdin", "--no-filters"))
			}
			var entries strings.Builder
			for a, line := range attributeLines {
				for i := range contents {
					if strings.Contains(line, "encoding=UTF-16") && !bytes.Equal(bytes.ToValidUTF8(contents[i], nil), contents[i]) {
						continue
					}
					for _, j := range others(i, line) {
						fmt.Fprintf(&entries, "100644 %s\ta%d/%d-%d\n", ids[i], a, i, j)
					}
				}
			}
			r.git(entries.String(), "update-index", "--index-info")
			r.git("", "checkout-index", "-a", "-f")
			rules := r.rules(set)
			want := map[string]string{}
			for a, line := range attributeLines {
				for i, blob := range contents {
					for _, j := range others(i, line) {
						data := contents[j]
						if strings.Contains(line, "ident") && foreignIdent.Match(data) {
							data = []byte("of this git makes $Id$, and we do not\n")
						}
						name := fmt.Sprintf("a%d/%d-%d", a, i, j)
						form, err := rules.Form(name)
						if err != nil {
							t.Fatalf("%s: %v", line, err)
						}
						got, err := form.Checkout(blob)
						if have := r.read(name); err != nil || !bytes.Equal(got, have) {
							t.Fatalf("%q: %q is checked out as %q, %v; git: %q", line, blob, got, err, have)
						}
						if back, _ := form.Add(got, blob); form.Same(got, blob) != (!form.IsFiltered() || bytes.Equal(back, blob)) {
							t.Errorf("%q: %q is not as it was checked out", line, blob)
						}
						if form.encoding != "" || form.IsFiltered() { // what is no UTF-16, or not the filter's, git refuses to add
							if data, err = form.Checkout(data); err != nil {
								t.Fatal(err)
							}
						}
						in, err := form.Add(data, blob)
						if err != nil {
							t.Fatalf("%q: adding %q: %v", line, data, err)
						}
						want[name] = plumbing.ComputeHash(plumbing.BlobObject, in).String()
						if data == nil {
							data = []byte{}
						}
						r.write(name, data)
					}
				}
			}
			r.git("", "add", "-A", "--", "a*")
			n := 0
			for line := range strings.Lines(r.git("", "ls-files", "-s", "--", "a*")) {
				name := strings.TrimSpace(line[strings.IndexByte(line, '\t')+1:])
				if id := strings.Fields(line)[1]; id != want[name] {
					var a, i, j int
					fmt.Sscanf(name, "a%d/%d-%d", &a, &i, &j)
					t.Errorf("%q: adding %q over %q: git has %q", attributeLines[a], contents[j], contents[i], r.git("", "cat-file", "blob", id))
				}
				n++
			}
			if n != len(want) || n < 1200 {
				t.Errorf("%d files, want %d", n, len(want))
			}
		})
	}
}

// TestAttributes holds the patterns and macros to "git check-attr".
func TestAttributes(t *testing.T) {
	files := map[string]string{
		".gitattributes": "\ufeff*.a text\n# *.a -text\n  *.b\ttext=auto\r\n!*.a -text\n[attr]mine text=input eol=crlf -ident\n*.m mine\n*.n mine eol=lf\nsub/*.a eol=lf\n/top text\n**/deep/*.d ident\n" +
			"\"q\\\"\\303\\251 x\" text\n\"unended text\ndir/ text\n*.bin binary\n*.back binary\n*.back text\n[attr]-bad text\n[attr] text\n*.un text\n*.un !text\n*.w -text= eol=\n*.bad te?xt text\n" +
			"a\\*b text\nx[a-c]y ident\n*.long " + strings.Repeat("x", 2100) + " text\n[attr]binary ident\n*.twice text eol=lf text=auto\nbuild/** text\n*.v working-tree-encoding=UTF-16 filter=f\n*.e eol\n[attr]loop loop text\n*.loop loop\n",
		"sub/.gitattributes":        "*.a -text\n[attr]below ident\n*.below below\n/only text=auto\nx/y eol=crlf\n*.m !eol\n",
		"sub/deeper/.gitattributes": "*.a !text\n",
	}
	paths := []string{
		"x.a", "x.b", "sub/x.a", "sub/deeper/x.a", "x.m", "x.n", "sub/x.m", "top", "sub/top", "deep/x.d", "a/deep/x.d", "a/b/deep/x.d", "q\"é x", "dir/x", "dir", "x.bin", "x.back", "x.un", "x.w", "x.bad",
		"a*b", "axb", "xby", "xdy", "x.long", "x.twice", "build/a/b", "build", "sub/only", "sub/deeper/only", "sub/x/y", "x/y", "x.below", "sub/x.below", "x.v", "x.e", "unended", "X.A", "x.loop", "attr", "a",
	}
	names := []string{"text", "crlf", "eol", "ident", "filter", "working-tree-encoding"}
	for _, ignoreCase := range []bool{false, true} {
		r := newRepository(t)
		r.git("", "config", "core.ignorecase", fmt.Sprint(ignoreCase))
		for name, text := range files {
			r.write(name, []byte(text))
		}
		r.write(".git/info/attributes", []byte("*.twice -text\n[attr]mine text\n"))
		r.write("user", []byte("*.a ident\n*.user text\ntop -text ident\n[attr]mine crlf\n"))
		r.git("", "config", "core.attributesFile", filepath.Join(r.dir, "user"))
		rules := r.rules(Config{IgnoreCase: ignoreCase, User: r.read("user"), Info: r.read(".git/info/attributes")})
		fields := strings.Split(r.git(strings.Join(paths, "\x00"), append([]string{"check-attr", "-z", "--stdin"}, names...)...), "\x00")
		for ; len(fields) >= 3; fields = fields[3:] {
			said, err := rules.of(fields[0])
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"unspecified": "", "set": "true", "unset": "false"}
			got, ok := said[fields[1]], false
			if _, ok = want[fields[2]]; !ok {
				want[fields[2]] = "=" + fields[2]
			}
			if got != want[fields[2]] {
				t.Errorf("ignorecase=%v %s: %s: %q; git: %q", ignoreCase, fields[0], fields[1], got, fields[2])
			}
		}
	}
}

func TestUnsupported(t *testing.T) {
	for line, want := range map[string]string{
		"filter=lfs":                         `"x" has the attribute "filter=lfs": the program of a filter is not run here`,
		"working-tree-encoding=ISO-8859-1":   `"x" has the attribute "working-tree-encoding=ISO-8859-1": of encodings, only UTF-8 and those of UTF-16 are known`,
		"working-tree-encoding":              `"x" has the attribute "working-tree-encoding": Git refuses it without an encoding`,
		"-working-tree-encoding":             `"x" has the attribute "working-tree-encoding": Git refuses it without an encoding`,
		"filter=none working-tree-encoding=": `"x" has the attribute "working-tree-encoding": Git refuses it without an encoding`,
	} {
		rules, err := Config{Info: []byte("* " + line), Filters: map[string]Filter{"lfs": {Clean: "cat"}}}.Rules(func(string) ([]byte, error) { return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rules.Form("x"); err == nil || err.Error() != want {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestFilter: a filter is run to its end, and what it makes is what comes back as the
// content of the commit, or it is refused with its name.
func TestFilter(t *testing.T) {
	run := filter.Runner{Worktree: t.TempDir(), Path: os.Getenv("PATH")}.Run
	const of = `"x" has the attribute "filter=f": `
	for name, c := range map[string]struct {
		filter Filter
		want   string // what "a" is checked out as, or the error
	}{
		"both":                 {Filter{Clean: "tr b a", Smudge: "tr a b"}, "b"},
		"the path":             {Filter{Clean: "head -c1", Smudge: "cat; printf %%s %f"}, "ax"},
		"none":                 {Filter{Required: false, Clean: "cat"}, "a"},
		"required":             {Filter{Required: true, Clean: "cat"}, of + "it is required, and has no program to smudge with"},
		"fails":                {Filter{Clean: "cat", Smudge: "echo 'no \x1b' >&2; exit 3"}, of + `filter.f.smudge failed: exit status 3: "no \x1b"`},
		"is none":              {Filter{Clean: "cat", Smudge: "./planted"}, of + "filter.f.smudge failed: exit status 127"},
		"does not clean":       {Filter{Clean: "exit 1", Smudge: "cat"}, of + "filter.f.clean failed: exit status 1"},
		"makes something else": {Filter{Clean: "cat", Smudge: "tr a b"}, of + "it does not bring back the commit's content from what it writes"},
		"refused":              {Filter{Clean: "cat", Refused: "no"}, of + "no"},
	} {
		rules, err := Config{Info: []byte("* filter=f"), Filters: map[string]Filter{"f": c.filter}, Run: run}.Rules(func(string) ([]byte, error) { return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		form, err := rules.Form("x")
		var out []byte
		if err == nil {
			out, err = form.Checkout([]byte("a"))
		}
		switch {
		case err != nil && !strings.HasPrefix(err.Error(), c.want), err == nil && string(out) != c.want:
			t.Errorf("%s: %q, %v, want %s", name, out, err, c.want)
		case err == nil && (!form.Same(out, []byte("a")) || form.Same([]byte("c"), []byte("a"))):
			t.Errorf("%s: what is checked out is not the same, or anything is", name)
		}
	}
}

// FuzzForm: a file as it is checked out is the blob's, and what Git adds of it has
// no other text.
func FuzzForm(f *testing.F) {
	for i := range contents {
		f.Add(contents[i], uint(i))
	}
	f.Fuzz(func(t *testing.T, blob []byte, n uint) {
		form := Form{eol: lineEnd(n % 3), guess: n/3%2 == 0, ident: n/6%2 == 0, encoding: []string{"", "UTF-16", "UTF-16BE", "UTF-16LE"}[n/12%4]}
		out, err := form.Checkout(blob)
		if err != nil {
			return
		}
		if !form.Same(out, blob) {
			t.Errorf("%+v: %q, checked out as %q, is not the same", form, blob, out)
		}
		if in, err := form.Add(out, blob); err == nil && form.eol == asIs && !form.ident && !bytes.Equal(in, blob) {
			t.Errorf("%+v: %q comes back as %q", form, blob, in)
		}
	})
}
