package scaffold

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A Setup is one run of init: what its flags say, and what it may ask.
type Setup struct {
	Settings
	Forge              Forge
	Given              func(flag string) bool
	Asked              map[string]bool // the flags that ask for files
	Force, Interactive bool
	LedgerRepository   string // OWNER/NAME that the Policy is to name for the ledger; "" for what it has
	Forgejo            bool   // whether the server may be Forgejo, which has a folder of its own for workflows
	Tags               func(ctx context.Context, repository string) (map[string]string, error)
	Ask                func(question string) (answer string, err error) // nil where there is no terminal
	Say                func(format string, args ...any)
}

// Plan finds out what the files are to say: as the flags and the person have it, else as
// the present ones do.
func (s Setup) Plan(ctx context.Context, tree fs.FS) (files []Planned, _ Settings, err error) {
	if s.Guarded != "" {
		files, err = s.planGitea(tree)
	} else {
		files, err = s.planGitHub(ctx, tree)
	}
	if err == nil && s.Interactive {
		err = s.interview(files[0])
	}
	if err == nil {
		err = s.nameLedger(files)
	}
	if err == nil {
		err = s.refuseAttest(files)
	}
	if err != nil {
		return nil, s.Settings, err
	}
	Replan(files, s.Settings)
	if changed := inStates(files, Differs); changed != "" && !s.Force {
		err = fault.Refuse("nothing was written: these are not as init writes them: "+changed, "countersign init --force")
	}
	return files, s.Settings, err
}

func (s *Setup) planGitHub(ctx context.Context, tree fs.FS) (files []Planned, err error) {
	if s.Uses != "" && !UsesForm().MatchString(s.Uses) {
		if s.Uses, err = s.release(ctx, s.Uses, ""); err != nil {
			return nil, err
		}
	}
	s.Inline = s.Inline || !s.Given("inline") && !s.Forge.calls()
	if files, s.Settings, err = Plan(tree, s.Settings, s.Given, s.Asked); err != nil {
		return nil, err
	}
	info, _ := debug.ReadBuildInfo()
	if repository, tag := ReleaseOf(Published, info); s.Uses == Placeholder && repository != "" {
		if uses, err := s.release(ctx, repository, tag); err == nil {
			s.Uses = uses
		} else {
			s.Say("the commit of %s %s is not known: %s", repository, tag, err)
		}
	}
	return files, nil
}

// nameLedger has the Policy, the first of the files, name the repository that keeps the ledger. A site would publish
// that ledger: it is refused unless it was asked for with --redact or --redact=false.
func (s *Setup) nameLedger(files []Planned) error {
	if s.Answers == nil {
		s.Answers = answersIn(nil)
	}
	if name := s.LedgerRepository; name != "" && name != s.Answers.LedgerRepository {
		if files[0].State == Theirs {
			return fault.Refuse(policy.Path+" is yours: init does not write over it", "put this line into it: ledger: {repository: "+name+"}")
		}
		s.Answers.LedgerRepository = name
	}
	site := slices.ContainsFunc(files, func(f Planned) bool { return f.Path == PagesWorkflow })
	if s.Answers.LedgerRepository != "" && site && s.Redact == "" {
		return fault.Refuse("the ledger is in "+s.Answers.LedgerRepository+", so that not everybody may read it, and pages are for everybody who may see the site", "countersign init --pages --redact")
	}
	return nil
}

// refuseAttest is an error if the workflow that attests is among the files, and could sign nothing or
// would publish a private ledger.
func (s Setup) refuseAttest(files []Planned) error {
	why := ""
	switch {
	case !slices.ContainsFunc(files, func(f Planned) bool { return f.Path == attestWorkflow }):
	case s.Answers.LedgerRepository != "":
		why = "the ledger is in " + s.Answers.LedgerRepository + ", so that not everybody may read it: " + PublicLog
	case !s.Forge.calls():
		why = "the repository is on " + s.Forge.Host + ", and workflows attest on github.com alone: Sigstore's public authority knows no other server"
	}
	if why == "" {
		return nil
	}
	return fault.Refuse(why, "leave out --attest, and delete .github/workflows/countersign-attest.yml if it is there")
}

