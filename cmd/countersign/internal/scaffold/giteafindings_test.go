package scaffold

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// worksOnGitea are facts under which nothing fails and nothing is to be known.
func worksOnGitea() (Facts, *gitea.Facts) {
	g := &gitea.Facts{
		Server: "Gitea 1.25.5", DefaultBranch: "main", Account: ledger.Actor{Kind: "user", ID: "7", Login: "robot"}, Administers: true, Actions: true,
		Scopes: map[string]bool{}, Teams: map[string]bool{"acme/security": true}, Secrets: []string{"COUNTERSIGN_TOKEN"}, Runners: 1,
		Protection: &gitea.Protection{Required: []string{"countersign"}, Pushes: "nobody"},
		OfLedger:   &gitea.Protection{Pushes: "some", Pushers: []string{"robot"}},
	}
	for _, scope := range gitea.Scopes {
		g.Scopes[scope] = true
	}
	rules := policy.Default()
	rules.Bots, rules.Gate.Bases, rules.Approvals.Signed = []string{"robot"}, []string{"main"}, policy.SignedOnly
	f := Facts{
		Asked: true, Gitea: g, Branch: "main", LedgerRef: "refs/heads/ledger", WorkflowRef: "refs/heads/ledger", Policy: rules,
		Folder: ".gitea/workflows", Files: map[string]string{},
	}
	for _, file := range giteaFiles(f.Folder) {
		f.Files[file.Path] = Same
	}
	return f, g
}

