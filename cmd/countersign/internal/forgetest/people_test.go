package forgetest

import (
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// peopleCases are of who people are, and what they may do.
var peopleCases = []testCase{
	{"permissions", func(s *scene) { // T08
		for role, who := range map[string]ledger.Actor{"admin": s.Person("zoe", "admin"), "write": s.ada, "read": s.eve} {
			if got, err := s.Forge().Access(s.Context(), who); err != nil || got.Permission != role {
				s.Errorf("%s: %+v %v", role, got, err)
			}
		}
	}},
	{"permissions are asked for again", func(s *scene) { // T09
		walt := s.Person("walt", "write")
		f := s.Forge()
		if got := must(f.Access(s.Context(), walt))(s); got.Permission != "write" {
			s.Errorf("%+v", got)
		}
		s.Role(walt, "read")
		must(f.Statements(s.Context(), s.pr))(s)
		if got := must(f.Access(s.Context(), walt))(s); got.Permission != "read" {
			s.Errorf("in another reading %+v", got)
		}
		if got := must(s.Forge().Access(s.Context(), walt))(s); got.Permission != "read" {
			s.Errorf("of another client %+v", got)
		}
	}},
	{"a login of another account", func(s *scene) { // T11
		who := s.ada
		who.ID = s.eve.ID
		if got, err := s.Forge().Access(s.Context(), who); err == nil {
			s.Errorf("%+v", got)
		}
		if in, err := s.Forge().Member(s.Context(), s.Team("security", s.ada), who); err == nil || in {
			s.Errorf("a member: %v %v", in, err)
		}
	}},
	{"a login that somebody gave up", func(s *scene) { // T11
		walt := s.Person("walt", "write")
		s.Rename(walt, "walter")
		s.noAccess(walt)
		if _, err := s.Reuse(walt, "admin"); err != nil {
			s.Log(err)
		}
		s.noAccess(walt)
	}},
	{"logins of nobody, and paths", func(s *scene) {
		for _, login := range []string{"nobody-at-all", "..", "../../../user", "ada/permission", "a?b", "ada%2f..", ""} {
			s.noAccess(ledger.Actor{Kind: "user", ID: s.ada.ID, Login: login})
		}
	}},
	{"who is no person", func(s *scene) { // T10
		for _, who := range []ledger.Actor{s.Bot("helper"), {Kind: "bot", Login: "ghost"}, {Kind: "bot", ID: s.ada.ID, Login: s.ada.Login}, {}} {
			if got, err := s.Forge().Access(s.Context(), who); err != nil || got.Permission != "none" {
				s.Errorf("%+v: %+v %v", who, got, err)
			}
			if in, err := s.Forge().Member(s.Context(), s.Team("t"+who.Kind+who.ID), who); in {
				s.Errorf("%+v is a member, %v", who, err)
			}
		}
	}},
	{"a token that is not told what others may do", func(s *scene) {
		if got, err := s.ForgeOf(s.eve).Access(s.Context(), s.ada); err == nil || got != (approval.Access{}) {
			s.Errorf("%+v %v", got, err)
		}
	}},
	{"members of a team", func(s *scene) {
		team := s.Team("security", s.ada)
		for _, who := range []ledger.Actor{s.ada, s.bob, s.eve} {
			if in, err := s.Forge().Member(s.Context(), team, who); err != nil || in != (who == s.ada) {
				s.Errorf("%s: %v %v", who.Login, in, err)
			}
		}
	}},
	{"teams that are not to be seen", func(s *scene) {
		org, _, _ := strings.Cut(s.Team("security", s.ada), "/")
		for _, team := range []string{org + "/none", org + "/securit", "no-such-org-here/security", org, org + "/", org + "/../security"} {
			if in, err := s.Forge().Member(s.Context(), team, s.ada); err == nil || in {
				s.Errorf("%s: %v %v", team, in, err)
			}
		}
	}},
	{"the keys that somebody signs with", func(s *scene) {
		keys, err := s.Forge().SigningKeys(s.Context(), s.ada)
		if s.lacks(SigningKeys) {
			if s.is(err, forge.ErrRefused); keys != nil {
				s.Errorf("%v", keys)
			}
			return
		}
		if err != nil || len(keys) != 0 {
			s.Errorf("%v %v", keys, err)
		}
		other := s.ada
		other.ID = s.eve.ID
		if keys, err := s.Forge().SigningKeys(s.Context(), other); err == nil {
			s.Errorf("of another account: %v", keys)
		}
	}},
	{"the account of the token", func(s *scene) { // T60
		who := must(s.Forge().Viewer(s.Context()))(s)
		must(s.Forge().UpsertComment(s.Context(), s.pr, "", "by the program"))(s)
		if got := s.statement(approval.KindIssueComment, "by the program").Author; got != who || who.ID == "" {
			s.Errorf("%+v wrote as %+v", who, got)
		}
		if who := must(s.ForgeOf(s.ada).Viewer(s.Context()))(s); who != s.ada {
			s.Errorf("%+v", who)
		}
	}},
}

// noAccess fails the test if somebody may do anything; an error is as good as a no.
func (s *scene) noAccess(who ledger.Actor) {
	s.Helper()
	if got, err := s.Forge().Access(s.Context(), who); got.Permission != "none" && got.Permission != "" || got.Permission == "" && err == nil {
		s.Errorf("%+v: %+v %v", who, got, err)
	}
}
