package githubtest

import "fmt"

// run is a workflow's run. As on GitHub it names no pull requests when the head
// is in a fork.
func (s *Server) run(run *workflowRun) object {
	api := s.at("/repos/%s/actions/runs/%d", run.repo.fullName(), run.id)
	suite := s.at("/repos/%s/check-suites/%d", run.repo.fullName(), run.id)
	pulls := s.pullsOf(run.repo, run.sha)
	if run.head != run.repo {
		pulls = []object{}
	}
	workflow := s.at("/repos/%s/actions/workflows/%d", run.repo.fullName(), 1)
	o := object{
		"id": run.id, "name": run.name, "node_id": nodeID("WFR", run.id), "head_branch": run.branch, "head_sha": run.sha, "path": run.path, "display_title": run.name,
		"run_number": 1, "run_attempt": 1, "event": run.event, "status": run.status, "conclusion": orNull(run.conclusion), "workflow_id": 1,
		"check_suite_id": run.id, "check_suite_node_id": nodeID("CS", run.id), "url": api, "html_url": fmt.Sprintf("%s/%s/actions/runs/%d", s.URL, run.repo.fullName(), run.id),
		"pull_requests": pulls, "created_at": stamp(run.created), "updated_at": stamp(run.created), "run_started_at": stamp(run.created),
		"actor": s.user(run.by), "triggering_actor": s.user(run.by), "referenced_workflows": []any{}, "previous_attempt_url": nil,
		"check_suite_url": suite, "workflow_url": workflow, "head_commit": s.runCommit(run),
		"repository": s.minimalRepository(run.repo), "head_repository": s.minimalRepository(run.head),
	}
	return addresses(o, api, "jobs logs artifacts cancel rerun")
}

func (s *Server) runCommit(run *workflowRun) object {
	c, _ := run.head.info(run.sha)
	who := func(g signature) object { return object{"name": g.name, "email": g.email} }
	return object{"id": c.sha, "tree_id": c.tree, "message": c.message, "timestamp": c.committer.date, "author": who(c.author), "committer": who(c.committer)}
}
