package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A planting is a whole run with one made-up secret somewhere in it.
type planting struct {
	*testing.T
	secret  teststand.Sample
	dir     string
	env     map[string]string
	policy  string
	base    map[string]string // files beside greet.txt
	patch   string
	flags   []string // of review
	refused bool     // the proposal itself is refused
	out     bytes.Buffer
	api     bytes.Buffer // what a forge was sent
}

const plainPatch = "diff --git a/greet.txt b/greet.txt\n--- a/greet.txt\n+++ b/greet.txt\n@@ -1 +1 @@\n-hello\n+hello, world\n"

// positions are where a secret can stand.
var positions = []struct {
	name string
	put  func(p *planting, text string)
}{
	{"added line", func(p *planting, text string) { p.patch = p.diff(text+"\n", "new") }},
	{"context", func(p *planting, text string) {
		p.base["near.txt"] = text + "\nold\n"
		p.patch = p.change("near.txt", text+"\nnew\n")
	}},
	{"removed line", func(p *planting, text string) {
		p.base["near.txt"] = "old\n" + text + "\n"
		p.patch = p.change("near.txt", "old\n")
	}},
	{"commit message", func(p *planting, text string) {
		p.patch = "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: Ada <ada@localhost>\nDate: Mon, 5 Jan 2026 00:00:00 +0000\n" +
			"Subject: [PATCH] " + strings.ReplaceAll(text, "\n", "\n ") + "\n\n" + strings.ReplaceAll(text, "---", "") + "\n---\n" + plainPatch + "-- \n2.39.5\n\n"
	}},
	{"file name", func(p *planting, text string) {
		p.refused = true
		p.patch = "diff --git a/@ b/@\nnew file mode 100644\n--- /dev/null\n+++ b/@\n@@ -0,0 +1 @@\n+x\n"
		p.patch = strings.ReplaceAll(p.patch, "@", text)
	}},
	{"command output", func(p *planting, text string) {
		p.base["told.txt"] = text + "\n"
		p.policy = "version: 1\ncommands: {run: [cat told.txt, {argv: [sh, -c, 'cat told.txt >&2; exit 1'], required: false}]}\n"
	}},
	{"error text", func(p *planting, text string) {
		p.refused = true
		p.patch = "garbage " + text + "\n"
		p.run(0, "show", text)
		p.run(0, "review", "--patch", text)
		p.run(0, "apply", "--to", text)
		p.run(0, text)
		p.run(0, "canon", "--id", text, "-")
	}},
	{"trace", func(p *planting, text string) {
		p.file("trace.jsonl", p.json(map[string]any{"tool": "shell", "input": text, "output": map[string]any{text: []any{"x", text}}}))
		p.flags = []string{"--trace", filepath.Join(p.dir, "trace.jsonl")}
	}},
	{"summary", func(p *planting, text string) { p.flags = []string{"--summary", "for " + text} }},
	{"branch name", func(p *planting, text string) { p.flags = []string{"--to", "branch", "--branch", text} }},
	{"JSON value", func(p *planting, text string) {
		pack := map[string]any{
			"patch_schema_version": "1.0.0", "source_proposal_id": text, "source_proposal_hash": text, "total_bytes": float64(len(text)),
			"operations": []any{map[string]any{"op": "create", "path": "new.txt", "content": text, "size_bytes": float64(len(text))}},
		}
		p.file("patch.json", p.json(pack))
		p.flags = []string{"--pack", p.dir}
		p.patch = ""
	}},
	{"environment", func(p *planting, text string) {
		p.env["PLANTED"] = text
		p.policy = "version: 1\ncommands: {run: [{argv: [sh, -c, 'printf %s \"$PLANTED\"; printf %s \"$PLANTED\" | od -An -tx1 | tr -d \" \\n\"'], env: [PLANTED]}]}\n"
	}},
}

