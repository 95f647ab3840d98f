package html

import (
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

// Alone makes the page of a transaction of a ledger's files as one file, with what breaks its record's rules on top. Where something in
// a diff looks like a secret it is left out, and masked is true.
func Alone(tree fs.FS, id string, o Options, masks func(diff []byte) bool) (page []byte, t Transaction, masked bool, err error) {
	var reader Reader
	read := func(id string) (Transaction, error) { return reader.Read(tree, id) }
	if t, err = read(id); err != nil {
		return nil, t, false, err
	}
	_, found, err := observation.CheckRecord(tree, id)
	if err != nil {
		return nil, t, false, err
	}
	for _, v := range found {
		t = t.With(history.Finding{RuleID: v.RuleID, Path: v.Path, Message: v.Message})
	}
	o.Alone = true
	page, masked = WritePage(t, o, masks, read)
	return page, t, masked, nil
}

// WritePage makes the page of a transaction that was read, which is compared with the one whose place it took. Its diff is left out
// where something in it looks like a secret, and masked is true.
func WritePage(t Transaction, o Options, masks func(diff []byte) bool, read func(id string) (Transaction, error)) (page []byte, masked bool) {
	if o.Redact {
		masks = func([]byte) bool { return false }
	}
	o.Earlier, masked = Compared(t, masks, read)
	if o.Redact = o.Redact || masked; o.Redact {
		o.Decide = ""
	}
	return t.Page(o), masked
}

// Compared is the transaction whose place one took, nil for none, and whether something in the diff of either looks like a secret:
// the page has what the two differ in.
func Compared(t Transaction, masks func(diff []byte) bool, read func(id string) (Transaction, error)) (earlier *Transaction, masked bool) {
	masked = masks(t.Patch)
	if n := len(t.Supersedes); n > 0 {
		if before, err := read(t.Supersedes[n-1]); err == nil {
			earlier, masked = &before, masked || masks(before.Patch)
		}
	}
	return earlier, masked
}
