//lint:file-ignore SA1019 there are clients whose model and roots can be asked for, and none is asked

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// mcpWays are how a client talks to a process of the program.
var mcpWays = map[string]func(s *served) *mcpClient{
	"stdio": (*served).mcp,
	"stdio of 2025-06-18": func(s *served) *mcpClient { // where a server may ask at any time
		cmd := s.command("mcp")
		cmd.Stderr = s.t.Output()
		return s.connect(&sdk.CommandTransport{Command: cmd}, cmd, "2025-06-18")
	},
	"http": func(s *served) *mcpClient {
		h := s.mcpHTTP()
		return s.connect(h.transport(), nil)
	},
}

// An mcpClient is the SDK's client of a server. It can be asked things, and must not be.
type mcpClient struct {
	*testing.T
	*sdk.ClientSession
	server   *exec.Cmd // nil over HTTP
	progress chan *sdk.ProgressNotificationParams
	tools    map[string]*sdk.Tool
}

// connect is a client that can answer for a person, as clients do who show forms, or a model;
// of a revision of the protocol, else of the newest.
func (s *served) connect(to sdk.Transport, server *exec.Cmd, revision ...string) *mcpClient {
	s.t.Helper()
	c := &mcpClient{T: s.t, server: server, progress: make(chan *sdk.ProgressNotificationParams, 1000), tools: map[string]*sdk.Tool{}}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			s.t.Error("T74: the client was asked")
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}, nil
		},
		CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			s.t.Error("T74: the client's model was asked")
			return &sdk.CreateMessageResult{Content: &sdk.TextContent{Text: "approve"}, Model: "m", Role: "assistant"}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progress <- r.Params },
	})
	client.AddRoots(&sdk.Root{URI: "file:///"})
	var err error
	c.ClientSession, err = client.Connect(s.t.Context(), to, &sdk.ClientSessionOptions{ProtocolVersion: strings.Join(revision, "")})
	check(s.t, err)
	if got := c.InitializeResult().ProtocolVersion; len(revision) > 0 && got != revision[0] {
		s.t.Errorf("it speaks %s, not %s", got, revision[0])
	}
	s.t.Cleanup(func() { _ = c.Close() })
	list, err := c.ListTools(s.t.Context(), nil)
	check(s.t, err)
	for _, t := range list.Tools {
		c.tools[t.Name] = t
	}
	return c
}

// mcp is a client of a process of its own over stdio.
func (s *served) mcp() *mcpClient {
	s.t.Helper()
	cmd := s.command(append([]string{"mcp"}, s.flags...)...)
	cmd.Stderr = s.t.Output()
	return s.connect(&sdk.LoggingTransport{Transport: &sdk.CommandTransport{Command: cmd}, Writer: &s.said}, cmd)
}

// An mcpHTTP is a process that answers over HTTP.
type mcpHTTP struct {
	cmd        *exec.Cmd
	URL, Token string
}

func (s *served) mcpHTTP(env ...string) mcpHTTP {
	s.t.Helper()
	h := mcpHTTP{cmd: s.command("mcp", "--http", "--json")}
	h.cmd.Env, h.cmd.Stderr = append(h.cmd.Env, env...), s.t.Output()
	out, err := h.cmd.StdoutPipe()
	check(s.t, err)
	check(s.t, h.cmd.Start())
	s.t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	check(s.t, err)
	check(s.t, json.Unmarshal(line, &h))
	return h
}

// Authorized is a client over HTTP that has the token.
type authorized string

func (token authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

func (h mcpHTTP) transport() sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: h.URL, HTTPClient: &http.Client{Transport: authorized(h.Token)}}
}

