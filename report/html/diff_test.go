package html

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	parser "golang.org/x/net/html"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/report/view"
)

// check ends a test that has an error.
var check = teststand.Fatal

// TestDiffLines: each line of a diff is one element whatever it says, with its numbers, and a change has two halves.
func TestDiffLines(t *testing.T) {
	s := &sheet{Files: filesOf([]byte("diff --git a/x.go b/x.go\n@@ -4,2 +4,3 @@\n return 1\n-\"a\" // b\n+<i>\u202e\n+\n"), []ledger.ItemChange{{Path: "x.go"}}, nil)}
	const want = `<span class="g">@@ -4,2 +4,3 @@
</span><span class="u" data-o="4" data-n="4"> return 1
</span><span class="ch"><span class="o"><span class="d" data-o="5">-&#34;a&#34; // b
</span></span><span class="w"><span class="a" data-n="5">+&lt;i&gt;<span class="hidden">\u202e</span>
</span><span class="a" data-n="6">+
</span></span></span></code></pre>`
	if got := string(s.diff().b); !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}

// filesOf are the files of a diff.
func filesOf(diff []byte, changes []ledger.ItemChange, list *risk.List) []changedFile {
	t := Transaction{Patch: diff, Proposal: &ledger.Proposal{}, Risks: list}
	t.measure(changes)
	return t.With().changedFiles()
}

// drawn is the section of a page that shows a diff.
func drawn(t *testing.T, diff []byte, changes []ledger.ItemChange, list *risk.List) *parser.Node {
	t.Helper()
	s := &sheet{Files: filesOf(diff, changes, list)}
	doc, err := parser.Parse(strings.NewReader(string(s.diff().b)))
	check(t, err)
	return doc
}

// find are the elements of a name with a class, "" for any.
func find(n *parser.Node, name, class string) (out []*parser.Node) {
	for c := range n.Descendants() {
		if c.Type == parser.ElementNode && c.Data == name && (class == "" || attribute(c, "class") == class) {
			out = append(out, c)
		}
	}
	return out
}

func attribute(n *parser.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(n *parser.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == parser.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// patched are the canonical bytes of a change, and what the record says of its files.
func patched(t *testing.T, before, after map[string]string) ([]byte, []ledger.ItemChange) {
	t.Helper()
	base, files := fstest.MapFS{}, map[string]*patch.File{}
	for name, text := range before {
		base[name] = &fstest.MapFile{Data: []byte(text)}
		files[name] = nil
	}
	for name, text := range after {
		files[name] = &patch.File{Mode: patch.Regular, Data: []byte(text)}
	}
	p, err := patch.NewTree(base).Between(files)
	check(t, err)
	var changes []ledger.ItemChange
	for _, c := range p.Changes {
		changes = append(changes, ledger.ItemChange{Path: c.Path, From: c.From, Kind: string(c.Kind)})
	}
	return p.Bytes(), changes
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "this is line %d\n", i)
	}
	return b.String()
}

