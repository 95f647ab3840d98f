package githubtest

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

//go:embed testdata/events.json
var eventsDescription []byte

var loadEvents = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromData(eventsDescription)
})

// checkEvent holds a payload against GitHub's description of the event. There
// is none of "schedule".
func checkEvent(e Event, payload []byte) error {
	if e.Name == "schedule" {
		return nil
	}
	doc, err := loadEvents()
	if err != nil {
		misuse("%v", err)
	}
	name := "webhook-" + strings.ReplaceAll(strings.TrimSuffix(e.Name, "_target"), "_", "-")
	if e.Action != "" {
		name += "-" + strings.ReplaceAll(e.Action, "_", "-")
	}
	schema := doc.Components.Schemas[name]
	if schema == nil {
		return fmt.Errorf("GitHub describes no %s", name)
	}
	var v any
	if err := json.Unmarshal(payload, &v); err != nil {
		return err
	}
	return short(schema.Value.VisitJSON(v, openapi3.MultiErrors()))
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
