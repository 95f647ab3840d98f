package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Repository is one on a forge, and what the forges are asked about it at the same
// addresses. The functions are a forge's own part.
type Repository struct {
	Forge       string // as errors name it
	Server      string // that people and Git go to, without a slash at the end
	Owner, Name string
	// Send sends a body, nil for none, to a path, which is given in parts, and reads the answer into a value
	// unless that is nil.
	Send func(ctx context.Context, method string, into, body any, query url.Values, parts ...string) (http.Header, error)
	// ReadPull reads one state of a pull request, without whether its head is protected: that is asked of Protected.
	ReadPull  func(ctx context.Context, number int) (forge.PullRequest, error)
	Protected func(ctx context.Context, branch string) (bool, error)
	// Create opens a pull request, and returns its number. Doubles says that the forge opens a second one of the
	// same branches for whoever asks at the same time.
	Create  func(ctx context.Context, n forge.NewPull) (int, error)
	Doubles bool
	// SendMerge merges in the first of some ways that can be. It returns "" where the forge does not tell the commit.
	SendMerge func(ctx context.Context, number int, head string, methods []string) (commit string, err error)
	// UntoldMethod is how to merge where the forge tells of no way whether it is allowed; "" for not at all.
	UntoldMethod string
	EditComment  Call // of the request that edits a comment

	Pulls
	*People
	Artifacts
}

// Get reads what is at a path.
func (r *Repository) Get(ctx context.Context, into any, query url.Values, parts ...string) (http.Header, error) {
	return r.Send(ctx, http.MethodGet, into, nil, query, parts...)
}

// GetBelow is Get below the repository's own address.
func (r *Repository) GetBelow(ctx context.Context, into any, query url.Values, parts ...string) (http.Header, error) {
	return r.Get(ctx, into, query, r.Below(parts...)...)
}

// Below is a path below the repository's own address.
func (r *Repository) Below(parts ...string) []string {
	return append([]string{"repos", r.Owner, r.Name}, parts...)
}

func (r *Repository) failed(op string, err error) error { return Failed(r.Forge, op, err) }

// About is what a repository tells of itself.
type About struct {
	ID      string
	Name    string   // OWNER/NAME as it is now; a request by a former one is redirected
	Branch  string   // the default one
	Methods []string // in which it lets pull requests be merged
	// Private and Internal, which is for those with an account, are nil where they are not told.
	Private, Internal *bool
	Visibility        string // "" where it is not told
}

// About reads it.
func (r *Repository) About(ctx context.Context) (About, error) {
	var got struct {
		ID         int64  `json:"id"`
		Name       string `json:"full_name"`
		Branch     string `json:"default_branch"`
		Private    *bool  `json:"private"`
		Internal   *bool  `json:"internal"`
		Visibility string `json:"visibility"`
		Merge      *bool  `json:"allow_merge_commit"` // GitHub's name, and then Gitea's
		Merges     *bool  `json:"allow_merge_commits"`
		Squash     *bool  `json:"allow_squash_merge"`
		Rebase     *bool  `json:"allow_rebase_merge"`
		Rebases    *bool  `json:"allow_rebase"`
	}
	if _, err := r.GetBelow(ctx, &got, nil); err != nil {
		return About{}, err
	}
	if got.ID <= 0 {
		return About{}, Unusable("the repository has no number")
	}
	about := About{
		ID: strconv.FormatInt(got.ID, 10), Name: got.Name, Branch: got.Branch,
		Private: got.Private, Internal: got.Internal, Visibility: got.Visibility,
	}
	told := false
	for _, method := range []struct {
		name    string
		allowed *bool
	}{{"merge", got.Merge}, {"merge", got.Merges}, {"squash", got.Squash}, {"rebase", got.Rebase}, {"rebase", got.Rebases}} {
		told = told || method.allowed != nil
		if method.allowed != nil && *method.allowed {
			about.Methods = append(about.Methods, method.name)
		}
	}
	if !told && r.UntoldMethod != "" {
		about.Methods = []string{r.UntoldMethod}
	}
	return about, nil
}

// DefaultBranch is forge.Merger's.
func (r *Repository) DefaultBranch(ctx context.Context) (forge.Side, error) {
	about, err := r.About(ctx)
	if err == nil && (about.Branch == "" || about.Name == "") {
		err = Unusable("the repository does not tell it")
	}
	if err != nil {
		return forge.Side{}, r.failed("reading the repository's default branch", err)
	}
	repository := ledger.Repository{ID: about.ID, Name: about.Name}
	return forge.Side{Repository: &repository, Branch: about.Branch, CloneURL: r.cloneURL(about.Name)}, nil
}

