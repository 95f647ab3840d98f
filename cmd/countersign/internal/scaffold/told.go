package scaffold

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/view"
)

// granted is a right that a workflow of init gives to one of its jobs.
var granted = canon.Regexp(`(?m)^ +([a-z-]+): (read|write)$`)

// grants are what rights come to, in the order in which they are told. What contents:
// write may do is in two of them: the ledger is written before anything is approved.
var grants = []struct{ right, says string }{
	{"contents: write", "the ledger"}, {"pull-requests: write", "comments"}, {"checks: write", "checks"}, {"actions: write", "workflow runs"},
}

// Rights are what the file lets the repository's workflows do, each once, as in
// "contents: read"; none of what the owner changed, which is not read.
func (f Planned) Rights() []string {
	rights := []string{}
	for _, m := range granted().FindAllSubmatch(f.Want, -1) {
		if right := string(m[1]) + ": " + string(m[2]); f.State != Theirs && !slices.Contains(rights, right) {
			rights = append(rights, right)
		}
	}
	slices.Sort(rights)
	return rights
}

// mays say what a file may do: a known one by its path or source, a workflow by the first of these rights that it has.
// %s is what it writes.
var mays = []struct{ of, says string }{
	{policy.Path, "says who must approve; runs nothing"},
	{ServersFile, "has clients start countersign mcp, which proposes and decides nothing"},
	{AgentsFile, "tells agents to propose; runs nothing"},
	{claudeFile, "denies edits and commits of Claude Code: good manners; the wall is countersign agent -- claude"},
	{codexHooksFile, "denies those of Codex, once you trust these hooks: good manners; the wall is countersign agent -- codex"},
	{codexConfigFile, "has Codex start countersign mcp, once you trust the project"},
	{opencodeFile, "denies those of opencode, and has it start countersign mcp: good manners; the wall is countersign agent -- opencode"},
	{Theirs, "what you wrote into it"},
	{giteaSettle, "has the secret COUNTERSIGN_TOKEN: writes the ledger, comments and statuses; commits what was approved"},
	{giteaEvents, "runs your bot; has no secret"},
	{"permission-actions: write", "starts other repositories' workflows, with a token of an app of yours"},
	{"permission-contents: read", "reads other repositories, with a token of an app of yours"},
	{"attestations: write", "writes beside the ledger; signs what was settled, which a public log names for ever"},
	{"pages: write", "reads the code and the ledger; publishes its pages"},
	{"watch.yml", "reads the code and the ledger; keeps one issue; records what comments there say of exceptions, and what protects the branch"},
	{"issues: write", "reads the code and the ledger; keeps one issue"},
	{"contents: write", "writes %s; commits what was approved"},
	{"pull-requests: write", "writes %s"}, {"checks: write", "writes %s"}, {"actions: write", "writes %s"},
	{"contents: read", "reads the code; nothing else"},
}

// May says what the file may do where it runs.
func (f Planned) May() string {
	rights := f.Rights()
	var writes []string
	for _, g := range grants {
		if slices.Contains(rights, g.right) {
			writes = append(writes, g.says)
		}
	}
	of := append([]string{f.Path, f.source, f.State}, rights...)
	for _, may := range mays {
		if slices.Contains(of, may.of) {
			return strings.Replace(may.says, "%s", view.List(writes), 1)
		}
	}
	return "nothing"
}

// A Way is how files are set up.
type Way int

// Init writes files, shows what it would write, or pushes them to a branch.
const (
	Wrote Way = iota
	WouldWrite
	Pushed
)

// fates say what becomes of a file in a state, in each way.
var fates = map[string][3]string{
	Missing: {"written", "would be written", "pushed"},
	Same:    {"as it was", "stays as it is", "as it was"},
	Old:     {"updated", "would be updated", "updated"},
	Theirs:  {"yours, left alone", "yours, stays as it is", "yours, left alone"},
	Differs: {"written over", "would be written over", "written over"},
	Joined:  {"added to", "would be added to", "added to"},
}

// Fate says what became of the file, or what would.
func (f Planned) Fate(w Way) string {
	words := fates[f.State][w]
	if f.State == Old || f.State == Differs || f.State == Joined {
		removed, added := Changed(f.Have, f.Want)
		words += fmt.Sprintf(" (-%d +%d lines)", removed, added)
	}
	return words
}

