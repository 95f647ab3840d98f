package evidence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// T76 Tickets are what the Policy says, in a text of a change, each once and no part of a word. A text of any size names a few.
func TestT76Tickets(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Whole)
	pushed := strings.Repeat("e", 40)
	rules, err := policy.Parse("p", []byte(`tickets: ["[A-Z]{2,}-\\d+", "#\\d+", "a?"]`))
	check(t, err)
	many := ""
	for i := range 30 {
		many += fmt.Sprintf("OPS-%d ", i)
	}
	for name, c := range map[string]struct{ message, want string }{
		"none":                      {"fix it\n", ""},
		"of both forms":             {"OPS-1: fix it (#2)\n\nRefs: #2, OPS-1, SEC-3\n", "OPS-1 SEC-3 #2"},
		"a part of a word":          {"XOPS-1x #2y \u00e9#3 4#4\n", ""},
		"the branch of a merge":     {"Merge pull request #7 from acme/OPS-12-fix\n", "OPS-12 #7"},
		"markup":                    {"<b>OPS-1</b><script>#2</script>\n", "OPS-1 #2"},
		"of a number without end":   {"#" + strings.Repeat("1", 200) + "\n", ""},
		"behind too much of a text": {strings.Repeat("x ", 10<<10) + "OPS-1\n", ""},
		"more than are shown":       {many, strings.TrimSpace(many[:strings.Index(many, "OPS-20")])},
		"no UTF-8":                  {"\xff#1\xff\n", "#1"},
	} {
		s := source(t, files, applied(t, files, ids[0]))
		s.Policy = rules
		s.Commits[0].Message = c.message
		rows := report(t, s, "2026-01-05", "2026-01-31").Rows
		var got []string
		for _, ticket := range rows[slices.IndexFunc(rows, func(r evidence.Row) bool { return r.Commit == pushed })].Tickets {
			if got = append(got, ticket.ID); ticket.From != "commit" {
				t.Errorf("%s: from %q", name, ticket.From)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
