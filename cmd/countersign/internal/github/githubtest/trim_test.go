package githubtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const wholeREST = `{
  "openapi": "3.0.3", "info": {"title": "all", "version": "1"},
  "paths": {"/a": {"get": {"summary": "x", "parameters": [{"$ref": "#/components/parameters/p"}]}, "post": {}}, "/b": {"get": {}}},
  "x-webhooks": {"e": {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/e"}}}}}}},
  "components": {
    "parameters": {"p": {"name": "p", "example": 1, "schema": {"$ref": "#/components/schemas/s"}}},
    "schemas": {
      "s": {"type": "object", "description": "dropped", "properties": {"description": {"type": "string", "title": "dropped"}}},
      "e": {"type": "object", "x-more": 1, "properties": {"self": {"$ref": "#/components/schemas/e"}}},
      "unused": {}
    }
  }
}`

const wholeGraphQL = `directive @d on OBJECT
"dropped" type Q implements I & J @d { "dropped" a(n: ID, in: In): [Int]! b: Int c: S d: Left e: E @deprecated }
interface I { b: Int }
interface J { b: Int }
input In { more: More }
input More { a: Int }
enum E { X @deprecated Y }
scalar S
type Left { a: Int }
`

func TestTrim(t *testing.T) {
	var whole jsonObject
	if err := json.Unmarshal([]byte(wholeREST), &whole); err != nil {
		t.Fatal(err)
	}
	rest, err := trimREST(whole, []string{"GET /a"})
	same(t, rest, err, `{"components":{"parameters":{"p":{"name":"p","schema":{"$ref":"#/components/schemas/s"}}},`+
		`"schemas":{"s":{"properties":{"description":{"type":"string"}},"type":"object"}}},`+
		`"info":{"title":"GitHub REST API, trimmed","version":"1"},"openapi":"3.0.3","paths":{"/a":{"get":{"parameters":[{"$ref":"#/components/parameters/p"}]}}}}`)
	events, err := trimEvents(whole, []string{"e"})
	same(t, events["components"], err, `{"schemas":{"e":{"properties":{"self":{"$ref":"#/components/schemas/e"}},"type":"object"}}}`)
	graphql, err := trimGraphQL(wholeGraphQL, []string{"Q a c d e", "I"})
	same(t, strings.Join(strings.Fields(graphql), " "), err, compactJSON("type Q implements I { a(n: ID, in: In): [Int]! c: S e: E } "+
		"interface I { b: Int } input In { more: More } input More { a: Int } enum E { X Y } scalar S"))
	_, noType := trimGraphQL(wholeGraphQL, []string{"R"})
	for name, err := range map[string]error{
		"operation": second(trimREST(whole, []string{"PUT /a"})), "event": second(trimEvents(whole, []string{"f"})), "type": noType,
	} {
		if err == nil {
			t.Errorf("a missing %s is no error", name)
		}
	}
}

func second(_ jsonObject, err error) error { return err }

func same(t *testing.T, got any, err error, want string) {
	t.Helper()
	if err != nil {
		t.Error(err)
	} else if compactJSON(got) != want {
		t.Errorf("got  %s\nwant %s", compactJSON(got), want)
	}
}

// A schema that is written twice is shared, and stands for the same.
func TestShare(t *testing.T) {
	long := jsonObject{"type": "object", "properties": jsonObject{}}
	for _, name := range []string{"one", "two", "three", "four", "five", "six", "seven"} {
		long["properties"].(jsonObject)[name] = jsonObject{"type": "string", "nullable": true}
	}
	property := func() jsonObject { return jsonObject{"type": "object", "properties": jsonObject{"it": long}} }
	doc := jsonObject{"components": jsonObject{"schemas": jsonObject{"a": property(), "b": property()}}}
	share(doc)
	schemas := doc["components"].(jsonObject)["schemas"].(jsonObject)
	if compactJSON(schemas["a"]) != compactJSON(schemas["b"]) || compactJSON(schemas["shared-1"]) != compactJSON(long) {
		t.Error(compactJSON(doc))
	}
	if got := schemas["a"].(jsonObject)["properties"].(jsonObject)["it"]; compactJSON(got) != `{"$ref":"#/components/schemas/shared-1"}` {
		t.Error(compactJSON(got))
	}
}

// Lines break between members, never inside of a string.
func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	if err := write(file, jsonObject{"a": jsonObject{"b": `x,"y\\`, "c": 1}, "d": 2}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if want := "{\"a\":{\"b\":\"x,\\\"y\\\\\\\\\",\n\"c\":1},\n\"d\":2}\n"; string(got) != want || err != nil {
		t.Errorf("%s, want %s", got, want)
	}
}