// table shows a person what became of each file, and what it may do. On a screen that
// has no room for three columns the third is a line of its own; columns is 0 where
// there is no screen.
func (r Result) table(columns int, s report.Style) string {
	var wide [3]int
	w := r.Way
	for _, f := range r.Files {
		wide = [3]int{max(wide[0], len(f.Path)), max(wide[1], len(f.Fate(w))), max(wide[2], len(f.May()))}
	}
	narrow := columns > 0 && wide[0]+wide[1]+wide[2]+4 > columns
	row := func(path, fate, may string) string {
		line := fmt.Sprintf("%-*s  %-*s", wide[0], path, wide[1], fate)
		if narrow {
			return strings.TrimRight(line, " ") + "\n    " + may
		}
		return line + "  " + may
	}
	var b strings.Builder
	if columns > 0 {
		b.WriteString(s.Bold(row("FILE", "RESULT", "MAY DO")) + "\n")
	}
	for _, f := range r.Files {
		b.WriteString(row(f.Path, f.Fate(w), f.May()) + "\n")
	}
	return b.String()
}

// changes are what writing the files comes to.
func changes(files []Planned) []patch.Change {
	var out []patch.Change
	for _, f := range files {
		if f.State == Same || f.State == Theirs {
			continue
		}
		c := patch.Change{Kind: patch.Add, Path: f.Path, After: &patch.File{Mode: patch.Regular, Data: f.Want}}
		if f.Have != nil {
			c.Kind, c.Before = patch.Update, &patch.File{Mode: patch.Regular, Data: f.Have}
		}
		out = append(out, c)
	}
	return out
}

// A Forge is where a remote has the repository: the server's host, and "owner/name" there.
// All are "" where it is on none.
type Forge struct{ Scheme, Host, Repository string }

// ForgeOf finds it out from an address of the server over https, and the repository's name.
func ForgeOf(server, repository string) Forge {
	host := github.HostOf(server)
	if host == "" || repository == "" {
		return Forge{}
	}
	scheme, _, _ := strings.Cut(server, ":")
	return Forge{scheme, host, repository}
}

// calls reports whether a workflow there can call one of ours, which uses the action of its
// own commit: GitHub Enterprise Server has no "$/" for that. Where nothing is known it can.
func (f Forge) calls() bool { return f.Host == "" || f.Host == "github.com" }

// Say tells a person about it, by the remote's name; found says that there is that remote.
func (f Forge) Say(say func(format string, args ...any), remote string, found bool) {
	switch {
	case f.Host == "" && found:
		say("the remote %s is not on GitHub, where the workflows run", remote)
		say("hint: --remote NAME names another remote, which is on GitHub")
	case f.Host == "":
		say("there is no remote %s: the workflows run on GitHub", remote)
		say("hint: git remote add %s https://github.com/OWNER/REPOSITORY", escape.ShellQuote(remote))
	case f.Host == "github.com":
		say("the repository is %s on %s", f.Repository, f.Host)
	default:
		say("the repository is %s on %s, which is taken for a GitHub Enterprise Server", f.Repository, f.Host)
		say("hint: --forge gitea or --forge forgejo says that it is one of those")
	}
}

// pull is the address of a pull request's page.
func (f Forge) pull(number int) string {
	return fmt.Sprintf("%s://%s/%s/pull/%d", f.Scheme, f.Host, f.Repository, number)
}

// A Result is what init came to. Shown says that the person has seen what changed; Pull is
// the number of the pull request that the files are in, 0 for none; Again makes a command line.
// Own is the repository that publishes this program, "" where it knows of none; Moves says
// that the clone has a ledger on the usual ref, and none on the branch where it is to be.
type Result struct {
	Settings
	MCP          bool // these are the files of init --mcp
	Files        []Planned
	Way          Way
	Forge        Forge
	Pull         int
	Shown, Moves bool
	Own          string
	Again        func(args ...string) string
}

// Diff is what changes in files that are there, as canonical bytes, and, where it is not
// written, also what is new. It is empty where the person has seen it.
func (r Result) Diff() []byte {
	var b bytes.Buffer
	for _, c := range changes(r.Files) {
		if !r.Shown && (c.Before != nil || r.Way == WouldWrite) {
			b.Write(c.Bytes())
		}
	}
	return b.Bytes()
}

