package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// The types of a step of a trace. One without a type is a tool call.
const (
	stepTool      = "tool"
	stepPlan      = "plan"
	stepReasoning = "reasoning"
	stepMessage   = "message"
	stepClaim     = "claim"
	stepUnread    = "unread"
)

// stepNeeds is the member that a step of each type must have.
var stepNeeds = map[string]string{stepTool: "tool", stepPlan: "steps", stepReasoning: "summary", stepMessage: "content", stepClaim: "path", stepUnread: "lines"}

// A member is what a known member of a step must be, in words and in code.
type member struct {
	must string
	is   func(any) bool
}

// stepMembers are the members that mean something. What else a step has is kept
// as it is: agents have more to tell than this format knows.
var stepMembers = map[string]member{
	"tool":       {"a name of at most 200 bytes", isName},
	"server":     {"a name of at most 200 bytes", isName},
	"cwd":        {"a text", isText},
	"exit_code":  {"a whole number, or null where it is not known", isCode},
	"status":     {"a text", isText},
	"paths":      {"a list of texts", isTexts},
	"started_at": {"a time as in RFC 3339", isMoment},
	"ended_at":   {"a time as in RFC 3339", isMoment},
	"steps":      {"a list of objects, each with a title and perhaps a status", isPlan},
	"summary":    {"a text", isText},
	"content":    {"a text", isText},

	"output_bytes": {"a whole number", isWhole},
}

// claimMembers are those of a claim, and lines of what is unread as well.
var claimMembers = []string{"path", "lines", "contributor", "agent", "model", "conversation", "revision"}

// maxSteps is how many steps a trace may have, maxTold of how many of them there
// are items; the artifact has all.
const (
	maxSteps = 10_000
	maxTold  = 100
)

// ReadTrace reads what a proposer gives as a trace (docs/formats.md, Trace): steps as
// JSON Lines, or one of TraceFormats, which it tells by the text and returns; the format
// is "" for steps. clean takes the secrets out of a text: what is cut is cut after that,
// as half a secret is not recognised. The error is a *patch.Error that names the line.
func ReadTrace(raw []byte, clean func(string) string) (steps []any, format string, err error) {
	if isNote(raw) {
		steps, err = readNote(raw, clean)
		return steps, TraceGitAI, err
	}
	if s := sessionOf(raw); s != nil {
		s.clean = clean
		steps, err = s.all(raw)
		return steps, s.format, err
	}
	steps, err = ReadSteps(raw)
	return steps, "", err
}

// ReadSteps reads steps as JSON Lines, and nothing else: what WriteTrace writes.
func ReadSteps(raw []byte) ([]any, error) {
	out := []any{}
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		doc, err := canon.Parse(line)
		step, object := doc.(map[string]any)
		if err != nil || !object {
			return nil, &patch.Error{Line: n, Message: "not a JSON object", Try: "a trace is JSON Lines of steps, or one of the logs that docs/agents.md lists"}
		}
		if why := checkStep(step); why != "" {
			return nil, &patch.Error{Line: n, Message: why}
		}
		if out = append(out, doc); len(out) > maxSteps {
			return nil, tooMany(n)
		}
	}
	return out, nil
}

func tooMany(line int) error {
	return &patch.Error{Line: line, Message: fmt.Sprintf("a trace has at most %d steps", maxSteps)}
}

// WriteTrace writes steps as ReadSteps reads them.
func WriteTrace(steps []any) ([]byte, error) {
	var out []byte
	for _, step := range steps {
		line, err := canon.Line(step)
		if err != nil {
			return nil, err
		}
		out = append(out, line...)
	}
	return out, nil
}

