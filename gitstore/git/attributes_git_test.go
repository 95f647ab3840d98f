package git

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

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
	return teststand.Git(r.t, r.dir, stdin, append([]string{"-c", "core.safecrlf=false"}, args...)...)
}

func (r repository) write(name string, data []byte) {
	r.t.Helper()
	name = filepath.Join(r.dir, filepath.FromSlash(name))
	fatal(r.t, os.MkdirAll(filepath.Dir(name), 0o755))
	fatal(r.t, os.WriteFile(name, data, 0o644))
}

func (r repository) read(name string) []byte {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
	fatal(r.t, err)
	return data
}

var (
	attributeLines = []string{
		"", "text", "-text", "binary", "text=auto", "text=input", "text=odd", "eol=crlf", "eol=lf", "text eol=crlf", "text=auto eol=crlf", "text=auto eol=lf",
		"-text eol=crlf", "text=input eol=crlf", "crlf", "-crlf", "crlf=input", "!text crlf=input", "ident", "text eol=crlf ident", "-ident", "working-tree-encoding=UTF-8",
		"filter=rot", "text eol=crlf ident filter=rot", "working-tree-encoding=UTF-16LE filter=up", "filter=half",
		"working-tree-encoding=UTF-16", "working-tree-encoding=utf-16le text eol=crlf", "working-tree-encoding=UTF-16BE ident", "working-tree-encoding=UTF-16LE-BOM", "filter=none",
	}
	texts = [][]byte{
		nil, []byte("one\ntwo\n"), []byte("one\r\ntwo\r\n"), []byte("one\ntwo\r\n"), []byte("one\rtwo\n"), []byte("no end"), []byte("\n"), []byte("a\x00b\n"),
		[]byte("\x01\x02\x03\n"), []byte(strings.Repeat("x", 200) + "\x01\n"), []byte("end of dos\n\x1a"), []byte("é ü 𝄞\n"),
		[]byte("$Id$\n"), []byte("a $Id: 0123 $ b\n"), []byte("$Id: x y z $\n"), []byte("$Id: no\nend$ $Id$"), []byte("$Id:$ $Id$ $Id"), []byte("$Id: $\r\n"), []byte("$Idx $Id$\n"),
	}
)

// config is the configuration that a row of the matrix runs with.
type config struct{ autocrlf, eol string }

var configs = []config{{"true", ""}, {"false", ""}, {"input", ""}, {"false", "lf"}, {"false", "crlf"}, {"input", "crlf"}}

func (c config) set(r repository) Attributes {
	r.git("", "config", "core.autocrlf", c.autocrlf)
	if c.eol != "" {
		r.git("", "config", "core.eol", c.eol)
	}
	for name, f := range filters {
		r.git("", "config", "filter."+name+".clean", f.Clean)
		r.git("", "config", "filter."+name+".smudge", f.Smudge)
	}
	return Attributes{GitDir: filepath.Join(r.dir, ".git"), AutoCRLF: c.autocrlf, EOL: c.eol, Filters: filters, Run: FilterRunner{Worktree: r.dir, Path: os.Getenv("PATH")}.Run}
}

// filters are those of the matrix; rot is undone by itself, half has no smudge.
var filters = map[string]Filter{
	"rot":  {Clean: "LC_ALL=C tr n-za-mN-ZA-M a-zA-Z", Smudge: "LC_ALL=C tr a-zA-Z n-za-mN-ZA-M"},
	"up":   {Clean: "tail -c +4", Smudge: "printf '%%s' up:; cat"},
	"half": {Clean: "cat"},
}

func (r repository) rules(c Attributes) *AttributeRules {
	c.GitDir = filepath.Join(r.dir, ".git")
	return c.Rules(func(name string) ([]byte, error) {
		data, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			return nil, nil
		}
		return data, err
	})
}

// others are the texts that a file is given on disk which has one of them in
// the index.
func others(i int, line string) []int {
	every := 27 // each filtered one is several processes
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		every = 9
	}
	switch {
	case !strings.Contains(line, "filter=") || strings.Contains(line, "=none"):
	case i%every == 3%every:
		return []int{(i + 1) % len(texts)}
	default:
		return nil
	}
	return []int{i, (i + 1) % len(texts), (i + 10) % len(texts)}
}

// foreignIdent is what git add drops, and Add does not: a text that no checkout made.
var foreignIdent = regexp.MustCompile(`\$Id:[^$\n]*\$`)

