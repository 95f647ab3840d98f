package online

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

func TestHonest(t *testing.T) {
	r, _, _ := asks(t, aRecord(), options(honest()))
	if r.Counts[Same] != 7 || len(r.Findings) != 7 || r.Bad()+r.Open() != 0 || r.Remaining != 0 || r.Asked != r.Questions || r.Repository != site.Name {
		t.Errorf("%+v", r)
	}
}

// What a forge that has something else comes to; each case changes one thing.
func TestT01T03Differences(t *testing.T) {
	said := func(change func(*approval.Statement)) func(*aForge, *recorded) {
		return func(f *aForge, _ *recorded) { change(&f.said[3][0]) }
	}
	run := func(change func(*forge.CheckRun)) func(*aForge, *recorded) {
		return func(f *aForge, _ *recorded) { change(&f.checks["check/"+patch][0]) }
	}
	other, third := patch[:40], patch[20:60]
	refused := func(change func(*aForge), heads ...string) func(*aForge, *recorded) { // those with a "!" are of diffs that are not denied
		return func(f *aForge, r *recorded) {
			d := denied{place: place{"tx_3", site.ID, site.Name, 5}, By: ada.Login, Heads: map[string]bool{}}
			for _, head := range heads {
				name, not := strings.CutPrefix(head, "!")
				d.Heads[name] = !not
			}
			r.denied = []denied{d}
			if change != nil {
				change(f)
			}
		}
	}
	for _, c := range []struct {
		name, what string
		change     func(*aForge, *recorded)
		want       Verdict
	}{
		{"another text", WhatComment, said(func(s *approval.Statement) { s.Body += " " }), Changed},
		{"deleted", WhatComment, func(f *aForge, _ *recorded) { f.said[3] = nil }, Gone},
		{"something of the pull request is not found", WhatComment, func(f *aForge, _ *recorded) { f.errs["Statements"] = forge.ErrNotFound }, Unknown},
		{"the pull request is not found", WhatComment, func(f *aForge, _ *recorded) {
			f.errs["Statements"], f.errs["Ends"] = forge.ErrNotFound, forge.ErrNotFound
		}, Gone},
		{"told by an event alone", WhatComment, said(func(s *approval.Statement) { s.Gone = true }), Gone},
		{"another kind with that number", WhatComment, said(func(s *approval.Statement) { s.Kind = approval.KindIssueComment }), Gone},
		{"another account of that login", WhatComment, said(func(s *approval.Statement) { s.Author.ID = "13" }), Changed},
		{"an account that is gone", WhatComment, said(func(s *approval.Statement) { s.Author = ledger.Actor{Kind: "bot", Login: "ghost"} }), Changed},
		{"another login", WhatComment, said(func(s *approval.Statement) { s.Author.Login = "ada2" }), Same},
		{"another time", WhatComment, said(func(s *approval.Statement) { s.CreatedAt = "2026-01-03T03:04:05Z" }), Changed},
		{"dismissed", WhatComment, said(func(s *approval.Statement) { s.State = approval.ReviewDismissed }), Changed},
		{"edited and edited back", WhatComment, said(func(s *approval.Statement) { s.Edited, s.Earlier = true, []string{"no"} }), Changed},
		{"edited or resolved, with one text", WhatComment, said(func(s *approval.Statement) { s.Edited = true }), Unknown},
		{"no first text any more", WhatComment, said(func(s *approval.Statement) { s.Untold = true }), Unknown},
		{"hidden", WhatComment, said(func(s *approval.Statement) { s.Hidden = true }), Note},
		{"a text that was not recorded", WhatComment, func(_ *aForge, r *recorded) { r.said[0].BodyHash = "" }, Unknown},

		{"by an app", WhatComment, said(func(s *approval.Statement) { s.App = "evil" }), Changed},
		{"by e-mail", WhatComment, said(func(s *approval.Statement) { s.Email = true }), Changed},
		{"no person's any more", WhatComment, said(func(s *approval.Statement) { s.Author.Kind = "bot" }), Note},
		{"what was asked reads otherwise", WhatRequest, func(f *aForge, _ *recorded) { f.said[3][1].Body = "approve something nice" }, Changed},
		{"what was asked was edited", WhatRequest, func(f *aForge, _ *recorded) { f.said[3][1].Edited = true }, Changed},
		{"what was asked is gone", WhatRequest, func(f *aForge, _ *recorded) { f.said[3] = f.said[3][:1] }, Gone},

		{"another login", WhatAccount, func(f *aForge, _ *recorded) {
			f.accounts[ada.ID] = ledger.Actor{Kind: "user", ID: ada.ID, Login: "ada2"}
		}, Note},
		{"the same in capitals", WhatAccount, func(f *aForge, _ *recorded) {
			f.accounts[ada.ID] = ledger.Actor{Kind: "user", ID: ada.ID, Login: "Ada"}
		}, Same},
		{"the answer is of another account", WhatAccount, func(f *aForge, _ *recorded) { f.accounts[ada.ID] = bot }, Unknown},
		{"no such account", WhatAccount, func(f *aForge, _ *recorded) { f.errs["Account"] = forge.ErrNotFound }, Gone},
		{"no such account, and what it may do", WhatPermission, func(f *aForge, _ *recorded) { f.errs["Account"] = forge.ErrNotFound }, Unknown},
		{"a number that was taken for a secret", WhatAccount, func(_ *aForge, r *recorded) { r.said[0].Source.Author.ID = "<REDACTED:x>" }, Unknown},
		{"may do less", WhatPermission, func(f *aForge, _ *recorded) { f.access.Permission = "read" }, Note},
		{"what it may do is not told", WhatPermission, func(f *aForge, _ *recorded) { f.access = approval.Access{} }, Unknown},
		{"nothing was recorded", WhatPermission, func(_ *aForge, r *recorded) { r.said[0].Source.Permission = "" }, Unknown},

		{"not merged", WhatPull, func(f *aForge, _ *recorded) { f.end.State = forge.PullRequestClosed }, Changed},
		{"merged at another head", WhatPull, func(f *aForge, _ *recorded) { f.end.Head = patch[:40] }, Changed},
		{"no state", WhatPull, func(f *aForge, _ *recorded) { f.end.State = "" }, Unknown},
		{"no head", WhatPull, func(f *aForge, _ *recorded) { f.end.Head = "" }, Unknown},
		{"of another repository", WhatPull, func(f *aForge, _ *recorded) { f.end.Repository = "8" }, Unknown},
		{"no such pull request", WhatPull, func(f *aForge, _ *recorded) { f.errs["Ends"] = forge.ErrNotFound }, Gone},

		{"what was denied was merged", WhatDenied, refused(nil, head), Changed},
		{"what was denied is open", WhatDenied, refused(func(f *aForge) { f.end.State = forge.PullRequestOpen }, head), Same},
		{"another diff was merged", WhatDenied, refused(nil, other, "!"+head), Same},
		{"at a head that is not recorded", WhatDenied, refused(nil, other), Changed},
		{"at one that is not recorded, of one diff or another", WhatDenied, refused(nil, other, "!"+third), Unknown},
		{"what was denied, and another diff was proposed", WhatDenied, refused(nil, head, "!"+other), Changed},
		{"no state of a denied one", WhatDenied, refused(func(f *aForge) { f.end.State = "" }, head), Unknown},
		{"no answer about a denied one", WhatDenied, refused(func(f *aForge) { f.errs["Ends"] = errors.New("500") }, head), Unknown},
		{"no such denied pull request", WhatDenied, refused(func(f *aForge) { f.errs["Ends"] = forge.ErrNotFound }, head), Gone},
		{"a denied one of another repository", WhatDenied, refused(func(f *aForge) { f.end.Repository = "8" }, head), Unknown},

		{"no check run", WhatCheckRun, func(f *aForge, _ *recorded) { f.checks["check/"+patch] = nil }, Unknown},
		{"none, of a person's token", WhatCheckRun, func(f *aForge, r *recorded) { f.checks["check/"+patch], r.checks[0].By = nil, ada }, Unknown},
		{"a failure", WhatCheckRun, run(func(c *forge.CheckRun) { c.Conclusion = "failure" }), Changed},
		{"no conclusion", WhatCheckRun, run(func(c *forge.CheckRun) { c.Conclusion = "" }), Changed},
		{"of another app", WhatCheckRun, run(func(c *forge.CheckRun) { c.App = "evil" }), Changed},
		{"of another transaction", WhatCheckRun, run(func(c *forge.CheckRun) { c.ExternalID = "tx_9" }), Unknown},
		{"of a transaction that is not told", WhatCheckRun, run(func(c *forge.CheckRun) { c.ExternalID = "" }), Note},
		{"of another name", WhatCheckRun, run(func(c *forge.CheckRun) { c.Name = "other" }), Unknown},
		{"and another app's", WhatCheckRun, func(f *aForge, _ *recorded) {
			f.checks["check/"+patch] = append(f.checks["check/"+patch], forge.CheckRun{Name: "check/" + patch, App: "evil", Conclusion: success})
		}, Note},

		{"not demanded", WhatRequired, func(f *aForge, _ *recorded) { f.required.Checks = nil }, Changed},
		{"another check", WhatRequired, func(f *aForge, _ *recorded) { f.required.Checks[0].Name = "gates" }, Changed},
		{"not demanded, and nothing guarded", WhatRequired, func(f *aForge, r *recorded) { f.required.Checks, r.guarded = nil, "" }, Note},
		{"not all was told", WhatRequired, func(f *aForge, _ *recorded) { f.required = forge.Required{Unread: "rulesets"} }, Unknown},
		{"what was told is enough", WhatRequired, func(f *aForge, _ *recorded) { f.required.Unread = "rulesets" }, Same},
		{"of anybody", WhatRequired, func(f *aForge, _ *recorded) { f.required.Checks[0].AppID = 0 }, Note},
		{"of an app, and nothing was merged", WhatRequired, func(_ *aForge, r *recorded) { r.gate = merged{} }, Unknown},
		{"of an app, and merged elsewhere", WhatRequired, func(_ *aForge, r *recorded) { r.gate.Repository = "8" }, Unknown},
		{"of an app, and nothing guarded", WhatRequired, func(_ *aForge, r *recorded) { r.gate, r.guarded = merged{}, "" }, Note},
		{"of another app than wrote it", WhatRequired, func(f *aForge, _ *recorded) { f.required.Checks[0].AppID = 16 }, Changed},
		{"of an app that nothing is known of", WhatRequired, func(f *aForge, _ *recorded) { f.checks["gate"] = nil }, Unknown},
	} {
		f, r := honest(), aRecord()
		c.change(f, r)
		if _, found, _ := asks(t, r, options(f)); found[c.what].Verdict != c.want {
			t.Errorf("%s, %s: %+v, want %s", c.what, c.name, found[c.what], c.want)
		}
	}
}

