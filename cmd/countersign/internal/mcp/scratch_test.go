package mcp

import (
	"context"
	"encoding/json"
	"testing"
)

// An agent is told of a decision only where the answer has one: a member that is missing or unknown is none.
func TestWaitScratchDecided(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]any{
		`{"verdict":"approved","closed":false}`: true, `{"verdict":"denied"}`: true, `{"closed":true}`: true,
		`{"verdict":"pending","closed":false}`: false, `{"closed":false}`: false, `{}`: false, `{"verdict":"","closed":"true"}`: false, `{"verdict":true}`: false,
		`{"error":"x"}`: nil,
	} {
		none := 0.0
		raw, err := waitScratch(t.Context(), &none, func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(doc), nil })
		var got struct{ Decided any }
		if err != nil || json.Unmarshal(raw, &got) != nil || got.Decided != want {
			t.Errorf("%s: %s, %v", doc, raw, err)
		}
	}
}
