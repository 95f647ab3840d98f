package scaffold

import (
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/report"
)

// The Policy that init writes is valid, and demands what the defaults do.
func TestInitPolicy(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse(policy.Path, List[0].Render(Settings{}))
	check(t, err)
	if p.Sum() != policy.Default().Sum() {
		t.Errorf("it demands %s", p.JSON())
	}
}

func TestInitState(t *testing.T) {
	t.Parallel()
	caller, events := List[1], List[2]
	now := Settings{Uses: "acme/countersign@" + strings.Repeat("a", 40), Gate: true}
	for _, c := range []struct {
		name string
		file File
		have []byte
		want string
	}{
		{"none", caller, nil, Missing},
		{"the same", caller, caller.Render(now), Same},
		{"other commit", caller, caller.Render(Settings{Uses: "acme/countersign@" + strings.Repeat("b", 40), Gate: true}), Old},
		{"other flag", caller, caller.Render(Settings{Uses: now.Uses}), Old},
		{"the jobs in it", caller, caller.Render(Settings{Uses: now.Uses, Gate: true, Inline: true}), Old},
		{"other ledger", caller, caller.Render(Settings{Uses: now.Uses, Gate: true, LedgerRef: "refs/heads/ledger"}), Old},
		{"placeholder", events, events.Render(Settings{Uses: Placeholder, Gate: true}), Old},
		{"changed", caller, append(caller.Render(now), "# mine\n"...), Differs},
		{"changed, and theirs", events, append(events.Render(now), "# mine\n"...), Theirs},
		{"empty", caller, []byte{}, Differs},
	} {
		if got := c.file.state(c.have, c.have != nil, now); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for _, uses := range []string{"acme/countersign@v1", "acme/countersign@" + strings.Repeat("a", 39), "acme@" + strings.Repeat("a", 40), "../x", "./a b", "acme/x@" + strings.Repeat("a", 40) + "\n"} {
		if UsesForm().MatchString(uses) {
			t.Errorf("%q is taken for an action", uses)
		}
	}
}

// TestInitSettings: every file shows the settings that it was written with, as far
// as it depends on them.
func TestInitSettings(t *testing.T) {
	t.Parallel()
	pinned, commit := "acme/countersign", "@"+strings.Repeat("a", 40)
	for _, s := range []Settings{
		{Uses: Placeholder}, {Uses: "./"}, {Uses: pinned + commit}, {Uses: pinned + commit, Gate: true, LedgerRef: "refs/heads/l"},
		{Uses: pinned + commit, Inline: true}, {Uses: "./tools/cs"}, {Uses: "acme/mono/tools/cs" + commit, Gate: true},
		{Uses: pinned + commit, Redact: "true"}, {Uses: "./", Redact: "false", LedgerRef: "refs/heads/l"},
		{Uses: pinned + commit, Since: strings.Repeat("b", 40)},
	} {
		for _, file := range List[1:8] {
			was := file.Render(s)
			got := SettingsOf(was)
			if got.Uses != s.Uses && file.source != "events.yml" || string(file.Render(got)) != string(was) {
				t.Errorf("%s: %+v shows as %+v", file.Path, s, got)
			}
		}
		want := s
		want.Inline, want.Redact, want.Since = s.inline(), "", "" // which the workflows of the pages and of the watch show
		if got := SettingsOf(List[1].Render(s)); got != want {
			t.Errorf("the caller shows %+v, want %+v", got, want)
		}
		server := s
		server.Guarded = "main"
		for i, file := range []File{List[1], giteaFiles(".github/workflows")[1], giteaFiles(".gitea/workflows")[1], giteaFiles(".forgejo/workflows")[1]} {
			tree := fstest.MapFS{file.Path: {Data: file.Render(server)}}
			if gates, err := explain.GatesPullRequests(tree); err != nil || gates != (s.Gate || i > 0) {
				t.Errorf("%s of %+v gates: %t, %v", file.Path, s, gates, err)
			}
		}
	}
}

// TestPlanLinks: nothing is written through a link. The called workflow is looked at only where it is init's.
func TestPlanLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	check(t, err)
	defer root.Close()
	check(t, root.MkdirAll(".github/workflows", 0o777))
	if err := root.Symlink("../../mine", calledWorkflow); err != nil {
		t.Skip(err)
	}
	given := func(string) bool { return false }
	if _, _, err := Plan(root.FS(), Settings{Uses: "acme/countersign@" + strings.Repeat("a", 40)}, given, nil); err != nil {
		t.Error(err)
	}
	if _, _, err := Plan(root.FS(), Settings{Uses: "./"}, given, nil); err == nil || !strings.Contains(err.Error(), calledWorkflow+": it is not a regular file") {
		t.Error(err)
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	if removed, added := Changed([]byte("a\nb\nb\nc\n"), []byte("b\nd\nc\ne\n")); removed != 2 || added != 2 {
		t.Errorf("changed = %d, %d", removed, added)
	}
}

// works are facts under which nothing fails.
func works() Facts {
	f := Facts{
		Asked: true, Branch: "main", LedgerRef: "refs/heads/ledger", WorkflowRef: "refs/heads/ledger", Gated: true, Policy: policy.Default(), Files: map[string]string{},
		Uses: []string{"acme/countersign@" + strings.Repeat("a", 40)},
		GitHub: github.Facts{
			DefaultBranch: "main", Account: ledger.Actor{Kind: "bot", Login: "acme-app"}, Rights: map[string]bool{},
			Teams: map[string]bool{"acme/security": true}, BranchRules: []string{"update", "non_fast_forward", "deletion"},
			Checks: []string{"countersign"}, Pages: &github.Pages{BuildType: "workflow", Public: true},
		},
	}
	for _, file := range List {
		f.Files[file.Path] = Same
	}
	for _, right := range github.Rights {
		f.GitHub.Rights[right] = true
	}
	return f
}

func TestInitFindings(t *testing.T) {
	t.Parallel()
	without, unasked := works(), works()
	without.Files[PagesWorkflow], unasked.Files[PagesWorkflow] = Missing, Missing
	unasked.GitHub.Pages = nil
	if with, got := len(works().Findings()), len(without.Findings()); got >= with || len(unasked.Findings()) != got {
		t.Errorf("%d findings with the pages, %d without", with, got)
	}
	for _, one := range works().Findings() {
		if one.Level != LevelOK {
			t.Errorf("%s %s", one.Level, one.Text)
		}
	}
	denied := func(v online.Verdict) func(f *Facts) {
		return func(f *Facts) {
			f.Here = &Here{Denied: []online.Finding{{TransactionID: "tx_1", About: "pull request 7", Recorded: "denied by a\x1bda", Now: "merged at abc", Verdict: v, Reason: "so"}}}
		}
	}
	remote := func(v online.Verdict) func(f *Facts) {
		return func(f *Facts) { f.Here = &Here{Ledger: "abc", Remote: &online.Finding{Verdict: v, Reason: "so"}} }
	}
	for _, c := range []struct {
		level, text string
		change      func(f *Facts)
	}{
		{LevelFails, "pull request 7, denied by ada in tx_1, is merged at abc: so", denied(online.Changed)},
		{LevelFails, "pull request 7, denied by ada in tx_1, is merged at abc: so", denied(online.Gone)},
		{LevelNote, "whether pull request 7, denied by ada in tx_1, was merged is not known: so", denied(online.Unknown)},
		{LevelOK, "what was denied was not merged: 1 pull request", denied(online.Same)},
		{LevelNote, "whether 3 pull requests more", func(f *Facts) { f.Here = &Here{MoreDenied: 3} }},
		{LevelOK, "the remote's ledger is the same", remote(online.Same)},
		{LevelNote, "so", remote(online.Note)},
		{LevelNote, "the remote's ledger cannot be compared: so", remote(online.Unknown)},
		{LevelFails, "so", remote(online.Changed)},
		{LevelFails, "so", remote(online.Gone)},
		{LevelNote, "cannot be read: so", func(f *Facts) { f.Here = &Here{DeniedErr: errors.New("so")} }},
		{LevelFails, "GitHub was not asked", func(f *Facts) { f.Asked = false }},
		{LevelFails, "countersign.yml is missing on main", func(f *Facts) { f.Files[Caller] = Missing }},
		{LevelFails, "countersign-events.yml is missing", func(f *Facts) { f.Files[Workflows+"events.yml"] = Missing }},
		{LevelNote, "countersign.yml is not as init writes it", func(f *Facts) { f.Files[Caller] = Differs }},
		{LevelFails, "the workflows still name", func(f *Facts) { f.Uses = []string{Placeholder} }},
		{LevelNote, "a tag or branch can be moved", func(f *Facts) { f.Uses = []string{"acme/countersign@v1"} }},
		{LevelFails, "the Policy on main is not valid: two; lines", func(f *Facts) { f.PolicyErr = errors.New("two\nlines") }},
		{LevelNote, "the defaults hold", func(f *Facts) { f.Files[policy.Path] = Missing }},
		{LevelNote, "starts no workflows", func(f *Facts) { f.GitHub.Account.Login = "github-actions" }},
		{LevelNote, "does not say whose", func(f *Facts) { f.GitHub.Account = ledger.Actor{} }},
		{LevelFails, "no contents: write", func(f *Facts) { f.GitHub.Rights["contents: write"] = false }},
		{LevelFails, "no pull-requests: write", func(f *Facts) { f.GitHub.Rights["pull-requests: write"] = false }},
		{LevelFails, "no checks: write", func(f *Facts) { f.GitHub.Rights["checks: write"] = false }},
		{LevelFails, "no actions: read", func(f *Facts) { f.GitHub.Rights["actions: read"] = false }},
		{LevelNote, "could not be found out", func(f *Facts) { delete(f.GitHub.Rights, "checks: write") }},
		{LevelFails, "members of acme/security", func(f *Facts) { f.GitHub.Teams["acme/security"] = false }},
		{LevelFails, "cannot run the workflow that countersign.yml calls", func(f *Facts) { f.GitHub.Version = "4.0.0" }},
		{LevelFails, "Server 3.19.4 takes", func(f *Facts) { f.GitHub.Version = "3.19.4" }},
		{LevelFails, "Server 3 takes", func(f *Facts) { f.GitHub.Version = "3" }},
		{LevelNote, "push ruleset no json (file_path_restriction)", func(f *Facts) {
			f.GitHub.PushRules = []github.Rules{{Name: "no\x1b json", Types: []string{"file_path_restriction"}}}
		}},
		{LevelNote, "keep it on refs/heads/other", func(f *Facts) { f.WorkflowRef = "refs/heads/other" }},
		{LevelNote, "the rules for pushes cannot be read", func(f *Facts) { f.GitHub.RulesUnread = true }},
		{LevelNote, "no ruleset reaches refs/agent/ledger", func(f *Facts) { f.LedgerRef = "refs/agent/ledger" }},
		{LevelNote, "(pull_request) restricts pushes", func(f *Facts) { f.GitHub.BranchRules = append(f.GitHub.BranchRules, "pull_request") }},
		{LevelFails, "disabled the workflow countersign-settle.yml", func(f *Facts) { f.GitHub.Disabled = map[string]bool{"countersign-settle.yml": true} }},
		{LevelNote, "main does not require the check countersign", func(f *Facts) { f.GitHub.Checks = nil }},
		{LevelNote, "cannot all be read", func(f *Facts) { f.GitHub.Checks, f.GitHub.ChecksUnread = nil, true }},
		{LevelFails, "main does not require the check countersign", func(f *Facts) { f.GitHub.Checks, f.Gated, f.Policy.Apply.To = nil, false, policy.ToPullRequest }},
		{LevelNote, "main does not require the check countersign", func(f *Facts) {
			f.GitHub.Checks, f.Policy.Apply.To, f.Policy.Apply.Merge = nil, policy.ToPullRequest, policy.MergeAuto
		}},
		{LevelFails, "does not let workflows open pull requests", func(f *Facts) {
			f.GitHub.Account.Login, f.GitHub.OpensPulls, f.Policy.Apply.To = "github-actions", new(bool), policy.ToPullRequest
		}},
		{LevelNote, "does not tell this token whether workflows may open", func(f *Facts) {
			f.GitHub.Account, f.Policy.Apply.To = ledger.Actor{Kind: "user", Login: "ada"}, policy.ToPullRequest
		}},
		{LevelNote, "no rule keeps the ledger's branch to the app", func(f *Facts) { f.GitHub.BranchRules = []string{"non_fast_forward", "deletion"} }},
		{LevelFails, "the ledger's branch is checked out", func(f *Facts) { f.Here = &Here{Name: "ada", Email: "a@b", Ledger: "0", CheckedOut: true} }},
		{LevelNote, "does not tell this token how Pages are published", func(f *Facts) { f.GitHub.Pages = nil }},
		{LevelFails, "publishes no Pages", func(f *Facts) { f.GitHub.Pages = new(github.Pages) }},
		{LevelFails, "takes Pages from a branch", func(f *Facts) { f.GitHub.Pages = &github.Pages{BuildType: "legacy"} }},
		{LevelNote, "everybody can see the pages of this private repository", func(f *Facts) { f.GitHub.Private = true }},
		{LevelNote, "everybody can see every diff of this private repository", func(f *Facts) { f.GitHub.Private, f.Redact = true, "false" }},
		{LevelNote, "everybody can see the pages of this private repository", func(f *Facts) { f.GitHub.Private, f.Redact = true, "true" }},
		{LevelNote, "rewritten or deleted (deletion)", func(f *Facts) { f.GitHub.BranchRules = []string{"non_fast_forward"} }},
	} {
		f := works()
		c.change(&f)
		found := f.Findings()
		i := slices.IndexFunc(found, func(one Finding) bool {
			return one.Level == c.level && strings.Contains(strings.ReplaceAll(one.Text, "\\x1b", ""), c.text)
		})
		if i < 0 {
			t.Errorf("%s %q is not among %v", c.level, c.text, found)
		} else if found[i].Level == LevelFails && found[i].Hint == "" {
			t.Errorf("nothing mends %s", found[i].Text)
		}
	}
	onServer := func() Facts {
		f := works()
		f.Files[attestWorkflow] = Missing // which attests nothing there
		return f
	}
	for version, gated := range map[string]bool{"3.20.0": true, "3.21.1": true, "4.0.0": true, "3.19.99": false, "2.99.0": false, "x.y": false} {
		f := onServer()
		f.GitHub.Version, f.Inline = version, true
		if failed := slices.ContainsFunc(f.Findings(), func(one Finding) bool { return one.Level == LevelFails }); failed == gated {
			t.Errorf("version %s fails: %v", version, failed)
		}
	}
	f := onServer()
	f.GitHub.Version, f.Gated, f.Inline = "3.1.0", false, true
	if f.Findings()[0].Level == LevelFails {
		t.Errorf("fails without gate-only: %v", f.Findings())
	}
}

// TestInitReads: what --check takes from the files of the default branch.
func TestInitReads(t *testing.T) {
	t.Parallel()
	s := Settings{Uses: "acme/countersign@" + strings.Repeat("a", 40), Redact: "false"}
	tree := fstest.MapFS{policy.Path: {Data: []byte("version: 1\nprotected: [{paths: [a], teams: [acme/b, acme/a]}, {paths: [b], teams: [acme/a]}]\n")}}
	for _, file := range List[1:] {
		if !file.theirs {
			tree[file.Path] = &fstest.MapFile{Data: file.Render(s)}
		}
	}
	var f Facts
	check(t, f.ReadTree(tree))
	if f.Gated || f.Redact != "false" || f.WorkflowRef != "refs/agent/ledger" || f.PolicyErr != nil || !slices.Equal(f.Uses, []string{s.Uses}) || !slices.Equal(f.Teams(), []string{"acme/a", "acme/b"}) {
		t.Errorf("facts: %+v", f)
	}
	for path, want := range map[string]string{policy.Path: Theirs, Workflows + "events.yml": Missing, Caller: Same} {
		if f.Files[path] != want {
			t.Errorf("%s is %s", path, f.Files[path])
		}
	}
	for name, text := range map[string]string{policy.Path: "nonsense: 1\n", ".github/Countersign.yaml": ""} {
		var f Facts
		if check(t, f.ReadTree(fstest.MapFS{name: {Data: []byte(text)}})); f.PolicyErr == nil {
			t.Errorf("%s: a wrong Policy is taken", name)
		}
	}
}

// What the files may do is told of what is written, and nothing of what the owner changed.
func TestMay(t *testing.T) {
	t.Parallel()
	s := Settings{Uses: "acme/countersign@" + strings.Repeat("a", 40)}
	told := map[string]bool{}
	for _, file := range List {
		planned := Planned{File: file, State: Missing, Want: file.Render(s)}
		told[planned.May()] = true
		planned.State = Theirs
		if rights := planned.Rights(); len(rights) > 0 {
			t.Errorf("%s, changed by its owner, has %v", file.Path, rights)
		}
	}
	for _, want := range []string{"says who must approve; runs nothing", "reads the code; nothing else", "writes the ledger, comments and checks; commits what was approved"} {
		if !told[want] {
			t.Errorf("no file %s: %v", want, told)
		}
	}
	for want, text := range map[string]string{
		"nothing": "permissions: {}\n", "writes checks": "    permissions:\n      checks: write\n", "reads the code; nothing else": "permissions:\n  contents: read\n",
	} {
		if may := (Planned{Want: []byte(text)}).May(); may != want {
			t.Errorf("%q: %s, want %s", text, may, want)
		}
	}
}

// The table has three columns where there is room, and nothing of it is cut off.
func TestTable(t *testing.T) {
	t.Parallel()
	files := []Planned{{File: List[0], State: Missing}, {File: List[2], State: Old, Have: []byte("a\n"), Want: []byte("b\n")}}
	for columns, lines := range map[int]int{0: 2, 200: 3, 80: 6} {
		table := Result{Files: files}.table(columns, report.Style{})
		if strings.Count(table, "\n") != lines || !strings.Contains(table, "runs nothing\n") || !strings.Contains(table, "updated (-1 +1 lines)") {
			t.Errorf("%d columns:\n%s", columns, table)
		}
		for line := range strings.Lines(table) {
			if columns > 0 && len(line) > columns+1 || strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
				t.Errorf("%d columns: %q", columns, line)
			}
		}
	}
}