// T61: whatever fails is unknown and nothing else is, whatever the error. A "not found"
// counts only where other things of the kind are found.
func TestT61Failures(t *testing.T) {
	about := map[string][]string{
		"Statements": {WhatComment, WhatRequest}, "Account": {WhatAccount, WhatPermission}, "Access": {WhatPermission},
		"Ends": {WhatPull}, "CheckRuns": {WhatCheckRun, WhatRequired}, "Required": {WhatRequired},
		"DefaultBranch": {WhatComment, WhatRequest, WhatAccount, WhatPermission, WhatPull, WhatCheckRun, WhatRequired},
	}
	for method, whats := range about {
		for _, err := range []error{errors.New("500"), forge.ErrPermission, context.DeadlineExceeded, forge.ErrNotFound} {
			f := honest()
			f.errs[method] = fmt.Errorf("asking: %w", err)
			f.errs["Open"], f.errs["Account of the viewer"] = forge.ErrPermission, forge.ErrPermission
			if method != "Account" {
				delete(f.errs, "Account of the viewer")
			}
			r, found, _ := asks(t, aRecord(), options(f))
			for what, got := range found {
				if want := slices.Contains(whats, what); (got.Verdict == Unknown) != want || want && got.Reason == "" {
					t.Errorf("%s fails with %v: %+v", method, err, got)
				}
			}
			if r.Bad() != 0 || r.Open() != len(whats) || len(found) != 7 {
				t.Errorf("%s fails with %v: %+v", method, err, r)
			}
		}
	}
}

