package forgetest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/report"
)

// onlineCases are of an approval that was recorded, and asked about again later.
var onlineCases = []testCase{
	{"asked again, nothing has changed", func(s *scene) {
		s.approved()
		s.tells(online.WhatComment, online.Same, "approve sha256:")
		s.tells(online.WhatAccount, online.Same, "ada")
		s.tells(online.WhatPermission, online.Same, "write")
	}},
	{"asked again, the approval was edited", func(s *scene) { // T01
		s.Edit(s.ada, s.approved(), "never mind")
		s.tells(online.WhatComment, online.Changed, "another text")
	}},
	{"asked again, the approval was edited and edited back", func(s *scene) { // T01
		id := s.approved()
		s.Edit(s.mallory, id, "never mind")
		s.Edit(s.mallory, id, s.line)
		s.tells(online.WhatComment, online.Changed, "edited since")
	}},
	{"asked again, the approval was deleted", func(s *scene) { // T03
		s.Delete(s.ada, s.approved())
		s.Comment(s.mallory, s.pr, s.line)
		s.tells(online.WhatComment, online.Gone, "")
	}},
	{"asked again, a review was dismissed", func(s *scene) { // T03
		s.guards()
		id := s.Review(s.ada, s.pr, "APPROVED", "")
		s.wants(approval.Approved, "")
		s.tells(online.WhatReview, online.Same, "")
		s.Dismiss(s.Person("zoe", "admin"), s.pr, id)
		s.tells(online.WhatReview, online.Changed, "dismissed")
	}},
	{"asked again, a denial was deleted", func(s *scene) { // T03
		s.proposes()
		id := s.Comment(s.ada, s.pr, s.denial())
		s.wants(approval.Denied, "")
		s.tells(online.WhatComment, online.Same, "deny")
		s.Delete(s.ada, id)
		s.tells(online.WhatComment, online.Gone, "")
	}},
	{"asked again, another login, and another account with the former one", func(s *scene) { // T11
		s.proposes()
		walt := s.Person("walt", "write")
		s.Comment(walt, s.pr, s.line)
		s.wants(approval.Approved, "")
		s.Rename(walt, "walter")
		if _, err := s.Reuse(walt, "admin"); err != nil {
			s.Log(err)
		}
		s.tells(online.WhatComment, online.Same, "")
		s.tells(online.WhatAccount, online.Note, "walter")
		s.tells(online.WhatPermission, online.Same, "write")
	}},
	{"asked again, an account was deleted", func(s *scene) { // T11
		s.proposes()
		walt := s.Person("walt", "write")
		s.Comment(walt, s.pr, s.line)
		s.wants(approval.Approved, "")
		s.DeleteAccount(walt)
		s.tells(online.WhatPermission, online.Unknown, "")
		for _, f := range s.again(s.auditor()).Findings {
			if f.What != online.WhatRequired && f.Verdict != online.Unknown && f.Verdict != online.Changed && f.Verdict != online.Gone {
				s.Errorf("of an account that is gone: %+v", f)
			}
		}
	}},
	{"asked again, a permission is another now", func(s *scene) { // T09
		s.proposes()
		walt := s.Person("walt", "write")
		s.Comment(walt, s.pr, s.line)
		s.wants(approval.Approved, "")
		s.Role(walt, "read")
		s.tells(online.WhatPermission, online.Note, "read")
	}},
	{"asked again, by who may not ask", func(s *scene) { // T08
		s.approved()
		for _, f := range s.again(s.ForgeOf(s.eve).(forge.Auditor)).Findings {
			if f.What == online.WhatPermission && f.Verdict != online.Unknown {
				s.Errorf("%+v", f)
			}
		}
	}},
	{"asked again, the forge fails after any request", func(s *scene) { // T61
		s.approved()
		for n := range mostRequests {
			heal := s.Break(n)
			r := s.again(s.auditor())
			heal()
			if r.Bad() > 0 {
				s.Errorf("after %d requests: %+v", n, r.Findings)
			}
			if r.Open() == 0 {
				return
			}
		}
		s.Errorf("it is not answered after %d requests", mostRequests)
	}},
	{"asked again, a merged pull request", func(s *scene) { // T06
		s.guards()
		s.Review(s.ada, s.pr, "APPROVED", "")
		s.wants(approval.Approved, "")
		must(s.Forge().Merge(s.Context(), s.pr, s.head))(s)
		ended := must(s.runner().EndOwnDiff(s.Context(), s.tx, func(context.Context, pipeline.Judgement) (string, error) { return "", nil }))(s)
		s.tells(online.WhatPull, online.Same, "merged at "+s.head)
		s.tells(online.WhatCheckRun, online.Unknown, "")
		patchID := ended.Transaction().PatchID()
		done := forge.Check{Name: report.CheckName(patchID), Status: "completed", Conclusion: "success", ExternalID: s.tx, Title: "merged"}
		must(s.Forge().PublishCheckOver(s.Context(), s.head, done, nil))(s)
		verdict := online.Same
		if s.lacks(CheckRuns) { // of which transaction a status is, it does not tell
			verdict = online.Note
		}
		s.tells(online.WhatCheckRun, verdict, "success")
		done.Conclusion, done.Title = "failure", "or not"
		must(s.Forge().PublishCheckOver(s.Context(), s.head, done, nil))(s)
		s.tells(online.WhatCheckRun, online.Changed, "failure")
	}},
	{"asked again, a denied pull request that was merged all the same", func(s *scene) { // T03
		s.denies()
		s.tells(online.WhatDenied, online.Same, "open at")
		must(s.Forge().Merge(s.Context(), s.pr, s.head))(s)
		s.tells(online.WhatDenied, online.Changed, "merged at "+s.head)
		for most := range 2 {
			found, more, err := online.AskDenied(s.Context(), s.auditor(), must(s.store.Snapshot(s.Context()))(s).Tree, most)
			if err != nil || len(found) != most || more != 1-most || most > 0 && found[0].Verdict != online.Changed {
				s.Errorf("of %d: %+v, %d more, %v", most, found, more, err)
			}
		}
	}},
	{"asked again, one whose denied diff was merged at another head", func(s *scene) { // T03
		s.denies()
		s.commit(s.bob, "topic", map[string]string{"work.txt": "else\n"})
		s.commit(s.bob, "topic", topicFiles())
		must(s.Forge().Merge(s.Context(), s.pr, s.head))(s)
		s.tells(online.WhatDenied, online.Changed, "merged at "+s.head)
	}},
	{"asked again, one that was denied, changed, approved and merged", func(s *scene) {
		s.denies()
		s.commit(s.bob, "topic", map[string]string{"work.txt": "else\n"})
		s.guards()
		s.Review(s.ada, s.pr, "APPROVED", "")
		s.wants(approval.Approved, "")
		must(s.Forge().Merge(s.Context(), s.pr, s.head))(s)
		s.tells(online.WhatDenied, online.Same, "merged at "+s.head)
		must(s.runner().EndOwnDiff(s.Context(), s.tx, func(context.Context, pipeline.Judgement) (string, error) { return "", nil }))(s)
		s.tells(online.WhatDenied, online.Same, "merged at "+s.head)
		s.tells(online.WhatPull, online.Same, "merged at "+s.head)
	}},
	{"asked again, what the default branch demands", func(s *scene) { // T67
		s.guards()
		s.tells(online.WhatRequired, online.Changed, "not demanded")
		s.Require("main", report.GuardName)
		s.tells(online.WhatRequired, online.Note, "demanded by main")
	}},
}

