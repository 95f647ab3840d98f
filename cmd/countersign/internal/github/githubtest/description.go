package githubtest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

//go:embed testdata/rest.json
var restDescription []byte

// A description is GitHub's of its REST API, cut down.
type description struct {
	doc     *openapi3.T
	options *openapi3filter.Options
}

var loadDescription = sync.OnceValues(func() (*description, error) {
	doc, err := openapi3.NewLoader().LoadFromData(restDescription)
	if err != nil {
		return nil, fmt.Errorf("loading the description of the REST API: %w", err)
	}
	doc.Servers = nil
	correct(doc)
	options := &openapi3filter.Options{
		IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true,
	}
	options.WithCustomSchemaErrorFunc(func(err *openapi3.SchemaError) string {
		return "/" + strings.Join(err.JSONPointer(), "/") + ": " + err.Reason
	})
	return &description{doc, options}, nil
})

// correct makes up for where the description is known to be wrong: the
// repository of a pull request's head is null once it was deleted, as the
// description of the event pull_request_review says.
func correct(doc *openapi3.T) {
	head := doc.Components.Schemas["pull-request"].Value.Properties["head"].Value
	head.Properties["repo"] = doc.Components.Schemas["nullable-repository"].Value.NewRef()
}

// A checked is one request that was held against the description.
type checked struct {
	d          *description
	input      *openapi3filter.RequestValidationInput
	violations []string
}

func (d *description) request(o operation, r *http.Request, body []byte) *checked {
	item := d.doc.Paths.Value(o.path)
	if item == nil || item.GetOperation(o.method) == nil {
		panic("githubtest: " + o.method + " " + o.path + " is not in the description")
	}
	found := item.GetOperation(o.method)
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	input := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: map[string]string{}, Options: d.options,
		Route: &routers.Route{Spec: d.doc, Path: o.path, PathItem: item, Method: o.method, Operation: found},
	}
	c := &checked{d: d, input: input}
	known := []string{}
	for _, p := range found.Parameters {
		switch p.Value.In {
		case "path":
			input.PathParams[p.Value.Name] = r.PathValue(p.Value.Name)
		case "query":
			known = append(known, p.Value.Name)
		}
	}
	for name := range r.URL.Query() {
		if !slices.Contains(known, name) {
			c.violations = append(c.violations, fmt.Sprintf("no parameter %q", name))
		}
	}
	if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
		c.violations = append(c.violations, err.Error())
	}
	c.violations = append(c.violations, unknownFields(found, body)...)
	return c
}

// unknownFields are the fields of a body that the description does not name. It
// allows them, and GitHub ignores them, so that a mistake would go unseen.
func unknownFields(o *openapi3.Operation, body []byte) (violations []string) {
	var given map[string]any
	if o.RequestBody == nil || json.Unmarshal(body, &given) != nil {
		return nil
	}
	schema := o.RequestBody.Value.Content.Get("application/json").Schema.Value
	for name := range given {
		has := func(part *openapi3.SchemaRef) bool { return part.Value.Properties[name] != nil }
		if schema.Properties[name] == nil && !slices.ContainsFunc(slices.Concat(schema.OneOf, schema.AnyOf, schema.AllOf), has) {
			violations = append(violations, fmt.Sprintf("no field %q", name))
		}
	}
	return violations
}

// common are the statuses that any operation may answer with, whether its
// description says so or not.
var common = []int{400, 401, 403, 404, 422}

func (c *checked) response(recorded *httptest.ResponseRecorder) error {
	if c.input.Route.Operation.Responses.Status(recorded.Code) == nil && slices.Contains(common, recorded.Code) {
		var v any
		if err := json.Unmarshal(recorded.Body.Bytes(), &v); err != nil {
			return err
		}
		return c.d.doc.Components.Schemas["basic-error"].Value.VisitJSON(v)
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: c.input, Status: recorded.Code, Header: recorded.Header(), Options: c.d.options,
		Body: io.NopCloser(bytes.NewReader(recorded.Body.Bytes())),
	})
}

