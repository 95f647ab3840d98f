package explain

import (
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
)

func day(n int) time.Time { return time.Date(2026, 1, n, 12, 0, 0, 0, time.UTC) }

// T56 When a commit came is told by the ledger, and a record that contradicts itself hides
// no commit from every period.
func TestT56Came(t *testing.T) {
	chain := []code.BranchCommit{{ID: "a", When: 1}, {ID: "b"}, {ID: "c"}, {ID: "d"}}
	now := day(20)
	for name, c := range map[string]struct {
		named, begun map[string]time.Time
		want         [4]Span
	}{
		"nothing told":       {nil, nil, [4]Span{{By: now}, {By: now}, {By: now}, {By: now}}},
		"named":              {map[string]time.Time{"c": day(5), "b": day(7)}, nil, [4]Span{{By: day(5)}, {By: day(5)}, {By: day(5)}, {By: now}}},
		"made":               {map[string]time.Time{"b": day(4), "d": day(9)}, map[string]time.Time{"b": day(3)}, [4]Span{{By: day(4)}, {day(3), day(4)}, {day(3), day(9)}, {day(3), day(9)}}},
		"made after it was":  {map[string]time.Time{"c": day(2)}, map[string]time.Time{"b": day(8)}, [4]Span{{By: day(2)}, {By: day(2)}, {By: day(2)}, {day(8), now}}},
		"made in the future": {map[string]time.Time{"b": day(90)}, map[string]time.Time{"b": day(90)}, [4]Span{{By: now}, {By: now}, {By: now}, {By: now}}},
	} {
		x := &Index{named: c.named, begun: c.begun}
		got := x.Came(chain, now)
		for i, want := range c.want {
			if got[i] != want {
				t.Errorf("%s: commit %s came %v, want %v", name, chain[i].ID, got[i], want)
			}
			n := 0
			for d := 1; d <= 20; d++ {
				if got[i].Within(day(d).Add(-12*time.Hour), day(d).Add(12*time.Hour)) {
					n++
				}
			}
			if n == 0 {
				t.Errorf("%s: commit %s came on no day", name, chain[i].ID)
			}
		}
	}
}