// T82: answers without members are no reason to say that something is the same.
func TestT82EmptyAnswers(t *testing.T) {
	f := honest()
	f.said, f.access, f.accounts, f.end, f.checks, f.required = nil, approval.Access{}, nil, forge.End{}, nil, forge.Required{}
	r, _, _ := asks(t, aRecord(), options(f))
	if r.Counts[Same]+r.Counts[Note] != 0 {
		t.Errorf("%+v", r.Findings)
	}
	for _, side := range []forge.Side{{}, {Branch: "main"}, {Repository: &ledger.Repository{Name: site.Name}, Branch: "main"}, {Repository: &site}} {
		f := honest()
		f.side = side
		if r, _, kept := asks(t, aRecord(), options(f)); r.Counts[Unknown] != 7 || kept != nil || len(f.asked) != 1 {
			t.Errorf("%+v: %+v, asked %q", side, r, f.asked)
		}
	}
}

// What is recorded of another repository is not asked about.
func TestT15AnotherRepository(t *testing.T) {
	f := honest()
	f.side.Repository = &ledger.Repository{ID: "8", Name: site.Name}
	r, found, _ := asks(t, aRecord(), options(f))
	if r.Counts[Unknown] != 7 || len(found) != 7 {
		t.Errorf("%+v", r)
	}
	for _, asked := range f.asked {
		if !strings.HasPrefix(asked, "DefaultBranch") && !strings.HasPrefix(asked, "Required") {
			t.Errorf("asked %q", f.asked)
		}
	}
}

