package pages

import (
	"bytes"

	embedded "github.com/countersign-dev/countersign/cmd/countersign/internal/verifier"
	"github.com/countersign-dev/countersign/report/html"
)

// verifyAddress is the page that verifies the ledger in the reader's browser.
const verifyAddress = "verify/index.html"

// verifies reports whether the site has that page: whether this program was built with what it
// runs.
func (b *build) verifies() bool {
	_, err := embedded.Program(b.Version)
	return err == nil
}

// verifier makes that page. It holds nothing of the ledger.
func (b *build) verifier() ([]byte, error) {
	p, err := embedded.Program(b.Version)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = p.Write(&out, html.Head{Root: "../", Nav: b.nav(), Here: verifyAddress, Footer: "This page holds nothing of the ledger, and needs no server."})
	return out.Bytes(), err
}

// writeVerifier writes that page if there is one.
func (b *build) writeVerifier(dir *dir) error {
	if !b.verifies() {
		b.Say("%v; the site has no page that verifies the ledger", embedded.ErrNone)
		return nil
	}
	page, err := b.verifier()
	if err != nil {
		return err
	}
	return dir.write(verifyAddress, page)
}
