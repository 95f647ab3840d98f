package githubtest

import (
	"archive/zip"
	"bytes"
	"maps"
	"slices"
	"time"
)

var runOperations = []operation{
	{"GET", "/repos/{owner}/{repo}/actions/runs", "actions:read", (*Server).listRuns},
	{"GET", "/repos/{owner}/{repo}/actions/runs/{run_id}", "actions:read", onRun((*Server).getRun)},
	{"GET", "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts", "actions:read", onRun((*Server).listArtifacts)},
	{"GET", "/repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}", "", (*Server).getArtifact},
}

// NewWorkflowRun is a run of a workflow on the head of a branch of
// HeadRepository, which is Repository if it is "". Path is of the workflow's
// file; Status is "completed" and Conclusion "success" if they are "".
type NewWorkflowRun struct {
	Repository     string
	HeadRepository string
	HeadBranch     string
	HeadSHA        string // the branch's tip if it is ""
	Name, Path     string
	Event          string
	Status         string
	Conclusion     string
	By             string
}

// NewArtifact is a file that a run uploads: an archive of Files, or Bytes as
// they are.
type NewArtifact struct {
	Repository string
	Run        int64
	Name       string
	Files      map[string]string
	Bytes      []byte
	Expired    bool
}

type workflowRun struct {
	id         int64
	repo, head *repository
	branch     string
	sha        string
	name, path string
	event      string
	status     string
	conclusion string
	by         *account
	created    time.Time
	artifacts  []*artifact
}

type artifact struct {
	id      int64
	name    string
	data    []byte
	expired bool
	created time.Time
}

// WorkflowRun adds a run and returns its id.
func (s *Server) WorkflowRun(n NewWorkflowRun) int64 {
	defer s.lock()()
	r := s.repo(n.Repository)
	head := r
	if n.HeadRepository != "" {
		head = s.repo(n.HeadRepository)
	}
	run := &workflowRun{
		id: s.nextID(), repo: r, head: head, branch: n.HeadBranch, sha: or(n.HeadSHA, head.ref("refs/heads/"+n.HeadBranch)), name: n.Name, path: n.Path,
		event: n.Event, status: or(n.Status, "completed"), conclusion: n.Conclusion, by: s.account(n.By), created: s.time(),
	}
	if run.status == "completed" {
		run.conclusion = or(run.conclusion, "success")
	}
	if run.sha == "" {
		misuse("no branch %s in %s", n.HeadBranch, head.fullName())
	}
	r.runs = append(r.runs, run)
	return run.id
}

// Artifact adds an artifact to a run and returns its id.
func (s *Server) Artifact(n NewArtifact) int64 {
	defer s.lock()()
	run := s.repo(n.Repository).findRun(n.Run)
	if run == nil {
		misuse("no run %d", n.Run)
	}
	data := n.Bytes
	if data == nil {
		data = archive(n.Files)
	}
	a := &artifact{s.nextID(), n.Name, data, n.Expired, s.time()}
	run.artifacts = append(run.artifacts, a)
	return a.id
}

func archive(files map[string]string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.Create(name)
		if err != nil {
			misuse("%v", err)
		}
		_, _ = w.Write([]byte(files[name]))
	}
	if err := z.Close(); err != nil {
		misuse("%v", err)
	}
	return b.Bytes()
}

func (r *repository) findRun(id int64) *workflowRun {
	for _, run := range r.runs {
		if run.id == id {
			return run
		}
	}
	return nil
}

func onRun(do func(*Server, *call, *workflowRun) answer) func(*Server, *call) answer {
	return func(s *Server, c *call) answer {
		run := c.repo.findRun(c.id("run_id"))
		if run == nil {
			return notFound
		}
		return do(s, c, run)
	}
}

func (s *Server) getRun(_ *call, run *workflowRun) answer { return ok(s.run(run)) }

// listRuns lists the newest first.
func (s *Server) listRuns(c *call) answer {
	query := c.URL.Query()
	var found []*workflowRun
	for _, run := range slices.Backward(c.repo.runs) {
		is := func(name, value string) bool { return !query.Has(name) || query.Get(name) == value }
		status := is("status", run.status) || is("status", run.conclusion)
		if is("event", run.event) && is("head_sha", run.sha) && is("branch", run.branch) && is("actor", run.by.login) && status {
			found = append(found, run)
		}
	}
	return counted(c, "workflow_runs", found, s.run)
}

func (s *Server) listArtifacts(c *call, run *workflowRun) answer {
	found := run.artifacts
	if name := c.URL.Query().Get("name"); name != "" {
		found = slices.DeleteFunc(slices.Clone(found), func(a *artifact) bool { return a.name != name })
	}
	return counted(c, "artifacts", found, func(a *artifact) object { return s.artifact(run, a) })
}
