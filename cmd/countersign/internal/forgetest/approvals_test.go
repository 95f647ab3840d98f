package forgetest

import (
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// approvalCases are of a proposal by the program, which a line in a comment approves.
var approvalCases = []testCase{
	{"a writer approves", func(s *scene) {
		s.proposes()
		s.wants(approval.Pending, "")
		s.Comment(s.ada, s.pr, s.line)
		s.wants(approval.Approved, "")
	}},
	{"an administrator approves", func(s *scene) {
		s.proposes()
		s.Comment(s.Person("zoe", "admin"), s.pr, s.line)
		s.wants(approval.Approved, "")
	}},
	{"a reader does not approve", func(s *scene) { // T08
		s.proposes()
		s.Comment(s.eve, s.pr, s.line)
		s.wants(approval.Pending, "read")
	}},
	{"a policy asks for more than to write", func(s *scene) { // T08
		s.policy.Approvals.Permission = policy.CanAdmin
		s.proposes()
		s.Comment(s.ada, s.pr, s.line)
		s.wants(approval.Pending, "write")
	}},
	{"the proposer does not approve", func(s *scene) { // T10
		s.proposes(s.ada)
		s.Comment(s.ada, s.pr, s.line)
		s.wants(approval.Pending, "the proposer")
		s.Comment(s.bob, s.pr, s.line)
		s.wants(approval.Approved, "")
	}},
	{"a bot does not approve", func(s *scene) { // T10
		s.proposes()
		s.Comment(s.Bot("helper"), s.pr, s.line)
		s.wants(approval.Pending, "")
	}},
	{"a comment that its author made into an approval", func(s *scene) { // T01
		s.proposes()
		s.Edit(s.ada, s.Comment(s.ada, s.pr, "interesting"), s.line)
		s.wants(approval.Pending, "edited")
	}},
	{"a comment that another made into an approval", func(s *scene) { // T02
		s.proposes()
		s.Edit(s.mallory, s.Comment(s.ada, s.pr, "interesting"), s.line)
		s.wants(approval.Pending, "edited")
	}},
	{"a review that another made into an approval", func(s *scene) { // T02
		s.proposes()
		s.Edit(s.mallory, s.Review(s.ada, s.pr, "COMMENTED", "interesting"), s.line)
		s.wants(approval.Pending, "edited")
	}},
	{"a comment on a line that another made into an approval", func(s *scene) { // T02
		s.proposes()
		s.Edit(s.mallory, s.LineComment(s.ada, s.pr, "work.txt", "interesting"), s.line)
		s.wants(approval.Pending, "edited")
	}},
	{"an approval that is edited and edited back", func(s *scene) { // T01
		s.proposes()
		id := s.Comment(s.ada, s.pr, s.line)
		s.Edit(s.ada, id, "never mind")
		s.Edit(s.ada, id, s.line)
		s.wants(approval.Pending, "edited")
	}},
	{"an approval that is edited after it was recorded", func(s *scene) { // T01
		s.proposes()
		id := s.Comment(s.ada, s.pr, s.line)
		s.wants(approval.Approved, "")
		s.Edit(s.ada, id, "never mind")
		s.wants(approval.Pending, "edited")
	}},
	{"an approval that is deleted after it was recorded", func(s *scene) { // T01
		s.proposes()
		id := s.Comment(s.ada, s.pr, s.line)
		s.wants(approval.Approved, "")
		s.Delete(s.ada, id)
		s.wants(approval.Pending, "gone")
	}},
	{"an approval that another deletes and posts as their own", func(s *scene) {
		s.proposes()
		s.Delete(s.mallory, s.Comment(s.ada, s.pr, s.line))
		s.Comment(s.eve, s.pr, s.line)
		s.wants(approval.Pending, "read")
	}},
	{"a denial", func(s *scene) { // T03
		s.proposes()
		s.Comment(s.ada, s.pr, s.line)
		s.wants(approval.Approved, "")
		s.Comment(s.bob, s.pr, s.denial()+" too risky")
		s.wants(approval.Denied, "")
		s.Comment(s.mallory, s.pr, s.line)
		s.wants(approval.Denied, "")
	}},
	{"a denial that is edited into an approval", func(s *scene) { // T03
		s.proposes()
		s.Edit(s.ada, s.Comment(s.ada, s.pr, s.denial()), s.line)
		s.wants(approval.Denied, "")
	}},
	{"a denial that an event told before it was edited", func(s *scene) { // T03
		s.proposes()
		id := s.Comment(s.ada, s.pr, s.denial())
		s.witnessed = []approval.Statement{s.statement(approval.KindIssueComment, s.denial())}
		s.Edit(s.mallory, id, "never mind")
		s.Comment(s.bob, s.pr, s.line)
		s.wants(approval.Denied, "")
	}},
	{"a denial that an event told before it was deleted", func(s *scene) { // T03
		s.proposes()
		id := s.Comment(s.ada, s.pr, s.denial())
		s.witnessed = []approval.Statement{s.statement(approval.KindIssueComment, s.denial())}
		s.Delete(s.mallory, id)
		s.Comment(s.bob, s.pr, s.line)
		s.wants(approval.Denied, "")
	}},
	{"a denial that was recorded and is deleted", func(s *scene) { // T03
		s.proposes()
		id := s.Comment(s.ada, s.pr, s.denial())
		s.wants(approval.Denied, "")
		s.Delete(s.ada, id)
		s.Comment(s.bob, s.pr, s.line)
		s.wants(approval.Denied, "")
	}},
	{"a reader's denial", func(s *scene) {
		s.proposes()
		s.Comment(s.Person("rita", "read"), s.pr, s.denial())
		s.Comment(s.ada, s.pr, s.line)
		s.wants(approval.Approved, "")
	}},
	{"the denial of who opened the pull request", func(s *scene) {
		s.proposes()
		s.Comment(s.ada, s.pr, s.line)
		s.Comment(s.eve, s.pr, s.denial())
		s.wants(approval.Denied, "")
	}},
	{"a bot's denial", func(s *scene) {
		s.proposes()
		s.Comment(s.ada, s.pr, s.line)
		s.Comment(s.Bot("helper"), s.pr, s.denial())
		s.wants(approval.Approved, "") // it has no permission that the forge tells
	}},
	{"another patch's line", func(s *scene) {
		s.proposes()
		s.Comment(s.ada, s.pr, "/approve patchset:"+strings.Repeat("0", 64))
		s.wants(approval.Pending, "")
	}},
	{"lines that are not exact", func(s *scene) {
		s.proposes()
		for _, text := range []string{s.line + " ", " " + s.line, "> " + s.line, "Fine.\n\n" + s.line, strings.ToUpper(s.line), s.line + "\u200b", "\ufeff" + s.line, strings.Replace(s.line, " ", "\u00a0", 1)} {
			s.Comment(s.ada, s.pr, text)
		}
		s.wants(approval.Pending, "")
	}},
	{"a bare line in the conversation", func(s *scene) { // T17
		s.proposes()
		s.Comment(s.ada, s.pr, "/approve")
		s.wants(approval.Pending, "")
	}},
	{"a line on another pull request", func(s *scene) { // T15
		s.proposes()
		s.commit(s.bob, "elsewhere", map[string]string{"work.txt": "other work\n"})
		s.Comment(s.ada, s.Open(s.bob, Pull{Branch: "elsewhere", Title: "Other work"}), s.line)
		s.wants(approval.Pending, "")
	}},
	{"a line in a review", func(s *scene) {
		s.proposes()
		s.Review(s.ada, s.pr, "COMMENTED", s.line)
		s.wants(approval.Approved, "")
	}},
	{"a line in a review that is not submitted", func(s *scene) {
		s.proposes()
		s.Review(s.ada, s.pr, "PENDING", s.line)
		s.wants(approval.Pending, "")
	}},
	{"a line in a review that is dismissed", func(s *scene) {
		s.proposes()
		s.Dismiss(s.Person("zoe", "admin"), s.pr, s.Review(s.ada, s.pr, "APPROVED", s.line))
		s.wants(approval.Pending, "dismissed")
	}},
	{"a line in a comment on a line", func(s *scene) {
		s.proposes()
		s.LineComment(s.ada, s.pr, "work.txt", s.line)
		s.wants(approval.Approved, "")
	}},
	{"a green review of a proposal", func(s *scene) {
		s.proposes()
		s.Review(s.ada, s.pr, "APPROVED", "")
		s.wants(approval.Pending, "")
	}},
	{"two are asked for, and one says it twice", func(s *scene) {
		s.policy.Approvals.Required = 2
		s.proposes()
		s.Comment(s.ada, s.pr, s.line)
		s.Comment(s.ada, s.pr, s.line)
		s.wants(approval.Pending, "")
		s.Comment(s.bob, s.pr, s.line)
		s.wants(approval.Approved, "")
	}},
	{"permission lost before it is read", func(s *scene) { // T09
		s.proposes()
		walt := s.Person("walt", "write")
		s.Comment(walt, s.pr, s.line)
		s.Role(walt, "none")
		s.wants(approval.Pending, "read")
	}},
	{"permission lost after it was recorded", func(s *scene) { // T09
		s.proposes()
		walt := s.Person("walt", "write")
		s.Comment(walt, s.pr, s.line)
		s.wants(approval.Approved, "")
		s.Role(walt, "read")
		s.wants(approval.Pending, "")
		s.Role(walt, "write")
		s.wants(approval.Approved, "")
	}},
	{"who approved has another name now", func(s *scene) { // T11
		s.proposes()
		walt := s.Person("walt", "write")
		s.Comment(walt, s.pr, s.line)
		s.wants(approval.Approved, "")
		s.Rename(walt, "walter")
		s.wants(approval.Approved, "")
	}},
	{"who approved has another name, and another their old one", func(s *scene) { // T11
		s.policy.Approvals.Required = 2
		s.proposes()
		walt := s.Person("walt", "write")
		s.Comment(walt, s.pr, s.line)
		s.Rename(walt, "walter")
		if _, err := s.Reuse(walt, "read"); err != nil {
			s.Log(err)
		}
		s.wants(approval.Pending, "")
		s.Comment(s.ada, s.pr, s.line)
		s.wants(approval.Approved, "") // walter's and ada's
	}},
	{"who approved has no account any more", func(s *scene) { // T11
		s.proposes()
		walt := s.Person("walt", "write")
		s.Comment(walt, s.pr, s.line)
		s.wants(approval.Approved, "")
		s.DeleteAccount(walt)
		s.wants(approval.Pending, "")
	}},
	{"a push after the approval, where the head must be the same", func(s *scene) { // T04
		s.policy.Approvals.SameHead = true
		s.proposes()
		s.Comment(s.ada, s.pr, s.line)
		s.wants(approval.Approved, "")
		s.commit(s.mallory, "topic", map[string]string{"more.txt": "more\n"})
		s.wants(approval.Pending, "another commit")
	}},
	{"closed and opened again", func(s *scene) {
		s.proposes()
		s.Comment(s.ada, s.pr, s.line)
		s.wants(approval.Approved, "")
		s.Close(s.bob, s.pr)
		s.Reopen(s.bob, s.pr)
		s.wants(approval.Approved, "")
		s.Comment(s.bob, s.pr, s.denial())
		s.wants(approval.Denied, "")
	}},
	{"a team is asked for", func(s *scene) {
		s.protects(s.Team("security", s.ada))
		s.proposes()
		s.approvesAll(s.bob)
		s.wants(approval.Pending, "")
		s.approvesAll(s.ada)
		s.wants(approval.Approved, "")
	}},
	{"a team is asked for that nobody can read", func(s *scene) {
		s.protects("no-such-org-here/security")
		s.proposes()
		s.approvesAll(s.ada)
		s.wants(approval.Pending, "")
	}},
	{"a reading that breaks off", func(s *scene) { // T61
		s.proposes()
		s.Comment(s.ada, s.pr, s.line)
		s.Comment(s.bob, s.pr, s.denial())
		for n := range 4 {
			heal := s.Break(n)
			g, err := s.runner().Gate(s.Context(), s.tx)
			heal()
			if err == nil && g.Verdict.State != approval.Denied {
				s.Errorf("broken after %d requests: %s", n, g.Verdict.State)
			}
		}
		s.wants(approval.Denied, "")
	}},
}

// protects lets the Policy ask for one of a team beside the usual approval.
func (s *scene) protects(team string) {
	s.policy.Protected = []policy.Rule{{Paths: []string{"greet.txt"}, Required: 1, Teams: []string{team}}}
}

// approvesAll posts a line for each kind of request.
func (s *scene) approvesAll(who ledger.Actor) {
	s.Helper()
	s.Comment(who, s.pr, s.line)
	s.Comment(who, s.pr, strings.Replace(s.line, "patchset:", "protected:patchset:", 1))
}
