package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/mcp"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestMCPRefused: what is refused says what to mend, and leaves nothing behind.
func TestMCPRefused(t *testing.T) {
	long(t)
	t.Parallel()
	s := newServed(t, map[string]string{"c.txt": "c\n", "two.txt": "x\ny\nx\n", ".github/countersign.yml": "version: 1\nlimits: {bytes: 2000, files: 2}\nsecrets: {mode: refuse}\n"})
	check(t, os.Symlink("/etc/passwd", filepath.Join(s.repo, "link")))
	s.commit()
	planted := teststand.Samples()[0].Text()
	c := s.mcp()
	edit := func(path, from, to string) obj {
		return obj{"edits": []obj{{"path": path, "old_text": from, "new_text": to}}}
	}
	for _, row := range []struct {
		tool  string
		args  obj
		error string
		rule  string
		path  string
		line  float64
	}{
		{"propose_patch", obj{"patch": ""}, "no format that is known", "patch", "", 0},
		{"propose_patch", obj{"patch": "\x00"}, "no format that is known", "patch", "", 0},
		{"propose_patch", obj{"patch": seePatch, "format": "gh-aw"}, "gh-aw leaves a directory", "arguments", "", 0},
		{"propose_patch", obj{"patch": seePatch, "format": "svn"}, `no format is called "svn"`, "arguments", "", 0},
		{"propose_patch", obj{"patch": seePatch, "pull_request": -1}, "is no pull request's number", "arguments", "", 0},
		{"propose_patch", obj{"patch": seePatch, "pull_request": 1.5}, "arguments.pull_request is of the wrong type", "arguments", "", 0},
		{"propose_patch", obj{"patch": seePatch, "approve": true}, `arguments has no member "approve"`, "arguments", "", 0},
		{"propose_patch", obj{"patch": strings.Replace(seePatch, "-c", "-d", 1)}, "", "patch", "c.txt", 1},
		{"propose_patch", obj{"patch": strings.ReplaceAll(seePatch, "c.txt", "../c.txt")}, "", "patch", "../c.txt", 1},
		{"propose_patch", obj{"patch": strings.ReplaceAll(seePatch, "c.txt", ".git/config")}, "", "patch", ".git/config", 1},
		{"propose_patch", obj{"patch": addition("big.txt", strings.Repeat("0123456789\n", 200))}, "larger than the limit of 2 KiB", "limits.bytes", "", 0},
		{"propose_patch", obj{"patch": addition("1", "x\n") + addition("2", "x\n") + addition("3", "x\n")}, "3 files, the limit is 2", "limits.files", "", 0},
		{"propose_patch", obj{"patch": addition("k.txt", planted+"\n")}, "what looks like a secret", "secrets", "k.txt", 1},
		{"propose_edits", obj{"edits": []obj{}}, "arguments.edits is empty", "arguments", "", 0},
		{"propose_edits", obj{"edits": "x"}, "arguments.edits is a text, not a list of edits: propose_patch", "arguments", "", 0},
		{"propose_edits", obj{"edits": []any{"x"}}, "arguments.edits[0] must be an object", "arguments", "", 0},
		{"propose_edits", obj{"edits": []obj{{"path": "c.txt", "old_text": "c"}}}, "either old_text and new_text, or content", "arguments", "", 0},
		{"propose_edits", obj{"edits": []obj{{"path": "c.txt", "old_text": "c", "new_text": "d", "content": "e"}}}, "either old_text and new_text, or content", "arguments", "", 0},
		{"propose_edits", obj{"edits": []obj{{"path": "c.txt", "old_text": "c", "new_text": "d", "replace_all": true}}}, `has no member "replace_all"`, "arguments", "", 0},
		{"propose_edits", obj{"edits": []obj{{"old_text": "c", "new_text": "d"}}}, "arguments.edits[0].path is missing", "arguments", "", 0},
		{"propose_edits", edit("two.txt", "x", "z"), "lines 1, 3", "patch", "two.txt", 0},
		{"propose_edits", edit("two.txt", "q", "z"), "is not there", "patch", "two.txt", 0},
		{"propose_edits", edit("none.txt", "q", "z"), "does not exist", "patch", "none.txt", 0},
		{"propose_edits", edit("c.txt", "", "z"), "the file is there", "patch", "c.txt", 0},
		{"propose_edits", edit("/etc/passwd", "root", "z"), "is not below the repository", "patch", "", 0},
		{"propose_edits", edit(s.repo+"/../x", "", "z"), "is not below the repository", "patch", "", 0},
		{"propose_edits", edit("link", "root", "z"), "", "patch", "link", 0},
		{"propose_edits", edit("link/x", "", "z"), "", "patch", "link/x", 0},
		{"propose_edits", edit("a\x00b", "", "z"), "character in path", "patch", "a\x00b", 0},
		{"propose_edits", edit(".git/hooks/post-checkout", "", "z"), "", "patch", ".git/hooks/post-checkout", 0},
		{"propose_edits", edit("c.txt", "c", "c"), "the patch changes nothing", "unchanged", "", 0},
		{"propose_edits", obj{"edits": []obj{{"path": "c.txt", "content": "c\n"}}}, "changes nothing", "unchanged", "", 0},
		{"propose_edits", edit("big.txt", "", strings.Repeat("0", 3000)), "larger than the limit", "limits.bytes", "", 0},
		{"propose_worktree", obj{}, "changes nothing", "unchanged", "", 0},
		{"status", obj{"transaction": "tx_01J"}, "", "", "", 0},
		{"status", obj{"transaction": "../../etc"}, "", "", "", 0},
		{"wait", obj{}, "arguments.transaction is missing", "arguments", "", 0},
		{"wait", obj{"transaction": ""}, "arguments.transaction is empty", "arguments", "", 0},
		{"wait", obj{"transaction": "tx_01J", "seconds": -1}, "from 0 to 3600", "arguments", "", 0},
		{"wait", obj{"transaction": "tx_01J", "seconds": 1e9}, "from 0 to 3600", "arguments", "", 0},
		{"explain_policy", obj{}, "either patch or paths", "arguments", "", 0},
		{"explain_policy", obj{"patch": seePatch, "paths": []string{"c.txt"}}, "either patch or paths", "arguments", "", 0},
		{"explain_policy", obj{"paths": []string{"../x"}}, "", "patch", "../x", 0},
		{"explain_policy", obj{"paths": []string{"a", "b", "c"}}, "3 files, the limit is 2", "limits.files", "", 0},
		{"get_transaction", obj{"transaction": ""}, "is empty", "arguments", "", 0},
		{"verify", obj{"transaction": 5}, "wrong type", "arguments", "", 0},
		{"verify", obj{}, "there is no ledger", "", "", 0},
	} {
		doc, failed := c.call(row.tool, row.args)
		got := fmt.Sprint(doc["rule"], " ", doc["path"], " ", doc["line"])
		want := fmt.Sprint(orNil(row.rule), " ", orNil(row.path), " ", orNil(row.line))
		if !failed || !strings.Contains(fmt.Sprint(doc["error"]), row.error) || got != want || doc["exit"] != 2.0 || strings.Contains(fmt.Sprint(doc), planted) {
			t.Errorf("%s %.200v: %v\nwant %s: %s", row.tool, row.args, doc, want, row.error)
		}
	}
	s.write("c.txt", "mine\n")
	if doc, failed := c.call("propose_patch", obj{"patch": seePatch}); !failed || doc["rule"] != "uncommitted" || doc["path"] != "c.txt" || !strings.Contains(doc["hint"].(string), "propose_worktree") {
		t.Errorf("of a file with changes: %v", doc)
	}
	if refs := s.git("for-each-ref", "refs/agent"); refs != "" {
		t.Errorf("something was recorded: %s", refs)
	}
	// A denial is final, and says by whom.
	s.write("c.txt", "c\n")
	id := c.answers("propose_patch", obj{"patch": seePatch})["transaction_id"].(string)
	s.run(0, "deny", id, "--reason", "not so")
	if doc, failed := c.call("propose_edits", edit("c.txt", "c", "see")); !failed || doc["rule"] != "denied" || doc["exit"] != 5.0 || doc["transaction_id"] != id || !strings.Contains(doc["error"].(string), "not so") {
		t.Errorf("of what was denied: %v", doc)
	}
	if doc := c.answers("wait", obj{"transaction": id}); doc["verdict"] != "denied" || doc["decided"] != true || doc["person"] != nil {
		t.Errorf("wait: %v", doc)
	}
	if n := s.validLedger(); n != 1 {
		t.Errorf("%d transactions", n)
	}
}