// approved is an approval of ada's in a comment, on record; the comment's id.
func (s *scene) approved() string {
	s.Helper()
	s.proposes()
	id := s.Comment(s.ada, s.pr, s.line)
	s.wants(approval.Approved, "")
	return id
}

// denies has the pull request's own diff denied by ada.
func (s *scene) denies() {
	s.Helper()
	s.guards()
	s.Comment(s.ada, s.pr, s.denial())
	s.wants(approval.Denied, "")
}

// auditor is the program's token as an audit asks with it, which has heard nothing yet.
func (s *scene) auditor() forge.Auditor { return s.Forge().(forge.Auditor) }

// again is what the forge tells of the ledger now.
func (s *scene) again(f forge.Auditor) online.Result {
	s.Helper()
	snap := must(s.store.Snapshot(s.Context()))(s)
	r, _, err := online.Run(s.Context(), online.Options{
		Ledger: snap.Tree, Tip: snap.Tip, Forge: f, Now: time.Now(), CheckName: report.CheckName, Gate: report.GuardName,
	})
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// tells fails the test unless there is one finding about something, with a verdict and a
// text.
func (s *scene) tells(what string, verdict online.Verdict, text string) {
	s.Helper()
	r := s.again(s.auditor())
	found := slices.DeleteFunc(slices.Clone(r.Findings), func(f online.Finding) bool { return f.What != what })
	if len(found) != 1 || found[0].Verdict != verdict || !strings.Contains(found[0].Now, text) {
		s.Errorf("%s: %+v; want %s, %q", what, found, verdict, text)
	}
}
