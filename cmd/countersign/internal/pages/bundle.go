package pages

import (
	"context"
	"io"

	"github.com/countersign-dev/countersign/report/verifier"
)

// bundleAddress is the ledger itself, as a Git bundle beside the page that verifies it.
const bundleAddress = "verify/" + verifier.BundleFile

// bundles reports whether the site has the ledger itself: it has every diff.
func (o options) bundles() bool { return !o.redact && !o.noBundle }

// writeBundle writes the ledger, whole.
func (b *build) writeBundle(ctx context.Context, dir *dir) error {
	if b.bundles() && b.masked.Load() {
		b.Say("%s is left out: a diff has what looks like a secret, and the page leaves that out", bundleAddress)
	}
	if !b.bundles() || b.masked.Load() {
		return dir.remove(bundleAddress)
	}
	b.Progress("the ledger as a bundle", 0, 0)
	write := func(of func(context.Context, string, io.Writer) error) error {
		return dir.stream(bundleAddress, func(w io.Writer) error { return of(ctx, b.tip, w) })
	}
	of := b.Ledger.WriteBundle
	if b.ok() {
		of = b.Ledger.WriteAuditedBundle
	}
	err := write(of)
	if err != nil && b.ok() { // the audit did not read it
		err = write(b.Ledger.WriteBundle)
	}
	if err != nil && !b.ok() { // what cannot be read was found
		b.Say("%s is left out: %v", bundleAddress, err)
		return dir.remove(bundleAddress)
	}
	b.bundled = err == nil
	return err
}
