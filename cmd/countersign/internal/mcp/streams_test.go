package mcp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestCancelledHasNoAnswer: what a client cancelled before its answer is written gets none, and every other call
// gets its own, also under an id that was used before.
func TestCancelledHasNoAnswer(t *testing.T) {
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID}}`
	call := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call"}` }
	cancelled := func(id string) string { return strings.Replace(cancel, "ID", id, 1) }
	answer := func(ids ...string) string {
		for i, id := range ids {
			ids[i] = `{"jsonrpc":"2.0","id":` + id + `,"result":{}}`
		}
		return strings.Join(ids, ",")
	}
	for _, c := range []struct {
		read    []string // an id alone: its answer is written now
		written []string
	}{
		{[]string{call("1"), call("2"), cancelled("1"), "1", "2"}, []string{answer("2")}},
		{[]string{call(`"a"`), cancelled(`"a"`), `"a"`, call(`"a"`), `"a"`}, []string{answer(`"a"`)}},
		{[]string{call("1"), cancelled("1"), "1", cancelled("1"), call("1"), "1"}, []string{answer("1")}},
		{[]string{cancelled("1"), call("1"), cancelled("2"), cancelled(`"1"`), "1"}, []string{answer("1")}},
		{[]string{call("1"), cancelled("[1]"), cancelled("null"), strings.Replace(cancelled("1"), "Id", "", 1), "1"}, []string{answer("1")}},
		{[]string{"[" + call("1") + "," + call("2") + "]", cancelled("2"), "1", "2"}, []string{"[" + answer("1", "2") + "]"}},
	} {
		var lines []string
		for _, line := range c.read {
			if strings.Contains(line, "{") {
				lines = append(lines, line)
			}
		}
		var out bytes.Buffer
		conn, err := streams{strings.NewReader(strings.Join(lines, "\n") + "\n"), &out}.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range c.read {
			var id any
			for range max(1, strings.Count(line, `"id"`)) {
				if strings.Contains(line, "{") {
					_, err = conn.Read(t.Context())
				} else if err = json.Unmarshal([]byte(line), &id); err == nil {
					of, _ := jsonrpc.MakeID(id)
					err = conn.Write(t.Context(), &jsonrpc.Response{ID: of, Result: json.RawMessage("{}")})
				}
				if err != nil {
					t.Fatal(line, err)
				}
			}
		}
		if got, want := out.String(), strings.Join(c.written, "\n")+"\n"; got != want {
			t.Errorf("%q\nwrote %s\nwant  %s", c.read, got, want)
		}
		if kept := conn.(*connection).cancelled; len(kept) > 0 {
			t.Errorf("%q: calls are kept beyond their answers: %v", c.read, kept)
		}
	}
}
