package scaffold

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/report"
)

// granted is a right that a workflow of init gives to one of its jobs.
var granted = lazyregexp.New(`(?m)^ +([a-z-]+): (read|write)$`)

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

// May says what the file may do where it runs.
func (f Planned) May() string {
	rights := f.Rights()
	var writes []string
	for _, g := range grants {
		if slices.Contains(rights, g.right) {
			writes = append(writes, g.says)
		}
	}
	switch {
	case f.Path == policy.Path:
		return "says who must approve; runs nothing"
	case f.State == Theirs, f.State == Kept:
		return "what you wrote into it"
	case slices.Contains(rights, "permission-actions: write"):
		return "starts other repositories' workflows, with a token of an app of yours"
	case slices.Contains(rights, "contents: write"):
		return "writes " + listing(writes) + "; commits what was approved"
	case len(writes) > 0:
		return "writes " + listing(writes)
	case slices.Contains(rights, "contents: read"):
		return "reads the code; nothing else"
	}
	return "nothing"
}

// listing is "a", "a and b" or "a, b and c".
func listing(items []string) string {
	if n := len(items); n > 1 {
		return strings.Join(items[:n-1], ", ") + " and " + items[n-1]
	}
	return strings.Join(items, "")
}

// fates say what was done with a file in a state, and what would be.
var fates = map[string][2]string{
	Missing: {"written", "would be written"},
	Same:    {"as it was", "stays as it is"},
	Old:     {"updated", "would be updated"},
	Theirs:  {"yours, left alone", "yours, stays as it is"},
	Differs: {"written over", "would be written over"},
	Former:  {"of an earlier init, removed", "of an earlier init, would be removed"},
	Kept:    {"of an earlier init, left alone", "of an earlier init, stays"},
}

// Fate says what became of the file, or what would.
func (f Planned) Fate(dryRun bool) string {
	words := fates[f.State][0]
	if dryRun {
		words = fates[f.State][1]
	}
	if f.State == Old || f.State == Differs {
		removed, added := Changed(f.Have, f.Want)
		words += fmt.Sprintf(" (-%d +%d lines)", removed, added)
	}
	return words
}

// Table shows a person what became of each file, and what it may do. On a screen that
// has no room for three columns the third is a line of its own; columns is 0 where
// there is no screen.
func Table(files []Planned, dryRun bool, columns int, s report.Style) string {
	var wide [3]int
	for _, f := range files {
		wide = [3]int{max(wide[0], len(f.Path)), max(wide[1], len(f.Fate(dryRun))), max(wide[2], len(f.May()))}
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
	for _, f := range files {
		b.WriteString(row(f.Path, f.Fate(dryRun), f.May()) + "\n")
	}
	return b.String()
}

// Diff is what writing the files changes of those that are there, as canonical bytes;
// with all, also of those that are not.
func Diff(files []Planned, all bool) []byte {
	var b bytes.Buffer
	for _, c := range Changes(files) {
		if c.Before != nil || all {
			b.Write(c.Bytes())
		}
	}
	return b.Bytes()
}

// Changes are what writing the files comes to.
func Changes(files []Planned) []patch.Change {
	var out []patch.Change
	for _, f := range files {
		if f.State == Same || f.State == Theirs || f.State == Kept {
			continue
		}
		c := patch.Change{Kind: patch.Add, Path: f.Path, After: &patch.File{Mode: patch.Regular, Data: f.Want}}
		if f.Have != nil {
			c.Kind, c.Before = patch.Update, &patch.File{Mode: patch.Regular, Data: f.Have}
		}
		if f.State == Former {
			c.Kind, c.After = patch.Delete, nil
		}
		out = append(out, c)
	}
	return out
}

// Overwritten names the files of init that somebody changed, with how much would go.
func Overwritten(files []Planned) (names []string) {
	for _, f := range files {
		if f.State == Differs {
			removed, added := Changed(f.Have, f.Want)
			names = append(names, fmt.Sprintf("%s (%d lines would go, %d come)", f.Path, removed, added))
		}
	}
	return names
}

// A Forge is where a remote has the repository: the server's host, and "owner/name" there.
// Both are "" where it is on none.
type Forge struct{ Host, Repository string }

// ForgeOf finds it out from an address of the server over https, and the repository's name.
func ForgeOf(server, repository string) Forge {
	host := github.HostOf(server)
	if host == "" || repository == "" {
		return Forge{}
	}
	return Forge{host, repository}
}

// Calls reports whether a workflow there can call one of ours, which uses the action of its
// own commit: GitHub Enterprise Server has no "$/" for that. Where nothing is known it can.
func (f Forge) Calls() bool { return f.Host == "" || f.Host == "github.com" }

// Say tells a person about it, by the remote's name.
func (f Forge) Say(remote string) string {
	switch f.Host {
	case "":
		return "hint: the remote " + remote + " is not on GitHub, where the workflows run: git remote add " + report.ShellQuote(remote) + " https://github.com/OWNER/REPOSITORY"
	case "github.com":
		return "the repository is " + f.Repository + " on github.com"
	}
	return "the repository is " + f.Repository + " on " + f.Host + ", which is taken for a GitHub Enterprise Server"
}

// Next are the next steps after init; again makes a command line.
func Next(s Settings, files []Planned, again func(args ...string) string) []string {
	steps := []string{
		`git add .github && git commit -m "Have patches countersigned" && git push (the files count on the default branch alone)`,
		again("doctor") + " (says what GitHub still has to allow, and where)",
		"open a pull request with a text file that has no line break at its end: the example bot proposes one, and a comment says how to approve it",
	}
	if s.FormerBot {
		steps[2] = "move your bot from countersign-propose.yml into countersign-events.yml, as the job propose, when you like: both are listened to"
	}
	if s.Uses == Placeholder {
		steps[0] = again("init", "--uses", "OWNER/countersign") + ", where OWNER publishes the countersign that you use: nothing runs while the workflows name " + Placeholder
	} else if len(Changes(files)) == 0 {
		steps = steps[1:]
	}
	return steps
}

// Steps shows the next steps to a person.
func Steps(next []string, columns int) string {
	var b strings.Builder
	b.WriteString("\nNext:\n")
	for i, step := range next {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, step)
	}
	if columns > 0 {
		return report.Fold(b.String(), columns)
	}
	return b.String()
}

