package main

import (
	"fmt"
	"html"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/plain"
)

// documentation are the Markdown pages that people read, by their path from the repository's root.
func documentation(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range []string{"docs", "docs/spec", ".github", "."} {
		entries, err := os.ReadDir(filepath.Join("../..", dir))
		check(t, err)
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".md") {
				raw, err := os.ReadFile(filepath.Join("../..", dir, e.Name()))
				check(t, err)
				all[path.Join(dir, e.Name())] = string(raw)
			}
		}
	}
	return all
}

// anchor is the fragment that GitHub gives a heading.
func anchor(heading string) string {
	kept := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
	return strings.ReplaceAll(kept, " ", "-")
}

// TestDocsLinks: every link from a page to this repository leads somewhere, also to its heading, and
// docs/README.md leads to every page in docs.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	all, root := documentation(t), os.DirFS("../..")
	link, heading := regexp.MustCompile(`\]\(([^)\s]+)\)`), regexp.MustCompile(`(?m)^#+ (.*)$`)
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, fragment, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := fs.Stat(root, target); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
			found := fragment == ""
			for _, h := range heading.FindAllStringSubmatch(all[target], -1) {
				found = found || anchor(h[1]) == fragment
			}
			if !found {
				t.Errorf("%s links to %s, and there is no such heading", name, m[1])
			}
		}
	}
	for name := range all {
		if base, ok := strings.CutPrefix(name, "docs/"); ok && base != "README.md" {
			index, inSpec := "docs/README.md", strings.HasPrefix(base, "spec/")
			if inSpec && base != "spec/README.md" {
				index, base = "docs/spec/README.md", strings.TrimPrefix(base, "spec/")
			}
			if !strings.Contains(all[index], "("+base+")") {
				t.Errorf("%s does not lead to %s", index, base)
			}
		}
	}
}

// TestReadmeIsShort: the README has at most 600 words.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	if words := len(strings.Fields(documentation(t)["README.md"])); words > 600 {
		t.Errorf("the README has %d words", words)
	}
}

// TestDocsStates: docs/README.md has a row for each state that a transaction can be in.
func TestDocsStates(t *testing.T) {
	t.Parallel()
	page := documentation(t)["docs/README.md"]
	for _, s := range plain.States {
		if !strings.Contains(page, "\n| "+string(s)+" | ") {
			t.Errorf("docs/README.md does not say what this means: %s", s)
		}
	}
}

// TestDocsExitCodes: docs/cli.md has the exit codes and the variables of the code, in at most 900 words.
func TestDocsExitCodes(t *testing.T) {
	t.Parallel()
	page := documentation(t)["docs/cli.md"]
	raw, err := os.ReadFile("internal/console/cli.go")
	check(t, err)
	codes := regexp.MustCompile(`(?m)^\tExit\w+ += (\d) // (.*)$`).FindAllStringSubmatch(string(raw), -1)
	for _, code := range codes {
		if !strings.Contains(page, "\n| "+code[1]+" | "+code[2]) {
			t.Errorf("docs/cli.md does not say that %s is: %s", code[1], code[2])
		}
	}
	all, _ := literals(t)
	for _, name := range regexp.MustCompile("`(COUNTERSIGN_[A-Z_]+)`").FindAllStringSubmatch(page, -1) {
		if all[name[1]] == "" {
			t.Errorf("nothing reads %s, which docs/cli.md has", name[1])
		}
	}
	if words := len(strings.Fields(page)); words > 900 || len(codes) != 7 {
		t.Errorf("docs/cli.md has %d words and %d exit codes", words, len(codes))
	}
}

// TestDocsTests: every test that docs name is there, and each row of docs/controls.md names a command that is there and a test,
// or says what is not shown.
func TestDocsTests(t *testing.T) {
	t.Parallel()
	there, all := map[string]bool{}, documentation(t)
	check(t, filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(name)
		for _, m := range regexp.MustCompile(`(?m)^func ((Test|Fuzz|Benchmark)\w+)\(`).FindAllSubmatch(raw, -1) {
			there[string(m[1])] = true
		}
		return err
	}))
	for name, text := range all {
		for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(text, -1) {
			if !there[m[1]] {
				t.Errorf("%s names %s, which is no test", name, m[1])
			}
		}
	}
	commands := map[string]bool{"/approve": true, "Policy": true}
	for _, cmd := range rootCommand(console.New(console.Process{})).Commands() {
		commands[cmd.Name()] = true
	}
	rows := 0
	for line := range strings.Lines(all["docs/controls.md"]) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.Contains(line, "---") || strings.Contains(line, "| asks |") {
			continue
		}
		rows++
		command, test, gap := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])
		first, _, _ := strings.Cut(strings.TrimPrefix(command, "`"), " ")
		if first = strings.TrimRight(first, "`,:"); command != "" && !commands[first] {
			t.Errorf("no command %s: %s", first, line)
		}
		if (command == "") != (test == "") || command+gap == "" {
			t.Errorf("a command and a test, or a gap: %s", line)
		}
	}
	if rows < 40 {
		t.Errorf("%d rows", rows)
	}
}