// A run that may not send enough ends, and the next ones go on, until all is answered as
// it is in one run; nothing is asked twice.
func TestResumed(t *testing.T) {
	whole, _, _ := asks(t, aRecord(), options(honest()))
	for most := 1; most < 8; most++ {
		var kept []byte
		var last Result
		var all []string
		for range 20 {
			f := honest()
			o := options(f)
			f.most, o.Kept = most, kept
			before := last.Remaining
			last, _, kept = asks(t, aRecord(), o)
			all = append(all, f.asked...)
			if kept == nil || last.Remaining == 0 || last.Remaining == before && before > 0 {
				break
			}
			if last.Stopped == "" {
				t.Errorf("%d requests: %+v", most, last)
			}
		}
		if most > 2 && (last.Remaining != 0 || !maps.Equal(last.Counts, whole.Counts)) { // the longest question takes two, after the first
			t.Errorf("%d requests at once: %+v, asked %q", most, last, all)
		}
		if most > 2 && len(slices.DeleteFunc(all, func(a string) bool { return a != "Statements 3" })) != 1 {
			t.Errorf("asked twice")
		}
		if last.Bad() != 0 {
			t.Errorf("%d requests at once: %+v", most, last)
		}
	}
}

// A question that takes more than a run may send is unknown, and in the way of no other.
func TestTooLong(t *testing.T) {
	r := aRecord()
	f := honest()
	o := options(f)
	for range 10 {
		f.most = 2
		_, _, o.Kept = asks(t, r, o)
	}
	f.most = 2
	got, _, _ := asks(t, r, o)
	if got.Remaining != 0 || got.Counts[Unknown] == 0 || got.Counts[Same] < 3 {
		t.Errorf("%+v", got)
	}
}

