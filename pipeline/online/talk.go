package online

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// statements compares what people said on a pull request with what is recorded of it.
func (a *asker) statements(ctx context.Context, recorded *talk, to []Finding) error {
	number := recorded.Said[0].Number
	now, err := a.Statements(ctx, number)
	if errors.Is(err, forge.ErrNotFound) { // be it the pull request, or something of it
		why := a.readEnds(ctx, number)
		if why == nil {
			why = untold("the pull request is there, and something of it is not found: %v", err)
		}
		err = why
	}
	if gone, err := isGone(ctx, err, &a.pulls, a.seePulls); gone || err != nil {
		for i := range to {
			if gone {
				to[i].Verdict, to[i].Reason = Gone, noPull
			}
		}
		return err
	}
	for i, s := range recorded.Said {
		s.compare(now, &to[i])
	}
	for i, t := range recorded.Threads {
		t.compare(now, &to[len(recorded.Said)+i])
	}
	return nil
}

const notThere = "all of the pull request was read, and it is not there any more"

// compare looks for a comment of the program's among all of its pull request.
func (t thread) compare(all []approval.Statement, to *Finding) {
	i := slices.IndexFunc(all, func(n approval.Statement) bool { return n.Kind == t.Posted.Kind && n.ID == t.Posted.ID })
	if i < 0 || all[i].Gone {
		to.Verdict, to.Reason = Gone, notThere
		return
	}
	to.Now = canon.Sum([]byte(all[i].Body))
	switch {
	case to.Now != t.Posted.BodySHA256:
		to.Verdict, to.Reason = Changed, "what was asked reads otherwise now"
	case all[i].Edited:
		to.Verdict, to.Reason = Changed, "edited since, and its text is the recorded one again"
	default:
		to.Verdict = Same
	}
}

// compare looks for a statement among all of its pull request.
func (s statement) compare(all []approval.Statement, to *Finding) {
	was := s.Doc.Statement
	i := slices.IndexFunc(all, func(n approval.Statement) bool { return n.Kind == s.Source.Kind && n.ID == s.Source.ID })
	if i < 0 {
		to.Verdict, to.Reason = Gone, notThere
		return
	}
	now := all[i]
	hash := canon.Sum([]byte(now.Body))
	is := func(v Verdict, what string, args ...any) { to.Verdict, to.Now = v, fmt.Sprintf(what, args...) }
	switch {
	case now.Gone:
		is(Gone, "deleted")
	case now.Author.ID == "":
		is(Changed, "its author's account is not there any more")
	case now.Author.ID != s.Source.Author.ID:
		is(Changed, "by %s, account %s", now.Author.Login, now.Author.ID)
	case s.BodyHash != "" && hash != s.BodyHash:
		is(Changed, "another text, %s", hash)
	case now.State != was.State:
		is(Changed, "the review is %s, and was %s", strings.ToLower(now.State), strings.ToLower(was.State))
	case was.Commit != "" && now.Commit == "" && s.Source.Kind == approval.KindReview:
		is(Unknown, "%s %s", s.Decision, hash)
		to.Reason = "the forge does not tell of which commit the review is"
	case now.Commit != was.Commit && s.Source.Kind == approval.KindReview:
		is(Changed, "a review of %s", now.Commit)
	case now.App != was.App, now.Email != was.Email:
		is(Changed, "posted in another way: by the app %q, by e-mail %v", now.App, now.Email)
	case now.CreatedAt != s.Source.CreatedAt:
		is(Changed, "made at %s, and recorded as of %s", now.CreatedAt, s.Source.CreatedAt)
	case now.Edited && !was.Edited && s.Source.Kind == approval.KindReviewComment && len(now.Earlier) == 0:
		is(Unknown, "touched since, with the recorded text")
		to.Reason = "the forge does not tell whether it had another text in between"
	case now.Edited && !was.Edited:
		is(Changed, "edited since, and its text is the recorded one again")
	case s.BodyHash == "":
		is(Unknown, "%s", hash)
		to.Reason = "its text was not recorded, as it had a secret in it"
	case now.Untold && !was.Untold:
		is(Unknown, "%s", hash)
		to.Reason = "the forge does not tell any more what it said at first"
	case now.Author.Kind != s.Source.Author.Kind:
		is(Note, "unchanged, of an account that is a %s's now", now.Author.Kind)
	case now.Hidden && !was.Hidden:
		is(Note, "hidden by somebody, and unchanged")
	default:
		is(Same, "%s %s", s.Decision, hash)
	}
}