// The program names no repository that it was not got from.
// A release whose server does not answer still knows who publishes it.
func TestNextNamesOwner(t *testing.T) {
	t.Parallel()
	again := func(args ...string) string { return strings.Join(args, " ") }
	for own, want := range map[string]string{"acme/countersign": "init --uses acme/countersign, once its server answers", "": "init --uses OWNER/countersign, where OWNER"} {
		r := Result{Settings: Settings{Uses: Placeholder}, Own: own, Again: again}
		if steps := r.Next(); !strings.HasPrefix(steps[0], want) {
			t.Errorf("%q: %q", own, steps[0])
		}
	}
	for start, r := range map[string]Result{"push to them, or close and reopen them": {}, "a comment that begins with /": {Settings: Settings{Guarded: "main"}, Files: make([]Planned, 2)}} {
		r.Again = again
		if steps := strings.Join(r.Next(), "\n"); !strings.Contains(steps, "pull requests that are open already") || !strings.Contains(steps, start) {
			t.Errorf("nothing says what starts a run of those that are open already:\n%s", steps)
		}
	}
}

func TestReleaseOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ published, path, version, sum, want string }{
		{"", "github.com/acme/countersign", "v1.2.3", "h1:x", "acme/countersign v1.2.3"},
		{"", "github.com/acme/countersign", "v1.2.3", "", " "},         // built in a clone
		{"", "github.com/acme/countersign", "(devel)", "h1:x", " "},    // likewise
		{"", "github.com/acme/countersign", "v1.2.3-rc1", "h1:x", " "}, // no release
		{"", "example.org/acme/countersign", "v1.2.3", "h1:x", " "},
		{"", "github.com/acme/countersign/v2", "v2.0.0", "h1:x", " "},
		{"emca/countersign@v2.0.0", "github.com/acme/countersign", "(devel)", "", "emca/countersign v2.0.0"},
		{"emca/countersign@v2.0.0", "github.com/acme/countersign", "v1.2.3", "h1:x", "emca/countersign v2.0.0"},
		{"emca/countersign", "github.com/acme/countersign", "v1.2.3", "h1:x", " "}, // says half
		{"emca/countersign@main", "", "", "", " "},
		{"../countersign@v2.0.0", "", "", "", " "},
	} {
		repository, tag := ReleaseOf(c.published, &debug.BuildInfo{Main: debug.Module{Path: c.path, Version: c.version, Sum: c.sum}})
		if got := repository + " " + tag; got != c.want {
			t.Errorf("%v: %q", c, got)
		}
	}
	if repository, tag := ReleaseOf("", nil); repository+tag != "" || Published != "" {
		t.Errorf("%s %s, and of this test: %q", repository, tag, Published)
	}
	tags := map[string]string{"v1.2.3": "one", "v1.10.0": "two", "v2.0.0-rc1": "three"}
	for tag, want := range map[string]string{"": "acme/countersign@two", "v1.2.3": "acme/countersign@one", "v3.0.0": "@"} {
		if pin, err := Released("acme/countersign", tag, tags); pin.String() != want || (err != nil) != (want == "@") {
			t.Errorf("%q: %s, %v", tag, pin, err)
		}
	}
}

