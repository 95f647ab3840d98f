package scaffold

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
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
	settle, propose := List[3], List[1]
	now := Settings{Uses: "acme/countersign@" + strings.Repeat("a", 40), Gate: true}
	for _, c := range []struct {
		name string
		file File
		have []byte
		want string
	}{
		{"none", settle, nil, Missing},
		{"the same", settle, settle.Render(now), Same},
		{"other commit", settle, settle.Render(Settings{Uses: "acme/countersign@" + strings.Repeat("b", 40), Gate: true}), Old},
		{"other flag", settle, settle.Render(Settings{Uses: now.Uses}), Old},
		{"other ledger", settle, settle.Render(Settings{Uses: now.Uses, Gate: true, LedgerRef: "refs/heads/ledger"}), Old},
		{"placeholder", propose, propose.Render(Settings{Uses: Placeholder, Gate: true}), Old},
		{"changed", settle, append(settle.Render(now), "# mine\n"...), Differs},
		{"changed, and theirs", propose, append(propose.Render(now), "# mine\n"...), Theirs},
		{"empty", settle, []byte{}, Differs},
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
			Teams: map[string]bool{"acme/security": true}, BranchRules: []string{"non_fast_forward", "deletion"},
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
	for _, one := range works().Findings() {
		if one.Level != LevelOK {
			t.Errorf("%s %s", one.Level, one.Text)
		}
	}
	for _, c := range []struct {
		level, text string
		change      func(f *Facts)
	}{
		{LevelFails, "GitHub was not asked", func(f *Facts) { f.Asked = false }},
		{LevelFails, "countersign-settle.yml is missing on main", func(f *Facts) { f.Files[Workflows+"settle.yml"] = Missing }},
		{LevelNote, "countersign-propose.yml is missing", func(f *Facts) { f.Files[Workflows+"propose.yml"] = Missing }},
		{LevelNote, "countersign-settle.yml is not as init writes it", func(f *Facts) { f.Files[Workflows+"settle.yml"] = Differs }},
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
		{LevelFails, "Server 3.19.4 takes", func(f *Facts) { f.GitHub.Version = "3.19.4" }},
		{LevelFails, "Server 3 takes", func(f *Facts) { f.GitHub.Version = "3" }},
		{LevelNote, "push ruleset no json (file_path_restriction)", func(f *Facts) {
			f.GitHub.PushRules = []github.Rules{{Name: "no\x1b json", Types: []string{"file_path_restriction"}}}
		}},
		{LevelNote, "keep the ledger on refs/heads/other", func(f *Facts) { f.WorkflowRef = "refs/heads/other" }},
		{LevelNote, "the rules for pushes cannot be read", func(f *Facts) { f.GitHub.RulesUnread = true }},
		{LevelNote, "no ruleset reaches refs/agent/ledger", func(f *Facts) { f.LedgerRef = "refs/agent/ledger" }},
		{LevelNote, "(pull_request) restricts pushes", func(f *Facts) { f.GitHub.BranchRules = append(f.GitHub.BranchRules, "pull_request") }},
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
		}
	}
	for version, gated := range map[string]bool{"3.20.0": true, "3.21.1": true, "4.0.0": true, "3.19.99": false, "2.99.0": false, "x.y": false} {
		f := works()
		f.GitHub.Version = version
		if failed := slices.ContainsFunc(f.Findings(), func(one Finding) bool { return one.Level == LevelFails }); failed == gated {
			t.Errorf("version %s fails: %v", version, failed)
		}
	}
	f := works()
	f.GitHub.Version, f.Gated = "3.1.0", false
	if f.Findings()[0].Level == LevelFails {
		t.Errorf("fails without gate-only: %v", f.Findings())
	}
}

// TestInitReads: what --check takes from the files of the default branch.
func TestInitReads(t *testing.T) {
	t.Parallel()
	s := Settings{Uses: "acme/countersign@" + strings.Repeat("a", 40)}
	files := map[string][]byte{policy.Path: []byte("version: 1\nprotected: [{paths: [a], teams: [acme/b, acme/a]}, {paths: [b], teams: [acme/a]}]\n")}
	for _, file := range List[2:] {
		files[file.Path] = file.Render(s)
	}
	var f Facts
	f.Read(files)
	if f.Gated || f.WorkflowRef != "refs/agent/ledger" || f.PolicyErr != nil || !slices.Equal(f.Uses, []string{s.Uses}) || !slices.Equal(f.Teams(), []string{"acme/a", "acme/b"}) {
		t.Errorf("facts: %+v", f)
	}
	for path, want := range map[string]string{policy.Path: Theirs, Workflows + "propose.yml": Missing, Workflows + "settle.yml": Same} {
		if f.Files[path] != want {
			t.Errorf("%s is %s", path, f.Files[path])
		}
	}
	files[policy.Path] = []byte("nonsense: 1\n")
	if f.Read(files); f.PolicyErr == nil {
		t.Error("a wrong Policy is taken")
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
