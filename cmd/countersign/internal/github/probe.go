package github

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Facts are what GitHub tells of a repository, and of what the token may do
// there. Version is that of an Enterprise Server, "" for github.com.
type Facts struct {
	Version       string
	DefaultBranch string
	Account       ledger.Actor    // of the token; zero where GitHub does not tell
	Rights        map[string]bool // by the names of Rights; one that could not be found out is missing
	Teams         map[string]bool // see ReadableTeams
	PushRules     []Rules         // active rulesets about every push
	BranchRules   []string        // types of the rules that hold for the ledger's branch
	RulesUnread   bool            // the rules cannot be read: a plan or a server without them, or a token that may not
	Checks        []string        // that the default branch requires of a merge
	ChecksUnread  bool            // not all of them could be read
	OpensPulls    *bool           // whether the repository lets its workflows open pull requests; nil where GitHub does not tell
	Disabled      map[string]bool // workflows that GitHub does not start, see ProbeNamed
	Private       bool            // whether not everybody may read the repository
	Pages         *Pages          // nil where they were not asked about, or GitHub does not tell
}

// Pages is how GitHub publishes a site of the repository: from a "workflow", from a branch
// ("legacy"), or not at all, which is "".
type Pages struct {
	BuildType string `json:"build_type"`
	Public    bool   // whether everybody can see it
}

// PagesWorkflow is the workflow, by its file's name, that ProbeNamed asks about Pages for.
const PagesWorkflow = "countersign-pages.yml"

// Rules is a ruleset: its name, and the types of its rules, none where they
// cannot be read.
type Rules struct {
	Name  string
	Types []string
}

// Rights are what settle needs, in GitHub's words.
var Rights = []string{"contents: write", "pull-requests: write", "checks: write", "actions: read"}

// Probe asks for facts. It changes nothing: each write that it tries is one that
// GitHub must refuse (a commit that cannot exist, a pull request of a branch into
// itself), so that the kind of refusal reports whether the token may write. The
// ledger's branch is "" where the ledger is on no branch.
func (c *Client) Probe(ctx context.Context, ledgerBranch string) (Facts, error) {
	f := Facts{Rights: map[string]bool{}}
	var repository struct {
		DefaultBranch string `json:"default_branch"`
		Private       bool
	}
	header, err := c.GetBelow(ctx, &repository, nil)
	if err != nil {
		return f, failed("reading the repository", err)
	}
	f.DefaultBranch, f.Private, f.Version = repository.DefaultBranch, repository.Private, header.Get("X-GitHub-Enterprise-Version")
	if who, err := c.Viewer(ctx); err == nil {
		f.Account = who
	}
	c.probeRights(ctx, &f)
	err = c.probeRules(ctx, &f, ledgerBranch)
	if rest.IsKind(err, rest.KindPermission, rest.KindNotFound) {
		f.RulesUnread, err = true, nil
	}
	c.probePulls(ctx, &f)
	return f, failed("reading the rulesets", err)
}

// IsPublic reports whether everybody may read the repository. One of which GitHub does not tell
// is not public.
func (c *Client) IsPublic(ctx context.Context) (bool, error) {
	about, err := c.About(ctx)
	public := about.Private != nil && !*about.Private && (about.Visibility == "" || about.Visibility == "public") // older servers have no visibility
	return err == nil && public, failed("reading the repository", err)
}

// ProbeNamed asks about what the files of the default branch name: of teams
// "org/slug" whether the token can see them, and of workflows, by their file's
// name, whether GitHub has disabled them, as it does after 60 days in which
// nothing happened in a repository. Where PagesWorkflow is one of them, it asks how Pages are
// published.
func (c *Client) ProbeNamed(ctx context.Context, f *Facts, teams, workflows []string) {
	f.Teams, f.Disabled = map[string]bool{}, map[string]bool{}
	for _, team := range teams {
		org, slug, _ := strings.Cut(team, "/")
		_, err := c.Get(ctx, new(struct{}), nil, "orgs", org, "teams", slug)
		f.Teams[team] = err == nil
	}
	for _, file := range workflows {
		var got struct{ State string }
		_, err := c.GetBelow(ctx, &got, nil, "actions", "workflows", file)
		f.Disabled[file] = err == nil && strings.HasPrefix(got.State, "disabled")
	}
	if slices.Contains(workflows, PagesWorkflow) {
		var got Pages
		if _, err := c.GetBelow(ctx, &got, nil, "pages"); err == nil || rest.IsKind(err, rest.KindNotFound) {
			f.Pages = &got
		}
	}
}