// An answer counts for a while, if it was the same; what was not is asked again.
func TestKeptAnswers(t *testing.T) {
	f := honest()
	f.end.State = forge.PullRequestClosed
	_, _, kept := asks(t, aRecord(), options(f))
	for _, c := range []struct {
		name   string
		change func(*Options, *recorded)
		asked  int
	}{
		{"a moment later", func(o *Options, _ *recorded) {}, 1},
		{"a day later", func(o *Options, _ *recorded) { o.Now = o.Now.Add(24 * time.Hour) }, 5},
		{"almost", func(o *Options, _ *recorded) { o.Now = o.Now.Add(24*time.Hour - time.Second) }, 1},
		{"before that", func(o *Options, _ *recorded) { o.Now = o.Now.Add(-time.Second) }, 5},
		{"no age", func(o *Options, _ *recorded) { o.MaxAge = 0 }, 5},
		{"another record", func(_ *Options, r *recorded) { r.said[0].Source.CreatedAt = "2026-01-02T03:04:06Z" }, 2},
		{"another program", func(_ *Options, r *recorded) { r.program = ada }, 2},
		{"another time in a finding", func(o *Options, _ *recorded) {
			o.Kept = []byte(strings.ReplaceAll(string(o.Kept), `"asked_at":"2026-03-01T12:00:00Z","now"`, `"asked_at":"2026-03-01T11:00:00Z","now"`))
		}, 5},
		{"half of the file", func(o *Options, _ *recorded) { o.Kept = o.Kept[:len(o.Kept)/2] }, 5},
		{"no end of line", func(o *Options, _ *recorded) { o.Kept = o.Kept[:len(o.Kept)-2] }, 5},
		{"nothing in it", func(o *Options, _ *recorded) { o.Kept = []byte("\n") }, 5},
		{"another verdict", func(o *Options, _ *recorded) { o.Kept = []byte(strings.ReplaceAll(string(o.Kept), `"same"`, `"fine"`)) }, 5},
		{"no verdict", func(o *Options, _ *recorded) { o.Kept = []byte(strings.ReplaceAll(string(o.Kept), `"same"`, `""`)) }, 5},
		{"another schema", func(o *Options, _ *recorded) { o.Kept = []byte(strings.ReplaceAll(string(o.Kept), keptSchema, "x")) }, 5},
		{"another repository", func(o *Options, _ *recorded) {
			o.Kept = []byte(strings.ReplaceAll(string(o.Kept), `"repository":"7"`, `"repository":"8"`))
		}, 5},
		{"another server", func(o *Options, _ *recorded) {
			o.Kept = []byte(strings.ReplaceAll(string(o.Kept), "forge.example", "forge.invalid"))
		}, 5},
		{"findings taken out", func(o *Options, _ *recorded) { o.Kept = emptied(t, o.Kept) }, 5},
	} {
		f := honest()
		o, r := options(f), aRecord()
		o.Kept = kept
		c.change(&o, r)
		got, _, again := asks(t, r, o)
		if got.Asked != c.asked || got.Asked+got.Reused != got.Questions || got.Counts[Same] < 5 || got.Bad() != 0 && c.name != "another record" {
			t.Errorf("%s: %+v, asked %q, want %d", c.name, got, f.asked, c.asked)
		}
		if len(again) == 0 {
			t.Errorf("%s: nothing is kept", c.name)
		}
	}
}

// In a ledger of which a day's runs ask only a part, what was never asked goes before what
// was asked too long ago, and that the oldest first: nothing waits for ever.
func TestNothingWaitsForEver(t *testing.T) {
	r := aRecord()
	for n := range 30 {
		s := r.said[0]
		s.Number = 100 + n
		r.said = append(r.said, s)
	}
	var kept []byte
	asked := map[string]int{}
	for run := range 40 {
		f := honest()
		for n := range 30 {
			f.said[100+n] = f.said[3]
		}
		f.most = 5
		o := options(f)
		o.Now, o.Kept, o.MaxAge = now.Add(time.Duration(run)*10*time.Hour), kept, 24*time.Hour
		_, _, kept = asks(t, r, o)
		for _, a := range f.asked {
			if strings.HasPrefix(a, "Statements") {
				asked[a]++
			}
		}
	}
	if least, most := slices.Min(slices.Collect(maps.Values(asked))), slices.Max(slices.Collect(maps.Values(asked))); len(asked) != 31 || most-least > 2 {
		t.Errorf("%v", asked)
	}
}

// Many failures in a row end a run; a forge that says no to all is asked about all.
func TestManyFailures(t *testing.T) {
	r := aRecord()
	for n := range 30 {
		s := r.said[0]
		s.Number = 100 + n
		r.said = append(r.said, s)
	}
	f := honest()
	f.errs["Statements"] = errors.New("500")
	if got, _, _ := asks(t, r, options(f)); got.Stopped == "" || got.Remaining == 0 || len(f.asked) > 20 {
		t.Errorf("%+v, asked %q", got, f.asked)
	}
	f = honest()
	f.errs["Statements"] = forge.ErrPermission
	if got, _, _ := asks(t, r, options(f)); got.Stopped != "" || got.Remaining != 0 || got.Counts[Unknown] != 32 {
		t.Errorf("%+v", got)
	}
}

// What the caller found without a verdict is unknown.
func TestT82FoundWithoutVerdict(t *testing.T) {
	o := options(honest())
	o.Found = []Finding{{What: WhatLedger}}
	if r, found, _ := asks(t, aRecord(), o); found[WhatLedger].Verdict != Unknown || r.Open() != 1 {
		t.Errorf("%+v", r)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := aRecord().run(ctx, options(honest())); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
