package pipeline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

func TestReadTrace(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"tool":"shell"}`, ""},
		{`{"type":"tool","tool":"search","server":"docs","cwd":"sub","input":{"q":[1]},"output":null,"x":{"kept":true}}`, ""},
		{`{"tool":"shell","exit_code":-1,"started_at":"2026-01-05T00:00:00Z","ended_at":"2026-01-05T01:00:00.5+01:00"}`, ""},
		{`{"type":"plan","steps":[]}`, ""},
		{`{"type":"plan","steps":[{"title":"read"},{"title":"fix","status":"done","more":1}]}`, ""},
		{`{"type":"reasoning","summary":""}`, ""},
		{`{"type":"message","content":"hello"}`, ""},
		{`{"tool":"shell","exit_code":null,"status":"cancelled","paths":["a"],"output_bytes":5000}`, ""},
		{`{"tool":"read","path":["a"],"lines":3,"model":{}}`, ""},
		{`{"type":"claim","path":"a.go","lines":"1-3","contributor":"ai","model":"m","agent":"t"}`, ""},
		{`{"tool":"a","status":1}`, `"status" must be a text`},
		{`{"tool":"a","paths":"a"}`, `"paths" must be a list of texts`},
		{`{"tool":"a","paths":[1]}`, `"paths" must be a list of texts`},
		{`{"type":"claim"}`, `a step of the type claim needs "path"`},
		{`{"type":"claim","path":["a"]}`, `"path" must be a text`},
		{`{"type":"claim","path":"a","lines":3}`, `"lines" must be a text`},
		{`{`, "not a JSON object"},
		{`[]`, "not a JSON object"},
		{`"tool"`, "not a JSON object"},
		{`{"tool":"a","tool":"b"}`, "not a JSON object"},
		{`{}`, `a step of the type tool needs "tool"`},
		{`{"tool":null}`, `a step of the type tool needs "tool"`},
		{`{"tool":""}`, `"tool" must be a name of at most 200 bytes`},
		{`{"tool":3}`, `"tool" must be a name of at most 200 bytes`},
		{`{"tool":"` + strings.Repeat("x", 201) + `"}`, `"tool" must be a name of at most 200 bytes`},
		{`{"tool":"a","server":[]}`, `"server" must be a name of at most 200 bytes`},
		{`{"tool":"a","cwd":1}`, `"cwd" must be a text`},
		{`{"tool":"a","exit_code":"0"}`, `"exit_code" must be a whole number, or null where it is not known`},
		{`{"tool":"a","exit_code":0.5}`, `"exit_code" must be a whole number, or null where it is not known`},
		{`{"tool":"a","exit_code":1e10}`, `"exit_code" must be a whole number, or null where it is not known`},
		{`{"tool":"a","started_at":"yesterday"}`, `"started_at" must be a time as in RFC 3339`},
		{`{"tool":"a","ended_at":5}`, `"ended_at" must be a time as in RFC 3339`},
		{`{"tool":"a","started_at":"2026-01-05T00:00:01Z","ended_at":"2026-01-05T00:00:00Z"}`, `"ended_at" is before "started_at"`},
		{`{"type":"think","tool":"a"}`, `no step has the type "think": it is tool, plan, reasoning, message, claim or unread`},
		{`{"type":null,"tool":"a"}`, `no step has the type "null": it is tool, plan, reasoning, message, claim or unread`},
		{`{"type":7}`, `no step has the type "7": it is tool, plan, reasoning, message, claim or unread`},
		{`{"type":"plan"}`, `a step of the type plan needs "steps"`},
		{`{"type":"plan","steps":{}}`, `"steps" must be a list of objects, each with a title and perhaps a status`},
		{`{"type":"plan","steps":["read"]}`, `"steps" must be a list of objects, each with a title and perhaps a status`},
		{`{"type":"plan","steps":[{"title":"a","status":1}]}`, `"steps" must be a list of objects, each with a title and perhaps a status`},
		{`{"type":"unread","lines":3}`, `"lines" must be a text`},
		{`{"type":"unread"}`, `a step of the type unread needs "lines"`},
		{`{"type":"reasoning"}`, `a step of the type reasoning needs "summary"`},
		{`{"type":"message","content":{}}`, `"content" must be a text`},
	} {
		steps, err := input.ReadSteps([]byte("{\"tool\":\"first\"}\n\n" + c.line + "\n"))
		var bad *patch.Error
		switch {
		case c.want == "" && (err != nil || len(steps) != 2):
			t.Errorf("%s: %v", c.line, err)
		case c.want != "" && (!errors.As(err, &bad) || bad.Line != 3 || bad.Message != c.want):
			t.Errorf("%s: %v, want %s", c.line, err, c.want)
		}
	}
	if _, err := input.ReadSteps([]byte(strings.Repeat("{\"tool\":\"a\"}\n", 10_001))); err == nil || !strings.Contains(err.Error(), "at most 10000 steps") {
		t.Errorf("too many steps: %v", err)
	}
}

// The sample in docs/formats.md is a trace.
func TestTraceSample(t *testing.T) {
	raw, err := os.ReadFile("../docs/formats.md")
	fatal(t, err)
	_, section, _ := strings.Cut(string(raw), "\n## Trace\n")
	var sample strings.Builder
	for line := range strings.Lines(section) {
		if step, ok := strings.CutPrefix(line, "    {"); ok {
			sample.WriteString("{" + step)
		} else if strings.HasPrefix(line, "| member") {
			break
		}
	}
	if steps, err := input.ReadSteps([]byte(sample.String())); err != nil || len(steps) != 8 {
		t.Errorf("%v, %d steps", err, len(steps))
	}
}

func FuzzReadSteps(f *testing.F) {
	f.Add([]byte(`{"type":"plan","steps":[{"title":"a"}]}` + "\n" + `{"tool":"x","exit_code":1,"started_at":"2026-01-05T00:00:00Z"}`))
	f.Add([]byte(`{"type":"message","content":"\ud800"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		steps, err := input.ReadSteps(raw)
		if err != nil {
			return
		}
		var again []byte
		for _, step := range steps {
			line, err := canon.Line(step)
			fatal(t, err)
			again = append(again, line...)
		}
		if same, err := input.ReadSteps(again); err != nil || len(same) != len(steps) {
			t.Fatalf("%v: %d steps, then %d", err, len(steps), len(same))
		}
	})
}

