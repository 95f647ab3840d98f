package forge_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

func TestDrift(t *testing.T) {
	for _, c := range []struct {
		name             string
		changed, touched string
		beside           int
		names            string
	}{
		{"nothing", "", "a.go", 0, ""},
		{"elsewhere", "b/x.go c.go", "a/y.go", 0, ""},
		{"beside", "a/z.go c.go a/x.go", "a/y.go", 2, "a/x.go a/z.go"},
		{"below is not beside", "a/b/x.go", "a/y.go", 0, ""},
		{"above is not beside", "x.go", "a/y.go", 0, ""},
		{"at the root", "x.go a/y.go", "z.go", 1, "x.go"},
		{"a touched file is none", "a/y.go", "a/y.go", 0, ""},
		{"of a rename both directories", "a/1 b/1", "a/old b/new", 2, "a/1 b/1"},
		{"a directory whose name begins the same", "ab/1", "a/y.go", 0, ""},
		{"only the first are named", "a/7 a/6 a/5 a/4 a/3 a/2 a/1", "a/y", 7, "a/1 a/2 a/3 a/4 a/5"},
	} {
		want := approval.Drift{From: "f", To: "t", Commits: 3, Files: len(strings.Fields(c.changed)), Beside: c.beside, Names: strings.Fields(c.names)}
		if got := forge.DriftBetween("f", "t", 3, strings.Fields(c.changed), strings.Fields(c.touched)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}

// TestStanding: what is written reads as it was.
func TestStanding(t *testing.T) {
	s := forge.StandingAt(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC), 12, "head")
	for _, id := range []string{"10", "2", "10", ""} {
		forge.AddID(s.Teams, "acme/sec", id)
	}
	forge.AddID(s.Owners, "x", "2")
	s.Decisions = append(s.Decisions, forge.Stood(ledger.ApprovalDecision{ApprovalRequestID: "req_1"}, "its comment is gone", approval.Access{Permission: "write", Role: "maintainer"}))
	got, err := canon.Line(s)
	want := `{"decisions":[{"approval_request_id":"req_1","permission":"write","reason":"its comment is gone","role":"maintainer","stands":false}],` +
		`"head_commit":"head","owners":{"x":["2"]},"policy":{"commit":"","sha256":""},"pull_request":12,"read_at":"2026-01-05T12:00:00.000Z","schema":"countersign/standing/1","teams":{"acme/sec":["10","2"]}}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\ngot  %swant %s", err, got, want)
	}
	var back approval.Standing
	if err := canon.Unmarshal(bytes.TrimSpace(got), &back); err != nil {
		t.Error(err)
	}
}