// cloneURL is built here, and not as the forge tells it: what is pushed there goes with a token.
func (r *Repository) cloneURL(name string) string { return r.Server + "/" + name + ".git" }

// SetRepository says which repository an end of a pull request is in.
func (r *Repository) SetRepository(side *forge.Side, id int64, name string) error {
	if _, _, ok := SplitRepository(name); !ok || id <= 0 {
		return Unusable("a repository of the pull request has no name or number")
	}
	side.Repository = &ledger.Repository{ID: strconv.FormatInt(id, 10), Name: name}
	side.CloneURL = r.cloneURL(name)
	return nil
}

// PullRequest is forge.Reader's.
func (r *Repository) PullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	pr, err := r.pullNow(ctx, number)
	if err == nil && !pr.Fork() {
		pr.Head.Protected, err = r.Protected(ctx, pr.Head.Branch)
	}
	if err != nil {
		return forge.PullRequest{}, r.failed(fmt.Sprintf("reading pull request %d", number), err)
	}
	return pr, nil
}

func (r *Repository) pullNow(ctx context.Context, number int) (forge.PullRequest, error) {
	return Twice(func() (forge.PullRequest, error) { return r.ReadPull(ctx, number) })
}

// IsProtected asks whether the branch at a path is; one that is not there is not.
func (r *Repository) IsProtected(ctx context.Context, branch ...string) (bool, error) {
	var got struct {
		Protected *bool `json:"protected"`
	}
	_, err := r.GetBelow(ctx, &got, nil, append([]string{"branches"}, branch...)...)
	switch {
	case IsKind(err, KindNotFound):
		return false, nil
	case err != nil:
		return false, err
	case got.Protected == nil:
		return false, Unusable("the answer does not tell whether the branch is protected")
	}
	return *got.Protected, nil
}

// SendNew sends what Create is to, and returns the pull request's number.
func (r *Repository) SendNew(ctx context.Context, n forge.NewPull) (int, error) {
	var got struct {
		Number int `json:"number"`
	}
	body := map[string]string{"head": n.Branch, "base": n.Base, "title": n.Title, "body": n.Body}
	_, err := r.Send(ctx, http.MethodPost, &got, body, nil, r.Below("pulls")...)
	if err == nil && got.Number <= 0 {
		err = Unusable("the pull request has no number")
	}
	return got.Number, err
}

// OpenPullRequest is forge.Merger's. Forges refuse a second pull request of the same
// branches, also where somebody opened the first one a moment ago, or where this program
// did and the answer was lost: so it is looked for before and after.
func (r *Repository) OpenPullRequest(ctx context.Context, n forge.NewPull) (int, error) {
	op := "opening a pull request of " + ledger.OneLine(n.Branch, 120)
	number, err := r.openBetween(ctx, n.Branch, n.Base)
	if err != nil || number != 0 {
		return number, r.failed(op, err)
	}
	number, err = r.Create(ctx, n)
	switch {
	case err == nil && r.Doubles:
		number, err = r.keepOldest(ctx, number, n)
	case IsKind(err, KindRefused, KindNetwork, KindAnswer):
		if number, again := r.openBetween(ctx, n.Branch, n.Base); again == nil && number != 0 {
			return number, nil
		}
	}
	if err != nil {
		return 0, r.failed(op, err)
	}
	return number, nil
}

// keepOldest returns the oldest open pull request of the same branches, and closes the one
// that was just opened if that is another.
func (r *Repository) keepOldest(ctx context.Context, opened int, n forge.NewPull) (int, error) {
	oldest, err := r.openBetween(ctx, n.Branch, n.Base)
	if err != nil || oldest == 0 || oldest >= opened {
		return opened, err
	}
	_, err = r.Send(ctx, http.MethodPatch, nil, map[string]string{"state": "closed"}, nil, r.Below("pulls", strconv.Itoa(opened))...)
	return oldest, err
}

