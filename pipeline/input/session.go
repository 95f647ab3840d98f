package input

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// The formats that ReadTrace tells beside steps (docs/agents.md).
const (
	TraceClaude     = "claude-code"
	TraceCodex      = "codex"
	TraceCodexExec  = "codex-exec"
	TraceEvents     = "session-events"
	TraceGateway    = "mcp-gateway"
	TraceAgentTrace = "agent-trace"
	TraceGitAI      = "git-ai"
)

// TraceFormats are the names of all.
var TraceFormats = []string{TraceClaude, TraceCodex, TraceCodexExec, TraceEvents, TraceGateway, TraceAgentTrace, TraceGitAI}

// A logFormat tells whose log an object is from, and reads one.
type logFormat struct {
	name string
	is   func(object map[string]any) bool
	read func(s *session, object map[string]any) error
}

var logFormats = []logFormat{
	{TraceClaude, isClaude, (*session).claude},
	{TraceCodex, isCodex, (*session).codex},
	{TraceCodexExec, isCodexExec, (*session).codexExec},
	{TraceEvents, isEvent, (*session).event},
	{TraceGateway, isGateway, (*session).gateway},
	{TraceAgentTrace, isAgentTrace, (*session).agentTrace},
}

// A session turns the objects of a log into steps of a trace.
type session struct {
	format string
	read   func(s *session, object map[string]any) error
	clean  func(string) string

	steps []any
	calls map[string]map[string]any // the last call of each id
	open  []map[string]any          // calls since the agent was last interrupted
	said  map[string]bool           // what the agent said in this turn, of Codex
	cwd   string                    // where the agent works: what is below it is shown without it
}

// maxLooked is how many objects of a file are looked at to tell whose log it is.
const maxLooked = 100

// sessionOf tells by the first objects whose log a file is, and returns nil for nobody's: a
// file that begins with a step is a trace already.
func sessionOf(raw []byte) *session {
	n := 0
	for r := range records(raw) {
		if n++; n > maxLooked || n == 1 && r.object != nil && checkStep(r.object) == "" {
			break
		}
		for _, f := range logFormats {
			if r.object != nil && f.is(r.object) {
				return &session{format: f.name, read: f.read, calls: map[string]map[string]any{}, said: map[string]bool{}}
			}
		}
	}
	return nil
}

// WorksIn is the directory in which the session of a log works, as its first lines say, "" where they do not.
func WorksIn(raw []byte) string {
	n := 0
	for r := range records(raw) {
		payload, _ := r.object["payload"].(map[string]any) // of Codex
		if cwd := cmp.Or(said(r.object, "cwd"), said(payload, "cwd")); cwd != "" {
			return cwd
		}
		if n++; n > maxLooked {
			break
		}
	}
	return ""
}

// all reads a whole log. Its last line may be cut off, as in a session that goes on. Lines that cannot be
// read are passed over, and the first step says which.
func (s *session) all(raw []byte) ([]any, error) {
	var unread []int
	for r := range records(raw) {
		if r.object == nil && r.cut {
			break
		}
		if had := len(s.steps); r.object == nil || s.read(s, r.object) != nil {
			s.steps, unread = s.steps[:had], append(unread, r.line)
		}
		if len(s.steps)+min(1, len(unread)) > maxSteps {
			return nil, tooMany(r.line)
		}
	}
	for _, step := range s.steps {
		if why := checkStep(step.(map[string]any)); why != "" {
			return nil, &patch.Error{Message: "the session: " + why}
		}
	}
	if len(unread) > 0 {
		lines := strings.Trim(strings.ReplaceAll(fmt.Sprint(unread[:min(10, len(unread))]), " ", ", "), "[]")
		if len(unread) > 10 {
			lines += fmt.Sprintf(" and %d others", len(unread)-10)
		}
		s.steps = slices.Insert(s.steps, 0, any(map[string]any{"type": stepUnread, "lines": lines}))
	}
	return s.steps, nil
}

// Unread says which lines of a log the steps made of it lack, "" for none.
func Unread(steps []any) string {
	for _, step := range steps[:min(1, len(steps))] {
		if object, _ := step.(map[string]any); stepType(object) == stepUnread {
			return "what is in these lines of the log could not be read: " + said(object, "lines")
		}
	}
	return ""
}

// say adds a step that is words alone, if there are any.
func (s *session) say(kind, member, text string) {
	if strings.TrimSpace(text) != "" {
		step := map[string]any{"type": kind}
		s.put(step, member, text)
		s.steps = append(s.steps, step)
	}
}

