package gitstore_test

import (
	"bytes"
	"testing"
)

// TestWriteAuditedBundle: a bundle of a ledger that was read has what one has of which nothing is known.
func TestWriteAuditedBundle(t *testing.T) {
	dir, tip := bareLedger(t, 9)
	l := ledgerAt(t, dir)
	var one, other bytes.Buffer
	fatal(t, l.WriteAuditedBundle(t.Context(), tip, &one))
	fatal(t, l.WriteBundle(t.Context(), tip, &other))
	if !bytes.Equal(one.Bytes(), other.Bytes()) || one.Len() < 1000 {
		t.Errorf("%d bytes, want %d", one.Len(), other.Len())
	}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
