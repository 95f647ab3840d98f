package githubtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
)

// getArtifact redirects to an address that needs no token and must get none.
func (s *Server) getArtifact(c *call) answer {
	if c.token.account == nil || !s.may(c.token, c.repo, "actions", "read") {
		return c.forbidden()
	}
	for _, run := range c.repo.runs {
		for _, a := range run.artifacts {
			switch {
			case a.id != c.id("artifact_id"):
			case a.expired:
				return refuse(http.StatusGone, "Artifact has expired")
			default:
				return answer{status: http.StatusFound, header: http.Header{"Location": {s.downloadURL(a)}}}
			}
		}
	}
	return notFound
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
		for _, run := range repo.runs {
			for _, a := range run.artifacts {
				if strings.TrimPrefix(r.URL.Path, "/_download/") == fmt.Sprint(a.id) && r.URL.Query().Get("signature") == "good" {
					return a.data, http.StatusOK
				}
			}
		}
	}
	return nil, http.StatusForbidden
}

func (s *Server) artifact(run *workflowRun, a *artifact) object {
	api := s.at("/repos/%s/actions/artifacts/%d", run.repo.fullName(), a.id)
	return object{
		"id": a.id, "node_id": nodeID("AF", a.id), "name": a.name, "size_in_bytes": len(a.data), "url": api, "archive_download_url": api + "/zip",
		"expired": a.expired, "created_at": stamp(a.created), "updated_at": stamp(a.created), "expires_at": stamp(a.created.AddDate(0, 0, 90)),
		"workflow_run": object{
			"id": run.id, "repository_id": run.repo.id, "head_repository_id": run.head.id, "head_branch": run.branch, "head_sha": run.sha,
		},
	}
}
