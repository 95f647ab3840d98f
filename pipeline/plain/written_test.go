package plain_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// TestAsWritten: what people read of a recorded Policy is the same Policy.
func TestAsWritten(t *testing.T) {
	for _, text := range []string{
		"version: 1\n", "version: 1\nprotected:\n- paths: [\"*.go\", \"a b\", \"'\", \"yes\", \"a#x\"]\n  required: 2\n  users: [ada]\n",
		"version: 1\nsecrets:\n  signed: require\napprovals:\n  required: 2\n  permission: admin\n",
	} {
		p, err := policy.Parse("a", []byte(text))
		if err != nil {
			t.Fatal(text, err)
		}
		written := plain.AsWritten(string(p.JSON()))
		again, err := policy.Parse("b", []byte(written))
		if err != nil || string(again.JSON()) != string(p.JSON()) || strings.HasPrefix(written, "{") {
			t.Errorf("%s\nis read as %s: %v", written, again.JSON(), err)
		}
	}
	if got := plain.AsWritten("no {"); got != "no {" {
		t.Errorf("%q", got)
	}
}
