package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
)

type echoParams struct {
	Text string   `json:"text"`
	List []string `json:"list,omitempty"`
	In   *struct {
		Deep int `json:"deep"`
	} `json:"in,omitempty"`
}

var methods = map[string]rpcMethod{
	"echo": methodOf(func(_ context.Context, p echoParams, notify notifier) (any, error) {
		return p, notify("heard", map[string]any{"text": p.Text})
	}),
	"none":  methodOf(func(context.Context, struct{}, notifier) (any, error) { return "done", nil }),
	"break": methodOf(func(context.Context, struct{}, notifier) (any, error) { return nil, errors.New("broken") }),
	"refuse": methodOf(func(context.Context, struct{}, notifier) (any, error) {
		return nil, &rpcError{Code: codeInvalidParams, Message: "refused", Data: map[string]any{"exit": 2}}
	}),
}

// answers returns the lines that a server answers with.
func answers(t testing.TB, in io.Reader, methods map[string]rpcMethod) []string {
	t.Helper()
	var out []string
	s := newRPCServer(methods, func(doc json.RawMessage) error {
		out = append(out, string(doc))
		return nil
	})
	if err := s.serve(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLines(t *testing.T) {
	bad := func(code int, id, message string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"message":%q},"id":%s,"jsonrpc":"2.0"}`, code, message, id)
	}
	result := func(id, result string) string {
		return fmt.Sprintf(`{"id":%s,"jsonrpc":"2.0","result":%s}`, id, result)
	}
	failed := func(id, e string) string { return fmt.Sprintf(`{"error":%s,"id":%s,"jsonrpc":"2.0"}`, e, id) }
	const badID = "Invalid Request: id is a string of at most 200 bytes or a whole number from 0 to 9007199254740991"
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"a call", `{"jsonrpc":"2.0","id":1,"method":"none"}`, []string{result("1", `"done"`)}},
		{"its id is a string", `{"jsonrpc":"2.0","id":"a\"b","method":"none","params":{}}`, []string{result(`"a\"b"`, `"done"`)}},
		{"id 0", `{"jsonrpc":"2.0","id":0,"method":"none"}`, []string{result("0", `"done"`)}},
		{"the empty id", `{"jsonrpc":"2.0","id":"","method":"none"}`, []string{result(`""`, `"done"`)}},
		{"an id in another form", `{"jsonrpc":"2.0","id":1e1,"method":"none"}`, []string{result("10", `"done"`)}},
		{"an id with .0", `{"jsonrpc":"2.0","id":7.0,"method":"none"}`, []string{result("7", `"done"`)}},
		{"white space and CRLF", "\n  \r\n\t\n {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"none\"} \r", []string{result("1", `"done"`)}},
		{"a notification before the answer", `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"hi","list":null}}`, []string{
			`{"jsonrpc":"2.0","method":"heard","params":{"text":"hi"}}`, result("1", `{"text":"hi"}`)}},
		{"a notification of the client", `{"jsonrpc":"2.0","method":"echo","params":{"text":"hi"}}`, nil},
		{"other members", `{"jsonrpc":"2.0","id":1,"method":"none","meta":{"a":1},"Result":1,"ERROR":2,"Method":"x"}`, []string{result("1", `"done"`)}},
		{"an error", `{"jsonrpc":"2.0","id":1,"method":"break"}`, []string{failed("1", `{"code":-32603,"message":"broken"}`)}},
		{"an error with data", `{"jsonrpc":"2.0","id":1,"method":"refuse"}`, []string{failed("1", `{"code":-32602,"data":{"exit":2},"message":"refused"}`)}},
		{"no JSON", `{"jsonrpc":`, []string{bad(-32700, "null", "Parse error: invalid JSON at byte 11: unexpected end")}},
		{"two documents", `{} {}`, []string{bad(-32700, "null", "Parse error: invalid JSON at byte 3: text after the document")}},
		{"a key twice", `{"id":1,"id":2}`, []string{bad(-32700, "null", `Parse error: invalid JSON at byte 8: duplicate key "id"`)}},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"none"}]`, []string{bad(-32600, "null", "Invalid Request: batches are not taken; send one request a line")}},
		{"an empty batch", `[]`, []string{bad(-32600, "null", "Invalid Request: batches are not taken; send one request a line")}},
		{"a number", `1`, []string{bad(-32600, "null", "Invalid Request: a request is an object")}},
		{"null", `null`, []string{bad(-32600, "null", "Invalid Request: a request is an object")}},
		{"another version", `{"jsonrpc":"1.0","id":"x","method":"none"}`, []string{bad(-32600, `"x"`, `Invalid Request: jsonrpc is not "2.0"`)}},
		{"no method", `{"jsonrpc":"2.0","id":3}`, []string{bad(-32600, "3", "Invalid Request: method is not a string")}},
		{"a method that is no string", `{"jsonrpc":"2.0","id":3,"method":3}`, []string{bad(-32600, "3", "Invalid Request: method is not a string")}},
		{"an answer", `{"jsonrpc":"2.0","id":3,"method":"none","result":1}`, []string{bad(-32600, "3", "Invalid Request: a request has no result")}},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"none"}`, []string{bad(-32600, "null", badID)}},
		{"a negative id", `{"jsonrpc":"2.0","id":-1,"method":"none"}`, []string{bad(-32600, "null", badID)}},
		{"half an id", `{"jsonrpc":"2.0","id":1.5,"method":"none"}`, []string{bad(-32600, "null", badID)}},
		{"a large id", `{"jsonrpc":"2.0","id":9007199254740993,"method":"none"}`, []string{bad(-32600, "null", badID)}},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{},"method":"none"}`, []string{bad(-32600, "null", badID)}},
		{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"apply/exec"}`, []string{failed("1", `{"code":-32601,"message":"Method not found: apply/exec"}`)}},
		{"a parameter is missing", `{"jsonrpc":"2.0","id":1,"method":"echo"}`, []string{failed("1", `{"code":-32602,"message":"params.text is missing"}`)}},
		{"a parameter is null", `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":null}}`, []string{failed("1", `{"code":-32602,"message":"params.text is missing"}`)}},
		{"a parameter is unknown", `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"","Text":"","b":1}}`, []string{failed("1", `{"code":-32602,"message":"params has no member \"Text\""}`)}},
		{"a deep one is unknown", `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"","in":{"deep":1,"x":1}}}`, []string{failed("1", `{"code":-32602,"message":"params.in has no member \"x\""}`)}},
		{"a deep one is missing", `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"","in":{}}}`, []string{failed("1", `{"code":-32602,"message":"params.in.deep is missing"}`)}},
		{"a wrong type", `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":1}}`, []string{failed("1", `{"code":-32602,"message":"params.text is of the wrong type: number"}`)}},
		{"a deep wrong type", `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"","in":{"deep":1.5}}}`, []string{failed("1", `{"code":-32602,"message":"params.in.deep is of the wrong type: number 1.5"}`)}},
		{"a list is an object", `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"","list":{}}}`, []string{failed("1", `{"code":-32602,"message":"params.list is of the wrong type: object"}`)}},
		{"params by position", `{"jsonrpc":"2.0","id":1,"method":"none","params":[1]}`, []string{failed("1", `{"code":-32602,"message":"params must be an object"}`)}},
		{"params null", `{"jsonrpc":"2.0","id":1,"method":"none","params":null}`, []string{failed("1", `{"code":-32602,"message":"params must be an object"}`)}},
		{"half a surrogate pair", `{"jsonrpc":"2.0","id":"\ud800","method":"\udc00"}`, []string{failed("\"\ufffd\"", "{\"code\":-32601,\"message\":\"Method not found: \ufffd\"}")}},
		{"it goes on", "{\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"none\"}\n", []string{
			bad(-32700, "null", "Parse error: invalid JSON at byte 1: expected a key"), result("1", `"done"`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := answers(t, strings.NewReader(c.in), methods)
			if !strings.Contains(c.in, "echo") { // which tells something before it answers
				slices.Sort(got)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// A line of exactly the limit is read; one byte more, and the line is skipped
// to its end, and refused even where what is kept of it is blank.
func TestLongLine(t *testing.T) {
	request := func(size int) string {
		head, tail := `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"`, `"}}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	in := request(maxLine) + "\n" + request(maxLine+1) + "\n" + strings.Repeat("y", 3*maxLine) + "\n" +
		strings.Repeat(" ", maxLine+1) + "{}\n" + request(100)
	got := answers(t, strings.NewReader(in), methods)
	long := fmt.Sprintf(`{"error":{"code":-32600,"message":"Invalid Request: the line is longer than %d bytes"},"id":null,"jsonrpc":"2.0"}`, maxLine)
	n := 0
	for _, line := range got {
		if line == long {
			n++
		}
	}
	if n != 3 || len(got) != 3+2*2 {
		t.Errorf("%d refusals, %d lines", n, len(got))
	}
}

type keyed struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

func (k keyed) Key() string { return k.Name }

// Calls of one key run in the order in which they came, one at a time; calls of
// two keys at the same time; the input's end waits for all of them.
func TestOrder(t *testing.T) {
	var mu sync.Mutex
	ran := map[string][]int{}
	var both sync.WaitGroup
	both.Add(2)
	methods := map[string]rpcMethod{
		"note": methodOf(func(_ context.Context, k keyed, _ notifier) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			ran[k.Name] = append(ran[k.Name], k.N)
			return k.N, nil
		}),
		"meet": methodOf(func(_ context.Context, _ keyed, _ notifier) (any, error) {
			both.Done()
			both.Wait() // for the other key's call
			return nil, nil
		}),
	}
	var in strings.Builder
	for i, name := range []string{"a", "b"} {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"meet","params":{"name":"%s","n":0}}`+"\n", i, name)
	}
	const most = 300
	var want []int
	for i := range most {
		want = append(want, i)
		for _, name := range []string{"a", "b"} {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":"%s%d","method":"note","params":{"name":"%[1]s","n":%[2]d}}`+"\n", name, i)
		}
	}
	if got := answers(t, strings.NewReader(in.String()), methods); len(got) != 2*most+2 {
		t.Errorf("%d answers", len(got))
	}
	for name, got := range ran {
		if !slices.Equal(got, want) {
			t.Errorf("%s ran as %v", name, got)
		}
	}
}

// MaxCalls calls can run at once.
func TestManyAtOnce(t *testing.T) {
	var mu sync.Mutex
	running := 0
	full := make(chan struct{})
	methods := map[string]rpcMethod{"wait": methodOf(func(context.Context, struct{}, notifier) (any, error) {
		mu.Lock()
		if running++; running == maxCalls {
			close(full)
		}
		mu.Unlock()
		<-full
		return nil, nil
	})}
	in := strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"wait"}`+"\n", 2*maxCalls)
	if got := answers(t, strings.NewReader(in), methods); len(got) != 2*maxCalls {
		t.Errorf("%d answers", len(got))
	}
}

// A client may write all its requests before it reads an answer.
func TestWritesFirst(t *testing.T) {
	in, client := io.Pipe()
	answers, out := io.Pipe()
	s := newRPCServer(methods, func(doc json.RawMessage) error { _, err := out.Write(append(doc, '\n')); return err })
	done := make(chan error, 1)
	go func() {
		done <- s.serve(context.Background(), in)
		out.Close()
	}()
	lines := []string{`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"x"}}`, "{", `{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","id":1,"method":"echo"}`}
	for i := range maxCalls {
		if _, err := fmt.Fprintln(client, lines[i%len(lines)]); err != nil {
			t.Fatal(err)
		}
	}
	client.Close()
	got, err := io.ReadAll(answers)
	if err != nil || bytes.Count(got, []byte("\n")) != maxCalls+maxCalls/4 || <-done != nil {
		t.Errorf("%v: %s", err, got)
	}
}

// A client that does not listen any more ends the server, once the call that it
// left has ended.
func TestClientGone(t *testing.T) {
	gone := errors.New("gone")
	finished := 0
	methods := map[string]rpcMethod{"work": methodOf(func(_ context.Context, _ struct{}, notify notifier) (any, error) {
		if err := notify("event", nil); err == nil {
			t.Error("the notification was written")
		}
		finished++
		return nil, nil
	})}
	s := newRPCServer(methods, func(json.RawMessage) error { return gone })
	r, w := io.Pipe()
	go func() {
		fmt.Fprintln(w, `{"jsonrpc":"2.0","id":1,"method":"work"}`)
		for { // more requests than are read
			if _, err := fmt.Fprintln(w, "{"); err != nil {
				return
			}
		}
	}()
	err := s.serve(context.Background(), r)
	r.Close()
	if !errors.Is(err, gone) || finished != 1 {
		t.Errorf("%v, %d calls finished", err, finished)
	}
}

// An input that breaks is an error, and what was asked before is answered.
func TestInputBreaks(t *testing.T) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"none"}`+"\n{"), errReader{broken})
	var out bytes.Buffer
	s := newRPCServer(methods, func(doc json.RawMessage) error { _, err := out.Write(doc); return err })
	if err := s.serve(context.Background(), in); !errors.Is(err, broken) || !strings.Contains(out.String(), "done") {
		t.Errorf("%v, %s", err, &out)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// Whatever comes in, each line is answered at most once with a well-formed
// answer, blank lines not at all, and the server ends in peace.
func FuzzLines(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"none"}`, `{"jsonrpc":"2.0","id":"x","method":"break","params":{}}`, "{", "[]", "\xff", "\x00",
		`{"jsonrpc":"2.0","id":1.0,"method":"none","Result":null}`, `{"jsonrpc":"2.0","id":1,"method":"none","params":"\ud800"}`, "\n\n\r\n",
		`{"jsonrpc":"2.0","id":"\ud800","method":"\ud800"}`, `{"jsonrpc":"2.0","method":"none"}`,
	} {
		f.Add([]byte(line + "\n" + line))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got := answers(t, bytes.NewReader(in), map[string]rpcMethod{"none": methods["none"], "break": methods["break"]})
		for _, line := range got {
			var doc struct {
				JSONRPC string `json:"jsonrpc"`
				ID      any
				Result  any
				Error   *struct {
					Code    int64
					Message string
				}
			}
			if err := json.Unmarshal([]byte(line), &doc); err != nil || doc.JSONRPC != "2.0" || (doc.Error == nil) == (doc.Result == nil) {
				t.Fatalf("%v: %s", err, line)
			}
		}
		filled := 0
		for line := range bytes.Lines(in) {
			if len(bytes.Trim(line, " \t\r\n")) > 0 {
				filled++
			}
		}
		if len(got) > filled {
			t.Fatalf("%d answers to %d lines", len(got), filled)
		}
	})
}