// TestIdentHidesNothing: a file is what was approved only where each $Id$ of it has what
// a checkout puts there. Any other text between the signs could be a command of a script.
func TestIdentHidesNothing(t *testing.T) {
	r := newRepository(t)
	r.write(".gitattributes", []byte("*.sh ident\n"))
	form, err := r.rules(Attributes{}).Form(t.Context(), "run.sh")
	fatal(t, err)
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
// configuration (by default each second one), attribute and pair of texts of the index and the disk.
func TestMatrix(t *testing.T) {
	for i, c := range configs {
		if i%2 > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		t.Run(fmt.Sprintf("autocrlf=%s,eol=%s", c.autocrlf, c.eol), func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			set := c.set(r)
			var lines strings.Builder
			for i, a := range attributeLines {
				fmt.Fprintf(&lines, "a%d/** %s\n", i, a)
			}
			r.write(".gitattributes", []byte(lines.String()))
			ids := make([]string, len(texts))
			for i, data := range texts {
				ids[i] = strings.TrimSpace(r.git(string(data), "hash-object", "-w", "--stdin", "--no-filters"))
			}
			var entries strings.Builder
			for a, line := range attributeLines {
				for i := range texts {
					if strings.Contains(line, "encoding=UTF-16") && !bytes.Equal(bytes.ToValidUTF8(texts[i], nil), texts[i]) {
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
			fatal(t, rules.Ask(t.Context(), strings.Fields(r.git("", "ls-files", "a*"))))
			want := map[string]string{}
			for a, line := range attributeLines {
				for i, blob := range texts {
					for _, j := range others(i, line) {
						data := texts[j]
						if strings.Contains(line, "ident") && foreignIdent.Match(data) {
							data = []byte("of this git makes $Id$, and we do not\n")
						}
						name := fmt.Sprintf("a%d/%d-%d", a, i, j)
						form, err := rules.Form(t.Context(), name)
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
					t.Errorf("%q: adding %q over %q: git has %q", attributeLines[a], texts[j], texts[i], r.git("", "cat-file", "blob", id))
				}
				n++
			}
			if n != len(want) || n < 1200 {
				t.Errorf("%d files, want %d", n, len(want))
			}
		})
	}
}

// TestAttributes: git is asked about the tree's own files, whatever lies in the working tree,
// and about the repository's, the user's and the system's.
func TestAttributes(t *testing.T) {
	r := newRepository(t)
	r.write(".git/info/attributes", []byte("*.i eol=crlf\n"))
	r.write("sub/mine", []byte("*.u ident\n"))
	r.write(".gitattributes", []byte("* -text\n")) // of the working tree alone
	t.Setenv("HOME", t.TempDir())
	home := filepath.Join(os.Getenv("HOME"), ".config", "git")
	fatal(t, errors.Join(os.MkdirAll(home, 0o777), os.WriteFile(filepath.Join(home, "attributes"), []byte("*.h eol=crlf\n"), 0o666)))
	tree := map[string]string{
		".gitattributes": "[attr]mine eol=crlf ident\n*.t mine\n*.i -text\n*.u text\n\"q\\303\\251 x\" eol=lf\n", "a/b/.gitattributes": "*.t !ident\n", "a/.gitattributes/x": "* ident\n",
	}
	ask := func(names ...string) (out []FileForm) {
		t.Helper()
		said, err := Command{Dir: r.dir}.Config(t.Context())
		fatal(t, err)
		rules := NewAttributes(said, filepath.Join(r.dir, ".git"), r.dir, "", true).Rules(func(name string) ([]byte, error) {
			if data, found := tree[name]; found {
				return []byte(data), nil
			}
			return nil, nil
		})
		for _, name := range names {
			f, err := rules.Form(t.Context(), name)
			fatal(t, err)
			out = append(out, f)
		}
		return out
	}
	names := []string{"x.t", "a/x.t", "a/b/x.t", "a/.gitattributes/x.t", "x.i", "x.u", "qé x", "x.h", "x"}
	want := []FileForm{{eol: crlf, ident: 40}, {eol: crlf, ident: 40}, {eol: crlf}, {eol: crlf, ident: 40}, {}, {eol: lf}, {eol: lf}, {eol: crlf}, {}}
	if got := ask(names...); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	r.git("", "add", ".gitattributes")
	all := tree
	tree = nil // of the index and the working tree nothing counts
	if got, want := ask("x.i", "x.h", "x.t"), []FileForm{{eol: crlf}, {eol: crlf}, {}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	tree = all
	r.git("", "config", "core.attributesFile", "sub/mine") // it is relative to the working tree
	if got, want := ask("x.u", "x.h"), []FileForm{{eol: lf, ident: 40}, {}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// T95 A tree's files of attributes start nothing and are taken for nothing else, however they are made;
// no variable of the caller's leads elsewhere, and nothing of them stays.
func TestT95HostileAttributes(t *testing.T) {
	r := newRepository(t)
	ran := filepath.Join(r.dir, "ran")
	for _, key := range []string{"core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "alias.check-attr", "core.pager"} {
		r.git("", "config", key, "!touch "+ran)
	}
	t.Setenv("GIT_DIR", t.TempDir())
	t.Setenv("GIT_ATTR_SOURCE", "HEAD")
	t.Setenv("TMPDIR", t.TempDir())
	long := strings.Repeat("x", 1<<20)
	for name, text := range map[string]string{
		"a filter": "* filter=evil\n", "binary": "\x00\x01* text\n", "a long line": "* text=" + long + "\n", "many lines": strings.Repeat("*.a text\n", 1e5), "a loop": "[attr]a a\n[attr]b a b\n* b\n",
		"what leads out": "../../x text\n/../x text\n", "no end": "* \"text", "built in": "* builtin_objectmode=1\n",
	} {
		rules := r.rules(Attributes{Filters: map[string]Filter{"evil": {Clean: "touch " + ran, Refused: "no"}}})
		rules.read = func(string) ([]byte, error) { return []byte(text), nil }
		form, err := rules.Form(t.Context(), "-x/--all/a b\n:c.txt")
		if refused := errors.As(err, new(*UnsupportedError)); refused != (name == "a filter") || err != nil && !refused || form != (FileForm{}) {
			t.Errorf("%s: %+v, %v", name, form, err)
		}
	}
	if _, err := os.Stat(ran); !os.IsNotExist(err) {
		t.Errorf("a program was run: %v", err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("there is left: %v, %v", left, err)
	}
}

// T95 The tree that attr.tree names is not read in place of the one that is asked about (git 2.43).
func TestT95AttributesOfAnotherTree(t *testing.T) {
	r := newRepository(t)
	r.write(AttributesFile, []byte("* -text ident\n"))
	r.git("", "add", AttributesFile)
	r.git("", "config", "attr.tree", strings.TrimSpace(r.git("", "write-tree")))
	for text, want := range map[string]FileForm{"* text eol=crlf\n": {eol: crlf}, "": {}} {
		rules := r.rules(Attributes{})
		rules.read = func(name string) ([]byte, error) {
			if name != AttributesFile || text == "" {
				return nil, nil
			}
			return []byte(text), nil
		}
		if form, err := rules.Form(t.Context(), "dir/file"); err != nil || !reflect.DeepEqual(form, want) {
			t.Errorf("%q: %+v, %v, want %+v", text, form, err, want)
		}
	}
}

func TestUnsupported(t *testing.T) {
	r := newRepository(t)
	for line, want := range map[string]string{
		"filter=lfs":                         `"x" has the attribute "filter=lfs": the program of a filter is not run here`,
		"working-tree-encoding=ISO-8859-1":   `"x" has the attribute "working-tree-encoding=ISO-8859-1": of encodings, only UTF-8 and those of UTF-16 are known`,
		"working-tree-encoding":              `"x" has the attribute "working-tree-encoding": Git refuses it without an encoding`,
		"-working-tree-encoding":             `"x" has the attribute "working-tree-encoding": Git refuses it without an encoding`,
		"filter=none working-tree-encoding=": `"x" has the attribute "working-tree-encoding": Git refuses it without an encoding`,
	} {
		r.write(".gitattributes", []byte("* "+line))
		if _, err := r.rules(Attributes{Filters: map[string]Filter{"lfs": {Clean: "cat"}}}).Form(t.Context(), "x"); err == nil || err.Error() != want {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestFilter: a filter is run to its end, and what it makes is what comes back as the
// content of the commit, or it is refused with its name.
func TestFilter(t *testing.T) {
	run := FilterRunner{Worktree: t.TempDir(), Path: os.Getenv("PATH")}.Run
	r := newRepository(t)
	r.write(".gitattributes", []byte("* filter=f"))
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
		form, err := r.rules(Attributes{Filters: map[string]Filter{"f": c.filter}, Run: run}).Form(t.Context(), "x")
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
	for i := range texts {
		f.Add(texts[i], uint(i))
	}
	f.Fuzz(func(t *testing.T, blob []byte, n uint) {
		form := FileForm{eol: lineEnd(n % 3), guess: n/3%2 == 0, ident: int(n / 6 % 2 * 40), encoding: []string{"", "UTF-16", "UTF-16BE", "UTF-16LE"}[n/12%4]}
		out, err := form.Checkout(blob)
		if err != nil {
			return
		}
		if !form.Same(out, blob) {
			t.Errorf("%+v: %q, checked out as %q, is not the same", form, blob, out)
		}
		if in, err := form.Add(out, blob); err == nil && form.eol == asIs && form.ident == 0 && !bytes.Equal(in, blob) {
			t.Errorf("%+v: %q comes back as %q", form, blob, in)
		}
	})
}