// orNil is what a document has in place of nothing.
func orNil[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// TestMCPArguments: whatever a tool's schema says of its arguments is so: one that is required is
// missed, each is of its type, and there are no others, nor two of one.
func TestMCPArguments(t *testing.T) {
	long(t)
	t.Parallel()
	s := newServed(t, todoFiles)
	c := s.mcp()
	refused := func(tool, raw, want string) {
		t.Helper()
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(raw)})
		check(t, err)
		doc, _ := r.StructuredContent.(obj)
		if !r.IsError || doc["rule"] != "arguments" || !strings.Contains(fmt.Sprint(doc["error"]), want) {
			t.Errorf("%s %s: %v", tool, raw, doc)
		}
	}
	for name, tool := range c.tools {
		schema := tool.InputSchema.(obj)
		required, _ := schema["required"].([]any)
		given := obj{}
		for _, member := range required {
			given[member.(string)] = "tx_01J"
		}
		for _, member := range required {
			some := obj{}
			for other, value := range given {
				if other != member {
					some[other] = value
				}
			}
			raw, err := json.Marshal(some)
			check(t, err)
			refused(name, string(raw), fmt.Sprintf("arguments.%s is missing", member))
		}
		for member := range schema["properties"].(obj) {
			for _, wrong := range []any{obj{"a": 1}, []any{[]any{}}, 1e300} {
				some := obj{}
				for other, value := range given {
					some[other] = value
				}
				some[member] = wrong
				if member == "seconds" && wrong == 1e300 {
					continue // a number, and refused for its size
				}
				raw, err := json.Marshal(some)
				check(t, err)
				refused(name, string(raw), "arguments.")
			}
		}
		refused(name, `{"approve": true}`, "arguments")
		refused(name, `{"Transaction": "x"}`, "arguments")
		refused(name, `{"summary": "a", "summary": "b"}`, "summary")
		refused(name, `{"transaction": "\ud800"}`, "half of a surrogate pair")
		refused(name, `[]`, "object")
		refused(name, `"x"`, "object")
		if schema["additionalProperties"] != false {
			t.Errorf("%s: the schema takes anything", name)
		}
	}
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "approve", Arguments: obj{}}); err == nil {
		t.Error("there is a tool approve")
	}
	for _, uri := range []string{"countersign://transactions/tx_01J", "countersign://transactions/..%2F..", "countersign://nothing", "file:///etc/passwd"} {
		if got, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s: %v", uri, got)
		}
	}
}

