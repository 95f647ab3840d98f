package main

import (
	"fmt"
	"os"
	"os/exec"
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

// beforeAsking are the lines that a maintainer types between an ordinary repository and the
// first approval that is asked for.
var beforeAsking = []string{"countersign init", "git add -A", "git commit -m countersign", "git push"}

// typingTime is how long a line takes to type, at five signs a second.
func typingTime(line string) time.Duration { return time.Duration(len(line)+1) * time.Second / 5 }

// actTime prints how long it takes from init to the first approval that is asked for,
// and how long a step takes from "uses:" to the applied verdict (docs/benchmarks.md).
func actTime(r *runner) {
	var person time.Duration
	for _, line := range beforeAsking {
		person += typingTime(line)
	}
	dir := r.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "main", dir}, {"-C", dir, "remote", "add", "origin", r.s.URL + "/" + site}} {
		check(r.T, exec.Command("git", args...).Run())
	}
	began := time.Now()
	if code, _, stderr := r.run("-C", dir, "init"); code != 0 {
		r.Fatal(stderr)
	}
	ours := time.Since(began)
	for _, when := range []string{"the program is built", "warm"} {
		began = time.Now()
		r.settles(r.proposes())
		r.asked()
		act := time.Since(began)
		r.Logf("init to the first approval that is asked for, %s: %s (a person types %s, init %s, act and the jobs %s)",
			when, (person + ours + act).Round(time.Second/10), person.Round(time.Second/10), ours.Round(time.Millisecond), act.Round(time.Second/10))
	}
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