// TestT47Planted: 60 secrets of 20 kinds in 12 positions. After a whole run none
// of them, in any common encoding, is in an object of the ledger, in anything
// that was printed or exported, in the workflow's files, or in what a forge was
// sent.
func TestT47Planted(t *testing.T) {
	if !hasSandbox(t.TempDir()) {
		t.Skip("no sandbox here: two of the positions are what commands print")
	}
	samples := teststand.Samples()[:20]
	for i := range 60 {
		if !everything() && (i >= len(positions) || i%3 != 0) {
			continue
		}
		sample, at := samples[i%20], positions[(i%20+i/20*4)%12]
		t.Run(fmt.Sprintf("%s in %s", sample.Kind, at.name), func(t *testing.T) {
			t.Parallel()
			p := newPlanting(t, sample)
			at.put(p, sample.Text())
			p.wholeLife()
			p.search()
		})
	}
}

func newPlanting(t *testing.T, s teststand.Sample) *planting {
	p := &planting{T: t, secret: s, dir: t.TempDir(), base: map[string]string{}, patch: plainPatch, policy: "version: 1\n", env: map[string]string{
		"HOME": t.TempDir(), "USER": "tester", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.Getenv("PATH"), "TMPDIR": os.Getenv("TMPDIR"),
	}}
	p.repo()
	return p
}

func (p *planting) file(name, content string) {
	name = filepath.Join(p.dir, name)
	check(p.T, os.MkdirAll(filepath.Dir(name), 0o755))
	check(p.T, os.WriteFile(name, []byte(content), 0o644))
}

func (p *planting) json(v any) string {
	line, err := canon.Line(v)
	check(p.T, err)
	return string(line)
}

// repo is an empty repository at p.dir/r.
func (p *planting) repo() {
	p.file("r/greet.txt", "hello\n")
	p.git("init", "-q", "-b", "main")
	p.as("Ada")
}

func (p *planting) as(who string) {
	p.git("config", "user.name", who)
	p.git("config", "user.email", strings.ToLower(who)+"@localhost")
}

func (p *planting) git(args ...string) []byte {
	p.Helper()
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(p.dir, "r")}, args...)...)
	cmd.Env = p.environ()
	out, err := cmd.Output()
	if err != nil {
		p.Fatalf("git %q: %v", args, err)
	}
	return out
}

func (p *planting) environ() []string {
	var out []string
	for name, value := range p.env {
		out = append(out, name+"="+value)
	}
	return out
}

// diff is a patch that adds a file.
func (p *planting) diff(content, name string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(content, "\n")+"\n", "\n")
	lines = lines[:len(lines)-1]
	return fmt.Sprintf("diff --git a/%s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1,%d @@\n+%s", name, len(lines), strings.Join(lines, "+"))
}

// change is the patch that git makes of another content.
func (p *planting) change(name, content string) string {
	p.file("r/"+name, p.base[name])
	p.git("add", name)
	p.file("r/"+name, content)
	diff := p.git("diff", "--", name)
	p.file("r/"+name, p.base[name])
	return string(diff)
}

// run is a command of the program, whose output is kept. Its exit code must be
// one of those given, or any if the first is 0 and alone.
func (p *planting) run(want int, args ...string) string {
	p.Helper()
	var stdout bytes.Buffer
	app := console.Process{
		Args: append([]string{"-C", filepath.Join(p.dir, "r")}, args...), Stdin: bytes.NewReader(nil), Stdout: &stdout, Stderr: &p.out,
		Getenv: func(name string) string { return p.env[name] }, Now: time.Now, Entropy: rand.Reader,
	}
	code := Main(app)
	p.out.Write(stdout.Bytes())
	if want > 0 && code != want || want < 0 && code != 0 {
		p.Fatalf("%q: exit code %d\n%s", args, code, p.out.Bytes())
	}
	return stdout.String()
}

const succeeds = -1