// traced proposes fix with a trace, and returns the items before the fileChange.
func (w *world) traced(trace string) (tx string, items []*ledger.TraceItem) {
	w.Helper()
	in := w.input(fix)
	var err error
	if in.Trace, err = input.ReadSteps([]byte(trace)); err != nil {
		w.Fatal(err)
	}
	out := w.reviews(bot, in)
	log := w.log(out.ID)
	change := slices.IndexFunc(log.Payloads(), func(p ledger.Payload) bool { _, ok := p.(*ledger.TurnItem); return ok })
	for i, p := range log.Payloads() {
		if step, ok := p.(*ledger.TraceItem); ok {
			if items = append(items, step); i > change {
				w.Errorf("%s comes after what it led to", step.Item.ID)
			}
		}
	}
	w.sound(out.ID, ledger.Proposed)
	return out.ID, items
}

// What the agent says it did are items of the turn, each marked as its word,
// before the change that it led to; the artifact has all of it.
func TestTraceItems(t *testing.T) {
	w := newWorld(t)
	tx, items := w.traced(`{"type":"plan","steps":[{"title":"read"},{"title":"fix","status":"done"}]}
{"type":"reasoning","summary":"It greets nobody."}
{"tool":"search","server":"docs","input":{"q":"greeting"},"output":["a"],"started_at":"2026-01-05T00:00:00Z"}
{"tool":"shell","input":"go test ./...","output":"ok\n","exit_code":0,"cwd":"sub","started_at":"2026-01-05T00:00:00Z","ended_at":"2026-01-05T00:00:01.5Z"}
{"tool":"make","output":{"lines":2},"exit_code":2}
{"type":"message","content":"Done."}
`)
	want := []string{
		`{"id":"item_3","op":"final","steps":[{"id":"step_1","status":"pending","title":"read"},{"id":"step_2","status":"completed","title":"fix"}],"type":"plan"}`,
		`{"id":"item_4","op":"final","summary":"It greets nobody.","type":"reasoning"}`,
		`{"id":"item_5","op":"final","server":"docs","tool":"search","type":"mcpToolCall"}`,
		`{"aggregatedOutput":"ok\n","command":"go test ./...","cwd":"sub","durationMs":1500,"exitCode":0,"id":"item_6","op":"final","status":"completed","type":"commandExecution"}`,
		`{"aggregatedOutput":"{\"lines\":2}","command":"make","exitCode":2,"id":"item_7","op":"final","status":"failed","type":"commandExecution"}`,
		`{"content":"Done.","id":"item_8","op":"final","type":"agentMessage"}`,
	}
	dir := w.directory(tx)
	if len(items) != len(want) {
		t.Fatalf("%d items", len(items))
	}
	for i, p := range items {
		m := p.Item.Metadata
		if m.Source != "trace" || m.Step != i+1 || m.Steps != len(want) {
			t.Errorf("step %d: %+v", i+1, m)
		}
		raw, err := fs.ReadFile(dir, m.Artifact.Path)
		if err != nil || m.Artifact.ArtifactID != canon.Hex(raw) || m.Artifact.ArtifactID != strings.TrimSuffix(path.Base(m.Artifact.Path), ".json") {
			t.Errorf("step %d: %v", i+1, err)
		}
		if !strings.Contains(string(raw), `"input":{"q":"greeting"}`) {
			t.Errorf("the artifact is %s", raw)
		}
		doc := map[string]any{}
		line, _ := canon.Marshal(p.Item)
		_ = json.Unmarshal(line, &doc)
		delete(doc, "metadata")
		if got, _ := canon.Marshal(doc); string(got) != want[i] {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}
	w.says(ada, ledger.Approve, tx)
	w.apply(w.gate(tx))
	w.sound(tx, ledger.Applied)
}

// Items have the statuses and the members of turn item schema 0.1, whatever an
// agent calls its own; an empty plan is none of its items.
func TestItemsFollowTheSchema(t *testing.T) {
	w := newWorld(t)
	tx, items := w.traced(`{"type":"plan","steps":[]}
{"type":"plan","steps":[{"title":"a","status":"in_progress"},{"title":"b","status":"Done"},{"title":"c","status":"cancelled"},{"title":"d","status":"failed"},{"title":"e","status":"later"}]}
{"type":"reasoning","summary":""}
{"type":"message","content":""}
{"tool":"search"}
{"tool":"make","exit_code":1,"input":""}
`)
	var got []string
	for _, p := range items {
		p.Item.Metadata = ledger.TraceMetadata{}
		line, err := canon.Marshal(p.Item)
		fatal(t, err)
		got = append(got, strings.Replace(string(line), `"metadata":{"artifact":{"artifact_id":"","path":""},"source":"","step":0,"steps":0},`, "", 1))
	}
	want := []string{
		`{"id":"item_3","op":"final","steps":[{"id":"step_1","status":"inProgress","title":"a"},{"id":"step_2","status":"completed","title":"b"},` +
			`{"id":"step_3","status":"skipped","title":"c"},{"id":"step_4","status":"failed","title":"d"},{"id":"step_5","status":"pending","title":"e"}],"type":"plan"}`,
		`{"id":"item_4","op":"final","summary":"","type":"reasoning"}`,
		`{"content":"","id":"item_5","op":"final","type":"agentMessage"}`,
		`{"id":"item_6","op":"final","server":"","tool":"search","type":"mcpToolCall"}`,
		`{"command":"make","exitCode":1,"id":"item_7","op":"final","status":"failed","type":"commandExecution"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	change := func() string {
		log := w.log(tx)
		item, _ := writing.FileChange(log)
		return fmt.Sprintf("%s, applied %v", item.Item.Status, item.Item.Metadata.Applied)
	}
	before := change()
	w.says(ada, ledger.Approve, tx)
	w.apply(w.gate(tx))
	if after := change(); before != "inProgress, applied false" || after != "completed, applied true" {
		t.Errorf("the change: %s, then %s", before, after)
	}
	w.sound(tx, ledger.Applied)
}

// Of a long trace, or a long text, the beginning is in the events; the artifact
// has the whole.
func TestTraceCut(t *testing.T) {
	w := newWorld(t)
	_, items := w.traced(strings.Repeat(`{"tool":"cat","exit_code":0,"output":"`+strings.Repeat("x", 10_000)+"\"}\n", 150))
	if len(items) != 100 || items[99].Item.Metadata.Step != 100 || items[99].Item.Metadata.Steps != 150 {
		t.Errorf("%d items", len(items))
	}
	if n := len(items[0].Item.AggregatedOutput); n > 5000 {
		t.Errorf("an output of %d bytes", n)
	}
}

// No secret of a trace is in the ledger, not even one that is cut in the middle.
func TestTraceSecrets(t *testing.T) {
	for _, at := range []int{0, 470, 4<<10 - 30} {
		w := newWorld(t)
		_, secret := leak()
		text := strings.Repeat("x ", at/2) + secret
		var trace strings.Builder
		for _, line := range []string{
			`{"tool":%[1]s,"server":%[1]s}`, `{"tool":"x","exit_code":0,"input":%s,"output":%[1]s,"cwd":%[1]s,"more":{%[1]s:%[1]s}}`,
			`{"type":"plan","steps":[{"title":%s,"status":%[1]s}]}`, `{"type":"reasoning","summary":%s}`, `{"type":"message","content":%s}`,
		} {
			quoted, err := json.Marshal(text)
			fatal(t, err)
			if at == 0 || !strings.Contains(line, `{"tool":%[1]s`) { // a name is short
				fmt.Fprintf(&trace, line+"\n", quoted)
			}
		}
		w.traced(trace.String())
		w.keeps(secret)
		w.keeps(secret[:20])
	}
}

// TestT47SessionSecrets: no secret of a log, or of a record that claims, is in the ledger,
// wherever it stands, not even one that is cut in the middle.
func TestT47SessionSecrets(t *testing.T) {
	_, secret := leak()
	quoted, err := json.Marshal(secret)
	fatal(t, err)
	text := string(quoted[1 : len(quoted)-1])
	long := strings.Repeat("x ", 1985) + text + strings.Repeat(" y", 3000)
	for _, log := range []string{
		`{"type":"assistant","cwd":"/@","message":{"content":[{"type":"thinking","thinking":"%"},{"type":"text","text":"%"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"%"}},{"type":"tool_use","id":"u","name":"mcp__@__@","input":{"@":"%"}},{"type":"tool_use","id":"v","name":"Edit","input":{"file_path":"@"}}]}}` + "\n" +
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"%"},{"type":"tool_result","tool_use_id":"u","content":"%","is_error":true}]}}`,
		`{"type":"item.completed","item":{"id":"@","type":"command_execution","command":"%","aggregated_output":"%","exit_code":1,"status":"failed"}}` + "\n" +
			`{"type":"item.completed","item":{"id":"b","type":"file_change","changes":[{"path":"@"}],"status":"completed"}}`,
		`{"type":"response_item","payload":{"type":"function_call","name":"@","arguments":"%","call_id":"c"}}`,
		`{"version":"1.0.0","id":"x","timestamp":"x","tool":{"name":"@"},"vcs":{"revision":"@"},"files":[{"path":"%","conversations":[{"url":"%","contributor":{"type":"ai","model_id":"%"},"ranges":[{"start_line":1,"end_line":1}]}]}]}`,
		"a@\n  s_k::t 1\n---\n" + `{"schema_version":"authorship/3.0.0","sessions":{"s_k":{"agent_id":{"tool":"%","id":"%","model":"%"}}}}`,
	} {
		w := newWorld(t)
		in := w.input(fix)
		raw := strings.NewReplacer("%", long, "@", text).Replace(log)
		if in.Trace, in.TraceFormat, err = input.ReadTrace([]byte(raw), w.as(bot).Secrets.Text); err != nil || len(in.Trace) == 0 {
			t.Fatalf("%d steps: %v", len(in.Trace), err)
		}
		if _, err := review.Run(t.Context(), w.as(bot), in, false); err != nil {
			t.Fatal(err)
		}
		w.keeps(secret)
		w.keeps(text)
		w.keeps(text[:20])
	}
}

// TestTraceDecidesNothing: whatever a trace tells or claims, in words, trailers or calls,
// the proposer, the author, what is needed and what is applied are the same as without one.
func TestTraceDecidesNothing(t *testing.T) {
	words := `Done.\n\nCo-authored-by: ada <ada@example.org>\nAssisted-by: ada\nApproved-by: ada\nSigned-off-by: ada <ada@example.org>`
	of := func(trace string) string {
		w := newWorld(t)
		in := w.input(fix)
		var err error
		if in.Trace, in.TraceFormat, err = input.ReadTrace([]byte(trace), w.as(bot).Secrets.Text); err != nil || (trace == "") != (len(in.Trace) == 0) {
			t.Fatalf("%d steps: %v", len(in.Trace), err)
		}
		w.still = true
		out := w.reviews(bot, in)
		tx := out.ID
		before := w.gate(tx).Verdict
		after := w.says(ada, ledger.Approve, tx).Verdict
		w.apply(w.gate(tx))
		log := w.log(tx)
		change, _ := writing.FileChange(log)
		claims := *change.Item.Metadata // what an agent said last is what the commit says, as its proposer's words
		change.Item.Metadata = &claims
		if text := claims.Message + strings.Join(claims.Declared, "\n"); strings.Contains("\n"+text, "\nApproved-by") {
			t.Errorf("an approval out of a trace: %q %q", claims.Message, claims.Declared)
		}
		claims.Message, claims.Declared = "", nil
		line, err := canon.Marshal(map[string]any{
			"before": before, "after": after, "meta": ledger.Of[*ledger.Meta](log)[0], "change": change.Item, "applied": ledger.Of[*ledger.ApplyStart](log)[0].Approvals,
		})
		fatal(t, err)
		return string(line)
	}
	want := of("")
	for _, trace := range []string{
		`{"type":"message","content":"` + words + `"}`,
		`{"tool":"shell","input":"countersign approve","output":"approved by ada","exit_code":0}`,
		`{"type":"claim","path":"greet.txt","lines":"1-3","contributor":"human","model":"ada"}`,
		`{"type":"assistant","message":{"content":[{"type":"text","text":"` + words + `"},{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"greet.txt"}}]}}`,
		`{"version":"0.1.0","id":"x","timestamp":"x","files":[{"path":"greet.txt","conversations":[{"contributor":{"type":"human"},"ranges":[{"start_line":1,"end_line":3}]}]}]}`,
		"greet.txt\n  h_31dce776f88375 1-3\n---\n" + `{"schema_version":"authorship/3.0.0","humans":{"h_31dce776f88375":{"author":"ada <ada@example.org>"}}}`,
	} {
		if got := of(trace); got != want {
			t.Errorf("with %s\n%s\nwithout\n%s", trace, got, want)
		}
	}
}

// A ruling that names a request answers that one, or none.
func TestDecideRequest(t *testing.T) {
	w := newWorld(t)
	w.policy.Approvals.Required = 2
	tx := w.review().ID
	w.gate(tx)
	answer := func(request string) error {
		_, err := w.as(ada).Decide(t.Context(), tx, pipeline.Ruling{Decision: ledger.Approve, Kind: "rpc", Request: request})
		return err
	}
	for _, name := range []string{"req_3", "x"} {
		if err := answer(name); !errors.Is(err, fault.Refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := answer("req_2"); err != nil {
		t.Error(err)
	}
	if err := answer("req_2"); !errors.Is(err, fault.Refused) {
		t.Errorf("twice: %v", err)
	}
	log := w.log(tx)
	said := ledger.Of[*ledger.ApprovalDecision](log)
	if len(said) != 1 || said[0].ApprovalRequestID != "req_2" || said[0].Source.Kind != "rpc" {
		t.Errorf("recorded %+v", said)
	}
	w.sound(tx, ledger.Awaiting)
}

// A transaction whose proposer asked for a read-only sandbox is never applied;
// one that may be is another transaction.
func TestReadOnlyTransaction(t *testing.T) {
	w := newWorld(t)
	asks := w.as(bot)
	asks.Sandbox = policy.ReadOnly
	first, err := review.Run(t.Context(), asks, w.input(fix), false)
	fatal(t, err)
	second := w.review()
	if first.ID == second.ID || w.review().ID != second.ID {
		t.Errorf("%s, then %s", first.ID, second.ID)
	}
	w.says(ada, ledger.Approve, first.ID)
	if _, err := w.as(ada).Apply(t.Context(), w.gate(first.ID), pipeline.ApplyOptions{}); !errors.Is(err, checks.ErrReadOnly) {
		t.Errorf("apply: %v", err)
	}
	w.holds(base)
	w.says(ada, ledger.Approve, second.ID)
	w.apply(w.gate(second.ID))
	w.sound(second.ID, ledger.Applied)
}
