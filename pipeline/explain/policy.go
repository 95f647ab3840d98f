package explain

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// Accounts are the kinds of decisions that account for a commit, from the strongest. Where the
// file does not say, all do; but local ones do not where signatures are required, or where pull
// requests are gated on a forge: by the Policy or, as forgeGates tells, by a workflow (see
// GatesPullRequests) or what the ledger has.
func Accounts(p policy.Policy, forgeGates bool) []policy.DecisionKind {
	a := p.Approvals
	switch {
	case p.Explained.Decisions != nil:
		return slices.Clone(p.Explained.Decisions)
	case a.Signing() == policy.SignedOnly, a.Hardware, a.PIN, a.Local == policy.LocalNever, len(p.Gate.Bases) > 0, p.Apply.To == policy.ToPullRequest, forgeGates:
		return []policy.DecisionKind{policy.SignedDecision, policy.ForgeDecision}
	}
	return []policy.DecisionKind{policy.SignedDecision, policy.ForgeDecision, policy.LocalDecision}
}

// Beyond returns the first of some files that a rule for a bot does not cover: one that
// none of its paths matches, or that the Policy protects. It is "" where it covers all.
//
// Unlike elsewhere, a path that does not end in / or /** is of a file, and covers nothing below
// it: /go.mod does not cover go.mod/evil.sh. And a file is protected if it would be in any of
// the directories above it, were that one the root: deps/CODEOWNERS.
func Beyond(p policy.Policy, bot policy.VersionBot, files []string) (file, why string) {
	rules := p.Rules()
	protected := func(path string) bool {
		return slices.ContainsFunc(rules, func(r policy.NamedRule) bool { _, ok := r.Match(path); return ok })
	}
	covers := func(path string) func(string) bool {
		return func(glob string) bool {
			g, err := policy.ParseGlob(glob)
			if !strings.HasSuffix(glob, "/") {
				g = g.Shallow()
			}
			return err == nil && g.Match(path)
		}
	}
	for _, name := range files {
		if !slices.ContainsFunc(bot.Paths, covers(name)) {
			return name, "is none of its paths"
		}
		names := strings.Split(name, "/")
		for i := range names {
			if protected(strings.Join(names[i:], "/")) {
				return name, "is protected"
			}
		}
	}
	return "", ""
}

// GatesPullRequests reports whether the tree of a commit has a workflow of countersign init
// by which a server gates pull requests: the one for Gitea or Forgejo, or the one for GitHub
// of init --gate. A workflow to which a link leads, or that cannot be read, is an error.
func GatesPullRequests(tree fs.FS) (bool, error) {
	files := patch.NewTree(tree)
	for _, folder := range []string{".gitea/", ".forgejo/", ".github/"} {
		name := folder + "workflows/countersign.yml"
		file, err := files.Stat(name)
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		if file == nil {
			continue
		}
		raw, err := fs.ReadFile(tree, name)
		switch {
		case err != nil:
			return false, fmt.Errorf("%s: %w", name, err)
		case folder != ".github/", gateMark().Match(raw):
			return true, nil
		}
	}
	return false, nil
}

// gateMark is what a workflow of init in .github has if it gates pull requests: an event
// of theirs, where no condition of a job asks for it, or the secret of Gitea and Forgejo, which
// take workflows from there as well.
var gateMark = canon.Regexp(`(?m)^[^=\n]*(pull_request_target|merge_group)|secrets\.COUNTERSIGN_TOKEN\b`)