// wholeLife takes the change through every command there is.
func (p *planting) wholeLife() {
	for name, content := range p.base {
		p.file("r/"+name, content)
	}
	p.file("r/.github/countersign.yml", p.policy)
	p.git("add", "-A")
	p.git("commit", "-qm", "base")
	p.file("fix.patch", p.patch)
	input := []string{"--patch", filepath.Join(p.dir, "fix.patch")}
	if p.patch == "" {
		input = nil
	}
	apply := append([]string{"apply"}, input...)
	review := append([]string{"review"}, input...)
	if len(p.flags) > 0 && p.flags[0] == "--to" {
		p.run(0, append(apply, p.flags...)...)
	} else {
		review = append(review, p.flags...)
	}
	if p.refused {
		p.run(console.ExitRefused, review...)
		return
	}
	p.run(succeeds, review...)
	if len(p.flags) > 0 && p.flags[0] == "--to" {
		p.run(0, append([]string{"run"}, p.flags...)...)
	}
	tx := transactionID.FindString(p.run(succeeds, "list"))
	p.run(0, "approve", tx, "--all", "--reason", p.secret.Text())
	p.as("Grace")
	p.run(succeeds, "approve", tx, "--all")
	for _, args := range [][]string{{"show"}, {"diff"}, {"log"}, {"list"}, {"show", "--json"}, {"diff", "--json"}, {"log", "--json"}} {
		p.run(succeeds, args...)
	}
	if p.patch == "" { // the pack holds the secret: it goes on as the patch that git makes of it
		p.file("r/new.txt", p.secret.Text())
		p.git("add", "new.txt")
		p.file("fix.patch", string(p.git("diff", "--cached")))
		p.git("rm", "-q", "-f", "new.txt")
		apply = []string{"apply", "--patch", filepath.Join(p.dir, "fix.patch")}
	}
	p.run(0, "apply", "--dry-run")
	p.run(succeeds, apply...)
	p.run(succeeds, "validate")
	p.run(succeeds, "export", "--out", filepath.Join(p.dir, "exported"))
	p.run(succeeds, "audit", "--json")
	p.workflow()
}

// workflow publishes the transaction as a step of a workflow.
func (p *planting) workflow() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(&p.api, "%s %s\n%s\n", r.Method, r.URL, body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"total_count":0,"check_runs":[],"id":1,"html_url":"https://example.org/1"}`)
	}))
	defer server.Close()
	p.git("update-ref", "refs/remotes/origin/main", "main")
	p.file("event.json", `{"repository":{"default_branch":"main"}}`)
	for name, value := range map[string]string{
		"GITHUB_EVENT_PATH": filepath.Join(p.dir, "event.json"), "GITHUB_ACTIONS": "true", "INPUT_STAGE": "validate", "INPUT_TOKEN": "a-token-of-the-test", "GITHUB_SHA": strings.Repeat("a", 40),
		"GITHUB_API_URL": server.URL, "GITHUB_REPOSITORY": "owner/name", "GITHUB_OUTPUT": filepath.Join(p.dir, "exported", "output"),
		"GITHUB_STEP_SUMMARY": filepath.Join(p.dir, "exported", "summary"),
	} {
		p.env[name] = value
	}
	p.run(succeeds, "action")
	if !strings.Contains(p.api.String(), "countersign/") {
		p.Error("no check run was published")
	}
}

// search looks for the secret wherever it could have got to.
func (p *planting) search() {
	found := map[string][]byte{"what was printed": p.out.Bytes(), "what a forge was sent": p.api.Bytes()}
	_ = filepath.WalkDir(filepath.Join(p.dir, "exported"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			found[name], err = os.ReadFile(name)
			check(p.T, err)
		}
		return nil
	})
	if refs := p.git("for-each-ref", "refs/agent/ledger"); len(refs) > 0 {
		names := p.git("rev-list", "--objects", "refs/agent/ledger")
		found["names in the ledger"] = names
		cmd := exec.Command("git", "cat-file", "--batch=%(objectname) %(objecttype) %(objectsize) %(rest)")
		cmd.Dir, cmd.Stdin = filepath.Join(p.dir, "r"), bytes.NewReader(names)
		objects, err := cmd.Output()
		check(p.T, err)
		for len(objects) > 0 {
			header, rest, _ := bytes.Cut(objects, []byte("\n"))
			size, err := strconv.Atoi(strings.Fields(string(header))[2])
			check(p.T, err)
			found[string(header)], objects = rest[:size], rest[size+1:]
		}
	} else if !p.refused {
		p.Error("there is no ledger")
	}
	for _, form := range teststand.Encodings(p.secret.Value) {
		for where, data := range found {
			if bytes.Contains(data, form) {
				p.Errorf("%s holds the secret as %.60q", where, form)
			}
		}
	}
	if strings.Contains(p.out.String(), "panic") {
		p.Errorf("%s", p.out.Bytes())
	}
}