// openBetween returns the number of the oldest open pull request from one branch of the
// repository to another, 0 if there is none. That of a fork has a branch of the same name
// in another repository.
func (r *Repository) openBetween(ctx context.Context, branch, base string) (int, error) {
	about, err := r.About(ctx)
	if err != nil {
		return 0, err
	}
	open, err := r.Pulls.List(ctx, branch, true)
	if err != nil {
		return 0, err
	}
	var oldest int
	for _, pr := range open {
		if pr.Head.Repository == about.ID && pr.Head.Branch == branch && pr.Base == base && (oldest == 0 || pr.Number < oldest) {
			oldest = pr.Number
		}
	}
	return oldest, nil
}

// Merge is forge.Merger's. After an error, and where the answer does not name the commit, the
// forge is asked what became of the pull request: the answer may have been lost, and somebody
// else may have merged it.
func (r *Repository) Merge(ctx context.Context, number int, head string) (string, error) {
	op := fmt.Sprintf("merging pull request %d", number)
	if err := CheckCommit(head); err != nil {
		return "", r.failed(op, err)
	}
	about, err := r.About(ctx)
	if err == nil && len(about.Methods) == 0 {
		err = &Error{Kind: KindRefused, Message: "the repository allows no way to merge a pull request"}
	}
	if err != nil {
		return "", r.failed(op, err)
	}
	commit, err := r.SendMerge(ctx, number, head, about.Methods)
	if err == nil && commit != "" {
		return commit, nil
	}
	pr, unread := r.pullNow(ctx, number)
	switch {
	case unread != nil && err == nil:
		err = unread
	case unread != nil:
	case pr.Head.Commit != head:
		err = &Error{Kind: KindMoved, Message: fmt.Sprintf("the head is %.12s now, and not %.12s", pr.Head.Commit, head)}
	case pr.State == forge.PullRequestMerged && pr.MergeCommit != "":
		return pr.MergeCommit, nil
	case err == nil:
		err = Unusable("it does not tell which commit was merged")
	}
	return "", r.failed(op, err)
}

// UpsertComment replaces the text of a conversation comment, or posts a new one where the
// id is "" or the comment was deleted.
func (r *Repository) UpsertComment(ctx context.Context, number int, id, body string) (forge.Posted, error) {
	op := fmt.Sprintf("commenting on pull request %d", number)
	comment := map[string]string{"body": body}
	var got struct {
		ID   int64   `json:"id"`
		URL  string  `json:"html_url"`
		Body *string `json:"body"`
	}
	create := id == ""
	var err error
	if !create {
		if n, problem := strconv.ParseInt(id, 10, 64); problem != nil || n <= 0 {
			return forge.Posted{}, r.failed(op, Unusable("%+q is no number of a comment", id))
		}
		_, err = r.Send(WithCall(ctx, r.EditComment), http.MethodPatch, &got, comment, nil, r.Below("issues", "comments", id)...)
		create = IsKind(err, KindNotFound)
	}
	if create {
		_, err = r.Send(ctx, http.MethodPost, &got, comment, nil, r.Below("issues", strconv.Itoa(number), "comments")...)
	}
	if err != nil {
		return forge.Posted{}, r.failed(op, err)
	}
	p, err := Posted(approval.KindIssueComment, got.ID, got.URL, got.Body)
	return p, r.failed(op, err)
}

// Posted takes the body as it was returned: the forge may have changed it.
func Posted(kind string, id int64, url string, body *string) (forge.Posted, error) {
	if id <= 0 || body == nil {
		return forge.Posted{}, Unusable("the comment has no number or no text")
	}
	return forge.Posted{Kind: kind, ID: strconv.FormatInt(id, 10), URL: url, BodySHA256: canon.Sum([]byte(*body))}, nil
}

// InTeam is the end of asking whether somebody is in a team, by the error of asking for the
// membership. Forges tell a team that the token cannot see like somebody who is not in it:
// then seen asks for the team itself. needs is what a token needs to see one.
func InTeam(is bool, err error, needs string, seen func() error) (bool, error) {
	if IsKind(err, KindNotFound) {
		if err = seen(); err == nil {
			return false, nil
		}
	}
	if IsKind(err, KindNotFound, KindPermission) {
		return false, &Error{Kind: KindPermission, Message: "the team cannot be read with this token: that takes " + needs, Err: err}
	}
	return err == nil && is, err
}

// SplitTeam splits "org/team".
func SplitTeam(team string) (org, name string, err error) {
	org, name, ok := strings.Cut(team, "/")
	if !ok {
		return "", "", Unusable("a team is org/team")
	}
	return org, name, nil
}
