package observation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// T76 Whatever a forge says of a branch, its lines are bounded and in order, a change behind the bound is told by a hash, and more
// lines than are kept are not kept as if they were all.
func TestT76SettingsLines(t *testing.T) {
	at, in := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), ledger.Repository{ID: "7", Name: "acme/shop"}
	of := func(rules ...string) *observation.Settings {
		return observation.NewSettings(in, "main", at, rules, nil)
	}
	long := strings.Repeat("a", 5000)
	hostile := of("b", "a\n\x1b[2J", "b", long+"1", "<script>")
	if err := hostile.Check(at); err != nil || len(hostile.Rules) != 4 {
		t.Errorf("%v: %q", err, hostile.Rules)
	}
	if of(long+"1").Same(of(long+"2")) || !of(long+"1", "a").Same(of("a", long+"1")) || of("a").Same(observation.NewSettings(in, "next", at, []string{"a"}, nil)) {
		t.Error("a change was not seen, or one that is none")
	}
	if of().Same(observation.NewSettings(in, "main", at, nil, []string{"a"})) {
		t.Error("what was not read is nothing")
	}
	var many []string
	for i := range observation.MaxSettings + 1 {
		many = append(many, fmt.Sprint(i))
	}
	if of(many...).Check(at) == nil || of(many[1:]...).Check(at) != nil || of("a").Check(at.Add(-time.Second)) == nil {
		t.Error("too many lines, or a time after it was recorded")
	}
}
