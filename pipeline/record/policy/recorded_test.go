package policy_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// TestDecode: whatever was recorded can be read, also of two long files.
func TestDecode(t *testing.T) {
	file := func(name string) policy.Policy {
		var b strings.Builder
		b.WriteString("protected: [{paths: [" + strings.ReplaceAll(many(1000), "a", name) + "]}]\ncommands: {run: [")
		for i := range 1500 {
			fmt.Fprintf(&b, "%s%d,", name, i)
		}
		b.WriteString("]}\n")
		return parse(t, b.String())
	}
	p := policy.Tighten(file("a"), file("b"))
	if len(p.Commands.Run) != 3000 || len(p.Protected) != 2 {
		t.Fatalf("%d commands, %d rules", len(p.Commands.Run), len(p.Protected))
	}
	got, err := policy.Decode(p.JSON())
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Error(err)
	}
	if got, err := policy.Decode(policy.Default().JSON()); err != nil || !reflect.DeepEqual(got, policy.Default()) {
		t.Errorf("%v %+v", err, got)
	}
}

// TestDecodeRefuses: nothing that JSON did not write.
func TestDecodeRefuses(t *testing.T) {
	good := string(policy.Default().JSON())
	for name, raw := range map[string]string{
		"nothing": "", "null": "null\n", "empty": "{}\n", "yaml": "version: 1\n", "no LF": strings.TrimSuffix(good, "\n"), "spaces": " " + good,
		"a key more":  strings.Replace(good, `"apply":{}`, `"apple":{},"apply":{}`, 1),
		"a key twice": strings.Replace(good, `"apply":{}`, `"apply":{},"apply":{}`, 1),
		"a value":     strings.Replace(good, `"required":1`, `"required":0`, 1),
		"a fraction":  strings.Replace(good, `"required":1`, `"required":1.2`, 1),
		"a version":   strings.Replace(good, `"version":1`, `"version":2`, 1),
		"another way": strings.Replace(good, `"bytes":5242880`, `"bytes":"5 MiB"`, 1),
	} {
		if p, err := policy.Decode([]byte(raw)); err == nil || !reflect.DeepEqual(p, policy.Policy{}) {
			t.Errorf("%s: %v %+v", name, err, p)
		}
	}
	if _, err := policy.Decode([]byte(good + strings.Repeat(" ", 4<<20))); err == nil || !strings.Contains(err.Error(), "more than 4194304") {
		t.Errorf("too long: %v", err)
	}
}
