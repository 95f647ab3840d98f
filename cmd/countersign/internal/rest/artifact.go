package rest

import (
	"archive/zip"
	"bytes"
	"io"
)

// An Artifact is one that a workflow run left, as the APIs tell it.
type Artifact struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Expired bool   `json:"expired"`
}

// Newest returns the number of the newest artifact of a name: a run that is repeated
// makes another. If there is none, or that one has expired, the error is of KindNotFound.
func Newest(all []Artifact, name string) (int64, error) {
	var newest Artifact
	for _, a := range all {
		if a.Name == name && a.ID > newest.ID {
			newest = a
		}
	}
	switch {
	case newest.ID == 0:
		return 0, &Error{Kind: KindNotFound, Message: "there is none of that name"}
	case newest.Expired:
		return 0, &Error{Kind: KindNotFound, Message: "it has expired"}
	}
	return newest.ID, nil
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