// release asks the server for the commit of a release, the newest where no tag is given.
func (s Setup) release(ctx context.Context, repository, tag string) (string, error) {
	tags, err := s.Tags(ctx, repository)
	if err != nil {
		return "", err
	}
	pin, err := Released(repository, tag, tags)
	if err != nil {
		return "", fault.Refuse(err.Error(), "--uses OWNER/countersign@COMMIT names the 40 digits of a commit")
	}
	return pin.String(), nil
}

// interview asks what the Policy is to say. What is no answer is asked again.
func (s *Setup) interview(there Planned) error {
	if there.State == Theirs {
		return fault.Refuse(policy.Path+" is yours: init does not write over it", "change it in an editor: init does that for no file of yours")
	}
	if s.Ask == nil {
		return fault.Refuse("--interactive asks questions, and there is no terminal to ask them in", "countersign init")
	}
	for _, q := range Questions(&s.Settings) {
		for taken := false; !taken; {
			typed, err := s.Ask(q.Ask())
			if err != nil {
				return fault.Refuse("not all questions were answered, so nothing was written", "")
			}
			taken = q.Answer(typed)
		}
	}
	return nil
}

// A Place is where the files go. Tree is what is there; Write returns the number of the
// pull request that they are in, 0 for none.
type Place interface {
	Tree(ctx context.Context) (fs.FS, error)
	Write(ctx context.Context, files []Planned, s Settings) (pull int, err error)
}

// A Worktree is that of a clone.
type Worktree struct{ Root *os.Root }

// Tree is the working tree.
func (w Worktree) Tree(context.Context) (fs.FS, error) { return w.Root.FS(), nil }

// Write writes the files.
func (w Worktree) Write(_ context.Context, files []Planned, _ Settings) (int, error) {
	return 0, Write(w.Root, files)
}

// Answers are what a person chose for the Policy that init writes.
type Answers struct {
	Permission  policy.Permission
	Required    int
	AllowAuthor bool
	Pulls       string // what countersign does for a proposal without a pull request: "no", "open" one, or "merge" it too

	LedgerRepository string // that keeps the ledger; "" for the repository itself
}

// answersIn are those that a Policy was written with, as far as it shows, else the defaults.
func answersIn(raw []byte) *Answers {
	p, err := policy.Parse(policy.Path, raw)
	if err != nil {
		p = policy.Default()
	}
	pulls := "no"
	if p.Apply.To == policy.ToPullRequest {
		pulls = "open"
		if p.Apply.Merge == policy.MergeAuto {
			pulls = "merge"
		}
	}
	return &Answers{p.Approvals.Permission, p.Approvals.Required, p.Approvals.AllowAuthor, pulls, p.Ledger.Repository}
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
	apply := map[string]string{"no": "# apply: {to: pull_request}", "open": "apply: {to: pull_request}", "merge": "apply: {to: pull_request, merge: auto}"}
	ledger := ""
	if a.LedgerRepository != "" {
		ledger = "\nledger: {repository: " + a.LedgerRepository + "} # the private repository that keeps the ledger; the secret COUNTERSIGN_LEDGER_TOKEN lets the workflows write there"
	}
	return []string{"[[ledger-repository]]", ledger, "[[apply]]", "\n" + apply[a.Pulls], "[[permission]]", fmt.Sprintf("%-9s", a.Permission), "[[required]]", fmt.Sprintf("%-11d", a.Required), "[[author]]", author}
}

// A Question is one that init --interactive asks. Default is what an empty answer means.
type Question struct {
	Help, Text, Default string
	take                func(answer string) bool
}

