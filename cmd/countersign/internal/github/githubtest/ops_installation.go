package githubtest

import (
	"net/http"
	"slices"
)

var installationOperations = []operation{
	{"GET", "/installation/repositories", "", (*Server).listInstallation},
	{"POST", "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches", "actions:write", (*Server).startWorkflow},
}

// Started are the workflows that were started by hand in a repository, as in
// "fleet.yml on main".
func (s *Server) Started(repository string) []string {
	defer s.lock()()
	return slices.Clone(s.repo(repository).started)
}

func (s *Server) listInstallation(c *call) answer {
	if !c.token.app {
		return refuse(http.StatusForbidden, "You must authenticate with an installation access token in order to list repositories for an installation.")
	}
	var found []*repository
	for _, r := range s.repos {
		if !r.deleted && slices.Contains(c.token.repos, r.id) {
			found = append(found, r)
		}
	}
	return counted(c, "repositories", found, s.repository)
}

// startWorkflow takes a workflow by the name of its file, and does not look
// whether that may be started by hand.
func (s *Server) startWorkflow(c *call) answer {
	file, branch := c.PathValue("workflow_id"), c.text("ref")
	tip := c.repo.ref("refs/heads/" + branch)
	if tip == "" {
		return refuse(http.StatusUnprocessableEntity, "No ref found for: "+branch)
	}
	if _, err := c.repo.run(nil, "", "cat-file", "-e", tip+":.github/workflows/"+file); err != nil {
		return notFound
	}
	c.repo.started = append(c.repo.started, file+" on "+branch)
	return answer{status: http.StatusNoContent}
}
