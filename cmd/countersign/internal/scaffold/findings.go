package scaffold

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report"
)

// Facts are what init --check judges by.
type Facts struct {
	Here        *Here // the person's own clone, nil where that is not looked at
	Asked       bool  // whether there was a token to ask the forge with
	GitHub      github.Facts
	Gitea       *gitea.Facts      // where the repository is on Gitea or Forgejo, and then GitHub is not asked
	Unknown     bool              // there is a token, and it is not known which forge it is for
	Branch      string            // the default branch
	Commit      string            // of it, that the files were read from
	Folder      string            // that Gitea or Forgejo takes workflows from
	Files       map[string]string // path → state
	Uses        []string          // what the workflows call the action
	Gated       bool              // whether pull requests themselves are guarded
	Inline      bool              // whether the jobs are in the workflow, rather than called
	Redact      string            // Settings.Redact, of the workflow that publishes pages
	Attests     []string          // rights that the workflow that attests gives its job
	Policy      policy.Policy
	PolicyErr   error
	LedgerRef   string
	WorkflowRef string     // the ledger's, as the workflows have it
	Place       *Elsewhere // of the ledger, where the Policy names another repository
}

// Elsewhere is the repository that keeps the ledger, OWNER/NAME, and the ref there. Err is why it cannot be
// found or read; Public says that everybody may read it. GitHub or Gitea is what the forge tells the token about it, both
// nil where that was not asked.
type Elsewhere struct {
	Repository, Ref string
	Err             error
	Public          bool
	GitHub          *github.Facts
	Gitea           *gitea.Facts
}

// Here is what a clone has: who would decide in it, and its copy of the ledger.
type Here struct {
	Name, Email string
	Ledger      string // the tip, "" for none
	CheckedOut  bool   // whether the ledger's branch is
	// Denied are what became of the pull requests that were denied last, by the forge, and
	// MoreDenied how many it was not asked about. DeniedErr is why the ledger does not tell.
	Denied     []online.Finding
	MoreDenied int
	DeniedErr  error
	// Written are files of init that the default branch does not have and that are here, Committed those in HEAD.
	Written, Committed []string
	Alone              bool            // whether there is no remote
	Remote             *online.Finding // how the remote's ledger compares, nil where that was not asked
}

// The levels of a finding.
const (
	LevelOK    = "ok"
	LevelNote  = "note"  // works, and should be known
	LevelFails = "fails" // does not work
)

// A Finding is one thing that works, or not, and what to do about it.
type Finding struct{ Level, Text, Hint string }

func ok(format string, args ...any) Finding {
	return Finding{LevelOK, fmt.Sprintf(format, args...), ""}
}
func note(hint, format string, args ...any) Finding {
	return Finding{LevelNote, fmt.Sprintf(format, args...), hint}
}
func fails(hint, format string, args ...any) Finding {
	return Finding{LevelFails, fmt.Sprintf(format, args...), hint}
}

// either is the one finding where something is so, and the other where it is not.
func either(is bool, good, bad Finding) Finding {
	if is {
		return good
	}
	return bad
}

// tokenMay are findings about rights of a token, with what is not possible without each. They begin with what
// one is called, and readTeam is what it takes to read the members of teams.
func tokenMay(called, give string, rights []string, may map[string]bool, without map[string]string, teams map[string]bool, readTeam string) (out []Finding) {
	the := strings.TrimSuffix("the "+called, "the ")
	for _, right := range rights {
		if has, known := may[right]; !known {
			out = append(out, note("", "whether the token has %s%s could not be found out", the, right))
		} else {
			out = append(out, either(has, ok("the token has %s%s", the, right), fails(give+right, "the token has no %s%s: %s", called, right, without[right])))
		}
	}
	for _, team := range slices.Sorted(maps.Keys(teams)) {
		if !teams[team] {
			out = append(out, fails(readTeam, "the members of %s, which the Policy names, cannot be read: nobody's approval counts for it", report.Clean(team)))
		}
	}
	return out
}