func TestGiteaFindings(t *testing.T) {
	t.Parallel()
	good, _ := worksOnGitea()
	for _, one := range good.Findings() {
		if one.Level != LevelOK && !strings.HasPrefix(one.Text, "whoever may write here can set the status") { // as they always can
			t.Errorf("%s %s", one.Level, one.Text)
		}
	}
	for _, c := range []struct {
		level, text string
		change      func(f *Facts, g *gitea.Facts)
	}{
		{LevelNote, "the server was not asked", func(f *Facts, _ *gitea.Facts) { f.Asked = false }},
		{LevelNote, "before 1.25 no run starts another", func(_ *Facts, g *gitea.Facts) { g.Server = "Gitea 1.24.6" }},
		{LevelNote, "was not seen", func(_ *Facts, g *gitea.Facts) { g.Server = "Forgejo 13.0.1" }},
		{LevelNote, "was not seen", func(_ *Facts, g *gitea.Facts) { g.Server = "Gitea main" }},
		{LevelNote, "the server is one that tells no version: whether", func(_ *Facts, g *gitea.Facts) { g.Server = "" }},
		{LevelNote, "whoever may write here can set the status countersign by hand", func(*Facts, *gitea.Facts) {}},
		{LevelFails, "the repository is archived", func(_ *Facts, g *gitea.Facts) { g.ReadOnly = "archived" }},
		{LevelFails, "does not say whose", func(_ *Facts, g *gitea.Facts) { g.Account = ledger.Actor{} }},
		{LevelFails, "does not administer", func(_ *Facts, g *gitea.Facts) { g.Administers = false }},
		{LevelFails, "no scope write:issue", func(_ *Facts, g *gitea.Facts) { g.Scopes["write:issue"] = false }},
		{LevelNote, "could not be found out", func(_ *Facts, g *gitea.Facts) { delete(g.Scopes, "write:issue") }},
		{LevelFails, "members of acme/security", func(_ *Facts, g *gitea.Facts) { g.Teams["acme/security"] = false }},
		{LevelFails, "no Actions", func(_ *Facts, g *gitea.Facts) { g.Actions = false }},
		{LevelFails, "no secret COUNTERSIGN_TOKEN", func(_ *Facts, g *gitea.Facts) { g.Secrets = []string{"OTHER"} }},
		{LevelNote, "owners alone", func(_ *Facts, g *gitea.Facts) { g.SecretsUnread = true }},
		{LevelNote, "no runner of its own", func(_ *Facts, g *gitea.Facts) { g.Runners = 0 }},
		{LevelFails, "does not name robot under bots", func(f *Facts, _ *gitea.Facts) { f.Policy.Bots = nil }},
		{LevelFails, "forge_keys", func(f *Facts, _ *gitea.Facts) { f.Policy.Approvals.ForgeKeys = true }},
		{LevelNote, "need no signature", func(f *Facts, _ *gitea.Facts) { f.Policy.Approvals.Signed = policy.SignedToo }},
		{LevelNote, "gate does not name main", func(f *Facts, _ *gitea.Facts) { f.Policy.Gate.Bases = nil }},
		{LevelFails, "protections of branches cannot be read", func(_ *Facts, g *gitea.Facts) { g.RulesUnread = true }},
		{LevelFails, "main is not protected", func(_ *Facts, g *gitea.Facts) { g.Protection = nil }},
		{LevelFails, "does not require the status", func(_ *Facts, g *gitea.Facts) { g.Protection.Required = []string{"countersign*"} }},
		{LevelFails, "can push to main", func(_ *Facts, g *gitea.Facts) { g.Protection.Pushes = "everybody" }},
		{LevelNote, "ada, team x may push", func(_ *Facts, g *gitea.Facts) {
			g.Protection.Pushes, g.Protection.Pushers = "some", []string{"Robot", "ada", "team x"}
		}},
		{LevelNote, "files of *.md", func(_ *Facts, g *gitea.Facts) { g.Protection.FreeFiles = "*.md" }},
		{LevelNote, "administrators may merge", func(_ *Facts, g *gitea.Facts) { g.Protection.AdminsMerge = true }},
		{LevelNote, "no rule reaches refs/agent/ledger", func(f *Facts, _ *gitea.Facts) { f.LedgerRef = "refs/agent/ledger" }},
		{LevelNote, "no rule protects the ledger's branch", func(_ *Facts, g *gitea.Facts) { g.OfLedger = nil }},
		{LevelFails, "lets it be rewritten", func(_ *Facts, g *gitea.Facts) { g.OfLedger.Forced = true }},
		{LevelFails, "nobody may push", func(_ *Facts, g *gitea.Facts) { g.OfLedger.Pushes = "nobody" }},
		{LevelNote, "whoever may push can add", func(_ *Facts, g *gitea.Facts) { g.OfLedger.Pushes = "everybody" }},
		{LevelNote, "does not name robot among", func(_ *Facts, g *gitea.Facts) { g.OfLedger.Pushers = []string{"ada"} }},
		{LevelNote, "robot, ada may add", func(_ *Facts, g *gitea.Facts) { g.OfLedger.Pushers = []string{"robot", "ada"} }},
		{LevelFails, "countersign.yml is missing on main", func(f *Facts, _ *gitea.Facts) { f.Files[".gitea/workflows/countersign.yml"] = Missing }},
		{LevelNote, "countersign.yml is not as init writes it", func(f *Facts, _ *gitea.Facts) { f.Files[".gitea/workflows/countersign.yml"] = Differs }},
	} {
		f, g := worksOnGitea()
		c.change(&f, g)
		found := f.Findings()
		i := slices.IndexFunc(found, func(one Finding) bool { return one.Level == c.level && strings.Contains(one.Text, c.text) })
		if i < 0 {
			t.Errorf("%s %q is not among %v", c.level, c.text, found)
		} else if strings.Contains(found[i].Hint, "bots: [") { // which would lock out whose token it is
			t.Errorf("%s: %s", found[i].Text, found[i].Hint)
		} else if found[i].Level == LevelFails && found[i].Hint == "" {
			t.Errorf("nothing mends %s", found[i].Text)
		}
	}
	// A ledger in another repository is looked at there, and nowhere else.
	for _, c := range []struct {
		level, text string
		change      func(p *Elsewhere)
	}{
		{LevelOK, "only keeper adds to the ledger's branch ledger-7", func(*Elsewhere) {}},
		{LevelNote, "who may read acme/ledgers could not be found out", func(p *Elsewhere) { p.Gitea = nil }},
		{LevelFails, "the token may not write to acme/ledgers", func(p *Elsewhere) { p.Gitea.Scopes["write:repository"] = false }},
		{LevelFails, "acme/ledgers is archived", func(p *Elsewhere) { p.Gitea.ReadOnly = "archived" }},
		{LevelNote, "the protection of the ledger's branch ledger-7 cannot be read", func(p *Elsewhere) { p.Gitea.RulesUnread, p.Gitea.OfLedger = true, nil }},
		{LevelNote, "no rule reaches refs/agent/ledger-7", func(p *Elsewhere) { p.Ref = "refs/agent/ledger-7" }},
		{LevelNote, "does not name the token's account among", func(p *Elsewhere) { p.Gitea.Account = ledger.Actor{} }},
	} {
		f, g := worksOnGitea()
		there := *g
		there.Scopes, there.Account.Login, there.OfLedger = map[string]bool{}, "keeper", &gitea.Protection{Pushes: "some", Pushers: []string{"keeper"}}
		f.Place = &Elsewhere{Repository: "acme/ledgers", Ref: "refs/heads/ledger-7", Gitea: &there}
		c.change(f.Place)
		found := f.Findings()
		if !slices.ContainsFunc(found, func(one Finding) bool { return one.Level == c.level && strings.Contains(one.Text, c.text) }) {
			t.Errorf("%s %q is not among %v", c.level, c.text, found)
		}
		if slices.ContainsFunc(found, func(one Finding) bool { return strings.Contains(one.Text, "only robot adds") }) {
			t.Errorf("%q: the ledger's branch here is told of: %v", c.text, found)
		}
	}
	// What a server leaves out is never good.
	f, _ := worksOnGitea()
	f.Gitea, f.Policy = &gitea.Facts{}, policy.Default()
	for _, one := range f.giteaFindings() {
		if one.Level == LevelOK {
			t.Errorf("of nothing it says %s", one.Text)
		}
	}
}

// TestGiteaReads: the files of init are read where the server takes workflows from.
func TestGiteaReads(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{}
	for _, file := range giteaFiles(".forgejo/workflows") {
		tree[file.Path] = &fstest.MapFile{Data: file.Render(Settings{Guarded: "main", LedgerRef: "refs/heads/ledger"})}
	}
	for server, want := range map[string]string{"Forgejo 13.0.1": Same, "Gitea 1.25.5": Missing} {
		f := Facts{Branch: "main", Gitea: &gitea.Facts{Server: server}}
		check(t, f.ReadTree(tree))
		settle := f.Files[f.Folder+"/countersign.yml"]
		if settle != want || want == Same && (f.WorkflowRef != "refs/heads/ledger" || !slices.Contains(f.Policy.Gate.Bases, "main")) {
			t.Errorf("%s: %q in %s, %+v", server, settle, f.Folder, f.Policy.Gate)
		}
	}
}