// checkStep says what is wrong with a step, "" if nothing is.
func checkStep(step map[string]any) string {
	if t, given := step["type"]; given && stepNeeds[stepType(step)] == "" {
		return fmt.Sprintf("no step has the type %+q: it is tool, plan, reasoning, message, claim or unread", ledger.OneLine(document.String(t, true), 40))
	}
	if need := stepNeeds[stepType(step)]; step[need] == nil {
		return fmt.Sprintf("a step of the type %s needs %q", stepType(step), need)
	}
	for _, name := range slices.Sorted(maps.Keys(step)) {
		if m, known := stepMembers[name]; known && !m.is(step[name]) {
			return fmt.Sprintf("%q must be %s", name, m.must)
		}
	}
	for _, name := range claimMembers {
		if value, given := step[name]; given && (stepType(step) == stepClaim || stepType(step) == stepUnread) && !isText(value) {
			return fmt.Sprintf("%q must be a text", name)
		}
	}
	if begin, end := moment(step["started_at"]), moment(step["ended_at"]); !begin.IsZero() && !end.IsZero() && end.Before(begin) {
		return `"ended_at" is before "started_at"`
	}
	return ""
}

// stepType is a step's type, "" for one that is not a text.
func stepType(step map[string]any) string {
	t, given := step["type"]
	if !given {
		return stepTool
	}
	text, _ := t.(string)
	return text
}

func isText(v any) bool { _, ok := v.(string); return ok }

func isName(v any) bool {
	s, ok := v.(string)
	return ok && s != "" && len(s) <= 200
}

func isWhole(v any) bool {
	f, ok := v.(float64)
	return ok && f == math.Trunc(f) && math.Abs(f) <= math.MaxInt32
}

func isCode(v any) bool { return v == nil || isWhole(v) }

func isTexts(v any) bool {
	all, ok := v.([]any)
	return ok && !slices.ContainsFunc(all, func(one any) bool { return !isText(one) })
}

func isMoment(v any) bool { return !moment(v).IsZero() }

// moment reads a time, the zero time from what is none.
func moment(v any) time.Time {
	s, _ := v.(string)
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return at
}

func isPlan(v any) bool {
	_, ok := v.([]any)
	for _, doc := range objects(v) {
		status, given := doc["status"]
		if !isText(doc["title"]) || given && !isText(status) {
			return false
		}
	}
	return ok
}

// A record is one object of a log, and the number of its line. The object is nil where the
// text is none; cut says that the text then is the last one and has no end.
type record struct {
	line   int
	object map[string]any
	cut    bool
}

// records are the objects of a log: one a line, between which other programs may have
// written (lines that do not begin with a brace are passed over), or the elements of one
// array, or objects of several lines one after the other.
func records(raw []byte) iter.Seq[record] {
	if isLines(raw) {
		return lines(raw)
	}
	return values(raw)
}

// isLines reports whether the file has an object on a line of its own, or no JSON at its
// beginning at all.
func isLines(raw []byte) bool {
	text := bytes.TrimLeft(raw, " \t\r\n")
	if bytes.HasPrefix(text, []byte("{")) {
		line, _, _ := bytes.Cut(text, []byte("\n"))
		for r := range values(line) {
			if r.object != nil {
				return true
			}
			break
		}
	}
	for r := range values(text) {
		return r.object == nil
	}
	return true
}

func lines(raw []byte) iter.Seq[record] {
	return func(yield func(record) bool) {
		n := 0
		for line := range bytes.Lines(raw) {
			n++
			if !bytes.HasPrefix(bytes.TrimLeft(line, " \t\r"), []byte("{")) {
				continue
			}
			for r := range values(line) { // two writers may have shared one line
				if !yield(record{n, r.object, !bytes.HasSuffix(line, []byte("\n"))}) {
					return
				}
			}
		}
	}
}

func values(raw []byte) iter.Seq[record] {
	return func(yield func(record) bool) {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		list := bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("["))
		if list {
			_, _ = decoder.Token() // it is there
		}
		counted, line := 0, 1
		next := func() (record, error) {
			var value json.RawMessage
			err := decoder.Decode(&value)
			begins := int(decoder.InputOffset()) - len(value)
			line += bytes.Count(raw[counted:begins], []byte("\n"))
			counted = begins
			return record{line: line, object: parsed(string(value))}, err
		}
		for !list || decoder.More() {
			r, err := next()
			if errors.Is(err, io.EOF) && !list {
				return
			}
			if !yield(r) || err != nil {
				return
			}
		}
		if end, err := decoder.Token(); err == nil && end == json.Delim(']') {
			if _, err := next(); errors.Is(err, io.EOF) {
				return
			}
		}
		yield(record{line: line})
	}
}
