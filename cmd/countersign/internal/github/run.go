package github

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/google/go-github/v60/github"
)

// A workflowRun has what go-github leaves out.
type workflowRun struct {
	github.WorkflowRun
	Path string `json:"path"`
}

// Run reads a workflow run of the repository.
func (c *Client) Run(ctx context.Context, id int64) (forge.Run, error) {
	op := fmt.Sprintf("reading workflow run %d", id)
	var got workflowRun
	if _, err := c.inRepository(ctx, &got, nil, "actions", "runs", strconv.FormatInt(id, 10)); err != nil {
		return forge.Run{}, failed(op, err)
	}
	if got.GetID() != id {
		return forge.Run{}, failed(op, unusable("it is another run"))
	}
	run, err := got.run()
	return run, failed(op, err)
}

// PullRuns lists the workflow runs of pull requests that succeeded, in the order in
// which they ended: those on a commit or, for "", those that ended after since. The
// answers have the newest first.
func (c *Client) PullRuns(ctx context.Context, commit string, since time.Time) ([]forge.Run, error) {
	op := "looking for workflow runs of pull requests"
	query := url.Values{"event": {"pull_request"}, "status": {"success"}}
	if commit != "" {
		if err := checkCommit(commit); err != nil {
			return nil, failed(op, err)
		}
		query.Set("head_sha", commit)
	}
	type answer struct {
		Runs []workflowRun `json:"workflow_runs"`
	}
	var out []forge.Run
	err := pages(ctx, c, query, func(got answer) (more bool, err error) {
		more = true
		for _, told := range got.Runs {
			run, err := told.run()
			if err != nil {
				return false, err
			}
			switch {
			case run.UpdatedAt.Before(since):
				more = false
			case (commit == "" || run.HeadCommit == commit) && run.Event == "pull_request" && run.Conclusion == "success":
				out = append(out, run)
			}
		}
		return more, nil
	}, c.below("actions", "runs")...)
	slices.SortFunc(out, func(a, b forge.Run) int { return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.ID, b.ID)) })
	return out, failed(op, err)
}

func (got *workflowRun) run() (forge.Run, error) {
	if got.GetID() <= 0 || got.Repository == nil || checkCommit(got.GetHeadSHA()) != nil {
		return forge.Run{}, unusable("the run has no number, repository or head")
	}
	run := forge.Run{
		ID: got.GetID(), Attempt: got.GetRunAttempt(), Event: got.GetEvent(), Status: got.GetStatus(), Conclusion: got.GetConclusion(),
		UpdatedAt: got.GetUpdatedAt().Time, HeadBranch: got.GetHeadBranch(), HeadCommit: got.GetHeadSHA(),
	}
	run.Workflow = workflowOf(got.Path, got.GetRepository().GetFullName())
	if head := got.GetHeadRepository(); head.GetID() > 0 {
		run.HeadRepository = &ledger.Repository{ID: strconv.FormatInt(head.GetID(), 10), Name: head.GetFullName()}
		run.HeadOwner = head.GetOwner().GetLogin()
	}
	return run, nil
}

// workflowOf leaves out what GitHub puts around a path: its own repository's
// name before it, and the ref after it. Another repository's name stays, so that
// a workflow from there is not taken for one of this.
func workflowOf(told, repository string) string {
	told, _, _ = strings.Cut(told, "@")
	return strings.TrimPrefix(told, repository+"/")
}

// bundleFile is the one file of an artifact that is read.
const bundleFile = "bundle.json"

// zipOverhead is what an artifact may have beside the file, in bytes.
const zipOverhead = 1 << 20

// Artifact returns the file bundle.json of a workflow run's artifact: the newest
// of that name, as a run that is repeated makes another. Nothing is written to
// disk, and other files in it are left alone. A file of more than limit bytes is
// an error, and so are two of the name.
func (c *Client) Artifact(ctx context.Context, runID int64, name string, limit int64) ([]byte, error) {
	op := fmt.Sprintf("reading artifact %s of workflow run %d", ledger.OneLine(name, 60), runID)
	found, err := c.findArtifact(ctx, runID, name)
	if err != nil {
		return nil, failed(op, err)
	}
	archive, err := c.download(ctx, found, limit+zipOverhead)
	if err != nil {
		return nil, failed(op, err)
	}
	data, err := unzip(archive, limit)
	return data, failed(op, err)
}

// HasArtifact tells whether a workflow run has an artifact of a name.
func (c *Client) HasArtifact(ctx context.Context, runID int64, name string) (bool, error) {
	_, err := c.findArtifact(ctx, runID, name)
	if isKind(err, KindNotFound) {
		return false, nil
	}
	return err == nil, failed(fmt.Sprintf("looking for artifact %s of workflow run %d", ledger.OneLine(name, 60), runID), err)
}

func (c *Client) findArtifact(ctx context.Context, runID int64, name string) (int64, error) {
	newest := &github.Artifact{}
	err := pages(ctx, c, url.Values{"name": {name}}, func(got github.ArtifactList) (bool, error) {
		for _, a := range got.Artifacts {
			if a.GetName() == name && a.GetID() > newest.GetID() {
				newest = a
			}
		}
		return true, nil
	}, c.below("actions", "runs", strconv.FormatInt(runID, 10), "artifacts")...)
	switch {
	case err != nil:
		return 0, err
	case newest.GetID() == 0:
		return 0, &Error{Kind: KindNotFound, Message: "there is none of that name"}
	case newest.GetExpired():
		return 0, &Error{Kind: KindNotFound, Message: "it has expired"}
	}
	return newest.GetID(), nil
}

// download asks where the archive is and reads it there, without the token. The
// address is a secret for as long as it holds.
func (c *Client) download(ctx context.Context, id, limit int64) ([]byte, error) {
	where, _, err := c.api.Actions.DownloadArtifact(withCall(ctx, call{read: true, raw: true}), c.owner, c.name, id, 0)
	if err != nil {
		return nil, err
	}
	where = c.api.BaseURL.ResolveReference(where)
	if where.Scheme != c.api.BaseURL.Scheme && where.Scheme != "https" {
		return nil, unusable("the artifact is not at an https address")
	}
	req, err := http.NewRequestWithContext(withCall(ctx, call{read: true, raw: true, limit: limit}), http.MethodGet, where.String(), nil)
	if err != nil {
		return nil, unusable("the artifact's address cannot be read")
	}
	resp, err := c.storage.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, unusable("the artifact is not where it should be")
	}
	return io.ReadAll(resp.Body)
}

// unzip returns the one file of an archive that is asked for. Its size is
// counted as it is read: what the archive says of it is not relied on.
func unzip(archive []byte, limit int64) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, &Error{Kind: KindAnswer, Message: "the artifact is not a zip archive", Err: err}
	}
	var file *zip.File
	for _, f := range z.File {
		if f.Name != bundleFile {
			continue
		}
		if file != nil {
			return nil, unusable("the artifact has two files %s", bundleFile)
		}
		file = f
	}
	if file == nil {
		return nil, unusable("the artifact has no file %s", bundleFile)
	}
	r, err := file.Open()
	if err != nil {
		return nil, &Error{Kind: KindAnswer, Message: bundleFile + " cannot be read", Err: err}
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, &Error{Kind: KindAnswer, Message: bundleFile + " cannot be read", Err: err}
	case int64(len(data)) > limit:
		return nil, unusable("%s is over %d bytes", bundleFile, limit)
	}
	return data, nil
}