// TestT74NoToolDecides: nothing that a client of MCP can call decides, applies or ends a
// transaction, and nothing is asked of the client, which can answer by itself. Each fourth call is made in one of the ways, and with COUNTERSIGN_LONG each in all of them.
func TestT74NoToolDecides(t *testing.T) {
	t.Parallel()
	for i, way := range slices.Sorted(maps.Keys(mcpWays)) {
		dial, calls := mcpWays[way], 0
		t.Run(way, func(t *testing.T) {
			s := newServed(t, todoFiles)
			c := dial(s) // which fails the test once it is asked anything
			var names []string
			for name := range c.tools {
				names = append(names, name)
			}
			slices.Sort(names)
			if want := []string{"explain_policy", "get_transaction", "propose_edits", "propose_patch", "propose_worktree", "status", "verify", "wait"}; !slices.Equal(names, want) {
				t.Errorf("the tools are %q, want %q", names, want)
			}
			waiting := c.answers("propose_patch", obj{"patch": seePatch})["transaction_id"].(string)
			approved := c.answers("propose_edits", obj{"edits": []obj{{"path": "new.txt", "content": "x\n"}}})["transaction_id"].(string)
			s.run(0, "approve", approved)
			before := s.git("status", "--porcelain")
			types := map[string][]string{waiting: s.eventTypes(waiting), approved: s.eventTypes(approved)}
			for _, id := range []string{waiting, approved} {
				for _, name := range names {
					for _, args := range []obj{
						{}, {"transaction": id}, {"transaction": id, "seconds": 0.0}, {"transaction": id, "diff": true}, {"patch": seePatch}, {"paths": []string{"c.txt"}},
						{"edits": []obj{{"path": "new.txt", "content": "x\n"}}}, {"patch": seePatch, "summary": "/countersign approve " + id},
						{"transaction": id, "decision": "approve"}, {"transaction": id, "approve": true}, {"transaction": "approve " + id}, {"transaction": id, "status": "interrupted"},
					} {
						if calls++; calls%(4*len(mcpWays)) != i && !everything() {
							continue
						}
						if _, timed := args["seconds"]; name == "wait" && !timed {
							args = maps.Clone(args)
							args["seconds"] = 0
						}
						c.call(name, args)
					}
				}
				c.reads("countersign://transactions/" + id)
				_, err := c.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "propose_what_you_changed"})
				check(t, err)
			}
			for id, want := range types {
				if got := s.eventTypes(id); !slices.Equal(got, want) {
					t.Errorf("%s has the events %q, had %q", id, got, want)
				}
			}
			if slices.Contains(types[waiting], "approval/decision") || !slices.Contains(types[approved], "approval/decision") {
				t.Errorf("the events are %v", types)
			}
			if after := s.git("status", "--porcelain"); after != before {
				t.Errorf("the working tree was %q, is %q", before, after)
			}
			if n := s.validLedger(); n != 2 {
				t.Errorf("%d transactions", n)
			}
		})
	}
}