// Ask is the question as it is shown.
func (q Question) Ask() string { return q.Help + "\n" + q.Text + " [" + q.Default + "] " }

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
		{
			"A bot may propose where there is no pull request. countersign can open one, which you merge, or merge it once it is approved.",
			"What to do with such a proposal: no, open or merge?", a.Pulls,
			func(answer string) bool {
				known := slices.Contains([]string{"no", "open", "merge"}, answer)
				if known {
					a.Pulls = answer
				}
				return known
			},
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

// Branch is where the files are put for a pull request.
const Branch = "countersign/init"

// A Pull is the branch of a pull request that brings the files. One more commit is added to
// those of init itself alone: nobody else's is put up in the person's name.
type Pull struct {
	Repo   *gitstore.Repo
	Refs   code.Refs // the server's
	Forge  Opener
	Author code.Commit // who makes the commit, and when
	base   string      // the default branch
	parent string      // what the commit is made on
	before string      // where the branch is, "" for nowhere
}

// An Opener is the forge, as far as it takes.
type Opener interface {
	DefaultBranch(ctx context.Context) (forge.Side, error)
	OpenPullRequest(ctx context.Context, n forge.NewPull) (int, error)
}

// Tree fetches both branches, and is that of the pull request where there is one, so that
// it is brought up to date, else the default branch's.
func (p *Pull) Tree(ctx context.Context) (_ fs.FS, err error) {
	side, err := p.Forge.DefaultBranch(ctx)
	if err != nil {
		return nil, err
	}
	p.base = side.Branch
	base, err := p.Refs.Ref(ctx, "refs/heads/"+p.base)
	if err != nil {
		return nil, err
	}
	if p.before, err = p.Refs.Ref(ctx, "refs/heads/"+Branch); err != nil {
		return nil, err
	}
	if p.parent = cmp.Or(p.before, base); p.parent == "" {
		return nil, fault.Refuse("the default branch has no commit", "git push origin HEAD")
	}
	if why, err := p.taken(ctx, base); err != nil {
		return nil, err
	} else if why != "" {
		return nil, fault.Refuse("the branch "+Branch+" "+why, "merge or delete that branch, then run it again")
	}
	return p.Repo.Tree(ctx, p.parent)
}

// taken says why nothing is added to the branch, "" where it is free.
func (p *Pull) taken(ctx context.Context, base string) (string, error) {
	if p.before == "" {
		return "", nil
	}
	for at := p.before; ; {
		merged, err := p.Repo.Descends(ctx, base, at)
		switch {
		case err != nil, merged && at != p.before:
			return "", err
		case merged:
			return "is merged already", nil
		}
		if ours, err := p.wrote(ctx, at); err != nil || !ours {
			return "has a commit that init did not make", err
		}
		if at, err = p.Repo.FirstParent(ctx, at); err != nil {
			return "", err
		}
	}
}

// wrote reports whether a commit changes files of init alone, and has them as some init
// writes them.
func (p *Pull) wrote(ctx context.Context, commit string) (bool, error) {
	parent, err := p.Repo.FirstParent(ctx, commit)
	if err != nil {
		return false, err
	}
	diff, err := p.Repo.Diff(ctx, parent, commit)
	if err != nil {
		return false, nil // links, submodules: not of init
	}
	for _, c := range diff.Changes {
		i := slices.IndexFunc(List, func(f File) bool { return f.Path == c.Path })
		if i < 0 || c.After == nil {
			return false, nil
		}
		if state := List[i].state(c.After.Data, true, Settings{}); state != Old && state != Same {
			return false, nil
		}
	}
	return true, nil
}

// pullTitle is that of the pull request and its commit.
const pullTitle = "Have patches countersigned"

// Write makes one commit of the files, pushes it, and opens the pull request, as far as that
// was not done before. The working tree and the index are left alone.
func (p *Pull) Write(ctx context.Context, files []Planned, s Settings) (int, error) {
	if s.Uses == Placeholder {
		return 0, fault.Refuse("the workflows would name "+Placeholder+", which runs nothing", "countersign init --pr --uses OWNER/countersign")
	}
	made := changes(files)
	if p.before == "" && len(made) == 0 {
		return 0, nil // the default branch has them all
	}
	if len(made) > 0 {
		p.Author.Message = pullTitle + "\n\nWritten by countersign init.\n"
		next, err := p.Refs.BuildCommit(ctx, p.parent, made, p.Author)
		if err != nil {
			return 0, err
		}
		if err := p.Refs.MoveRef(ctx, "refs/heads/"+Branch, p.before, next); err != nil {
			return 0, err
		}
	}
	var b strings.Builder
	b.WriteString("A human approves the exact bytes of what agents and bots propose, before any of it lands. These files have GitHub ask for that:\n\n| file | may do |\n|---|---|\n")
	for _, f := range files {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Path, f.May())
	}
	b.WriteString("\nThey count once they are on the default branch. `countersign doctor` says what the repository's settings still have to allow.\n")
	return p.Forge.OpenPullRequest(ctx, forge.NewPull{Branch: Branch, Base: p.base, Title: pullTitle, Body: b.String()})
}
