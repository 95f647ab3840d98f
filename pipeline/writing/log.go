package writing

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// FileChange returns the item that proposes the patch, as it stands now.
func FileChange(l *ledger.Log) (ledger.TurnItem, bool) {
	for _, it := range slices.Backward(ledger.Of[*ledger.TurnItem](l)) {
		if it.Item.Type == ledger.FileChange {
			return *it, true
		}
	}
	return ledger.TurnItem{}, false
}

// NextItem is the id of the next item, having counted those there are.
func NextItem(l *ledger.Log) string {
	ids := map[string]bool{}
	for _, p := range l.Payloads() {
		switch p := p.(type) {
		case *ledger.TurnItem:
			ids[p.Item.ID] = true
		case *ledger.CommandItem:
			ids[p.Item.ID] = true
		case *ledger.TraceItem:
			ids[p.Item.ID] = true
		}
	}
	return fmt.Sprintf("item_%d", len(ids)+1)
}

// NextValidate is the beginning of the next validate, having counted those there are.
func NextValidate(l *ledger.Log) *ledger.ValidateStart {
	return &ledger.ValidateStart{TransactionID: l.Transaction().TransactionID, ValidateID: fmt.Sprintf("validate_%d", len(ledger.Of[*ledger.ValidateStart](l))+1)}
}

// OpenRequests returns the approval requests that nobody answered yet.
func OpenRequests(l *ledger.Log) []ledger.ApprovalRequest {
	var out []ledger.ApprovalRequest
	answered := map[string]bool{}
	for _, d := range ledger.Of[*ledger.ApprovalDecision](l) {
		answered[d.ApprovalRequestID] = true
	}
	for _, r := range ledger.Of[*ledger.ApprovalRequest](l) {
		if !answered[r.ApprovalRequestID] {
			out = append(out, *r)
		}
	}
	return out
}

// TakesProposals reports whether a further proposal of a transaction's patch is recorded with it.
func TakesProposals(l *ledger.Log) bool {
	tx := l.Transaction()
	return !tx.Closed && !tx.GateOnly() && slices.Contains(ledger.OpenStatuses, tx.Status) && !l.Applying()
}

// CheckSchema reports whether a tree is a ledger of a version that this program
// reads: by ledger.json at its root and the ledger's own events. A newer one is a
// *canon.NewerError.
func CheckSchema(tree fs.FS) error {
	version, events, err := ownFiles(tree)
	if err == nil {
		if _, err = ledger.ReadLedgerEvents(events, version); err != nil && !errors.As(err, new(*canon.NewerError)) {
			err = &ledger.DamagedError{Path: ledger.LedgerEventsFile, Message: err.Error()}
		}
	}
	return err
}

// ownFiles are the version in ledger.json and the ledger's own events, nil for none.
func ownFiles(tree fs.FS) (version string, events []byte, err error) {
	raw, err := fs.ReadFile(tree, ledger.SchemaFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, &ledger.DamagedError{Path: ledger.SchemaFile, Message: "is missing: this ref holds no countersign ledger"}
	}
	if err != nil {
		return "", nil, err
	}
	if _, version, err = ledger.SchemaOf(raw); err != nil {
		return "", nil, err
	}
	if events, err = fs.ReadFile(tree, ledger.LedgerEventsFile); errors.Is(err, fs.ErrNotExist) {
		return version, nil, nil
	}
	return version, events, err
}

// Schema is ledger.json of a ledger whose first event has this timestamp.
func Schema(createdAt, version string) []byte {
	return fmt.Appendf(nil, "{\"created_at\":%q,\"schema_version\":%q}\n", createdAt, version)
}