// Findings judges the facts; what fails comes first.
func (f Facts) Findings() []Finding {
	all := slices.Concat(f.hereFindings(), f.deniedFindings())
	if f.Branch != "" {
		all = append(all, f.policyFindings()...)
		all = append(all, f.fileFindings()...)
		all = append(all, f.usesFindings()...)
		all = append(all, f.attestFindings()...)
	} else if f.alone() && f.Files != nil {
		all = append(all, f.policyFindings()...)
	} else if !f.alone() {
		all = append(all, note("git remote set-head origin --auto", "no default branch of a remote is known here: nothing is said of the Policy and the workflows"))
	}
	all = append(all, f.placeFindings()...)
	switch {
	case f.Asked && f.Gitea != nil:
		all = append(all, f.giteaFindings()...)
	case f.Asked:
		all = append(all, f.tokenFindings()...)
		all = append(all, f.serverFindings()...)
		all = append(all, f.pullFindings()...)
		if f.Place == nil {
			all = append(all, pushFindings(f.GitHub, f.LedgerRef)...)
		}
		all = append(all, f.pagesFindings()...)
	case f.Gitea != nil:
		all = append(all, note("set COUNTERSIGN_TOKEN to a token of an account that administers the repository", "the server was not asked: there is no token, or no repository to ask about"))
	case f.Unknown:
		all = append(all, note("say what it is with --forge gitea, forgejo or github", "the server was not asked: it is not known what it is, or COUNTERSIGN_TOKEN is for another host"))
	case f.alone():
		all = append(all, ok("there is no remote: everything here works in this clone alone"))
	case f.Here != nil:
		all = append(all, note("set COUNTERSIGN_TOKEN to a token that may read the repository", "GitHub was not asked: there is no token, or no repository to ask about"))
	default:
		all = append(all, fails("set COUNTERSIGN_TOKEN or GITHUB_TOKEN, and run it in a clone whose remote is the repository", "GitHub was not asked: there is no token, or no repository to ask about"))
	}
	order := map[string]int{LevelFails: 0, LevelNote: 1, LevelOK: 2}
	slices.SortStableFunc(all, func(a, b Finding) int { return order[a.Level] - order[b.Level] })
	return all
}

func (f Facts) alone() bool { return f.Here != nil && f.Here.Alone }

// isHere reports whether a file that the default branch does not have is in the working tree or in HEAD.
func (f Facts) isHere(name string) bool {
	return f.Here != nil && (slices.Contains(f.Here.Written, name) || slices.Contains(f.Here.Committed, name))
}

func (f Facts) hereFindings() []Finding {
	if f.Here == nil {
		return nil
	}
	var out []Finding
	if names := f.Here.Written; len(names) > 0 {
		out = append(out, note("git add "+escape.ShellWords(names)+" && git commit", "written, not committed yet: %s", report.Clean(strings.Join(names, ", "))))
	}
	if names := f.Here.Committed; len(names) > 0 && f.Branch != "" {
		out = append(out, note("git push", "committed here, not on %s yet: %s", report.Clean(f.Branch), report.Clean(strings.Join(names, ", "))))
	}
	out = append(out, either(f.Here.Email != "", ok("you decide here as %s <%s>", report.Clean(f.Here.Name), report.Clean(f.Here.Email)),
		fails("git config --global user.email YOU@EXAMPLE.ORG", "Git does not know who you are: you can approve and deny nothing here")))
	if f.Here.CheckedOut {
		out = append(out, fails("git switch "+escape.ShellQuote(cmp.Or(f.Branch, "main")), "the ledger's branch is checked out: each entry would leave the files behind it, and a commit there would damage it"))
	}
	if f.Here.Ledger == "" {
		const none = "this clone has no ledger on %s"
		return append(out, either(f.alone(), note("countersign review FILE", none, f.LedgerRef), note("countersign sync", none, f.LedgerRef)))
	}
	out = append(out, ok("the ledger %s is here, at %.12s", f.LedgerRef, f.Here.Ledger))
	switch r := f.Here.Remote; {
	case r == nil:
	case r.Verdict == online.Same:
		out = append(out, ok("the remote's ledger is the same"))
	case r.Verdict == online.Note:
		out = append(out, note("countersign sync", "%s", report.Clean(r.Reason)))
	case r.Verdict == online.Unknown:
		out = append(out, note("countersign sync", "the remote's ledger cannot be compared: %s", report.Clean(r.Reason)))
	default:
		out = append(out, fails("countersign sync", "%s", report.Clean(r.Reason)))
	}
	return out
}

