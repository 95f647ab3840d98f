package gitea

import (
	"context"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Facts are what a server tells of a repository's setup, and of what the token may do there.
// What could not be found out is said so, or missing: it is never taken for good.
type Facts struct {
	Server        string // with its version, such as "Gitea 1.25.5"
	DefaultBranch string
	Account       ledger.Actor    // of the token; zero where that is not told
	Administers   bool            // whether that account administers the repository
	ReadOnly      string          // why nothing can be pushed: "archived", "a mirror", or ""
	Actions       bool            // whether the repository has the unit of that name
	Scopes        map[string]bool // by the names of Scopes; one that could not be found out is missing
	Teams         map[string]bool // of the Policy, by "org/team": whether the members can be read
	Secrets       []string        // names of the repository's own
	SecretsUnread bool
	Runners       int // that the repository has of its own; how many serve it beside these is not told
	Protection    *Protection
	OfLedger      *Protection // of the branch that has the ledger; nil also where it is on none
	RulesUnread   bool        // the protections could not be read
}

// Scopes are what a token needs, in the server's words.
var Scopes = []string{"read:user", "write:repository", "write:issue"}

// A Protection is the rule that holds for a branch.
type Protection struct {
	Required    []string // patterns of the statuses that a merge needs, none where it needs none
	Pushes      string   // who may push: "nobody", "everybody" who may write to the code, or "some"
	Pushers     []string // those, by their logins and as "team NAME" and "deploy keys"
	Forced      bool     // whether somebody may rewrite it
	AdminsMerge bool     // whether administrators may merge without what is required
	FreeFiles   string   // patterns of files that whoever may write pushes all the same
}

// protection is a rule as the API tells it.
type protection struct {
	Name          string   `json:"rule_name"`
	Push          bool     `json:"enable_push"`
	PushList      bool     `json:"enable_push_whitelist"`
	PushUsers     []string `json:"push_whitelist_usernames"`
	PushTeams     []string `json:"push_whitelist_teams"`
	PushKeys      bool     `json:"push_whitelist_deploy_keys"`
	Force         bool     `json:"enable_force_push"`
	StatusCheck   bool     `json:"enable_status_check"`
	Contexts      []string `json:"status_check_contexts"`
	AdminsBlocked bool     `json:"block_admin_merge_override"`
	FreeFiles     string   `json:"unprotected_file_patterns"`
}

func (p protection) facts() *Protection {
	out := &Protection{Pushes: "nobody", Forced: p.Force, AdminsMerge: !p.AdminsBlocked, FreeFiles: p.FreeFiles}
	if p.StatusCheck {
		out.Required = p.Contexts
	}
	switch {
	case p.Push && !p.PushList:
		out.Pushes = "everybody"
	case p.Push:
		out.Pushes, out.Pushers = "some", slices.Clone(p.PushUsers)
		for _, team := range p.PushTeams {
			out.Pushers = append(out.Pushers, "team "+team)
		}
		if p.PushKeys {
			out.Pushers = append(out.Pushers, "deploy keys")
		}
	}
	return out
}

// Probe asks for facts. It changes nothing: each write that it tries lacks what the server demands,
// so that the kind of refusal reports whether the token may write. The ledger's branch is "" where
// the ledger is on none.
func (c *Client) Probe(ctx context.Context, ledgerBranch string) (Facts, error) {
	f := Facts{Scopes: map[string]bool{}, Teams: map[string]bool{}}
	var about struct {
		Branch      string `json:"default_branch"`
		Archived    bool   `json:"archived"`
		Mirror      bool   `json:"mirror"`
		Actions     bool   `json:"has_actions"`
		Permissions struct {
			Admin bool `json:"admin"`
		} `json:"permissions"`
	}
	const op = "reading the repository"
	_, err := c.GetBelow(ctx, &about, nil)
	if err == nil && about.Branch == "" {
		err = rest.Unusable("the repository does not tell its default branch")
	}
	if err != nil {
		return f, failed(op, err)
	}
	if f.Server, err = c.version(ctx); err != nil && !rest.IsKind(err, rest.KindAnswer) { // a build of one's own may tell no number
		return f, err
	}
	f.DefaultBranch, f.Administers, f.Actions = about.Branch, about.Permissions.Admin, about.Actions
	switch {
	case about.Archived:
		f.ReadOnly = "archived"
	case about.Mirror:
		f.ReadOnly = "a mirror"
	}
	c.probeScopes(ctx, &f)
	c.probeActions(ctx, &f)
	return f, failed("reading the protections of branches", c.probeRules(ctx, &f, ledgerBranch))
}

// probeScopes notes each scope by how the server answers a request that needs it. It looks at the
// scopes of a token before it looks at the request.
func (c *Client) probeScopes(ctx context.Context, f *Facts) {
	who, user := c.Viewer(ctx)
	if user == nil {
		f.Account = who
	}
	nothing := map[string]string{}
	_, branch := c.send(ctx, "POST", nil, nothing, nil, c.Below("branches")...)                 // without a name
	_, comment := c.send(ctx, "POST", nil, nothing, nil, c.Below("issues", "0", "comments")...) // without a text
	for scope, err := range map[string]error{"read:user": user, "write:repository": branch, "write:issue": comment} {
		switch {
		case err == nil, rest.IsKind(err, rest.KindRefused):
			f.Scopes[scope] = true
		case rest.IsKind(err, rest.KindPermission, rest.KindAuth):
			f.Scopes[scope] = false
		}
	}
}

// probeActions asks what the repository's workflows have. Secrets' names are for its owners alone.
func (c *Client) probeActions(ctx context.Context, f *Facts) {
	secrets, err := list[struct {
		Name string `json:"name"`
	}](ctx, c, false, nil, c.Below("actions", "secrets")...)
	f.SecretsUnread = err != nil
	for _, secret := range secrets {
		f.Secrets = append(f.Secrets, secret.Name)
	}
	var runners struct {
		Total int `json:"total_count"`
	}
	if _, err := c.GetBelow(ctx, &runners, nil, "actions", "runners"); err == nil {
		f.Runners = runners.Total
	}
}

// probeRules asks for the rules of the default branch and of the ledger's.
func (c *Client) probeRules(ctx context.Context, f *Facts, ledgerBranch string) error {
	var rules []protection
	_, err := c.GetBelow(ctx, &rules, nil, "branch_protections")
	if rest.IsKind(err, rest.KindPermission, rest.KindNotFound) {
		f.RulesUnread = true
		return nil
	}
	if err != nil {
		return err
	}
	if f.Protection, err = c.ruleOf(ctx, rules, f.DefaultBranch); err == nil && ledgerBranch != "" {
		f.OfLedger, err = c.ruleOf(ctx, rules, ledgerBranch)
	}
	return err
}

// ruleOf returns the rule that holds for a branch, nil for none. The server names it; of a branch
// that is not there yet, it is the one of the same name.
func (c *Client) ruleOf(ctx context.Context, rules []protection, branch string) (*Protection, error) {
	name, err := c.ruleName(ctx, branch)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(rules, func(p protection) bool { return p.Name == name })
	if i < 0 {
		return nil, nil
	}
	return rules[i].facts(), nil
}

// ruleName is the name of the rule that holds for a branch, "" for none.
func (c *Client) ruleName(ctx context.Context, branch string) (string, error) {
	var got struct {
		Rule string `json:"effective_branch_protection_name"`
	}
	_, err := c.GetBelow(ctx, &got, nil, append([]string{"branches"}, strings.Split(branch, "/")...)...)
	if rest.IsKind(err, rest.KindNotFound) {
		return branch, nil
	}
	return got.Rule, err
}

// ProbeTeams asks of teams "org/team" whether their members can be read.
func (c *Client) ProbeTeams(ctx context.Context, f *Facts, teams []string) {
	for _, team := range teams {
		_, err := c.member(ctx, team, f.Account)
		f.Teams[team] = err == nil
	}
}
