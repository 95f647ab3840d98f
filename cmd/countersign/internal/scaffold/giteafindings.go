package scaffold

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/report"
)

// readGitea is Read for Gitea and Forgejo.
func (f *Facts) readGitea(files map[string][]byte) {
	f.Files = map[string]string{}
	list := giteaFiles(f.Folder)
	for _, file := range list {
		have, found := files[file.Path]
		s := SettingsOf(have)
		s.Guarded = f.Branch
		f.Files[file.Path] = file.state(have, found, s)
	}
	f.WorkflowRef = cmp.Or(SettingsOf(files[list[1].Path]).LedgerRef, gitstore.LedgerRef)
}

func isForgejo(server string) bool { return strings.HasPrefix(server, "Forgejo ") }

// startsRuns reports whether a run starts the workflow that waits for it, as Gitea has it from
// 1.25 on; known is false of a server that this was not seen on.
func startsRuns(server string) (starts, known bool) {
	var major, minor int
	if _, err := fmt.Sscanf(server, "Gitea %d.%d", &major, &minor); err != nil {
		return false, false
	}
	return major > 1 || major == 1 && minor >= 25, true
}

// giteaFindings are about what Gitea and Forgejo tell (docs/forges.md).
func (f Facts) giteaFindings() []Finding {
	all := slices.Concat(f.giteaServer(), f.giteaAccount(), f.giteaActions(), f.giteaPolicy(), f.giteaBranch())
	if f.Place == nil && !f.Gitea.RulesUnread { // which is said of the default branch
		all = append(all, ledgerRule(*f.Gitea, f.LedgerRef)...)
	}
	return all
}

func (f Facts) giteaServer() []Finding {
	server := report.Clean(cmp.Or(f.Gitea.Server, "one that tells no version"))
	var out []Finding
	switch starts, known := startsRuns(f.Gitea.Server); {
	case starts:
		out = append(out, ok("the server is %s", server))
	case known:
		out = append(out, note("update it to 1.25 or newer, and start the workflow by hand where the hour is too long",
			"the server is %s: before 1.25 no run starts another (workflow_run), and runs are not listed. What people say, and new pull requests, wait for the hourly schedule", server))
	default:
		out = append(out, note("open a pull request: if nothing is said there within a minute, the schedule says it once an hour",
			"the server is %s: whether a run there starts another (workflow_run) was not seen", server))
	}
	if f.Gitea.ReadOnly != "" {
		out = append(out, fails("make it one that takes pushes", "the repository is %s: neither the ledger nor what is approved can be pushed", report.Clean(f.Gitea.ReadOnly)))
	}
	return out
}

// scopeFor says what each scope is for.
var scopeFor = map[string]string{
	"read:user":        "whose it is cannot be told, and so not who approves their own",
	"write:repository": "the ledger, statuses and what is applied cannot be written",
	"write:issue":      "nobody can be asked on a pull request",
}

func (f Facts) giteaAccount() []Finding {
	who := f.Gitea.Account
	name := report.Clean(cmp.Or(who.Login, "its account"))
	out := []Finding{
		either(who.ID != "", ok("the token is that of %s", name), fails("give it the scope read:user", "the server does not say whose the token is")),
		either(f.Gitea.Administers, ok("%s administers the repository", name),
			fails("let it administer the repository (Settings > Collaborators)", "%s does not administer the repository: it is not told who may approve, and no approval counts", name)),
	}
	return append(out, tokenMay("scope ", "make a token with ", gitea.Scopes, f.Gitea.Scopes, scopeFor, f.Gitea.Teams,
		"put the account into the team or let it own the organization, and give the token the scope read:organization")...)
}

// tokenSecret is the name of the secret with the token.
const tokenSecret = "COUNTERSIGN_TOKEN"

func (f Facts) giteaActions() []Finding {
	out := []Finding{either(f.Gitea.Actions, ok("the repository has Actions"), fails("Settings > Repository > Enable Repository Actions", "the repository has no Actions: no workflow runs"))}
	switch {
	case f.Gitea.SecretsUnread:
		out = append(out, note("Settings > Actions > Secrets", "the names of secrets are told to the repository's owners alone: whether there is a %s could not be found out", tokenSecret))
	case !slices.Contains(f.Gitea.Secrets, tokenSecret):
		out = append(out, fails("Settings > Actions > Secrets > Add secret", "the repository has no secret %s of its own: unless its owner has one for all repositories, countersign.yml cannot do anything", tokenSecret))
	default:
		out = append(out, ok("the repository has the secret %s", tokenSecret))
	}
	return append(out, either(f.Gitea.Runners > 0, ok("the repository has a runner of its own"),
		note("Settings > Actions > Runners", "the repository has no runner of its own; whether one of its owner's or of the server's runs its jobs is not told")))
}

// signedOnly reports whether the Policy takes signed approvals alone.
func (f Facts) signedOnly() bool { return f.Policy.Approvals.Signing() == policy.SignedOnly }