// deniedFindings are about pull requests that were merged although somebody denied them.
func (f Facts) deniedFindings() []Finding {
	if f.Here == nil {
		return nil
	}
	var out []Finding
	if f.Here.DeniedErr != nil {
		out = append(out, note("countersign audit", "what was denied cannot be read: %s", report.Clean(f.Here.DeniedErr.Error())))
	}
	for _, d := range f.Here.Denied {
		what := report.Clean(fmt.Sprintf("%s, %s in %s", d.About, d.Recorded, d.TransactionID))
		switch d.Verdict {
		case online.Same:
		case online.Unknown:
			out = append(out, note("countersign audit --online", "whether %s, was merged is not known: %s", what, report.Clean(d.Reason)))
		default:
			out = append(out, fails("revert what of it is there, and find out who set the check countersign", "%s, is %s: %s", what, report.Clean(d.Now), report.Clean(d.Reason)))
		}
	}
	if len(out) == 0 && len(f.Here.Denied) > 0 {
		out = append(out, ok("what was denied was not merged: %s", report.Counted(len(f.Here.Denied), "pull request")))
	}
	if f.Here.MoreDenied > 0 {
		out = append(out, note("countersign audit --online", "whether %s more that was denied was merged was not asked", report.Counted(f.Here.MoreDenied, "pull request")))
	}
	return out
}

func (f Facts) policyFindings() []Finding {
	at := report.Clean(cmp.Or(f.Branch, "HEAD"))
	switch {
	case f.PolicyErr != nil:
		check := "countersign policy check"
		if f.Branch != "" {
			check += " " + policy.Path
		}
		return []Finding{fails(check, "the Policy on %s is not valid: %s", at, report.ErrorLine(f.PolicyErr))}
	case f.isHere(policy.Path):
		return nil
	case f.Files[policy.Path] == Missing:
		return []Finding{note("countersign init", "there is no %s on %s: the defaults hold", policy.Path, at)}
	}
	return []Finding{ok("the Policy on %s is valid", at)}
}

func (f Facts) fileFindings() []Finding {
	var out []Finding
	list, writes := List, "countersign init --pr, or countersign init, commit and push"
	if f.Gitea != nil {
		list, writes = giteaFiles(f.Folder), "countersign init, commit and push"
	}
	if f.Here != nil && !f.Asked && !slices.ContainsFunc(list, func(file File) bool {
		return f.isHere(file.Path) || f.Files[file.Path] != Missing && f.Files[file.Path] != ""
	}) {
		return []Finding{note("countersign init", "%s has no workflows of countersign: patches are taken through in a clone alone", report.Clean(f.Branch))}
	}
	for _, file := range list[1:] {
		switch state := f.Files[file.Path]; {
		case f.isHere(file.Path): // said already
		case state == Missing && file.theirs:
			out = append(out, fails(writes, "%s is missing on %s: nothing tells of proposals and reviews", file.Path, report.Clean(f.Branch)))
		case state == Missing && file.Path == watchWorkflow:
			out = append(out, note("countersign init --watch", "nothing watches %s for commits that nothing accounts for", report.Clean(f.Branch)))
		case state == "", state == Missing && file.Asked != "": // nobody asked for it
		case state == Missing:
			out = append(out, fails(writes, "%s is missing on %s", file.Path, report.Clean(f.Branch)))
		case state == Differs:
			out = append(out, note("countersign init --force --dry-run", "%s is not as init writes it", file.Path))
		default:
			out = append(out, ok("%s is there", file.Path))
		}
	}
	return out
}

