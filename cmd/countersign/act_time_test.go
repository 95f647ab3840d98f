package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
)

// timed runs the action twice: the first step has to build it, and the second is
// the one whose time is taken.
const timed = `
on: issue_comment
jobs:
  settle:
    runs-on: ubuntu-latest
    steps:
      - uses: ` + scaffold.UseCheckout + `
        with:
          ref: main
          fetch-depth: 0
          persist-credentials: false
      - uses: ` + actUses + `
        with:
          stage: plan
          token: ${{ github.token }}
      - run: mkdir -p "$ARTIFACTS" && date +%s%N > "$ARTIFACTS/times"
      - uses: ` + actUses + `
        with:
          stage: settle
          token: ${{ github.token }}
      - run: date +%s%N >> "$ARTIFACTS/times"
`

// actTime prints how long a step takes from "uses:" to the applied verdict
// (docs/benchmarks.md).
func actTime(r *runner) {
	r.settles(r.proposes())
	head, fingerprint := r.tip(), r.asked()
	check(r.T, os.WriteFile(filepath.Join(r.dir, ".github", "workflows", "timed.yml"), []byte(timed), 0o600))
	r.act("timed.yml", commented(r.says("ada", approveLine+fingerprint)))
	r.wantApplied(head, fingerprint)
	raw, err := os.ReadFile(filepath.Join(r.uploads, "times"))
	check(r.T, err)
	var from, to int64
	if _, err := fmt.Sscan(string(raw), &from, &to); err != nil || to <= from {
		r.Fatalf("the times are %q: %v", raw, err)
	}
	r.Logf("uses: to verdict, with a warm binary: %s", time.Duration(to-from).Round(time.Millisecond))
}
