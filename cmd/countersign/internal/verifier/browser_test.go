//go:build browser

package verifier_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/verifier"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// patience bounds what the page is given; only what hangs needs as much.
const patience = 2 * time.Minute

// built is the directory of countersign, built with the verifier in it, as a release is, and without
// a change to the checkout.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "countersign-browser-")
	if err != nil {
		return "", err
	}
	programs = dir
	top, err := filepath.Abs("../../../..")
	if err != nil {
		return dir, err
	}
	if _, err := command(top, nil, "go", "run", "./cmd/countersign/internal/verifier/build", dir); err != nil {
		return dir, err
	}
	put := map[string]string{}
	for _, name := range []string{verifier.Wasm, verifier.Exec, verifier.Go} {
		put[filepath.Join(top, "cmd/countersign/internal/verifier/program", name)] = filepath.Join(dir, name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": put})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o666)
	}
	if err == nil {
		_, err = command(top, nil, "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", filepath.Join(dir, "countersign"), "./cmd/countersign")
	}
	return dir, err
})

var programs string // what built returns, once it was called

func TestMain(m *testing.M) {
	code := m.Run()
	if programs != "" {
		os.RemoveAll(programs)
	}
	os.Exit(code)
}

func command(dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return out, err
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := command(dir, nil, "git", args...)
	check(t, err)
	return strings.TrimSpace(string(out))
}

// TestBrowserSameBytes: the commands that the page names build the program that is in it.
func TestBrowserSameBytes(t *testing.T) {
	dir, err := built()
	check(t, err)
	wasm, err := os.ReadFile(filepath.Join(dir, verifier.Wasm))
	check(t, err)
	version, err := os.ReadFile(filepath.Join(dir, verifier.Go))
	check(t, err)
	p := verifier.Program{Wasm: wasm, Go: strings.TrimSpace(string(version))}
	want, err := p.SHA256()
	check(t, err)
	to := filepath.Join(t.TempDir(), "verifier")
	out, err := command("../../../..", nil, "sh", "-c", strings.ReplaceAll(p.Command(), "../verifier", to))
	check(t, err)
	if !strings.HasSuffix(string(out), "\n"+want+"  -\n") {
		t.Errorf("the page's program is %s; its commands say %s", want, out)
	}
}

// A bench is a browser, the page that checks in its directory, and a ledger that the demo made.
type bench struct {
	t                    *testing.T
	b                    *pagetest.Browser
	dir, page, repo, tip string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := pagetest.Start(t)
	dir, err := built()
	check(t, err)
	demo := t.TempDir()
	_, err = command(demo, []string{"TMPDIR=" + demo, "NO_COLOR=1"}, filepath.Join(dir, "countersign"), "demo")
	check(t, err)
	all, err := filepath.Glob(filepath.Join(demo, "countersign-demo-*"))
	if check(t, err); len(all) != 1 {
		t.Fatalf("the demo made %q", all)
	}
	site := filepath.Join(t.TempDir(), "site")
	_, err = command(all[0], nil, filepath.Join(dir, "countersign"), "site", "--out", site)
	check(t, err)
	x := &bench{t: t, b: b, repo: all[0], dir: filepath.Join(site, "verify")}
	x.page = filepath.Join(x.dir, "index.html")
	x.tip = git(t, x.repo, "rev-parse", "refs/agent/ledger")
	return x
}

// bundle writes the ledger at a commit of the demo's repository as a bundle.
func (x *bench) bundle(name, commit string) string {
	x.t.Helper()
	path := filepath.Join(x.dir, name)
	git(x.t, x.repo, "update-ref", "refs/agent/ledger", commit)
	git(x.t, x.repo, "bundle", "create", "-q", path, "refs/agent/ledger")
	return path
}

// A result is what audit --json prints.
type result struct {
	OK           bool      `json:"ok"`
	Complete     bool      `json:"complete"`
	Tip          string    `json:"tip"`
	Commits      int       `json:"commits"`
	Transactions int       `json:"transactions"`
	Count        int       `json:"count"`
	Findings     []finding `json:"findings"`
	Pages        struct {
		OK       bool      `json:"ok"`
		Findings []finding `json:"findings"`
	} `json:"pages"`
}

