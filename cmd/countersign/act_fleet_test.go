package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
)

// fleetOf makes pull requests and a clone whose fleet workflow does all of them
// at once. act takes no expression for max-parallel, and does one after the other.
func (r *runner) fleetOf(n int) *fleet {
	r.Helper()
	f := newFleet(r.hub, n)
	r.clone()
	r.jobs = n
	name := filepath.Join(r.dir, scaffold.Workflows+"fleet.yml")
	raw, err := os.ReadFile(name)
	check(r.T, err)
	literal := regexp.MustCompile(`max-parallel: .*`).ReplaceAll(raw, []byte("max-parallel: "+strconv.Itoa(n)))
	check(r.T, os.WriteFile(name, literal, 0o600))
	return f
}

// actFleet: one run settles eight pull requests, each in a job of its own, all at
// the same time. Another run finds what is left of them (their own diffs, which
// nobody approved) and applies nothing again.
func actFleet(r *runner) {
	f := r.fleetOf(8)
	e := githubtest.Event{Name: "workflow_dispatch"}
	r.wantTogether(r.act("countersign-fleet.yml", e), f)
	f.wantApplied()
	r.act("countersign-fleet.yml", e)
	f.wantApplied()
}

// wantTogether wants a job for every pull request, and most of them begun before
// the first had ended.
func (r *runner) wantTogether(log string, f *fleet) {
	r.Helper()
	begun := 0
	for _, p := range f.pulls {
		start, end := "["+p.job()+"-", "/settle] 🏁"
		at := strings.Index(log, start)
		if at < 0 {
			r.Errorf("there was no job for %s", p.job())
		}
		if first := strings.Index(log, end); at >= 0 && at < first {
			begun++
		}
	}
	if begun <= len(f.pulls)/2 {
		r.Errorf("only %d of %d jobs were there at once", begun, len(f.pulls))
	}
}

// actFleetCommands: the jobs without rights of several pull requests are in one
// run, and each finds its own clone.
func actFleetCommands(r *runner) {
	if !hasSandbox(r.TempDir()) {
		r.Skip("commands cannot be run here")
	}
	f := r.fleetOf(3)
	log := r.act("countersign-fleet.yml", githubtest.Event{Name: "workflow_dispatch"})
	for _, job := range []string{"/checks", "/finish"} {
		if !strings.Contains(log, job) {
			r.Errorf("the job %s did not run", job)
		}
	}
	f.wantApplied()
}
