package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/oklog/ulid/v2"
)

const idPrefix = "tx_"

// NewID makes a transaction's id: "tx_" and a ULID of the moment and of ten
// bytes of entropy.
func NewID(at time.Time, entropy io.Reader) (string, error) {
	u, err := ulid.New(ulid.Timestamp(at), entropy)
	if err != nil {
		return "", fmt.Errorf("making a transaction id: %w", err)
	}
	return idPrefix + u.String(), nil
}

// CheckID tells whether s is a whole transaction id.
func CheckID(s string) error {
	body, ok := strings.CutPrefix(s, idPrefix)
	if u, err := ulid.ParseStrict(body); !ok || err != nil || u.String() != body {
		return fmt.Errorf("%q is not a transaction id", s)
	}
	return nil
}

func idTime(id string) time.Time {
	return ulid.MustParseStrict(strings.TrimPrefix(id, idPrefix)).Timestamp().UTC()
}

// What Find returns besides other errors.
var (
	ErrNoTransactions = errors.New("the ledger has no transactions yet")
	ErrNotFound       = errors.New("no such transaction")
	ErrNoneOpen       = errors.New("no transaction is open")
)

// An AmbiguousError is a name that several transactions answer to. Name is
// empty when none was given.
type AmbiguousError struct {
	Name string
	IDs  []string
}

func (e *AmbiguousError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%d transactions are open: %s", len(e.IDs), strings.Join(e.IDs, ", "))
	}
	return fmt.Sprintf("%q names %d transactions: %s", e.Name, len(e.IDs), strings.Join(e.IDs, ", "))
}

// Find returns the id of the transaction that name means: an id, a unique
// prefix of one (with or without "tx_", in any case), a patch_id, at least
// eight digits of one, or a fingerprint.
func Find(tree fs.FS, name string) (string, error) {
	ids, err := IDs(tree)
	if err != nil {
		return "", err
	}
	if len(ids) == 0 {
		return "", ErrNoTransactions
	}
	return one(name, matching(tree, ids, name))
}

func matching(tree fs.FS, ids []string, name string) []string {
	prefix := strings.TrimPrefix(strings.ToUpper(name), "TX_")
	var out []string
	for _, id := range ids {
		if namesPatch(tree, id, strings.TrimPrefix(name, "patchset:")) || prefix != "" && strings.HasPrefix(id[len(idPrefix):], prefix) {
			out = append(out, id)
		}
	}
	return out
}

func namesPatch(tree fs.FS, id, name string) bool {
	if canon.IsHex64(name) {
		_, err := fs.Stat(tree, path.Join(Dir(id), PatchFile(name)))
		return err == nil
	}
	if len(name) < 8 || strings.Trim(name, "0123456789abcdef") != "" {
		return false
	}
	entries, err := fs.ReadDir(tree, path.Join(Dir(id), "patches"))
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), name) })
}

func one(name string, ids []string) (string, error) {
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("%w: %q", ErrNotFound, name)
	case 1:
		return ids[0], nil
	}
	return "", &AmbiguousError{name, ids}
}

// FindOpen returns the one open transaction, for commands that name none.
func FindOpen(tree fs.FS) (string, error) {
	open, err := Open(tree)
	if err != nil {
		return "", err
	}
	switch len(open) {
	case 0:
		return "", ErrNoneOpen
	case 1:
		return open[0].TransactionID, nil
	}
	e := &AmbiguousError{}
	for _, t := range open {
		e.IDs = append(e.IDs, t.TransactionID)
	}
	return "", e
}

// Newest returns the id of the transaction that was made last.
func Newest(tree fs.FS) (string, error) {
	ids, err := IDs(tree)
	if err != nil {
		return "", err
	}
	if len(ids) == 0 {
		return "", ErrNoTransactions
	}
	return ids[len(ids)-1], nil
}

// All returns the state of every transaction, oldest first.
func All(tree fs.FS) ([]Transaction, error) {
	ids, err := IDs(tree)
	if err != nil {
		return nil, err
	}
	out := make([]Transaction, 0, len(ids))
	for _, id := range ids {
		t, err := State(tree, id)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// Open returns the transactions that are not closed, oldest first.
func Open(tree fs.FS) ([]Transaction, error) {
	all, err := All(tree)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(t Transaction) bool { return t.Closed }), nil
}