// What was answered is in the Policy, which is valid, and is read from it again.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var s Settings
	for i, q := range Questions(&s) {
		for _, wrong := range []string{"maybe", "0", "101", "\x1b"} {
			if q.Answer(wrong) {
				t.Errorf("%q answers %s", wrong, q.Text)
			}
		}
		if !q.Answer([]string{" Admin\n", "100", "yes", "y", "Merge"}[i]) {
			t.Errorf("no answer to %s", q.Text)
		}
	}
	raw := List[0].Render(s)
	p, err := policy.Parse(policy.Path, raw)
	check(t, err)
	if p.Approvals.Permission != "admin" || p.Approvals.Required != 100 || !p.Approvals.AllowAuthor || !s.Gate || !risk.Merges(p) {
		t.Errorf("%+v %+v", p.Approvals, p.Apply)
	}
	if again := answersIn(raw); *again != *s.Answers || List[0].state(raw, true, Settings{}) != Old {
		t.Errorf("%+v, want %+v", again, s.Answers)
	}
}

var check = teststand.Fatal

// TestWatch: the workflow has least rights, runs for the default branch alone, one at a time,
// and keeps the line "since" that its owner wrote into it. doctor says if it is not there.
func TestWatch(t *testing.T) {
	t.Parallel()
	file := List[slices.IndexFunc(List, func(f File) bool { return f.Asked == AskWatch })]
	s := Settings{Uses: "acme/countersign@" + strings.Repeat("a", 40), LedgerRef: "refs/heads/l"}
	plain := string(file.Render(s))
	for _, line := range []string{
		"\npermissions: {}\n", "\n    permissions:\n      contents: read\n      issues: write\n    steps:\n", "\n          stage: watch\n          ledger-ref: refs/heads/l\n",
		"\n    if: github.event_name != 'issue_comment' && (github.event_name != 'push' || github.ref_name == github.event.repository.default_branch)\n",
		"\n    permissions:\n      contents: write\n      issues: write\n    steps:\n", "\n          stage: dispose\n          ledger-ref: refs/heads/l\n",
		"!github.event.issue.pull_request && github.event.issue.user.type == 'Bot'\n", "\n      group: countersign-watch\n      cancel-in-progress: false\n", "persist-credentials: false\n",
	} {
		if !strings.Contains(plain, line) {
			t.Errorf("the workflow lacks %q:\n%s", line, plain)
		}
	}
	for _, since := range []string{strings.Repeat("b", 40), strings.Repeat("c", 64)} {
		have := strings.Replace(plain, "stage: watch\n          ledger-ref: refs/heads/l\n", "stage: watch\n          ledger-ref: refs/heads/l\n          since: "+since+"\n          allowed-signers: .github/ledger-signers\n", 1)
		tree := fstest.MapFS{Caller: {Data: List[1].Render(s)}, file.Path: {Data: []byte(have)}}
		files, _, err := Plan(tree, Settings{}, func(string) bool { return false }, nil)
		at := slices.IndexFunc(files, func(f Planned) bool { return f.Path == file.Path })
		if err != nil || at < 0 || files[at].State != Same {
			t.Errorf("since %s: %v %+v", since, err, files)
		} else if may := files[at].May(); may != "reads the code and the ledger; keeps one issue; records what comments there say of exceptions, and what protects the branch" {
			t.Errorf("it %s", may)
		}
	}
	for _, odd := range []string{"${{ github.head_ref }}", "\"x\"", "a b", "*"} {
		if got := SettingsOf([]byte(plain + "          allowed-signers: " + odd + "\n")); got.Signers != "" {
			t.Errorf("allowed-signers %q: %q", odd, got.Signers)
		}
	}
	for _, odd := range []string{"${{ github.head_ref }}", "\"x\"", "a b", "90d", "2026-01-31"} { // which init does not keep
		if got := SettingsOf([]byte(plain + "          since: " + odd + "\n")); got.Since != "" {
			t.Errorf("since %q: %q", odd, got.Since)
		}
	}
	var f Facts
	f.Branch = "main"
	f.Read(map[string][]byte{Caller: List[1].Render(s)})
	missing := func(one Finding) bool { return one.Hint == "countersign init --watch" && one.Level == LevelNote }
	if !slices.ContainsFunc(f.Findings(), missing) {
		t.Errorf("nothing is said of a workflow that is not there: %v", f.Findings())
	}
	f.Read(map[string][]byte{Caller: List[1].Render(s), file.Path: []byte(plain)})
	if slices.ContainsFunc(f.Findings(), missing) {
		t.Errorf("it is there: %v", f.Findings())
	}
}

