package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// The files of init --mcp: the servers of a project, for clients of the Model Context
// Protocol, and what agents are told.
const (
	ServersFile = ".mcp.json"
	AgentsFile  = "AGENTS.md"
)

// Joined is the state of a file of the owner's that init --mcp adds to.
const Joined = "joined"

// The member of mcpServers that init writes, and its value.
const (
	serversKey = "mcpServers"
	serverName = "countersign"
	serverJSON = `{"type": "stdio", "command": "countersign", "args": ["mcp"]}`
)

// The lines around what AGENTS.md has of init.
const (
	agentsBegin = "<!-- countersign: begin (written by countersign init --mcp) -->"
	agentsEnd   = "<!-- countersign: end -->"
)

// PlanMCP finds out what init --mcp does to the files that are there. A file that is not what
// it must be, as a .mcp.json that is no JSON, is an error.
func PlanMCP(tree fs.FS) ([]Planned, error) {
	section, err := templates.ReadFile("files/agents.md")
	if err != nil {
		panic("init: " + err.Error())
	}
	var files []Planned
	for _, f := range []struct {
		path string
		join func(have []byte) (want []byte, state string, err error)
	}{
		{ServersFile, joinServers},
		{AgentsFile, func(have []byte) ([]byte, string, error) {
			return joinAgents(have, strings.ReplaceAll(string(section), "\r\n", "\n"))
		}},
	} {
		have, err := readThere(tree, f.path)
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

// Consent is an error if files of the owner's would be changed, and nobody is there to be asked.
func Consent(files []Planned) error {
	if changed := inStates(files, Joined, Differs); changed != "" {
		return fault.Refuse("nothing was written: these are yours, and nobody is here to be asked: "+changed, "countersign init --mcp --dry-run")
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

// joinServers puts the server into a .mcp.json, nil for none. All else stays as it is, byte
// for byte.
func joinServers(have []byte) (want []byte, state string, err error) {
	if have == nil {
		return []byte("{\n  \"" + serversKey + "\": {\n    \"" + serverName + "\": " + serverJSON + "\n  }\n}\n"), Missing, nil
	}
	doc, err := canon.Parse(have)
	if err != nil {
		return nil, "", err
	}
	top, ok := doc.(map[string]any)
	if !ok {
		return nil, "", errors.New("it is no object")
	}
	servers, there := top[serversKey]
	named, ok := servers.(map[string]any)
	if there && !ok {
		return nil, "", errors.New(serversKey + " is no object")
	}
	ours, err := canon.Parse([]byte(serverJSON))
	if err != nil {
		panic("init: " + err.Error())
	}
	if theirs, known := named[serverName]; known {
		if reflect.DeepEqual(theirs, ours) {
			return have, Same, nil
		}
		at := membersOf(have, 0).at(serversKey)
		at = membersOf(have, at.from).at(serverName)
		return splice(have, at.from, at.to, serverJSON), Differs, nil
	}
	line := fmt.Sprintf("%q: %s", serverName, serverJSON)
	if there {
		return insert(have, membersOf(have, membersOf(have, 0).at(serversKey).from), line), Joined, nil
	}
	return insert(have, membersOf(have, 0), fmt.Sprintf("%q: {%s}", serversKey, line)), Joined, nil
}

// A member is where the value of an object's member is.
type member struct {
	name     string
	from, to int
}

// An object is where an object is in a text, from its brace, and where its members are.
type object struct {
	from    int
	members []member
}

// membersOf reads the object that begins at a place in valid JSON, after any white space.
func membersOf(text []byte, from int) object {
	from += bytes.IndexByte(text[from:], '{')
	d := json.NewDecoder(bytes.NewReader(text[from:]))
	_, err := d.Token()
	o := object{from: from}
	for err == nil && d.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = d.Token(); err == nil {
			err = d.Decode(&value)
		}
		if err == nil {
			to := from + int(d.InputOffset())
			o.members = append(o.members, member{name.(string), to - len(value), to})
		}
	}
	if err != nil {
		panic("init: " + err.Error()) // it is valid
	}
	return o
}

// at is where the value of a member is that there is.
func (o object) at(name string) member {
	for _, m := range o.members {
		if m.name == name {
			return m
		}
	}
	panic("init: no member " + name)
}

// insert adds a member behind the others of an object, on a line of its own where they have
// theirs.
func insert(text []byte, o object, line string) []byte {
	if len(o.members) > 0 {
		space := leading(text[o.from+1:])
		if !strings.Contains(space, "\n") {
			space = " "
		}
		last := o.members[len(o.members)-1].to
		return splice(text, last, last, ","+space+line)
	}
	begin := text[bytes.LastIndexByte(text[:o.from], '\n')+1 : o.from]
	outer := strings.Trim(leading(begin), "\r\n")
	end := lineEnd(text)
	closing := o.from + 1 + len(leading(text[o.from+1:]))
	return splice(text, o.from+1, closing, end+outer+"  "+line+end+outer)
}

// leading is the white space of JSON that a text begins with.
func leading(text []byte) string {
	return string(text[:len(text)-len(bytes.TrimLeft(text, " \t\r\n"))])
}

// lineEnd is what ends the lines of a text.
func lineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

func splice(text []byte, from, to int, with string) []byte {
	return append(append(append([]byte{}, text[:from]...), with...), text[to:]...)
}

// joinAgents puts the section into an AGENTS.md, nil for none, once.
func joinAgents(have []byte, section string) (want []byte, state string, err error) {
	section = agentsBegin + "\n" + section + agentsEnd + "\n"
	if have == nil {
		return []byte("# For agents\n\n" + section), Missing, nil
	}
	text, end := string(have), lineEnd(have)
	section = strings.ReplaceAll(section, "\n", end)
	from, to := strings.Index(text, agentsBegin), strings.Index(text, agentsEnd)
	switch {
	case from < 0 && to < 0:
		gap := ""
		if text != "" && !strings.HasSuffix(text, "\n") {
			gap = end
		}
		if text != "" {
			gap += end
		}
		return []byte(text + gap + section), Joined, nil
	case from < 0 || to < from || strings.Count(text, agentsBegin) > 1 || strings.Count(text, agentsEnd) > 1:
		return nil, "", fmt.Errorf("the lines around the section are not there once each, in order: %s and %s", agentsBegin, agentsEnd)
	}
	to += len(agentsEnd)
	section = strings.TrimRight(section, "\r\n")
	if text[from:to] == section {
		return have, Same, nil
	}
	return []byte(text[:from] + section + text[to:]), Differs, nil
}

// nextMCP are the steps once a project's clients know the server.
func (r Result) nextMCP() []string {
	steps := []string{
		"git add " + ServersFile + " " + AgentsFile + ` && git commit -m "Have agents propose" && git push` + " (for everybody who works on it)",
		"start your client anew and let it use the server " + serverName + " (Claude Code asks; docs/mcp.md has the lines for Codex, Cursor, VS Code and Zed)",
	}
	if len(changes(r.Files)) == 0 {
		steps = steps[1:]
	}
	return steps
}

// MCPDocument is what init --mcp came to, as data. Diff is what is shown of one.
func (r Result) MCPDocument(diff string) any {
	list := make([]any, len(r.Files))
	for i, f := range r.Files {
		list[i] = document{"path": f.Path, "state": f.State}
	}
	return document{"files": list, "dry_run": r.Way == WouldWrite, "diff": diff, "next": r.nextMCP()}
}
