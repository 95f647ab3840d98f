package input

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A claim says who wrote lines of a file, and nothing of how: no tool was called in it, and
// nobody here saw anything.
type claim struct {
	path        string
	lines       []string // "3" or "3-7"
	contributor string   // "ai", "human", "mixed" or "unknown"

	agent, model, conversation, revision string
}

func (s *session) claim(c claim) {
	step := map[string]any{"type": stepClaim, "contributor": c.contributor}
	for name, text := range map[string]string{"path": c.path, "lines": strings.Join(c.lines, ","), "agent": c.agent, "model": c.model, "conversation": c.conversation, "revision": c.revision} {
		if text != "" {
			s.put(step, name, text)
		}
	}
	s.steps = append(s.steps, step)
}

// isAgentTrace reports whether an object is a record of Agent Trace 0.1
// (https://agent-trace.dev): {version, id, timestamp, files, …}.
func isAgentTrace(object map[string]any) bool {
	_, hasFiles := object["files"].([]any)
	return hasFiles && versionForm().MatchString(said(object, "version")) && said(object, "id") != "" && said(object, "timestamp") != ""
}

var versionForm = canon.Regexp(`^[0-9]+\.[0-9]+(\.[0-9]+)?$`)

var errRecord = errors.New("not a record of Agent Trace")

// agentTrace reads a record: of each file its conversations, and of each of these the
// ranges of lines, those of one contributor as one claim.
func (s *session) agentTrace(record map[string]any) error {
	if !isAgentTrace(record) {
		return errRecord
	}
	tool, _ := record["tool"].(map[string]any)
	vcs, _ := record["vcs"].(map[string]any)
	for _, file := range objects(record["files"]) {
		if _, is := file["conversations"].([]any); !is || said(file, "path") == "" {
			return fmt.Errorf("%w: a file needs a path and conversations", errRecord)
		}
		for _, conversation := range objects(file["conversations"]) {
			claims, err := rangesOf(conversation)
			if err != nil {
				return err
			}
			for _, one := range claims {
				one.path, one.agent, one.revision = said(file, "path"), said(tool, "name"), said(vcs, "revision")
				one.conversation = said(conversation, "url")
				if s.claim(one); len(s.steps) > maxSteps {
					return fmt.Errorf("a trace has at most %d steps", maxSteps)
				}
			}
		}
	}
	return nil
}

func rangesOf(conversation map[string]any) ([]claim, error) {
	if _, is := conversation["ranges"].([]any); !is {
		return nil, fmt.Errorf("%w: a conversation needs ranges", errRecord)
	}
	var out []claim
	for _, part := range objects(conversation["ranges"]) {
		begin, end := wholeCode(part["start_line"]), wholeCode(part["end_line"])
		if begin == nil || end == nil || *begin < 1 || *end < *begin {
			return nil, fmt.Errorf("%w: a range needs start_line and end_line, in this order and from 1", errRecord)
		}
		by, own := part["contributor"].(map[string]any)
		if !own {
			by, _ = conversation["contributor"].(map[string]any)
		}
		next := claim{contributor: contributor(said(by, "type")), model: said(by, "model_id"), lines: []string{lineRange(*begin, *end)}}
		if n := len(out); n > 0 && out[n-1].contributor == next.contributor && out[n-1].model == next.model {
			out[n-1].lines = append(out[n-1].lines, next.lines...)
		} else {
			out = append(out, next)
		}
	}
	return out, nil
}

func contributor(word string) string {
	if slices.Contains([]string{"ai", "human", "mixed"}, word) {
		return word
	}
	return "unknown"
}

func lineRange(begin, end int) string {
	if begin == end {
		return strconv.Itoa(begin)
	}
	return fmt.Sprintf("%d-%d", begin, end)
}

// A note of git-ai (refs/notes/ai, Git AI Standard 3.0.0) has the files with their lines,
// by key, then a line "---", then JSON that says whose the keys are:
//
//	src/a.go
//	  s_c9883b05a2487d::t_9f8e7d6c5b4a32 1-10,15
//	---
//	{"schema_version":"authorship/3.0.0","sessions":{"s_c9883b05a2487d":{"agent_id":{…}}},…}
func splitNote(raw []byte) (files []byte, about map[string]any) {
	files, rest, found := bytes.Cut(raw, []byte("\n---\n"))
	if none, is := bytes.CutPrefix(raw, []byte("---\n")); is {
		files, rest, found = nil, none, true
	}
	if !found {
		return nil, nil
	}
	about = parsed(string(rest))
	if !strings.HasPrefix(said(about, "schema_version"), "authorship/") {
		return nil, nil
	}
	return files, about
}

func isNote(raw []byte) bool {
	_, about := splitNote(raw)
	return about != nil
}

var noteEntry = canon.Regexp(`^  (\S+) ([0-9]{1,9}(?:-[0-9]{1,9})?(?:,[0-9]{1,9}(?:-[0-9]{1,9})?)*)$`)

// readNote reads a note: each entry is a claim. People's names in it are left out.
func readNote(raw []byte, clean func(string) string) ([]any, error) {
	files, about := splitNote(raw)
	s := &session{clean: clean}
	name, n := "", 0
	for line := range strings.Lines(strings.ToValidUTF8(string(files), "\ufffd")) {
		n++
		line = strings.TrimSuffix(line, "\n")
		entry := noteEntry().FindStringSubmatch(line)
		switch {
		case line == "":
		case entry == nil && line[0] != ' ':
			name = strings.TrimSuffix(strings.TrimPrefix(line, `"`), `"`)
		case entry == nil || name == "":
			return nil, &patch.Error{Line: n, Message: "neither a file nor lines of one: two spaces, a key, a space and numbers"}
		default:
			one := keyOf(about, entry[1])
			one.path, one.lines, one.revision = name, []string{entry[2]}, said(about, "base_commit_sha")
			if s.claim(one); len(s.steps) > maxSteps {
				return nil, tooMany(n)
			}
		}
	}
	return s.steps, nil
}

// keyOf is who a key of a note stands for.
func keyOf(about map[string]any, key string) claim {
	table := "prompts"
	switch key, _, _ = strings.Cut(key, "::"); {
	case strings.HasPrefix(key, "h_"):
		return claim{contributor: "human"}
	case strings.HasPrefix(key, "s_"):
		table = "sessions"
	}
	all, _ := about[table].(map[string]any)
	session, known := all[key].(map[string]any)
	if !known {
		return claim{contributor: "unknown"}
	}
	agent, _ := session["agent_id"].(map[string]any)
	return claim{contributor: "ai", agent: said(agent, "tool"), model: said(agent, "model"), conversation: cmp.Or(said(session, "messages_url"), said(agent, "id"))}
}