// Next are the next steps.
func (r Result) Next() []string {
	const count = " (the files count on the default branch alone)"
	if r.MCP {
		return r.nextMCP()
	}
	if r.Guarded != "" {
		return r.nextGitea()
	}
	steps := []string{
		`git add .github && git commit -m "` + pullTitle + `" && git push` + count + "; the same init with --pr opens a pull request instead",
		r.Again("doctor") + " (says what GitHub still has to allow, and where)",
		"open a pull request with a text file that has no line break at its end: the example bot proposes one, and a comment says how to approve it",
	}
	switch {
	case r.Pull != 0:
		steps[0] = "read and merge " + r.Forge.pull(r.Pull) + ": its workflows run " + report.Clean(r.Uses) + count
	case r.Uses == Placeholder && r.Own != "": // its server did not answer
		steps[0] = r.Again("init", "--uses", r.Own) + ", once its server answers: nothing runs while the workflows name " + Placeholder
	case r.Uses == Placeholder:
		steps[0] = r.Again("init", "--uses", "OWNER/countersign") + ", where OWNER publishes the countersign that you use: nothing runs while the workflows name " + Placeholder
	case len(changes(r.Files)) == 0:
		steps = steps[1:]
	}
	steps = append(steps, "pull requests that are open already start nothing by themselves: push to them, or close and reopen them")
	if r.Moves {
		from, to := gitstore.LedgerRef, escape.ShellQuote(r.LedgerRef)
		steps = append([]string{"git fetch . " + from + ":" + to + " && git push origin " + to + ": the new ledger must begin with the present one, or its denials are forgotten"}, steps...)
	}
	steps = append(steps, r.nextLedger()...)
	steps = append(steps, r.nextPages()...)
	steps = append(steps, r.nextAttest()...)
	if branch, is := strings.CutPrefix(r.LedgerRef, "refs/heads/"); is {
		steps = append(steps, "in every other clone: git config countersign.ledgerRef "+escape.ShellQuote(r.LedgerRef)+"; and protect the branch "+report.Clean(branch)+": "+r.Again("init", "--harden", "--app", "NUMBER"))
	}
	return steps
}

// nextLedger are the steps of who keeps the ledger in another repository.
func (r Result) nextLedger() []string {
	if r.Answers == nil || r.Answers.LedgerRepository == "" {
		return nil
	}
	name := report.Clean(r.Answers.LedgerRepository)
	return []string{"make " + name + " a private repository, and put a token that may write its contents, and nothing else, into this one's secret COUNTERSIGN_LEDGER_TOKEN (docs/ledger.md says how to move a ledger there)"}
}

// nextPages are the steps of who asked for the site: where GitHub is told to take it from a
// workflow, and who will see it.
func (r Result) nextPages() []string {
	if !slices.ContainsFunc(r.Files, func(f Planned) bool { return f.Path == PagesWorkflow && f.State != Same }) {
		return nil
	}
	without := "Where not everybody may read the repository, the pages have no diffs: --redact=false puts them in"
	switch r.Redact {
	case "true":
		without = "The pages have no diffs"
	case "false":
		without = "The pages have every diff; --redact leaves them out"
	}
	return []string{
		"on GitHub, Settings > Pages > Source: GitHub Actions (gh api -X POST repos/{owner}/{repo}/pages -f build_type=workflow); then gh workflow run countersign-pages.yml",
		"GitHub Pages of a private repository are public to everyone, unless an organisation on GitHub Enterprise Cloud publishes them privately. " + without +
			". They always show who proposed and approved what, the names of files and what people wrote",
	}
}

// nextAttest are the steps of who asked for attestations: who will see them, and what verifies them.
func (r Result) nextAttest() []string {
	if !slices.ContainsFunc(r.Files, func(f Planned) bool { return f.Path == attestWorkflow && f.State != Same }) {
		return nil
	}
	return []string{
		"from then on " + PublicLog + ". Where not everybody may read the repository, countersign-attest.yml signs nothing and fails",
		"gh workflow run countersign-attest.yml attests what is settled; docs/attestations.md, By itself, says how others verify it",
	}
}

// PublicLog says what attestations without a key tell everybody.
const PublicLog = "each attestation names the repository, its workflow and the branch in Sigstore's public log, for ever; what it says, who approved what, is public at GitHub"

// Text tells a person all of it, in so many columns, 0 where there is no screen; brief
// leaves out the next steps.
func (r Result) Text(columns int, brief bool, s report.Style) string {
	text := r.table(columns, s)
	if diff := report.Diff(r.Diff(), s); diff != "" {
		text = diff + "\n" + text
	}
	if brief || r.Way == WouldWrite {
		return text
	}
	steps := "\nNext:\n"
	for i, step := range r.Next() {
		steps += fmt.Sprintf("  %d. %s\n", i+1, step)
	}
	if columns > 0 {
		steps = report.Fold(steps, columns)
	}
	return text + steps
}

// Document is all of it as data. Diff is what is shown of one.
func (r Result) Document(diff string) any {
	list := make([]any, len(r.Files))
	doc := document{"files": list, "dry_run": r.Way == WouldWrite, "diff": diff, "next": r.Next()}
	for i, f := range r.Files {
		one := document{"path": f.Path, "state": f.State}
		if list[i] = one; !r.MCP {
			one["rights"] = f.Rights()
		}
	}
	if !r.MCP {
		doc["uses"], doc["gate"], doc["host"], doc["repository"], doc["pull_request"] = r.Uses, r.Gate, r.Forge.Host, r.Forge.Repository, r.Pull
	}
	return doc
}
