package gitea

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// pull is a pull request as the API tells it.
type pull struct {
	Number              int      `json:"number"`
	State               string   `json:"state"`
	Merged              *bool    `json:"merged"`
	Draft               bool     `json:"draft"`
	Title               string   `json:"title"`
	User                *account `json:"user"`
	AllowMaintainerEdit bool     `json:"allow_maintainer_edit"`
	Base                *branch  `json:"base"`
	Head                *branch  `json:"head"`
	MergeCommit         string   `json:"merge_commit_sha"`
	MergedAt            string   `json:"merged_at"` // RFC 3339, null unless it was merged
}

// branch is one end of a pull request. Label is the branch's name, and "" of one that
// was pushed to refs/for and has no branch; Ref is refs/pull/N/head where there is no
// branch, or none any more.
type branch struct {
	Label string `json:"label"`
	Ref   string `json:"ref"`
	SHA   string `json:"sha"`
	Repo  *place `json:"repo"`
}

// place is a repository.
type place struct {
	ID       int64    `json:"id"`
	FullName string   `json:"full_name"`
	Owner    *account `json:"owner"`
}

// commit is one of a pull request's.
type commit struct {
	SHA       string   `json:"sha"`
	Author    *account `json:"author"`
	Committer *account `json:"committer"`
	Commit    *struct {
		Message   *string  `json:"message"`
		Author    identity `json:"author"`
		Committer identity `json:"committer"`
	} `json:"commit"`
}

// identity is whom a commit itself names.
type identity struct {
	Email string `json:"email"`
}

// A span is the commits of an open pull request that its head has and its base has not.
type span struct {
	number     int
	base, head string
}

// pullRequest is rest.Repository's. Its paths are left out: there is no comment on a file
// as a whole, so that decisions are asked for in the conversation. Whether somebody or
// an organization owns a repository is not told. The commits between two, and whether a
// branch is protected, are remembered until Statements is called again.
func (c *Client) pullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	var got pull
	if _, err := c.GetBelow(ctx, &got, nil, "pulls", strconv.Itoa(number)); err != nil {
		return forge.PullRequest{}, err
	}
	pr, err := c.pullOf(number, got)
	if err != nil {
		return pr, err
	}
	commits, err := c.commits(ctx, pr)
	if err != nil {
		return pr, err
	}
	if len(commits) > 0 {
		pr.Head.Commit = commits[0].SHA
	}
	for _, one := range commits {
		named, err := c.coAuthors(ctx, one)
		if err != nil {
			return pr, err
		}
		author, err := c.writer(ctx, one.Author, one.Commit.Author)
		if err != nil {
			return pr, err
		}
		committer, err := c.writer(ctx, one.Committer, one.Commit.Committer)
		if err != nil {
			return pr, err
		}
		for _, by := range append(named, author, committer) {
			who := by.actor()
			pr.Strangers = pr.Strangers || who.ID == ""
			if who.ID != "" && !slices.Contains(pr.Committers, who) {
				pr.Committers = append(pr.Committers, who)
			}
		}
	}
	return pr, nil
}

// writer is whose account a commit is of: the one that was told, else the one that an address
// of this program's own commits names (effect.Builder), which the server takes for nobody's.
// Like any address it is claimed, and can only cost whom it names a vote.
func (c *Client) writer(ctx context.Context, told *account, says identity) (*account, error) {
	parts := ownAddress().FindStringSubmatch(says.Email)
	if told.actor().ID != "" || parts == nil || parts[3] != c.base.Hostname() {
		return told, nil
	}
	found, err := c.known.named.Get(parts[2], func() ([]*account, error) { return c.named(ctx, parts[2]) })
	if i := slices.IndexFunc(found, func(one *account) bool { return one.actor().ID == parts[1] }); i >= 0 {
		return found[i], err
	}
	return told, err
}

var ownAddress = canon.Regexp(`^([0-9]{1,19})\+([A-Za-z0-9_][\w.-]{0,99})(?:\[bot\])?@users\.noreply\.(.+)$`)

// maxCoAuthors is how many a commit may name: each takes requests.
const maxCoAuthors = 50

// coAuthors are the accounts that a commit's message may mean by Co-authored-by: the server
// tells none, and an address only of who shows it. So whoever has the login that a name or
// an address begins with counts as well, as they can only lose a vote; nil is nobody.
func (c *Client) coAuthors(ctx context.Context, one commit) (all []*account, err error) {
	if one.Commit == nil || one.Commit.Message == nil {
		return nil, rest.Unusable("a commit has no message")
	}
	people := coAuthorLine().FindAllStringSubmatch(*one.Commit.Message, -1)
	if len(people) > maxCoAuthors {
		return nil, rest.Unusable("a commit has more than %d co-authors", maxCoAuthors)
	}
	for _, person := range people {
		name, address := strings.TrimSpace(person[1]), strings.TrimSpace(person[2])
		login, _, _ := strings.Cut(address, "@")
		login = login[strings.IndexByte(login, '+')+1:] // as in addresses that hide another
		found := false
		for _, word := range []string{address, login, name} {
			accounts, err := c.known.named.Get(word, func() ([]*account, error) { return c.named(ctx, word) })
			if err != nil {
				return nil, err
			}
			all, found = append(all, accounts...), found || len(accounts) > 0
		}
		if !found {
			all = append(all, nil)
		}
	}
	return all, nil
}

