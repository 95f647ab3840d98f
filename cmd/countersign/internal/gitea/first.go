package gitea

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
)

// An activity is an entry of the repository's feed. That of a comment keeps what was
// posted, behind the number of the pull request: the first line of a comment on a line, and
// about 200 characters of one in the conversation. No edit changes it, whoever makes it
// and whatever time it is said to be of. A comment that is gone has none.
type activity struct {
	Kind    string `json:"op_type"`
	Actor   int64  `json:"act_user_id"`
	Comment int64  `json:"comment_id"`
	Content string `json:"content"`
}

// firstTexts are what comments of a pull request said at first, by their numbers. Those
// that need not be known are not asked for, and those that the server does not tell are
// missing: of who keeps their activities to themselves it tells them to nobody but its
// own administrators.
func (c *Client) firstTexts(ctx context.Context, number string, comments []said) (map[int64]string, error) {
	days := map[string]map[int64]said{}
	for _, s := range comments {
		if !s.edited() && !mayDecide(s.Body) || s.User == nil {
			continue
		}
		// The day is the server's, in whose time zone dates are told. The entry may be a moment younger.
		for _, at := range []time.Time{s.Created, s.Created.Add(time.Minute)} {
			day := at.Format(time.DateOnly)
			if days[day] == nil {
				days[day] = map[int64]said{}
			}
			days[day][s.ID] = s
		}
	}
	out := map[int64]string{}
	for _, day := range slices.Sorted(maps.Keys(days)) {
		found, err := rest.Twice(func() (map[int64]string, error) { return c.firstTextsOf(ctx, number, day, days[day]) })
		if err != nil {
			return nil, err
		}
		maps.Copy(out, found)
	}
	return out, nil
}

// firstTextsOf looks for comments among the activities of a day, of which the newest are first.
func (c *Client) firstTextsOf(ctx context.Context, number, day string, comments map[int64]said) (map[int64]string, error) {
	out := map[int64]string{}
	total, seen := -1, 0
	err := rest.Pages(url.Values{"date": {day}}, "limit", c.pageSize, func(_ int, query url.Values) (more bool, err error) {
		got, err := pageOf[activity](ctx, c, query, c.Below("activities", "feeds")...)
		if err != nil {
			return false, err
		}
		if total >= 0 && got.total != total {
			return false, rest.Changed("the list of activities")
		}
		for _, a := range got.entries {
			s, asked := comments[a.Comment]
			if text, ok := strings.CutPrefix(a.Content, number+"|"); ok && asked && a.Kind == "comment_pull" && a.Actor == s.User.ID {
				out[a.Comment] = text
			}
		}
		total, seen = got.total, seen+len(got.entries)
		return len(got.entries) > 0 && seen < total && len(out) < len(comments), nil
	})
	return out, err
}

// mayDecide reports whether a text can be a decision whose author the server has to vouch
// for: more are than decide. A signature is the author's own.
func mayDecide(body string) bool {
	_, _, err := approval.ParseSigned(body)
	return err != nil && strings.HasPrefix(strings.TrimSpace(body), "/")
}

// shortestCut is less than what the server keeps of a text that is too long for it.
const shortestCut = 180

// stands reports whether a text begins as it did at first, all of the first line at least,
// where the decision is, or all that the server keeps.
func stands(first, body string) bool {
	line, _, _ := strings.Cut(body, "\n")
	return first == body || first == line || len(first) >= shortestCut && strings.HasPrefix(body, strings.TrimSuffix(first, "…"))
}