// probePulls asks what is needed of pull requests: the checks that the default
// branch requires, by its protection and by rulesets, and the setting for
// workflows that open some. Only those who administer a repository are told that;
// what it keeps from being done tells it too.
func (c *Client) probePulls(ctx context.Context, f *Facts) {
	var branch struct {
		Protection struct {
			Required struct{ Contexts []string } `json:"required_status_checks"`
		}
	}
	var rules []struct {
		Parameters struct {
			Required []struct{ Context string } `json:"required_status_checks"`
		}
	}
	_, err1 := c.GetBelow(ctx, &branch, nil, "branches", f.DefaultBranch)
	_, err2 := c.GetBelow(ctx, &rules, nil, "rules", "branches", f.DefaultBranch)
	f.ChecksUnread = err1 != nil || err2 != nil
	f.Checks = branch.Protection.Required.Contexts
	for _, rule := range rules {
		for _, check := range rule.Parameters.Required {
			f.Checks = append(f.Checks, check.Context)
		}
	}
	var setting struct {
		May *bool `json:"can_approve_pull_request_reviews"`
	}
	if _, err := c.GetBelow(ctx, &setting, nil, "actions", "permissions", "workflow"); err == nil {
		f.OpensPulls = setting.May
	}
}

// probeRights notes each right by how GitHub answers a request that needs it and
// cannot be carried out.
func (c *Client) probeRights(ctx context.Context, f *Facts) {
	const never = "0000000000000000000000000000000000000000"
	_, runs := c.GetBelow(ctx, new(struct{}), url.Values{"per_page": {"1"}}, "actions", "runs")
	for right, err := range map[string]error{
		"contents: write": c.post(ctx, nil, map[string]string{"ref": "refs/countersign/probe", "sha": never}, c.Below("git", "refs")...),
		"checks: write":   c.post(ctx, nil, map[string]string{"name": "countersign probe", "head_sha": never}, c.Below("check-runs")...),
		"pull-requests: write": c.post(ctx, nil, map[string]string{
			"title": "countersign probe", "head": f.DefaultBranch, "base": f.DefaultBranch,
		}, c.Below("pulls")...),
		"actions: read": runs,
	} {
		switch {
		case err == nil, rest.IsKind(err, rest.KindRefused):
			f.Rights[right] = true
		case rest.IsKind(err, rest.KindPermission) && strings.Contains(err.Error(), actionsPulls):
			f.Rights[right], f.OpensPulls = true, new(bool) // the setting forbids it, and not the token
		case rest.IsKind(err, rest.KindPermission, rest.KindNotFound, rest.KindAuth):
			f.Rights[right] = false
		}
	}
}

func (c *Client) probeRules(ctx context.Context, f *Facts, branch string) error {
	type rule struct {
		Type string `json:"type"`
	}
	var all []struct {
		ID                        int64
		Name, Target, Enforcement string
	}
	if _, err := c.GetBelow(ctx, &all, url.Values{"includes_parents": {"true"}, "per_page": {"100"}}, "rulesets"); err != nil {
		return err
	}
	types := func(rules []rule) (out []string) {
		for _, r := range rules {
			out = append(out, r.Type)
		}
		return out
	}
	for _, set := range all {
		if set.Target != "push" || set.Enforcement != "active" {
			continue
		}
		var whole struct{ Rules []rule }
		_, err := c.GetBelow(ctx, &whole, nil, "rulesets", strconv.FormatInt(set.ID, 10))
		if err != nil && !rest.IsKind(err, rest.KindPermission, rest.KindNotFound) {
			return err
		}
		f.PushRules = append(f.PushRules, Rules{set.Name, types(whole.Rules)})
	}
	if branch == "" {
		return nil
	}
	var here []rule
	_, err := c.GetBelow(ctx, &here, nil, "rules", "branches", branch)
	f.BranchRules = types(here)
	return err
}
