package report_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/report"
)

func TestDrift(t *testing.T) {
	many := forge.DriftBetween("a", "b", 1, strings.Fields("1 2 3 4 5 6 7 x/8"), []string{"own"})
	beside := forge.DriftBetween("a", "b", 3, []string{"x\u202ey", "z/1"}, []string{"own"})
	elsewhere := forge.DriftBetween("a", "b", 2, []string{"z/1"}, []string{"own"})
	none := forge.DriftBetween("a", "b", 2, nil, []string{"own"})
	same := forge.DriftBetween("a", "a", 0, nil, []string{"own"})
	unknown := approval.UnknownDrift("a", "b", "the history is \x1bnot here")
	for want, d := range map[string]*approval.Drift{
		"": nil,
		"1 commit since the approval, 8 files changed, 7 of them in a directory that this change touches: 1, 2, 3, 4, 5 and 2 more": &many,
		`3 commits since the approval, 2 files changed, 1 of them in a directory that this change touches: x\u202ey`:                &beside,
		"2 commits since the approval, 1 file changed, none of them in a directory that this change touches":                        &elsewhere,
		"2 commits since the approval, but no file differs":                                                                         &none,
		"since the approval, nobody can tell: the history is not here":                                                              &unknown,
	} {
		if got := report.Drift(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := report.Drift(&same); got != "" {
		t.Errorf("%q", got)
	}
}
