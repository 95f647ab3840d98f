package githubtest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Settings are those of a repository that are about pull requests. The zero value
// is what a new repository has on GitHub.
type Settings struct {
	NoMerge, NoSquash, NoRebase bool // ways to merge that are not allowed
	// ActionsOpenPulls is "Allow GitHub Actions to create and approve pull requests".
	ActionsOpenPulls bool
	// Pages is how the site is published: workflow, legacy (from a branch), or not at all.
	// PagesPrivate shows it to those alone who may read the repository.
	Pages        string
	PagesPrivate bool
	// Checks are the names of the check runs that a pull request needs before it is
	// merged, by branch. Nobody may push to such a branch.
	Checks map[string][]string
	// Workflows are the states of workflows that are not active, by the name of the
	// file, as in disabled_inactivity.
	Workflows map[string]string
}

// Set sets the settings of a repository.
func (s *Server) Set(repository string, to Settings) {
	defer s.lock()()
	s.repo(repository).settings = to
}

// Merge merges a pull request as an account that no protection holds back, by
// "merge", "squash" or "rebase", and returns the new tip of the base.
func (s *Server) Merge(repository string, number int, by, method string) string {
	defer s.lock()()
	p := s.pull(repository, number)
	if !s.merge(p, s.account(by), method) {
		misuse("pull request %d has conflicts", number)
	}
	return p.mergeCommit
}

// merge reports false, and does nothing, where the base and the head conflict.
func (s *Server) merge(p *pull, by *account, method string) bool {
	base := "refs/heads/" + p.base.ref
	tip := p.repo.ref(base)
	treeWith := func(commit string) string {
		out, err := p.repo.run("", "merge-tree", "--write-tree", tip, commit)
		if err != nil {
			return ""
		}
		return strings.Fields(out)[0]
	}
	tree := treeWith(p.head.sha)
	if tree == "" {
		return false
	}
	message := fmt.Sprintf("%s (#%d)", p.title, p.number)
	switch method {
	case "rebase":
		// What a commit's tree would be on the new base is what a merge of it is there.
		for _, c := range p.commits() {
			tip = p.repo.commit(base, c.message, cmp.Or(s.byEmail(c.author.email), by), s.time(), change{tree: treeWith(c.sha)}, tip)
		}
	case "squash":
		tip = p.repo.commit(base, message, p.author, s.time(), change{tree: tree}, tip)
	default:
		tip = p.repo.commit(base, message, by, s.time(), change{tree: tree}, tip, p.head.sha)
	}
	p.mergeCommit = tip
	s.close(p)
	p.merged = p.closed
	s.synchronize(p.repo)
	return true
}

// mergePull is the merge that a client asks for, by the rules of the repository.
func (s *Server) mergePull(c *call) answer {
	p, set := c.pull, c.repo.settings
	method := cmp.Or(c.text("merge_method"), "merge")
	forbidden := map[string]bool{"merge": set.NoMerge, "squash": set.NoSquash, "rebase": set.NoRebase}[method]
	green := func(name string) bool {
		return slices.ContainsFunc(c.repo.checks, func(run *checkRun) bool {
			return run.head == p.head.sha && run.name == name && slices.Contains([]string{"success", "neutral", "skipped"}, run.conclusion)
		})
	}
	switch sha := c.text("sha"); {
	case p.closed != nil || p.draft:
		return refuse(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case sha != "" && sha != p.head.sha:
		return refuse(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	case forbidden:
		words := map[string]string{"merge": "Merge commits", "squash": "Squash merges", "rebase": "Rebase merges"}
		return refuse(http.StatusMethodNotAllowed, words[method]+" are not allowed on this repository.")
	case c.token.app && !c.token.has("workflows", "write") && slices.ContainsFunc(p.files(), func(path string) bool { return strings.HasPrefix(path, ".github/workflows/") }):
		return refuse(http.StatusForbidden, "refusing to allow a GitHub App to create or update workflow without `workflows` permission")
	}
	for _, name := range set.Checks[p.base.ref] {
		if !green(name) {
			return refuse(http.StatusMethodNotAllowed, fmt.Sprintf("Required status check %q is expected.", name))
		}
	}
	if !s.merge(p, c.token.account, method) {
		return refuse(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	}
	return ok(object{"sha": p.mergeCommit, "merged": true, "message": "Pull Request successfully merged"})
}
