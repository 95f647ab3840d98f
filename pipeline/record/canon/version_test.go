package canon

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestCheck(t *testing.T) {
	for v, want := range map[string]string{
		"1.0": "", "1.1": "x was written by a newer countersign, needs at least 1.1", "2.0": "newer", "1.10": "newer", "9999.9999": "newer",
		"": "no", "1": "no", "1.": "no", ".1": "no", "01.0": "no", "1.00": "no", "1.0.0": "no", "0.9": "no", "-1.0": "no", "+1.0": "no", "1.x": "no", "1.0 ": "no", "10000.0": "no", "99999999999999999999.0": "no",
	} {
		err := CheckVersion("x", v)
		var newer *NewerError
		is := errors.As(err, &newer)
		switch {
		case is && (want == "" || want == "no" || newer.Needs != v), !is && err == nil && want != "", !is && err != nil && want != "no":
			t.Errorf("%q: %v", v, err)
		case len(want) > 5 && err.Error() != want:
			t.Errorf("%q: %v", v, err)
		}
	}
	if order, ok := CompareVersions("1.10", "1.9"); order <= 0 || !ok {
		t.Error("1.10 is before 1.9")
	}
}

type document struct {
	A      string `json:"a"`
	Schema string `json:"schema,omitempty"`
}

// TestUnmarshal: extra is passed over, needs_version is not, and neither makes up for anything else that is wrong.
func TestUnmarshal(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":"x"}`:                       "read",
		`{"a":"x","extra":{"later":[1]}}`: "read",
		`{"a":"x","extra":{"b":{"schema":"countersign/x/2"}}}`:  "read",
		`{"a":"x","extra":{"schema":"countersign/x/2"}}`:        "read",
		`{"extra":{"b":1},"schema":"countersign/x/2"}`:          "newer",
		`[{"schema":"countersign/x/2"}]`:                        "refused",
		`{"a":"x","needs_version":"1.1"}`:                       "newer",
		`{"b":1,"needs_version":"7.0"}`:                         "newer",
		`{"needs_version":"1.1"}`:                               "newer",
		`{"a":"x","extra":{"later":[1]},"needs_version":"1.1"}`: "newer",
		`{"a":"x","schema":"countersign/x/2"}`:                  "newer",
		`{"a":"x","b":{"schema":"countersign/x/3"}}`:            "refused",
		`{"a":"x","schema":"countersign/x/1"}`:                  "read",
		`{"a":"\"schema\":\"countersign/x/2\""}`:                "read",
		`{"a":"x","schema":"countersign/x/02"}`:                 "read", // its reader refuses it
		`{"schema":"countersign/x/2"`:                           "refused",
		`x "schema":"countersign/x/2"`:                          "refused",
		`{"schema":"countersign/x/2","a":"x"}`:                  "refused", // not canonical
		`{"a":"x","extra":{}}`:                                  "refused",
		`{"a":"x","extra":[1]}`:                                 "refused",
		`{"a":"x","extra":null}`:                                "refused",
		`{"a":"x","extra":"x"}`:                                 "refused",
		`{"a":"x","needs_version":"1.0"}`:                       "refused",
		`{"a":"x","needs_version":""}`:                          "refused",
		`{"a":"x","needs_version":"soon"}`:                      "refused",
		`{"a":"x","needs_version":1.1}`:                         "refused",
		`{"a":"x","needs_version":null}`:                        "refused",
		`{"a":"x","other":1}`:                                   "refused",
		`{"a":"x","extra":{"later":1},"other":1}`:               "refused",
		`{"extra":{"later":1}}`:                                 "refused",
		`{"a":"x","b":{"needs_version":"1.1"}}`:                 "refused",
		`{"extra":{"later":1},"a":"x"}`:                         "refused", // not canonical
		`{"a":"x","needs_version":"1.1" }`:                      "refused",
		`{"a":"x","needs_version":"1.1","needs_version":"1.1"}`: "refused",
		`{"a":"x","Needs_version":"1.1"}`:                       "refused",
		`{"a":"x","extra":{"later":1},"extra":{"more":1}}`:      "refused",
	} {
		var d document
		err := UnmarshalDocument("x", []byte(raw), &d)
		got := "read"
		if errors.As(err, new(*NewerError)) {
			got = "newer"
		} else if err != nil {
			got = "refused"
		}
		if got != want || got == "read" && d.A == "" {
			t.Errorf("%s is %s: %v %+v", raw, got, err, d)
		}
	}
}

// TestMadeUp: the made-up 1.1 knows what needs 1.1, and what 1.0 wrote; to the made-up 2.1 all of these are known.
func TestMadeUp(t *testing.T) {
	defer func(was string) { version = was }(version)
	for _, version = range []string{"1.1", "2.1"} {
		var d document
		if err := errors.Join(CheckVersion("x", "1.0"), CheckVersion("x", "1.1"), UnmarshalDocument("x", []byte(`{"a":"x","needs_version":"1.1"}`), &d), CheckGrowth("x", json.RawMessage(`{"a":1}`), "1.1")); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	if version = "1.1"; !errors.As(CheckVersion("x", "1.2"), new(*NewerError)) || !errors.As(CheckVersion("x", "2.0"), new(*NewerError)) || CheckGrowth("x", nil, "1.0") == nil {
		t.Error("1.1 reads what is later")
	}
}
