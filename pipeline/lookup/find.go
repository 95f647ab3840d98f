// Package lookup finds transactions in a ledger: by what somebody calls them, the newest, the open ones, those of a pull request
// or of a patch, and who proposed it; and has words for what they show. Nothing is decided by a list.
package lookup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// What Find returns besides other errors.
var (
	ErrNoTransactions = fault.Refuse("the ledger has no transactions yet", "countersign review FILE")
	ErrNotFound       = fault.Refuse("no such transaction", "countersign list")
	ErrNoneOpen       = fault.Refuse("no transaction is open", "countersign review FILE")
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

func (*AmbiguousError) Hint() string {
	return "name one of them by its id, or by more characters of it"
}

// Find returns the id of the transaction that name means: an id, a unique
// prefix of one (with or without "tx_", in any case), a unique part of at least four
// characters, a patch_id, at least eight digits of one, or a fingerprint. A whole id, and whatever names a patch,
// is found without reading the other transactions.
func Find(tree fs.FS, name string) (string, error) {
	years, err := ledger.ListDir(tree, ledger.TransactionsDir)
	if err != nil {
		return "", err
	}
	if len(years) == 0 {
		return "", ErrNoTransactions
	}
	id := ledger.IDPrefix + strings.TrimPrefix(strings.ToUpper(name), "TX_")
	if ledger.CheckID(id) == nil {
		_, err := fs.Stat(tree, ledger.Dir(id))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %q", ErrNotFound, name)
		}
		if err != nil {
			return "", err
		}
		return id, nil
	}
	ids, err := byPatch(tree, strings.TrimPrefix(name, "patchset:"))
	if err != nil {
		return "", err
	}
	if len(name) <= len(id) && len(id) > len(ledger.IDPrefix) {
		all, err := IDs(tree)
		if err != nil {
			return "", err
		}
		part := strings.TrimPrefix(id, ledger.IDPrefix)
		for _, other := range all {
			within := len(part) >= leastPart && strings.Contains(other, part)
			if (within || strings.HasPrefix(other, id)) && !slices.Contains(ids, other) {
				ids = append(ids, other)
			}
		}
	}
	slices.Sort(ids)
	return only(name, ids, fmt.Errorf("%w: %q", ErrNotFound, name))
}

// leastPart is how much of an id, from anywhere in it, may stand for it.
const leastPart = 4

// byPatch returns the transactions of every patch that name is, or begins.
func byPatch(tree fs.FS, name string) (ids []string, err error) {
	if len(name) < 8 || len(name) > 64 || !canon.IsHex(name, len(name)) {
		return nil, nil
	}
	shard := path.Join(ledger.ProposedRoot, name[:2])
	for _, dir := range []string{ledger.ProposedRoot, shard} {
		if entries, err := ledger.ListDir(tree, dir); err != nil || len(entries) == 0 {
			return nil, err
		}
	}
	patches, err := ledger.ListDir(tree, shard)
	if err != nil {
		return nil, err
	}
	for _, p := range patches {
		if !strings.HasPrefix(p.Name(), name) || !canon.IsHex64(p.Name()) {
			continue
		}
		found, err := Proposals(tree, p.Name())
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			ids = append(ids, f.TransactionID)
		}
	}
	return ids, nil
}

