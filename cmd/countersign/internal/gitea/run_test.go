package gitea_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// upload is a workflow that leaves an artifact, by the calls that GitHub's action for it
// makes (version 4 of its protocol).
const upload = `on:
  pull_request:
jobs:
  propose:
    runs-on: ubuntu-latest
    steps:
      - run: |
          set -e
          echo %s | base64 -d > bundle.zip
          api=$ACTIONS_RESULTS_URL/twirp/github.actions.results.api.v1.ArtifactService
          ids="\"workflow_run_backend_id\": \"$GITHUB_RUN_ID\", \"workflow_job_run_backend_id\": \"1\", \"name\": \"countersign-bundle\""
          call() { curl -sSf -H "Authorization: Bearer $ACTIONS_RUNTIME_TOKEN" -H 'Content-Type: application/json' "$api/$1" -d "$2"; }
          url=$(call CreateArtifact "{$ids, \"version\": 4}" | sed 's/.*"signedUploadUrl": *"\([^"]*\)".*/\1/; s/\\u0026/\&/g')
          curl -sSf -X PUT --data-binary @bundle.zip "$url&comp=block&blockid=MA=="
          call FinalizeArtifact "{$ids, \"size\": \"$(stat -c %%s bundle.zip)\", \"hash\": \"sha256:$(sha256sum bundle.zip | cut -d' ' -f1)\"}"
`

func TestRuns(t *testing.T) {
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	must(must(z.Create("bundle.json")).Write([]byte(`{"a":1}`)))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	ctx := t.Context()
	if !w.ListsRuns() {
		t.Skip("\n\n*** NOT TESTED: workflow runs, which this server does not tell of ***\n")
	}
	w.client.WithPages(1)
	w.Runner(forgetest.RunnerOptions{})
	began := time.Now().Add(-time.Minute)
	workflow := map[string]string{".github/workflows/countersign-events.yml": fmt.Sprintf(upload, base64.StdEncoding.EncodeToString(archive.Bytes()))}
	first := w.site.Commit(w.bob, "topic", "work", workflow)
	w.site.PullRequest(w.bob, "topic", "main", "Work")
	w.site.WaitRuns(1)
	head := w.site.Commit(w.bob, "topic", "more", map[string]string{"c.txt": "c\n"})
	w.site.Succeeded(t, w.site.WaitRuns(2))
	fork := w.site.Fork(w.eve) // whose run waits for somebody who lets it
	fork.Commit(w.eve, "topic", "theirs", workflow)
	w.site.PullRequest(w.eve, "eve:topic", "main", "Theirs")

	runs := must(w.client.PullRuns(ctx, "", began))
	if len(runs) != 2 {
		t.Fatalf("%+v", runs)
	}
	for _, run := range runs {
		if run.Workflow != ".github/workflows/countersign-events.yml" || run.HeadOwner != "acme" || run.HeadBranch != "topic" || run.HeadRepository == nil ||
			run.HeadRepository.Name != "acme/site" || run.Event != "pull_request" || run.UpdatedAt.Before(began) {
			t.Errorf("%+v", run)
		}
	}
	if of := must(w.client.PullRuns(ctx, head, time.Time{})); len(of) != 1 || of[0].HeadCommit != head {
		t.Errorf("after a push: %+v", of)
	}
	if later := must(w.client.PullRuns(ctx, "", time.Now().Add(time.Hour))); len(later) != 0 {
		t.Errorf("%+v", later)
	}
	of := must(w.client.PullRuns(ctx, first, time.Time{}))
	if len(of) != 1 {
		t.Fatalf("%+v", of)
	}
	if has := must(w.client.HasArtifact(ctx, of[0].ID, "countersign-bundle")); !has {
		t.Error("the artifact is not there")
	}
	if has := must(w.client.HasArtifact(ctx, of[0].ID, "other")); has {
		t.Error("an artifact of another name is there")
	}
	if data := must(w.client.Artifact(ctx, of[0].ID, "countersign-bundle", 7)); string(data) != `{"a":1}` {
		t.Errorf("%q", data)
	}
	if data, err := w.client.Artifact(ctx, of[0].ID, "countersign-bundle", 6); err == nil {
		t.Errorf("more than the limit: %q", data)
	}
	if _, err := w.client.Artifact(ctx, of[0].ID, "other", 7); !errors.Is(err, forge.ErrNotFound) {
		t.Error(err)
	}
}
