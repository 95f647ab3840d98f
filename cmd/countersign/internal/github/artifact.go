package github

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// bundleFile is the one file of an artifact that is read.
const bundleFile = "bundle.json"

// zipOverhead is what an artifact may have beside the file, in bytes.
const zipOverhead = 1 << 20

type artifact struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Expired bool   `json:"expired"`
}

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
	newest := artifact{}
	err := allPages(func(page int) (*github.Response, error) {
		var got struct {
			Artifacts []artifact `json:"artifacts"`
		}
		query := url.Values{"name": {name}, "per_page": {"100"}, "page": {strconv.Itoa(page)}}
		resp, err := c.inRepository(ctx, &got, query, "actions", "runs", strconv.FormatInt(runID, 10), "artifacts")
		for _, a := range got.Artifacts {
			if a.Name == name && a.ID > newest.ID {
				newest = a
			}
		}
		return resp, err
	})
	switch {
	case err != nil:
		return 0, err
	case newest.ID == 0:
		return 0, &Error{Kind: KindNotFound, Message: "there is none of that name"}
	case newest.Expired:
		return 0, &Error{Kind: KindNotFound, Message: "it has expired"}
	}
	return newest.ID, nil
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