func (f Facts) usesFindings() []Finding {
	var out []Finding
	if f.WorkflowRef != f.LedgerRef {
		out = append(out, note("git config countersign.ledgerRef "+escape.ShellQuote(f.WorkflowRef), "this clone looks for the ledger on %s; the workflows keep it on %s", f.LedgerRef, f.WorkflowRef))
	}
	for _, uses := range f.Uses {
		switch {
		case uses == Placeholder:
			out = append(out, fails("countersign init --uses OWNER/countersign", "the workflows still name %s", Placeholder))
		case !UsesForm().MatchString(uses):
			out = append(out, note("name the 40 digits of the commit", "the workflows use %s: a tag or branch can be moved", report.Clean(uses)))
		}
	}
	return out
}

// rightsFor says what each right is for.
var rightsFor = map[string]string{
	"contents: write":      "the ledger and what is applied cannot be pushed",
	"pull-requests: write": "nobody can be asked, and nothing reported, on a pull request",
	"checks: write":        "check runs cannot be written (only an app's token can, such as a workflow's)",
	"actions: read":        "what bots propose cannot be read",
}

func (f Facts) tokenFindings() []Finding {
	var out []Finding
	switch who := f.GitHub.Account; {
	case who.Login == "":
		out = append(out, note("", "GitHub does not say whose the token is"))
	case who.Login == "github-actions":
		out = append(out, note("use an App of your own (docs/setup.md)",
			"the token is the workflow's own: what it pushes starts no workflows, and any workflow can write a check of the same name"))
	default:
		out = append(out, ok("the token is that of %s", report.Clean(who.Login)))
	}
	return append(out, tokenMay("", "give a token with ", github.Rights, f.GitHub.Rights, rightsFor, f.GitHub.Teams, "use an App's token with members: read")...)
}

// serverFindings: before 3.20 the file of a pull_request_target workflow is the
// base's of the pull request (github-facts, 5), so that whoever opens one
// chooses among the files that the repository ever had on a branch.
func (f Facts) serverFindings() []Finding {
	if f.GitHub.Version == "" {
		return nil
	}
	out := []Finding{note("if they fail, use their v3 in the workflows", "artifacts of actions/upload-artifact and download-artifact v4 and later need support by this server")}
	if !f.Inline {
		out = append(out, fails("countersign init --inline", "GitHub Enterprise Server cannot run the workflow that countersign.yml calls: it has no \"$/\""))
	}
	if f.Gated && github.RunsBaseWorkflows(f.GitHub.Version) {
		out = append(out, fails("countersign init --gate=false",
			"GitHub Enterprise Server %s takes pull_request_target's workflow from the pull request's base: pull requests themselves are not guarded", report.Clean(f.GitHub.Version)))
	}
	return out
}

