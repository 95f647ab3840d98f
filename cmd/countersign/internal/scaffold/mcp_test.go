package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/agent"
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
		got, state, err := joinJSON([]byte(c.have), servers)
		if err != nil || string(got) != c.want || state != c.state {
			t.Errorf("%s: %s %v\n%s\nwant %s\n%s", name, state, err, got, c.state, c.want)
		}
	}
	for _, have := range []string{"", " ", "{", "[]", "null", `"x"`, `{"mcpServers": []}`, `{"mcpServers": null}`, `{"mcpServers": "x"}`, `{"mcpServers": {}, "mcpServers": {}}`, `{"mcpServers": {"a": 1, "a": 2}}`, "{} {}", "// a\n{}", "{\"a\": 1,}", "\xef\xbb\xbf{}"} {
		if got, state, err := joinJSON([]byte(have), servers); err == nil {
			t.Errorf("%q: %s %s", have, state, got)
		}
	}
}

// FuzzJoinJSON: what comes out has all that went in, and the additions; a second time changes nothing.
func FuzzJoinJSON(f *testing.F) {
	for _, have := range []string{"{}", `{"mcpServers":{}}`, "{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}", `{"a":{"mcpServers":{}},"mcpServers":{"countersign":1,"z":[{}]}}`, "{\r\n}", `{"mcpServer\u0073":{}}`, "[]",
		`{"a":"}{","mcpServers": {"b" : "\""}  , "c":1e3}`, `{"hooks": {"PreToolUse": [ {"matcher": "]", "x": [1]}, {"command": "x # countersign: edits"} ], "Stop": []}, "permissions": {"deny": []}}`,
		`{"hooks": {"PreToolUse": []}}`, `{"permission": {"edit": "deny", "bash": {"*": "ask"}}, "mcp": {}}`, `{"permission": {"edit": "ask"}}`} {
		f.Add([]byte(have))
	}
	f.Fuzz(func(t *testing.T, have []byte) {
		for _, all := range [][]addition{servers, hooks(), opencodeJSON} {
			want, state, err := joinJSON(append([]byte{}, have...), all)
			before, parsed := canon.Parse(have)
			if err != nil {
				continue
			}
			if parsed != nil {
				t.Fatalf("%q is no JSON, and was taken", have)
			}
			doc, err := canon.Parse(want)
			if err != nil {
				t.Fatalf("%q: %v", want, err)
			}
			for _, a := range all {
				put(t, before, a)
			}
			if !reflect.DeepEqual(before, doc) {
				t.Fatalf("%q became %q", have, want)
			}
			again, second, err := joinJSON(want, all)
			if err != nil || second != Same || !bytes.Equal(again, want) || (state == Same) != bytes.Equal(have, want) {
				t.Fatalf("again: %q %s %v", again, second, err)
			}
		}
	})
}

// put makes an addition to a parsed document.
func put(t *testing.T, doc any, a addition) {
	value, err := canon.Parse([]byte(a.value))
	check(t, err)
	last := len(a.path) - 1
	for _, name := range a.path[:last] {
		holder := doc.(map[string]any)
		if holder[name] == nil {
			holder[name] = map[string]any{}
		}
		doc = holder[name]
	}
	holder, name := doc.(map[string]any), a.path[last]
	if _, there := holder[name]; a.mark == "" {
		if a.usual && there {
			return
		}
		holder[name] = value
		return
	}
	list, _ := holder[name].([]any)
	for i, element := range list {
		if holds(element, value) {
			return
		}
		if text, _ := canon.Marshal(element); reflect.DeepEqual(element, value) || bytes.Contains(text, []byte(a.mark)) {
			list[i] = value
			return
		}
	}
	holder[name] = append(list, value)
}