// plan adds a list of things to do. title is the member that has the words of each.
func (s *session) plan(doc any, title string) {
	steps := []any{}
	for _, todo := range objects(doc) {
		status := said(todo, "status")
		if done, told := todo["completed"].(bool); told {
			status = map[bool]string{true: ledger.ItemCompleted, false: ledger.StepPending}[done]
		}
		steps = append(steps, map[string]any{"title": said(todo, title), "status": status})
	}
	if len(steps) > 0 {
		s.steps = append(s.steps, map[string]any{"type": stepPlan, "steps": steps})
	}
}

// commands are the tools whose calls are commands.
var commands = map[string]bool{
	"Bash": true, "bash": true, "powershell": true, "shell": true, "shell_command": true, "exec_command": true, "local_shell": true,
}

// editors are the tools that change the one file which the member of their input names.
var editors = map[string]string{
	"Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path", "edit": "path", "create": "path",
}

// call adds a call of a tool, which is in progress until its result is read. One of an
// MCP server has the server's name in the tool's.
func (s *session) call(id, name string, asked any, at string) map[string]any {
	step := map[string]any{"tool": s.name(cmp.Or(name, "unnamed")), "status": ledger.ItemInProgress}
	if server, tool, is := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__"); is && strings.HasPrefix(name, "mcp__") && server != "" && tool != "" {
		step["server"], step["tool"] = s.name(server), s.name(tool)
	}
	object, _ := asked.(map[string]any)
	if member := editors[name]; said(object, member) != "" {
		step["paths"] = []any{s.below(said(object, member))}
	}
	if commands[name] {
		step["exit_code"] = nil
		if command := said(object, "command"); command != "" {
			asked = command
		}
	}
	if text := display(asked); len(text) > maxClipped {
		s.put(step, "input", text)
	} else if asked != nil {
		step["input"] = asked
	}
	if isMoment(at) {
		step["started_at"] = at
	}
	s.steps, s.open = append(s.steps, step), append(s.open, step)
	if id != "" {
		s.calls[id] = step
	}
	return step
}

// callOn adds a call of a tool of an MCP server.
func (s *session) callOn(server, id, name string, asked any, at string) map[string]any {
	step := s.call(id, name, asked, at)
	s.on(step, server, name)
	return step
}

// on makes a call one of a tool of an MCP server, which is no command, however it is called.
func (s *session) on(step map[string]any, server, name string) {
	if server != "" {
		step["server"], step["tool"] = s.name(server), s.name(name)
		delete(step, "exit_code")
	}
}

// An outcome is what a log tells of the end of a call.
type outcome struct {
	output string
	at     string
	status string // one of an item's, "" where the log does not tell
	code   *int   // of a command
}

// end adds what came of a call to its step, nil for a call that is not known. What was
// told before stays: a log that tells twice tells the exact one first.
func (s *session) end(step map[string]any, o outcome) {
	if step == nil {
		return
	}
	if _, told := step["output"]; !told {
		s.put(step, "output", o.output)
	}
	if step["status"] != ledger.ItemInProgress {
		return
	}
	code, isCommand := step["exit_code"]
	if isCommand && code == nil && o.code != nil && o.status != ledger.ItemCancelled {
		step["exit_code"] = float64(*o.code)
		o.status = map[bool]string{true: ledger.ItemCompleted, false: ledger.ItemFailed}[*o.code == 0]
	}
	if o.status == "" {
		return
	}
	step["status"] = o.status
	if began, ended := moment(step["started_at"]), moment(o.at); !began.IsZero() && !ended.IsZero() && !ended.Before(began) {
		step["ended_at"] = o.at
	}
}

// cancel ends each call that has no result: the agent was interrupted.
func (s *session) cancel() {
	for _, step := range s.open {
		if step["status"] == ledger.ItemInProgress {
			step["status"] = ledger.ItemCancelled
		}
	}
	s.open = nil
}

// below is a path as it is told, but without the directory that the agent works in.
func (s *session) below(name string) string {
	if s.cwd != "" {
		name = strings.TrimPrefix(name, strings.TrimSuffix(s.cwd, "/")+"/")
	}
	return name
}

// name is a text as a name of at most 200 bytes.
func (s *session) name(text string) string {
	line := ledger.OneLine(s.clean(text), 200)
	return cmp.Or(strings.ToValidUTF8(line[:min(200, len(line))], ""), "unnamed")
}
