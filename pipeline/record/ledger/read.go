package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A CorruptError is a transaction that we would not have written.
type CorruptError struct {
	ID  string
	Err error
}

func (e *CorruptError) Error() string { return "transaction " + e.ID + ": " + e.Err.Error() }
func (e *CorruptError) Hint() string {
	if errors.As(e.Err, new(*canon.NewerError)) { // which is no fault of it
		return ""
	}
	return "countersign validate " + e.ID
}
func (e *CorruptError) Unwrap() error { return e.Err }

// A DamagedError is something in the ledger that no transaction accounts for.
type DamagedError struct{ Path, Message string }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the ledger is damaged: %+q %s", e.Path, e.Message)
}

func (*DamagedError) Hint() string { return "countersign audit" }

// SchemaOf is the time and the version in a ledger.json. One that this program does not know is a *canon.NewerError.
func SchemaOf(raw []byte) (createdAt, version string, err error) {
	var schema struct {
		CreatedAt string `json:"created_at"`
		Version   string `json:"schema_version"`
	}
	if err = canon.UnmarshalDocument("the ledger", raw, &schema); err == nil {
		err = canon.CheckVersion("the ledger", schema.Version)
	}
	if err != nil && !errors.As(err, new(*canon.NewerError)) {
		err = &DamagedError{SchemaFile, "does not say which version of a ledger this is"}
	}
	return schema.CreatedAt, schema.Version, err
}

// ListedIn reads what ProposedDir or PullDir has of one transaction, without the others there.
func ListedIn(tree fs.FS, dir, id string) (l Listed, err error) {
	raw, err := fs.ReadFile(tree, path.Join(dir, id+".json"))
	if err == nil {
		err = canon.Unmarshal(raw, &l)
	}
	return l, err
}

// Denials reads what the ledger holds against a patch. Any doubt is an error:
// a denial that cannot be read must not read as none.
func Denials(tree fs.FS, patchID string) ([]Denial, error) {
	if !canon.IsHex64(patchID) {
		return nil, fmt.Errorf("%+q is no patch_id", patchID[:min(len(patchID), 80)])
	}
	return ReadIndex[Denial](tree, DeniedDir(patchID))
}

// ReadIndex reads the files of a directory <root>/<2 hex>/<patch_id>, none if
// it is not there.
func ReadIndex[T any](tree fs.FS, dir string) ([]T, error) {
	var entries []fs.DirEntry
	for _, d := range []string{path.Dir(path.Dir(dir)), path.Dir(dir), dir} {
		var err error
		if entries, err = ListDir(tree, d); err != nil || len(entries) == 0 {
			return nil, err
		}
	}
	var out []T
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		raw, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		var one T
		if err := canon.Unmarshal(raw, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// ListDir lists a directory of the ledger, which may not be there yet.
func ListDir(tree fs.FS, dir string) ([]fs.DirEntry, error) {
	info, err := fs.Lstat(tree, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &DamagedError{dir, "is not a directory"}
	}
	return fs.ReadDir(tree, dir)
}