// call calls a tool. What it answers is held to the schema that the tool has, and its text is
// the same document.
func (c *mcpClient) call(tool string, args obj) (doc obj, failed bool) {
	c.Helper()
	r, err := c.CallTool(c.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	check(c.T, err)
	raw, err := json.Marshal(r.StructuredContent)
	check(c.T, err)
	check(c.T, json.Unmarshal(raw, &doc))
	if len(r.Content) != 1 || !canonicalText(r.Content[0].(*sdk.TextContent).Text, doc) {
		c.Errorf("%s: the text is another document: %v", tool, r.Content)
	}
	c.holds(tool, c.tools[tool].OutputSchema, raw)
	return doc, r.IsError
}

func canonicalText(text string, doc obj) bool {
	var other obj
	return json.Unmarshal([]byte(text), &other) == nil && fmt.Sprint(other) == fmt.Sprint(doc)
}

// holds holds a document to a schema.
func (c *mcpClient) holds(what string, schema any, raw []byte) {
	c.Helper()
	text, err := json.Marshal(schema)
	check(c.T, err)
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	check(c.T, err)
	compiler := jsonschema.NewCompiler()
	check(c.T, compiler.AddResource("s.json", parsed))
	compiled, err := compiler.Compile("s.json")
	check(c.T, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	check(c.T, err)
	if err := compiled.Validate(doc); err != nil {
		c.Errorf("%s: %s: %v", what, raw, err)
	}
}

// answers is call of what succeeds.
func (c *mcpClient) answers(tool string, args obj) obj {
	c.Helper()
	doc, failed := c.call(tool, args)
	if failed {
		c.Fatalf("%s %v: %v", tool, args, doc)
	}
	return doc
}

// reads is a resource's document.
func (c *mcpClient) reads(uri string) (doc obj) {
	c.Helper()
	r, err := c.ReadResource(c.Context(), &sdk.ReadResourceParams{URI: uri})
	check(c.T, err)
	check(c.T, json.Unmarshal([]byte(r.Contents[0].Text), &doc))
	return doc
}

// proposals are one change in the forms that the tools take.
var proposals = []struct {
	tool, format string
	args         obj
}{
	{"propose_patch", "git", obj{"patch": seePatch, "summary": "see"}},
	{"propose_patch", "git", obj{"patch": "Here it is:\n```diff\n" + seePatch + "```\n"}},
	{"propose_patch", "unified", obj{"patch": "--- c.txt\n+++ c.txt\n@@ -1 +1 @@\n-c\n+see\n"}},
	{"propose_patch", "codex", obj{"patch": "*** Begin Patch\n*** Update File: c.txt\n-c\n+see\n*** End Patch\n", "format": "codex"}},
	{"propose_patch", "blocks", obj{"patch": "c.txt\n<<<<<<< SEARCH\nc\n=======\nsee\n>>>>>>> REPLACE\n"}},
	{"propose_patch", "edits", obj{"patch": `{"file_path": "c.txt", "old_string": "c", "new_string": "see"}`}},
	{"propose_edits", "edits", obj{"edits": []obj{{"path": "c.txt", "old_text": "c", "new_text": "see"}}}},
	{"propose_edits", "edits", obj{"edits": []obj{{"path": "c.txt", "content": "see\n"}}}},
	{"propose_edits", "edits", obj{"edits": `[{"path":"c.txt","old_text":"c","new_text":"see"}]`}},
	{"propose_edits", "edits", obj{"edits": []obj{{"path": "c.txt", "old_text": "c", "new_text": "d"}, {"path": "./c.txt", "old_text": "d\n", "new_text": "see\n"}}}},
}

// TestMCPSameChange: the same change is the same transaction, whether it comes from the command
// line, over JSON-RPC or from a client of MCP, and in whatever form. One person approves once, and
// the ledger says where it came from each time.
func TestMCPSameChange(t *testing.T) {
	long(t)
	t.Parallel()
	for way, dial := range mcpWays {
		t.Run(way, func(t *testing.T) {
			s := newServed(t, todoFiles)
			c := dial(s)
			first := ""
			for i, p := range proposals {
				doc := c.answers(p.tool, p.args)
				if first == "" {
					first = doc["transaction_id"].(string)
				}
				if doc["transaction_id"] != first || doc["known"] != (i > 0) || doc["format"] != p.format || fmt.Sprint(doc["files"]) != "[c.txt]" || doc["status"] != "proposed" || doc["verdict"] != "pending" {
					t.Errorf("%s %v: %v", p.tool, p.args, doc)
				}
			}
			if id := s.turn(obj{"threadId": s.thread(), "input": "see", "patch": seePatch}); id != first {
				t.Errorf("over JSON-RPC it is %s, not %s", id, first)
			}
			s.stop()
			s.write("c.txt", "see\n")
			if doc := c.answers("propose_worktree", obj{}); doc["transaction_id"] != first {
				t.Errorf("of the working tree it is %v, not %s", doc, first)
			}
			s.git("checkout", "-q", "c.txt")
			s.write("../change.diff", seePatch)
			if out, _ := s.run(0, "review", "--json", "--patch", "../change.diff"); !strings.Contains(out, first) {
				t.Errorf("on the command line it is %s", out)
			}
			out, _ := s.run(0, "show", first, "--json")
			for _, from := range []string{`"via":"mcp"`, `"via":"json-rpc"`, `"format":"codex"`, `"format":"edits"`, `"format":"blocks"`} {
				if !strings.Contains(out, from) {
					t.Errorf("the record does not say that it came as %s: %s", from, out)
				}
			}
			s.run(0, "approve", first)
			s.run(0, "run", first, "--to", "branch", "--branch", "applied")
			if n := s.git("rev-list", "--count", "HEAD..applied"); strings.TrimSpace(n) != "1" {
				t.Errorf("%s commits", n)
			}
			if n := s.validLedger(); n != 1 {
				t.Errorf("%d transactions", n)
			}
		})
	}
}

// TestMCPTools: every tool and every document, from a proposal until a person has decided.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	for way, dial := range mcpWays {
		t.Run(way, func(t *testing.T) {
			if way != "stdio" {
				long(t)
			}
			s := newServed(t, todoFiles)
			c := dial(s)
			if got := c.answers("status", obj{}); fmt.Sprint(got) != "map[more:false transactions:[]]" {
				t.Errorf("nothing is open, but: %v", got)
			}
			if got := c.answers("explain_policy", obj{"paths": []string{".github/workflows/x.yml"}}); !strings.Contains(fmt.Sprint(got["needs"]), "protected") || got["patch_id"] != "" {
				t.Errorf("of paths: %v", got)
			}
			explained := c.answers("explain_policy", obj{"patch": seePatch})
			proposed := c.answers("propose_patch", obj{"patch": seePatch, "summary": "see"})
			id := proposed["transaction_id"].(string)
			if explained["patch_id"] != proposed["patch_id"] || proposed["summary"] != "see" {
				t.Errorf("explained %v, proposed %v", explained, proposed)
			}
			got := c.answers("get_transaction", obj{"transaction": id, "diff": true})
			if diff, _ := got["diff"].(string); !strings.Contains(diff, "\n-c\n+see\n") || got["report"].(obj)["transaction_id"] != id {
				t.Errorf("get_transaction: %v", got)
			}
			if got := c.answers("get_transaction", obj{"transaction": id}); got["diff"] != nil {
				t.Errorf("get_transaction has a diff that nobody asked for: %v", got)
			}
			if got := c.answers("status", obj{}); got["transactions"].([]any)[0].(obj)["transaction_id"] != id {
				t.Errorf("status: %v", got)
			}
			waits := c.answers("wait", obj{"transaction": id, "seconds": 0.01})
			if waits["decided"] != false || waits["verdict"] != "pending" {
				t.Errorf("wait: %v", waits)
			}
			for _, of := range []obj{{}, {"transaction": id}} {
				if got := c.answers("verify", of); got["ok"] != true || got["tip"] != s.tip() {
					t.Errorf("verify %v: %v", of, got)
				}
			}
			if got := c.reads("countersign://transactions"); got["transactions"].([]any)[0].(obj)["transaction_id"] != id {
				t.Errorf("transactions: %v", got)
			}
			if got := c.reads("countersign://transactions/" + id); got["report"].(obj)["transaction_id"] != id || got["diff"] == nil {
				t.Errorf("the transaction: %v", got)
			}
			if got := c.reads("countersign://policy"); got["policy"].(obj)["version"] != 1.0 {
				t.Errorf("the Policy: %v", got)
			}
			if got := c.reads("countersign://ledger/tip"); got["ledger_commit"] != s.tip() || got["ledger_ref"] != "refs/agent/ledger" {
				t.Errorf("the tip: %v", got)
			}
			prompt, err := c.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "propose_what_you_changed", Arguments: map[string]string{"summary": "see", "pull_request": "7"}})
			check(t, err)
			if text := prompt.Messages[0].Content.(*sdk.TextContent).Text; !strings.Contains(text, `pull_request "7" and the summary "see"`) {
				t.Errorf("the prompt: %s", text)
			}
			s.run(0, "approve", id)
			if got := c.answers("wait", obj{"transaction": id}); got["decided"] != true || got["verdict"] != "approved" || got["closed"] != false {
				t.Errorf("wait after the approval: %v", got)
			}
			s.run(0, "run", id)
			got = c.answers("status", obj{"transaction": id})
			if got["closed"] != true || got["status"] != "completed" || got["person"] != nil || s.read("c.txt") != "see\n" {
				t.Errorf("status once it is applied: %v", got)
			}
		})
	}
}

