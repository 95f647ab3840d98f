package forgetest

import (
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
)

// pullCases are of what a pull request is, and of finding it.
var pullCases = []testCase{
	{"a pull request", func(s *scene) {
		p := s.pull()
		if p.Number != s.pr || p.State != forge.PullRequestOpen || p.Draft || p.Title != "Work" || p.Author != s.eve || p.Fork() || p.MergeCommit+p.MergedAt != "" || p.Strangers {
			s.Errorf("%+v", p)
		}
		if p.Head.Commit != s.head || p.Head.Branch != "topic" || p.Head.Protected || p.Base.Branch != "main" || p.Base.Commit != s.Ref("main") || p.Base.CloneURL == "" {
			s.Errorf("head %+v, base %+v", p.Head, p.Base)
		}
		if p.Repository != *p.Base.Repository || p.Repository.ID == "" || len(p.Committers) != 1 || p.Committers[0] != s.bob {
			s.Errorf("%+v, committers %+v", p.Repository, p.Committers)
		}
		if want := []string{"work.txt"}; !slices.Equal(p.Paths, want) && !s.lacks(Paths) {
			s.Errorf("paths %q", p.Paths)
		}
	}},
	{"there is no such pull request", func(s *scene) {
		_, err := s.Forge().PullRequest(s.Context(), 999)
		s.is(err, forge.ErrNotFound)
	}},
	{"pushes move the head", func(s *scene) {
		next := s.commit(s.mallory, "topic", map[string]string{"more.txt": "more\n"})
		p := s.pull()
		if p.Head.Commit != next || len(p.Committers) != 2 || !slices.Contains(p.Committers, s.mallory) {
			s.Errorf("%+v %+v", p.Head, p.Committers)
		}
		forced := s.force(s.ada, "topic", map[string]string{"work.txt": "forced\n"})
		if p = s.pull(); p.Head.Commit != forced || len(p.Committers) != 1 || p.Committers[0] != s.ada {
			s.Errorf("forced: %+v %+v", p.Head, p.Committers)
		}
	}},
	{"a commit with co-authors", func(s *scene) { // T10
		s.commit(s.mallory, "topic", map[string]string{"more.txt": "more\n"}, s.ada, s.eve)
		if p := s.pull(); p.Strangers || !slices.Contains(p.Committers, s.mallory) || !slices.Contains(p.Committers, s.ada) || !slices.Contains(p.Committers, s.eve) {
			s.Errorf("%+v", p)
		}
	}},
	{"a commit of nobody's", func(s *scene) { // T10
		commit := s.Stranger("topic", 1)
		if p := s.pull(); !p.Strangers || p.Head.Commit != commit {
			s.Errorf("%+v", p)
		}
	}},
	{"commits on several pages", func(s *scene) { // T62
		first := s.commit(s.mallory, "topic", map[string]string{"a.txt": "a\n"})
		s.Stranger("topic", s.PageSize())
		if p := s.pull(); !slices.Contains(p.Committers, s.bob) || !slices.Contains(p.Committers, s.mallory) || p.Head.Commit == first {
			s.Errorf("%+v", p.Committers)
		}
	}},
	{"a fork's", func(s *scene) {
		commit := s.Fork(s.eve, "topic", map[string]string{"work.txt": "theirs\n"}) // of the same name
		s.pr = s.Open(s.eve, Pull{Fork: true, Branch: "topic", Title: "Theirs"})
		p := s.pull()
		if !p.Fork() || p.Head.Commit != commit || p.Head.Branch != "topic" || p.Head.Repository == nil || p.Head.Repository.ID == p.Base.Repository.ID ||
			p.Head.Protected || p.Head.CloneURL == p.Base.CloneURL {
			s.Errorf("%+v", p.Head)
		}
	}},
	{"a fork's that is gone", func(s *scene) {
		commit := s.Fork(s.eve, "theirs", map[string]string{"work.txt": "theirs\n"})
		s.pr = s.Open(s.eve, Pull{Fork: true, Branch: "theirs", Title: "Theirs"})
		s.DeleteFork(s.eve)
		if p := s.pull(); !p.Fork() || p.Head.Repository != nil || p.Head.Commit != commit {
			s.Errorf("%+v", p.Head)
		}
		for _, one := range must(s.Forge().Open(s.Context()))(s) {
			if one.Number == s.pr && (one.Head.Owner != "" || one.Head.Repository != "") {
				s.Errorf("%+v", one)
			}
		}
	}},
	{"states", func(s *scene) {
		s.Close(s.eve, s.pr)
		if p := s.pull(); p.State != forge.PullRequestClosed || p.Head.Commit != s.head || p.MergeCommit+p.MergedAt != "" {
			s.Errorf("closed: %+v", p)
		}
		s.Reopen(s.eve, s.pr)
		if p := s.pull(); p.State != forge.PullRequestOpen || p.Head.Commit != s.head {
			s.Errorf("reopened: %+v", p)
		}
		commit := must(s.Forge().Merge(s.Context(), s.pr, s.head))(s)
		p := s.pull()
		all := must(s.Forge().Merged(s.Context(), hourAgo()))(s)
		if p.State != forge.PullRequestMerged || p.MergeCommit != commit || p.Head.Commit != s.head || len(all) != 1 || p.MergedAt != all[0].At.UTC().Format(time.RFC3339) {
			s.Errorf("merged: %+v, listed %+v", p, all)
		}
	}},
	{"pushed while it was closed", func(s *scene) {
		s.Close(s.eve, s.pr)
		next := s.commit(s.mallory, "topic", map[string]string{"work.txt": "other\n"})
		s.Reopen(s.eve, s.pr)
		if p := s.pull(); p.Head.Commit != next || !slices.Contains(p.Committers, s.mallory) {
			s.Errorf("%+v %+v", p.Head, p.Committers)
		}
	}},
	{"its branch is deleted", func(s *scene) {
		s.Branch("topic", "")
		p := s.pull()
		if p.Head.Commit != s.head || p.Head.Protected {
			s.Errorf("%+v", p)
		}
	}},
	{"a draft", func(s *scene) {
		s.commit(s.bob, "draft", map[string]string{"draft.txt": "?\n"})
		s.pr = s.Open(s.bob, Pull{Branch: "draft", Title: "Not yet", Draft: true})
		if p := s.pull(); !p.Draft {
			s.Errorf("%+v", p)
		}
	}},
	{"a protected head", func(s *scene) {
		s.Protect("topic")
		if p := s.pull(); !p.Head.Protected {
			s.Errorf("%+v", p.Head)
		}
	}},
	{"hostile names", func(s *scene) {
		const branch, title = "we/ird-$(id)`id`'\"#%2e&;<b>€", "<script>alert(1)</script> \u202e ${{ github.token }} $(id)"
		commit := s.commit(s.bob, branch, map[string]string{"-rf $(id)\t;.txt": "x\n"})
		s.pr = s.Open(s.bob, Pull{Branch: branch, Title: title})
		if p := s.pull(); p.Head.Branch != branch || p.Head.Commit != commit || p.Title != title || p.Fork() || p.Head.Protected {
			s.Errorf("%+q %+q", p.Head.Branch, p.Title)
		}
		head := forge.Head{Owner: s.owner(), Branch: branch, Commit: commit}
		if of, err := s.Forge().PullRequestOf(s.Context(), head); of != s.pr || err != nil {
			s.Errorf("found %d, %v", of, err)
		}
		s.Protect(branch)
		if p := s.pull(); !p.Head.Protected {
			s.Errorf("%+v", p.Head)
		}
	}},
	{"open ones", func(s *scene) {
		s.commit(s.bob, "closed", map[string]string{"closed.txt": "x\n"})
		s.Close(s.bob, s.Open(s.bob, Pull{Branch: "closed", Title: "Closed"}))
		commit := s.Fork(s.eve, "topic", map[string]string{"work.txt": "theirs\n"})
		theirs := s.Open(s.eve, Pull{Fork: true, Branch: "topic", Title: "Theirs"})
		all := must(s.Forge().Open(s.Context()))(s)
		slices.SortFunc(all, func(a, b forge.Open) int { return a.Number - b.Number })
		if len(all) != 2 || all[0].Number != s.pr || all[0].Base != "main" || all[0].Head.Branch != "topic" || all[0].Head.Commit != s.head || all[1].Number != theirs ||
			all[1].Head.Owner != s.eve.Login || all[1].Head.Commit != commit || all[1].Head.Repository == all[0].Head.Repository {
			s.Errorf("%+v", all)
		}
	}},
	{"open ones on several pages", func(s *scene) { // T62
		n := min(s.PageSize(), 100)
		for i := range n {
			branch := "b" + string(rune('a'+i/10)) + string(rune('a'+i%10))
			s.Branch(branch, s.head)
			s.Open(s.bob, Pull{Branch: branch, Title: branch})
		}
		if all := must(s.Forge().Open(s.Context()))(s); len(all) != n+1 {
			s.Errorf("%d of %d", len(all), n+1)
		}
		if all := must(s.Forge().PullRequestsAt(s.Context(), s.head))(s); len(all) != n+1 {
			s.Errorf("%d of %d at the head", len(all), n+1)
		}
	}},
	{"found by the commit", func(s *scene) {
		s.Branch("twin", s.head)
		twin := s.Open(s.bob, Pull{Branch: "twin", Title: "Twin"})
		other := s.commit(s.bob, "other", map[string]string{"work.txt": "other\n"})
		s.Open(s.bob, Pull{Branch: "other", Title: "Other"})
		var at []int
		for _, one := range must(s.Forge().PullRequestsAt(s.Context(), s.head))(s) {
			at = append(at, one.Number)
		}
		slices.Sort(at)
		if !slices.Equal(at, []int{s.pr, twin}) {
			s.Errorf("%v", at)
		}
		if at := must(s.Forge().PullRequestsAt(s.Context(), s.Ref("main")))(s); len(at) != 0 || other == s.head {
			s.Errorf("at main: %+v", at)
		}
		s.Close(s.bob, twin)
		if at := must(s.Forge().PullRequestsAt(s.Context(), s.head))(s); len(at) != 1 || at[0].Number != s.pr {
			s.Errorf("one closed: %+v", at)
		}
	}},
	{"found by the head", func(s *scene) {
		commit := s.Fork(s.eve, "topic", map[string]string{"work.txt": "theirs\n"})
		theirs := s.Open(s.eve, Pull{Fork: true, Branch: "topic", Title: "Theirs"})
		f := s.Forge()
		for _, c := range []struct {
			head forge.Head
			want int
		}{
			{forge.Head{Owner: s.owner(), Branch: "topic", Commit: s.head}, s.pr},
			{forge.Head{Owner: s.eve.Login, Branch: "topic", Commit: commit}, theirs},
			{forge.Head{Owner: s.owner(), Branch: "topic", Commit: commit}, 0},
			{forge.Head{Owner: s.eve.Login, Branch: "topic", Commit: s.head}, 0},
			{forge.Head{Owner: s.owner(), Branch: "topics", Commit: s.head}, 0},
			{forge.Head{Owner: s.owner(), Repository: "1", Branch: "topic", Commit: s.head}, 0},
		} {
			if of, err := f.PullRequestOf(s.Context(), c.head); err != nil || of != c.want {
				s.Errorf("%+v: %d %v, want %d", c.head, of, err, c.want)
			}
		}
	}},
	{"closed ones of a head", func(s *scene) {
		head := forge.Head{Owner: s.owner(), Branch: "topic", Commit: s.head}
		if of, err := s.Forge().ClosedOf(s.Context(), head); of != 0 || err != nil {
			s.Errorf("an open one: %d %v", of, err)
		}
		s.Close(s.eve, s.pr)
		if of, err := s.Forge().ClosedOf(s.Context(), head); of != s.pr || err != nil {
			s.Errorf("closed: %d %v", of, err)
		}
		again := s.Open(s.eve, Pull{Branch: "topic", Title: "Again"})
		s.Close(s.eve, again)
		if of, err := s.Forge().ClosedOf(s.Context(), head); of != again || err != nil {
			s.Errorf("the newest: %d %v", of, err)
		}
		s.commit(s.bob, "topic", map[string]string{"work.txt": "other\n"})
		of, err := s.Forge().ClosedOf(s.Context(), head)
		if err != nil || of != again && (of != 0 || !s.lacks(ClosedHeads)) {
			s.Errorf("the branch went on: %d %v", of, err)
		}
	}},
	{"the default branch", func(s *scene) {
		if side := must(s.Forge().DefaultBranch(s.Context()))(s); side.Branch != "main" || side.Repository == nil || side.Repository.ID != s.pull().Repository.ID || side.Repository.Name != s.pull().Repository.Name || side.CloneURL == "" {
			s.Errorf("%+v", side)
		}
	}},
	{"whose workflows run", func(s *scene) { // T18
		server, err := s.Forge().RunsBaseWorkflows(s.Context())
		if err != nil || (server == "") != !s.lacks(OwnFiles) {
			s.Errorf("%q %v", server, err)
		}
	}},
	{"no workflow has run", func(s *scene) { // T68
		runs, err := s.Forge().PullRuns(s.Context(), s.head, hourAgo())
		if s.lacks(WorkflowRuns) {
			s.is(err, forge.ErrPermission)
		} else if err != nil {
			s.Error(err)
		}
		ended, endedErr := s.Forge().EndedRuns(s.Context(), "main", "failure", hourAgo())
		if (endedErr == nil) != (err == nil) || len(runs)+len(ended) != 0 {
			s.Errorf("%+v and %+v, %v", runs, ended, endedErr)
		}
		if data, err := s.Forge().Artifact(s.Context(), 999, "countersign-bundle", 1000); err == nil {
			s.Errorf("%q", data)
		}
	}},
}

// owner is the login that the repository is of.
func (s *scene) owner() string {
	s.Helper()
	for _, one := range must(s.Forge().Open(s.Context()))(s) {
		if one.Number == s.pr {
			return one.Head.Owner
		}
	}
	s.Fatal("the pull request is not open")
	return ""
}