func TestJoinAgents(t *testing.T) {
	t.Parallel()
	const text = "## New\n\nnew\n"
	agentsBegin, agentsEnd := agentsSection("").begin, agentsSection("").end
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
		got, state, err := agentsSection(text).join([]byte(c.have))
		if err != nil || string(got) != c.want || state != c.state {
			t.Errorf("%s: %s %v\n%s\nwant %s\n%s", name, state, err, got, c.state, c.want)
		}
		again, state, err := agentsSection(text).join(got)
		if err != nil || state != Same || !bytes.Equal(again, got) {
			t.Errorf("%s, again: %s %v\n%s", name, state, err, again)
		}
	}
	for _, have := range []string{agentsBegin, agentsEnd, agentsEnd + agentsBegin, section + section, section + agentsEnd} {
		if got, state, err := agentsSection(text).join([]byte(have)); err == nil {
			t.Errorf("%q: %s %s", have, state, got)
		}
	}
}

// TestPlanMCP: what is new is a project that clients read.
func TestPlanMCP(t *testing.T) {
	t.Parallel()
	files, err := PlanMCP(fstest.MapFS{}, false)
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
	if text := string(files[1].Want); files[1].Path != AgentsFile || !strings.Contains(text, "`propose_worktree`") || strings.Count(text, agentsSection("").begin) != 1 {
		t.Errorf("%s", text)
	}
	if again, err := PlanMCP(fstest.MapFS{ServersFile: {Data: files[0].Want}, AgentsFile: {Data: files[1].Want}}, false); err != nil || again[0].State != Same || again[1].State != Same || Consent(again, "mcp") != nil {
		t.Errorf("%+v %v", again, err)
	}
	if _, err := PlanMCP(fstest.MapFS{ServersFile: {Data: []byte("{")}}, false); err == nil || !strings.HasPrefix(err.Error(), ".mcp.json: invalid JSON") {
		t.Errorf("%v", err)
	}
}

// What a person has put beside what is init's stays, or nothing is written.
func TestJoinKeepsWhatIsBeside(t *testing.T) {
	t.Parallel()
	fresh, _, err := joinJSON(nil, hooks())
	check(t, err)
	beside := bytes.ReplaceAll(fresh, []byte(`"hooks": [{`), []byte(`"hooks": [{"type": "command", "command": "lint"}, {`))
	if got, state, err := joinJSON(beside, hooks()); err != nil || state != Same || !bytes.Equal(got, beside) {
		t.Errorf("%s %v\n%s", state, err, got)
	}
	for _, have := range [][]byte{
		bytes.ReplaceAll(beside, []byte("60"), []byte("50")),
		bytes.ReplaceAll(fresh, []byte(`"timeout": 60, "onFailure": "block"}]`), []byte(`"timeout": 50}], "mine": 1`)),
	} {
		if got, state, err := joinJSON(have, hooks()); err == nil {
			t.Errorf("%s: of\n%s\nis made\n%s", state, have, got)
		}
	}
	if got, state, err := joinJSON(bytes.ReplaceAll(fresh, []byte("60"), []byte("50")), hooks()); err != nil || state != Differs || !bytes.Equal(got, fresh) {
		t.Errorf("%s %v\n%s", state, err, got)
	}
	for _, have := range []string{"mcp_servers = { a = { command = \"a\" } }\n", "x = 1\n \"mcp_servers\"= {}\n"} {
		if got, state, err := joinCodex([]byte(have)); err == nil {
			t.Errorf("%s\n%s", state, got)
		}
	}
}