// TestDiffFiles: each file says how many lines it adds and deletes, a binary one what it is, and a rename that it is
// one; what is long or binary is closed. All canonical bytes stand there once.
func TestDiffFiles(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00" + strings.Repeat("x", 42991)
	diff, changes := patched(t, map[string]string{
		"a": lines(0, 5), "b/old.txt": lines(0, 100), "image.png": png[:41200], "gone.bin": "\x00", "plain": "same\n",
	}, map[string]string{
		"a": lines(1, 5) + "more\nand more\n", "c/new.txt": lines(20, 110), "image.png": png, "large": lines(0, 400), "fits": lines(0, 394), "n.bin": "\x7fELF\x00", "moved": "same\n",
	})
	list := &risk.List{Risks: []risk.Risk{
		{Kind: risk.Binary, Path: "image.png", Detail: "PNG image, 41200 → 43000 bytes"}, {Kind: risk.Binary, Path: "n.bin", Detail: "PNG image, 3 → 7 bytes"},
	}}
	doc := drawn(t, diff, changes, list)
	var got []string
	for _, file := range find(doc, "details", "file") {
		open := slices.ContainsFunc(file.Attr, func(a parser.Attribute) bool { return a.Key == "open" })
		got = append(got, fmt.Sprintf("%s %t: %s", attribute(file, "id"), open, textOf(find(file, "summary", "")[0])))
	}
	want := []string{
		"file-1 true: a +2 −1", "file-3 true: b/old.txt → c/new.txt +10 −20 renamed, 80 % alike", "file-4 true: fits +394 −0", "file-5 false: gone.bin binary",
		"file-6 false: image.png PNG, 41.2 → 43.0 KB", "file-7 false: large +400 −0 406 lines", "file-8 true: plain → moved +0 −0 renamed", "file-9 false: n.bin ELF program, 5 bytes",
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	holdsAll(t, doc, diff)
	for _, n := range find(doc, "details", "exact") {
		if len(n.Attr) != 1 || len(find(n, "pre", "diff")) != 2 {
			t.Error("the bytes of a rename are not folded")
		}
	}
}

// holdsAll holds a page to having all lines of a diff once, whatever is marked in them.
func holdsAll(t *testing.T, doc *parser.Node, diff []byte) {
	t.Helper()
	var all, want []string
	for _, pre := range find(doc, "pre", "diff") {
		all = append(all, textOf(pre))
	}
	for _, s := range gitpatch.Stats(diff) {
		plain := new(Body).Markup("<pre>").Lines("\n" + string(s.Diff)).Markup("</pre>") // a parser leaves the first line end out
		read, err := parser.Parse(strings.NewReader(string(plain.b)))
		check(t, err)
		want = append(want, textOf(read))
	}
	slices.Sort(all)
	if slices.Sort(want); !slices.Equal(all, want) {
		t.Errorf("the page has %.300q, the diff %.300q", all, want)
	}
}

// TestT71RenameHidesNothing: what the page shows of a rename is all that differs: a new mode, a last newline, an
// invisible character; files that are less alike are shown whole.
func TestT71RenameHidesNothing(t *testing.T) {
	old := lines(0, 50)
	for what, c := range map[string]struct{ now, shown string }{
		"a word":            {strings.Replace(old, "line 30\n", "line 3O\n", 1), "-this is line 30\n+this is line 3O\n"},
		"the last newline":  {strings.TrimSuffix(old, "\n"), "-this is line 49\n+this is line 49\n\\ No newline at end of file\n"},
		"a bidi character":  {strings.Replace(old, "line 30\n", "line 30\u202e\n", 1), "+this is line 30\\u202e\n"},
		"a carriage return": {strings.Replace(old, "line 30\n", "line 30\r\n", 1), "+this is line 30\\x0d\n"},
		"another order":     {lines(25, 50) + lines(0, 25), "-this is line 49\n"},
	} {
		diff, changes := patched(t, map[string]string{"old": old}, map[string]string{"new": c.now})
		doc := drawn(t, diff, changes, nil)
		told := find(doc, "pre", "diff told")
		if len(told) != 1 || !strings.Contains(textOf(told[0]), c.shown) {
			t.Errorf("%s: %q", what, textOf(doc))
		}
		holdsAll(t, doc, diff)
	}
	diff, changes := patched(t, map[string]string{"old": old}, map[string]string{"new": strings.Replace(old, "line 30\n", "line 3O\n", 1)})
	executable := bytes.Replace(diff, []byte("new file mode 100644"), []byte("new file mode 100755"), 1)
	if doc := drawn(t, executable, changes, nil); !strings.Contains(textOf(find(doc, "pre", "diff told")[0]), "old mode 100644\nnew mode 100755\n") {
		t.Errorf("the new mode: %s", textOf(doc))
	}
	for what, other := range map[string][]byte{
		"another line": bytes.Replace(diff, []byte("+this is line 7\n"), []byte("+this is line 8\n"), 1), "no ids": regexp.MustCompile("index .*\n").ReplaceAll(diff, nil),
		"less than half": func() []byte {
			diff, _ := patched(t, map[string]string{"old": old}, map[string]string{"new": lines(30, 80)})
			return diff
		}(),
	} {
		doc := drawn(t, other, changes, nil)
		if len(find(doc, "pre", "diff told")) > 0 || len(find(doc, "details", "file")) != 2 {
			t.Errorf("%s: is a rename", what)
		}
		holdsAll(t, doc, other)
	}
}

// TestChangedWords: the words that differ between a removed line and the added one in its place are marked.
func TestChangedWords(t *testing.T) {
	for in, want := range map[string]string{
		"-return a.name, nil\n+return b.name, nil\n":                                   "-return <a>.name, nil\n+return <b>.name, nil\n",
		"-the quick brown fox\n+the slow red fox\n":                                    "-the <quick brown> fox\n+the <slow red> fox\n",
		"-same\n-f(a)\n+same \n+f(a, b)\n":                                             "-same\n-f(a)\n+same< >\n+f(a<, b>)\n",
		"-nothing at all\n+is alike (here)\n":                                          "-nothing at all\n+is alike (here)\n",
		"-one line\n+one line\n+and another line\n":                                    "-one line\n+one line\n+and another line\n",
		"-the end\n\\ No newline at end of file\n+the end\n":                           "-the end\n\\ No newline at end of file\n+the end\n",
		"-a caf\u00e9 here\n+a cafe\u0301 here\n":                                      "-a <caf\u00e9> here\n+a <cafe\u0301> here\n",
		"-" + strings.Repeat("é", 1001) + " a\n+" + strings.Repeat("é", 1001) + " b\n": "-" + strings.Repeat("é", 1001) + " a\n+" + strings.Repeat("é", 1001) + " b\n",
	} {
		s := &sheet{Files: filesOf([]byte("diff --git a/x b/x\n@@ -1,9 +1,9 @@\n"+in), nil, nil)}
		b := s.diff().b
		got := regexp.MustCompile(`</?span[^>]*>|</code>.*\n|</details>\n`).ReplaceAllString(string(b[bytes.Index(b, []byte("@@\n"))+3:]), "")
		if got = strings.NewReplacer(`<b class="word">`, "<", "</b>", ">").Replace(got); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

// TestChangedWordsAlterNothing: whatever bytes two lines have, the text is the same with the words marked and
// without, and what is not marked is in both; the work is bounded.
func TestChangedWordsAlterNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b_1", " ", "  ", "\t", "(", "<b>", "</b>", "&amp;", "\u202e", "\u202e\x1b", "é", "e\u0301", "\xe2\x82", "\xac", "\xff", "\r", "日本", "\x00"}
	line := func() string {
		var b strings.Builder
		for range rnd.IntN(12) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		return b.String()
	}
	marked := 0
	for range 3000 {
		a, b := line(), line()
		if rnd.IntN(3) > 0 {
			b = a + line()
		}
		diff := []byte("diff --git a/x b/x\n@@ -1 +1 @@\n-" + a + "\n+" + b + "\n")
		doc := drawn(t, diff, nil, nil)
		holdsAll(t, doc, diff)
		marked += len(find(doc, "b", ""))
		d := drawer{words: maxWordWork}
		old, now := d.differ([]byte(a), []byte(b))
		if x, y := without(a, old), without(b, now); len(old)+len(now) > 0 && x != y {
			t.Errorf("%q and %q: not marked are %q and %q", a, b, x, y)
		}
	}
	if marked < 1000 {
		t.Errorf("only %d words marked", marked)
	}
	long := strings.Repeat("a,", 500)
	var b strings.Builder
	b.WriteString("diff --git a/x b/x\n@@ -1 +1 @@\n")
	for range 2000 {
		b.WriteString(" x\n-" + long + "\n+" + strings.Replace(long, "a", "b", 250) + "\n")
	}
	from := time.Now()
	drawn(t, []byte(b.String()), nil, nil)
	if took := time.Since(from); took > 10*time.Second {
		t.Error(took)
	}
}

// without is a line without its marked words.
func without(line string, marks []extent) string {
	for i := len(marks) - 1; i >= 0; i-- {
		line = line[:marks[i].from] + line[marks[i].to:]
	}
	return line
}

// TestWebWithin: an address of the record leads to what lies below the repository, wherever its dots lead.
func TestWebWithin(t *testing.T) {
	const web = "https://github.com/acme/app"
	for address, links := range map[string]bool{
		web + "/pull/1#issuecomment-2": true, web + "/../../evil/app/pull/1": false, web + "/%2e%2E/%2e./evil/app": false, web + "/..": false, web + "x/pull/1": false, web: false,
	} {
		s := &sheet{O: Options{Links: forge.Links{Web: web}}}
		if got := string(s.web(address).b); strings.Contains(got, "<a") != links {
			t.Errorf("%s: %s", address, got)
		}
	}
}

// TestPullPage: the page of a pull request is linked where it is known how the forge calls it: from its name, by who knows
// it, or from where somebody decided on this one.
func TestPullPage(t *testing.T) {
	const github, own = "https://github.com/acme/app", "https://git.example.org/acme/app"
	for _, c := range []struct {
		links   forge.Links
		decided string
		want    string
	}{
		{forge.Links{}, own + "/pulls/7#issuecomment-1", ""},
		{forge.Links{Web: github}, "", github + "/pull/7"},
		{forge.Links{Web: github}, github + "/pulls/7#issuecomment-1", github + "/pull/7"},
		{forge.Links{Web: own}, "", ""},
		{forge.Links{Web: own, Gitea: true}, "", own + "/pulls/7"},
		{forge.Links{Web: own, GitHub: true}, own + "/pulls/7#issuecomment-1", own + "/pull/7"},
		{forge.Links{Web: own}, own + "/pulls/7#issuecomment-1", own + "/pulls/7"},
		{forge.Links{Web: own}, own + "/pull/7#issuecomment-1", own + "/pull/7"},
		{forge.Links{Web: own}, own + "/pulls/70#issuecomment-1", ""},
		{forge.Links{Web: own}, own + "/pulls/8#issuecomment-1", ""},
		{forge.Links{Web: own}, own + "/../../evil/app/pulls/7#issuecomment-1", ""},
		{forge.Links{Web: own}, "https://evil.example/acme/app/pulls/7#issuecomment-1", ""},
		{forge.Links{Web: own}, "javascript:alert(1)//pulls/7#", ""},
	} {
		d := &ledger.ApprovalDecision{}
		d.Source.URL = c.decided
		s := &sheet{O: Options{Links: c.links}, T: Transaction{Summary: Summary{PullRequest: 7}, events: []event{{payload: d}}}}
		if got := string(s.pull().b); c.want == "" && got != "#7" || c.want != "" && !strings.Contains(got, `href="`+c.want+`"`) {
			t.Errorf("%+v, %q: %s", c.links, c.decided, got)
		}
	}
}

// TestRedacted: a redacted page has no word of the diff or of what commands printed, wherever the record quotes them: the
// message of a check and the reason of a failure end with the last line, and look-alikes are told with the word.
func TestRedacted(t *testing.T) {
	const stored, ran, said = "artifacts/checks.json", "artifacts/ran.json", "what it printed"
	command := &ledger.CommandItem{Item: ledger.Command{AggregatedOutput: said}}
	other := &ledger.CommandItem{Item: ledger.Command{Metadata: ledger.CommandMetadata{Artifact: ledger.ArtifactRef{Path: ran}}}}
	tx := Transaction{
		Risks: &risk.List{Risks: []risk.Risk{
			{Kind: risk.Lookalike, Path: "a", Lines: []int{1}, Detail: said}, {Kind: risk.Hidden, Path: "a", Lines: []int{1}, Detail: "it is read as " + said},
		}},
		NoPolicy: "none",
		asides: map[string]json.RawMessage{
			stored: json.RawMessage(`{"checks":[{"type":"command","target":"make","message":"exit code 1: ` + said + `"}]}`),
			ran:    json.RawMessage(`{"execution":{"stdout":"` + said + `","stderr":"` + said + `","error":"` + said + `"}}`),
		},
		events: []event{
			{payload: &ledger.ArtifactStored{Kind: "validation", Path: stored}}, {payload: command}, {payload: other},
			{payload: &ledger.StatusChange{To: ledger.Failed, Reason: "command make: exit code 1: " + said}},
		},
	}
	tx.View.Risks = view.RisksOf(*tx.Risks)
	for redact, want := range map[bool]int{false: 8, true: 0} {
		s := &sheet{T: tx, O: Options{Redact: redact}}
		text := string(s.fill("risks", s).b) + string(s.fill("timeline", s).b) + string(s.fill("commands", s).b)
		if n := strings.Count(text, said); n != want {
			t.Errorf("redacted %t: %d times, want %d: %s", redact, n, want, text)
		}
	}
}

// T76 Put escapes a text by its place, and takes none where an attribute could begin.
func TestT76Put(t *testing.T) {
	const evil = "\u202e\"><script>&'{}"
	if got, want := string(Part(`<p title="a {}">{} {}</p>{}`, evil, evil, 7, Code("x")).b), `<p title="a \u202e&#34;&gt;&lt;script&gt;&amp;&#39;{}"><span class="hidden">\u202e</span>&#34;&gt;&lt;script&gt;&amp;&#39;{} 7</p><code>x</code>`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	opened := Part("<p")
	for name, put := range map[string]func(){
		"in a tag": func() { Part("<p {}>", evil) }, "no place": func() { Part("<p>", evil) }, "no part": func() { Part("<p>{}") },
		"in a tag that was open": func() { opened.Put(" {}>", evil) }, "a body in a tag": func() { Part("<p {}>", Code("x")) }, "a body in an attribute": func() { Part(`<p title="{}">`, Code("x")) },
		"anything else": func() { Part("{}", []byte("<b>")) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			put()
		}()
	}
}