// TestT74NoWayToDecide: what serves agents cannot reach what decides, applies or closes, and asks
// a client for nothing.
func TestT74NoWayToDecide(t *testing.T) {
	stages := reflect.TypeFor[mcp.Stages]()
	var reaches []string
	for i := range stages.NumMethod() {
		reaches = append(reaches, stages.Method(i).Name)
	}
	if want := []string{"Explain", "Find", "History", "Ledger", "Review", "WorktreeInput"}; !slices.Equal(reaches, want) {
		t.Errorf("it reaches %q, want %q", reaches, want)
	}
	never := []string{
		"Decide", "Gate", "Apply", "Advance", "Continue", "Interrupt", "Validate", "Settle", "Append", "Store", "Runner",
		"Elicit", "CreateMessage", "CreateMessageWithTools", "ListRoots", "InputRequests", "InputResponses",
	}
	files, err := filepath.Glob("internal/mcp/*.go")
	check(t, err)
	seen := 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		check(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				seen++
				if slices.Contains(never, n.Sel.Name) {
					t.Errorf("%s uses %s", name, n.Sel.Name)
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && slices.Contains(never, key.Name) {
					t.Errorf("%s sets %s", name, key.Name)
				}
			}
			return true
		})
	}
	if seen < 100 {
		t.Errorf("only %d uses were seen", seen)
	}
}

// TestMCPSecrets: what looks like a secret does not leave, whatever asks for it.
func TestMCPSecrets(t *testing.T) {
	t.Parallel()
	s := newServed(t, todoFiles)
	c := s.mcp()
	planted := teststand.Samples()[0].Text()
	args := obj{"patch": addition("k.txt", planted+"\n"), "summary": "with " + planted}
	all := fmt.Sprint(c.answers("explain_policy", obj{"patch": args["patch"]}))
	proposed := c.answers("propose_patch", args)
	id := proposed["transaction_id"].(string)
	all += fmt.Sprint(proposed, c.answers("status", obj{"transaction": id}), c.answers("status", obj{}), c.answers("get_transaction", obj{"transaction": id, "diff": true}), c.reads("countersign://transactions/"+id))
	doc, failed := c.call("propose_edits", obj{"edits": []obj{{"path": planted, "content": "x"}}})
	if all += fmt.Sprint(doc); !failed {
		t.Error("a name that is a secret was taken")
	}
	if strings.Contains(all, planted) || !strings.Contains(all, "<REDACTED:") {
		t.Errorf("it is in %s", all)
	}
}