// complete gives an answer what its description requires.
func (c *checked) complete(a answer) answer {
	if described := c.input.Route.Operation.Responses.Status(a.status); a.status < 300 && described != nil && a.body != nil {
		a.body = completed(described.Value.Content.Get("application/json").Schema.Value, a.body)
	}
	return a
}

// completed is a document with what its schema requires and the stand-in has no
// word for: addresses, counts, the ids of nodes. What it is about, its id among it,
// the stand-in has to say itself.
func completed(schema *openapi3.Schema, document any) any {
	data, err := json.Marshal(document)
	var v any
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		misuse("%v", err)
	}
	complete(schema, v)
	return v
}

func complete(schema *openapi3.Schema, v any) {
	for _, part := range slices.Concat(schema.AllOf, schema.AnyOf, chosen(schema, v)) {
		complete(part.Value, v)
	}
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			complete(schema.Items.Value, one)
		}
	case object:
		for _, name := range schema.Required {
			if _, given := v[name]; !given && name != "id" {
				v[name] = least(schema.Properties[name].Value)
			}
		}
		for name, property := range schema.Properties {
			complete(property.Value, v[name])
		}
	}
}

// chosen is the one of several schemas that a document says it is of, else the first.
func chosen(schema *openapi3.Schema, v any) openapi3.SchemaRefs {
	if o, ok := v.(object); ok && schema.Discriminator != nil {
		said, _ := o[schema.Discriminator.PropertyName].(string)
		for i, one := range schema.OneOf {
			if one.Ref == schema.Discriminator.Mapping[said].Ref {
				return schema.OneOf[i : i+1]
			}
		}
	}
	return schema.OneOf[:min(1, len(schema.OneOf))]
}

// least is the value of a schema that says least.
func least(schema *openapi3.Schema) any {
	parts := slices.Concat(schema.AllOf, schema.OneOf, schema.AnyOf)
	switch {
	case schema.Nullable:
		return nil
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case len(parts) > 0:
		return least(parts[0].Value)
	case schema.Format == "date-time":
		return "2026-01-01T00:00:00Z"
	}
	return map[string]any{"array": []any{}, "boolean": false, "integer": 0, "number": 0, "object": object{}, "string": ""}[schema.Type.Slice()[0]]
}

//go:embed testdata/events.json
var eventsDescription []byte

var loadEvents = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromData(eventsDescription)
})

// eventSchema is GitHub's description of an event. There is none of "schedule".
func eventSchema(e Event) *openapi3.Schema {
	doc, err := loadEvents()
	if err != nil {
		misuse("%v", err)
	}
	name := "webhook-" + strings.ReplaceAll(strings.TrimSuffix(e.Name, "_target"), "_", "-")
	if e.Action != "" {
		name += "-" + strings.ReplaceAll(e.Action, "_", "-")
	}
	if doc.Components.Schemas[name] == nil {
		return nil
	}
	return doc.Components.Schemas[name].Value
}

// checkEvent holds a payload against GitHub's description of the event.
func checkEvent(e Event, payload []byte) error {
	schema := eventSchema(e)
	if schema == nil && e.Name != "schedule" {
		return errors.New("GitHub describes no such event")
	}
	var v any
	if err := json.Unmarshal(payload, &v); err != nil || schema == nil {
		return err
	}
	return short(schema.VisitJSON(v, openapi3.MultiErrors()))
}

// short is an error without the schema that it is about.
func short(err error) error {
	var many openapi3.MultiError
	if !errors.As(err, &many) {
		return err
	}
	var all []error
	for _, one := range many {
		var schema *openapi3.SchemaError
		if errors.As(one, &schema) {
			one = fmt.Errorf("/%s: %s", strings.Join(schema.JSONPointer(), "/"), schema.Reason)
		}
		all = append(all, one)
	}
	return errors.Join(all...)
}