// TestPlanAgents: what agents read of init --agents is added to what is there, whose words stay.
func TestPlanAgents(t *testing.T) {
	t.Parallel()
	const mine = `{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": []}]}, "permissions": {"allow": ["Edit"]}}`
	there := fstest.MapFS{claudeFile: {Data: []byte(mine)}, codexConfigFile: {Data: []byte("model = \"m\"")}, opencodeFile: {Data: []byte(`{"permission": {"bash": {"*": "ask"}}}`)}}
	files, err := PlanMCP(there, true)
	check(t, err)
	states := map[string]string{}
	for _, f := range files {
		states[f.Path] = f.State
		there[f.Path] = &fstest.MapFile{Data: f.Want}
	}
	want := map[string]string{ServersFile: Missing, AgentsFile: Missing, claudeFile: Joined, codexHooksFile: Missing, codexConfigFile: Joined, opencodeFile: Joined}
	if !reflect.DeepEqual(states, want) {
		t.Errorf("%v", states)
	}
	if err := Consent(files, "agents"); err == nil || !strings.Contains(err.Error(), claudeFile) {
		t.Errorf("%v", err)
	}
	if text := string(there[codexConfigFile].Data); !strings.HasPrefix(text, "model = \"m\"\n\n# countersign: begin") || !strings.Contains(text, "\n[mcp_servers.countersign]\n") {
		t.Errorf("%s", text)
	}
	again, err := PlanMCP(there, true)
	check(t, err)
	for _, f := range again {
		if f.State != Same {
			t.Errorf("%s: %s\n%s", f.Path, f.State, f.Want)
		}
	}
	for path, have := range map[string]string{
		claudeFile: `{"hooks": {"PreToolUse": {}}}`, codexHooksFile: `{"hooks": []}`, codexConfigFile: "[mcp_servers.countersign]\ncommand = \"x\"\n",
		opencodeFile: `{"permission": {"edit": "allow"}}`,
	} {
		if _, err := PlanMCP(fstest.MapFS{strings.TrimSpace(path): {Data: []byte(have)}}, true); err == nil {
			t.Errorf("%s: %s was changed", path, have)
		}
	}
}

// TestHooks: what the hooks deny, and that they deny where they cannot tell. In a scratch tree they deny nothing.
func TestHooks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	all := hooks()
	call := func(command string) string {
		return fmt.Sprintf(`{"tool_name":"Bash","tool_input":{"command":%q}}`, command)
	}
	for _, c := range []struct {
		hook  int
		input string
		env   []string
		exit  int
	}{
		{0, "", nil, 2}, {0, "", []string{"PATH=/nowhere"}, 2}, {0, "", []string{agent.InScratch + "=1"}, 0}, {0, "", []string{agent.InScratch + "="}, 2},
		{1, call("ls"), nil, 0}, {1, call("git status"), nil, 0}, {1, call("git commit -m x"), nil, 2}, {1, call("cd x && git -C y push"), nil, 2},
		{1, call(`git -c user.name="x" commit`), nil, 2}, {1, call("git\tcommit"), nil, 2}, {1, call("git \\\n  commit"), nil, 2}, {1, call("git log; ls commits"), nil, 2},
		{1, call("git commit"), []string{agent.InScratch + "=1"}, 0}, {1, call("ls"), []string{"PATH=/nowhere"}, 2}, {1, `{"a":"git","b":" commit"}`, nil, 0},
	} {
		var value struct{ Hooks []struct{ Command string } }
		check(t, json.Unmarshal([]byte(all[c.hook].value), &value))
		cmd := exec.Command("/bin/sh", "-c", value.Hooks[0].Command)
		var said strings.Builder
		cmd.Stdin, cmd.Stderr = strings.NewReader(c.input), &said
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, c.env...)
		_ = cmd.Run()
		if exit := cmd.ProcessState.ExitCode(); exit != c.exit || (exit == 2) != strings.Contains(said.String(), "propose_edits") {
			t.Errorf("%d %s %v: exit code %d, %s", c.hook, c.input, c.env, exit, said.String())
		}
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
			files, err := PlanMCP(root.FS(), false)
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
	files, err := PlanMCP(root.FS(), false)
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
	files, err = PlanMCP(root.FS(), false)
	check(t, err)
	check(t, root.WriteFile(AgentsFile, []byte("mine"), 0o644))
	if err := Write(root, files); !errors.Is(err, fault.Refused) {
		t.Errorf("%v", err)
	}
	if got, _ := root.ReadFile(AgentsFile); string(got) != "mine" {
		t.Errorf("%s", got)
	}
}
