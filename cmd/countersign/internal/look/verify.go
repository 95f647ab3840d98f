package look

import (
	"context"
	"io"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/verifier"
	"github.com/countersign-dev/countersign/report/html"
)

const (
	// verifyAddress is the page that verifies the ledger in the reader's browser.
	verifyAddress = "verify/index.html"
	// bundleAddress is the ledger itself, as a Git bundle beside that page.
	bundleAddress = "verify/" + verifier.BundleFile
)

// verifies reports whether the site has that page: whether this program was built with what it
// runs.
func (b *build) verifies() bool {
	_, err := verifier.Embedded(b.Version)
	return err == nil
}

// verifier makes that page. It holds nothing of the ledger.
func (b *build) verifier() ([]byte, error) {
	p, _ := verifier.Embedded(b.Version) // verifies said that there is one
	return p.Page(html.Head{Root: "../", Nav: b.nav(), Here: verifyAddress, Footer: "This page holds nothing of the ledger, and needs no server."})
}

// writeVerifier writes that page if there is one.
func (b *build) writeVerifier(dir *dir) error {
	if !b.verifies() {
		b.Say("%v; the site has no page that verifies the ledger", verifier.ErrNone)
		return nil
	}
	page, err := b.verifier()
	if err != nil {
		return err
	}
	return dir.write(verifyAddress, page)
}

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
	write := func(lenient bool) error {
		return dir.stream(bundleAddress, func(w io.Writer) error { return b.Ledger.WriteBundle(ctx, b.tip, lenient, w) })
	}
	err := write(!b.ok())
	if err != nil && b.ok() { // what is missing, the audit did not read
		err = write(true)
	}
	if err != nil && !b.ok() { // what cannot be read was found
		b.Say("%s is left out: %v", bundleAddress, err)
		return dir.remove(bundleAddress)
	}
	b.bundled = err == nil
	return err
}