// TestMCPPerson: what an agent gets of an open transaction says how a person decides.
func TestMCPPerson(t *testing.T) {
	t.Parallel()
	s := newServed(t, todoFiles)
	c := s.mcp()
	s.write("c.txt", "see\n")
	id := c.answers("propose_worktree", obj{})["transaction_id"].(string)
	s.git("checkout", "-q", "c.txt")
	run, browse := "countersign -C "+s.top()+" run "+id, "countersign -C "+s.top()+" browse "+id
	for _, got := range []obj{
		c.answers("propose_patch", obj{"patch": seePatch}), c.answers("propose_edits", proposals[6].args), c.answers("status", obj{"transaction": id}),
		c.answers("wait", obj{"transaction": id, "seconds": 0}), c.answers("get_transaction", obj{"transaction": id}), c.reads("countersign://transactions/" + id),
	} {
		person, _ := got["person"].(obj)
		if person["command"] != run || person["browse"] != browse || !strings.Contains(fmt.Sprint(person["say"]), run) || !strings.Contains(fmt.Sprint(got["next"]), "person") {
			t.Errorf("%v, want %s", got, run)
		}
	}
}

// waiting is a call that waits for an hour, and is told so.
func waiting(id string) *sdk.CallToolParams {
	params := &sdk.CallToolParams{Name: "wait", Arguments: obj{"transaction": id, "seconds": 3600}}
	params.SetProgressToken("mine")
	return params
}

