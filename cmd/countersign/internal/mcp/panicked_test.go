package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/secret"
)

// A program of which nothing is needed but what a call does with its own: it opens nothing, and keeps what it is
// told.
type program struct {
	Program
	warned *[]string
	closed *int
}

func (p program) Fresh() Program        { return p }
func (p program) Open() (Stages, error) { return nil, nil }
func (p program) Close() error          { *p.closed++; return nil }
func (p program) Warn(err error)        { *p.warned = append(*p.warned, secret.Default().Text(err.Error())) }

func (p program) Redacted(doc any) (json.RawMessage, error) {
	raw, err := canon.Marshal(doc)
	if err != nil {
		return nil, err
	}
	clean, err := secret.Default().RedactJSON(raw, nil)
	return json.RawMessage(clean.String()), err
}

func (p program) Failure(err error) (int, string, secret.Redacted) {
	return 1, "", secret.Default().Redact(err.Error())
}

// TestPanicEndsOneCall: a tool, or a document, that panics answers with an error, without a stack or a secret; whoever
// runs the server is told in one line; and the session goes on, with all places free.
func TestPanicEndsOneCall(t *testing.T) {
	var warned []string
	closed := 0
	s, err := newService(program{warned: &warned, closed: &closed}, "1")
	if err != nil {
		t.Fatal(err)
	}
	planted := strings.Join([]string{"AK", "IA", "QYLPMN5HFIQR7XYA"}, "")
	addTool(s, sdk.Tool{Name: "panics", InputSchema: object(schema{})}, func(*call, context.Context, struct{}) (any, error) {
		return strings.Fields(" ")[0], nil // the runtime's own
	})
	addTool(s, sdk.Tool{Name: "tells", InputSchema: object(schema{})}, func(*call, context.Context, struct{}) (any, error) {
		panic("with " + planted)
	})
	addTool(s, sdk.Tool{Name: "works", InputSchema: object(schema{})}, func(*call, context.Context, struct{}) (any, error) {
		return map[string]any{"ok": true}, nil
	})
	s.server.AddResource(&sdk.Resource{URI: "countersign://panics", Name: "panics"}, s.resource(func(*call, context.Context, string) (any, error) { panic("a document") }))
	here, there := sdk.NewInMemoryTransports()
	if _, err := s.server.Connect(t.Context(), here, nil); err != nil {
		t.Fatal(err)
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range MaxCalls + 1 {
		for _, name := range []string{"panics", "tells"} {
			result, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: name})
			if err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
			raw, err := json.Marshal(result)
			text := string(raw)
			if err != nil || !result.IsError || !strings.Contains(text, `"rule":"bug"`) || !strings.Contains(text, "TestPanicEndsOneCall.func") || strings.Contains(text, planted) || strings.Contains(text, "goroutine") || strings.Contains(text, ".go:") {
				t.Fatalf("%s %v", text, err)
			}
		}
	}
	if _, err := client.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "countersign://panics"}); err == nil || !strings.Contains(err.Error(), "a bug in countersign ended this call, and no other: a document (resources/read") {
		t.Errorf("%v", err)
	}
	if result, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "works"}); err != nil || result.IsError {
		t.Errorf("%+v %v", result, err)
	}
	calls := 2*(MaxCalls+1) + 1
	if len(warned) != calls || closed != 1+calls+1 || len(s.work) > 0 {
		t.Errorf("%d are told, %d closed, %d at work", len(warned), closed, len(s.work))
	}
	for _, line := range warned {
		if strings.ContainsAny(line, "\n") || strings.Contains(line, planted) {
			t.Errorf("%q", line)
		}
	}
}
