package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

const ours = `"countersign": {"type": "stdio", "command": "countersign", "args": ["mcp"]}`

func TestJoinServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ have, want, state string }{
		"empty object":       {"{}", "{\n  \"mcpServers\": {" + ours + "}\n}", Joined},
		"spaces":             {" { \n } ", " {\n   \"mcpServers\": {" + ours + "}\n } ", Joined},
		"no servers":         {"{\n  \"mcpServers\": {}\n}\n", "{\n  \"mcpServers\": {\n    " + ours + "\n  }\n}\n", Joined},
		"another":            {"{\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\": \"y\"}\n\t}\n}", "{\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\": \"y\"},\n\t\t" + ours + "\n\t}\n}", Joined},
		"in one line":        {`{"mcpServers":{"x":{}}}`, `{"mcpServers":{"x":{}, ` + ours + `}}`, Joined},
		"carriage returns":   {"{\r\n  \"mcpServers\": {}\r\n}\r\n", "{\r\n  \"mcpServers\": {\r\n    " + ours + "\r\n  }\r\n}\r\n", Joined},
		"something else":     {"{\n  \"a\": [{\"mcpServers\": 1}]\n}", "{\n  \"a\": [{\"mcpServers\": 1}],\n  \"mcpServers\": {" + ours + "}\n}", Joined},
		"a name in escapes":  {`{"mcpServer\u0073": {"x": 1}}`, `{"mcpServer\u0073": {"x": 1, ` + ours + `}}`, Joined},
		"there":              {`{"mcpServers": {"countersign": {"args": ["mcp"], "command": "countersign", "type": "stdio"}}}`, "", Same},
		"there, and changed": {`{"mcpServers": {"countersign": {"command": "/opt/countersign"}, "x": 1}}`, `{"mcpServers": {` + ours + `, "x": 1}}`, Differs},
		"there, as a word":   {`{"mcpServers": {"countersign" : null}}`, `{"mcpServers": {"countersign" : {"type": "stdio", "command": "countersign", "args": ["mcp"]}}}`, Differs},
	} {
		if c.want == "" {
			c.want = c.have
		}
		got, state, err := joinServers([]byte(c.have))
		if err != nil || string(got) != c.want || state != c.state {
			t.Errorf("%s: %s %v\n%s\nwant %s\n%s", name, state, err, got, c.state, c.want)
		}
	}
	for _, have := range []string{"", " ", "{", "[]", "null", `"x"`, `{"mcpServers": []}`, `{"mcpServers": null}`, `{"mcpServers": "x"}`, `{"mcpServers": {}, "mcpServers": {}}`, `{"mcpServers": {"a": 1, "a": 2}}`, "{} {}", "// a\n{}", "{\"a\": 1,}", "\xef\xbb\xbf{}"} {
		if got, state, err := joinServers([]byte(have)); err == nil {
			t.Errorf("%q: %s %s", have, state, got)
		}
	}
}

// FuzzJoinServers: what comes out has all that went in, and the server; a second time changes nothing.
func FuzzJoinServers(f *testing.F) {
	for _, have := range []string{"{}", `{"mcpServers":{}}`, "{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}", `{"a":{"mcpServers":{}},"mcpServers":{"countersign":1,"z":[{}]}}`, "{\r\n}", `{"mcpServer\u0073":{}}`, "[]", `{"a":"}{","mcpServers": {"b" : "\""}  , "c":1e3}`} {
		f.Add([]byte(have))
	}
	f.Fuzz(func(t *testing.T, have []byte) {
		want, state, err := joinServers(append([]byte{}, have...))
		before, parsed := canon.Parse(have)
		if err != nil {
			return
		}
		if parsed != nil {
			t.Fatalf("%q is no JSON, and was taken", have)
		}
		doc, err := canon.Parse(want)
		if err != nil {
			t.Fatalf("%q: %v", want, err)
		}
		servers := doc.(map[string]any)[serversKey].(map[string]any)
		if line, _ := canon.Marshal(servers[serverName]); string(line) != `{"args":["mcp"],"command":"countersign","type":"stdio"}` {
			t.Fatalf("%q has %s", want, line)
		}
		top := before.(map[string]any)
		had, there := top[serversKey].(map[string]any)
		if !there {
			had = map[string]any{}
		}
		had[serverName] = servers[serverName]
		top[serversKey] = had
		if !reflect.DeepEqual(top, doc) {
			t.Fatalf("%q became %q", have, want)
		}
		again, second, err := joinServers(want)
		if err != nil || second != Same || !bytes.Equal(again, want) || (state == Same) != bytes.Equal(have, want) {
			t.Fatalf("again: %q %s %v", again, second, err)
		}
	})
}

