package console

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// uploadTimeout is for one request of an upload.
const uploadTimeout = 2 * time.Minute

// maxAnswer is how many bytes are read of what a server says about an artifact.
const maxAnswer = 64 << 10

// Upload leaves a file with the run, as the artifact of that name. It makes the requests of actions/upload-artifact, version 4
// (github.actions.results.api.v1), for servers where that action is not at hand: Gitea and Forgejo. The runner names the server
// and gives the token, in ACTIONS_RESULTS_URL and ACTIONS_RUNTIME_TOKEN. No error has the address that the file goes to, which is
// a secret for as long as it holds.
func (s Step) Upload(ctx context.Context, artifact, file string, content []byte) error {
	err := s.upload(ctx, artifact, file, content)
	if err != nil {
		err = fmt.Errorf("uploading the artifact %s: %w", artifact, err)
	}
	return err
}

func (s Step) upload(ctx context.Context, artifact, file string, content []byte) error {
	token := s.gha.Getenv("ACTIONS_RUNTIME_TOKEN")
	service, err := url.Parse(s.gha.Getenv("ACTIONS_RESULTS_URL"))
	if token == "" || err != nil || service.Scheme != "http" && service.Scheme != "https" {
		return errors.New("the runner names no server for artifacts (ACTIONS_RESULTS_URL, ACTIONS_RUNTIME_TOKEN)")
	}
	service = service.JoinPath("twirp", "github.actions.results.api.v1.ArtifactService")
	call := func(method string, more map[string]any, into any) error {
		about := map[string]any{"workflow_run_backend_id": s.gha.Getenv("GITHUB_RUN_ID"), "workflow_job_run_backend_id": "0", "name": artifact}
		for name, value := range more {
			about[name] = value
		}
		body, err := json.Marshal(about)
		if err != nil {
			return err
		}
		answer, err := exchange(ctx, http.MethodPost, service.JoinPath(method).String(), body, http.Header{
			"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"},
		})
		if err == nil && json.Unmarshal(answer, into) != nil {
			err = errors.New("the server's answer cannot be read")
		}
		return err
	}
	var made struct {
		URL      string `json:"signedUploadUrl"`
		Snake    string `json:"signed_upload_url"`
		Finished bool   `json:"ok"`
	}
	if err := call("CreateArtifact", map[string]any{"version": 4}, &made); err != nil {
		return err
	}
	to, err := url.Parse(made.URL + made.Snake)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" {
		return errors.New("the server does not say where to")
	}
	archive, err := zipped(file, content)
	if err != nil {
		return err
	}
	query := to.Query()
	query.Set("comp", "block")
	to.RawQuery = query.Encode()
	if _, err := exchange(ctx, http.MethodPut, to.String(), archive, http.Header{"Content-Type": {"application/zip"}}); err != nil {
		return err
	}
	made.Finished = false
	if err = call("FinalizeArtifact", map[string]any{"size": strconv.Itoa(len(archive))}, &made); err == nil && !made.Finished {
		err = errors.New("the server did not keep it")
	}
	return err
}

// zipped is an archive of one file.
func zipped(name string, content []byte) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

// exchange sends a request and returns what was answered. No redirect is followed.
func exchange(ctx context.Context, method, address string, body []byte, header http.Header) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the server's address cannot be read")
	}
	req.Header = header
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if sent := (*url.Error)(nil); errors.As(err, &sent) {
		err = sent.Err // without the address
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("the server answered %s", strings.TrimSpace(resp.Status))
	}
	return answer, err
}