// TestAttest: the workflow has least rights, runs for the default branch alone, one at a time, and
// uses nothing but a checkout and this program. It is refused where it could sign nothing, or would
// publish what is private; doctor says what keeps it from signing.
func TestAttest(t *testing.T) {
	t.Parallel()
	file := List[slices.IndexFunc(List, func(f File) bool { return f.Asked == AskAttest })]
	s := Settings{Uses: "acme/countersign@" + strings.Repeat("a", 40), LedgerRef: "refs/heads/l"}
	plain := string(file.Render(s))
	for _, line := range []string{
		"\npermissions: {}\n", "\n    permissions:\n      contents: write\n      id-token: write\n      attestations: write\n    steps:\n", "\n          stage: attest\n          ledger-ref: refs/heads/l\n",
		"\n      && (github.event_name != 'workflow_dispatch' || github.ref_name == github.event.repository.default_branch)\n", "\n  group: countersign-attest\n  cancel-in-progress: false\n", "persist-credentials: false\n",
	} {
		if !strings.Contains(plain, line) {
			t.Errorf("the workflow lacks %q:\n%s", line, plain)
		}
	}
	if strings.Count(plain, "uses: ") != 2 || strings.Contains(plain, "run: ") || strings.Contains(plain, "secrets.") {
		t.Errorf("it uses more than it needs:\n%s", plain)
	}
	on := func(host string) Forge { return Forge{"https", host, "acme/app"} }
	tree := func(more ...string) fstest.MapFS {
		out := fstest.MapFS{Caller: {Data: List[1].Render(s)}, policy.Path: {Data: []byte("version: 1\n")}}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
		}
		return out
	}
	for name, c := range map[string]struct {
		forge Forge
		tree  fstest.MapFS
		asked bool
		want  string // of the error; the file's state where there is none
	}{
		"asked":              {on("github.com"), tree(), true, Missing},
		"not asked":          {on("github.com"), tree(), false, ""},
		"there":              {on("github.com"), tree(file.Path, plain), false, Same},
		"changed":            {on("github.com"), tree(file.Path, strings.Replace(plain, "id-token: write", "packages: write", 1)), false, "1 lines would go"},
		"no remote":          {Forge{}, tree(), true, Missing},
		"a private ledger":   {on("github.com"), tree(policy.Path, "ledger: {repository: acme/ledgers}\n"), true, "not everybody may read it"},
		"a ledger made so":   {on("github.com"), tree(file.Path, plain, policy.Path, "ledger: {repository: acme/ledgers}\n"), false, "the ledger is in acme/ledgers"},
		"another server":     {on("git.example.org"), tree(), true, "workflows attest on github.com alone"},
		"another server's":   {on("git.example.org"), tree(file.Path, plain), false, "workflows attest on github.com alone"},
		"nothing of it here": {on("git.example.org"), tree(policy.Path, "ledger: {repository: acme/ledgers}\n"), false, ""},
	} {
		files, _, err := Setup{Forge: c.forge, Given: func(string) bool { return false }, Asked: map[string]bool{AskAttest: c.asked}, Say: t.Logf}.Plan(t.Context(), c.tree)
		at := slices.IndexFunc(files, func(f Planned) bool { return f.Path == file.Path })
		switch {
		case err != nil:
			if c.want == "" || !strings.Contains(err.Error(), c.want) || at >= 0 && c.want == Missing {
				t.Errorf("%s: %v", name, err)
			}
		case at < 0 && c.want != "", at >= 0 && files[at].State != c.want:
			t.Errorf("%s: %+v", name, files)
		case at >= 0:
			if may := files[at].May(); may != "writes beside the ledger; signs what was settled, which a public log names for ever" {
				t.Errorf("%s: it %s", name, may)
			}
			said := strings.Contains(strings.Join(Result{Files: files, Settings: s, Again: func(args ...string) string { return strings.Join(args, " ") }}.Next(), "\n"), "in Sigstore's public log, for ever")
			if said != (c.want == Missing) {
				t.Errorf("%s: that a log is public is said: %t", name, said)
			}
		}
	}

	server := func(change func(*Facts)) Facts {
		f := Facts{Branch: "main", Asked: true}
		f.Read(map[string][]byte{Caller: List[1].Render(s), file.Path: []byte(plain)})
		change(&f)
		return f
	}
	without := func(right string) func(*Facts) {
		return func(f *Facts) {
			f.Read(map[string][]byte{Caller: List[1].Render(s), file.Path: []byte(strings.Replace(plain, "      "+right+": write\n", "", 1))})
		}
	}
	for name, c := range map[string]struct {
		facts Facts
		want  []string // what fails
	}{
		"fine":             {server(func(*Facts) {}), nil},
		"no identity":      {server(without("id-token")), []string{"id-token: write: its job has no identity"}},
		"no attestations":  {server(without("attestations")), []string{"attestations: write"}},
		"no contents":      {server(without("contents")), []string{"contents: write"}},
		"private":          {server(func(f *Facts) { f.GitHub.Private = true }), []string{"not everybody may read this repository"}},
		"private, unasked": {server(func(f *Facts) { f.GitHub.Private, f.Asked = true, false }), nil},
		"ledger elsewhere": {server(func(f *Facts) { f.Policy.Ledger.Repository = "acme/ledgers" }), []string{"the ledger is in acme/ledgers"}},
		"another server":   {server(func(f *Facts) { f.GitHub.Version = "3.20.1" }), []string{"the server is GitHub Enterprise Server"}},
		"not there":        {server(func(f *Facts) { f.Read(map[string][]byte{Caller: List[1].Render(s)}); f.GitHub.Private = true }), nil},
	} {
		var failing []string
		for _, one := range c.facts.attestFindings() {
			if one.Level == LevelFails {
				failing = append(failing, one.Text)
			}
		}
		if len(failing) != len(c.want) || len(failing) > 0 && !strings.Contains(failing[0], c.want[0]) {
			t.Errorf("%s: %q, want %q", name, failing, c.want)
		}
	}
	if all := server(func(*Facts) {}).Findings(); !slices.ContainsFunc(all, func(one Finding) bool {
		return one.Level == LevelOK && strings.HasPrefix(one.Text, "countersign-attest.yml has the rights")
	}) {
		t.Errorf("doctor does not tell of it: %v", all)
	}
}