// tutorial runs the commands of a page of docs in one shell: tutorial PAGE. They are its blocks of sh. A command ends
// with 0, or as its comment says: exit code N. A block of text is what those before it print, beside other
// things; … stands for anything.
func tutorial(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tutorial PAGE")
	}
	raw, err := os.ReadFile(filepath.Join(docsDir, args[0]))
	ts.Check(err)
	const after = "@@ printed by block "
	var script strings.Builder
	var told []string // what each block prints by the page
	fence := regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$")
	for _, block := range fence.FindAllStringSubmatch(string(raw), -1) {
		if block[1] == "text" {
			told[len(told)-1] += block[2]
			continue
		}
		told = append(told, "")
		for command := range commandLines(block[2]) {
			want := "0"
			if m := regexp.MustCompile(`# exit code (\d)`).FindStringSubmatch(command); m != nil {
				want = m[1]
			}
			script.WriteString(command + fmt.Sprintf("code=$?; test $code = %s || { echo \"exit code $code after:\" %s; exit 99; }\n", want, escape.ShellQuote(command)))
		}
		script.WriteString("echo '" + after + "'\n")
	}
	if len(told) < 5 {
		ts.Fatalf("%s has only %d blocks of commands", args[0], len(told))
	}
	file := ts.MkAbs("tutorial.sh")
	ts.Check(os.WriteFile(file, []byte("exec 2>&1\n"+script.String()), 0o666))
	failed := ts.Exec("sh", file)
	printed := strings.Split(ts.ReadFile("stdout"), after)
	if failed != nil {
		ts.Fatalf("%s: %v", args[0], failed)
	}
	for i, text := range told {
		for line := range strings.Lines(text) {
			form := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), "…", ".*")
			found := regexp.MustCompile(form).FindStringIndex(printed[i])
			if found == nil {
				ts.Fatalf("%s: block %d does not print, or not there:\n%s", args[0], i+1, line)
			}
			printed[i] = printed[i][found[1]:]
		}
	}
}

// commandLines are the commands of a block, a line each; one that reads a document has it with it.
func commandLines(block string) iter.Seq[string] {
	return func(yield func(string) bool) {
		command := ""
		for line := range strings.Lines(block) {
			command += line
			if strings.Contains(command, "<<'EOF'") && line != "EOF\n" {
				continue
			}
			if !yield(command) {
				return
			}
			command = ""
		}
	}
}

// screenshot draws what a terminal shows as docs/PICTURE.svg: screenshot PICTURE FILE. The picture must be that one;
// UPDATE_SCRIPTS=1 draws it anew.
func screenshot(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: screenshot PICTURE FILE")
	}
	const size, step, advance, margin = 13, 19, 7.83, 20
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[1])), "\n")
	widest := 0
	var body strings.Builder
	for i, line := range lines {
		runes, colour := utf8.RuneCountInString(line), "#d1d7e0"
		widest = max(widest, runes)
		if strings.HasPrefix(line, "$ ") {
			colour = "#6cb6ff"
		}
		if runes > 0 {
			fmt.Fprintf(&body, "<text x=\"%d\" y=\"%d\" font-size=\"%d\" font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" fill=\"%s\" textLength=\"%.1f\" xml:space=\"preserve\">%s</text>\n",
				margin, margin+step*i+size, size, colour, advance*float64(runes), html.EscapeString(line))
		}
	}
	picture := fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" role=\"img\">\n<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#212830\"/>\n%s</svg>\n",
		advance*float64(widest)+2*margin, step*len(lines)+2*margin, html.EscapeString(lines[0]), body.String())
	file := filepath.Join(docsDir, args[0]+".svg")
	if os.Getenv("UPDATE_SCRIPTS") != "" {
		ts.Check(os.WriteFile(file, []byte(picture), 0o644))
	}
	raw, err := os.ReadFile(file)
	ts.Check(err)
	if string(raw) != picture {
		ts.Fatalf("docs/%s.svg is another picture: UPDATE_SCRIPTS=1 draws it anew, look at it", args[0])
	}
}

// docsDir is the directory of the pages, as this package's tests see it.
var docsDir, _ = filepath.Abs("../../docs")

// TestNames: docs/spec/names.md has every name of the code that is format, and no other.
func TestNames(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/spec/names.md")
	check(t, err)
	page := string(raw)
	all, _ := literals(t)
	var code strings.Builder
	formats := regexp.MustCompile(`^(refs/(agent|countersign)/|countersign/[a-z_-]+/[0-9]+$|countersign-[a-z]+@v[0-9]|(tx|turn|artifact|approval|apply|validate|ledger)/[a-z_]+$|<!-- countersign[: -][a-z]|pkg:golang/.*#)`)
	notFormat := []string{"refs/agent/forged", "refs/countersign/probe"} // of the demo, and never made
	for text, at := range all {
		code.WriteString(text + "\n")
		name, _, _ := strings.Cut(text, "%")
		if formats.MatchString(text) && !strings.HasPrefix(at, "internal/serve/") && !strings.Contains(page, "`"+strings.TrimSuffix(name, "-")) && !slices.Contains(notFormat, text) {
			t.Errorf("%s: docs/spec/names.md does not have %q", at, text)
		}
	}
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(page, -1) {
		name := strings.TrimSuffix(strings.TrimSuffix(m[1], "ID"), "/")
		if base, kind, is := strings.Cut(name, " <"); is && base != "" && strings.HasSuffix(kind, "@localhost>") || strings.HasPrefix(name, "urn:") {
			continue // put together
		}
		if last := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(name, "Countersign-"), "<!-- countersign:")); !strings.Contains(code.String(), name) && !strings.Contains(code.String(), last) {
			t.Errorf("nothing in the program is called %s", m[1])
		}
	}
}