type finding struct {
	Rule    string `json:"rule_id"`
	Commit  string `json:"commit"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

// audit is what the command says of a bundle, in a repository that has nothing else.
func (x *bench) audit(bundle string, args ...string) (r result) {
	x.t.Helper()
	dir, err := built()
	check(x.t, err)
	repo := x.t.TempDir()
	git(x.t, repo, "init", "-q", "--bare", ".")
	git(x.t, repo, "fetch", "-q", bundle, "refs/agent/ledger:refs/agent/ledger")
	out, err := command(repo, nil, filepath.Join(dir, "countersign"), append([]string{"audit", "--json"}, args...)...)
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && slices.Contains([]int{1, 7}, exit.ExitCode())) {
		x.t.Fatal(err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		x.t.Fatalf("%v: %s", err, out)
	}
	return r
}

// said is what the page says, and what it was told.
type said struct {
	Verdict, Look string
	Rows          []row
	Facts         map[string]string
	Tip, Signers  string
}

// A row is a finding as the page shows it.
type row struct{ Sentence, Small, Title string }

func read(p *pagetest.Page) (s said) {
	p.Wait("document.getElementById('verdict').innerText !== '' && document.getElementById('work').hidden", patience)
	p.Eval(`({
		verdict: document.querySelector("#verdict .big").textContent,
		look: document.querySelector("#verdict .big").classList[1],
		rows: [...document.querySelectorAll("#details li:has(> small)")].map(r => ({ sentence: r.firstChild.textContent, small: r.lastChild.textContent, title: r.title })),
		facts: Object.fromEntries([...document.querySelectorAll("#details dl > div")].map(d => [d.firstChild.textContent, d.lastChild.textContent])),
		tip: document.getElementById("tip").value,
		signers: document.getElementById("signers").value,
	})`, &s)
	return s
}

// verdict is what the page must say of a result, and how that looks.
func (r result) verdict(tip, signers string) (words, look string) {
	if r.OK && !r.Pages.OK {
		r.Pages.OK = true
		words, _ = r.verdict(tip, signers)
		return words + ", but pages in it differ from the record", "waits"
	}
	switch {
	case r.OK && tip != "":
		return "Sound, and it holds the commit you know", "good"
	case r.OK && signers != "":
		return "Sound, and signed by keys that you allowed", "good"
	case r.OK:
		return "Agrees with itself", "waits"
	case !r.Complete:
		return "Not all here, and so not verified", "bad"
	case r.Count == 1 && r.Findings[0].Rule == "L14":
		return "This ledger does not hold that commit", "bad"
	}
	return "Not sound", "bad"
}

// same reports that the page says what the command says.
func same(t *testing.T, name string, p *pagetest.Page, want result) {
	t.Helper()
	got := read(p)
	if words, look := want.verdict(got.Tip, got.Signers); got.Verdict != words || got.Look != look {
		t.Errorf("%s: the page says %q, which looks %s, want %q, %s", name, got.Verdict, got.Look, words, look)
	}
	// The page has findings by transaction, and one line for all commits of which the same is wrong.
	var rows, found []string
	for _, r := range got.Rows {
		rule, commits, _ := strings.Cut(r.Small, " · ")
		for _, commit := range strings.Split(commits, " · ") {
			rows = append(rows, strings.Join([]string{rule, commit, r.Title}, " | "))
		}
	}
	for _, f := range slices.Concat(want.Findings, want.Pages.Findings) {
		found = append(found, strings.Join([]string{f.Rule, f.Commit[:min(12, len(f.Commit))], f.Path}, " | "))
		message := f.Message
		if f.Rule == "L14" {
			message = "It was rewritten, or the number is of something else"
		}
		if !slices.ContainsFunc(got.Rows, func(r row) bool { return r.Title == f.Path && strings.Contains(r.Sentence, message) }) {
			t.Errorf("%s: the page lacks %q of audit --json; it has %q", name, f, got.Rows)
		}
	}
	slices.Sort(rows)
	if slices.Sort(found); !slices.Equal(rows, found) {
		t.Errorf("%s: the page has %q, audit --json %q", name, rows, found)
	}
	for fact, value := range map[string]string{"Tip of the ledger": want.Tip, "Commits": fmt.Sprintf("%d, from the first", want.Commits), "Transactions": fmt.Sprint(want.Transactions)} {
		if got.Facts[fact] != value {
			t.Errorf("%s: %s: the page says %q, audit --json %q", name, fact, got.Facts[fact], value)
		}
	}
}

// text is what an element shows.
func text(p *pagetest.Page, id string) (text string) {
	p.Eval("document.getElementById('"+id+"').innerText", &text)
	return text
}

// set types a text into a field.
func set(p *pagetest.Page, id, text string) {
	quoted, _ := json.Marshal(text)
	p.Eval("(() => { const e = document.getElementById('"+id+"'); e.value = "+string(quoted)+"; e.dispatchEvent(new Event('input')); return 0 })()", nil)
}

// choose chooses a file as a person does, and forgets the verdict that the page shows.
func choose(p *pagetest.Page, path string) {
	p.Eval("(() => { document.getElementById('tip').dispatchEvent(new Event('input')); document.getElementById('file').value = ''; return 0 })()", nil)
	p.Choose("#file", path)
}

// quiet: the page asked for nothing but what is its own, and ran no script but its own.
func (x *bench) quiet(p *pagetest.Page, own ...string) {
	x.t.Helper()
	seen := p.Seen()
	for _, address := range seen.Requests {
		if !slices.Contains(own, address) && !strings.HasPrefix(address, "blob:") {
			x.t.Errorf("the page asked for %s", address)
		}
	}
	if left := x.b.Left(); len(left) > 0 {
		x.t.Errorf("wanted to leave: %q", left)
	}
	if len(seen.Dialogs)+len(seen.Errors)+len(x.b.Windows()) > 0 {
		x.t.Errorf("seen: %+v, windows: %q", seen, x.b.Windows())
	}
}

// TestT78BrowserAuditor: an auditor drops a bundle into the page, from a folder and from a server, and
// reads what the command says; with what is known from elsewhere, and without.
func TestT78BrowserAuditor(t *testing.T) {
	x := newBench(t)
	bundle := x.bundle("chosen.bundle", x.tip)
	want := x.audit(bundle)
	if !want.OK || want.Commits < 10 {
		t.Fatalf("the demo's ledger: %+v", want)
	}

	p := x.b.Open(t, pagetest.File(t, x.page), pagetest.Look{})
	choose(p, bundle)
	same(t, "chosen", p, want)
	if broken := p.Violations(); len(broken) > 0 {
		t.Errorf("axe-core: %q", broken)
	}
	for name, tip := range map[string]string{
		"the tip": x.tip, "a commit before": git(t, x.repo, "rev-parse", x.tip+"~3"), "another commit": strings.Repeat("ab", 20), "a commit of the code": git(t, x.repo, "rev-parse", "main"),
	} {
		set(p, "tip", tip)
		p.Click("#again")
		same(t, name, p, x.audit(bundle, "--known-tip", tip))
	}
	set(p, "tip", "main")
	p.Click("#again")
	if got := read(p); got.Verdict != "No verdict" {
		t.Errorf("a known tip that is none: %+v", got)
	}
	set(p, "tip", "")
	keys := filepath.Join(t.TempDir(), "signers")
	line := `ci@example.org namespaces="git" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ` + "\n"
	check(t, os.WriteFile(keys, []byte(line), 0o666))
	set(p, "signers", line)
	p.Click("#again")
	same(t, "signers", p, x.audit(bundle, "--allowed-signers", keys))
	set(p, "signers", "")
	p.Click("#beside")
	if got := read(p); got.Verdict != "No verdict" {
		t.Errorf("beside a page from a folder: %+v", got)
	}
	code := filepath.Join(x.dir, "code.bundle")
	git(t, x.repo, "bundle", "create", "-q", code, "main")
	choose(p, code)
	if got := read(p); got.Verdict != "No verdict" || !strings.Contains(text(p, "verdict"), "This bundle holds refs/heads/main and no ledger; nothing was checked.") {
		t.Errorf("a bundle of code: %+v %q", got, text(p, "verdict"))
	}
	x.quiet(p, pagetest.File(t, x.page), pagetest.File(t, bundle), pagetest.File(t, code), pagetest.File(t, filepath.Join(x.dir, verifier.BundleFile)))

	base := pagetest.Serve(t, x.dir)
	p = x.b.Open(t, base, pagetest.Phone)
	p.Click("#beside")
	same(t, "beside", p, want)
	data, err := os.ReadFile(bundle)
	check(t, err)
	bytes, err := json.Marshal(data) // base64
	check(t, err)
	p.Eval(`(() => {
		const all = new DataTransfer();
		all.items.add(new File([Uint8Array.from(atob(`+string(bytes)+`), c => c.charCodeAt(0))], "dropped.bundle"));
		document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: all, bubbles: true, cancelable: true }));
		return 0;
	})()`, nil)
	same(t, "dropped", p, want)
	if got := read(p); got.Facts["File"] != "dropped.bundle" {
		t.Errorf("the page checked %q", got.Facts["File"])
	}
	if broken := p.Violations(); len(broken) > 0 {
		t.Errorf("axe-core: %q", broken)
	}
	var wide bool
	if p.Eval("document.documentElement.scrollWidth > innerWidth", &wide); wide {
		t.Error("a phone must scroll sideways")
	}
	x.quiet(p, base, base+verifier.BundleFile)
}

// TestT78BrowserBrowse: the page that browse serves works under the policy that it is served with, on
// the ledger that browse serves.
func TestT78BrowserBrowse(t *testing.T) {
	x := newBench(t)
	want := x.audit(x.bundle("chosen.bundle", x.tip))
	dir, err := built()
	check(t, err)
	cmd := exec.Command(filepath.Join(dir, "countersign"), "browse", "--no-open", "--json")
	cmd.Dir = x.repo
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	defer func() {
		check(t, cmd.Process.Signal(os.Interrupt))
		check(t, cmd.Wait())
	}()
	var said struct {
		URL string `json:"url"`
	}
	check(t, json.NewDecoder(out).Decode(&said))
	site := strings.TrimSuffix(said.URL, "index.html")
	base := site + "verify/"
	p := x.b.Open(t, base+"index.html", pagetest.Look{})
	p.Wait("document.getElementById('form') && !document.getElementById('form').hidden", patience) // until then browse reads the ledger
	p.Click("#beside")
	same(t, "browse", p, want)
	for _, address := range p.Seen().Requests {
		// The browser asks for the icon when it likes.
		if !strings.HasPrefix(address, base) && !strings.HasPrefix(address, "blob:") && address != site+"style.css" && address != site+"favicon.svg" {
			t.Errorf("the page asked for %s", address)
		}
	}
	for _, line := range p.Seen().Console {
		if strings.Contains(line, "Content Security Policy") {
			t.Errorf("the console has %s", line)
		}
	}
}

// TestT78BrowserTampered: the page finds what the command finds in ledgers that somebody with write
// access has changed.
func TestT78BrowserTampered(t *testing.T) {
	x := newBench(t)
	commit := func(parent, file, text string) string { // on parent, with another file
		git(t, x.repo, "read-tree", "--index-output=.git/tampered", parent)
		blob := filepath.Join(x.dir, "blob")
		check(t, os.WriteFile(blob, []byte(text), 0o666))
		env := []string{"GIT_INDEX_FILE=.git/tampered", "GIT_AUTHOR_NAME=countersign", "GIT_AUTHOR_EMAIL=countersign@localhost", "GIT_COMMITTER_NAME=countersign", "GIT_COMMITTER_EMAIL=countersign@localhost"}
		id := git(t, x.repo, "hash-object", "-w", blob)
		_, err := command(x.repo, env, "git", "update-index", "--add", "--cacheinfo", "100644,"+id+","+file)
		check(t, err)
		tree, err := command(x.repo, env, "git", "write-tree")
		check(t, err)
		out, err := command(x.repo, env, "git", "commit-tree", "-p", parent, "-m", "<script>alert(1)</script>", strings.TrimSpace(string(tree)))
		check(t, err)
		return strings.TrimSpace(string(out))
	}
	p := x.b.Open(t, pagetest.File(t, x.page), pagetest.Look{})
	own := []string{pagetest.File(t, x.page)}
	for name, tip := range map[string]string{
		"the demo's forged one": git(t, x.repo, "rev-parse", "refs/agent/forged"),
		"a file":                commit(x.tip, "notes.txt", "hello\n"),
		"a script in a name":    commit(x.tip, "transactions/<img src=x onerror=alert(1)>", "hello\n"),
		"another readme":        commit(x.tip, "README.md", "# Another\n"),
		"a commit of the code":  git(t, x.repo, "rev-parse", "main"),
	} {
		bundle := x.bundle("tampered.bundle", tip)
		want := x.audit(bundle)
		if want.OK {
			t.Errorf("%s: the command finds nothing", name)
		}
		choose(p, bundle)
		same(t, name, p, want)
	}
	x.quiet(p, own...)
}