// TestMCPPull: what is for a pull request is decided there.
func TestMCPPull(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.env["COUNTERSIGN_TOKEN"] = h.s.Token("bob")
	for _, name := range []string{"CI", "GITHUB_ACTIONS", "INPUT_TOKEN", "COUNTERSIGN_ACTIONS_TOKEN", "GITHUB_REF", "GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH"} {
		delete(h.env, name)
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	app := console.Process{
		Args: []string{"-C", h.dir, "mcp"}, Stdin: in, Stdout: out, Stderr: t.Output(), Now: time.Now, Entropy: rand.Reader,
		Getenv: func(name string) string { return h.env[name] },
	}
	ended := make(chan int)
	go func() { ended <- Main(app) }()
	s := &served{playground: playground{t: t}}
	c := s.connect(&sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	proposed := c.answers("propose_patch", obj{"patch": greetFix, "pull_request": h.pr})
	id := proposed["transaction_id"].(string)
	page := fmt.Sprintf("%s/%s/pull/%d", h.s.URL, site, h.pr)
	if h.s.Ref(site, "refs/agent/ledger") == "" {
		t.Error("the remote's ledger has nothing")
	}
	for _, got := range []obj{proposed, c.answers("status", obj{"transaction": id}), c.answers("wait", obj{"transaction": id, "seconds": 0}), c.answers("get_transaction", obj{"transaction": id})} {
		person, _ := got["person"].(obj)
		if person["url"] != page || !strings.Contains(fmt.Sprint(person["say"]), page) || !strings.Contains(fmt.Sprint(person["command"]), "settle "+id) {
			t.Errorf("%v, want %s", got, page)
		}
	}
	if doc, failed := c.call("propose_patch", obj{"patch": greetFix, "pull_request": 99}); !failed || doc["exit"] != 3.0 {
		t.Errorf("of no pull request: %v", doc)
	}
	check(t, c.Close())
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestMCPLists: what a client is told of the tools.
func TestMCPLists(t *testing.T) {
	s := newServed(t, todoFiles)
	c := s.mcp()
	for name, tool := range c.tools {
		looks := !strings.HasPrefix(name, "propose_")
		if tool.Annotations.ReadOnlyHint != looks || *tool.Annotations.DestructiveHint || tool.Annotations.Title == "" || len(tool.Description) < 50 || tool.OutputSchema == nil {
			t.Errorf("%s: %+v", name, tool)
		}
		if !looks {
			for _, told := range []string{"secrets", "denied", "limits.bytes", "uncommitted", "outside of the repository"} {
				if !strings.Contains(tool.Description, told) {
					t.Errorf("%s does not say that %s is refused", name, told)
				}
			}
		}
	}
	resources, err := c.ListResources(t.Context(), nil)
	check(t, err)
	templates, err := c.ListResourceTemplates(t.Context(), nil)
	check(t, err)
	prompts, err := c.ListPrompts(t.Context(), nil)
	check(t, err)
	var names []string
	for _, r := range resources.Resources {
		names = append(names, r.URI)
	}
	for _, r := range templates.ResourceTemplates {
		names = append(names, r.URITemplate)
	}
	for _, p := range prompts.Prompts {
		names = append(names, p.Name)
	}
	if want := []string{"countersign://ledger/tip", "countersign://policy", "countersign://transactions", "countersign://transactions/{id}", "propose_what_you_changed"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if got := c.InitializeResult(); got.ServerInfo.Name != "countersign" || !strings.Contains(got.Instructions, "No tool approves") {
		t.Errorf("%+v", got)
	}
}