// pullFindings are about what must be so on GitHub for pull requests that the
// program opens, and for those that it guards.
func (f Facts) pullFindings() []Finding {
	var out []Finding
	for _, file := range slices.Sorted(maps.Keys(f.GitHub.Disabled)) {
		if f.GitHub.Disabled[file] {
			out = append(out, fails("gh workflow enable "+file, "GitHub has disabled the workflow %s, and does not start it", file))
		}
	}
	opens := f.Policy.Apply.To == policy.ToPullRequest
	app := f.GitHub.Account.Kind == "bot" && f.GitHub.Account.Login != "github-actions"
	switch may := f.GitHub.OpensPulls; {
	case !opens || app:
	case may == nil:
		out = append(out, note("Settings > Actions > General > Workflow permissions", "GitHub does not tell this token whether workflows may open pull requests, as apply.to: pull_request needs"))
	case !*may:
		out = append(out, fails("gh api -X PUT repos/{owner}/{repo}/actions/permissions/workflow -F can_approve_pull_request_reviews=true",
			"GitHub does not let workflows open pull requests, as apply.to: pull_request needs (an App's token may)"))
	default:
		out = append(out, ok("workflows may open pull requests"))
	}
	switch level := note; {
	case !opens && !f.Gated:
	case slices.Contains(f.GitHub.Checks, "countersign"):
		out = append(out, ok("%s requires the check countersign", report.Clean(f.Branch)))
	case f.GitHub.ChecksUnread:
		out = append(out, note("", "the checks that %s requires cannot all be read: countersign should be one", report.Clean(f.Branch)))
	default:
		if opens && !risk.Merges(f.Policy) {
			level = fails // a person merges, and nothing but the check holds them back
		}
		out = append(out, level("countersign init --harden --gate prints the ruleset that requires it", "%s does not require the check countersign: a pull request can be merged that nobody approved", report.Clean(f.Branch)))
	}
	return out
}

// pagesFindings are about the site, where the workflow that publishes it is there.
func (f Facts) pagesFindings() []Finding {
	pages := f.GitHub.Pages
	if state := f.Files[PagesWorkflow]; state == "" || state == Missing {
		return nil
	}
	switch {
	case pages == nil:
		return []Finding{note("Settings > Pages > Source: GitHub Actions", "GitHub does not tell this token how Pages are published; countersign-pages.yml needs the source GitHub Actions")}
	case pages.BuildType == "":
		return []Finding{fails("gh api -X POST repos/{owner}/{repo}/pages -f build_type=workflow", "GitHub publishes no Pages of this repository, as countersign-pages.yml needs")}
	case pages.BuildType != "workflow":
		return []Finding{fails("gh api -X PUT repos/{owner}/{repo}/pages -f build_type=workflow", "GitHub takes Pages from a branch, and not from countersign-pages.yml")}
	case f.GitHub.Private && pages.Public && f.Redact == "false":
		return []Finding{note("countersign init --pages --redact",
			"everybody can see every diff of this private repository, and what commands printed: its pages have them (redact: false in countersign-pages.yml)")}
	case f.GitHub.Private && pages.Public:
		return []Finding{note("gh workflow disable countersign-pages.yml",
			"everybody can see the pages of this private repository: who proposed and approved what, the names of files, what people wrote")}
	}
	return []Finding{ok("GitHub publishes the pages of countersign-pages.yml")}
}

// attestFindings are about the workflow that attests, where it is there: what keeps it from signing.
func (f Facts) attestFindings() []Finding {
	state := f.Files[attestWorkflow]
	if state == "" || state == Missing {
		return nil
	}
	var out []Finding
	for _, right := range []struct{ name, without string }{
		{"contents: write", "what it signs cannot be kept beside the ledger"},
		{"id-token: write", "its job has no identity to sign with"},
		{"attestations: write", "GitHub takes no attestation of it"},
	} {
		if state == Differs && !slices.Contains(f.Attests, right.name) {
			out = append(out, fails("countersign init --force", "countersign-attest.yml does not give its job %s: %s", right.name, right.without))
		}
	}
	var not []string
	if name := f.Policy.Ledger.Repository; name != "" {
		not = append(not, "the ledger is in "+report.Clean(name)+", so that not everybody may read it")
	}
	if f.Asked && f.GitHub.Private {
		not = append(not, "not everybody may read this repository, and a public log would name it for ever")
	}
	if f.GitHub.Version != "" {
		not = append(not, "the server is GitHub Enterprise Server, and Sigstore's public authority knows github.com alone")
	}
	for _, why := range not {
		out = append(out, fails("gh workflow disable countersign-attest.yml", "countersign-attest.yml attests nothing: %s", why))
	}
	if len(out) == 0 {
		out = append(out, ok("countersign-attest.yml has the rights to attest what is settled; a public log names this repository"))
	}
	return out
}