// only returns the one id that a name stands for; none is the error where there
// is no id.
func only(name string, ids []string, none error) (string, error) {
	switch len(ids) {
	case 0:
		return "", none
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
	var ids []string
	for _, t := range open {
		ids = append(ids, t.TransactionID)
	}
	return only("", ids, ErrNoneOpen)
}

// Newest returns the id of the transaction that was made last.
func Newest(tree fs.FS) (string, error) {
	for id, err := range Backward(tree) {
		return id, err
	}
	return "", ErrNoTransactions
}

// Read returns the log of a transaction in the ledger, having checked that
// transaction.json agrees with it.
func Read(tree fs.FS, id string) (*ledger.Log, error) {
	raw, err := ledger.ReadFile(tree, id, ledger.EventsFile)
	if err != nil {
		return nil, err
	}
	l, err := ledger.ReadLog(raw)
	if err != nil {
		return nil, &ledger.CorruptError{ID: id, Err: err}
	}
	state, err := ledger.ReadFile(tree, id, ledger.TransactionFile)
	if err != nil {
		return nil, err
	}
	if tx := l.Transaction(); tx.TransactionID != id || !tx.IsWrittenAs(state) {
		return nil, &ledger.CorruptError{ID: id, Err: errors.New("transaction.json is not what its events say")}
	}
	return l, nil
}

// State reads transaction.json alone, for lists: it is ours in form and of this
// transaction, but whether its events say the same is not looked at.
func State(tree fs.FS, id string) (ledger.Transaction, error) {
	raw, err := ledger.ReadFile(tree, id, ledger.TransactionFile)
	if err != nil {
		return ledger.Transaction{}, err
	}
	var t ledger.Transaction
	if err := canon.Unmarshal(raw, &t); err != nil {
		return ledger.Transaction{}, &ledger.CorruptError{ID: id, Err: fmt.Errorf("%s: %w", ledger.TransactionFile, err)}
	}
	if t.TransactionID != id || !slices.Contains(ledger.Statuses, t.Status) {
		return ledger.Transaction{}, &ledger.CorruptError{ID: id, Err: errors.New("transaction.json is not this transaction's")}
	}
	return t, nil
}

// Latest returns the state of the newest transactions, up to max of them, oldest
// first, and whether there are more. It reads none that is older. Only those that it
// keeps count.
func Latest(tree fs.FS, max int, keep func(ledger.Transaction) bool) (latest []ledger.Transaction, more bool, err error) {
	for id, err := range Backward(tree) {
		if err != nil {
			return nil, false, err
		}
		t, err := State(tree, id)
		if err != nil {
			return nil, false, err
		}
		if !keep(t) {
			continue
		}
		if more = len(latest) == max; more {
			break
		}
		latest = append(latest, t)
	}
	slices.Reverse(latest)
	return latest, more, nil
}

// Each returns the state of every transaction, oldest first, but for those that
// are damaged.
func Each(tree fs.FS) (all []ledger.Transaction, damaged []*ledger.CorruptError, err error) {
	ids, err := IDs(tree)
	if err != nil {
		return nil, nil, err
	}
	all = make([]ledger.Transaction, 0, len(ids))
	for _, id := range ids {
		var corrupt *ledger.CorruptError
		t, err := State(tree, id)
		switch {
		case errors.As(err, &corrupt):
			damaged = append(damaged, corrupt)
		case err != nil:
			return nil, nil, err
		default:
			all = append(all, t)
		}
	}
	return all, damaged, nil
}

// All is Each where nothing may be damaged.
func All(tree fs.FS) ([]ledger.Transaction, error) {
	all, damaged, err := Each(tree)
	if err == nil && len(damaged) > 0 {
		return nil, damaged[0]
	}
	return all, err
}

// Open returns the transactions that are not closed, oldest first.
func Open(tree fs.FS) ([]ledger.Transaction, error) {
	all, err := All(tree)
	return slices.DeleteFunc(all, func(t ledger.Transaction) bool { return t.Closed }), err
}

// StatesOnPull returns the states of the transactions of a pull request, oldest
// first.
func StatesOnPull(tree fs.FS, in ledger.Repository, number int) ([]ledger.Transaction, error) {
	listed, err := OnPull(tree, number)
	if err != nil {
		return nil, err
	}
	var out []ledger.Transaction
	for _, l := range listed {
		tx, err := ListedState(tree, l.TransactionID)
		if err != nil {
			return nil, err
		}
		if p := tx.Pointers.Proposal; p != nil && p.PullRequest == number && p.Repository != nil && p.Repository.ID == in.ID {
			out = append(out, tx)
		}
	}
	return out, nil
}

// ListedState reads the state of a transaction whose id is the ledger's word,
// as an index has it.
func ListedState(tree fs.FS, id string) (ledger.Transaction, error) {
	if err := ledger.CheckID(id); err != nil {
		return ledger.Transaction{}, err
	}
	return State(tree, id)
}

// NoPatch is the error of a transaction that proposes no change, as the review of an exception.
func NoPatch(id string) error { return fault.Refuse(id+" proposes no change", "countersign show "+id) }

// StoredPatch reads what the ledger has of a transaction's patch, and proves
// that it is what was stored.
func StoredPatch(tree fs.FS, tx ledger.Transaction) ([]byte, error) {
	if tx.Pointers.Proposal == nil {
		return nil, NoPatch(tx.TransactionID)
	}
	diff, err := ledger.ReadFile(tree, tx.TransactionID, ledger.PatchFile(tx.PatchID()))
	if err != nil {
		return nil, fmt.Errorf("reading the stored patch: %w", err)
	}
	if canon.Sum(diff) != cmp.Or(tx.Pointers.Proposal.PatchRedactedSHA256, "sha256:"+tx.PatchID()) {
		return nil, &ledger.CorruptError{ID: tx.TransactionID, Err: fmt.Errorf("the stored patch does not hash to its patch_id")}
	}
	return diff, nil
}

// OnPull returns the transactions of the pull requests with a number, which may
// be of several repositories, oldest first.
func OnPull(tree fs.FS, number int) ([]ledger.Listed, error) {
	return ledger.ReadIndex[ledger.Listed](tree, ledger.PullDir(number))
}

// Proposals returns the transactions that propose a patch, oldest first.
func Proposals(tree fs.FS, patchID string) ([]ledger.Listed, error) {
	if !canon.IsHex64(patchID) {
		return nil, fmt.Errorf("%+q is no patch_id", patchID[:min(len(patchID), 80)])
	}
	return ledger.ReadIndex[ledger.Listed](tree, ledger.ProposedDir(patchID))
}
