package githubtest

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

var repositoryOperations = []operation{
	{"GET", "/repos/{owner}/{repo}", "", (*Server).getRepository},
	{"GET", "/repos/{owner}/{repo}/branches/{branch}", "contents:read", (*Server).getBranch},
	{"POST", "/repos/{owner}/{repo}/git/refs", "contents:write", (*Server).createRef},
	{"GET", "/repos/{owner}/{repo}/commits/{ref}", "contents:read", (*Server).getCommit},
	{"GET", "/repos/{owner}/{repo}/commits/{commit_sha}/pulls", "pull_requests:read", (*Server).listPullsOfCommit},
}

func (s *Server) getRepository(c *call) answer { return ok(s.fullRepository(c.repo, c.token)) }

func (s *Server) getBranch(c *call) answer {
	name := c.PathValue("branch")
	tip := c.repo.ref("refs/heads/" + name)
	if tip == "" {
		return refuse(http.StatusNotFound, "Branch not found")
	}
	commit, _ := c.repo.info(tip)
	self := s.at("/repos/%s/branches/%s", c.repo.fullName(), name)
	protected := c.repo.protected[name]
	return ok(object{
		"name": name, "commit": s.commit(c.repo, commit), "protected": protected,
		"protection":     object{"enabled": protected, "required_status_checks": object{"enforcement_level": "off", "contexts": []any{}, "checks": []any{}}},
		"protection_url": self + "/protection", "_links": object{"self": self, "html": s.URL + "/" + c.repo.fullName() + "/tree/" + name},
	})
}

var wholeID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// revision is the commit that a ref of a path names: an id, a branch, or a ref
// without "refs/".
func (r *repository) revision(ref string) string {
	if wholeID.MatchString(ref) {
		return r.resolve(ref)
	}
	for _, name := range []string{"refs/heads/" + ref, "refs/tags/" + ref, "refs/" + ref} {
		if id := r.ref(name); id != "" {
			return r.resolve(id)
		}
	}
	return ""
}

func (s *Server) getCommit(c *call) answer {
	commit, found := c.repo.info(c.repo.revision(c.PathValue("ref")))
	if !found {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.PathValue("ref"))
	}
	return ok(s.commit(c.repo, commit))
}

// listPullsOfCommit names open pull requests that have a commit, and merged ones
// that it is the merge of.
func (s *Server) listPullsOfCommit(c *call) answer {
	id := c.repo.revision(c.PathValue("commit_sha"))
	if id == "" {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.PathValue("commit_sha"))
	}
	var found []*pull
	for _, p := range c.repo.pulls {
		has := slices.ContainsFunc(p.commits(), func(one commitInfo) bool { return one.sha == id })
		if p.closed == nil && has || p.merged != nil && (has || p.mergeCommit == id) {
			found = append(found, p)
		}
	}
	return list(c, found, s.simplePull)
}

// createRef makes a ref at a commit that is there.
func (s *Server) createRef(c *call) answer {
	name, id := c.text("ref"), c.text("sha")
	switch {
	case !strings.HasPrefix(name, "refs/") || strings.Count(name, "/") < 2:
		return refuse(http.StatusUnprocessableEntity, "Reference name must start with 'refs/'")
	case !wholeID.MatchString(id) || c.repo.resolve(id) == "":
		return refuse(http.StatusUnprocessableEntity, "Object does not exist")
	case c.repo.ref(name) != "":
		return refuse(http.StatusUnprocessableEntity, "Reference already exists")
	}
	if _, err := c.repo.run(nil, "", "update-ref", "--", name, id); err != nil {
		return refuse(http.StatusUnprocessableEntity, "Reference name is invalid")
	}
	s.synchronize(c.repo)
	api := s.at("/repos/%s/git/%s", c.repo.fullName(), name)
	target := object{"type": "commit", "sha": id, "url": s.at("/repos/%s/git/commits/%s", c.repo.fullName(), id)}
	return created(object{"ref": name, "node_id": "REF_" + name, "url": api, "object": target})
}