func (f Facts) giteaPolicy() []Finding {
	if f.Branch == "" || f.PolicyErr != nil {
		return nil
	}
	var out []Finding
	who := f.Gitea.Account
	switch {
	case who.ID == "":
	case f.Policy.IsBot(who.ID, who.Login):
		out = append(out, ok("the Policy names %s under bots", report.Clean(who.Login)))
	default:
		out = append(out, fails("run it with the token of the program's own account, and name that account under bots in the Policy: whoever is named there can approve nothing",
			"the Policy does not name %s under bots: whoever has this token could approve with it", report.Clean(who.Login)))
	}
	if f.Policy.Approvals.ForgeKeys {
		out = append(out, fails("approvals: {keys: FILE} in the Policy (docs/policy.md)", "the Policy's forge_keys cannot be met: an account's keys there are those that it logs in with"))
	}
	if !f.signedOnly() {
		out = append(out, note("approvals: {signed: require} in the Policy (docs/policy.md)", "approvals need no signature: who may write there can edit others' comments, which voids them, and a forged one within the second is not found"))
	}
	return append(out, either(slices.Contains(f.Policy.Gate.Bases, f.Branch), ok("the Policy guards pull requests to %s", report.Clean(f.Branch)),
		note("gate: {bases: [BRANCH]} in the Policy", "the Policy's gate does not name %s: pull requests to it are not guarded", report.Clean(f.Branch))))
}

// guardStatus is the context of the status that guards pull requests.
const guardStatus = "countersign"

func (f Facts) giteaBranch() []Finding {
	branch, p := report.Clean(f.Gitea.DefaultBranch), f.Gitea.Protection
	protect := "Settings > Branches: enable the status check countersign, disable pushes"
	switch {
	case f.Gitea.RulesUnread:
		return []Finding{fails("run it with the token of an account that administers the repository", "the protections of branches cannot be read")}
	case p == nil:
		return []Finding{fails(protect, "%s is not protected: a pull request can be merged that nobody approved, and who may write can push", branch)}
	}
	var out []Finding
	if slices.Contains(p.Required, guardStatus) {
		out = append(out, ok("%s requires the status countersign", branch),
			note("let agents work in forks, and look for commits that nobody approved", "whoever may write here can set the status countersign by hand, and merge what nobody approved"))
	} else {
		out = append(out, fails(protect, "%s does not require the status countersign, by this name and no pattern: a pull request can be merged that nobody approved", branch))
	}
	switch others := slices.DeleteFunc(slices.Clone(p.Pushers), isAccount(*f.Gitea)); {
	case p.Pushes == "nobody", p.Pushes == "some" && len(others) == 0:
		out = append(out, ok("nobody else pushes to %s", branch))
	case p.Pushes == "some":
		out = append(out, note("Settings > Branches: disable pushes", "%s may push to %s without anybody's approval", report.Clean(strings.Join(others, ", ")), branch))
	default:
		out = append(out, fails(protect, "whoever may write can push to %s without anybody's approval", branch))
	}
	if p.FreeFiles != "" {
		out = append(out, note("Settings > Branches: leave the unprotected file patterns empty", "whoever may write can push files of %s to %s without anybody's approval", report.Clean(p.FreeFiles), branch))
	}
	if p.AdminsMerge {
		out = append(out, note("Settings > Branches: administrators must follow branch protection rules", "administrators may merge into %s without the status", branch))
	}
	return out
}

// isAccount reports whether a login is that of the token's account.
func isAccount(there gitea.Facts) func(login string) bool {
	return func(login string) bool { return strings.EqualFold(login, there.Account.Login) }
}

// ledgerRule is about the rule for a ledger, in the repository that has it.
func ledgerRule(there gitea.Facts, ledgerRef string) []Finding {
	branch, is := strings.CutPrefix(ledgerRef, "refs/heads/")
	branch = report.Clean(branch)
	account := report.Clean(cmp.Or(there.Account.Login, "the token's account"))
	protect := "Settings > Branches: a rule for the ledger's branch that lets the program's account alone push"
	switch p := there.OfLedger; {
	case !is:
		return []Finding{note("countersign init --ledger-branch", "no rule reaches %s: whoever may push can rewrite or delete it, and countersign notices afterwards", report.Clean(ledgerRef))}
	case there.RulesUnread:
		return []Finding{note("run it with the token of an account that administers the repository", "the protection of the ledger's branch %s cannot be read", branch)}
	case p == nil:
		return []Finding{note(protect, "no rule protects the ledger's branch %s: whoever may push can rewrite or delete it, and countersign notices afterwards", branch)}
	case p.Forced:
		return []Finding{fails("Settings > Branches: disable force push for the ledger's branch", "the rule of the ledger's branch %s lets it be rewritten", branch)}
	case p.Pushes == "nobody":
		return []Finding{fails(protect, "nobody may push to the ledger's branch %s, the program's account neither", branch)}
	case p.Pushes == "everybody":
		return []Finding{note(protect, "whoever may push can add to the ledger's branch %s; countersign notices what is forged afterwards", branch)}
	case !slices.ContainsFunc(p.Pushers, isAccount(there)):
		return []Finding{note(protect, "the rule of the ledger's branch %s does not name %s among those who may push", branch, account)}
	case len(p.Pushers) > 1:
		return []Finding{note(protect, "%s may add to the ledger's branch %s", report.Clean(strings.Join(p.Pushers, ", ")), branch)}
	default:
		return []Finding{ok("only %s adds to the ledger's branch %s, and nobody rewrites it", account, branch)}
	}
}