func TestJoinAgents(t *testing.T) {
	t.Parallel()
	const text = "## New\n\nnew\n"
	section := agentsBegin + "\n" + text + agentsEnd + "\n"
	for name, c := range map[string]struct{ have, want, state string }{
		"empty":              {"", section, Joined},
		"with an end":        {"# Mine\n", "# Mine\n\n" + section, Joined},
		"without one":        {"# Mine", "# Mine\n\n" + section, Joined},
		"carriage returns":   {"# Mine\r\n", "# Mine\r\n\r\n" + strings.ReplaceAll(section, "\n", "\r\n"), Joined},
		"there":              {"# Mine\n" + section + "more", "", Same},
		"there, and changed": {"# Mine\n" + strings.ReplaceAll(section, "new", "old") + "more", "# Mine\n" + section + "more", Differs},
	} {
		if c.want == "" {
			c.want = c.have
		}
		got, state, err := joinAgents([]byte(c.have), text)
		if err != nil || string(got) != c.want || state != c.state {
			t.Errorf("%s: %s %v\n%s\nwant %s\n%s", name, state, err, got, c.state, c.want)
		}
		again, state, err := joinAgents(got, text)
		if err != nil || state != Same || !bytes.Equal(again, got) {
			t.Errorf("%s, again: %s %v\n%s", name, state, err, again)
		}
	}
	for _, have := range []string{agentsBegin, agentsEnd, agentsEnd + agentsBegin, section + section, section + agentsEnd} {
		if got, state, err := joinAgents([]byte(have), text); err == nil {
			t.Errorf("%q: %s %s", have, state, got)
		}
	}
}

// TestPlanMCP: what is new is a project that clients read.
func TestPlanMCP(t *testing.T) {
	t.Parallel()
	files, err := PlanMCP(fstest.MapFS{})
	check(t, err)
	var servers struct {
		MCPServers map[string]struct {
			Type, Command string
			Args          []string
		} `json:"mcpServers"`
	}
	check(t, json.Unmarshal(files[0].Want, &servers))
	one := servers.MCPServers["countersign"]
	if len(files) != 2 || files[0].State != Missing || one.Type != "stdio" || one.Command != "countersign" || strings.Join(one.Args, " ") != "mcp" {
		t.Errorf("%+v", servers)
	}
	if text := string(files[1].Want); files[1].Path != AgentsFile || !strings.Contains(text, "`propose_worktree`") || strings.Count(text, agentsBegin) != 1 {
		t.Errorf("%s", text)
	}
	if again, err := PlanMCP(fstest.MapFS{ServersFile: {Data: files[0].Want}, AgentsFile: {Data: files[1].Want}}); err != nil || again[0].State != Same || again[1].State != Same || Consent(again) != nil {
		t.Errorf("%+v %v", again, err)
	}
	if _, err := PlanMCP(fstest.MapFS{ServersFile: {Data: []byte("{")}}); err == nil || !strings.HasPrefix(err.Error(), ".mcp.json: invalid JSON") {
		t.Errorf("%v", err)
	}
}

// TestWriteChangedMeanwhile: what somebody wrote into a file while the change to it was shown is not lost, nor is what a link
// in its place leads to.
func TestWriteChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(root *os.Root) error{
		"edited": func(root *os.Root) error { return root.WriteFile(AgentsFile, []byte("mine, and more\n"), 0o644) },
		"a link": func(root *os.Root) error {
			return errors.Join(root.Rename(AgentsFile, "other.md"), root.Symlink("other.md", AgentsFile))
		},
		"gone": func(root *os.Root) error { return root.Remove(AgentsFile) },
	} {
		t.Run(name, func(t *testing.T) {
			root, err := os.OpenRoot(t.TempDir())
			check(t, err)
			defer root.Close()
			check(t, root.WriteFile(AgentsFile, []byte("mine\n"), 0o644))
			files, err := PlanMCP(root.FS())
			check(t, err)
			check(t, change(root))
			before, _ := root.ReadFile(AgentsFile)
			if err := Write(root, files); !errors.Is(err, fault.Refused) {
				t.Errorf("%v", err)
			}
			if after, _ := root.ReadFile(AgentsFile); string(after) != string(before) {
				t.Errorf("%s", after)
			}
		})
	}
}

// TestWriteWhole: a file is never half written: another one takes its place, with its mode, and what a run that was
// killed has left beside it is no obstacle, nor followed.
func TestWriteWhole(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	check(t, err)
	defer root.Close()
	const mine = "{\"mcpServers\": {\"x\": {}}}\n"
	check(t, root.WriteFile(ServersFile, []byte(mine), 0o600))
	check(t, root.Link(ServersFile, "the same file"))
	check(t, root.WriteFile("elsewhere", []byte("left alone\n"), 0o644))
	check(t, root.Symlink("elsewhere", AgentsFile+".countersign-new"))
	check(t, root.WriteFile(ServersFile+".countersign-new", []byte("half"), 0o644))
	files, err := PlanMCP(root.FS())
	check(t, err)
	check(t, Write(root, files))
	for name, want := range map[string]string{ServersFile: string(files[0].Want), AgentsFile: string(files[1].Want), "the same file": mine, "elsewhere": "left alone\n"} {
		if got, err := root.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if info, err := root.Lstat(ServersFile); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("%v %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(root.Name())
	if err != nil || len(entries) != 4 {
		t.Errorf("%v %v", entries, err)
	}

	// What appears meanwhile is not written over.
	check(t, root.Remove(AgentsFile))
	files, err = PlanMCP(root.FS())
	check(t, err)
	check(t, root.WriteFile(AgentsFile, []byte("mine"), 0o644))
	if err := Write(root, files); !errors.Is(err, fault.Refused) {
		t.Errorf("%v", err)
	}
	if got, _ := root.ReadFile(AgentsFile); string(got) != "mine" {
		t.Errorf("%s", got)
	}
}
