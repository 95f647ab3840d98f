package canon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// FirstVersion is the version that needs no mention.
const FirstVersion = "1.0"

// version is that of this program. A test links a made-up one in its place.
var version = FirstVersion

// Version is the newest version that this program reads, and the one of what it begins.
func Version() string { return version }

// A NewerError is of something that only a newer program can judge. Needs is the least
// version of one that can.
type NewerError struct{ What, Needs string }

func (e *NewerError) Error() string {
	return e.What + " was written by a newer countersign, needs at least " + e.Needs
}

func (*NewerError) Hint() string { return "docs/install.md says how to get a newer countersign" }

// CompareVersions is negative where a is the older of two versions. ok is false where one is none.
func CompareVersions(a, b string) (order int, ok bool) {
	x, isX := parseVersion(a)
	y, isY := parseVersion(b)
	return slices.Compare(x[:], y[:]), isX && isY
}

// parseVersion reads MAJOR.MINOR; the first MAJOR is 1.
func parseVersion(v string) (n [2]int, ok bool) {
	major, minor, _ := strings.Cut(v, ".")
	for i, digits := range []string{major, minor} {
		var err error
		if n[i], err = strconv.Atoi(digits); err != nil || n[i] < 0 || n[i] > 9999 || strconv.Itoa(n[i]) != digits {
			return n, false
		}
	}
	return n, n[0] > 0
}

// CheckVersion is about something that says its version: nil where this program reads it, a
// *NewerError where only a newer one does, another error where it is no version.
func CheckVersion(what, v string) error {
	switch order, ok := CompareVersions(v, version); {
	case !ok:
		return fmt.Errorf("%s: %.40q is no version", what, v)
	case order > 0:
		return &NewerError{what, v}
	}
	return nil
}

// CheckGrowth checks the two members of a document, empty where they are absent.
func CheckGrowth(what string, extra json.RawMessage, needs string) error {
	if needs != "" {
		if order, ok := CompareVersions(needs, FirstVersion); !ok || order <= 0 {
			return fmt.Errorf("%s: it needs %.40q, which is no later version", what, needs)
		}
		if err := CheckVersion(what, needs); err != nil {
			return err
		}
	}
	if len(extra) > 0 && (extra[0] != '{' || string(extra) == "{}") {
		return fmt.Errorf("%s: its extra is no object with members", what)
	}
	return nil
}

// decision is the schema of the signed statement, whose number is one more than the MAJOR version.
const decision = "decision/"

// checkSchemas is a *NewerError for a document of a schema whose number, which is the MAJOR version, is newer. Text in a
// document has its quotes escaped, so what stands there is a member.
func checkSchemas(what string, raw []byte) error {
	const begin = `"schema":"countersign/`
	for rest := raw; ; {
		_, after, found := bytes.Cut(rest, []byte(begin))
		if !found {
			return nil
		}
		name, _, _ := bytes.Cut(after, []byte{'"'})
		number := string(name[bytes.LastIndexByte(name, '/')+1:]) + ".0"
		if n, isNumber := parseVersion(number); isNumber && bytes.HasPrefix(name, []byte(decision)) && n[0] > 1 {
			number = strconv.Itoa(n[0]-1) + ".0"
		}
		if order, ok := CompareVersions(number, version); ok && order > 0 {
			return &NewerError{what, number}
		}
		rest = after
	}
}

// CheckDocument is a *NewerError for a document that says itself that it is newer, by its own schema or needs_version, and another
// error where that is no version. What its other members hold may be anybody's: a trace has what an agent gave a tool.
func CheckDocument(what string, raw []byte) error {
	var all map[string]json.RawMessage
	if !bytes.Contains(raw, []byte(`"needs_version":`)) && checkSchemas(what, raw) == nil || Unmarshal(raw, &all) != nil {
		return nil // what is no document is of no version
	}
	if raw, has := all["needs_version"]; has {
		needs := ""
		if json.Unmarshal(raw, &needs) != nil || needs == "" {
			return fmt.Errorf("%s: it needs %.40s, which is no version", what, raw)
		}
		if err := CheckGrowth(what, nil, needs); err != nil {
			return err
		}
	}
	return checkSchemas(what, fmt.Appendf(nil, `"schema":%s`, all["schema"]))
}

// UnmarshalDocument is Unmarshal of a document, which may have extra and needs_version beside the
// members of v. What needs a newer version, or by its own schema is newer, is a
// *NewerError, whatever else it has.
func UnmarshalDocument(what string, raw []byte, v any) error {
	if err := CheckDocument(what, raw); err != nil {
		return err
	}
	strict := Unmarshal(raw, v)
	if strict == nil {
		return nil
	}
	var all map[string]json.RawMessage
	if err := Unmarshal(raw, &all); err != nil {
		return strict
	}
	extra, hasExtra := all["extra"]
	if _, hasNeeds := all["needs_version"]; !hasExtra && !hasNeeds {
		return strict
	}
	if err := CheckGrowth(what, extra, ""); err != nil { // what it needs was checked
		return err
	}
	delete(all, "extra")
	delete(all, "needs_version")
	rest, err := Marshal(all)
	if err != nil {
		return err
	}
	reflect.ValueOf(v).Elem().SetZero()
	return Unmarshal(rest, v)
}

// ExtraNames are the names of what an extra has, which may be empty, for people: sorted, at most ten.
func ExtraNames(extra json.RawMessage) []string {
	var all map[string]json.RawMessage
	if json.Unmarshal(extra, &all) != nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(all))
	return names[:min(len(names), 10)]
}
