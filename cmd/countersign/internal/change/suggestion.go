package change

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/report"
)

// readSuggestion reads the review comment that the flags name, if they name one. The
// change is then for its pull request.
func readSuggestion(ctx context.Context, s *session.Session, f reviewFlags) (reviewFlags, error) {
	if f.suggestion == "" || len(f.given()) > 1 {
		return f, nil
	}
	id, pull, err := reviewComment(s, f.suggestion)
	if err != nil {
		return f, err
	}
	if s.Client == nil {
		return f, s.NoClient("there is no token to read the review comment with")
	}
	if f.comment, err = s.Client.ReviewComment(ctx, id); err != nil {
		return f, err
	}
	for _, other := range []int{f.pr, pull} {
		if other != 0 && other != f.comment.PullRequest {
			return f, &console.UsageError{Message: fmt.Sprintf("the comment is on pull request %d, not %d", f.comment.PullRequest, other), Hint: "--pr can be left out with --suggestion"}
		}
	}
	f.pr = f.comment.PullRequest
	return f, nil
}

// reviewComment is the number of a review comment, and of its pull request where an
// address tells it, else 0: https://github.com/OWNER/NAME/pull/7#discussion_r12, or 12.
func reviewComment(s *session.Session, text string) (id int64, pull int, err error) {
	wrong := &console.UsageError{Message: fmt.Sprintf("%+q is no review comment", text), Hint: "copy the comment's link on GitHub: …/pull/7#discussion_r12, or give its number"}
	number := text
	if at, err := url.Parse(text); err == nil && at.Host != "" {
		web := s.Links().Web + "/pull/"
		page := at.Scheme + "://" + at.Host + at.Path
		if len(page) <= len(web) || !strings.EqualFold(page[:len(web)], web) {
			return 0, 0, &console.UsageError{Message: fmt.Sprintf("%+q is not in this repository", text), Hint: "run it in a clone of that one, or name its remote with --remote"}
		}
		first, _, _ := strings.Cut(page[len(web):], "/") // as in 7/files
		if pull, err = strconv.Atoi(first); err != nil || pull < 1 {
			return 0, 0, wrong
		}
		number = at.Fragment
		if pulled, is := strings.CutPrefix(number, "r"); is { // of the page with the files
			number = pulled
		}
	}
	id, err = strconv.ParseInt(strings.TrimPrefix(number, "discussion_r"), 10, 64)
	if err != nil || id < 1 {
		return 0, 0, wrong
	}
	return id, pull, nil
}

// suggested is the change that a review comment suggests. Its lines are those of the
// pull request's head, which is fetched, or of a commit that is here.
func suggested(ctx context.Context, s *session.Session, f reviewFlags) (in input.Change, err error) {
	if s.Runner.Code == nil {
		return in, forge.NoForge("this change", f.pr)
	}
	if _, err := s.Runner.Code.Head(ctx, f.pr); err != nil {
		return in, err
	}
	if f.comment.Edited {
		s.Say("the comment was edited after it was posted: what it says now is proposed")
	}
	at, err := s.Repo.Tree(ctx, f.comment.Commit)
	if err != nil {
		return in, &patch.Error{Message: fmt.Sprintf("the commit %.12s, which the comment is on, is not here: %s", f.comment.Commit, report.Clean(err.Error()))}
	}
	return input.Suggestion(f.comment, at, f.summary)
}
