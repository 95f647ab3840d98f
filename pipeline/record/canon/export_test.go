package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// The definitions that the faster ways are held to.

// UnmarshalSlowly is Unmarshal by encoding/json.
func UnmarshalSlowly(data []byte, v any) error {
	body := bytes.TrimSuffix(data, []byte("\n"))
	doc, err := Parse(body)
	if err != nil {
		return err
	}
	if again, err := Marshal(doc); err != nil || !bytes.Equal(again, body) {
		return errors.New("not canonical JSON (RFC 8785)")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if d.Decode(v) != nil {
		return errRecord
	}
	// encoding/json is lax about letter case, missing keys, null and lone
	// surrogates; writing v again shows all of them.
	if again, err := Marshal(v); err != nil || !bytes.Equal(again, body) {
		return errRecord
	}
	return nil
}

func CompareSlowly(a, b string) int { return slices.Compare(units(a), units(b)) }