// placeFindings are about the repository that keeps the ledger.
func (f Facts) placeFindings() []Finding {
	p := f.Place
	if p == nil {
		return nil
	}
	name := report.Clean(p.Repository)
	if p.Err != nil {
		return []Finding{fails("docs/ledger.md, A ledger in another repository, says what it takes", "the ledger is kept in %s, and it cannot be read: %s", name, report.ErrorLine(p.Err))}
	}
	out := []Finding{ok("the ledger is kept in %s, on %s, and can be read", name, report.Clean(p.Ref))}
	if p.Public {
		out = append(out, fails("make that repository private", "everybody may read the ledger in %s", name))
	}
	var may, known bool
	switch {
	case p.GitHub != nil:
		may, known = p.GitHub.Rights["contents: write"]
	case p.Gitea != nil:
		may, known = p.Gitea.Scopes["write:repository"]
	default:
		return append(out, note("set COUNTERSIGN_TOKEN to a token that may read the repository", "who may read %s could not be found out: there is no token to ask with", name))
	}
	if known && !may {
		out = append(out, fails("set COUNTERSIGN_LEDGER_TOKEN to a token that may write the contents of that repository", "the token may not write to %s", name))
	}
	if p.GitHub != nil {
		return append(out, pushFindings(*p.GitHub, p.Ref)...)
	}
	if p.Gitea.ReadOnly != "" {
		out = append(out, fails("make it one that takes pushes", "%s is %s: the ledger cannot be pushed", name, report.Clean(p.Gitea.ReadOnly)))
	}
	return append(out, ledgerRule(*p.Gitea, p.Ref)...)
}

// blocking are the types of branch rules that refuse a push to the ledger.
var blocking = []string{
	"creation", "pull_request", "required_status_checks", "required_signatures", "required_deployments", "merge_queue", "workflows",
	"commit_message_pattern", "commit_author_email_pattern", "committer_email_pattern", "code_scanning", "code_quality",
}

// pushFindings are about the rules for pushes to a repository, and to the ledger there.
func pushFindings(there github.Facts, ledgerRef string) []Finding {
	var out []Finding
	if there.RulesUnread {
		out = append(out, note("", "the rules for pushes cannot be read; one may refuse the ledger's push"))
	}
	for _, set := range there.PushRules {
		what := "cannot be read"
		if len(set.Types) > 0 {
			what = strings.Join(set.Types, ", ")
		}
		out = append(out, note("let it except the ledger's paths (transactions/…/*.json, *.jsonl, *.diff; up to 160 characters), or the app that pushes",
			"the push ruleset %s (%s) holds for every push, that of the ledger too", report.Clean(set.Name), report.Clean(what)))
	}
	if !strings.HasPrefix(ledgerRef, "refs/heads/") {
		return append(out, note("countersign init --ledger-branch", "no ruleset reaches %s: whoever may push can rewrite or delete it, and countersign notices afterwards", ledgerRef))
	}
	if there.RulesUnread {
		return out
	}
	kept := slices.Contains(there.BranchRules, "update") // of the two rules of Harden
	for _, rule := range there.BranchRules {
		if slices.Contains(blocking, rule) && !(kept && rule == "creation") {
			out = append(out, note("the app whose token pushes must be excepted from it", "a rule (%s) restricts pushes to the ledger's branch", report.Clean(rule)))
		}
	}
	for _, rule := range []string{"non_fast_forward", "deletion"} {
		if !slices.Contains(there.BranchRules, rule) {
			out = append(out, note("countersign init --harden", "no rule keeps the ledger's branch from being rewritten or deleted (%s)", rule))
		}
	}
	return append(out, either(kept, ok("only whom a rule excepts adds to the ledger's branch; the app whose token pushes must be among them"),
		note("countersign init --harden --app NUMBER", "no rule keeps the ledger's branch to the app: whoever may push can add to it, and countersign notices what is forged afterwards")))
}

