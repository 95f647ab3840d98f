package githubtest

import (
	"archive/zip"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NewWorkflowRun is a run of a workflow on the head of a branch of
// HeadRepository, which is Repository if it is "". Path is of the workflow's
// file; Status is "completed" and Conclusion "success" if they are "".
type NewWorkflowRun struct {
	Repository     string
	HeadRepository string
	HeadBranch     string
	HeadSHA        string // the branch's tip if it is ""
	Name, Path     string
	Title          string // Name if it is ""
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
	title      string
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
	head := s.repo(cmp.Or(n.HeadRepository, n.Repository))
	run := &workflowRun{
		id: s.nextID(), repo: r, head: head, branch: n.HeadBranch, sha: cmp.Or(n.HeadSHA, head.ref("refs/heads/"+n.HeadBranch)), name: n.Name, path: n.Path, title: cmp.Or(n.Title, n.Name),
		event: n.Event, status: cmp.Or(n.Status, "completed"), conclusion: n.Conclusion, by: s.account(n.By), created: s.time(),
	}
	if run.status == "completed" {
		run.conclusion = cmp.Or(run.conclusion, "success")
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
	return first(r.runs, func(run *workflowRun) bool { return run.id == id })
}

// listRuns lists the newest first.
func (s *Server) listRuns(c *call) answer {
	var found []*workflowRun
	for _, run := range slices.Backward(c.repo.runs) {
		if c.is("event", run.event) && c.is("head_sha", run.sha) && c.is("branch", run.branch) && c.is("actor", run.by.login) &&
			c.is("status", run.status, run.conclusion) {
			found = append(found, run)
		}
	}
	return list(c, "workflow_runs", found, s.run)
}

func (s *Server) listArtifacts(c *call) answer {
	found := slices.DeleteFunc(slices.Clone(c.run.artifacts), func(a *artifact) bool { return !c.is("name", a.name) })
	return list(c, "artifacts", found, func(a *artifact) object { return s.artifact(c.run, a) })
}

// getArtifact redirects to an address that needs no token and must get none.
func (s *Server) getArtifact(c *call) answer {
	if c.token.account == nil || !s.may(c.token, c.repo, "actions", "read") {
		return c.forbidden()
	}
	switch a := c.repo.findArtifact(c.PathValue("artifact_id")); {
	case a == nil:
		return notFound
	case a.expired:
		return refuse(http.StatusGone, "Artifact has expired")
	default:
		return answer{status: http.StatusFound, header: http.Header{"Location": {s.downloadURL(a)}}}
	}
}

func (r *repository) findArtifact(id string) *artifact {
	for _, run := range r.runs {
		if a := first(run.artifacts, func(a *artifact) bool { return strconv.FormatInt(a.id, 10) == id }); a != nil {
			return a
		}
	}
	return nil
}

// downloadURL is on a host of another name, as with GitHub.
func (s *Server) downloadURL(a *artifact) string {
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	return fmt.Sprintf("http://localhost:%s/_download/%d?signature=good", port, a.id)
}

// serveDownload is the store of artifacts, which refuses requests with a token
// as GitHub's does.
func (s *Server) serveDownload(w http.ResponseWriter, r *http.Request) {
	seen, fault := s.note("download", r, nil, false)
	data, status := s.download(r)
	s.around(w, seen, fault, func(w *httptest.ResponseRecorder) {
		w.Header().Set("Content-Type", "application/zip")
		w.WriteHeader(status)
		_, _ = w.Write(data)
	})
}

func (s *Server) download(r *http.Request) ([]byte, int) {
	defer s.lock()()
	if r.Header.Get("Authorization") != "" {
		return nil, http.StatusBadRequest
	}
	for _, repo := range s.repos {
		a := repo.findArtifact(strings.TrimPrefix(r.URL.Path, "/_download/"))
		if a != nil && r.URL.Query().Get("signature") == "good" {
			return a.data, http.StatusOK
		}
	}
	return nil, http.StatusForbidden
}

func (s *Server) artifact(run *workflowRun, a *artifact) object {
	return object{
		"id": a.id, "node_id": nodeID("AF", a.id), "name": a.name, "size_in_bytes": len(a.data), "expired": a.expired,
		"archive_download_url": s.at("/repos/%s/actions/artifacts/%d/zip", run.repo.fullName(), a.id),
		"created_at":           stamp(a.created), "updated_at": stamp(a.created), "expires_at": stamp(a.created.AddDate(0, 0, 90)),
		"workflow_run": object{
			"id": run.id, "repository_id": run.repo.id, "head_repository_id": run.head.id, "head_branch": run.branch, "head_sha": run.sha,
		},
	}
}

// run is a workflow's run. As on GitHub it names no pull requests when the head
// is in a fork.
func (s *Server) run(run *workflowRun) object {
	pulls := s.pullsOf(run.repo, run.sha)
	if run.head != run.repo {
		pulls = []object{}
	}
	return object{
		"id": run.id, "name": run.name, "node_id": nodeID("WFR", run.id), "head_branch": run.branch, "head_sha": run.sha, "path": run.path,
		"display_title": run.title,
		"run_number":    1, "run_attempt": 1, "event": run.event, "status": run.status, "conclusion": orNull(run.conclusion), "workflow_id": 1,
		"html_url":      fmt.Sprintf("%s/%s/actions/runs/%d", s.URL, run.repo.fullName(), run.id),
		"pull_requests": pulls, "created_at": stamp(run.created), "updated_at": stamp(run.created), "run_started_at": stamp(run.created),
		"actor": s.user(run.by), "triggering_actor": s.user(run.by), "head_commit": s.runCommit(run),
		"repository": s.repository(run.repo), "head_repository": s.repository(run.head),
	}
}

func (s *Server) runCommit(run *workflowRun) object {
	c, _ := run.head.info(run.sha)
	who := func(g signature) object { return object{"name": g.name, "email": g.email} }
	return object{"id": c.sha, "tree_id": c.tree, "message": c.message, "timestamp": c.committer.date, "author": who(c.author), "committer": who(c.committer)}
}
