package gitstore

import (
	"context"
	"io"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// WriteBundle writes the ledger as it was at a tip as a Git bundle: its ref, and all that the tip leads to. What is not there is an
// error; with lenient, files are left out, and who audits the bundle finds which.
func (l *Ledger) WriteBundle(ctx context.Context, tip string, lenient bool, w io.Writer) error {
	ref := packfile.Ref{Name: l.ref.String(), ID: packfile.ParseID(tip)}
	return packfile.WriteBundle(w, func(w io.Writer) error { return l.repo.objects.Pack(ctx, w, ref.ID, packfile.None, lenient) }, ref)
}
