package html

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

//go:embed style.css
var style []byte

// StyleFile is the name of the one style sheet, at the root of a site.
const StyleFile = "style.css"

// Style is the style sheet.
func Style() []byte { return style }

//go:embed favicon.svg
var icon []byte

// IconFile is the name of the picture that browsers show beside a title, at the root of a site.
const IconFile = "favicon.svg"

// Icon is that picture.
func Icon() []byte { return icon }

// A Link is an address, relative to the site's root, and its words.
type Link struct{ Address, Text string }

// A Head is what a page has around its body.
type Head struct {
	Title string
	// Root is the way from the page to the site's root, such as "../../", "" at the root.
	Root string
	// Alone is a page that is one file: its styles are in it, and nothing else.
	Alone bool
	// Here is the address, from the root, of the link of Nav that the page is.
	Here string
	Nav  []Link
	// Scripts are the addresses, from the root, of the scripts that the page runs. Without
	// any, the page's policy allows none.
	Scripts []string
	// Script is a script that stands in the page itself, at its end. It must be one of ours, and
	// have no "</" in it.
	Script []byte
	// Policy takes the place of the Content-Security-Policy, for a page that needs another.
	Policy string
	// Footer is a line at the end: what the page was made of.
	Footer string
}

// Layout writes a whole page. Its policy allows the site's own style sheet and icon, or the hash of the
// styles in the page, the site's own scripts where there are any, and nothing else from anywhere.
func Layout(w io.Writer, h Head, body *Body) error {
	_, err := w.Write(Fill(templates, "layout", struct {
		Head
		Allows string
		Main   *Body
	}{h, h.ContentSecurityPolicy(), body}, nil).b)
	return err
}

// Findings are what was found against a record, or a whole ledger.
func Findings(title, lead string, found []history.Finding) *Body {
	return Fill(templates, "findings", struct {
		Title, Lead string
		Found       []history.Finding
	}{title, lead, found}, nil)
}

// ContentSecurityPolicy is the policy of a page, for those who serve it to send as a header as
// well.
func (h Head) ContentSecurityPolicy() string {
	if h.Policy != "" {
		return h.Policy
	}
	parts := []string{"default-src 'none'", "style-src 'self'; img-src 'self'"}
	if h.Alone {
		parts[1] = "style-src '" + HashSource(style) + "'"
	}
	switch {
	case len(h.Script) > 0:
		parts = append(parts, "script-src '"+HashSource(h.Script)+"'")
	case len(h.Scripts) > 0:
		parts = append(parts, "script-src 'self'")
	}
	return strings.Join(append(parts, "base-uri 'none'", "form-action 'none'"), "; ")
}

// HashSource is how a policy names a script or styles that stand in the page.
func HashSource(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
