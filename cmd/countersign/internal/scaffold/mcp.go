package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/agent"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// The files of init --mcp: the servers of a project, for clients of the Model Context
// Protocol, and what agents are told.
const (
	ServersFile = ".mcp.json"
	AgentsFile  = "AGENTS.md"
)

// The files that init --agents adds: settings by which agents ask, though nothing holds them.
const (
	claudeFile      = ".claude/settings.json"
	codexHooksFile  = ".codex/hooks.json"
	codexConfigFile = ".codex/config.toml"
	opencodeFile    = "opencode.json"
)

// Joined is the state of a file of the owner's that init --mcp adds to.
const Joined = "joined"

// serverName is what the server is called by all clients.
const serverName = "countersign"

// servers is the server of .mcp.json.
var servers = []addition{{path: []string{"mcpServers", serverName}, value: `{"type": "stdio", "command": "countersign", "args": ["mcp"]}`}}

// What a hook says to the agent when it denies.
const (
	noEdits = "A person approves each change before it is made here: " +
		"call the tool propose_edits or propose_patch of the MCP server countersign, and leave the file alone."
	noCommits = "A person approves each change before it is made here: do not commit and do not push, as this call seems to. " +
		"Call propose_edits or propose_patch of the MCP server countersign."
)

// gitWrites finds "git commit" and "git push" in any text of a call as JSON, with what may stand between the words.
const gitWrites = `git([^"\\]|\\.)*( |\\[nt])(commit|push)`

// hooks are the two by which Claude Code and Codex, which took over its form, deny. Exit code 2 denies, with what is on standard error as
// the reason; any other failure would let the call pass. So no program is asked that may be missing, but for grep, whose failure denies.
func hooks() (all []addition) {
	for _, h := range []struct{ matcher, unless, reason, mark string }{
		{"Edit|MultiEdit|Write|NotebookEdit|apply_patch", "", noEdits, "# countersign: edits"},
		{"Bash", ` || { grep -Eq '` + gitWrites + `'; [ $? -eq 1 ]; }`, noCommits, "# countersign: commits"},
	} {
		command := fmt.Sprintf(`[ -n "$%s" ]%s || { echo "%s" >&2; exit 2; } %s`, agent.InScratch, h.unless, h.reason, h.mark)
		var value bytes.Buffer
		e := json.NewEncoder(&value)
		e.SetEscapeHTML(false)
		if err := e.Encode(command); err != nil {
			panic("init: " + err.Error())
		}
		all = append(all, addition{
			path: []string{"hooks", "PreToolUse"}, mark: h.mark,
			value: fmt.Sprintf(`{"matcher": %q, "hooks": [{"type": "command", "command": %s, "timeout": 60, "onFailure": "block"}]}`,
				h.matcher, strings.TrimSpace(value.String())),
		})
	}
	return all
}

// codexServer is the server in Codex's configuration, which hands on no variable that it does not name.
const codexServer = `[mcp_servers.countersign]
command = "countersign"
args = ["mcp"]
env_vars = ["` + agent.InScratch + `"]
`

// opencodeJSON has opencode's server, and what it denies by itself; countersign agent allows it again by a variable.
var opencodeJSON = []addition{
	{path: []string{"$schema"}, value: `"https://opencode.ai/config.json"`, usual: true}, // which opencode adds by itself
	{path: []string{"mcp", serverName}, value: `{"type": "local", "command": ["countersign", "mcp"], "enabled": true}`},
	{path: []string{"permission", "edit"}, value: `"deny"`},
	{path: []string{"permission", "bash", "*git *commit*"}, value: `"deny"`},
	{path: []string{"permission", "bash", "*git *push*"}, value: `"deny"`},
}

// A joiner makes what is to be of a file that there is, nil for none, and says in which state that was.
type joiner = func(have []byte) (want []byte, state string, err error)

// PlanMCP finds out what init --mcp does to the files that are there, and with agents init --agents. A file that is not what
// it must be, as a .mcp.json that is no JSON, is an error.
func PlanMCP(tree fs.FS, agents bool) ([]Planned, error) {
	told, err := templates.ReadFile("files/agents.md")
	if err != nil {
		panic("init: " + err.Error())
	}
	joinAll := func(all []addition) joiner {
		return func(have []byte) ([]byte, string, error) { return joinJSON(have, all) }
	}
	type planned struct {
		path string
		join joiner
	}
	plan := []planned{{ServersFile, joinAll(servers)}, {AgentsFile, agentsSection(strings.ReplaceAll(string(told), "\r\n", "\n")).join}}
	if agents {
		plan = append(plan, planned{claudeFile, joinAll(hooks())}, planned{codexHooksFile, joinAll(hooks())},
			planned{codexConfigFile, joinCodex}, planned{opencodeFile, joinAll(opencodeJSON)})
	}
	var files []Planned
	for _, f := range plan {
		have, err := ReadThere(tree, f.path)
		if err != nil {
			return nil, err
		}
		want, state, err := f.join(have)
		if err != nil {
			return nil, fault.Refuse(fmt.Sprintf("%s: %v: nothing was written", f.path, err), "mend that file, or move it away")
		}
		files = append(files, Planned{File: File{Path: f.path}, State: state, Have: have, Want: want})
	}
	return files, nil
}

// agentsSection is what AGENTS.md has of init.
func agentsSection(text string) section {
	return section{begin: "<!-- countersign: begin (written by countersign init --mcp) -->", end: "<!-- countersign: end -->", head: "# For agents\n\n", text: text}
}

var inlineServers = canon.Regexp(`(?m)^[ \t]*["']?mcp_servers["']?[ \t]*=`)

// joinCodex puts the server into Codex's configuration, unless the owner has done so.
func joinCodex(have []byte) (want []byte, state string, err error) {
	s := section{begin: "# countersign: begin (written by countersign init --agents)", end: "# countersign: end", text: codexServer}
	want, state, err = s.join(have)
	switch {
	case state != Joined:
	case bytes.Contains(have, []byte("mcp_servers")) && bytes.Contains(have, []byte("countersign")):
		err = errors.New("it has a server countersign that init did not write")
	case inlineServers().Match(have): // to which no table can be added
		err = errors.New("it has its servers in one value: give each a table, [mcp_servers.NAME]")
	}
	return want, state, err
}

// Consent is an error if files of the owner's would be changed by init with this flag, and nobody is there to be asked.
func Consent(files []Planned, flag string) error {
	if changed := inStates(files, Joined, Differs); changed != "" {
		return fault.Refuse("nothing was written: these are yours, and nobody is here to be asked: "+changed, "countersign init --"+flag+" --dry-run")
	}
	return nil
}

// inStates are the files in some states, and how many lines would change in each.
func inStates(files []Planned, states ...string) string {
	var changed []string
	for _, f := range files {
		if slices.Contains(states, f.State) {
			removed, added := Changed(f.Have, f.Want)
			changed = append(changed, fmt.Sprintf("%s (%d lines would go, %d come)", f.Path, removed, added))
		}
	}
	return strings.Join(changed, ", ")
}

// nextMCP are the steps once a project's clients know the server.
func (r Result) nextMCP() []string {
	var paths []string
	for _, f := range r.Files {
		paths = append(paths, f.Path)
	}
	steps := []string{
		"git add " + strings.Join(paths, " ") + ` && git commit -m "Have agents propose" && git push` + " (for everybody who works on it)",
		"start your client anew and let it use the server " + serverName + " (Claude Code asks; docs/mcp.md has the lines for Codex, Cursor, VS Code and Zed)",
	}
	if len(changes(r.Files)) == 0 {
		steps = steps[1:]
	}
	return steps
}
