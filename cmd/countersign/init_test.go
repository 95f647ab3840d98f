package main

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
	p, err := policy.Parse(policy.Path, initList[0].render(scaffold{}))
	check(t, err)
	if p.Sum() != policy.Default().Sum() {
		t.Errorf("it demands %s", p.JSON())
	}
}

func TestInitState(t *testing.T) {
	t.Parallel()
	settle, propose := initList[3], initList[1]
	now := scaffold{Uses: "acme/countersign@" + strings.Repeat("a", 40), Gate: true}
	for _, c := range []struct {
		name string
		file initFile
		have []byte
		want string
	}{
		{"none", settle, nil, fileMissing},
		{"the same", settle, settle.render(now), fileSame},
		{"other commit", settle, settle.render(scaffold{Uses: "acme/countersign@" + strings.Repeat("b", 40), Gate: true}), fileOld},
		{"other flag", settle, settle.render(scaffold{Uses: now.Uses}), fileOld},
		{"other ledger", settle, settle.render(scaffold{Uses: now.Uses, Gate: true, LedgerRef: "refs/heads/ledger"}), fileOld},
		{"placeholder", propose, propose.render(scaffold{Uses: placeholder, Gate: true}), fileOld},
		{"changed", settle, append(settle.render(now), "# mine\n"...), fileDiffers},
		{"changed, and theirs", propose, append(propose.render(now), "# mine\n"...), fileTheirs},
		{"empty", settle, []byte{}, fileDiffers},
	} {
		if got := c.file.state(c.have, c.have != nil, now); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for _, uses := range []string{"acme/countersign@v1", "acme/countersign@" + strings.Repeat("a", 39), "acme@" + strings.Repeat("a", 40), "../x", "./a b", "acme/x@" + strings.Repeat("a", 40) + "\n"} {
		if usesForm().MatchString(uses) {
			t.Errorf("%q is taken for an action", uses)
		}
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	if removed, added := changed([]byte("a\nb\nb\nc\n"), []byte("b\nd\nc\ne\n")); removed != 2 || added != 2 {
		t.Errorf("changed = %d, %d", removed, added)
	}
}

// works are facts under which nothing fails.
func works() initFacts {
	f := initFacts{
		Asked: true, Branch: "main", LedgerRef: "refs/heads/ledger", WorkflowRef: "refs/heads/ledger", Gated: true, Policy: policy.Default(), Files: map[string]string{},
		Uses: []string{"acme/countersign@" + strings.Repeat("a", 40)},
		GitHub: github.Facts{
			DefaultBranch: "main", Account: ledger.Actor{Kind: "bot", Login: "acme-app"}, Rights: map[string]bool{},
			Teams: map[string]bool{"acme/security": true}, BranchRules: []string{"non_fast_forward", "deletion"},
		},
	}
	for _, file := range initList {
		f.Files[file.path] = fileSame
	}
	for _, right := range github.Rights {
		f.GitHub.Rights[right] = true
	}
	return f
}

func TestInitFindings(t *testing.T) {
	t.Parallel()
	for _, one := range works().findings() {
		if one.Level != levelOK {
			t.Errorf("%s %s", one.Level, one.Text)
		}
	}
	for _, c := range []struct {
		level, text string
		change      func(f *initFacts)
	}{
		{levelFails, "GitHub was not asked", func(f *initFacts) { f.Asked = false }},
		{levelFails, "countersign-settle.yml is missing on main", func(f *initFacts) { f.Files[workflows+"settle.yml"] = fileMissing }},
		{levelNote, "countersign-propose.yml is missing", func(f *initFacts) { f.Files[workflows+"propose.yml"] = fileMissing }},
		{levelNote, "countersign-settle.yml is not as init writes it", func(f *initFacts) { f.Files[workflows+"settle.yml"] = fileDiffers }},
		{levelFails, "the workflows still name", func(f *initFacts) { f.Uses = []string{placeholder} }},
		{levelNote, "a tag or branch can be moved", func(f *initFacts) { f.Uses = []string{"acme/countersign@v1"} }},
		{levelFails, "the Policy on main is not valid: two; lines", func(f *initFacts) { f.PolicyErr = errors.New("two\nlines") }},
		{levelNote, "the defaults hold", func(f *initFacts) { f.Files[policy.Path] = fileMissing }},
		{levelNote, "starts no workflows", func(f *initFacts) { f.GitHub.Account.Login = "github-actions" }},
		{levelNote, "does not say whose", func(f *initFacts) { f.GitHub.Account = ledger.Actor{} }},
		{levelFails, "no contents: write", func(f *initFacts) { f.GitHub.Rights["contents: write"] = false }},
		{levelFails, "no pull-requests: write", func(f *initFacts) { f.GitHub.Rights["pull-requests: write"] = false }},
		{levelFails, "no checks: write", func(f *initFacts) { f.GitHub.Rights["checks: write"] = false }},
		{levelFails, "no actions: read", func(f *initFacts) { f.GitHub.Rights["actions: read"] = false }},
		{levelNote, "could not be found out", func(f *initFacts) { delete(f.GitHub.Rights, "checks: write") }},
		{levelFails, "members of acme/security", func(f *initFacts) { f.GitHub.Teams["acme/security"] = false }},
		{levelFails, "Server 3.19.4 takes", func(f *initFacts) { f.GitHub.Version = "3.19.4" }},
		{levelFails, "Server 3 takes", func(f *initFacts) { f.GitHub.Version = "3" }},
		{levelNote, "push ruleset no json (file_path_restriction)", func(f *initFacts) {
			f.GitHub.PushRules = []github.Rules{{Name: "no\x1b json", Types: []string{"file_path_restriction"}}}
		}},
		{levelNote, "keep the ledger on refs/heads/other", func(f *initFacts) { f.WorkflowRef = "refs/heads/other" }},
		{levelNote, "the rules for pushes cannot be read", func(f *initFacts) { f.GitHub.RulesUnread = true }},
		{levelNote, "no ruleset reaches refs/agent/ledger", func(f *initFacts) { f.LedgerRef = "refs/agent/ledger" }},
		{levelNote, "(pull_request) restricts pushes", func(f *initFacts) { f.GitHub.BranchRules = append(f.GitHub.BranchRules, "pull_request") }},
		{levelNote, "rewritten or deleted (deletion)", func(f *initFacts) { f.GitHub.BranchRules = []string{"non_fast_forward"} }},
	} {
		f := works()
		c.change(&f)
		found := f.findings()
		i := slices.IndexFunc(found, func(one finding) bool {
			return one.Level == c.level && strings.Contains(strings.ReplaceAll(one.Text, "\\x1b", ""), c.text)
		})
		if i < 0 {
			t.Errorf("%s %q is not among %v", c.level, c.text, found)
		}
	}
	for version, gated := range map[string]bool{"3.20.0": true, "3.21.1": true, "4.0.0": true, "3.19.99": false, "2.99.0": false, "x.y": false} {
		f := works()
		f.GitHub.Version = version
		if failed := slices.ContainsFunc(f.findings(), func(one finding) bool { return one.Level == levelFails }); failed == gated {
			t.Errorf("version %s fails: %v", version, failed)
		}
	}
	f := works()
	f.GitHub.Version, f.Gated = "3.1.0", false
	if f.findings()[0].Level == levelFails {
		t.Errorf("fails without gate-only: %v", f.findings())
	}
}

// TestInitReads: what --check takes from the files of the default branch.
func TestInitReads(t *testing.T) {
	t.Parallel()
	s := scaffold{Uses: "acme/countersign@" + strings.Repeat("a", 40)}
	files := map[string][]byte{policy.Path: []byte("version: 1\nprotected: [{paths: [a], teams: [acme/b, acme/a]}, {paths: [b], teams: [acme/a]}]\n")}
	for _, file := range initList[2:] {
		files[file.path] = file.render(s)
	}
	var f initFacts
	f.read(files)
	if f.Gated || f.WorkflowRef != "refs/agent/ledger" || f.PolicyErr != nil || !slices.Equal(f.Uses, []string{s.Uses}) || !slices.Equal(f.teams(), []string{"acme/a", "acme/b"}) {
		t.Errorf("facts: %+v", f)
	}
	for path, want := range map[string]string{policy.Path: fileTheirs, workflows + "propose.yml": fileMissing, workflows + "settle.yml": fileSame} {
		if f.Files[path] != want {
			t.Errorf("%s is %s", path, f.Files[path])
		}
	}
	files[policy.Path] = []byte("nonsense: 1\n")
	if f.read(files); f.PolicyErr == nil {
		t.Error("a wrong Policy is taken")
	}
}
