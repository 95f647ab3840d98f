package githubtest

import (
	"fmt"
	"slices"
	"time"
)

// A Deployment is one of a commit. States are those of its statuses, the oldest first.
type Deployment struct {
	Commit, Environment string
	States              []string

	id int64
	at time.Time
}

// Deploy adds a deployment.
func (s *Server) Deploy(repository string, d Deployment) {
	defer s.lock()()
	d.id, d.at = s.nextID(), s.time()
	r := s.repo(repository)
	r.deployments = append(r.deployments, d)
}

// listDeployments lists them, the newest first.
func (s *Server) listDeployments(c *call) answer {
	var found []Deployment
	for _, d := range slices.Backward(c.repo.deployments) {
		if c.is("sha", d.Commit) && c.is("environment", d.Environment) {
			found = append(found, d)
		}
	}
	return list(c, "", found, func(d Deployment) object {
		at := fmt.Sprintf("%s/repos/%s/deployments/%d", s.API(), c.repo.fullName(), d.id)
		return object{
			"url": at, "id": d.id, "node_id": nodeID("DE", d.id), "sha": d.Commit, "ref": d.Commit, "task": "deploy", "payload": object{}, "environment": d.Environment,
			"description": nil, "creator": nil, "created_at": stamp(d.at), "updated_at": stamp(d.at), "statuses_url": at + "/statuses", "repository_url": s.API() + "/repos/" + c.repo.fullName(),
		}
	})
}

// listDeploymentStatuses lists those of a deployment, the newest first.
func (s *Server) listDeploymentStatuses(c *call) answer {
	i := slices.IndexFunc(c.repo.deployments, func(d Deployment) bool { return d.id == c.id("deployment_id") })
	if i < 0 {
		return notFound
	}
	d := c.repo.deployments[i]
	states := slices.Clone(d.States)
	slices.Reverse(states)
	at := fmt.Sprintf("%s/repos/%s/deployments/%d", s.API(), c.repo.fullName(), d.id)
	return list(c, "", states, func(state string) object {
		return object{
			"url": at + "/statuses/1", "id": d.id, "node_id": nodeID("DES", d.id), "state": state, "creator": nil, "description": "", "target_url": "",
			"created_at": stamp(d.at), "updated_at": stamp(d.at), "deployment_url": at, "repository_url": s.API() + "/repos/" + c.repo.fullName(),
		}
	})
}
