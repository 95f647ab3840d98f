package forgetest

import "github.com/countersign-dev/countersign/pipeline/record/approval"

// greenCases are of a pull request's own diff, which a green review approves.
var greenCases = []testCase{
	{"a green review", func(s *scene) {
		s.guards()
		s.wants(approval.Pending, "")
		s.Review(s.ada, s.pr, "APPROVED", "Nice!")
		s.wants(approval.Approved, "")
	}},
	{"a reader's green review", func(s *scene) { // T08
		s.guards()
		s.Review(s.Person("rita", "read"), s.pr, "APPROVED", "")
		s.wants(approval.Pending, "")
	}},
	{"a green review by who wrote the commits", func(s *scene) { // T10
		s.guards()
		s.Review(s.bob, s.pr, "APPROVED", "")
		s.wants(approval.Pending, "")
	}},
	{"a green review by who pushed after it", func(s *scene) { // T10
		s.guards()
		s.Review(s.mallory, s.pr, "APPROVED", "")
		s.wants(approval.Approved, "")
		s.commit(s.mallory, "topic", map[string]string{"work.txt": "worse\n"})
		s.guards()
		s.wants(approval.Pending, "")
		s.Review(s.mallory, s.pr, "APPROVED", "")
		s.wants(approval.Pending, "")
	}},
	{"a push after a green review", func(s *scene) { // T04
		s.guards()
		s.Review(s.ada, s.pr, "APPROVED", "")
		s.wants(approval.Approved, "")
		s.commit(s.bob, "topic", map[string]string{"more.txt": "more\n"})
		s.guards()
		s.wants(approval.Pending, "another commit")
	}},
	{"a forced push after a green review", func(s *scene) { // T04
		s.guards()
		s.Review(s.ada, s.pr, "APPROVED", "")
		s.force(s.bob, "topic", map[string]string{"work.txt": "other work\n"})
		s.guards()
		s.wants(approval.Pending, "another commit")
	}},
	{"a green review of another commit with the same diff", func(s *scene) { // T04
		s.guards()
		s.Review(s.ada, s.pr, "APPROVED", "")
		before := s.head
		s.commit(s.bob, "topic", map[string]string{"work.txt": "else\n"})
		if s.commit(s.bob, "topic", map[string]string{"work.txt": "work\n"}) == before {
			s.Fatal("the head is as it was")
		}
		s.guards()
		s.wants(approval.Approved, "")
	}},
	{"a green review that is dismissed", func(s *scene) {
		s.guards()
		id := s.Review(s.ada, s.pr, "APPROVED", "")
		s.wants(approval.Approved, "")
		s.Dismiss(s.Person("zoe", "admin"), s.pr, id)
		s.wants(approval.Pending, "dismissed")
	}},
	{"changes asked for after a green review", func(s *scene) {
		s.guards()
		s.Review(s.ada, s.pr, "APPROVED", "")
		s.wants(approval.Approved, "")
		s.Review(s.ada, s.pr, "CHANGES_REQUESTED", "wait")
		if s.lacks(OldReviews) {
			s.wants(approval.Pending, "dismissed")
			return
		}
		s.wants(approval.Pending, "taken back")
	}},
	{"a green review of a co-author", func(s *scene) { // T10: what "Commit suggestion" writes
		s.commit(s.bob, "topic", map[string]string{"work.txt": "as ada suggested\n"}, s.ada)
		s.guards()
		s.Review(s.ada, s.pr, "APPROVED", "")
		s.wants(approval.Pending, "its author is the proposer")
	}},
	{"changes asked for", func(s *scene) {
		s.guards()
		s.Review(s.ada, s.pr, "CHANGES_REQUESTED", s.line)
		s.wants(approval.Pending, "asks for changes")
	}},
	{"a green review of a bot", func(s *scene) { // T10
		s.guards()
		s.Review(s.Bot("helper"), s.pr, "APPROVED", "")
		s.wants(approval.Pending, "")
	}},
	{"a green review whose author may write no more", func(s *scene) { // T09
		s.guards()
		walt := s.Person("walt", "write")
		s.Review(walt, s.pr, "APPROVED", "")
		s.wants(approval.Approved, "")
		s.Role(walt, "none")
		s.wants(approval.Pending, "")
	}},
	{"a green review with a denial in it", func(s *scene) { // T03
		s.guards()
		s.Review(s.ada, s.pr, "APPROVED", s.denial())
		s.wants(approval.Denied, "")
	}},
	{"a green review of a fork's pull request", func(s *scene) {
		commit := s.Fork(s.eve, "theirs", map[string]string{"work.txt": "theirs\n"})
		s.pr = s.Open(s.eve, Pull{Fork: true, Branch: "theirs", Title: "Theirs"})
		s.made("", s.Ref("main"), commit, map[string]string{"work.txt": "theirs\n"})
		s.head = commit
		s.guards()
		s.Review(s.ada, s.pr, "APPROVED", "")
		s.wants(approval.Approved, "")
	}},
}