var coAuthorLine = canon.Regexp(`(?im)^[ \t]*co-authored-by[ \t]*:([^<\n]*)<?([^>\n]*)`)

var userName = canon.Regexp(`^[A-Za-z0-9_][\w.-]{0,99}$`)

// named are the accounts of that login, or of that address as far as it is shown.
func (c *Client) named(ctx context.Context, word string) ([]*account, error) {
	if userName().MatchString(word) {
		var one account
		_, err := c.Get(ctx, &one, nil, "users", word)
		if rest.IsKind(err, rest.KindNotFound) {
			return nil, nil
		}
		if err == nil && one.actor().ID == "" {
			err = rest.Unusable("the answer names nobody")
		}
		return []*account{&one}, err
	}
	if !strings.Contains(word, "@") {
		return nil, nil
	}
	var got struct {
		OK   bool `json:"ok"`
		Data []struct {
			account
			Email string `json:"email"`
		} `json:"data"`
	}
	_, err := c.Get(ctx, &got, url.Values{"q": {word}}, "users", "search")
	if err == nil && (!got.OK || got.Data == nil) {
		err = rest.Unusable("the answer does not tell who was found")
	}
	var all []*account
	for _, one := range got.Data {
		if strings.EqualFold(one.Email, word) {
			all = append(all, &one.account)
		}
	}
	return all, err
}

// commits are a pull request's, the newest first, which is the head as the pull request
// has it. Of one that is not open the server tells the branch's, which may have gone on.
func (c *Client) commits(ctx context.Context, pr forge.PullRequest) ([]commit, error) {
	ask := func() ([]commit, error) {
		query := url.Values{"files": {"false"}, "stat": {"false"}, "verification": {"false"}}
		all, err := list[commit](ctx, c, false, query, c.Below("pulls", strconv.Itoa(pr.Number), "commits")...)
		if err != nil || len(all) == 0 || all[0].SHA == pr.Head.Commit {
			return all, err
		}
		if pr.State == forge.PullRequestOpen { // where it is busy, it counts a push a while later
			return nil, cmp.Or(c.wait(ctx, 2*time.Second), rest.Changed("the commits"))
		}
		return all, rest.CheckCommit(all[0].SHA)
	}
	if pr.State != forge.PullRequestOpen {
		return ask()
	}
	return c.known.commits.Get(span{pr.Number, pr.Base.Commit, pr.Head.Commit}, ask)
}

// pullOf puts what was told in our terms, but for the commits.
func (c *Client) pullOf(number int, got pull) (forge.PullRequest, error) {
	pr := forge.PullRequest{
		Number: number, Draft: got.Draft, Title: got.Title, Author: got.User.actor(), MaintainerCanModify: got.AllowMaintainerEdit,
		Committers: []ledger.Actor{}, Paths: []string{},
	}
	var err error
	if pr.State, err = got.state(); err != nil {
		return pr, err
	}
	if got.Number != number || got.Base == nil || got.Head == nil || got.Base.Repo == nil {
		return pr, rest.Unusable("it is of another pull request, or has no head or base")
	}
	if pr.Base, err = c.side(got.Base); err != nil {
		return pr, err
	}
	if pr.Head, err = c.side(got.Head); err != nil {
		return pr, err
	}
	if got.Head.Label == "" { // anybody who may read can push it
		pr.Head.Repository = nil
	}
	if pr.State == forge.PullRequestMerged {
		at, err := time.Parse(time.RFC3339, got.MergedAt)
		pr.MergedAt, pr.MergeCommit = at.UTC().Format(time.RFC3339), got.MergeCommit
		if err != nil || got.MergeCommit != "" && rest.CheckCommit(got.MergeCommit) != nil {
			return pr, rest.Unusable("it was merged, and when or as which commit cannot be read")
		}
	}
	pr.Repository = *pr.Base.Repository
	return pr, nil
}

func (p pull) state() (string, error) {
	switch {
	case p.Merged == nil:
	case *p.Merged:
		return forge.PullRequestMerged, nil
	case p.State == forge.PullRequestOpen || p.State == forge.PullRequestClosed:
		return p.State, nil
	}
	return "", rest.Unusable("the pull request is of no known state")
}

func (c *Client) side(b *branch) (forge.Side, error) {
	side := forge.Side{Branch: b.Label, Commit: b.SHA}
	if side.Branch == "" {
		side.Branch = strings.TrimPrefix(b.Ref, "refs/")
	}
	if side.Branch == "" || rest.CheckCommit(side.Commit) != nil {
		return side, rest.Unusable("head or base of the pull request is missing")
	}
	if b.Repo == nil {
		return side, nil
	}
	return side, c.SetRepository(&side, b.Repo.ID, b.Repo.FullName)
}

func (c *Client) protected(ctx context.Context, branch string) (bool, error) {
	return c.known.protected.Get(branch, func() (bool, error) { return c.IsProtected(ctx, strings.Split(branch, "/")...) })
}