// Document is all of it as data. Diff is what is shown of one.
func Document(s Settings, files []Planned, forge Forge, next []string, diff string, dryRun bool) map[string]any {
	list := make([]any, len(files))
	for i, f := range files {
		list[i] = document{"path": f.Path, "state": f.State, "rights": f.Rights()}
	}
	return document{
		"files": list, "uses": s.Uses, "gate": s.Gate, "dry_run": dryRun, "diff": diff, "next": next,
		"host": forge.Host, "repository": forge.Repository,
	}
}

// Answers are what a person chose for the Policy that init writes.
type Answers struct {
	Permission  policy.Permission
	Required    int
	AllowAuthor bool
}

// answersIn are those that a Policy was written with, as far as it shows, else the defaults.
func answersIn(raw []byte) *Answers {
	p, err := policy.Parse(policy.Path, raw)
	if err != nil {
		p = policy.Default()
	}
	return &Answers{p.Approvals.Permission, p.Approvals.Required, p.Approvals.AllowAuthor}
}

// values are what the Policy's template leaves open, each behind its name there.
func (a *Answers) values() []string {
	if a == nil {
		a = answersIn(nil)
	}
	author := "# allow_author: true"
	if a.AllowAuthor {
		author = "allow_author: true"
	}
	return []string{"[[permission]]", fmt.Sprintf("%-9s", a.Permission), "[[required]]", fmt.Sprintf("%-11d", a.Required), "[[author]]", author}
}

// A Question is one that init --interactive asks. Default is what an empty answer means.
type Question struct {
	Help, Text, Default string
	take                func(answer string) bool
}

// Ask is the question as it is shown.
func (q Question) Ask(s report.Style) string {
	return q.Help + "\n" + s.Bold(q.Text) + " [" + q.Default + "] "
}

// Answer takes what was typed, and reports whether it is an answer.
func (q Question) Answer(typed string) bool {
	typed = strings.ToLower(strings.TrimSpace(typed))
	if typed == "" {
		typed = q.Default
	}
	return q.take(typed)
}

// Questions are those of init --interactive; the answers go into s, whose present values
// are the defaults.
func Questions(s *Settings) []Question {
	if s.Answers == nil {
		s.Answers = answersIn(nil)
	}
	a := s.Answers
	return []Question{
		{
			"Whoever approves must have at least this permission on the repository.",
			"Who may approve: read, triage, write, maintain or admin?", string(a.Permission),
			func(answer string) bool {
				known := slices.Contains([]string{"read", "triage", "write", "maintain", "admin"}, answer)
				if known {
					a.Permission = policy.Permission(answer)
				}
				return known
			},
		},
		{
			"So many people must approve the same bytes before they are applied.",
			"How many must approve, 1 to 100?", strconv.Itoa(a.Required),
			func(answer string) bool {
				n, err := strconv.Atoi(answer)
				if err != nil || n < 1 || n > 100 {
					return false
				}
				a.Required = n
				return true
			},
		},
		{
			"If you maintain this alone, nobody else can approve what you propose. A secret always takes somebody else.",
			"May people approve what they proposed themselves, yes or no?", yesOrNo(a.AllowAuthor), takeBool(&a.AllowAuthor),
		},
		{
			"Then the check \"countersign\" passes only once a pull request's own diff is approved. Otherwise only what bots propose is.",
			"Guard pull requests themselves too, yes or no?", yesOrNo(s.Gate), takeBool(&s.Gate),
		},
	}
}

func yesOrNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func takeBool(to *bool) func(string) bool {
	return func(answer string) bool {
		switch answer {
		case "y", "yes":
			*to = true
		case "n", "no":
			*to = false
		default:
			return false
		}
		return true
	}
}
