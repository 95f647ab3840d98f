package github

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
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
}

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
	}
	resp, err := c.inRepository(ctx, &repository, nil)
	if err != nil {
		return f, failed("reading the repository", err)
	}
	f.DefaultBranch, f.Version = repository.DefaultBranch, resp.Header.Get("X-GitHub-Enterprise-Version")
	if who, err := c.Viewer(ctx); err == nil {
		f.Account = who
	}
	c.probeRights(ctx, &f)
	err = c.probeRules(ctx, &f, ledgerBranch)
	if isKind(err, KindPermission, KindNotFound) {
		f.RulesUnread, err = true, nil
	}
	return f, failed("reading the rulesets", err)
}

// ReadableTeams tells of teams "org/slug" whether the token can see them.
func (c *Client) ReadableTeams(ctx context.Context, teams []string) map[string]bool {
	out := map[string]bool{}
	for _, team := range teams {
		org, slug, _ := strings.Cut(team, "/")
		_, err := c.get(ctx, new(struct{}), nil, "orgs", org, "teams", slug)
		out[team] = err == nil
	}
	return out
}

// probeRights notes each right by how GitHub answers a request that needs it and
// cannot be carried out.
func (c *Client) probeRights(ctx context.Context, f *Facts) {
	const never = "0000000000000000000000000000000000000000"
	_, runs := c.inRepository(ctx, new(struct{}), url.Values{"per_page": {"1"}}, "actions", "runs")
	for right, err := range map[string]error{
		"contents: write": c.post(ctx, map[string]string{"ref": "refs/countersign/probe", "sha": never}, c.below("git", "refs")...),
		"checks: write":   c.post(ctx, map[string]string{"name": "countersign probe", "head_sha": never}, c.below("check-runs")...),
		"pull-requests: write": c.post(ctx, map[string]string{
			"title": "countersign probe", "head": f.DefaultBranch, "base": f.DefaultBranch,
		}, c.below("pulls")...),
		"actions: read": runs,
	} {
		switch {
		case err == nil, isKind(err, KindRefused):
			f.Rights[right] = true
		case isKind(err, KindPermission) && strings.Contains(err.Error(), actionsPulls):
			f.Rights[right] = true // the setting forbids it, and not the token
		case isKind(err, KindPermission, KindNotFound, KindAuth):
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
	if _, err := c.inRepository(ctx, &all, url.Values{"includes_parents": {"true"}, "per_page": {"100"}}, "rulesets"); err != nil {
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
		_, err := c.inRepository(ctx, &whole, nil, "rulesets", strconv.FormatInt(set.ID, 10))
		if err != nil && !isKind(err, KindPermission, KindNotFound) {
			return err
		}
		f.PushRules = append(f.PushRules, Rules{set.Name, types(whole.Rules)})
	}
	if branch == "" {
		return nil
	}
	var here []rule
	_, err := c.inRepository(ctx, &here, nil, "rules", "branches", branch)
	f.BranchRules = types(here)
	return err
}
