package rest

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// An Artifact is one that a workflow run left, as the APIs tell it.
type Artifact struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Expired bool   `json:"expired"`
}

// Artifacts reads what workflow runs left.
type Artifacts struct {
	Forge        string       // as errors name it
	Base         *url.URL     // of the repository in the API
	API, Storage *http.Client // Storage has no token, for what lies outside of the API
	List         func(ctx context.Context, runID int64, name string) ([]Artifact, error)
}

// Artifact returns the file bundle.json of a workflow run's artifact: the newest
// of that name, as a run that is repeated makes another. Nothing is written to
// disk, and other files in it are left alone. A file of more than limit bytes is
// an error, and so are two of the name.
func (a Artifacts) Artifact(ctx context.Context, runID int64, name string, limit int64) (data []byte, err error) {
	found, err := a.newest(ctx, runID, name)
	var archive []byte
	if err == nil {
		archive, err = a.download(ctx, found, limit+ZipOverhead)
	}
	if err == nil {
		data, err = Unzip(archive, limit)
	}
	return data, Failed(a.Forge, fmt.Sprintf("reading artifact %s of workflow run %d", ledger.OneLine(name, 60), runID), err)
}

// HasArtifact tells whether a workflow run has an artifact of a name.
func (a Artifacts) HasArtifact(ctx context.Context, runID int64, name string) (bool, error) {
	_, err := a.newest(ctx, runID, name)
	if IsKind(err, KindNotFound) {
		return false, nil
	}
	return err == nil, Failed(a.Forge, fmt.Sprintf("looking for artifact %s of workflow run %d", ledger.OneLine(name, 60), runID), err)
}

func (a Artifacts) newest(ctx context.Context, runID int64, name string) (int64, error) {
	all, err := a.List(ctx, runID, name)
	if err != nil {
		return 0, err
	}
	return newest(all, name)
}

// newest returns the number of the newest artifact of a name: a run that is repeated
// makes another. If there is none, or that one has expired, the error is of KindNotFound.
func newest(all []Artifact, name string) (int64, error) {
	var last Artifact
	for _, a := range all {
		if a.Name == name && a.ID > last.ID {
			last = a
		}
	}
	switch {
	case last.ID == 0:
		return 0, &Error{Kind: KindNotFound, Message: "there is none of that name"}
	case last.Expired:
		return 0, &Error{Kind: KindNotFound, Message: "it has expired"}
	}
	return last.ID, nil
}

// download asks where the archive is, and reads it there by the client without the token. That address is a secret for as long
// as it holds.
func (a Artifacts) download(ctx context.Context, id, limit int64) ([]byte, error) {
	ask := *a.API
	ask.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	told, err := get(WithCall(ctx, Call{Read: true, Raw: true}), &ask, a.Base.JoinPath("actions", "artifacts", strconv.FormatInt(id, 10), "zip"))
	if err != nil {
		return nil, err
	}
	told.Body.Close()
	where, err := a.Base.Parse(told.Header.Get("Location"))
	if err != nil || told.StatusCode != http.StatusFound {
		return nil, Unusable("the server does not tell where the artifact is")
	}
	if where.Scheme != a.Base.Scheme && where.Scheme != "https" {
		return nil, Unusable("the artifact is not at an https address")
	}
	resp, err := get(WithCall(ctx, Call{Read: true, Raw: true, Limit: limit}), a.Storage, where)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") { // a page to log in, say
		return nil, Unusable("the artifact is not where it should be")
	}
	return io.ReadAll(resp.Body)
}

func get(ctx context.Context, client *http.Client, from *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, Unusable("the artifact's address cannot be read")
	}
	return client.Do(req)
}

// bundleFile is the one file of an artifact that is read.
const bundleFile = "bundle.json"

// ZipOverhead is what an artifact may have beside the file, in bytes.
const ZipOverhead = 1 << 20

// Unzip returns the bundle that an artifact's archive holds, of at most limit bytes. Its size is
// counted as it is read: what the archive says of it is not relied on.
func Unzip(archive []byte, limit int64) ([]byte, error) {
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
			return nil, Unusable("the artifact has two files %s", bundleFile)
		}
		file = f
	}
	if file == nil {
		return nil, Unusable("the artifact has no file %s", bundleFile)
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
		return nil, Unusable("%s is over %d bytes", bundleFile, limit)
	}
	return data, nil
}