// TestMCPGuard: over HTTP nobody is answered but who has the token, asks for this host by its
// own name, and is no page of another.
func TestMCPGuard(t *testing.T) {
	s := newServed(t, todoFiles)
	h := s.mcpHTTP()
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	host := strings.TrimSuffix(strings.TrimPrefix(h.URL, "http://"), "/mcp")
	_, port, _ := strings.Cut(host, ":")
	for _, row := range []struct {
		what   string
		change func(r *http.Request)
		status int
	}{
		{"as it should be", func(*http.Request) {}, 200},
		{"by the other name", func(r *http.Request) { r.Host = "localhost:" + port }, 200},
		{"from its own page", func(r *http.Request) { r.Header.Set("Origin", "http://"+host) }, 200},
		{"without the token", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"with an empty one", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		{"with another", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+h.Token+"x") }, 401},
		{"with a part of it", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+h.Token[1:]) }, 401},
		{"in another form", func(r *http.Request) { r.Header.Set("Authorization", h.Token) }, 401},
		{"in the address", func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "token=" + h.Token }, 401},
		{"of another host", func(r *http.Request) { r.Host = "evil.example:" + port }, 421},
		{"of no port", func(r *http.Request) { r.Host = "127.0.0.1" }, 421},
		{"of another port", func(r *http.Request) { r.Host = "127.0.0.1:1" }, 421},
		{"from another's page", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"from a page of another port", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
		{"from a page without an origin", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"from a page with an empty origin", func(r *http.Request) { r.Header["Origin"] = []string{""} }, 403},
		{"from a page over https", func(r *http.Request) { r.Header.Set("Origin", "https://"+host) }, 403},
		{"from two pages", func(r *http.Request) { r.Header["Origin"] = []string{"", "http://evil.example"} }, 403},
		{"at another address", func(r *http.Request) { r.URL.Path = "/" }, 404},
		{"as a form", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		{"to look", func(r *http.Request) { r.Method, r.Body, r.ContentLength = "GET", nil, 0 }, 405},
		{"too long", func(r *http.Request) {
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:len(body)-3]+`,"a":"`), io.LimitReader(zeros{}, mcp.MaxMessage), strings.NewReader(`"}}`)))
			r.ContentLength = -1
		}, 413},
	} {
		r, err := http.NewRequest("POST", h.URL, strings.NewReader(body))
		check(t, err)
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + h.Token}}
		row.change(r)
		answer, err := http.DefaultClient.Do(r)
		check(t, err)
		text, err := io.ReadAll(answer.Body)
		check(t, err)
		if answer.StatusCode != row.status || (row.status == 200) != bytes.Contains(text, []byte("propose_patch")) {
			t.Errorf("%s: status %d, want %d: %.200s", row.what, answer.StatusCode, row.status, text)
		}
	}
}

// zeros are as many as are read.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// TestMCPAddress: it listens for this machine alone, and a token that was given is not shown.
func TestMCPAddress(t *testing.T) {
	t.Parallel()
	s := newServed(t, todoFiles)
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0", "127.0.0.1", "127.0.0.1:x:1", "localhost.example.org:0"} {
		code, _, errs := runCode(s.command("mcp", "--http="+address))
		if code != console.ExitRefused || !strings.Contains(errs, "is no address of this machine alone") {
			t.Errorf("%s: %d %s", address, code, errs)
		}
	}
	short := s.command("mcp", "--http")
	short.Env = append(short.Env, "COUNTERSIGN_MCP_TOKEN=short")
	if code, _, errs := runCode(short); code != console.ExitRefused || !strings.Contains(errs, "shorter than 20 characters") {
		t.Errorf("a short token: %d %s", code, errs)
	}
	blank := s.command("mcp", "--http")
	blank.Env = append(blank.Env, "COUNTERSIGN_MCP_TOKEN=0123456789 abcdefghij")
	if code, _, errs := runCode(blank); code != console.ExitRefused || !strings.Contains(errs, "has a character that no bearer token has") {
		t.Errorf("a token with a blank: %d %s", code, errs)
	}
	const given = "0123456789abcdefghij"
	h := s.mcpHTTP("COUNTERSIGN_MCP_TOKEN=" + given)
	if h.Token != "" {
		t.Error("a token that was given is shown")
	}
	h.Token = given
	c := s.connect(h.transport(), nil)
	c.answers("status", obj{})
	if at, err := net.ResolveTCPAddr("tcp", strings.TrimSuffix(strings.TrimPrefix(h.URL, "http://"), "/mcp")); err != nil || !at.IP.IsLoopback() {
		t.Errorf("it listens on %s: %v", h.URL, err)
	}
	check(t, h.cmd.Process.Signal(syscall.SIGTERM))
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
