package forgetest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// statementCases are of what people say on a pull request.
var statementCases = []testCase{
	{"comments, reviews and comments on lines", func(s *scene) {
		s.Comment(s.eve, s.pr, "a word")
		s.Review(s.ada, s.pr, "APPROVED", "well")
		s.Review(s.bob, s.pr, "CHANGES_REQUESTED", "wait")
		s.LineComment(s.mallory, s.pr, "work.txt", "why?")
		number := regexp.MustCompile(`^[1-9][0-9]*$`)
		for _, want := range []approval.Statement{
			{Kind: approval.KindIssueComment, Author: s.eve, Body: "a word"},
			{Kind: approval.KindReview, Author: s.ada, Body: "well", State: "APPROVED", Commit: s.head},
			{Kind: approval.KindReview, Author: s.bob, Body: "wait", State: "CHANGES_REQUESTED", Commit: s.head},
			{Kind: approval.KindReviewComment, Author: s.mallory, Body: "why?", Commit: s.head},
		} {
			got := s.statement(want.Kind, want.Body)
			if got.Author != want.Author || got.State != want.State || got.Commit != want.Commit || got.Gone || got.ReplyTo != "" || !number.MatchString(got.ID) {
				s.Errorf("%+v, want %+v", got, want)
			}
			if !strings.HasPrefix(got.URL, "http://") {
				s.Errorf("%q is no address", got.URL)
			}
			at, err := time.Parse(time.RFC3339, got.CreatedAt)
			if _, offset := at.Zone(); err != nil || offset != 0 || time.Since(at).Abs() > time.Hour {
				s.Errorf("it was said at %q", got.CreatedAt)
			}
		}
	}},
	{"nothing was said", func(s *scene) {
		if all := s.statements(); len(all) != 0 {
			s.Errorf("%+v", all)
		}
	}},
	{"a pull request that there is not", func(s *scene) {
		all, err := s.Forge().Statements(s.Context(), 999)
		if s.is(err, forge.ErrNotFound); all != nil {
			s.Errorf("%+v", all)
		}
	}},
	{"what was said elsewhere", func(s *scene) { // T15
		s.commit(s.bob, "elsewhere", map[string]string{"work.txt": "other\n"})
		there := s.Open(s.bob, Pull{Branch: "elsewhere", Title: "Elsewhere"})
		s.Comment(s.ada, there, "there")
		s.Review(s.ada, there, "APPROVED", "there")
		s.LineComment(s.ada, there, "work.txt", "there")
		if all := s.statements(); len(all) != 0 {
			s.Errorf("%+v", all)
		}
	}},
	{"comments on several pages", func(s *scene) { // T62
		s.chatters(2*s.PageSize()+1, func(text string) { s.Comment(s.ada, s.pr, text) })
	}},
	{"reviews on several pages", func(s *scene) { // T62
		s.chatters(s.PageSize()+1, func(text string) { s.Review(s.ada, s.pr, "COMMENTED", text) })
	}},
	{"comments on lines on several pages", func(s *scene) { // T62
		s.chatters(s.PageSize()+1, func(text string) { s.LineComment(s.ada, s.pr, "work.txt", text) })
	}},
	{"what a text was", func(s *scene) { // T01, T02
		id := s.Comment(s.ada, s.pr, "first")
		s.Edit(s.ada, id, "second")
		s.Edit(s.mallory, id, "third")
		s.Comment(s.ada, s.pr, "/as it was")
		if got := s.statement(approval.KindIssueComment, "/as it was"); got.Edited || len(got.Earlier) != 0 {
			s.Errorf("one that nobody edited: %+v", got)
		}
		got, earlier := s.statement(approval.KindIssueComment, "third"), []string{"first", "second"}
		if s.lacks(EditHistory) {
			earlier = earlier[:1]
		}
		if got.Author != s.ada || !got.Edited || !slices.Equal(got.Earlier, earlier) {
			s.Errorf("%+v", got)
		}
	}},
	{"a deleted comment", func(s *scene) {
		id := s.Comment(s.ada, s.pr, "gone")
		s.Comment(s.bob, s.pr, "here")
		s.Delete(s.ada, id)
		if all := s.statements(); len(all) != 1 || all[0].Body != "here" {
			s.Errorf("%+v", all)
		}
	}},
	{"a review that is not submitted", func(s *scene) {
		s.Review(s.ada, s.pr, "PENDING", "later")
		s.Comment(s.ada, s.pr, "here")
		if all := s.statements(); len(all) != 1 || all[0].Body != "here" {
			s.Errorf("%+v", all)
		}
	}},
	{"a big comment", func(s *scene) {
		text := "/deny " + strings.Repeat("and much more\n", 4600) // ASCII: of what others post, Gitea breaks other characters (docs/forges.md)
		s.Comment(s.ada, s.pr, text)
		if all := s.statements(); len(all) != 1 || strings.TrimSpace(all[0].Body) != strings.TrimSpace(text) {
			s.Errorf("%d statements", len(all))
		}
	}},
	{"hostile texts", func(s *scene) {
		texts := slices.DeleteFunc(pagetest.HostileTexts(), func(text string) bool { return !utf8.ValidString(text) || len(text) > 5000 }) // JSON has no others, forges have limits
		for _, text := range []string{
			strings.Join(texts, "\n"), "a\r\nb\tc", "\u202e\u200b\ufeff\U0001f600 ${{ github.token }} {{.}} @everyone #1 !1", "</textarea><script>alert(1)</script>",
		} {
			text = "0" + text + "."
			s.Comment(s.ada, s.pr, text)
			s.statement(approval.KindIssueComment, text)
		}
	}},
	{"who speaks has another name now", func(s *scene) { // T11
		walt := s.Person("walt", "write")
		s.Comment(walt, s.pr, "by walt")
		s.Review(walt, s.pr, "APPROVED", "well")
		after := s.Rename(walt, "walter")
		for _, one := range s.statements() {
			if one.Author != after || after.ID != walt.ID {
				s.Errorf("%+v, want %+v", one.Author, after)
			}
		}
	}},
	{"who spoke has no account any more", func(s *scene) { // T10
		walt := s.Person("walt", "write")
		s.Comment(walt, s.pr, "by walt")
		s.DeleteAccount(walt)
		for _, one := range s.statements() {
			if one.Author.ID != "" || one.Author.Kind != "bot" {
				s.Errorf("%+v", one.Author)
			}
		}
	}},
	{"a bot's word", func(s *scene) { // T10
		helper := s.Bot("helper")
		s.Comment(helper, s.pr, "by a bot")
		if got := s.statement(approval.KindIssueComment, "by a bot").Author; got != helper || got.Kind != "bot" {
			s.Errorf("%+v", got)
		}
	}},
	{"comments while others are read", func(s *scene) { // T62
		for i := range s.PageSize() {
			s.Comment(s.ada, s.pr, fmt.Sprint("/deny ", i))
		}
		var posting sync.WaitGroup
		posting.Go(func() {
			id := s.Comment(s.bob, s.pr, "more")
			s.Comment(s.bob, s.pr, "and more")
			s.Delete(s.bob, id)
		})
		for range 3 {
			found := 0
			all, err := s.Forge().Statements(s.Context(), s.pr)
			for _, one := range all {
				if strings.HasPrefix(one.Body, "/deny") {
					found++
				}
			}
			if err == nil && found != s.PageSize() {
				s.Errorf("%d denials", found)
			}
		}
		posting.Wait()
	}},
	{"a reading that breaks off anywhere", func(s *scene) { // T61
		s.Comment(s.ada, s.pr, "one")
		s.Review(s.ada, s.pr, "COMMENTED", "two")
		s.LineComment(s.ada, s.pr, "work.txt", "three")
		n := len(s.statements())
		whole := false
		for skip := 0; skip < 20 && !whole; skip++ {
			heal := s.Break(skip)
			all, err := s.Forge().Statements(s.Context(), s.pr)
			heal()
			if whole = err == nil; whole && len(all) != n || !whole && all != nil {
				s.Errorf("after %d requests %d statements, %v", skip, len(all), err)
			}
		}
		if !whole {
			s.Error("it never was whole")
		}
	}},
}

// chatters says n texts, of which one on each page is a denial, and fails the test unless they are all told of.
func (s *scene) chatters(n int, say func(text string)) {
	s.Helper()
	want := 0
	for i := range n {
		text := fmt.Sprint("chatter ", i)
		if i%s.PageSize() == 0 {
			text = fmt.Sprint("/deny ", i)
			want++
		}
		say(text)
	}
	found, said := 0, 0
	for _, one := range s.statements() {
		if one.Body != "" {
			said++
		}
		if strings.HasPrefix(one.Body, "/deny") {
			found++
		}
	}
	if said != n || found != want {
		s.Errorf("%d statements of %d, %d denials of %d", said, n, found, want)
	}
}