// ReadTree takes over what the files of init say in a commit's tree.
func (f *Facts) ReadTree(tree fs.FS) error {
	files, list := map[string][]byte{}, List
	if f.Gitea != nil {
		var err error
		if f.Folder, err = giteaFolder(tree, isForgejo(f.Gitea.Server)); err != nil {
			return err
		}
		list = giteaFiles(f.Folder)
	}
	for _, file := range list {
		raw, err := fs.ReadFile(tree, file.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading %s: %w", file.Path, err)
		}
		if err == nil {
			files[file.Path] = bytes.Clone(raw)
		}
	}
	if f.Gitea != nil {
		f.readGitea(files)
	} else {
		f.Read(files)
	}
	f.Policy, _, f.PolicyErr = policy.Read(tree)
	return nil
}

// Read takes over what files but the Policy say, by their names; one that is missing is not in the map.
func (f *Facts) Read(files map[string][]byte) {
	f.Files = map[string]string{}
	settle := SettingsOf(files[Caller])
	for _, file := range List {
		have, found := files[file.Path]
		if file.Path == calledWorkflow && settle.Uses != "./" {
			continue // somebody else's, should there be one
		}
		f.Files[file.Path] = file.state(have, found, SettingsOf(have))
		if uses := SettingsOf(have).Uses; uses != "" && file.Path != calledWorkflow && !slices.Contains(f.Uses, uses) {
			f.Uses = append(f.Uses, uses)
		}
	}
	f.Redact = SettingsOf(files[PagesWorkflow]).Redact
	f.Attests = Planned{Want: files[attestWorkflow]}.Rights()
	f.Inline = settle.Uses == "" || settle.inline()
	f.Gated, f.WorkflowRef = settle.Gate, cmp.Or(settle.LedgerRef, gitstore.LedgerRef)
}

// Workflows are the file names of the workflows of init that are there.
func (f Facts) Workflows() []string {
	var out []string
	for _, file := range List[1:] {
		if state := f.Files[file.Path]; state != "" && state != Missing {
			out = append(out, path.Base(file.Path))
		}
	}
	return out
}

// Teams are those that the Policy names.
func (f Facts) Teams() []string {
	var out []string
	for _, rule := range f.Policy.Protected {
		out = append(out, rule.Teams...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// SignEnvironment is the environment that keeps the keys (docs/setup.md).
const SignEnvironment = "countersign"

type document = map[string]any

// Harden are requests to GitHub's REST API, in the order to make them, which protect the ledger where it is on a branch, the
// default branch's check where pull requests are guarded, and the signing key: those of files/harden.jsonl, one a line.
// {owner} and {repo} are filled in by "gh api"; app is 0 where none is named.
//
// The rulesets of the ledger are two, because whom a ruleset excepts is excepted from all of its rules: the app may add to
// the ledger, and may not rewrite it. The environment's secrets are given to workflows of the default branch alone, and to
// those of a merge queue in front of it where pull requests are guarded. Where an app is named, no other's check of that name
// counts (T67).
func Harden(ledgerRef, defaultBranch string, gate bool, app int64) ([]any, error) {
	is := map[string]bool{"branch": strings.HasPrefix(ledgerRef, "refs/heads/"), "app": app != 0, "gate": gate}
	quoted := func(text string) string { // as inside a string of JSON
		raw, err := canon.Marshal(text)
		if err != nil {
			panic("init: " + err.Error()) // the command line is text
		}
		return string(raw[1 : len(raw)-1])
	}
	values := strings.NewReplacer(
		"[[ledger]]", quoted(ledgerRef), "[[default]]", quoted(defaultBranch), "[[number]]", strconv.FormatInt(app, 10), "[[environment]]", SignEnvironment,
	)
	var out []any
	for line := range strings.Lines(fill("harden.jsonl", is, values)) {
		request, err := canon.Parse([]byte(line))
		if err != nil {
			return nil, err
		}
		out = append(out, request)
	}
	return out, nil
}
