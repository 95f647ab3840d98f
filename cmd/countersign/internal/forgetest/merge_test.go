package forgetest

import (
	"errors"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/forge"
)

// mergeCases are of opening pull requests and merging them.
var mergeCases = []testCase{
	{"merged once", func(s *scene) {
		commit := must(s.Forge().Merge(s.Context(), s.pr, s.head))(s)
		if commit != s.Ref("main") {
			s.Errorf("merged as %s, main is %s", commit, s.Ref("main"))
		}
		if again := must(s.Forge().Merge(s.Context(), s.pr, s.head))(s); again != commit {
			s.Errorf("merged again as %s", again)
		}
	}},
	{"another head", func(s *scene) { // T05
		main := s.Ref("main")
		_, err := s.Forge().Merge(s.Context(), s.pr, main)
		s.is(err, forge.ErrMoved)
		s.unmerged(main)
	}},
	{"pushed before it is merged", func(s *scene) { // T05
		main, approved := s.Ref("main"), s.head
		s.commit(s.mallory, "topic", map[string]string{"worse.txt": "worse\n"})
		_, err := s.Forge().Merge(s.Context(), s.pr, approved)
		s.is(err, forge.ErrMoved)
		s.unmerged(main)
	}},
	{"merged at another head", func(s *scene) { // T06
		approved := s.head
		next := s.commit(s.mallory, "topic", map[string]string{"worse.txt": "worse\n"})
		must(s.Forge().Merge(s.Context(), s.pr, next))(s)
		_, err := s.Forge().Merge(s.Context(), s.pr, approved)
		s.is(err, forge.ErrMoved)
	}},
	{"a check is required", func(s *scene) {
		main := s.Ref("main")
		s.Require("main", checkName)
		f := s.Forge()
		_, err := f.Merge(s.Context(), s.pr, s.head)
		s.is(err, forge.ErrRefused)
		for _, conclusion := range []string{"action_required", "failure"} {
			s.publish(f, forge.Check{Status: "completed", Conclusion: conclusion, Title: conclusion})
			_, err = f.Merge(s.Context(), s.pr, s.head)
			s.is(err, forge.ErrRefused)
		}
		s.unmerged(main)
		s.publish(f, forge.Check{Status: "completed", Conclusion: "success", Title: "approved"})
		if commit := must(f.Merge(s.Context(), s.pr, s.head))(s); commit != s.Ref("main") {
			s.Errorf("merged as %s", commit)
		}
	}},
	{"a closed one", func(s *scene) {
		main := s.Ref("main")
		s.Close(s.eve, s.pr)
		if commit, err := s.Forge().Merge(s.Context(), s.pr, s.head); err == nil {
			s.Errorf("merged as %s", commit)
		}
		s.unmerged(main)
	}},
	{"in conflict", func(s *scene) {
		main := s.commit(s.ada, "main", map[string]string{"work.txt": "another's\n"})
		if commit, err := s.Forge().Merge(s.Context(), s.pr, s.head); err == nil {
			s.Errorf("merged as %s", commit)
		}
		s.unmerged(main)
	}},
	{"by who may not write", func(s *scene) {
		main := s.Ref("main")
		if commit, err := s.ForgeOf(s.eve).Merge(s.Context(), s.pr, s.head); err == nil {
			s.Errorf("merged as %s", commit)
		}
		s.unmerged(main)
	}},
	{"merged twice at once", func(s *scene) { // T52
		var merging sync.WaitGroup
		var commits [2]string
		var problems [2]error
		for i := range commits {
			merging.Go(func() { commits[i], problems[i] = s.Forge().Merge(s.Context(), s.pr, s.head) })
		}
		merging.Wait()
		for i, commit := range commits {
			if problems[i] == nil && commit != s.Ref("main") {
				s.Errorf("merged as %s, main is %s", commit, s.Ref("main"))
			}
		}
		if problems[0] != nil && problems[1] != nil {
			s.Error(errors.Join(problems[:]...))
		}
	}},
	{"a merge whose answer is lost", func(s *scene) {
		s.Lose(Merged)
		commit, err := s.Forge().Merge(s.Context(), s.pr, s.head)
		if err == nil && commit != s.Ref("main") {
			s.Errorf("merged as %s, main is %s", commit, s.Ref("main"))
		}
		if commit, err = s.Forge().Merge(s.Context(), s.pr, s.head); err != nil || commit != s.Ref("main") {
			s.Errorf("asked again: %s %v, main is %s", commit, err, s.Ref("main"))
		}
	}},
	{"opened once", func(s *scene) {
		s.Branch("green", s.head)
		n := forge.NewPull{Branch: "green", Base: "main", Title: "Green", Body: "text"}
		number := must(s.Forge().OpenPullRequest(s.Context(), n))(s)
		if again := must(s.Forge().OpenPullRequest(s.Context(), n))(s); again != number || number == s.pr || number == 0 {
			s.Errorf("opened %d and %d", number, again)
		}
		who := must(s.Forge().Viewer(s.Context()))(s)
		if s.pr = number; s.pull().Author != who || s.pull().Title != "Green" || s.pull().Head.Branch != "green" {
			s.Errorf("%+v", s.pull())
		}
	}},
	{"opened twice at once", func(s *scene) { // T52
		s.Branch("green", s.head)
		var opening sync.WaitGroup
		for range 2 {
			opening.Go(func() {
				_, _ = s.Forge().OpenPullRequest(s.Context(), forge.NewPull{Branch: "green", Base: "main", Title: "Green"})
			})
		}
		opening.Wait()
		if all := must(s.Forge().Open(s.Context()))(s); len(all) != 2 {
			s.Errorf("%+v", all)
		}
	}},
	{"opened, and the answer is lost", func(s *scene) {
		s.Branch("green", s.head)
		s.Lose(Opened)
		n := forge.NewPull{Branch: "green", Base: "main", Title: "Green"}
		first, err := s.Forge().OpenPullRequest(s.Context(), n)
		again := must(s.Forge().OpenPullRequest(s.Context(), n))(s)
		if err == nil && first != again {
			s.Errorf("opened %d and %d", first, again)
		}
		if all := must(s.Forge().Open(s.Context()))(s); len(all) != 2 {
			s.Errorf("%+v", all)
		}
	}},
	{"opened of a branch that there is not", func(s *scene) {
		if number, err := s.Forge().OpenPullRequest(s.Context(), forge.NewPull{Branch: "none", Base: "main", Title: "None"}); err == nil {
			s.Errorf("opened %d", number)
		}
	}},
}

// unmerged fails the test if main is not where it was, or the pull request merged.
func (s *scene) unmerged(main string) {
	s.Helper()
	if s.Ref("main") != main || s.pull().State == forge.PullRequestMerged {
		s.Errorf("main went from %s to %s, %s", main, s.Ref("main"), s.pull().State)
	}
}
