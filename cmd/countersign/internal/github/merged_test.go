package github

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// TestMerged: those that were merged since, and nothing where an answer is not whole.
func TestMerged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	for i := range 2 {
		branch := fmt.Sprint("other", i)
		w.Push(githubtest.NewCommit{Repository: site, Branch: branch, By: "eve", Files: map[string]string{branch: "x\n"}})
		w.PullRequest(githubtest.NewPullRequest{Repository: site, By: "eve", Head: branch, Title: branch})
	}
	w.Merge(site, 1, "ada", "merge")
	w.ClosePull(site, 3)
	got, err := w.client.Merged(ctx, time.Time{})
	if err != nil || len(got) != 1 || got[0].Number != 1 || got[0].At.IsZero() {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err = w.client.Merged(ctx, got[0].At.Add(time.Second)); err != nil || len(got) != 0 {
		t.Errorf("since later: %+v, %v", got, err)
	}
	const whole = `{"data":{"repository":{"pullRequests":{"totalCount":1,"pageInfo":{"hasNextPage":false,"endCursor":"x"},"nodes":[{"number":1,"mergedAt":"2026-01-02T03:04:05Z"}]}}}}`
	for _, fault := range []githubtest.Fault{{Status: 502}, {Kind: githubtest.EmptyPage}, {Kind: githubtest.GraphQLPartial, Text: "repository.pullRequests"}, {Kind: githubtest.Half}} {
		fault.Contains, fault.Times = "states: MERGED", -1
		w.Fail(fault)
		if got, err := w.client.Merged(ctx, time.Time{}); err == nil {
			t.Errorf("%+v: %+v", fault, got)
		}
		w.Heal()
	}
	for what, text := range map[string]string{
		"":                     whole,
		"no time":              strings.Replace(whole, `"mergedAt":"2026-01-02T03:04:05Z"`, `"mergedAt":null`, 1),
		"no such member":       strings.Replace(whole, `,"mergedAt":"2026-01-02T03:04:05Z"`, "", 1),
		"no number":            strings.Replace(whole, `"number":1,`, "", 1),
		"an entry that is not": strings.Replace(whole, `{"number":1,"mergedAt":"2026-01-02T03:04:05Z"}`, "null", 1),
		"fewer than counted":   strings.Replace(whole, `"totalCount":1`, `"totalCount":2`, 1),
		"no word on the rest":  strings.Replace(whole, `"hasNextPage":false,`, "", 1),
		"no nodes":             strings.Replace(whole, `"nodes"`, `"edges"`, 1),
		"no repository":        `{"data":{"repository":null}}`,
	} {
		w.Fail(githubtest.Fault{Contains: "states: MERGED", Kind: githubtest.Body, Text: text, Times: -1})
		got, err := w.client.Merged(ctx, time.Time{})
		if (err == nil) != (what == "") || what == "" && len(got) != 1 {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		w.Heal()
	}
}
