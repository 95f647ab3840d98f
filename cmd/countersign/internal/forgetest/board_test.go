package forgetest

import (
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

const checkName = "countersign"

// boardCases are of what the program tells on a pull request.
var boardCases = []testCase{
	{"checks", func(s *scene) {
		f := s.Forge()
		if runs := s.checks(f); len(runs) != 0 {
			s.Errorf("%+v", runs)
		}
		for _, conclusion := range []string{"action_required", "neutral", "failure", "success"} {
			s.publish(f, forge.Check{Status: "completed", Conclusion: conclusion, Title: "it is " + conclusion, Summary: "long", ExternalID: "tx"})
			runs := s.checks(f)
			if len(runs) != 1 || runs[0].Name != checkName || runs[0].Title != "it is "+conclusion || runs[0].App == "" || runs[0].AppID == 0 {
				s.Fatalf("%s: %+v", conclusion, runs)
			}
			success := runs[0].Status == "completed" && runs[0].Conclusion == "success"
			if success != (conclusion == "success") || !s.lacks(CheckRuns) && (runs[0].Conclusion != conclusion || runs[0].Summary != "long" || runs[0].ExternalID != "tx") {
				s.Errorf("%s: %+v", conclusion, runs[0])
			}
		}
		s.publish(f, forge.Check{Status: "in_progress", Title: "again"})
		if runs := s.checks(f); len(runs) != 1 || runs[0].Status == "completed" || runs[0].Conclusion == "success" {
			s.Errorf("%+v", runs)
		}
	}},
	{"checks of other names and commits", func(s *scene) {
		f := s.Forge()
		s.publish(f, forge.Check{Status: "completed", Conclusion: "success", Title: "well"})
		if runs := must(f.CheckRuns(s.Context(), s.head, "other"))(s); len(runs) != 0 {
			s.Errorf("%+v", runs)
		}
		if runs := must(f.CheckRuns(s.Context(), s.Ref("main"), ""))(s); len(runs) != 0 {
			s.Errorf("%+v", runs)
		}
		if runs := must(f.CheckRuns(s.Context(), s.head, ""))(s); len(runs) != 1 {
			s.Errorf("%+v", runs)
		}
		for _, commit := range []string{"main", "", "../x", strings.Repeat("g", 40)} {
			if runs, err := f.CheckRuns(s.Context(), commit, ""); err == nil {
				s.Errorf("%q: %+v", commit, runs)
			}
		}
	}},
	{"another's check of our name", func(s *scene) { // T60, T67
		ours := s.Forge()
		s.publish(ours, forge.Check{Status: "completed", Conclusion: "action_required", Title: "ours"})
		_, err := s.ForgeOf(s.mallory).PublishCheckOver(s.Context(), s.head, forge.Check{Name: checkName, Status: "completed", Conclusion: "success", Title: "theirs"}, nil)
		if !s.lacks(CheckRuns) { // apps alone have check runs
			s.is(err, forge.ErrPermission)
		} else if err != nil {
			s.Fatal(err)
		}
		var apps []int64
		var mine *forge.CheckRun
		runs := s.checks(ours)
		for i := range runs {
			apps = append(apps, runs[i].AppID)
			if runs[i].Title == "ours" {
				mine = &runs[i]
			}
		}
		slices.Sort(apps)
		if mine == nil || len(slices.Compact(apps)) != len(runs) || mine.Conclusion == "success" {
			s.Errorf("%+v", runs)
		}
	}},
	{"a reader's check", func(s *scene) {
		if run, err := s.ForgeOf(s.eve).PublishCheckOver(s.Context(), s.head, forge.Check{Name: checkName, Status: "completed", Conclusion: "success", Title: "x"}, nil); err == nil {
			s.Errorf("%+v", run)
		}
		if runs := s.checks(s.Forge()); len(runs) != 0 {
			s.Errorf("%+v", runs)
		}
	}},
	{"a comment that is updated", func(s *scene) {
		f := s.Forge()
		first := must(f.UpsertComment(s.Context(), s.pr, "", "one"))(s)
		again := must(f.UpsertComment(s.Context(), s.pr, first.ID, "two"))(s)
		if again.ID != first.ID || again.Kind != approval.KindIssueComment || again.BodySHA256 != canon.Sum([]byte("two")) || again.URL == "" {
			s.Errorf("%+v %+v", first, again)
		}
		who := must(f.Viewer(s.Context()))(s)
		if texts := must(f.CommentsBy(s.Context(), s.pr, who))(s); !slices.Equal(texts, []string{"two"}) {
			s.Errorf("%q", texts)
		}
	}},
	{"a comment of ours that somebody deleted", func(s *scene) {
		f := s.Forge()
		first := must(f.UpsertComment(s.Context(), s.pr, "", "one"))(s)
		s.Delete(s.mallory, first.ID)
		again := must(f.UpsertComment(s.Context(), s.pr, first.ID, "two"))(s)
		if all := s.statements(); again.ID == first.ID || len(all) != 1 || all[0].Body != "two" || all[0].ID != again.ID {
			s.Errorf("%+v, %+v", again, all)
		}
	}},
	{"a big comment of ours", func(s *scene) { // T63
		text := strings.Repeat("€", 20_000) + "😀 end"
		posted := must(s.Forge().UpsertComment(s.Context(), s.pr, "", text))(s)
		if posted.BodySHA256 != canon.Sum([]byte(text)) {
			s.Error("it is not as it was posted")
		}
		who := must(s.Forge().Viewer(s.Context()))(s)
		if texts := must(s.Forge().CommentsBy(s.Context(), s.pr, who))(s); len(texts) != 1 || texts[0] != text {
			s.Errorf("%d texts", len(texts))
		}
	}},
	{"comments by others", func(s *scene) { // T60
		f := s.Forge()
		s.Comment(s.ada, s.pr, "ada's")
		s.Comment(s.mallory, s.pr, "mallory's")
		if texts := must(f.CommentsBy(s.Context(), s.pr, s.ada))(s); !slices.Equal(texts, []string{"ada's"}) {
			s.Errorf("%q", texts)
		}
		who := s.ada
		who.ID = ""
		if texts, _ := f.CommentsBy(s.Context(), s.pr, who); len(texts) != 0 {
			s.Errorf("by a login alone: %q", texts)
		}
	}},
	{"eight comments at once", func(s *scene) { // T52
		var writing sync.WaitGroup
		for range 8 {
			writing.Go(func() {
				if _, err := s.Forge().UpsertComment(s.Context(), s.pr, "", "one of eight"); err != nil {
					s.Error(err)
				}
			})
		}
		writing.Wait()
		ids := map[string]bool{}
		for _, one := range s.statements() {
			ids[one.ID] = true
		}
		if len(ids) != 8 {
			s.Errorf("%d comments", len(ids))
		}
	}},
	{"a comment whose answer is lost", func(s *scene) {
		s.Lose(Commented)
		if posted, err := s.Forge().UpsertComment(s.Context(), s.pr, "", "once"); err == nil {
			s.Errorf("%+v", posted)
		}
		s.statement(approval.KindIssueComment, "once") // and not twice
	}},
	{"a request in a thread", func(s *scene) { // T17
		f := s.Forge()
		posted, err := f.CreateReviewComment(s.Context(), s.pr, s.head, "work.txt", "/approve this?")
		if s.lacks(FileThreads) {
			if s.is(err, forge.ErrRefused); len(s.statements()) != 0 {
				s.Error("there is one")
			}
			if resolved, err := f.ResolveThread(s.Context(), s.pr, "1"); resolved || err != nil {
				s.Errorf("%v %v", resolved, err)
			}
			return
		}
		if err != nil {
			s.Fatal(err)
		}
		if got := s.statement(approval.KindReviewComment, "/approve this?"); got.ID != posted.ID || posted.BodySHA256 != canon.Sum([]byte(got.Body)) {
			s.Errorf("%+v %+v", got, posted)
		}
		if resolved, err := f.ResolveThread(s.Context(), s.pr, posted.ID); !resolved || err != nil {
			s.Errorf("%v %v", resolved, err)
		}
	}},
}

func (s *scene) publish(f forge.Forge, check forge.Check) {
	s.Helper()
	check.Name = checkName
	must(f.PublishCheckOver(s.Context(), s.head, check, s.checks(f)))(s)
}

func (s *scene) checks(f forge.Forge) []forge.CheckRun {
	s.Helper()
	return must(f.CheckRuns(s.Context(), s.head, checkName))(s)
}
